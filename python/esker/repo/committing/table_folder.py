"""What a merge changes below a table's folder, once it is decided what becomes of the table.

Taken whole is a union: the destination keeps what it has, and what only the source has comes on top. Files that only
say again what the log says are the source's. Where the destination cleaned up what both had, that stays away, unless
one of the source's new versions refers to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...exceptions import CorruptFileError, NotFoundError
from ..core.repository_core import RepositoryCore
from ..errors import MergeConflictError
from ..objects.batches import BATCH_ROWS, info, rows, table
from ..objects.object_info import ConflictKind, ObjectInfo
from ..tables.own_files import HINT, LATEST, REFS, TAGS, is_own, is_ref
from ..tables.references import References, added_references, references_of
from ..tables.roots import TableRoots
from ..tables.table_log import TableLog, is_derived
from ..tables.workspace import TableWorkspace
from .table_decision import Action, Decision, TableRules

Changes = dict[str, ObjectInfo | None]
"""What is put at paths of the destination; None where a path goes."""


@dataclass(frozen=True)
class Contents:
    """The metaranges of a merge: what both sides come from, and the sides."""

    base: str
    source: str
    dest: str


@dataclass(frozen=True)
class Below:
    """A path below a table's folder at which the sides differ, by what each has there."""

    path: str
    inner: str
    base: dict[str, Any] | None
    source: dict[str, Any] | None
    dest: dict[str, Any] | None

    @property
    def source_changed(self) -> bool:
        """Whether the source has something else than the base."""
        return _identity(self.source) != _identity(self.base)

    @property
    def dest_changed(self) -> bool:
        """Whether the destination has something else than the base."""
        return _identity(self.dest) != _identity(self.base)


class ChangedFileError(MergeConflictError):
    """A file below a table's folder is in the way. The merge makes a conflict of the table of it."""

    def __init__(self, kind: ConflictKind, path: str, explanation: str, advice: str) -> None:
        super().__init__(explanation, path=path)
        self.conflict_kind: ConflictKind = kind
        self.path = path
        self.explanation = explanation
        self.advice = advice


