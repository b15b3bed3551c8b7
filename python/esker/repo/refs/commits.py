"""Commits: their records, where they are stored, their history, and the merge base of two."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..._native import graveler
from ..._native.store import Store
from ...exceptions import CorruptFileError, NotFoundError, UnsupportedError
from ..sdk_names import LacksNames
from .commit_packs import PACK_COMMITS, Packs
from .json_record import WRONG, decode_json
from .layout import COMMITS

_PARENTS_SWITCHED = 1
"""The version from which on a merge's first parent is the branch that was merged into."""


class FrozenPairs(dict[str, str]):
    """Keys and values that never change: a commit's id is a hash of them, and all who read it share them.

    Example:
        >>> from esker.repo.refs.commits import FrozenPairs
        >>> FrozenPairs(job="17") == {"job": "17"}
        True
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("a commit's metadata never changes; change a copy of it, dict(commit.metadata)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenPairs, (dict(self),)


@dataclass(frozen=True)
class Commit(LacksNames):
    """One commit.

    Attributes:
        id: 64 hex digits, the hash of the rest but version and generation.
        parents: Ids; a merge's first is the branch that was merged into.
        committer: Who.
        message: Why.
        creation_date: When: seconds since the Unix epoch.
        meta_range_id: The content; empty for the commit that a repository starts with.
        metadata: The user's own keys and values, which cannot be changed.
        generation: 1 without parents, else one more than the highest of theirs.
        version: How the parents are ordered: 1 today.

    Example:
        `repository.branch("main").get_commit().message`
    """

    id: str
    parents: tuple[str, ...]
    committer: str
    message: str
    creation_date: int
    meta_range_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    generation: int = 1
    version: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", FrozenPairs(self.metadata))

    @classmethod
    def make(
        cls,
        *,
        committer: str,
        message: str,
        meta_range_id: str,
        creation_date: int,
        parents: tuple[Commit, ...] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> Commit:
        """A new commit."""
        generation = 1 + max((parent.generation for parent in parents), default=0)
        record = graveler.Commit(
            committer=committer,
            message=message,
            metarange_id=meta_range_id,
            creation_date=creation_date,
            metadata=dict(metadata or {}),
            parents=[parent.id for parent in parents],
            generation=generation,
        )
        return cls.of_record(record)

    @classmethod
    def of_record(cls, record: graveler.Commit) -> Commit:
        """The commit that a record is."""
        return cls(
            record.id,
            tuple(record.parents),
            record.committer,
            record.message,
            record.creation_date,
            record.metarange_id,
            record.metadata,
            record.generation,
            record.version,
        )

    @property
    def main_parent(self) -> str | None:
        """The commit that the branch led to before; None for the first one.

        In version 0, that of lakeFS servers until 2021, what was merged comes before it.
        """
        if not self.parents:
            return None
        return self.parents[0 if self.version >= _PARENTS_SWITCHED else -1]

    def record(self) -> graveler.Commit:
        """The record that dumps hold."""
        return graveler.Commit(
            committer=self.committer,
            message=self.message,
            metarange_id=self.meta_range_id,
            creation_date=self.creation_date,
            metadata=dict(self.metadata),
            parents=list(self.parents),
            generation=self.generation,
            version=self.version,
        )

    def to_json(self) -> dict[str, Any]:
        """The commit as an entry of a log and a commit's object hold it."""
        return {
            "id": self.id,
            "parents": list(self.parents),
            "committer": self.committer,
            "message": self.message,
            "creation_date": self.creation_date,
            "meta_range_id": self.meta_range_id,
            "metadata": dict(self.metadata),
            "generation": self.generation,
            "version": self.version,
        }

    @classmethod
    def from_json(cls, said: Any, path: str) -> Commit:
        """Reads such an object, whose id must be that of what it says.

        Raises:
            CorruptFileError: It is not.
        """
        try:
            commit = cls(
                said["id"],
                tuple(said["parents"]),
                said["committer"],
                said["message"],
                said["creation_date"],
                said["meta_range_id"],
                said["metadata"],
                said["generation"],
                said["version"],
            )
            found = commit.record().id
        except WRONG as error:
            raise CorruptFileError(f"{path}: expected a commit, found {error!r}", path=path) from error
        if found != commit.id:
            raise CorruptFileError(
                f"{path}: expected the commit {commit.id}, found one whose id is {found}; restore it", path=path
            )
        return commit


