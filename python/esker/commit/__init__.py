"""Commits: the commit loop, the protocol that each table format implements for it, and the stores that URIs mean."""

from ..exceptions import CommitConflictError
from ..store.pickling import pickle_storage_options
from ..store.stores import register, resolve
from .external import ExternalManifestStore
from .loop import Backoff, CommitLimits, commit
from .protocol import CommitLock, CommitProtocol, Verdict

__all__ = [
    "Backoff",
    "CommitConflictError",
    "CommitLimits",
    "CommitLock",
    "CommitProtocol",
    "ExternalManifestStore",
    "Verdict",
    "commit",
    "pickle_storage_options",
    "register",
    "resolve",
]