class TableFolder:
    """A table's folder in the three contents of a merge.

    Args:
        core: The repository.
        roots: The tables of the contents.
        contents: The contents.
        folder: The table's, with a `/` at its end.
        strategy: `none`, `source-wins` or `dest-wins`.
    """

    def __init__(self, core: RepositoryCore, roots: TableRoots, contents: Contents, folder: str, strategy: str) -> None:
        self._core = core
        self._roots = roots
        self._contents = contents
        self._folder = folder
        self._strategy = strategy

    def is_path_wise(self) -> bool:
        """Whether a merge path by path takes the source whole: here nothing changed, there nothing went."""
        storage, contents = self._core.storage, self._contents
        if storage.diff(contents.base, contents.dest, prefix=self._folder).next_batch(1) is not None:
            return False
        ours = storage.diff(contents.base, contents.source, prefix=self._folder)
        while (batch := ours.next_batch(BATCH_ROWS)) is not None:
            if "removed" in table(batch).column("type").to_pylist():
                return False
        return True

    def changes(self, decision: Decision, restored: References | None = None) -> Changes:
        """What the merge changes in the destination's folder.

        Args:
            decision: What becomes of the table.
            restored: What the version refers to that is restored.

        Raises:
            ChangedFileError: Something is in the way.
        """
        if decision.action is Action.TAKE:
            return self._taken(decision)
        if decision.action is Action.DROP:
            return self._dropped(decision)
        if decision.action is Action.RESTORE:
            return self._restored(decision, restored or References())
        return self._kept(decision) if decision.action is Action.KEEP else {}

    def reverted(self, merged: str) -> Iterator[tuple[str, ObjectInfo | None]]:
        """What the destination has at the paths that a merge path by path changed below the folder."""
        for row in rows(self._core.storage.diff(self._contents.dest, merged, prefix=self._folder)):
            if self._roots.root_of(row["path"]) == self._folder:
                yield row["path"], info(row["path"], row["left"])

    def _differences(self) -> Iterator[Below]:
        storage, contents = self._core.storage, self._contents
        found = storage.diff(contents.dest, contents.source, prefix=self._folder)
        while (batch := found.next_batch(BATCH_ROWS)) is not None:
            own = [
                row
                for row in table(batch).to_pylist(maps_as_pydicts="strict")
                if self._roots.root_of(row["path"]) == self._folder
            ]
            before = table(storage.get(contents.base, [row["path"] for row in own]))
            base = {row["path"]: row["entry"] for row in before.to_pylist(maps_as_pydicts="strict")}
            for row in own:
                path = row["path"]
                yield Below(path, path.removeprefix(self._folder), base.get(path), row["right"], row["left"])

    def _taken(self, decision: Decision) -> Changes:
        changes: Changes = {}
        cleaned: list[Below] = []
        takes_hint = False
        for one in self._differences():
            if is_ref(decision.format, one.inner):
                self._take_ref(changes, decision, one)
            elif one.source is None:
                if one.inner == LATEST:
                    # A copy of the newest manifest that would stay behind.
                    changes[one.path] = None
            elif one.dest is None:
                if one.base is None or one.source_changed or decision.dest is None:
                    changes[one.path] = info(one.path, one.source)
                else:
                    cleaned.append(one)
            elif is_derived(one.inner):
                if one.source_changed and (one.inner != HINT or not one.dest_changed or self._is_newer_hint()):
                    changes[one.path] = info(one.path, one.source)
                    takes_hint |= one.inner == HINT
            else:
                self._three_way(changes, one)
        if cleaned:
            needed = self._needed(decision)
            for one in cleaned:
                if needed.has(one.inner) or (takes_hint and is_derived(one.inner)):
                    changes[one.path] = info(one.path, one.source)
        return changes

    def _kept(self, decision: Decision) -> Changes:
        changes: Changes = {}
        for one in self._differences():
            if is_ref(decision.format, one.inner):
                self._take_ref(changes, decision, one)
            elif not is_own(decision.format, one.inner):
                self._three_way(changes, one)
        return changes

    def _restored(self, decision: Decision, restored: References) -> Changes:
        changes: Changes = {}
        for one in self._differences():
            if is_ref(decision.format, one.inner):
                continue
            if restored.has(one.inner):
                if one.dest is not None and one.source is not None:
                    raise _changed(one)
                if one.source is not None:
                    changes[one.path] = info(one.path, one.source)
            elif not is_own(decision.format, one.inner):
                self._three_way(changes, one)
        return changes

    def _dropped(self, decision: Decision) -> Changes:
        """All that the base had too, and the table's own files go; what else the destination alone has there stays."""
        storage, contents = self._core.storage, self._contents
        tags = storage.diff(contents.base, contents.dest, prefix=self._folder + REFS).next_batch(1)
        if tags is not None:
            path = table(tags).column("path")[0].as_py()
            raise ChangedFileError(
                "dropped",
                path,
                f"the source has dropped the table in {self._folder!r}, and the destination has changed {path!r} since",
                'drop it on the destination as well, or merge with strategy="dest-wins", which keeps it',
            )
        return {
            one.path: None
            for one in self._differences()
            if one.source is None and (one.base is not None or is_own(decision.format, one.inner))
        }

    def _three_way(self, changes: Changes, one: Below) -> None:
        """A file that is there on both sides, or new on the source. What a side removed is not taken from the other."""
        if one.source is None or not one.source_changed:
            return
        if one.dest_changed:
            raise _changed(one)
        changes[one.path] = info(one.path, one.source)

    def _take_ref(self, changes: Changes, decision: Decision, one: Below) -> None:
        if not one.source_changed:
            return
        if one.dest_changed and self._strategy != "source-wins":
            raise _changed(one)
        if one.source is not None:
            self._check_tag(decision, one)
        changes[one.path] = info(one.path, one.source)

    def _check_tag(self, decision: Decision, one: Below) -> None:
        if not one.inner.startswith(TAGS):
            return
        try:
            said = json.loads(self._source_store().get(one.inner))
            version, branch = said["version"], said.get("branch")
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # What no reader can make sense of does no harm.
        if decision.dest is None and decision.action is Action.KEEP:
            raise ChangedFileError(
                "dropped",
                one.path,
                f"the destination dropped the table in {self._folder!r}, and the source made {one.path!r} since",
                'delete the tag on the source, or merge with strategy="dest-wins", which leaves the table dropped',
            )
        if branch is None and not _has_version(decision, version):
            raise ChangedFileError(
                "cleaned-up",
                one.path,
                f"the tag {one.path!r} of the source names version {version}, which the destination has cleaned up",
                "delete the tag on the source, or let it name a version that is there, and merge then",
            )
        if branch is None and not _is_same_version(decision, version):
            raise ChangedFileError(
                "replaced",
                one.path,
                f"the tag {one.path!r} of the source names version {version}, which is another one on the destination: "
                "the table was created anew there",
                "delete the tag on the source, and create it of a version of the destination's table",
            )

    def _needed(self, decision: Decision) -> References:
        """What the source's new versions refer to."""
        found = References()
        if decision.source is None or decision.dest is None:
            return found
        # What tables need is imported when a table is met.
        from ...delta.log.entries import read_actions

        store, last = self._source_store(), decision.dest.newest.number
        new = {number: entry for number, entry in decision.source.entries.items() if number > last}
        # Entries of Delta say what comes; without all of them, whole versions have to.
        by_entry = decision.format == "delta" and last + 1 in new
        for number, entry in new.items():
            if by_entry:
                found.add(added_references(read_actions(store, number)))
                continue
            try:
                found.add(references_of(store, decision.format, number, entry.path.removeprefix(self._folder)))
            except (CorruptFileError, NotFoundError):
                # No reader opens it any more: a checkpoint that it was replayed from is cleaned up.
                if number == decision.source.newest.number:
                    raise
        return found

    def _is_newer_hint(self) -> bool:
        """Whether the source's hint names a checkpoint that is not older than that of the destination's."""
        ours, theirs = (self._hint(content) for content in (self._contents.dest, self._contents.source))
        return theirs >= ours

    def _hint(self, content: str) -> int:
        store = TableWorkspace(self._core, content, self._core.uri).store(self._folder)
        try:
            return int(json.loads(store.get(HINT))["version"])
        except (NotFoundError, ValueError, KeyError, TypeError):
            return -1

    def _source_store(self) -> Any:
        return TableWorkspace(self._core, self._contents.source, self._core.uri).store(self._folder)


