"""Upserts (`merge_insert`): rows of a source are matched by key with rows of a table."""
