"""Lance tables: the versions of a table, the operations that change it, and their commit (docs/commit-protocol.md)."""

from .commit import LanceCommit
from .deletion_merge import DeletionMerge
from .log import LanceLog
from .validation import manifest_needs_migration

__all__ = ["DeletionMerge", "LanceCommit", "LanceLog", "manifest_needs_migration"]
