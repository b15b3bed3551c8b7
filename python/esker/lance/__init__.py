"""Lance tables: the versions of a table, the operations that change it, and their commit (docs/commit-protocol.md)."""

from .commit import DeletionMerge, LanceCommit
from .log import LanceLog
from .validation import manifest_needs_migration

__all__ = ["DeletionMerge", "LanceCommit", "LanceLog", "manifest_needs_migration"]
