"""Scans and takes: what is wanted of which rows."""
