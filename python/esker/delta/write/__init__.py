"""Writes to a table: rows come in, are conformed, checked and stored in data files, which one log entry commits."""
