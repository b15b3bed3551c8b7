"""Blobs: large values that are read as files."""