def conflict_from(rules: TableRules, decision: Decision, error: ChangedFileError) -> Decision:
    """The conflict that a file makes of a decision."""
    version = None if decision.dest is None else decision.dest.newest.number
    return rules.refused(decision, error.conflict_kind, version, error.explanation, error.advice)


def _changed(one: Below) -> ChangedFileError:
    return ChangedFileError(
        "changed",
        one.path,
        f"both sides changed {one.path!r}, which lies in the folder of a table",
        'make it the same on both sides, or merge with strategy="dest-wins"',
    )


def _identity(entry: dict[str, Any] | None) -> bytes | None:
    return None if entry is None else entry["identity"]


def _has_version(decision: Decision, version: object) -> bool:
    source: TableLog | None = decision.source
    dest: TableLog | None = decision.dest
    if dest is not None and version in dest.entries:
        return True
    if decision.action is not Action.TAKE or source is None or version not in source.entries:
        return False
    return dest is None or (isinstance(version, int) and version > dest.newest.number)


def _is_same_version(decision: Decision, version: object) -> bool:
    """Whether a version of the source's is none that the destination has otherwise."""
    sides = (decision.source, decision.dest)
    ours, theirs = (log.entries.get(version) if log and isinstance(version, int) else None for log in sides)
    return ours is None or theirs is None or ours.identity == theirs.identity
