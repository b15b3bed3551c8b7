"""What becomes of tables whose branch has moved since their commits were staged.

```
the branch's log of a table, against the one that was read     what is staged
same newest entry                                              goes on top as it is
goes on from it                                                is committed again, by the table's own rules; or refused
has all that is staged, or goes on by some of it alone         stays, or gets the rest as it is: see `landed_before`
anything else: reset, dropped, replaced, cleaned up            is refused
```

A free number proves nothing: the entry before it must be the one that was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from ...exceptions import ConflictError, NotFoundError
from ..core.repository_core import RepositoryCore
from ..errors import MergeConflictError, TableConflictError, table_conflict
from ..objects.batches import infos, rows
from ..objects.object_info import Conflict, ConflictKind, ObjectInfo, TableConflict
from ..objects.staging import StagedEntry, Staging
from ..refs.commits import Commit
from ..tables.own_files import TAGS
from ..tables.references import references_of
from ..tables.roots import TableRoots, logs_at
from ..tables.table_log import FOLDERS, LogEntry, Relation, TableFormat, TableLog, is_derived, read_log
from ..tables.workspace import TableWorkspace
from .landed_before import LandedBefore, Logs, is_gone_on_from, own_entries
from .merge_content import merged_content


class OnLost(Enum):
    """What to do with a table's staged commits if others have committed to the table meanwhile."""

    REPLAY = "replay"
    """They are committed again, on top of the others', by the table's own rules."""
    ERROR = "error"
    """They are refused."""
    TAKEN = "taken"
    """The number is taken: the table's own commit loop goes on (`EntryTaken`)."""


class EntryTaken(Exception):
    """Another writer has committed the number of a log entry."""


@dataclass(frozen=True)
class Landing:
    """A content over a branch's last commit.

    Attributes:
        content: The metarange.
        staging: What is staged in it, with what was written for it.
        versions: The versions that each table gets, by its folder.
    """

    content: str
    staging: Staging
    versions: dict[str, tuple[int, ...]] = field(default_factory=dict)


def landed_on(
    core: RepositoryCore, branch: str, base: Commit, ours: str, dest: Commit, staging: Staging, on_lost: OnLost
) -> Landing:
    """Brings what is staged over `base` onto the branch's last commit.

    Args:
        core: The repository.
        branch: The branch.
        base: The commit that it was staged over.
        ours: The metarange of `base` with what is staged.
        dest: The branch's last commit.
        staging: What is staged.
        on_lost: What to do with tables that others have committed to.

    Raises:
        MergeConflictError: Both changed the same paths.
        TableConflictError: A table went another way, or something changed that was to stay unchanged.
        EntryTaken: With `OnLost.TAKEN`.
    """
    before = LandedBefore(core.storage, base.meta_range_id, ours, dest.meta_range_id)
    # What others may have changed on top of it is no reason to do it again.
    is_there = on_lost is not OnLost.TAKEN and before.has_all(is_own=True)
    if not is_there:
        _check_expected(staging, before)
    if dest.meta_range_id == base.meta_range_id:
        return Landing(ours, staging, _numbers(staging.entries))
    if is_there or (on_lost is not OnLost.TAKEN and before.has_all()):
        return Landing(dest.meta_range_id, staging, _numbers(staging.entries))
    return _Landing(core, branch, before, staging, on_lost).land()


