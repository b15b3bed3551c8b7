"""Compaction of Lance tables: fewer, larger fragments with the same rows (docs/maintenance.md)."""
