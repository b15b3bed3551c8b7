"""Columns that are added to a table of many fragments: small files are written side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import EskerError, SchemaMismatchError
from esker.store import stores

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]


def _table(uri: str, fragments: int = 40, version: str = "2.1") -> esker.LanceDataset:
    """Fragments of five rows; of some all or most rows are deleted."""
    rows = pa.table({"id": pa.array(range(fragments * 5), pa.int64())})
    made = esker.write_dataset(rows, uri, max_rows_per_file=5, data_storage_version=version)
    made.delete("id BETWEEN 10 AND 13 OR id BETWEEN 21 AND 24 OR id % 5 = 3")
    return esker.dataset(uri)


def _files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_fragment_gets_its_own_values(uri: str, version: str) -> None:
    dataset = _table(uri, version=version)
    dataset.add_columns({"twice": "id * 2"})
    dataset.add_columns(lambda batch: pa.record_batch({"thrice": pa.array([3 * it.as_py() for it in batch["id"]])}))
    count = dataset.count_rows()
    values = [pa.record_batch({"number": pa.array(range(at, min(at + 7, count)))}) for at in range(0, count, 7)]
    dataset.add_columns(pa.RecordBatchReader.from_batches(values[0].schema, values))
    if version != "0.1":
        dataset.alter_columns({"path": "twice", "data_type": pa.int32()})
    for library in (esker, lance):
        found = library.dataset(uri).to_table()
        ids = found["id"].to_pylist()
        assert found["twice"].to_pylist() == [2 * it for it in ids]
        assert found["thrice"].to_pylist() == [3 * it for it in ids]
        assert found["number"].to_pylist() == list(range(count))
    # A column of each change in a file of its own; a change of type replaces what it changes.
    assert {len(fragment.data_files()) for fragment in dataset.get_fragments()} == {4}


def test_a_function_sees_the_fragments_in_their_order_in_one_thread(uri: str) -> None:
    seen: list[int] = []
    threads = set()

    def number(batch: pa.RecordBatch) -> pa.RecordBatch:
        threads.add(threading.get_ident())
        seen.extend(batch["id"].to_pylist())
        return pa.record_batch({"at": pa.array([len(seen)] * batch.num_rows)})

    dataset = _table(uri)
    dataset.add_columns(number, read_columns=["id"])
    ids = dataset.to_table()["id"].to_pylist()
    # The first rows once more, to learn the schema.
    assert seen[-len(ids) :] == ids
    assert len(threads) == 1


def test_values_of_fragments_that_fail_leave_nothing(uri: str) -> None:
    dataset = _table(uri)
    before = _files(uri)

    def fails(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 150 in batch["id"].to_pylist():
            raise ValueError("no value for 150")
        return batch.rename_columns(["other"])

    with pytest.raises(ValueError, match="no value for 150"):
        dataset.add_columns(fails, read_columns=["id"])
    assert _files(uri) == before

    def short() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"other": list(range(100))})

    with pytest.raises(SchemaMismatchError, match="Stream ended before"):
        dataset.add_columns(pa.RecordBatchReader.from_batches(pa.schema({"other": pa.int64()}), short()))
    assert _files(uri) == before
    assert dataset.version == 2
    dataset.add_columns({"other": "id"})
    assert dataset.version == 3


def test_ctrl_c_in_the_wait_for_a_file_leaves_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = _table(uri)
    before = _files(uri)
    wait = Future.result
    breaks = iter([KeyboardInterrupt()])

    def broken_off(file: Future[Any], timeout: float | None = None) -> Any:
        for error in breaks:
            raise error
        return wait(file, timeout)

    monkeypatch.setattr(Future, "result", broken_off)
    with pytest.raises(KeyboardInterrupt):
        dataset.add_columns({"other": "id"})
    assert _files(uri) == before


def test_ctrl_c_in_the_start_of_a_thread_leaves_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = _table(uri)
    before = _files(uri)
    start = threading.Thread.start
    files: list[threading.Thread] = []

    def broken_off(thread: threading.Thread) -> None:
        start(thread)
        if thread.name.startswith("esker-columns"):
            # The thread runs; the pool does not know of it yet, and so does not wait for it.
            files.append(thread)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", broken_off)
    with pytest.raises(KeyboardInterrupt):
        dataset.add_columns({"other": "id"})
    assert len(files) == 1
    files[0].join(timeout=30)
    assert _files(uri) == before


def test_columns_are_added_after_the_main_thread_has_ended(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = _table(uri)
    # What the interpreter sets then; threads of programs may go on.
    monkeypatch.setattr("concurrent.futures.thread._shutdown", True)
    dataset.add_columns({"other": "id"})
    assert dataset.to_table()["other"].equals(dataset.to_table()["id"])


def _append(dataset: esker.LanceDataset) -> None:
    dataset.insert(pa.table({"id": pa.array(range(1000, 1060), pa.int64())}), max_rows_per_file=5)


@pytest.mark.parametrize("change", [_append, lambda dataset: dataset.add_columns({"other": "id"})])
@pytest.mark.parametrize("fault", ["fail", "lose_reply"])
def test_a_file_that_cannot_be_written_leaves_nothing_of_the_others(
    uri: str, change: Callable[[esker.LanceDataset], None], fault: str
) -> None:
    _table(uri, fragments=12)
    before = _files(uri)
    for place in range(12):
        seen = count()

        def watch(operation: str, path: str, seen: Iterator[int] = seen, place: int = place) -> str | None:
            return fault if operation == "writer.finish" and path.startswith("data/") and next(seen) == place else None

        def failing(uri: str, options: Mapping[str, str], durable: bool, watch: Any = watch) -> Store:
            return FaultStore(Store(uri.removeprefix("fault://"), durable=False), watch=watch).store

        stores.register("fault", failing)
        try:
            dataset = esker.dataset(f"fault://{uri}")
            with pytest.raises(EskerError):
                change(dataset)
        finally:
            del stores._factories["fault"]
        assert next(seen) > place
        assert esker.dataset(uri).version == 2
        # A file whose writer did not learn that it is there is left to a clean-up.
        assert len(_files(uri) - before) <= (fault == "lose_reply")
        for name in _files(uri) - before:
            Path(uri, "data", name).unlink()
    assert esker.dataset(uri).to_table().equals(lance.dataset(uri).to_table())


def test_a_full_file_that_waits_for_one_that_fails_leaves_no_blobs(uri: str) -> None:
    # Blobs of this size are files of their own, which are there before their data file is.
    blobs = esker.blob_array([bytes([number]) * 5_000_000 for number in range(30)])
    schema = pa.schema([pa.field("id", pa.int64()), esker.blob_field("b")])
    rows = pa.table([pa.array(range(30)), blobs], schema=schema)
    failed: list[str] = []

    def watch(operation: str, path: str) -> str | None:
        if operation == "writer.finish" and path.endswith(".lance"):
            # Others are full by then, and wait for their turn.
            time.sleep(0.05)
            if not failed:
                failed.append(path)
            return "fail" if path in failed else None
        return None

    def failing(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("fault://"), durable=False), watch=watch).store

    stores.register("fault", failing)
    try:
        with pytest.raises(EskerError):
            esker.write_dataset(rows, f"fault://{uri}", data_storage_version="2.2", max_rows_per_file=1)
    finally:
        del stores._factories["fault"]
    assert [path for path in Path(uri).rglob("*") if path.is_file()] == []
