"""Blobs: large binary values that are read as files (docs/blobs.md)."""
