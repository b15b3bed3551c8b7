"""The log of a table: entries, commits, checkpoints, clean-up."""
