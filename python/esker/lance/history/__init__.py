"""Other versions of a table, and what changed between them."""