class CommitStore:
    """The commits of one repository, by their ids. They never change: what was read is kept.

    Args:
        store: The repository's root.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.packs = Packs(store)
        self._known: dict[str, Commit] = {}
        self._before: dict[str, tuple[str, ...]] = {}
        self._waiting: list[list[str]] | None = None
        self._alone = 0

    def add(self, commit: Commit) -> None:
        """Puts a commit. An object of that id that is there already has the same content; it is young again then."""
        self._store.put(COMMITS + commit.id, json.dumps(commit.to_json(), sort_keys=True).encode())
        self.remember(commit)

    def remember(self, commit: Commit, before: Iterable[Commit] | None = None) -> None:
        """Caches a commit that was read elsewhere, and its ancestors that are not packed yet, if these are known."""
        self._known[commit.id] = commit
        if before is not None:
            for one in before:
                self._known[one.id] = one
            self._before[commit.id] = tuple(one.id for one in before)

    def before(self, commit: Commit) -> list[Commit]:
        """The ancestors of a commit that may not be packed yet: its parents, and theirs."""
        ids = self._before.get(commit.id)
        if ids is None:
            found: dict[str, None] = {}
            for parent in commit.parents:
                found.update(dict.fromkeys((parent, *self._before.get(parent, ()))))
            ids = tuple(id for id in found if id != commit.id)
        return [self._known[id] for id in ids if id in self._known]

    def get(self, id: str) -> Commit:
        """The commit of an id.

        Raises:
            NotFoundError: There is none.
        """
        known = self._known.get(id)
        if known is None:
            known = self._packed(id)
        if known is None:
            self._alone += 1
            known = self.read(id)
            self.remember(known)
        return known

    def read(self, id: str) -> Commit:
        """The commit of an id as its object has it, read anew.

        Raises:
            NotFoundError: There is none.
            CorruptFileError: It is another, or none at all.
        """
        path = COMMITS + id
        try:
            data = self._store.get(path)
        except NotFoundError as error:
            raise NotFoundError(f"expected a commit of the id {id}, found none", path=path) from error
        found = Commit.from_json(decode_json(data, path, "a commit"), path)
        if found.id != id:
            raise CorruptFileError(f"{path}: expected the commit {id}, found {found.id}; restore it", path=path)
        return found

    def _packed(self, id: str) -> Commit | None:
        """Reads packs, the small ones first, until one has the commit."""
        if self._waiting is None or self._alone >= PACK_COMMITS:
            # So many that no pack has: others may have packed them since.
            self._waiting, self._alone = self.packs.unread(), 0
        while self._waiting:
            for path, pack in self.packs.read(self._waiting.pop(0)):
                for said in pack:
                    self.remember(Commit.from_json(said, path))
            if id in self._known:
                return self._known[id]
        return None

    def pack(self) -> int:
        """Writes one pack of all commits and removes the others; how many commits there are.

        The objects of single commits stay: a pack is a copy.
        """
        ids = [path.removeprefix(COMMITS) for path in self._store.list_paths(COMMITS)]
        commits = [self.get(id).to_json() for id in ids]
        older = self.packs.paths()
        made = self.packs.put(commits)
        for path in older:
            if path != made:
                self._store.delete(path)
        return len(commits)

    def with_prefix(self, prefix: str) -> list[str]:
        """The ids that start with some digits."""
        return [path.removeprefix(COMMITS) for path in self._store.list_starting(COMMITS, prefix)]

    def log(self, id: str, *, first_parent: bool = False, since: float | None = None) -> Iterator[Commit]:
        """The commit and those before it, the youngest generation first, each once.

        Args:
            id: The commit's.
            first_parent: Only the first parent of each.
            since: Seconds since the Unix epoch: no commit that was made then or before, nor what only such come from.
        """
        waiting: list[tuple[int, int, str]] = []
        seen: set[str] = set()

        def reach(id: str) -> None:
            if id not in seen:
                seen.add(id)
                commit = self.get(id)
                if since is None or commit.creation_date > since:
                    heapq.heappush(waiting, (-commit.generation, -commit.creation_date, id))

        reach(self.get(id).id)
        while waiting:
            commit = self.get(heapq.heappop(waiting)[2])
            yield commit
            for parent_id in commit.parents[: 1 if first_parent else None]:
                reach(parent_id)

    def merge_base(self, left: str, right: str) -> Commit | None:
        """The best common ancestor: a commit that both come from, and no other such commit comes from it.

        None where they share none. Where merges have crossed there are several, and it is the one of the highest
        generation, of these the youngest, of these the one of the lowest id. lakeFS takes one as well, and no common
        base of several; its search ends at the first commit that it finds from both sides, which may be an older one.
        """
        sides: dict[str, int] = {}
        waiting: list[tuple[int, int, str]] = []

        def reach(id: str, side: int) -> None:
            if id not in sides:
                commit = self.get(id)
                heapq.heappush(waiting, (-commit.generation, -commit.creation_date, id))
            sides[id] = sides.get(id, 0) | side

        reach(self.get(left).id, 1)
        reach(self.get(right).id, 2)
        while waiting:
            id = heapq.heappop(waiting)[2]
            if sides[id] == 3:
                return self.get(id)
            for parent_id in self.get(id).parents:
                reach(parent_id, sides[id])
        return None
