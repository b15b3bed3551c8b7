"""Arrow in, Arrow out: incoming data as record batches of a table's schema, and outgoing batches. Knows no format."""
