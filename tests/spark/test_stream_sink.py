"""The sink of `writeStream`: each batch of a query is in the table once, whatever is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import types as T

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import DeltaTable
from esker.exceptions import (
    CommitStateUnknownError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedError,
)
from esker.spark.streaming import sink
from esker.store.stores import register
from tests.spark.jobs import wrote
from tests.spark.streams import Batch

FORMATS = ["lance", "delta"]
SCHEMA = T.StructType().add("id", T.LongType()).add("s", T.StringType())
QUERY = "6d8fbe6a-0b8e-4b7c-9f5e-4e4f6f0d1c11"
LOGS = ("_versions/", "_delta_log/")


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "s": f"x{number}"} for number in numbers]


def _there(uri: str) -> list[int]:
    """The ids that the peer reads."""
    if Path(uri, "_delta_log").exists():
        table = deltalake.DeltaTable(uri).to_pyarrow_table()
    else:
        table = lance.dataset(uri).to_table()
    return sorted(table["id"].to_pylist())


def _version(uri: str) -> int:
    if Path(uri, "_delta_log").exists():
        return int(deltalake.DeltaTable(uri).version())
    return int(lance.dataset(uri).version)


def _files(uri: str) -> set[str]:
    return {
        path.name
        for path in Path(uri).rglob("*")
        if path.suffix in (".lance", ".parquet") and "_delta_log" not in str(path)
    }


def test_a_batch_for_a_branch_that_is_gone_makes_no_table_in_its_place(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [0], "s": ["x0"]}), uri)
    branch = esker.dataset(uri).create_branch("b", 1).uri
    Batch(branch, SCHEMA, QUERY, 0).run(_rows(1))
    assert _there(branch) == [0, 1]
    esker.dataset(uri).branches.delete("b")
    for complete in (False, True):
        with pytest.raises(NotFoundError, match="expected the branch b of the table at"):
            Batch(branch, SCHEMA, QUERY, 1, complete=complete, tableFormat=kind).run(_rows(2))
    with pytest.raises(NotFoundError, match="expected the branch b of the table at"):
        wrote(branch, SCHEMA, _rows(2), tableFormat=kind)
    assert esker.dataset(uri).create_branch("b", 1).version == 1


def test_a_batch_is_there_once_however_often_it_runs(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    for number, rows in enumerate((_rows(0, 1), _rows(2))):
        for _ in range(3):
            Batch(uri, SCHEMA, QUERY, number, tableFormat=kind).run(rows)
    assert _there(uri) == [0, 1, 2]
    assert len(_files(uri)) == 2
    # Another checkpoint is another application.
    Batch(uri, SCHEMA, "another", 0, tableFormat=kind).run(_rows(0))
    assert _there(uri) == [0, 0, 1, 2]
    if kind == "delta":
        assert deltalake.DeltaTable(uri).transaction_version(QUERY) == 1


def test_properties_of_a_table_that_a_stream_makes_are_no_matter_to_its_later_batches(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    given: dict[str, Any] = {"tableFormat": "delta", "delta.enableChangeDataFeed": "TRUE"}
    for number in (0, 0, 1):
        Batch(uri, SCHEMA, QUERY, number, **given).run(_rows(number))
    assert _there(uri) == [0, 1]
    # Others may set them otherwise since.
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    before = _files(uri)
    with pytest.raises(InvalidArgumentError, match="a new table for the properties delta.enableChange"):
        Batch(uri, SCHEMA, "another", 0, **given).run([{"id": 2, "s": "x" * sink.SMALL_BYTES * 2}], _rows(3))
    assert _files(uri) == before
    Batch(uri, SCHEMA, QUERY, 2, **given).run(_rows(2))
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    Batch(uri, SCHEMA, "another", 0, **given).run(_rows(3))
    assert _there(uri) == [0, 1, 2, 3]


def test_a_batch_that_is_committed_while_another_run_of_it_writes(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    first, second = (Batch(uri, SCHEMA, QUERY, 1) for _ in range(2))
    staged = [each.staged([_rows(1), _rows(2)]) for each in (first, second)]
    second.commit(staged[1])
    before = _files(uri)
    first.commit(staged[0])
    assert _there(uri) == [0, 1, 2]
    assert _files(uri) == before


def test_small_tasks_make_one_file(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0), [], _rows(1), _rows(2))
    assert (_there(uri), len(_files(uri))) == ([0, 1, 2], 1)
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    Batch(uri, SCHEMA, QUERY, 1).run(_rows(3), [], _rows(4))
    assert (_there(uri), len(_files(uri))) == ([0, 1, 2, 3, 4], 3)


@pytest.mark.parametrize("most", [1, 2])
def test_a_batch_has_no_more_files_than_it_may(
    tmp_path: Path, kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    for number in range(2):
        first = number * 10
        tasks = [_rows(*range(first, first + 5)), _rows(first + 5), [], _rows(first + 6, first + 7), _rows(first + 8)]
        for _ in range(2):
            Batch(uri, SCHEMA, QUERY, number, tableFormat=kind, maxFilesPerCommit=most).run(*tasks)
    assert _there(uri) == [*range(9), *range(10, 19)]
    found = len(_files(uri))
    # Files of a Delta table go into one for each partition.
    assert found == 2 * most if kind == "lance" else found == 2
    Batch(uri, SCHEMA, QUERY, 2, complete=True, maxFilesPerCommit=1).run(_rows(1), _rows(2))
    assert _there(uri) == [1, 2]


def test_files_of_partitions_are_joined_within_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    given: Any = {"tableFormat": "delta", "partitionColumns": "s", "maxFilesPerCommit": 1}
    Batch(uri, SCHEMA, QUERY, 0, **given).run(_rows(0, 1), _rows(1, 1), _rows(0, 2))
    assert (_there(uri), len(_files(uri))) == ([0, 0, 1, 1, 1, 2], 3)


def test_a_table_is_compacted_after_some_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    for number in range(5):
        Batch(uri, SCHEMA, QUERY, number, compactEvery=3).run(_rows(number))
    assert [fragment.count_rows() for fragment in lance.dataset(uri).get_fragments()] == [3, 1, 1]
    assert _there(uri) == list(range(5))
    # A batch is there, whatever becomes of the compaction after it.
    from esker.dataset.optimizer import DatasetOptimizer

    def failing(*_: Any, **__: Any) -> None:
        raise UnsupportedError("no")

    monkeypatch.setattr(DatasetOptimizer, "compact_files", failing)
    with pytest.warns(UserWarning, match="was not compacted: no"):
        Batch(uri, SCHEMA, QUERY, 5, compactEvery=3).run(_rows(5))
    assert _there(uri) == list(range(6))
    with pytest.raises(InvalidArgumentError, match="compactEvery is for Lance tables"):
        Batch(str(tmp_path / "d"), SCHEMA, QUERY, 0, tableFormat="delta", compactEvery=3).run(_rows(0))
    with pytest.raises(InvalidArgumentError, match="option maxFilesPerCommit is for streams"):
        wrote(uri, SCHEMA, _rows(9), maxFilesPerCommit=2)


def test_a_batch_without_rows_makes_a_table_but_no_version(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run([])
    assert _there(uri) == []
    version = _version(uri)
    Batch(uri, SCHEMA, QUERY, 1).run([], [])
    assert _version(uri) == version
    Batch(uri, SCHEMA, QUERY, 2).run(_rows(1))
    Batch(uri, SCHEMA, QUERY, 3).commit([])
    assert _there(uri) == [1]


def test_complete_mode_replaces_all_rows(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    for number, rows in enumerate((_rows(0, 1), _rows(2), [], _rows(4))):
        for _ in range(2):
            Batch(uri, SCHEMA, QUERY, number, complete=True, tableFormat=kind).run(rows)
        assert _there(uri) == [row["id"] for row in rows]
    assert _version(uri) == (4 if kind == "lance" else 3)


def test_others_write_between_batches(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1)])
    wrote(uri, SCHEMA, _rows(7))
    batch.commit(messages)
    Batch(uri, SCHEMA, QUERY, 1).run(_rows(1))
    assert _there(uri) == [0, 1, 7]


@pytest.fixture
def faulty() -> Iterator[dict[str, Any]]:
    state: dict[str, Any] = {"watch": None}

    def open_store(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        def watch(verb: str, path: str) -> str | None:
            found: str | None = state["watch"](verb, path) if state["watch"] else None
            return found

        return FaultStore(Store(uri.removeprefix("streamfault://"), durable=False), "", watch=watch).store

    register("streamfault", open_store)
    yield state
    state["watch"] = None


@pytest.mark.parametrize("fault", ["fail", "lose_reply"])
@pytest.mark.parametrize("reads", [False, True])
def test_a_commit_that_fails_or_whose_reply_is_lost(
    tmp_path: Path, kind: str, faulty: dict[str, Any], fault: str, reads: bool
) -> None:
    """The put of the log entry fails or its reply is lost, and the log can be read afterwards, or not."""
    path = str(tmp_path / "t")
    Batch(path, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    uri = f"streamfault://{path}"
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1, 2)])
    hit: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if path.startswith(LOGS) and "put" in verb:
            hit.append(path)
            return fault
        return "fail" if hit and not reads else None

    faulty["watch"] = watch
    try:
        batch.commit(messages)
        landed = True
    except (EskerError, CommitStateUnknownError):
        landed = False
    faulty["watch"] = None
    assert hit
    assert _there(path) == ([0, 1, 2] if fault == "lose_reply" else [0])
    assert landed == (fault == "lose_reply" and reads)
    # Spark runs the batch again from its checkpoint.
    Batch(uri, SCHEMA, QUERY, 1).run(_rows(1, 2))
    assert _there(path) == [0, 1, 2]


def test_a_batch_of_which_a_task_failed_leaves_no_files(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    batch = Batch(uri, SCHEMA, QUERY, 1)
    messages = batch.staged([_rows(1), _rows(2)])
    assert len(_files(uri)) == 3
    batch.abort([*messages, None])
    assert len(_files(uri)) == 1
    assert _there(uri) == [0]


def test_rows_that_do_not_fit_make_no_version(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    with pytest.raises(SchemaMismatchError, match="other"):
        Batch(uri, _wider(), QUERY, 1)
    if kind == "delta":
        DeltaTable(uri).alter.add_constraint({"small": "id < 5"})
        monkeypatch.setattr(sink, "SMALL_BYTES", 40)
        with pytest.raises(EskerError, match="small"):
            # The rows of one task are in a file already when those of the other are refused.
            Batch(uri, SCHEMA, QUERY, 1).run(_rows(1, 2, 3, 4), _rows(9))
        assert (_there(uri), len(_files(uri))) == ([0], 1)


def _wider() -> T.StructType:
    return T.StructType([*SCHEMA.fields, T.StructField("other", T.LongType())])


def test_options_that_are_not_for_streams(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for name in ("txnAppId", "saveMode", "replaceWhere", "partitionOverwriteMode"):
        options: dict[str, Any] = {name: "append"}
        with pytest.raises(InvalidArgumentError, match=f"{name} is for writes of a DataFrame"):
            Batch(uri, SCHEMA, QUERY, 0, tableFormat="delta", **options)
    with pytest.raises(InvalidArgumentError, match="tableFormat"):
        Batch(uri, SCHEMA, QUERY, 0, tabelFormat="delta")
    Batch(uri, SCHEMA, QUERY, 0, checkpointLocation="x", queryName="q").run(_rows(1))
    assert _there(uri) == [1]


def test_the_id_of_the_query_is_in_its_checkpoint_if_tasks_do_not_know_it(tmp_path: Path, kind: str) -> None:
    uri, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    given: dict[str, Any] = {"tableFormat": kind, "checkpointLocation": str(checkpoint)}
    with pytest.raises(UnsupportedError, match="no file metadata"):
        Batch(uri, SCHEMA, None, 0, **given).run(_rows(0))
    (checkpoint / "metadata").write_text(f'{{"id":"{QUERY}"}}')
    for _ in range(2):
        Batch(uri, SCHEMA, None, 0, **given).run(_rows(0))
    Batch(uri, SCHEMA, QUERY, 0).run(_rows(0))
    assert _there(uri) == [0]
    with pytest.raises(UnsupportedError, match="checkpointLocation"):
        Batch(uri, SCHEMA, None, 1).run(_rows(1))


def test_a_vector_stays_a_vector(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    schema = T.StructType().add("v", T.ArrayType(T.FloatType()))
    for number in range(2):
        Batch(uri, schema, QUERY, number, vectors="v=2").run([{"v": [1.0, 2.0]}])
    found = lance.dataset(uri).to_table()
    assert found.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert found["v"].to_pylist() == [[1.0, 2.0]] * 2


def test_columns_are_the_same_in_any_case(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    Batch(uri, SCHEMA, QUERY, 0, tableFormat=kind).run(_rows(0))
    shouted = T.StructType().add("S", T.StringType()).add("ID", T.LongType())
    Batch(uri, shouted, QUERY, 1).run([{"S": "x1", "ID": 1}])
    wrote(uri, shouted, [{"S": "x2", "ID": 2}])
    assert _there(uri) == [0, 1, 2]
    both = T.StructType().add("id", T.LongType()).add("ID", T.LongType())
    with pytest.raises(SchemaMismatchError, match="ID"):
        Batch(uri, both, QUERY, 2)
