"""Sessions: caches that datasets share, within limits that hold, as pylance has them."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.cached import cached_property
from esker.fragment import write_fragments
from esker.repo import Repository
from tests.samples import people, same

ROWS = 40_000


def wide(rows: int = ROWS, *, add: int = 0) -> pa.Table:
    """Columns whose pages are read in part."""
    return pa.table({f"c{i}": pa.array(range(add + i, add + i + rows), pa.int64()) for i in range(6)})


def test_a_scan_fills_the_cache(uri: str) -> None:
    esker.write_dataset(people(1000), uri, max_rows_per_file=250)
    dataset = esker.dataset(uri)
    before = dataset.session().size_bytes()
    dataset.scanner().to_table()
    assert dataset.session().size_bytes() > before
    assert dataset.session().approx_num_items() >= 4
    assert dataset.session().index_cache_size_bytes() == 0


def test_datasets_of_a_session_share_what_was_read(uri: str) -> None:
    one = esker.write_dataset(wide(), uri, max_rows_per_file=10_000)
    expected = one.to_table()
    other = esker.dataset(uri, session=one.session())
    assert one.session().is_same_as(other.session())
    assert one.session() is other.session()
    assert one.session().size_bytes() == other.session().size_bytes() > 0
    other.io_stats()
    same(other.to_table(), expected)
    shared = other.io_stats()
    alone = esker.dataset(uri)
    alone.io_stats()
    same(alone.to_table(), expected)
    cost = alone.io_stats()
    assert shared.read_iops < cost.read_iops, "files that the other one opened are open"
    assert not alone.session().is_same_as(one.session())


def test_fragments_are_written_within_a_session(uri: str) -> None:
    table = pa.table({"id": [1, 2, 3]})
    session = esker.Session()
    fragments = write_fragments(table, uri, mode="create", session=session)
    written = session.io_stats()
    assert written.write_iops > 0
    fragments.append(esker.LanceFragment.create(uri, table, mode="create", session=session))
    assert session.io_stats().write_bytes > 0
    dataset = esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(table.schema, fragments))
    assert dataset.count_rows() == 6
    assert lance.dataset(uri).count_rows() == 6
    # As the real one takes it, and like there it changes nothing of what is written.
    theirs = lance.fragment.write_fragments(table, f"{uri}-theirs", mode="create", session=lance.Session())
    assert [one.physical_rows for one in theirs] == [3]


def test_each_dataset_counts_its_own_requests(uri: str) -> None:
    # Pages so small that they are kept whole would not be read again.
    one = esker.write_dataset(wide(), uri, compression="fast")
    one.to_table()
    other = esker.dataset(uri, session=one.session())
    one.io_stats(), other.io_stats()
    other.to_table()
    assert one.io_stats().read_bytes == 0
    assert other.io_stats().read_bytes > ROWS * 6


def test_other_versions_and_branches_are_of_the_session(uri: str) -> None:
    session = esker.Session(metadata_cache_size_bytes=1 << 20)
    dataset = esker.write_dataset(wide(), uri, session=session)
    dataset.insert(wide())
    dataset.create_branch("side")
    for other in (
        dataset,
        dataset.checkout_version(1),
        dataset.checkout_version(("side", None)),
        dataset.checkout_version(("side", None)).checkout_version(("main", 1)),
    ):
        assert other.session().is_same_as(session)
        other.to_table()
    dataset.checkout_latest()
    dataset.delete("c0 < 10")
    assert dataset.session().is_same_as(session)


@pytest.mark.parametrize("limit", [0, 1000, 60_000, 1 << 20])
def test_the_limit_holds(limit: int, uri: str) -> None:
    esker.write_dataset(wide(), uri, max_rows_per_file=2000)
    esker.dataset(uri).delete("c0 % 7 = 3")
    dataset = esker.dataset(uri, metadata_cache_size_bytes=limit)
    expected = esker.dataset(uri).to_table()
    numbers = list(range(0, expected.num_rows, 97))
    for _ in range(2):
        same(dataset.to_table(), expected)
        assert dataset.session().size_bytes() <= limit
        same(dataset.take(numbers), expected.take(numbers))
        assert dataset.session().size_bytes() <= limit
        assert dataset.count_rows("c3 > 100") == len([n for n in expected["c3"].to_pylist() if n > 100])
        assert dataset.session().size_bytes() <= limit
    assert (dataset.session().approx_num_items() == 0) == (limit == 0)


def test_a_limit_holds_for_many_datasets(tmp_path: Path) -> None:
    session = esker.Session(metadata_cache_size_bytes=200_000)
    tables = [wide(5000, add=10_000 * n) for n in range(12)]
    uris = [str(tmp_path / f"t{n}") for n in range(12)]
    for table, place in zip(tables, uris, strict=True):
        esker.write_dataset(table, place, data_storage_version="2.0" if place.endswith("3") else None)
    opened = [esker.dataset(place, session=session) for place in uris]
    for _ in range(2):
        for table, dataset in zip(tables, opened, strict=True):
            same(dataset.to_table(), table)
            assert session.size_bytes() <= 200_000
    assert session.approx_num_items() > 0


def test_what_datasets_kept_goes_with_them(uri: str) -> None:
    session = esker.Session()
    esker.write_dataset(wide(), uri)
    copies = [pickle.loads(pickle.dumps(esker.dataset(uri, session=session))) for _ in range(3)]
    for copy in copies:
        assert not copy.session().is_same_as(session), "a copy has caches of its own"
        copy.to_table()
    assert session.size_bytes() == 0
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(session)


BACKENDS: list[dict[str, Any]] = [
    {"index_cache_size_bytes": 1024, "index_cache_backend": "moka://?capacity=1048576"},
    {"metadata_cache_size_bytes": 1024, "metadata_cache_backend": "moka://?capacity=1048576"},
    {"index_cache_backend": {"kind": "moka", "capacity": "1048576"}},
    {"index_cache_backend": "moka://"},
    {"index_cache_backend": "moka://?capacity="},
    {"index_cache_backend": "moka://?capacity=x"},
    {"index_cache_backend": "moka://?capacity=1&foo=2"},
    {"metadata_cache_backend": "moka://x?capacity=1"},
    {"index_cache_backend": "redis://x"},
    {"index_cache_backend": "foo"},
    {"index_cache_backend": {"options": {}}},
    {"index_cache_backend": {"kind": "moka", "options": {"capacity": 5}}},
    {"index_cache_backend": {"kind": 5}},
    {"index_cache_backend": 5},
]


@pytest.mark.parametrize("options", BACKENDS)
def test_backends_are_refused_in_pylances_words(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cache_backend") as theirs:
        lance.Session(**options)
    with pytest.raises(ValueError, match="cache_backend") as ours:
        esker.Session(**options)
    words = (
        str(theirs.value).split(", /home")[0].replace("Invalid user input: ", "").replace("moka cache backend: ", "")
    )
    assert str(ours.value).startswith(words.split("; use")[0].split(": invalid")[0])


def test_backends_are_limits_by_another_name(uri: str) -> None:
    esker.write_dataset(wide(), uri, max_rows_per_file=2000)
    for backend in ("moka://?capacity=200000", {"kind": "MOKA", "options": {"capacity": "200000"}}):
        session = esker.Session(index_cache_backend=backend, metadata_cache_backend=backend)
        esker.dataset(uri, session=session).to_table()
        assert 0 < session.size_bytes() <= 200_000
    text = "Session(index_cache_size_bytes=0, metadata_cache_size_bytes=0)"
    assert repr(esker.Session()) == repr(lance.Session()) == text
    with pytest.raises(ValueError, match="metadata_cache_size_bytes"):
        esker.Session(metadata_cache_size_bytes=-1)


def test_a_table_that_was_made_anew_at_a_place_is_read_as_it_is_now(tmp_path: Path) -> None:
    session = esker.Session()
    place = tmp_path / "t"
    first = esker.write_dataset(wide(3000), place, session=session)
    assert first.to_table()["c0"][0].as_py() == 0
    esker.LanceDataset.drop(str(place))
    second = esker.write_dataset(wide(3000, add=5), place, session=session)
    assert second.to_table()["c0"][0].as_py() == 5


def test_a_path_with_other_bytes_on_another_branch_is_read_as_it_is_there(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repo", committer="me")
    main, session = repository.branch("main").store_uri("t"), esker.Session()
    numbers = np.random.RandomState(1).permutation(3000)
    esker.write_dataset(pa.table({"c": numbers}), main)
    repository.branch("side").create("main")
    (path,) = (found.path for found in repository.ref("main").objects(prefix="t/data/"))
    # A file of the same name and size, with other values.
    esker.write_dataset(pa.table({"c": numbers[::-1]}), tmp_path / "other")
    (file,) = (tmp_path / "other" / "data").iterdir()
    assert file.stat().st_size == repository.ref("main").object(path).stat().size_bytes
    side = repository.branch("side")
    side.object(path).upload(file.read_bytes())
    side.commit("other bytes")
    for turn in range(2):
        for branch, expected in (("main", numbers), ("side", numbers[::-1])):
            dataset = esker.dataset(repository.branch(branch).store_uri("t"), session=session)
            assert dataset.to_table()["c"].to_pylist() == expected.tolist(), turn
            assert dataset.take([7])["c"].to_pylist() == [expected[7]]
    assert session.size_bytes() > 0


def in_fork(work: Callable[[], bool]) -> None:
    """Runs it in a forked child, which must not hang."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    until = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.01)
    assert ended == (child, 0)


