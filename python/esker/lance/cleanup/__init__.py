"""Clean-up of old versions and of what lost tries left: what goes, and why nothing else."""

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
