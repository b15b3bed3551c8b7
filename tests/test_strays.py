"""Stray versions: manifests that a writer put after a long sleep, under a number that a clean-up had freed.

Others may have named one, or restored it, before its writer looks and takes it away; then its files are theirs, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker._native.table import Fragment, Manifest, Transaction
from esker.commit.loop import Backoff
from esker.exceptions import CommitConflictError, NotFoundError
from esker.fragment import write_fragments
from esker.lance.log import LanceLog
from esker.optimize import Compaction
from esker.store import stores
from tests.another_writer import meanwhile
from tests.leftovers import check_leftovers, leftovers


def _rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def _name(version: int) -> str:
    return f"_versions/{(1 << 64) - 1 - version:020}.manifest"


class Sleeper:
    """A writer over `sleep://` that sleeps in the put of a manifest, until a clean-up has freed the number."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.version = 0
        self.is_gone = False
        self.before_put: Callable[[int], None] | None = None
        self.while_there: Callable[[int], None] | None = None
        self.after_it_went: Callable[[int], None] | None = None

    def __call__(self, uri: str, options: object, durable: bool) -> Store:
        """The store at the rest of the URI."""
        return FaultStore(Store(uri.removeprefix("sleep://"), durable=False), watch=self._watch).store

    def _watch(self, verb: str, path: str) -> None:
        there = Path(self.uri, _name(self.version)).exists() if self.version else False
        if verb == "put_if_absent" and path.startswith("_versions/") and self.before_put:
            self.version = (1 << 64) - 1 - int(Path(path).stem)
            work, self.before_put = self.before_put, None
        elif there and self.while_there:
            work, self.while_there = self.while_there, None
        elif self.is_gone and self.after_it_went:
            work, self.after_it_went = self.after_it_went, None
        else:
            self.is_gone = self.is_gone or (there and verb == "delete" and path == _name(self.version))
            return
        meanwhile(lambda: work(self.version))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@pytest.fixture
def sleeper(uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeper]:
    monkeypatch.setattr(Backoff, "pause", lambda self, attempt: 0.0)
    found = Sleeper(uri)
    stores.register("sleep", found)
    yield found
    del stores._factories["sleep"]


def _freed(uri: str) -> Callable[[int], None]:
    """Others commit to a number and go on; it is freed, and no other one."""

    def work(version: int) -> None:
        for first in (100, 110):
            esker.write_dataset(_rows(first, 1), uri, mode="append")
        assert Path(uri, _name(version)).exists()
        Path(uri, _name(version)).unlink()
        time.sleep(0.02)

    return work


def _table(uri: str, **options: Any) -> esker.LanceDataset:
    return esker.write_dataset(_rows(0, 40), uri, max_rows_per_file=10, durable=False, **options)


def _restored(uri: str) -> Callable[[int], None]:
    def work(version: int) -> None:
        # pylance takes a stray for a version like any other.
        lance.dataset(uri, version=version).restore()
        lance.write_dataset(_rows(500, 1), uri, mode="overwrite")

    return work


def _overwritten(uri: str) -> Callable[[int], None]:
    def work(version: int) -> None:
        esker.write_dataset(_rows(500, 1), uri, mode="overwrite")

    return work


def _branched(uri: str) -> Callable[[int], None]:
    def work(version: int) -> None:
        lance.dataset(uri).create_branch("kept", version)
        lance.write_dataset(_rows(500, 1), uri, mode="overwrite")

    return work


def _refilled(uri: str) -> Callable[[int], None]:
    """Another writer wakes, and puts to the same number."""

    def work(version: int) -> None:
        change, stray = _append(LanceLog.at(uri), version, [])
        Store(uri).put(f"_transactions/{version - 1}-{change.uuid}.txn", change.encode())
        Store(uri).put(_name(version), stray.encode())

    return work


def _append(log: LanceLog, version: int, fragments: list[Fragment]) -> tuple[Transaction, Manifest]:
    """An append on top of the version before a number, as that number."""
    change = Transaction.append(version - 1, fragments)
    base, _ = log.open(version - 1)
    now = time.time_ns()
    return change, change.apply(base, version=version, data_storage_version="2.2", timestamp_ns=now, store=log.store)


WAYS: dict[str, Callable[[str], object]] = {
    "at once": lambda uri: esker.dataset(f"sleep://{uri}").optimize.compact_files(target_rows_per_fragment=100),
    "in steps": lambda uri: Compaction.commit(
        esker.dataset(f"sleep://{uri}"),
        [
            task.execute(esker.dataset(uri))
            for task in Compaction.plan(esker.dataset(uri), {"target_rows_per_fragment": 100}).tasks
        ],
    ),
}


