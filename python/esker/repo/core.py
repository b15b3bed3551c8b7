"""One repository as its store holds it: what all its handles share."""

from __future__ import annotations

import fnmatch
import getpass
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn
from urllib.parse import unquote

from .._native.graveler import Merged, Storage
from .._native.store import Store
from ..commit.loop import follow
from ..exceptions import CommitConflictError, CorruptFileError, InvalidArgumentError, NotFoundError, UnsupportedError
from ..store.stores import resolve
from . import packed_heads
from .atomic import AtomicObjects
from .clock import Moment, collecting_time, elapsed_s, moment, store_time
from .collecting import Condemned, check_not_condemned, reach_of_living
from .commits import Commit, CommitStore
from .errors import MergeConflictError, ProtectedBranchError
from .hooks import Hooks
from .json_record import WRONG, decode_json
from .layout import FORMAT_VERSION, HEADS, LAKEFS_MARKER, LAKEFS_OLD_MARKER, REPOSITORY, TABLES, head_folder, tag_path
from .needs import Needs, check_there, new_objects
from .numbered_log import LogEntry, NumberedLog
from .objects import Conflict, info, table
from .packs import PACK_COMMITS
from .ref_commit import HELD_UP_S, Build, append
from .settings import Settings, SettingsLog
from .staging import Staging
from .text import check_text
from .upload import Upload

_EXPRESSION = re.compile(r"(?P<name>[^~^@$]+)(?P<steps>(?:[~^]\d*|@|\$)*)")
_STEP = re.compile(r"([~^@$])(\d*)")
_SHORTEST_PREFIX = 4
SETTINGS_SECONDS = 5.0
"""For how long settings are taken to be as they were read."""
PACK_BYTES = 64 << 10
"""Bytes of commits that an entry carries along at most, before they become a pack."""
MOST_BEFORE = 4 * PACK_COMMITS
"""Commits that an entry carries along at most, where no pack can be written."""
UPKEEP_EVERY = 64
"""Every so many entries of a branch, whoever puts one joins packs and removes old entries."""
HIDDEN = "hidden"
"""In an entry's body: the branch is left out of listings."""
_THREADS = 32
_NOTHING = Needs()


