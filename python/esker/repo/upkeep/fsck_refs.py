"""Checks that refs lead where they say: logs, tags, settings, commits and packs."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ...exceptions import CorruptFileError
from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit
from ..refs.expired import expired_ids
from ..refs.json_record import decode_json
from ..refs.layout import COMMITS, HEADS, SETTINGS, branch_of
from ..refs.numbered_log import LogEntry, NumberedLog

_KINDS = ("create", "commit", "reset", "delete")
_THREADS = 16
Commits = dict[str, Commit]


def check_refs(core: RepositoryCore) -> Generator[str, None, Commits | None]:
    """What is wrong with refs and commits; returns the commits, or None where they cannot be relied upon."""
    commits, broken = yield from _commits(core)
    for folder in core.store.list_folders(HEADS):
        broken |= yield from _branch(core, branch_of(folder), commits)
    broken |= yield from _tags(core, commits)
    broken |= yield from _settings(core)
    yield from _packs(core, commits)
    try:
        expired_ids(core.store)
    except CorruptFileError as error:
        yield str(error)
        broken = True
    return None if broken else commits


def _commits(core: RepositoryCore) -> Generator[str, None, tuple[Commits, bool]]:
    ids = [path.removeprefix(COMMITS) for path in core.store.list_paths(COMMITS)]

    def read(id: str) -> Commit | str:
        try:
            return core.commits.read(id)
        except (ValueError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(_THREADS) as threads:
        found = dict(zip(ids, threads.map(read, ids), strict=True))
    commits = {id: commit for id, commit in found.items() if isinstance(commit, Commit)}
    broken = False
    for id, commit in found.items():
        if isinstance(commit, str):
            broken = True
            yield commit
            continue
        missing = [parent for parent in commit.parents if parent not in found]
        if missing:
            broken = True
            yield f"commit {id}: its parent {missing[0]} is not there"
            continue
        parents = [commits[parent] for parent in commit.parents if parent in commits]
        expected = 1 + max((parent.generation for parent in parents), default=0)
        if len(parents) == len(commit.parents) and commit.generation != expected:
            yield f"commit {id}: expected the generation {expected}, found {commit.generation}"
    return commits, broken


def _branch(core: RepositoryCore, branch: str, commits: Commits) -> Generator[str, None, bool]:
    log = core.log(branch)
    broken, before = False, None
    numbers = log.numbers()
    if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
        broken = True
        yield f"branch {branch!r}: its log has gaps between {numbers[0]} and {numbers[-1]}"
    entries = list(_entries(log, numbers))
    for at, (number, entry) in enumerate(zip(numbers, entries, strict=True)):
        after = entries[at + 1] if at + 1 < len(entries) else None
        left = isinstance(after, LogEntry) and after.kind == "reset"
        wrong = entry if isinstance(entry, str) else _wrong(core, branch, entry, before, commits, left=left)
        if wrong:
            broken = True
            yield f"branch {branch!r}, entry {number}: {wrong}"
        before = entry if isinstance(entry, LogEntry) else None
    return broken


def _entries(log: NumberedLog, numbers: list[int]) -> Iterator[LogEntry | str]:
    def read(number: int) -> LogEntry | str:
        try:
            return log.entry(number) or "it is not there"
        except (ValueError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(_THREADS) as threads:
        yield from threads.map(read, numbers)


def _wrong(
    core: RepositoryCore, branch: str, entry: LogEntry, before: LogEntry | None, commits: Commits, *, left: bool
) -> str | None:
    if entry.kind not in _KINDS:
        return f"expected a kind among {_KINDS}, found {entry.kind!r}"
    try:
        commit = core.commit_of(replace(entry, kind="commit"), branch)
    except ValueError as error:
        return str(error)
    if entry.body.get("commit_id") != commit.id:
        return f"expected the commit_id {commit.id}, found {entry.body.get('commit_id')}"
    # What a repository was created with goes when a dump is restored over it.
    if commits.get(commit.id) != commit and not (left and commit.id not in commits):
        return f"the commit {commit.id} is not there, or another"
    last = before.body.get("commit_id") if before is not None else None
    if entry.kind == "commit" and last is not None and commit.parents[:1] != (last,):
        return f"expected a commit whose first parent is {last}, found {commit.parents[:1]}"
    return None


def _tags(core: RepositoryCore, commits: Commits) -> Generator[str, None, bool]:
    broken = False
    for tag in core.tag_names():
        try:
            id = core.tag_commit(tag)
        except ValueError as error:
            broken = True
            yield str(error)
            continue
        if id is not None and id not in commits:
            broken = True
            yield f"tag {tag!r}: the commit {id} is not there"
    return broken


def _settings(core: RepositoryCore) -> Generator[str, None, bool]:
    log = NumberedLog(core.atomic, SETTINGS)
    numbers = log.numbers()
    if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
        yield f"settings: their log has gaps between {numbers[0]} and {numbers[-1]}"
    broken = False
    for number, entry in zip(numbers, _entries(log, numbers), strict=True):
        wrong = entry if isinstance(entry, str) else None
        if isinstance(entry, LogEntry) and entry.kind != "settings":
            wrong = f"expected the kind 'settings', found {entry.kind!r}"
        if wrong:
            broken = True
            yield f"settings, entry {number}: {wrong}"
    try:
        core.settings_log.read().rule()
    except (ValueError, TypeError, OverflowError) as error:
        broken = True
        yield f"settings: {error}"
    return broken


def _packs(core: RepositoryCore, commits: Commits) -> Iterator[str]:
    for path in core.commits.packs.paths():
        try:
            data = core.store.get(path)
            said = decode_json(data, path, "a list of commits")
        except FileNotFoundError:
            continue
        except ValueError as error:
            yield f"{path}: {error}"
            continue
        if hashlib.sha256(data).hexdigest() != path[-64:]:
            yield f"{path}: its bytes are not those of its name; delete it, it is a copy"
            continue
        for one in said:
            try:
                commit = Commit.from_json(one, path)
            except ValueError as error:
                yield str(error)
                break
            if commits.get(commit.id) != commit:
                yield f"{path}: the commit {commit.id} is not there, or another"
                break
