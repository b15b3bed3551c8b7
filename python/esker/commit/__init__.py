"""Commits: the one loop, what a kind of table tells it, and the stores that URIs mean."""

from ..exceptions import CommitConflictError
from .external import ExternalManifestStore
from .lance import DeletionMerge, LanceCommit
from .log import LanceLog
from .loop import Backoff, CommitLimits, commit
from .pickling import pickle_storage_options
from .protocol import CommitLock, CommitProtocol, Verdict
from .stores import register, resolve

__all__ = [
    "Backoff",
    "CommitConflictError",
    "CommitLimits",
    "CommitLock",
    "CommitProtocol",
    "DeletionMerge",
    "ExternalManifestStore",
    "LanceCommit",
    "LanceLog",
    "Verdict",
    "commit",
    "pickle_storage_options",
    "register",
    "resolve",
]
