"""One table's part in a revert or a cherry-pick: what it is in the three contents, and what is in the way.

```
base -> source      the change: of a cherry-pick from the parent to the commit, of a revert the other way round
dest                the table on the branch, which takes the change as a new version
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal, NoReturn

from ..._native.store import Store
from ...cached import cached_property
from ..core.repository_core import RepositoryCore
from ..errors import table_conflict
from ..objects.batches import infos, listed
from ..objects.object_info import ConflictKind, ObjectInfo, TableConflict
from .references import References
from .roots import TableRoots
from .table_log import LogEntry, TableFormat, TableLog
from .workspace import TableWorkspace

BY_HAND = "do by hand on the branch what the commit did"
"""What can be done about most conflicts."""


@dataclass(frozen=True)
class Transplant:
    """A revert or a cherry-pick, as messages and log entries tell of it.

    Attributes:
        verb: Which of the two.
        commit_id: The commit.
        branch: The branch that takes it.
    """

    verb: Literal["revert", "cherry-pick"]
    commit_id: str
    branch: str

    @property
    def what(self) -> str:
        """What is being done."""
        return f"{self.verb} of {self.commit_id[:12]} on branch {self.branch!r}"

    @property
    def is_revert(self) -> bool:
        """Whether it takes a commit back."""
        return self.verb == "revert"

    @property
    def key(self) -> str:
        """Under which a table's own log names the commit."""
        return "esker.reverted" if self.is_revert else "esker.cherry-picked"


@dataclass(frozen=True, eq=False)
class TableSide:
    """A table's folder in one content.

    Attributes:
        workspace: The content; that of the branch takes the new version.
        folder: With a `/` at its end, or empty.
        log: None where the content has no table there.
    """

    workspace: TableWorkspace
    folder: str
    log: TableLog | None

    @cached_property
    def store(self) -> Store:
        """The folder as a store."""
        return self.workspace.store(self.folder)

    @property
    def content(self) -> str:
        """The content's metarange, without what is staged over it."""
        return self.workspace.content

    @property
    def known(self) -> TableLog:
        """The log of a table that is there."""
        if self.log is None:
            raise LookupError(self.folder)
        return self.log

    def found(self, paths: Iterable[str]) -> dict[str, ObjectInfo]:
        """What the content has at some paths of the folder; those that it has not are left out."""
        wanted = [self.folder + path for path in paths]
        if not wanted or not self.content:
            return {}
        there = infos(self.workspace.core.storage.get(self.content, wanted))
        return {path.removeprefix(self.folder): info for path, info in there if info is not None}

    def listed(self, below: str = "", roots: TableRoots | None = None) -> Iterator[ObjectInfo]:
        """What the content has below a folder of the table, nested tables left out where their roots are given."""
        if not self.content:
            return
        for info in listed(self.workspace.core.storage.list(self.content, prefix=self.folder + below)):
            if isinstance(info, ObjectInfo) and (roots is None or roots.root_of(info.path) == self.folder):
                yield info