def _puts_of_the_rewrite(sleeper: Sleeper, work: Callable[[int], None]) -> Callable[[int], None]:
    """The first put reserves ids: what happens is to happen at the second one."""

    def first(version: int) -> None:
        sleeper.version = 0
        sleeper.before_put = work

    return first


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kept", ["restored and overwritten", "on a branch"])
@pytest.mark.parametrize("refilled", [False, True])
def test_files_of_a_compaction_that_was_a_stray_stay_if_others_have_kept_it(
    way: str, kept: str, refilled: bool, uri: str, sleeper: Sleeper
) -> None:
    _table(uri)
    sleeper.before_put = _puts_of_the_rewrite(sleeper, _freed(uri))
    sleeper.while_there = _restored(uri) if kept.startswith("restored") else _branched(uri)
    sleeper.after_it_went = _refilled(uri) if refilled else lambda version: None
    with suppress(CommitConflictError):
        WAYS[way](uri)
    assert sleeper.is_gone, "the stray was taken away"
    if kept == "on a branch":
        found = lance.dataset(f"{uri}/tree/kept")
        assert esker.dataset(f"{uri}/tree/kept").count_rows() == 40
    else:
        (version,) = (
            one["version"]
            for one in lance.dataset(uri).versions()
            if one["version"] > sleeper.version and lance.dataset(uri, version=one["version"]).count_rows() == 40
        )
        found = lance.dataset(uri, version=version)
    assert sorted(found.to_table()["id"].to_pylist()) == list(range(40))
    assert lance.dataset(uri).to_table()["id"].to_pylist()[0] in (500, 600)
    leftovers(Store(uri))


@pytest.mark.parametrize("way", WAYS)
def test_files_of_a_stray_compaction_that_nobody_kept_are_left_to_a_clean_up(
    way: str, uri: str, sleeper: Sleeper
) -> None:
    _table(uri)
    sleeper.before_put = _puts_of_the_rewrite(sleeper, _freed(uri))
    sleeper.while_there = _overwritten(uri)
    with suppress(CommitConflictError):
        WAYS[way](uri)
    assert not Path(uri, _name(sleeper.version)).exists()
    assert check_leftovers(uri) > 0
    assert esker.dataset(uri).to_table()["id"].to_pylist() == [500]


NAMES: dict[str, Callable[[esker.LanceDataset, int], object]] = {
    "a tag": lambda it, version: it.tags.create("x", version),
    "a tag by a handle": lambda it, version: esker.dataset(it.uri, version=version).tags.create("x"),
    "a moved tag": lambda it, version: it.tags.update("old", version),
    "a branch": lambda it, version: it.create_branch("b", version),
    "a branch by a handle": lambda it, version: esker.dataset(it.uri, version=version).create_branch("b"),
    "a clone": lambda it, version: it.shallow_clone(f"{it.uri}-clone", version),
    "a deep clone": lambda it, version: it.deep_clone(f"{it.uri}-clone", version),
    "a restore": lambda it, version: esker.dataset(it.uri, version=version).restore(),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheme", ["V1", "V2"])
def test_nothing_that_lasts_is_made_of_a_stray(name: str, scheme: str, uri: str, sleeper: Sleeper) -> None:
    _table(uri, enable_v2_manifest_paths=scheme == "V2")
    esker.write_dataset(_rows(40, 1), uri, mode="append")
    esker.dataset(uri).tags.create("old", 1)
    esker.write_dataset(_rows(50, 1), uri, mode="append")
    # The version that a sleeper put: of the number that had come free, and of files that are in no later version.
    log = LanceLog.at(uri)
    (fragment,) = write_fragments(_rows(900, 1), uri)
    _, stray = _append(log, 2, [fragment.to_native()])
    listing = log.listing()
    path = log.path_of(2, listing.scheme)
    assert listing.scheme == scheme
    time.sleep(0.02)
    log.store.put(path, stray.encode())
    before = {one.path for one in log.store.list()}
    dataset = esker.dataset(uri)
    with pytest.raises(NotFoundError, match="cleaned up"):
        NAMES[name](dataset, 2)
    assert dataset.tags.get_version("old") == 1
    assert list(dataset.tags.list()) == ["old"]
    assert dataset.branches.list() == {}
    assert not Path(f"{uri}-clone", "_versions").exists() or not list(Path(f"{uri}-clone", "_versions").iterdir())
    assert {one.path for one in log.store.list() if one.path.startswith(("_versions/", "_refs/", "data/"))} == {
        path for path in before if path.startswith(("_versions/", "_refs/", "data/"))
    }
    # The versions beside it can be named.
    dataset.tags.create("first", 1)
    dataset.tags.create("last", 3)
    assert dataset.create_branch("b", 1).count_rows() == 40
