"""The results of a clean-up and of its dry run, under pylance's names, with the reason for each file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CleanupStats:
    """What a clean-up removed, or would remove.

    Example:
        >>> from esker.lance.cleanup import CleanupStats
        >>> CleanupStats(bytes_removed=12, old_versions=1).data_files_removed
        0
    """

    bytes_removed: int = 0
    """Bytes of all removed files, including manifests."""
    old_versions: int = 0
    """Versions removed."""
    data_files_removed: int = 0
    """Data files, their blobs, and unfinished data files that still have temporary names."""
    transaction_files_removed: int = 0
    """Transactions, of removed versions and of failed commits."""
    index_files_removed: int = 0
    """Files of indices."""
    deletion_files_removed: int = 0
    """Deletion files."""
    failed_deletes: int = 0
    """Files that the store failed to remove; the next clean-up finds them again."""


@dataclass(frozen=True)
class CleanupCandidateFile:
    """One file that a clean-up removes."""

    path: str
    """Relative to the table's root. (pylance gives the path within the store.)"""
    kind: str
    """"manifest", "data", "deletion", "transaction", "index" or "temporary_manifest"."""
    size_bytes: int
    """Its size."""
    unverified: bool
    """Whether no version ever referred to it: a failed commit left it, or its commit is still under way."""
    reason: str = ""
    """Why it is removed. (Not in pylance.)"""


@dataclass(frozen=True)
class CleanupReferencedBranch:
    """A branch that starts from a version of the table, which is kept for it."""

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True)
class CleanupExplanation:
    """What a clean-up would remove."""

    read_version: int
    """The version of the dataset that was asked: it and later versions are kept."""
    stats: CleanupStats
    """Counts of all candidates, whether listed or not."""
    candidate_files: list[CleanupCandidateFile] = field(default_factory=list)
    """The files, if `include_files` was given."""
    candidate_files_truncated: bool = False
    """Whether there are more files than listed."""
    candidate_file_limit: int | None = None
    """How many files are listed at most."""
    referenced_branches: list[CleanupReferencedBranch] = field(default_factory=list)
    """Branches that keep versions."""
    warnings: list[str] = field(default_factory=list)
    """What to know before running the clean-up."""


def counted(files: list[CleanupCandidateFile], *, failed: int = 0) -> CleanupStats:
    """The counts of some files.

    Args:
        files: The files that were removed, or would be.
        failed: How many other files could not be removed.
    """
    kinds = [file.kind for file in files]
    return CleanupStats(
        bytes_removed=sum(file.size_bytes for file in files),
        old_versions=kinds.count("manifest"),
        data_files_removed=kinds.count("data"),
        transaction_files_removed=kinds.count("transaction"),
        index_files_removed=kinds.count("index"),
        deletion_files_removed=kinds.count("deletion"),
        failed_deletes=failed,
    )
