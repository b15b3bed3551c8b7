"""The log of a table: entries, commits, conflicts, checkpoints, clean-up."""
