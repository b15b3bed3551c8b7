"""Fragments: the horizontal slices of a table, each with its own data files and deletion file."""

from .._native.table import DataFile
from ..lance.deletion_file import DeletionFile
from ..lance.fragment_metadata import FragmentMetadata
from .lance_fragment import LanceFragment
from .writing import write_fragments

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment", "write_fragments"]
