"""Many writers in one process: one runs between two store operations, as a seed says, with faults. And the check."""
