"""The history of a table: its versions, their transactions, and what changed between two of them."""
