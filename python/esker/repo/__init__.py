"""Repositories: git-like commits, branches and merges over all the objects of a lake, with no server.

Committed storage is lakeFS's, byte for byte; where branches point is told by numbered logs that are put if absent.
`docs/repository.md` is the layout and the protocol.
"""

from typing import TYPE_CHECKING

from .branch import Branch
from .errors import ExpiredError, InvalidSeekError, MergeConflictError, NoChangesError, ProtectedBranchError
from .hooks import HookEvent
from .import_data import ImportManager, ImportStatus
from .objects.object_info import Change, CommonPrefix, Conflict, ObjectInfo
from .objects.object_io import ObjectReader, ObjectWriter
from .objects.stored_object import StoredObject, WriteableObject
from .reference import Reference
from .refs.commits import Commit
from .repository import Repository, RepositoryProperties, repositories, repository
from .sdk_names import module_getattr
from .settings import Settings
from .tag import Tag
from .transaction import TransactionBranch

__all__ = [
    "Branch",
    "Change",
    "Commit",
    "CommonPrefix",
    "Conflict",
    "ExpiredError",
    "HookEvent",
    "ImportManager",
    "ImportStatus",
    "InvalidSeekError",
    "MergeConflictError",
    "NoChangesError",
    "ObjectInfo",
    "ObjectReader",
    "ObjectWriter",
    "ProtectedBranchError",
    "Reference",
    "Repository",
    "RepositoryProperties",
    "Settings",
    "StoredObject",
    "Tag",
    "TransactionBranch",
    "WriteableObject",
    "repositories",
    "repository",
]

if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