def test_a_forked_process_finds_what_a_thread_was_finding() -> None:
    """Python's own `cached_property` holds a lock meanwhile before 3.12, of which the child has a copy."""
    began, ends = threading.Event(), threading.Event()

    class Found:
        @cached_property
        def value(self) -> int:
            if threading.current_thread() is not threading.main_thread():
                began.set()
                assert ends.wait(90)
            return 7

    found = Found()
    thread = threading.Thread(target=lambda: found.value)
    thread.start()
    try:
        assert began.wait(60)
        in_fork(lambda: found.value == 7 and Found().value == 7)
    finally:
        ends.set()
        thread.join()
    sources = Path(esker.__file__).parent.rglob("*.py")
    taken = [path for path in sources if "functools import cached_property" in path.read_text()]
    assert [path.name for path in taken] == ["cached.py"]


def read_few(dataset: esker.Dataset) -> bool:
    return len(dataset.take([5, ROWS - 1])) == len(dataset.take_rows([5])) + 1


def test_a_forked_process_reads_while_its_parents_threads_did(uri: str) -> None:
    """With a handle that the threads use for the first time, and with one that they have used."""
    esker.write_dataset(wide(), uri, max_rows_per_file=1000, enable_stable_row_ids=True)
    for _ in range(5):
        dataset, stop = esker.dataset(uri), threading.Event()

        def read(dataset: esker.Dataset, stop: threading.Event) -> None:
            while not stop.is_set():
                dataset.take(list(range(0, ROWS, 500)))
                dataset.take_rows(list(range(0, ROWS, 500)))

        threads = [threading.Thread(target=read, args=(dataset, stop)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                in_fork(partial(read_few, dataset))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