def _numbers(entries: list[StagedEntry]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for entry in sorted(entries, key=lambda entry: entry.number):
        found[entry.folder] = (*found.get(entry.folder, ()), entry.number)
    return found


def _check_expected(staging: Staging, before: LandedBefore) -> None:
    for path in sorted(staging.expected):
        if before.is_changed_by_others(path):
            found = TableConflict(
                path,
                "",
                "changed",
                None,
                f"{path or 'the branch'!r} was expected to stay as it was when the transaction began, and others have "
                "changed it",
                "run the transaction again",
            )
            raise table_conflict(found, what="commit", retryable=True)


def _says_again(path: str, change: ObjectInfo | None) -> bool:
    """Whether what is staged at a path of a table belongs to a log that has not been gone on from: a checkpoint, or the
    removal of entries of which that checkpoint would be all that is left."""
    return is_derived(path) or (change is None and path.startswith(FOLDERS["delta"]))


class _Landing:
    def __init__(
        self,
        core: RepositoryCore,
        branch: str,
        before: LandedBefore,
        staging: Staging,
        on_lost: OnLost,
    ) -> None:
        self._core = core
        self._branch = branch
        self._before = before
        self._base, self._ours, self._dest = before.base, before.ours, before.dest
        self._staging = staging
        self._on_lost = on_lost
        self._roots = TableRoots(core.storage, [before.base, before.ours, before.dest])
        self._conflicts: list[tuple[TableConflict, bool]] = []

    def land(self) -> Landing:
        storage = self._core.storage
        pair = (self._base, self._dest)
        tables = self._roots.touched(self._base, self._ours)
        moved = [folder for folder in tables if storage.touched([pair], prefixes=[folder])[0]]
        # A table's own commit loop, which is told that its number is taken, knows its entry by its write id.
        knows = self._on_lost is OnLost.TAKEN
        landed = {folder for folder in moved if not knows and self._before.has_table(folder, self._roots)}
        again = [folder for folder in moved if folder not in landed and self._judge(folder)]
        self._raise_conflicts()
        versions = _numbers(self._staging.entries)
        left_out = self._left_out(moved)
        if not left_out:
            self._check_files(moved, self._ours)
            content = self._path_wise(self._ours)
            self._check_tagged(moved, content)
            return Landing(content, self._staging, versions)
        taken = [path for path in left_out if self._roots.root_of(path) not in landed]
        self._check_objects(taken)
        self._check_tags(taken, again)
        rest = storage.apply(self._base, self._staging.without(left_out), rule=self._core.settings().rule())
        workspace = TableWorkspace(self._core, self._path_wise(rest.metarange_id or self._base), self._branch)
        entries = {entry.path for entry in self._staging.entries if entry.folder in again}
        for path in taken:
            folder = self._roots.root_of(path) or ""
            change = self._staging.get(path)
            if path not in entries and not _says_again(path[len(folder) :], change):
                workspace.take(path, change)
        versions.update(self._replayed(workspace, again))
        content = workspace.finish()
        self._check_files(moved, content)
        self._check_tagged(moved, content)
        return Landing(content, self._staging.joined(workspace.written()), versions)

    def _path_wise(self, ours: str) -> str:
        return merged_content(self._core, self._base, ours, self._dest, "none").metarange_id or ""

    def _left_out(self, moved: list[str]) -> list[str]:
        """What is staged in tables that others have changed: it does not go through the path-wise merge."""
        found: list[str] = []
        for folder in moved:
            found += [path for path, _ in self._staging.within(folder) if self._roots.root_of(path) == folder]
        return found

    def _check_objects(self, paths: list[str]) -> None:
        """Refuses files of tables, other than entries and what repeats them, that both have changed.

        Raises:
            MergeConflictError: There are some.
        """
        entries = {entry.path for entry in self._staging.entries}
        wanted = [
            path
            for path in paths
            if path not in entries and not is_derived(path[len(self._roots.root_of(path) or "") :])
        ]
        sides = [dict(infos(self._core.storage.get(content, wanted))) for content in (self._base, self._dest)]
        found = [
            Conflict(path, sides[0].get(path), self._staging.get(path), sides[1].get(path))
            for path in wanted
            if not _same(sides[0].get(path), sides[1].get(path))
            and not _same(self._staging.get(path), sides[1].get(path))
        ]
        if found:
            raise MergeConflictError(
                f"{len(found)} paths were changed on both sides: {found[0].path!r}; nothing was changed: look at both",
                conflicts=found,
                count=len(found),
            )

    def _check_tags(self, paths: list[str], again: list[str]) -> None:
        """Refuses tags of versions that get other numbers: they would name the others'."""
        for folder in again:
            own = {entry.number for entry in self._staging.entries if (entry.folder, entry.format) == (folder, "lance")}
            own.difference_update(own_entries(self._logs(folder), "lance"))
            for path in paths:
                tag = self._staging.get(path) if path.startswith(folder + TAGS) else None
                if tag is None or tag.address_type == "full":
                    continue
                try:
                    version = json.loads(self._core.store.get(tag.physical_address))["version"]
                except (ValueError, KeyError, TypeError):
                    continue  # What no reader can make sense of does no harm.
                if version in own:
                    why = f"the tag {path!r} names version {version}, whose number others have taken meanwhile"
                    self._refuse(folder, "lance", "lost", version, why, retryable=True)
        self._raise_conflicts()

    def _judge(self, folder: str) -> bool:
        """Whether the commits of a table are to be made again; notes what is in the way of it."""
        logs = self._logs(folder)
        if self._on_lost is not OnLost.TAKEN and is_gone_on_from(logs):
            return False
        base, ours, dest = (log.keys() for log in logs)
        if ours - base and dest - base and not (ours - base) & (dest - base):
            format = next(iter(dest - base))
            newest = logs[2][format].newest.number
            self._refuse(folder, format, "both-created", newest, f"others have created a {format} table there")
        # Each of them, so that all conflicts are told.
        found = [self._judge_log(folder, format, logs) for format in {key for log in logs for key in log}]
        return any(found)

    def _logs(self, folder: str) -> Logs:
        return [logs_at(self._core.storage, content, folder) for content in (self._base, self._ours, self._dest)]

    def _judge_log(self, folder: str, format: TableFormat, logs: list[dict[TableFormat, TableLog]]) -> bool:
        base, ours, dest = (log.get(format) for log in logs)
        if base is None:
            if ours is not None and dest is not None:
                if self._on_lost is OnLost.TAKEN:
                    # Whether two that make a table get along is for its own loop to say, as elsewhere.
                    raise EntryTaken(folder)
                self._refuse(folder, format, "both-created", dest.newest.number, "others have created it meanwhile")
            return False
        if dest is None or ours is None:
            if (dest is None) != (ours is None):
                who = "others have" if dest is None else "the commit has"
                self._refuse(
                    folder, format, "dropped", base.newest.number, f"{who} dropped it, and it was changed besides"
                )
            return False
        relation, version = dest.relation(base)
        own = [number for number in ours.entries if number not in base.entries]
        if relation is Relation.EXTENDS:
            self._check_deleted(folder, dest, base)
            if ours.naming not in (base.naming, dest.naming):
                self._refuse_names(folder, version, "the commit", "others committed")
                return False
            kept, parted = ours.relation(base)
            # A clean-up of its own may have taken the version that it began at.
            is_cleaned = kept is Relation.UNKNOWN and ours.newest.number > base.newest.number
            if kept not in (Relation.SAME, Relation.EXTENDS) and not is_cleaned:
                # Put together with the others' versions, what it has left would be no log.
                why = f"the commit has another table in its place, and others have committed version {version + 1}"
                self._refuse(folder, format, "replaced", parted, f"{why} meanwhile", retryable=True)
                return False
            return bool(own) and self._may_replay(folder, format, own, dest)
        if relation is Relation.SAME:
            self._check_deleted(folder, dest, base)
            if own and ours.naming != dest.naming:
                self._refuse_names(folder, version, "others", "the commit makes")
        elif relation is Relation.UNKNOWN:
            self._refuse(folder, format, "cleaned-up", version, f"a clean-up has removed version {version} meanwhile")
        elif relation is Relation.BEHIND:
            self._refuse(
                folder,
                format,
                "reset",
                version,
                f"it was read at version {base.newest.number}, and the branch was reset to version {version} meanwhile",
            )
        else:
            kind: ConflictKind = "reset" if version > min(base.entries) else "replaced"
            self._refuse(
                folder,
                format,
                kind,
                version,
                f"version {version}, which was read, is another one by now: the branch "
                "was reset, or the table replaced",
            )
        return False

    def _refuse_names(self, folder: str, version: int, one: str, other: str) -> None:
        # Names of two schemes are no log.
        why = f"{one} renamed its manifests (`migrate_manifest_paths_v2`), and {other} version {version + 1}"
        self._refuse(folder, "lance", "changed", version, why, retryable=True)

    def _may_replay(self, folder: str, format: TableFormat, own: list[int], dest: TableLog) -> bool:
        if self._on_lost is OnLost.TAKEN:
            raise EntryTaken(folder)
        newest = dest.newest.number
        if self._on_lost is OnLost.ERROR:
            why = f"others have committed version {newest} meanwhile, which on_lost='error' makes a conflict"
            self._refuse(folder, format, "lost", newest, why, retryable=True)
            return False
        known = {entry.number for entry in self._staging.entries if entry.folder == folder and entry.format == format}
        if not known.issuperset(own):
            self._refuse(
                folder, format, "diverged", newest, f"others have committed version {newest} meanwhile, and entries of "
                "its log were staged as plain objects"
            )  # fmt: skip
            return False
        return True

    def _replayed(self, workspace: TableWorkspace, folders: list[str]) -> dict[str, tuple[int, ...]]:
        """Commits again what is staged for some tables, each commit in its turn; the versions that it becomes."""
        replays: dict[tuple[str, str], Callable[[StagedEntry], int]] = {}
        found: dict[str, tuple[int, ...]] = dict.fromkeys(folders, ())
        # Threads of a transaction may have noted a later version of a table first.
        for entry in sorted(self._staging.entries, key=lambda entry: entry.number):
            if entry.folder not in found:
                continue
            key = (entry.folder, entry.format)
            if key not in replays:
                replays[key] = self._replay(workspace, entry)
            try:
                found[entry.folder] += (replays[key](entry),)
            except ConflictError as error:
                retryable = bool(getattr(error, "retryable", False))
                # The loop knows of no earlier attempt, and says that it can be run again.
                why = f"others have committed to it, and {entry.path!r} cannot be put on top of that"
                said = why if self._staging.is_in_doubt else str(error)
                self._refuse(entry.folder, entry.format, "lost", entry.number, said, retryable=retryable)
                self._raise_conflicts(error)
            except NotFoundError as error:
                # A restore of a version that a clean-up has taken, the transaction's own or another's.
                why = f"{error}; a clean-up has taken what version {entry.number} was made of"
                self._refuse(entry.folder, entry.format, "cleaned-up", entry.number, why, retryable=True)
                self._raise_conflicts(error)
        return found

    def _replay(self, workspace: TableWorkspace, entry: StagedEntry) -> Callable[[StagedEntry], int]:
        # What tables need is imported when a table is met.
        from .replays import replay_of

        base = logs_at(self._core.storage, self._base, entry.folder).get(entry.format)
        return replay_of(entry, workspace, base.newest.number if base is not None else None)

    def _check_deleted(self, folder: str, dest: TableLog, base: TableLog) -> None:
        """Refuses to delete what versions refer to that others have committed."""
        gone = [path for path, change in self._staging.within(folder) if change is None]
        new = [entry for number, entry in dest.entries.items() if number not in base.entries]
        if gone and new:
            self._check_there(folder, dest, new, self._dest, set(gone), "the commit deletes")

    def _check_files(self, folders: list[str], content: str) -> None:
        """Refuses versions that refer to files which others have deleted."""
        for folder in folders:
            gone = {
                row["path"]
                for row in rows(self._core.storage.diff(self._base, self._dest, prefix=folder))
                if row["type"] == "removed"
            }
            for format, log in logs_at(self._core.storage, content, folder).items() if gone else []:
                before = logs_at(self._core.storage, self._dest, folder).get(format)
                known = set() if before is None else set(before.entries)
                new = [entry for number, entry in log.entries.items() if number not in known]
                self._check_there(folder, log, new, content, gone, "others have deleted")
        self._raise_conflicts()

    def _check_tagged(self, folders: list[str], content: str) -> None:
        """Refuses tags that would not name what they did where they were made: the other side has cleaned it up, or
        made the table anew."""
        for folder in folders:
            changed = self._core.storage.diff(self._base, content, prefix=folder + TAGS)
            tags = [row["path"] for row in rows(changed) if row["type"] != "removed"]
            log = read_log(self._core.storage, content, folder, "lance") if tags else None
            if log is None:
                continue
            _, ours, theirs = self._logs(folder)
            own = {path for path, _ in self._staging.within(folder + TAGS)}
            store = TableWorkspace(self._core, content, self._branch).store(folder)
            for path in tags:
                try:
                    version = json.loads(store.get(path[len(folder) :]))["version"]
                except (ValueError, KeyError, TypeError):
                    continue  # What no reader can make sense of does no harm.
                tagged = (ours if path in own else theirs).get("lance")
                meant = tagged.entries.get(version) if tagged is not None and isinstance(version, int) else None
                found = log.entries.get(version)
                if meant is not None and found is None:
                    why = f"the tag {path!r} names version {version}, which a clean-up has removed meanwhile"
                    self._refuse(folder, "lance", "cleaned-up", version, why, retryable=True)
                elif meant is not None and found is not None and meant.identity != found.identity:
                    why = f"the tag {path!r} names version {version} of the table that was there before"
                    self._refuse(folder, "lance", "replaced", version, why, retryable=True)
        self._raise_conflicts()

    def _check_there(
        self, folder: str, log: TableLog, entries: list[LogEntry], content: str, gone: set[str], who: str
    ) -> None:
        store = TableWorkspace(self._core, content, self._branch).store(folder)
        for entry in entries:
            needed = references_of(store, log.format, entry.number, entry.path[len(folder) :])
            missing = next((path for path in sorted(gone) if needed.has(path[len(folder) :])), None)
            if missing is not None:
                self._refuse(
                    folder, log.format, "cleaned-up", entry.number,
                    f"version {entry.number} refers to {missing}, which {who}", retryable=True,
                )  # fmt: skip
                return

    def _refuse(
        self, folder: str, format: TableFormat, kind: ConflictKind, version: int, why: str, *, retryable: bool = False
    ) -> None:
        path = folder.rstrip("/")
        retryable |= kind == "both-created"
        if own := own_entries(self._logs(folder), format):
            # Whoever does all of it again would have their rows twice.
            why += f"; version {own[-1]} of what is staged is on the branch already, by a commit that had landed"
            retryable = False
        elif self._staging.is_in_doubt:
            why += "; it is not known whether an earlier commit of what is staged has landed"
            retryable = False
        advice = "run it again" if retryable else "open the table again, and look at it first"
        found = TableConflict(path, format, kind, version, f"the table {path or '/'!r}: {why}", advice)
        self._conflicts.append((found, retryable))

    def _raise_conflicts(self, cause: Exception | None = None) -> None:
        if self._conflicts:
            error: TableConflictError = table_conflict(
                *(found for found, _ in self._conflicts),
                what=f"commit to {self._branch}",
                retryable=all(retryable for _, retryable in self._conflicts),
            )
            raise error from cause


def _same(one: ObjectInfo | None, other: ObjectInfo | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.checksum, one.size_bytes) == (other.checksum, other.size_bytes)
