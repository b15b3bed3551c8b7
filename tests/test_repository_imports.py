"""Imports of many objects against a plain model: a map of paths, in which a later source wins."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from esker._native.store import Store
from esker.exceptions import (
    CommitConflictError,
    CommitStateUnknownError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from esker.repo import (
    HookEvent,
    MergeConflictError,
    NoChangesError,
    ObjectInfo,
    ProtectedBranchError,
    Repository,
    import_data,
    repository,
)
from esker.repo.import_data import ImportManager
from esker.repo.objects.address import uri_of
from esker.store.stores import resolve

NUMBERS = itertools.count()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# By bytes '-' and '.' come before the '/' of a folder and '0' after it; what has no ASCII comes last.
NAMES = st.sampled_from(["a", "a-b", "a.b", "a0", "b", "B", "é", "e\u0301", "日本", "\U0001f600", "z z", "%2F"])
FOLDERS = st.lists(NAMES, max_size=2).map(lambda names: "".join(f"{name}-d/" for name in names))
PATHS = st.tuples(FOLDERS, NAMES).map("".join)
SOURCES = st.dictionaries(PATHS, st.integers(0, 3), max_size=12)


@dataclass
class Source:
    """Where objects are, and what they are called in the repository."""

    files: dict[str, int]
    destination: str
    is_local: bool
    single: bool
    uri: str = field(default_factory=lambda: f"memory://import-source-{next(NUMBERS)}")

    def fill(self, folder: str) -> None:
        if self.is_local:
            self.uri = f"{folder}/{next(NUMBERS)}"
        store = Store(self.uri, durable=False)
        for path, size in self.files.items():
            store.put(path, b"x" * size)

    def expected(self) -> dict[str, tuple[str, int]]:
        below = self.destination + "/" if self.destination and not self.destination.endswith("/") else self.destination
        if self.single:
            first = min(self.files)
            return {self.destination or "one": (f"{self.uri}/{first}", self.files[first])}
        return {below + path: (f"{self.uri}/{path}", size) for path, size in self.files.items()}


ANY_SOURCE = st.builds(Source, SOURCES, st.sampled_from(["", "a", "a/", "a-d/", "日本"]), st.booleans(), st.booleans())


@given(st.lists(ANY_SOURCE, min_size=1, max_size=4), st.sampled_from([200, 2000, 1 << 20]))
def test_any_sources_come_out_as_a_map_would_have_them(sources: list[Source], memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(import_data, "MEMORY_BYTES", memory)
        main = Repository.create(f"memory://imports-{next(NUMBERS)}").branch("main")
        model: dict[str, tuple[str, int]] = {}
        manager = main.import_data("all")
        for source in sources:
            source.single = source.single and bool(source.files)
            source.fill(folder)
            if source.single:
                manager.object(f"{source.uri}/{min(source.files)}", source.destination or "one")
            else:
                manager.prefix(source.uri, source.destination)
            model |= source.expected()
        if not model:
            with pytest.raises(NoChangesError):
                manager.run()
            return
        status = manager.run()
        assert (status.completed, status.ingested_objects) == (True, len(model))
        found = {entry.path: entry for entry in main.objects() if isinstance(entry, ObjectInfo)}
        assert list(found) == sorted(model, key=str.encode)
        assert {path: (uri_of(entry.physical_address), entry.size_bytes) for path, entry in found.items()} == model
        for entry in found.values():
            place, _, name = uri_of(entry.physical_address).rpartition("/")
            modified = Store(place).head(name).last_modified_us
            assert entry.address_type == "full"
            assert entry.checksum == f"{entry.size_bytes:x}-{modified or 0:x}-{uri_of(entry.physical_address)}"
            assert entry.mtime == EPOCH + timedelta(microseconds=modified or 0)
        again = main.import_data("again")
        for source in sources:
            if source.single:
                again.object(f"{source.uri}/{min(source.files)}", source.destination or "one")
            else:
                again.prefix(source.uri, source.destination)
        with pytest.raises(NoChangesError):
            again.run()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of 300 files, which are listed in no order."""
    for n in range(300):
        place = tmp_path / "outside" / f"{n % 7}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n * 7919 % 300}").write_text(str(n))
    return tmp_path / "outside"


