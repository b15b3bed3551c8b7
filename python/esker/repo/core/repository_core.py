"""One open repository: store, commits, logs, settings, and what this process has staged. All handles share it."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from ..._native.graveler import BranchStaging, StagedPaths, Storage
from ..._native.store import Store
from ...exceptions import CorruptFileError, InvalidArgumentError, NotFoundError, UnsupportedError
from ...store.stores import resolve
from ..errors import ProtectedBranchError
from ..hooks import Hooks
from ..objects.staging import Staging
from ..objects.upload import Upload
from ..refs import packed_heads
from ..refs.atomic_objects import AtomicObjects
from ..refs.clock import Moment, collecting_time, elapsed_s, moment, store_time
from ..refs.commits import Commit, CommitStore
from ..refs.gc_runs import Condemned
from ..refs.json_record import WRONG, decode_json
from ..refs.layout import FORMAT_VERSION, HEADS, REPOSITORY, TAGS, head_folder, tag_path
from ..refs.numbered_log import LogEntry, NumberedLog
from ..settings import Settings, SettingsLog
from ..text import check_text

_EXPRESSION = re.compile(r"(?P<name>[^~^@$]+)(?P<steps>(?:[~^]\d*|@|\$)*)")
_STEP = re.compile(r"([~^@$])(\d*)")
_SHORTEST_PREFIX = 4
SETTINGS_SECONDS = 5.0
"""For how long settings are taken to be as they were read."""
_THREADS = 32


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
        if said.get("manifest_store") and not atomic.is_lent:
            atomic.refuse(uri)
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

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be committed: a lakeFS server owns it."""
        return False

    def staging_over(self, content: str, token: str, paths: StagedPaths) -> BranchStaging:
        """What stores stage over a content.

        Args:
            content: The content's metarange.
            token: Random; makes addresses that no other writer uses.
            paths: What is staged, which may be shared.
        """
        return BranchStaging(self.storage, content, token, paths, storage_options=self.options)

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

    def tag_names(self) -> list[str]:
        """The names of all tags, in their order."""
        return sorted(unquote(path.removeprefix(TAGS)) for path in self.atomic.list_finished(TAGS))

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

    def collecting_time(self, *, dry_run: bool) -> float:
        """The time by which objects are old; see `clock`. A dry run works where nothing can be put."""
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