class RepositoryCore:
    """The store of one repository, its tables, commits, logs and settings, and what is staged in this process.

    Args:
        store: Its root.
        uri: What the user wrote, for messages.
        atomic: The objects by which its refs move.
        options: Options of its store, for what lies elsewhere.

    Raises:
        NotFoundError: There is no repository.
        UnsupportedError: A newer release made it.
    """

    def __init__(
        self,
        store: Store,
        uri: str,
        atomic: AtomicObjects,
        *,
        cache_bytes: int,
        cache_dir: str | os.PathLike[str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.options = dict(options or {})
        self.atomic = atomic
        self.uri = uri
        self.storage = Storage(store, cache_bytes=cache_bytes, cache_dir=cache_dir)
        self.commits = CommitStore(store)
        self.settings_log = SettingsLog(atomic)
        self.hooks = Hooks()
        self._settings: tuple[Moment, Settings | None] = ((0.0, 0.0), None)
        self._logs: dict[str, NumberedLog] = {}
        self._staging: dict[str, Staging] = {}
        self.ended_runs: dict[str, Condemned] = {}
        self.reopen: tuple[Callable[[Any], RepositoryCore], Any] | None = None
        try:
            data = atomic.get(REPOSITORY)
        except NotFoundError as error:
            raise NotFoundError(f"no repository at {uri}: expected {REPOSITORY}; create it first", uri=uri) from error
        said = decode_json(data, f"{REPOSITORY} of {uri}", "a repository")
        try:
            self.id = str(said["id"])
            self.default_branch = str(said["default_branch"])
            self.metadata = {str(key): str(value) for key, value in said.get("metadata", {}).items()}
            version = int(said["format_version"])
        except WRONG as error:
            raise CorruptFileError(f"{REPOSITORY} of {uri}: {error!r}", path=REPOSITORY, uri=uri) from error
        if version > FORMAT_VERSION:
            raise UnsupportedError(
                f"the repository at {uri} has the format version {version}, expected {FORMAT_VERSION}; update esker"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles how it is opened. What is staged, and hooks, stay in their process."""
        if self.reopen is None:
            raise UnsupportedError(f"{self.uri}: expected a repository that was opened by its URI; pickle the URI")
        open_again, origin = self.reopen
        return open_again, (origin,)

    def log(self, branch: str) -> NumberedLog:
        """The log of a branch."""
        check_text(branch, "the name of a branch")
        if branch not in self._logs:
            self._logs[branch] = NumberedLog(self.atomic, head_folder(branch))
        return self._logs[branch]

    def staging(self, branch: str) -> Staging:
        """What this process has written to a branch and not committed."""
        found = self._staging.get(branch)
        return self._staging.setdefault(branch, Staging()) if found is None else found

    def staged(self) -> dict[str, Staging]:
        """What this process has written to all branches and not committed."""
        return dict(self._staging)

    def settings(self) -> Settings:
        """The settings as they were some seconds ago."""
        read, settings = self._settings
        if settings is None or elapsed_s(read) > SETTINGS_SECONDS:
            read = moment()
            settings = self.settings_log.read()
            self._settings = (read, settings)
        return settings

    def change_settings(self, **changes: Any) -> Settings:
        """Changes some settings."""
        settings = self.settings_log.change(**changes)
        self._settings = (moment(), settings)
        return settings

    def head(self, branch: str) -> Commit:
        """The last commit of a branch.

        Raises:
            NotFoundError: There is no such branch.
        """
        entry = self.log(branch).head()
        return self.commit_of(entry, branch)

    def commit_of(self, entry: LogEntry | None, branch: str) -> Commit:
        """The commit that an entry leads to."""
        if entry is None or entry.kind == "delete":
            raise NotFoundError(f"no branch {branch!r} in {self.uri}; create it first", uri=self.uri, path=branch)
        path = self.log(branch).path(entry.number)
        commit = Commit.from_json(entry.body.get("commit"), path)
        history = entry.body.get("history", [])
        if not isinstance(history, list):
            raise CorruptFileError(f"{path}: expected a list of commits as its history", path=path)
        self.commits.remember(commit, [Commit.from_json(one, path) for one in history])
        return commit

    def has_branch(self, branch: str) -> bool:
        """Whether there is such a branch."""
        entry = self.log(branch).head()
        return entry is not None and entry.kind != "delete"

    def resolve(self, expression: str) -> Commit:
        """The commit that a ref expression means: a branch, a tag, a commit's id or the start of it, and steps back.

        `~2` is two first parents back, `^2` the second parent, `@` the branch without what is staged.

        Raises:
            NotFoundError: It means nothing here.
            InvalidArgumentError: It is no expression, or the start of several ids.
        """
        matched = _EXPRESSION.fullmatch(check_text(expression, "a ref"))
        if matched is None:
            raise InvalidArgumentError(
                f"expected a branch, a tag or a commit, with ~ and ^ after it, found {expression!r}"
            )
        if "$" in matched["steps"]:
            raise InvalidArgumentError(
                f"{expression!r}: what is staged on a branch is no commit; use the branch itself"
            )
        commit = self._named(matched["name"], expression)
        for step, digits in _STEP.findall(matched["steps"]):
            count = int(digits) if digits else 1
            for _ in range(count if step == "~" else 1 if step == "^" else 0):
                parent = count - 1 if step == "^" else 0
                if count == 0:
                    break
                if parent >= len(commit.parents):
                    raise NotFoundError(
                        f"{expression!r}: the commit {commit.id[:12]} has {len(commit.parents)} parents"
                    )
                commit = self.commits.get(commit.parents[parent])
        return commit

    def _named(self, name: str, expression: str) -> Commit:
        if re.fullmatch(r"[0-9a-f]{64}", name):
            return self.commits.get(name)
        entry = self.log(name).head()
        if entry is not None and entry.kind != "delete":
            return self.commit_of(entry, name)
        tagged = self.tag_commit(name)
        if tagged is not None:
            return self.commits.get(tagged)
        if len(name) >= _SHORTEST_PREFIX and re.fullmatch(r"[0-9a-f]+", name):
            found = self.commits.with_prefix(name)
            if len(found) > 1:
                raise InvalidArgumentError(f"{expression!r} is the start of {len(found)} commits; write more of it")
            if found:
                return self.commits.get(found[0])
        raise NotFoundError(f"no branch, tag or commit {expression!r} in {self.uri}", uri=self.uri, path=expression)

    def tag_commit(self, tag: str) -> str | None:
        """The id that a tag stands for, None if there is no such tag."""
        path = tag_path(check_text(tag, "the name of a tag"))
        try:
            data = self.atomic.get(path)
        except NotFoundError:
            return None
        said = decode_json(data, path, "a tag")
        if not isinstance(said, dict) or not isinstance(said.get("commit_id"), str):
            raise CorruptFileError(f"{path}: expected a tag, found no commit_id", path=path)
        return str(said["commit_id"])

    def heads(self) -> dict[str, Commit]:
        """The last commits of all branches, by their names. See `last_entries`."""
        return {name: self.commit_of(entry, name) for name, entry in self.last_entries().items()}

    def last_entries(self) -> dict[str, LogEntry]:
        """The last entries of all branches, by their names.

        One delimited listing, what maintenance has packed, and a look behind each, side by side.
        """
        names = sorted(unquote(path.removeprefix(HEADS).strip("/")) for path in self.store.list_folders(HEADS))
        for name, entry in packed_heads.read(self.store).items():
            self.log(name).adopt(entry)
        with ThreadPoolExecutor(_THREADS) as threads:
            entries = list(threads.map(lambda name: self.log(name).head(), names))
        found = zip(names, entries, strict=True)
        return {name: entry for name, entry in found if entry and entry.kind != "delete"}

    def entry(self, kind: str, commit: Commit, needs: Needs = _NOTHING) -> LogEntry:
        """An entry that leads to a commit, whose object is put: `collecting` tells why that comes first.

        Args:
            kind: `create`, `commit`, `reset` or `delete`.
            commit: The commit.
            needs: What it takes that the branch has not led to so far.
        """
        looked = moment()
        if kind != "delete":
            self.announce(commit, needs)
        before = self.commits.before(commit)
        size = sum(len(json.dumps(one.to_json())) for one in before)
        if len(before) >= PACK_COMMITS or size > PACK_BYTES:
            try:
                self.commits.packs.put([one.to_json() for one in before])
                before = []
            except OSError:
                # A copy: what is not packed now is packed by the next commit.
                before = before[:MOST_BEFORE]
        self.commits.remember(commit, before)
        history = {"history": [one.to_json() for one in before]} if before else {}
        return LogEntry(0, kind, body={"commit_id": commit.id, "commit": commit.to_json(), **history}, made=looked)

    def announce(self, commit: Commit, needs: Needs = _NOTHING) -> None:
        """Puts a commit's object, and makes sure that nobody is about to delete what it needs."""
        self.commits.add(commit)
        check_not_condemned(self, commit, needs)

    def move(self, branch: str, build: Build, what: str) -> LogEntry:
        """Appends the entry that `build` makes of a branch's last one, and now and then looks after its log."""

        def build_again(head: LogEntry | None) -> LogEntry:
            entry = build(head)
            if head is not None and is_hidden(head) and head.kind != "delete":
                entry.body[HIDDEN] = True
            return entry

        entry = append(self.log(branch), build_again, what)
        if elapsed_s(entry.made) > HELD_UP_S:
            self._check_late(branch, entry, what)
        if entry.number % UPKEEP_EVERY == 0:
            # A copy of what is there already, and old entries: what fails here another one does.
            with suppress(OSError, CorruptFileError):
                self.commits.packs.join()
                self.log(branch).compact()
        return entry

    def _check_late(self, branch: str, entry: LogEntry, what: str) -> None:
        """Looks whether all is there that an entry leads to whose put was held up: the commit's object had grown old
        then, and a collection that went by the refs of before may have taken its content."""
        if entry.kind == "delete":
            return
        commit = self.commit_of(entry, branch)
        try:
            if entry.kind == "commit":
                self.announce(commit)
                before = self.commits.get(commit.parents[0]).meta_range_id if commit.parents else ""
                self.check_tables(commit.meta_range_id)
                check_there(self, new_objects(self, before, commit.meta_range_id), reach_of_living(self, commit))
            else:
                self.announce(commit, Needs(sources=frozenset((commit.id,))))
        except (NotFoundError, CommitConflictError) as error:
            self._take_back(branch, entry, what)
            raise CommitConflictError(
                f"{what}: it was held up for so long that {error}; the branch is where it was before: do it again",
                retryable=True,
            ) from error
        except OSError as error:
            follow(partial(_fail, error), what)

    def _take_back(self, branch: str, late: LogEntry, what: str) -> None:
        """Lets a branch lead to where it led before an entry, if that is the last one."""
        before = self.log(branch).entry(late.number - 1)

        def build(head: LogEntry | None) -> LogEntry:
            if head is None or head.write_id != late.write_id:
                raise NotFoundError(
                    f"{what}: it was held up for so long that garbage collection has taken some of its content; it is "
                    f"in the history of {branch!r} as entry {late.number}, and others have gone on from there: write "
                    "again what it brought",
                    path=self.log(branch).path(late.number),
                )
            if before is None or before.kind == "delete":
                return self.entry("delete", self.commit_of(late, branch))
            return self.entry("reset", self.commit_of(before, branch))

        append(self.log(branch), build, f"take back: {what}")

    def check_tables(self, metarange: str) -> None:
        """Looks for the tables of a content in the store, whatever is kept of them here.

        Raises:
            NotFoundError: One is not there.
        """
        if metarange:
            ids = [metarange, *table(self.storage.ranges(metarange)).column("id").to_pylist()]
            with ThreadPoolExecutor(_THREADS) as threads:
                list(threads.map(lambda id: self.store.head(TABLES + id), ids))

    def collecting_time(self, *, dry_run: bool) -> float:
        """The time for one who deletes what is old; see `clock`. Who only counts need not be able to put anything."""
        if not dry_run:
            return collecting_time(self.store)
        try:
            return min(store_time(self.store), time.time())
        except (OSError, UnsupportedError):
            return time.time()

    def elsewhere(self, uri: str) -> Store:
        """What is outside the repository, reached with its options: imports, exports."""
        return resolve(uri, storage_options=self.options)

    def check_unprotected(self, branch: str) -> None:
        """Refuses what only a merge may do.

        Raises:
            ProtectedBranchError: The settings protect the branch.
        """
        if any(fnmatch.fnmatchcase(branch, pattern) for pattern in self.settings().protected_branches):
            raise ProtectedBranchError(f"branch {branch!r} is protected; commit to another and merge it")

    def upload(self) -> Upload:
        """A new object's bytes on their way into the store."""
        return Upload(self.store)

    def merged(self, base: str, source: str, dest: str, strategy: str, *, dry_run: bool = False) -> Merged:
        """Merges two contents, or says what is in the way.

        Raises:
            MergeConflictError: Both changed the same paths, and the strategy is `none`.
        """
        found = self.storage.merge(base, source, dest, rule=self.settings().rule(), strategy=strategy, dry_run=dry_run)
        if found.conflict_count and strategy == "none":
            listed = conflicts_of(found)
            shown = ", ".join(repr(conflict.path) for conflict in listed[:3])
            raise MergeConflictError(
                f"{found.conflict_count} paths were changed on both sides: {shown}; choose a strategy, or resolve them",
                conflicts=listed,
                count=found.conflict_count,
            )
        return found


def _fail(error: OSError) -> NoReturn:
    raise error


def is_hidden(entry: LogEntry) -> bool:
    """Whether a branch is left out of listings."""
    return entry.body.get(HIDDEN) is True


def conflicts_of(merged: Merged) -> list[Conflict]:
    """The conflicts that a merge lists."""
    rows = table(merged.conflicts()).to_pylist(maps_as_pydicts="strict")
    return [
        Conflict(row["path"], *(info(row["path"], row[side]) for side in ("base", "source", "dest"))) for row in rows
    ]


def lakefs_marker(store: Store) -> str | None:
    """What says that a lakeFS server owns a place, None if nothing does. Old servers put it at the root."""
    try:
        store.head(LAKEFS_MARKER)
    except NotFoundError:
        pass
    else:
        return LAKEFS_MARKER
    try:
        store.head(LAKEFS_OLD_MARKER)
    except NotFoundError:
        return None
    # Anybody may call a file so: it is theirs where their tables are.
    return LAKEFS_OLD_MARKER if store.list_first(TABLES, 1)[0] else None


class Taken(Exception):
    """A log has an entry already."""


def begin_branch(log: NumberedLog, first: Commit, branch: str) -> LogEntry | None:
    """Puts the first entry of a branch of a repository that is being created; None if there is one."""

    def build(head: LogEntry | None) -> LogEntry:
        if head is not None:
            raise Taken
        return commit_entry("create", first)

    try:
        return append(log, build, f"create branch {branch}")
    except Taken:
        return None


def commit_entry(kind: str, commit: Commit) -> LogEntry:
    """An entry that leads to a commit, without those before it."""
    return LogEntry(0, kind, body={"commit_id": commit.id, "commit": commit.to_json()})


def default_committer() -> str:
    """Who commits, if nobody says: the user of the machine."""
    try:
        return getpass.getuser().encode(errors="replace").decode()
    except (OSError, KeyError, ImportError):
        return "esker"
