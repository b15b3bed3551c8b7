"""Checks a repository: refs, commits, packs, tables and objects."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from ..._native.graveler import SortedNames
from ...exceptions import NotFoundError
from ...progress import Done, Progress
from ..core.repository_core import RepositoryCore
from ..objects.address import place_of
from ..objects.batches import table
from ..refs.commits import Commit
from ..refs.expired import expired_ids
from ..refs.layout import DATA
from ..refs.refs_dump import read_manifest
from . import garbage_collection
from .fsck_refs import check_refs
from .retention import active_commits, led_to
from .tips import RefTips

_BATCH = 4096


def check(
    core: RepositoryCore, *, imports: bool = False, tables: bool = False, progress: Progress | None = None
) -> Iterator[str]:
    """What is wrong with a repository, one sentence a finding.

    - of refs: every entry of every log, what it leads to and what came before it, tags, settings, packed heads;
    - of commits: every object's id, its parents, its generation, and every pack;
    - of contents that count: the ids of metaranges and ranges, what a metarange says of its ranges, and that each
      object is there with its size;
    - of tables, if asked for: see `check_tables`.

    Args:
        core: The repository.
        imports: Looks for imported objects too, with a request each.
        tables: Looks whether the tables of branches and tags are whole.
        progress: Told what is done, how much of it, and of how much.

    Example:
        `list(repository.fsck()) == []`
    """
    commits = yield from check_refs(core)
    if commits is None:
        return
    kept, _ = active_commits(core)
    with tempfile.TemporaryDirectory(prefix="esker-fsck-") as folder:
        yield from _Contents(core, folder, imports, progress).check(kept)
    if tables:
        # What tables need is imported when they are asked for.
        from .fsck_tables import check_tables

        yield from check_tables(core, progress)


class _Contents:
    def __init__(self, core: RepositoryCore, folder: str, imports: bool, progress: Progress | None) -> None:
        self._progress = progress
        self._core = core
        self._needed = SortedNames(folder, "needed", memory_bytes=garbage_collection.MEMORY_BYTES)
        self._there = SortedNames(folder, "there", memory_bytes=garbage_collection.MEMORY_BYTES)
        self._imports = imports
        self._seen: set[str] = set()

    def check(self, kept: list[Commit]) -> Iterator[str]:
        core = self._core
        # First what is there, so that what is put meanwhile is not missed.
        tips = RefTips(core)
        sure = led_to(tips, kept)
        expired = expired_ids(core.store) - tips.ids
        for at, commit in enumerate(kept):
            if self._progress is not None:
                done = Done(step="checking what commits hold", parts=at, unit="parts", total=len(kept))
                self._progress.report(done)
            metarange = commit.meta_range_id
            # What no ref leads to may be an attempt that was refused.
            if commit.id in sure and commit.id not in expired and metarange and metarange not in self._seen:
                yield from self._content(f"commit {commit.id}", metarange)
        yield from self._dump()
        for below in core.store.list_folders(DATA):
            listed = core.store.list_batches(below)
            while self._there.add_batch(listed):
                pass
        yield from self._objects()

    def _content(self, what: str, metarange: str, *, entries: bool = True) -> Iterator[str]:
        self._seen.add(metarange)
        try:
            self._core.storage.verify(metarange)
            described = table(self._core.storage.ranges(metarange)).to_pylist()
        except (ValueError, OSError) as error:
            yield f"{what}: {error}"
            return
        for one in described:
            if one["id"] not in self._seen:
                self._seen.add(one["id"])
                yield from self._range(metarange, one, entries)

    def _range(self, metarange: str, said: dict[str, object], entries: bool) -> Iterator[str]:
        try:
            (found,) = table(self._core.storage.verify(str(said["id"]))).to_pylist()
            if found != said:
                yield f"metarange {metarange}: says {said}, the range is {found}"
            if not entries:
                return
            listing = self._core.storage.list(metarange, from_path=str(said["min_key"]))
            id, left = str(said["id"]), int(str(said["count"]))
            while left > 0:
                for path, address, size in self._needed.add_objects(listing, min(left, _BATCH), id, self._imports):
                    yield from _import(self._core, address, size, _told(path, id))
                left -= _BATCH
        except (ValueError, OSError) as error:
            yield f"range {said['id']}: {error}"

    def _dump(self) -> Iterator[str]:
        try:
            dump = read_manifest(self._core.store)
        except NotFoundError:
            return
        except ValueError as error:
            yield str(error)
            return
        for metarange in (dump.commits_meta_range_id, dump.tags_meta_range_id, dump.branches_meta_range_id):
            if metarange and metarange not in self._seen:
                yield from self._content(f"dump of refs {metarange}", metarange, entries=False)

    def _objects(self) -> Iterator[str]:
        missing = self._needed.without(self._there, or_size=True)
        while found := missing.next_rows(_BATCH):
            for address, size, note, there in found:
                path, _, range_id = note.rpartition("\0")
                told = _told(path, range_id)
                if there is None:
                    yield f"{told} is at {address}, which is not there"
                else:
                    yield f"{told} has {size} bytes, its object at {address} has {there}"


def _told(path: str, range_id: str) -> str:
    return f"{path!r} of the range {range_id}"


def _import(core: RepositoryCore, address: str, size: int, note: str) -> Iterator[str]:
    folder, name = place_of(address)
    try:
        meta = core.elsewhere(folder).head(name)
        if meta.size != size:
            yield f"{note} has {size} bytes, what was imported from {address} has {meta.size} now"
    except (ValueError, OSError, NotImplementedError) as error:
        yield f"{note} was imported from {address}: {error}"
