"""Fragments: the horizontal slices of a table, each with its own files."""

from .lance_fragment import DataFile, DeletionFile, FragmentMetadata, LanceFragment, write_fragments

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment", "write_fragments"]
