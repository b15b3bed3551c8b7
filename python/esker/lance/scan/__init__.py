"""Scans and takes: projection, predicate and options of a read, and its result."""
