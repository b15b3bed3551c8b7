//! The Delta transaction log: actions, replay, checkpoints and pruning by statistics.
