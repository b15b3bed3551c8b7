"""Lance tables: one version of a table, what changes it, and how a change becomes the next version."""

from .commit import DeletionMerge, LanceCommit
from .log import LanceLog

__all__ = ["DeletionMerge", "LanceCommit", "LanceLog"]
