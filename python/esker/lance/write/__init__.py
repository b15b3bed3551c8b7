"""Writes: rows become the data files of new fragments."""
