"""The sink of `writeStream` and upserts, and what others do to the table between the work of tasks and the commit."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql import types as T

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.commit import resolve
from esker.delta import DeltaTable
from esker.exceptions import CommitConflictError, EskerError, NotFoundError, SchemaMismatchError, UnsupportedError
from esker.lance.commit import LanceCommit
from esker.spark.options import TableAddress
from esker.spark.streaming import automatic_compaction, sink
from esker.store.stores import register
from tests.servers import S3Server
from tests.spark.jobs import batches, planned, staged, wrote
from tests.spark.stream_histories import SCHEMA, upsert_of
from tests.spark.streams import Batch

FORMATS = ["lance", "delta"]
QUERY = "6d8fbe6a-0b8e-4b7c-9f5e-4e4f6f0d1c11"
OTHER = pa.table({"a": ["A"], "b": pa.array([3], pa.int64())})


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "by": f"x{number}"} for number in numbers]


def _table(uri: str) -> pa.Table:
    """What the peer reads."""
    if Path(uri, "_delta_log").exists():
        return deltalake.DeltaTable(uri).to_pyarrow_table()
    return lance.dataset(uri).to_table()


def _there(uri: str) -> list[int]:
    return sorted(_table(uri)["id"].to_pylist())


def _files(uri: str) -> int:
    return sum(1 for path in Path(uri).rglob("*") if path.suffix in (".lance", ".parquet"))


def _replaced(kind: str, uri: str, versions: int = 1) -> None:
    """Another table, with other columns, in the place of the first."""
    shutil.rmtree(uri)
    for number in range(versions):
        if kind == "lance":
            lance.write_dataset(OTHER, uri, mode="append" if number else "create")
        else:
            deltalake.write_deltalake(uri, OTHER, mode="append")


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("versions", [1, 2, 5])
def test_a_batch_does_not_go_into_a_table_that_took_the_place_of_its_own(
    tmp_path: Path, kind: str, versions: int, complete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    for number in range(3):
        Batch(uri, SCHEMA, QUERY, number, tableFormat=kind).run(_rows(number))
    batch = Batch(uri, SCHEMA, QUERY, 3, complete=complete)
    messages = batch.staged([_rows(3)])
    _replaced(kind, uri, versions)
    with pytest.raises(CommitConflictError, match="was replaced or reset since the write was planned"):
        batch.commit(messages)
    # Files of one table have fields of the other: it would read wrong values, or none at all.
    assert (_table(uri).to_pylist(), _files(uri)) == (OTHER.to_pylist() * versions, versions)
    # Run again it says what does not fit, or replaces all.
    if complete:
        Batch(uri, SCHEMA, QUERY, 3, complete=True, overwriteSchema=True).run(_rows(3))
        assert _there(uri) == [3]
    else:
        with pytest.raises(SchemaMismatchError, match="id"):
            Batch(uri, SCHEMA, QUERY, 3)


def test_a_write_of_a_frame_does_not_go_into_another_table_either(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, SCHEMA, _rows(0), tableFormat=kind)
    writer = planned(uri, SCHEMA)
    messages = staged(writer, [batches(SCHEMA, _rows(1))])
    _replaced(kind, uri)
    with pytest.raises(CommitConflictError, match="run it again"):
        writer.commit(messages)
    assert (_table(uri).to_pylist(), _files(uri)) == (OTHER.to_pylist(), 1)


def test_a_batch_whose_table_is_gone_says_so(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1)])
    shutil.rmtree(uri)
    with pytest.raises(NotFoundError, match=r"no (Delta )?table at"):
        batch.commit(messages)


def test_a_clean_up_of_what_a_batch_must_be_compared_with_makes_it_run_again(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1)])
    wrote(uri, SCHEMA, _rows(2))
    wrote(uri, SCHEMA, _rows(3))
    if kind == "lance":
        esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0))
        assert esker.dataset(uri).versions()[0]["version"] == 3
        with pytest.raises(CommitConflictError, match="was cleaned up before"):
            batch.commit(messages)
        assert _there(uri) == [0, 2, 3]
    else:
        deltalake.DeltaTable(uri).create_checkpoint()
        deltalake.DeltaTable(uri).vacuum(retention_hours=168, dry_run=False, full=True)
        batch.commit(messages)
    for _ in range(2):
        Batch(uri, SCHEMA, QUERY, 1).run(_rows(1))
    assert _there(uri) == [0, 1, 2, 3]


def test_a_column_that_another_adds_under_a_batch(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1)])
    wide = T.StructType([*SCHEMA.fields, T.StructField("x", T.LongType())])
    if kind == "lance":
        esker.dataset(uri).add_columns({"x": "id + 1"})
        batch.commit(messages)
    else:
        deltalake.DeltaTable(uri).alter.add_columns([deltalake.Field("x", "long")])
        with pytest.raises(CommitConflictError, match="ADD COLUMN"):
            batch.commit(messages)
    # From then on the frame needs the column, in a Delta table with mergeSchema it does not.
    with pytest.raises(SchemaMismatchError, match="found x missing"):
        Batch(uri, SCHEMA, QUERY, 2)
    if kind == "delta":
        Batch(uri, SCHEMA, QUERY, 1, mergeSchema=True).run(_rows(1))
    Batch(uri, wide, QUERY, 2).run([{"id": 2, "by": "x2", "x": 7}])
    found = {row["id"]: row["x"] for row in _table(uri).to_pylist()}
    assert found == {0: 1 if kind == "lance" else None, 1: None, 2: 7}


def test_columns_that_two_queries_bring_at_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat="delta").run(_rows(0))
    one = T.StructType([*SCHEMA.fields, T.StructField("one", T.LongType())])
    two = T.StructType([*SCHEMA.fields, T.StructField("two", T.StringType())])
    first, second = (Batch(uri, s, q, 0, mergeSchema=True) for s, q in ((one, "one"), (two, "two")))
    staged_rows = (
        first.staged([[{"id": 1, "by": "", "one": 1}]]),
        second.staged([[{"id": 2, "by": "", "two": "2"}]]),
    )
    first.commit(staged_rows[0])
    with pytest.raises(CommitConflictError, match="run it again"):
        second.commit(staged_rows[1])
    for _ in range(2):
        Batch(uri, two, "two", 0, mergeSchema=True).run([{"id": 2, "by": "", "two": "2"}])
    found = sorted((row["id"], row["one"], row["two"]) for row in _table(uri).to_pylist())
    assert found == [(0, None, None), (1, 1, None), (2, None, "2")]


def test_a_foreign_replacement_under_a_batch_in_complete_mode_is_a_conflict(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, complete=True, tableFormat=kind).run(_rows(0))
    batch = Batch(uri, SCHEMA, QUERY, 1, complete=True)
    messages = batch.staged([_rows(1)])
    wrote(uri, SCHEMA, _rows(9), overwrite=True)
    with pytest.raises(CommitConflictError, match="run it again"):
        batch.commit(messages)
    assert _there(uri) == [9]
    for _ in range(2):
        Batch(uri, SCHEMA, QUERY, 1, complete=True).run(_rows(1))
    assert _there(uri) == [1]


@pytest.mark.parametrize("other", ["append", "compaction"])
def test_what_others_do_under_a_batch_in_complete_mode_is_a_conflict_in_a_delta_table_alone(
    tmp_path: Path, kind: str, other: str
) -> None:
    uri = str(tmp_path / "t")
    for number in range(2):
        Batch(uri, SCHEMA, "maker", number, tableFormat=kind).run(_rows(number))
    batch = Batch(uri, SCHEMA, QUERY, 0, complete=True)
    messages = batch.staged([_rows(2)])
    if other == "append":
        wrote(uri, SCHEMA, _rows(9))
    elif kind == "lance":
        lance.dataset(uri).optimize.compact_files()
    else:
        deltalake.DeltaTable(uri).optimize.compact()
    if kind == "delta":
        with pytest.raises(CommitConflictError, match="run it again"):
            batch.commit(messages)
        assert len(_table(uri)) == (3 if other == "append" else 2)
        Batch(uri, SCHEMA, QUERY, 0, complete=True).run(_rows(2))
    else:
        batch.commit(messages)
    assert _there(uri) == [2]


def test_a_batch_that_a_restore_took_back_is_not_known_any_more(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    for number in range(3):
        Batch(uri, SCHEMA, QUERY, number, tableFormat=kind).run(_rows(number))
    batch = Batch(uri, SCHEMA, QUERY, 3)
    messages = batch.staged([_rows(3)])
    if kind == "lance":
        esker.dataset(uri, version=2).restore()
    else:
        deltalake.DeltaTable(uri).restore(1)
    with pytest.raises(CommitConflictError):
        batch.commit(messages)
    Batch(uri, SCHEMA, QUERY, 3).run(_rows(3))
    assert _there(uri) == [0, 1, 3]


def test_a_compaction_that_loses_to_another_one_takes_no_batch_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    for number in range(3):
        Batch(uri, SCHEMA, QUERY, number).run(_rows(number))
    raced: list[Any] = []
    write = LanceCommit.__init__

    def beaten(self: Any, log: Any, transaction: Any, *given: Any, **named: Any) -> None:
        if transaction.operation == "Rewrite" and not raced:
            raced.append(lance.dataset(uri).optimize.compact_files())
        write(self, log, transaction, *given, **named)

    monkeypatch.setattr(LanceCommit, "__init__", beaten)
    Batch(uri, SCHEMA, QUERY, 3, compactEvery=1).run(_rows(3))
    assert raced
    assert _there(uri) == [0, 1, 2, 3]
    # The next ones find a table that another one has compacted; a fragment is written anew once it grows by half.
    for number in (4, 5):
        Batch(uri, SCHEMA, QUERY, number, compactEvery=1).run(_rows(number))
    assert [fragment.count_rows() for fragment in lance.dataset(uri).get_fragments()] == [6]
    assert _there(uri) == list(range(6))


def test_compaction_clean_up_and_two_queries_at_once(tmp_path: Path) -> None:
    """Threads that append, compact after each batch, and clean up: nothing is lost, and nothing is there twice."""
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, "maker", 0).run(_rows(-1))
    failed: list[BaseException] = []

    def query(name: int) -> None:
        try:
            for number in range(8):
                for _ in range(2):
                    upsert_of(uri, "lance", f"up{name}", 1)(_rows(10_000 * name + number), number)
                    automatic_compaction.compact(TableAddress(uri, {}))
                esker.dataset(uri).cleanup_old_versions(older_than=timedelta(seconds=20))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=query, args=(name,)) for name in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert _there(uri) == [-1, *range(10_000, 10_008), *range(20_000, 20_008)]


def test_two_upserts_of_the_same_keys_at_once(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    upsert_of(uri, kind, "maker")(_rows(0), 0)
    failed: list[BaseException] = []

    def query(name: str) -> None:
        try:
            for number in range(5):
                for _ in range(2):
                    upsert_of(uri, kind, name)([{"id": n, "by": name} for n in range(number, number + 4)], number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=query, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert _there(uri) == list(range(8))
    if kind == "delta":
        assert {DeltaTable(uri).transaction_version(name) for name in ("one", "two")} == {4}


def test_an_old_spark_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    with pytest.raises(UnsupportedError, match=r"Spark 4\.1 or newer"):
        Batch(str(tmp_path / "t"), SCHEMA, QUERY, 0)


def test_compression_is_kept_by_the_table_that_a_stream_makes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, compression="small").run(_rows(0))
    Batch(uri, SCHEMA, QUERY, 1).run(_rows(1))
    assert esker.dataset(uri).config()["esker.compression"] == "small"
    assert _there(uri) == [0, 1]


@pytest.mark.parametrize("mode", ["append", "complete", "upsert"])
def test_a_lost_reply_of_a_bucket_and_a_restart_before_the_note(s3: S3Server, kind: str, mode: str) -> None:
    """The entry is put, its reply is lost, what is read next fails, and then Spark runs the batch again: twice."""
    path = f"s3://{s3.bucket()}/t"
    state: dict[str, bool] = {"armed": False, "hit": False, "failed": False}

    def watch(verb: str, path: str) -> str | None:
        if state["armed"] and not state["hit"] and "put" in verb and path.startswith(("_versions/", "_delta_log/")):
            state["hit"] = True
            return "lose_reply"
        if state["hit"] and not state["failed"] and "put" not in verb:
            state["failed"] = True
            return "fail"
        return None

    def open_store(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        inner = resolve(uri.replace("s3lost://", "s3://", 1), storage_options=s3.storage_options)
        return FaultStore(inner, "", watch=watch).store

    register("s3lost", open_store)
    uri = path.replace("s3://", "s3lost://", 1)

    def run(number: int) -> None:
        rows = _rows(number, number + 1) if mode == "upsert" else _rows(number)
        if mode == "upsert":
            upsert_of(uri, kind, QUERY)(rows, number)
        else:
            Batch(uri, SCHEMA, QUERY, number, complete=mode == "complete", tableFormat=kind).run(rows)

    run(0)
    state["armed"] = True
    with suppress(EskerError):
        run(1)
    assert state["hit"]
    for number in (1, 1, 2, 2):
        run(number)
    if kind == "lance":
        found = lance.dataset(path, storage_options=s3.storage_options).to_table()
    else:
        found = deltalake.DeltaTable(path, storage_options=s3.storage_options).to_pyarrow_table()
    expected = {"append": [0, 1, 2], "complete": [2], "upsert": [0, 1, 2, 3]}
    assert sorted(found["id"].to_pylist()) == expected[mode]