@pytest.fixture
def spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where imports put what memory should not hold, which is nearly all."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(import_data, "MEMORY_BYTES", 2000)
    return folder


def test_an_import_that_loses_a_race_goes_on_top_and_lists_nothing_again(
    tmp_path: Path, outside: Path, spills: Path
) -> None:
    repo = Repository.create(tmp_path / "repo")
    main, rounds = repo.branch("main"), []

    def meanwhile(event: HookEvent) -> None:
        rounds.append(event.branch)
        if len(rounds) == 1:
            # Whoever lists now finds nothing.
            shutil.rmtree(outside)
            other = repository(repo.uri).branch("main")
            other.object("theirs").upload("1")
            other.commit("theirs")

    repo.add_hook("pre-commit", meanwhile)
    status = main.import_data("ours").prefix(str(outside), "in").run()
    assert len(rounds) == 2
    assert status.ingested_objects == 300
    assert len(list(main.objects(prefix="in/"))) == 300
    assert main.object("theirs").exists()
    assert [commit.message for commit in main.log(max_amount=2)] == ["ours", "theirs"]


def test_an_import_of_paths_that_others_change_meanwhile_is_a_conflict(tmp_path: Path, outside: Path) -> None:
    repo = Repository.create(tmp_path / "repo")

    def meanwhile(event: HookEvent) -> None:
        if event.commit.message == "ours":
            other = repository(repo.uri).branch("main")
            other.object("in/0/0").upload("1")
            other.commit("theirs", allow_empty=True)

    repo.add_hook("pre-commit", meanwhile)
    with pytest.raises(MergeConflictError, match="in/0/0"):
        repo.branch("main").import_data("ours").prefix(str(outside), "in").run()


def test_what_is_sorted_on_disk_is_gone_afterwards(tmp_path: Path, outside: Path, spills: Path) -> None:
    main = Repository.create(tmp_path / "repo").branch("main")
    assert main.import_data("first").prefix(str(outside), "in").run().completed
    assert os.listdir(spills) == []
    with pytest.raises(NoChangesError):
        main.import_data("again").prefix(str(outside), "in").run()
    with pytest.raises(NotFoundError):
        main.import_data("half").prefix(str(outside), "in").object(f"{outside}/none", "x").run()
    with pytest.raises(InvalidArgumentError, match="path"):
        main.import_data("nameless").prefix(str(outside), "in").object(f"{outside}/0/0", "").run()
    assert os.listdir(spills) == []


