"""Arrow in, Arrow out: whatever a write accepts as batches of a table's types, and batches as a caller wants them."""
