"""Repositories: git-like commits, branches and merges over all the objects of a lake, without a server.

The format of committed objects is lakeFS's, byte for byte. Branches move by numbered logs whose entries are put if
absent. `docs/repository.md` describes the layout and the protocol.

```
refs/        what lies below `_esker/`: logs of branches, commits, packs, announcements of garbage collections
objects/     what is known of objects, their bytes, and what is staged
core/        one open repository, which all of its handles share; how it is created and opened
committing/  the way of a commit: staged -> checked -> merged onto the base -> stored -> branch moved
upkeep/      retention, garbage collection, fsck, packing, dumps of refs
```
"""

from typing import TYPE_CHECKING

from .branch import Branch
from .committing.hook_event import EventRef, HookEvent
from .errors import (
    ExpiredError,
    HookRefusedError,
    InvalidSeekError,
    MergeConflictError,
    NoChangesError,
    ProtectedBranchError,
    TableConflictError,
)
from .import_data import ImportManager, ImportStatus
from .objects.merge_plan import MergePlan, PathsPlan, PlanConflict, TablePlan
from .objects.object_info import Change, CommonPrefix, Conflict, ObjectInfo, TableConflict
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
    "EventRef",
    "ExpiredError",
    "HookEvent",
    "HookRefusedError",
    "ImportManager",
    "ImportStatus",
    "InvalidSeekError",
    "MergeConflictError",
    "MergePlan",
    "NoChangesError",
    "ObjectInfo",
    "ObjectReader",
    "ObjectWriter",
    "PathsPlan",
    "PlanConflict",
    "ProtectedBranchError",
    "Reference",
    "Repository",
    "RepositoryProperties",
    "Settings",
    "StoredObject",
    "TableConflict",
    "TableConflictError",
    "TablePlan",
    "Tag",
    "TransactionBranch",
    "WriteableObject",
    "repositories",
    "repository",
]

if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