def test_an_import_is_cancelled_while_it_lists(tmp_path: Path, outside: Path, spills: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    before = repo.branch("main").get_commit()
    manager = repo.branch("main").import_data("many")
    for n in range(2000):
        manager.prefix(str(outside), f"in/{n}")
    manager.start()
    while manager.status().ingested_objects == 0:
        pass
    manager.cancel()
    with pytest.raises(CommitConflictError, match="cancelled"):
        manager.wait()
    assert 0 < manager.status().ingested_objects < 600_000
    assert repo.branch("main").get_commit() == before
    assert os.listdir(spills) == []


def test_an_import_of_nothing_says_where_it_looked_and_one_of_nothing_new_that_it_is_there(
    tmp_path: Path, outside: Path
) -> None:
    main = Repository.create(tmp_path / "repo").branch("main")
    with pytest.raises(NoChangesError, match=r"no objects at '.*nowhere', and committed nothing; look whether"):
        main.import_data("none").prefix(str(tmp_path / "nowhere"), "in").run()
    main.import_data("all").prefix(str(outside), "in").run()
    with pytest.raises(NoChangesError, match="has all 300 objects already"):
        main.import_data("again").prefix(str(outside), "in").run()


def many(repo: Repository, outside: Path) -> ImportManager:
    """An import that takes a while."""
    manager = repo.branch("main").import_data("many")
    for n in range(1000):
        manager.prefix(str(outside), f"in/{n}")
    return manager


@contextmanager
def interrupted(manager: ImportManager) -> Iterator[None]:
    """Ctrl-C as soon as an import has listed something, and somebody waits for it."""
    main = threading.main_thread().ident or 0

    def waits() -> bool:
        frames = traceback.walk_stack(sys._current_frames()[main])
        return any(frame.f_code.co_filename == import_data.__file__ for frame, _ in frames)

    def interrupt() -> None:
        while not manager.import_id or manager.status().ingested_objects == 0 or not waits():
            if over.wait(0.001):
                return
        signal.pthread_kill(main, signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread, over = threading.Thread(target=interrupt), threading.Event()
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, handler)


def test_ctrl_c_cancels_an_import_that_runs(tmp_path: Path, outside: Path, spills: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    before = repo.branch("main").get_commit()
    manager = many(repo, outside)
    with interrupted(manager):
        manager.run()
    with pytest.raises(CommitConflictError, match="cancelled"):
        manager.wait()
    assert repo.branch("main").get_commit() == before
    assert os.listdir(spills) == []


def test_ctrl_c_ends_a_wait_and_not_the_import(tmp_path: Path, outside: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    manager = many(repo, outside)
    manager.start()
    with interrupted(manager):
        manager.wait()
    done = manager.wait()
    assert done.completed
    assert done.ingested_objects == 300_000
    assert repo.branch("main").get_commit().id == done.commit_id


def test_an_import_that_may_have_landed_is_not_told_as_cancelled(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any, **__: Any) -> None:
        raise CommitStateUnknownError("the reply is lost")

    monkeypatch.setattr("esker.repo.import_data.commit_staging", lost)
    manager = Repository.create(tmp_path / "repo").branch("main").import_data("one")
    manager.prefix(str(outside / "0"), "in")
    manager.start()
    while manager.status().error is None:
        pass
    with pytest.raises(CommitStateUnknownError, match="the reply is lost"):
        manager.cancel()


def test_an_import_says_what_it_cannot_write(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = Repository.create(tmp_path / "repo").branch("main")
    monkeypatch.setattr(import_data, "MEMORY_BYTES", 2000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises((EskerError, OSError), match="nowhere"):
        main.import_data("all").prefix(str(outside), "in").run()


def test_a_protected_branch_takes_no_import(tmp_path: Path, outside: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.change_settings(protected_branches=["main"])
    with pytest.raises(ProtectedBranchError):
        repo.branch("main").import_data("all").prefix(str(outside), "in").run()


def test_a_store_tells_of_the_same_objects_in_batches(tmp_path: Path, outside: Path) -> None:
    (outside / "folder").symlink_to(outside / "3")
    for store in (Store(str(outside)), Store("memory://in-batches")):
        store.put("memory", b"1")
        listed = store.list_batches()
        found: list[Any] = []
        while (batch := listed.next_batch()) is not None:
            columns = pa.record_batch(batch).to_pydict()
            found += zip(columns["path"], columns["size_bytes"], columns["modified_us"], strict=True)
        assert sorted(found) == [(meta.path, meta.size, meta.last_modified_us) for meta in store.list()]
        assert listed.next_batch() is None


IMPORT = """
import sys, time, psutil
from esker.repo import Repository, import_data
uri, source = sys.argv[1:]
import_data.MEMORY_BYTES = 4 << 20
Repository.create(uri)
main = Repository(uri, cache_bytes=1 << 20).branch("main")
main.import_data().prefix(source + "/0", "warm").run()
process = psutil.Process()
before, peaks = process.memory_info().rss, [0, 0]
manager = main.import_data().prefix(source, "in")
manager.start()
while not (status := manager.status()).completed and status.error is None:
    listed = status.ingested_objects >= 800_000
    peaks[listed] = max(peaks[listed], process.memory_info().rss - before)
    time.sleep(0.005)
print(manager.wait().ingested_objects, *peaks)
"""


def test_memory_does_not_grow_with_the_number_of_objects(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "source").mkdir()
    for n in range(10_000):
        (tmp_path / "real" / f"{n * 7919 % 10_000:05}-of-many-parts.snappy.parquet").touch()
    for n in range(80):
        (tmp_path / "source" / f"{n}").symlink_to(tmp_path / "real")
    # What the allocator keeps for a second after it was given back is not what an import needs.
    environment = {**os.environ, "MIMALLOC_PURGE_DELAY": "0"}
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "repo"), str(tmp_path / "source")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    objects, listing, committing = map(int, done.stdout.split())
    assert objects == 800_000
    # They take 200 MB, and as objects of Python's a gigabyte. What is held is a batch, then a few ranges on their way.
    assert listing < 48 << 20, f"{listing >> 20} MiB"
    assert committing < 256 << 20, f"{committing >> 20} MiB"


def test_places_of_this_machine_are_imported_as_addresses_name_them(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a").write_bytes(b"1")
    main = Repository.create(tmp_path / "repo").branch("main")
    where = f"local://{tmp_path}/outside"
    main.import_data().prefix(f"{where}/", "all/").object(f"{where}/a", "one").run()
    assert [one.path for one in main.objects()] == ["all/a", "one"]
    assert {main.object(path).stat().physical_address for path in ("all/a", "one")} == {f"{where}/a"}
    assert main.object("one").reader().read() == b"1"


def test_names_that_no_store_reads_are_refused_before_they_are_committed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "new\nline").write_text("1")
    (tmp_path / "in" / "other").write_text("2")
    main = Repository.create(tmp_path / "lake").branch("main")
    before = main.get_commit().id
    with pytest.raises(
        InvalidArgumentError, match=r"new\\nline: expected objects whose names have no control characters"
    ):
        main.import_data().prefix(str(tmp_path / "in"), "x/").run()
    assert main.get_commit().id == before


def test_an_address_has_no_escapes_whatever_the_uri_has(tmp_path: Path) -> None:
    (tmp_path / "a day").mkdir()
    (tmp_path / "a day/1%41 x").write_bytes(b"1")
    main = Repository.create(tmp_path / "lake").branch("main")
    escaped, plain = "/a%20day/1%2541%20x", "/a day/1%41 x"
    for n, place in enumerate([f"file://{tmp_path}", f"FILE://localhost{tmp_path}", f"file:{tmp_path}"]):
        main.import_data().prefix(f"{place}/a%20day/", f"{n}/").object(place + escaped, f"{n}/one").run()
    found = [one for one in main.objects() if isinstance(one, ObjectInfo)]
    assert [one.path for one in found] == [f"{n}/{name}" for n in range(3) for name in ("1%41 x", "one")]
    assert {one.physical_address for one in found} == {f"local://{tmp_path}{plain}"}
    assert {main.object(one.path).reader().read() for one in found} == {b"1"}


def test_keys_that_look_like_escapes_of_a_uri_are_read_where_they_are(bucket: str, tmp_path: Path) -> None:
    keys = ["in/ts=00%3A00/a%3A", "in/a#b?/c?d", "in/x y/z"]
    for key in keys:
        Store(bucket).put(key, key.encode())
    repo = Repository.create(tmp_path / "lake")
    main = repo.branch("main")
    main.import_data().prefix(f"{bucket}/in", "in").prefix(f"{bucket}/in/x%20y", "b").run()
    main.import_data().object(f"{bucket}/in/ts=00%253A00/a%3A", "one").run()
    places = dict.fromkeys(keys, "") | {"b/z": keys[2], "one": keys[0]}
    for path, key in places.items():
        assert main.object(path).stat().physical_address == f"{bucket}/{key or path}"
        assert main.object(path).reader("r").read() == (key or path)
    assert list(repo.fsck(imports=True)) == []
    assert main.export(str(tmp_path / "out")) == len(places)


def test_a_store_over_a_branch_reads_such_keys_too(bucket: str, tmp_path: Path) -> None:
    Store(bucket).put("in/ts=00%3A00/a", b"1")
    main = Repository.create(tmp_path / "lake").branch("main")
    main.import_data().prefix(f"{bucket}/in", "in").run()
    assert resolve(main.store_uri("in")).get("ts=00%3A00/a") == b"1"


@pytest.mark.parametrize("verb", ["prefix", "object"])
def test_what_a_ref_holds_is_no_place_to_import_from(tmp_path: Path, verb: str) -> None:
    repo = Repository.create(tmp_path / "lake")
    main = repo.branch("main")
    main.object("a/b").upload("1")
    main.commit("1")
    with main.transact("none") as tx:
        for uri in (main.store_uri("a"), repo.ref("main").store_uri("a"), tx.store_uri("a")):
            with pytest.raises(UnsupportedError, match="names a ref of a repository"):
                getattr(main.import_data(), verb)(uri, "c")
