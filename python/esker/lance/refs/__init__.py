"""Names in time: the tags and the branches of one table, in pylance's layout (docs/tags-and-branches.md)."""
