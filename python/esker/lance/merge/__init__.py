"""Upserts: rows of a source against rows of a table, by key."""
