"""Merges of rows into a table: joined by a condition, then updated, deleted, inserted by clauses."""