@dataclass(frozen=True, eq=False)
class TableChange:
    """A change of one table that a branch is to take.

    Attributes:
        transplant: What it is part of.
        format: The table's.
        base: The table before the change.
        source: The table after it.
        dest: The table on the branch.
    """

    transplant: Transplant
    format: TableFormat
    base: TableSide
    source: TableSide
    dest: TableSide

    @property
    def core(self) -> RepositoryCore:
        """The repository."""
        return self.dest.workspace.core

    @property
    def folder(self) -> str:
        """The table's folder."""
        return self.dest.folder

    @property
    def uri(self) -> str:
        """What the table on the branch is called in messages."""
        return self.dest.workspace.uri_of(self.folder)

    @property
    def name(self) -> str:
        """What sentences call the table."""
        return f"the table {self.folder.rstrip('/')!r}"

    @property
    def is_exact(self) -> bool:
        """Whether the branch has the table just as it is before the change."""
        if self.base.log is None or self.dest.log is None:
            return False
        return self.base.log.newest == self.dest.log.newest

    def own_versions(self) -> list[LogEntry]:
        """The versions that the branch has and the commit has not, after the last one that both have, and that one.

        Raises:
            TableConflictError: A clean-up took some of them.
        """
        theirs = (self.base if self.transplant.is_revert else self.source).known.entries
        ours = self.dest.known.entries
        shared = max((number for number, entry in ours.items() if theirs.get(number) == entry), default=None)
        first = shared if shared is not None else 1 if self.format == "lance" else 0
        wanted = range(first, max(ours) + 1)
        missing = [number for number in wanted if number not in ours]
        if missing:
            self.refuse(
                "cleaned-up",
                f"a clean-up took version {missing[0]} of {self.name}, which would tell whether the rows that come are "
                "in other files of it already",
                BY_HAND,
                missing[0],
            )
        return [ours[number] for number in wanted]

    @property
    def is_in_history(self) -> bool:
        """Whether the branch's log has the version that the commit ends with."""
        newest = (self.base if self.transplant.is_revert else self.source).known.newest
        return self.dest.known.entries.get(newest.number) == newest

    def check_lost(self, coming: Set[str], lost: Set[str], *, are_new: bool) -> None:
        """Refuses files that come back to a branch that never lost them: it may have their rows in other files.

        Args:
            coming: The files that come, while none goes.
            lost: Those of them that the branch had, and gave up with their rows.
            are_new: Whether the commit itself has written them.

        Raises:
            TableConflictError: It has not lost them.
        """
        if coming <= lost or are_new or self.is_in_history:
            return
        self.refuse(
            "changed",
            f"rows of {min(coming - lost)!r} of {self.name} would come back, which the branch never lost: it may have "
            "them in other files",
            BY_HAND,
        )

    def refuse_moved(self, entry: LogEntry, file: str) -> NoReturn:
        """Raises the conflict that rows which are to come may be there already.

        Raises:
            TableConflictError: Always.
        """
        self.refuse(
            "changed",
            f"version {entry.number} of {self.name} on the branch took rows of {file!r}, which is to come, and wrote "
            "others: they may be the same rows",
            BY_HAND,
            entry.number,
        )

    def refuse(self, kind: ConflictKind, explanation: str, advice: str, version: int | None = None) -> NoReturn:
        """Raises the conflict that names this table.

        Raises:
            TableConflictError: Always.
        """
        if version is None and self.dest.log is not None:
            version = self.dest.log.newest.number
        conflict = TableConflict(self.folder.rstrip("/"), self.format, kind, version, explanation, advice)
        raise table_conflict(conflict, what=self.transplant.what)

    def bring(self, needed: References, names: Mapping[str, str] | None = None) -> None:
        """Takes along the files of the source that the branch has not; no bytes are copied.

        Args:
            needed: What the new version refers to beyond what the branch's does.
            names: Other names that files get, by those that they have in the source.

        Raises:
            TableConflictError: The source has a file no more, or the branch has another one under its name.
        """
        if needed.elsewhere:
            self.refuse(
                "unsupported",
                f"{self.name} refers to what lies outside of its folder: {needed.elsewhere[0]}",
                "copy the table into the branch (a deep clone, or read it and write it)",
            )
        found = self.source.found(sorted(needed.files))
        for missing in sorted(needed.files - found.keys()):
            self.refuse(
                "cleaned-up",
                f"{self.name} needs the file {missing!r}, which a clean-up has taken from {self._place} as well",
                "write the rows again",
            )
        for folder in sorted(needed.folders):
            found.update((info.path.removeprefix(self.folder), info) for info in self.source.listed(folder))
        renamed = {(names or {}).get(path, path): info for path, info in found.items()}
        there = self.dest.found(sorted(renamed))
        for path, info in sorted(renamed.items()):
            if path not in there:
                self.dest.workspace.take(self.folder + path, info)
            elif not is_same_object(there[path], info):
                self.refuse(
                    "changed",
                    f"the branch has another file as {path!r} of {self.name}",
                    "write the rows to the branch by hand",
                )

    @property
    def _place(self) -> str:
        return "the commit's parent" if self.transplant.is_revert else "the commit"


def is_same_object(one: ObjectInfo | None, other: ObjectInfo | None) -> bool:
    """Whether two contents have the same bytes at a path: those at one address, or nothing."""
    if one is None or other is None:
        return one is other
    return _identity(one) == _identity(other)


def _identity(info: ObjectInfo) -> tuple[str, str, int, str]:
    return info.address_type, info.physical_address, info.size_bytes, info.checksum
