"""Rows on their way into a table: checked, conformed, stored in data files, committed."""
