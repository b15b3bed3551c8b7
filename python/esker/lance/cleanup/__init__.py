"""Clean-up: removes old versions, the files that only they refer to, and orphans of failed commits."""

from .explanation import CleanupCandidateFile, CleanupExplanation, CleanupReferencedBranch, CleanupStats
from .policy import CleanupPolicy
from .run import cleanup, explain

__all__ = [
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupPolicy",
    "CleanupReferencedBranch",
    "CleanupStats",
    "cleanup",
    "explain",
]
