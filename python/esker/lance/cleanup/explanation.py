"""What a clean-up removed, or would remove: the same names as pylance's, and why."""

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
    """Bytes of all files, manifests among them."""
    old_versions: int = 0
    """Versions that are gone."""
    data_files_removed: int = 0
    """Data files, their blobs, and data files that never got their names."""
    transaction_files_removed: int = 0
    """Transactions, of versions that are gone and of commits that failed."""
    index_files_removed: int = 0
    """Files of indices."""
    deletion_files_removed: int = 0
    """Deletion files."""
    failed_deletes: int = 0
    """Files that the store would not remove; the next clean-up finds them again."""


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
    """Whether no version ever referred to it: a commit left it that failed, or that is not done yet."""
    reason: str = ""
    """Why it goes. (Not in pylance.)"""


@dataclass(frozen=True)
class CleanupReferencedBranch:
    """A branch that starts from a version of the table, which stays therefore."""

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True)
class CleanupExplanation:
    """What a clean-up would remove."""

    read_version: int
    """The version of the dataset that was asked: it and later ones stay."""
    stats: CleanupStats
    """Counts of all candidates, whether listed or not."""
    candidate_files: list[CleanupCandidateFile] = field(default_factory=list)
    """The files, where they were asked for."""
    candidate_files_truncated: bool = False
    """Whether there are more files than listed."""
    candidate_file_limit: int | None = None
    """How many files would be listed."""
    referenced_branches: list[CleanupReferencedBranch] = field(default_factory=list)
    """Branches that keep versions."""
    warnings: list[str] = field(default_factory=list)
    """What to know before it is run."""


def counted(files: list[CleanupCandidateFile], *, failed: int = 0) -> CleanupStats:
    """The counts of some files.

    Args:
        files: What is gone, or would go.
        failed: How many others could not be removed.
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
