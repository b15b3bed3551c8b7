"""Streams of Delta tables whose first rows are not all read when columns change: the rest has the columns of then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import esker.delta
from esker.exceptions import CorruptFileError, SchemaMismatchError
from tests.delta_logs import commit, metadata
from tests.spark.streams import Query
from tests.spark.test_stream_columns import EXCHANGE, _plain, _rename_mapped

_MAPPED = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
Row = dict[str, Any]


def _made(uri: str, configuration: dict[str, str], **options: Any) -> None:
    """Two files: one row each."""
    for n in range(2):
        rows = pa.table({"id": [n], "a": [f"A{n}"], "b": [n * 10]})
        esker.delta.write_deltalake(
            uri, rows, mode="append", configuration=configuration if n == 0 else None, **(options if n == 0 else {})
        )


def _rest(query: Query, first: list[Row] | None, uri: str) -> None:
    """Checks that what follows after a first batch is the other rows of the table, as it is now."""
    assert first is not None
    read = {row["id"] for row in first}
    expected = [row for row in esker.delta.DeltaTable(uri).to_pyarrow_table().to_pylist() if row["id"] not in read]
    assert expected
    assert _plain(query.rows()) == expected


def _add(uri: str) -> None:
    esker.delta.DeltaTable(uri).alter.add_columns([esker.delta.Field("c", "long")])


def _rename(uri: str) -> None:
    _rename_mapped(Path(uri), "a", "x")


def _exchange(uri: str) -> None:
    for old, new in EXCHANGE:
        _rename_mapped(Path(uri), old, new)


@pytest.mark.parametrize("feed", [False, True])
@pytest.mark.parametrize("partition_by", [None, ["a"], ["b", "a"]], ids=["plain", "by text", "by both"])
@pytest.mark.parametrize("change", [_add, _rename, _exchange], ids=["added", "renamed", "text and number exchanged"])
def test_the_rest_of_a_snapshot_has_the_columns_of_a_restart(
    change: Callable[[str], None], partition_by: list[str] | None, feed: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _made(uri, _MAPPED, partition_by=partition_by)
    query = Query(uri, maxFilesPerTrigger=1, **({"readChangeFeed": "true"} if feed else {}))
    first = query.batch()
    change(uri)
    query.start()
    _rest(query, first, uri)


def test_a_batch_that_did_not_finish_is_read_again_under_new_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _made(uri, _MAPPED)
    query = Query(uri)
    query.batch()
    start, end = {**query.offset, "index": 0, "is_snapshot": True}, query.offset  # type: ignore[dict-item]
    _exchange(uri)
    query.start()
    assert end is not None
    found = sorted(query.between(start, end), key=lambda row: row["id"])
    assert found == [{"id": 0, "b": "A0", "a": 0}, {"id": 1, "b": "A1", "a": 10}]


def test_a_filter_may_ask_for_a_column_that_the_snapshot_lacks(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _made(uri, {})
    query = Query(uri, maxFilesPerTrigger=1)
    first = query.batch()
    _add(uri)
    query.start(filter="c IS NULL", columns="id")
    assert first is not None
    assert query.rows() == [{"id": 1 - first[0]["id"]}]


def test_rows_that_were_deleted_before_stay_so_under_new_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    configuration = {**_MAPPED, "delta.enableDeletionVectors": "true"}
    for n in range(2):
        rows = pa.table({"id": range(n * 4, n * 4 + 4), "a": [f"A{n}"] * 4, "b": [n] * 4})
        esker.delta.write_deltalake(uri, rows, mode="append", configuration=configuration if n == 0 else None)
    esker.delta.DeltaTable(uri).delete("id % 4 = 1")
    query = Query(uri, maxFilesPerTrigger=1)
    first = query.batch()
    _exchange(uri)
    query.start()
    assert first is not None
    assert len(first) == 3
    _rest(query, first, uri)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (["b"], None, pa.int64()),
        (None, ["b"], pa.int64()),
        (["b"], ["a"], pa.int64()),
        (["b"], ["b"], pa.string()),
        (["b"], None, pa.float64()),
    ],
    ids=["no more", "only now", "others", "other type", "other type and no more"],
)
def test_columns_by_which_the_table_is_partitioned_no_more_keep_their_values(
    before: list[str] | None, after: list[str] | None, kind: pa.DataType, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _made(uri, {}, partition_by=before)
    query = Query(uri, maxFilesPerTrigger=1, skipChangeCommits="true")
    first = query.batch()
    rows = pa.table({"id": [7], "a": ["A7"], "b": pa.array([70], pa.int64()).cast(kind)})
    deltalake.write_deltalake(uri, rows, mode="overwrite", schema_mode="overwrite", partition_by=after or [])
    query.start()
    assert first is not None
    n = 1 - first[0]["id"]
    assert query.rows() == [{"id": n, "a": f"A{n}", "b": pa.scalar(n * 10).cast(kind).as_py()}]


def test_a_snapshot_of_mapped_files_is_refused_once_the_table_has_no_mapping(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _made(uri, _MAPPED)
    query = Query(uri, maxFilesPerTrigger=1)
    query.batch()
    entries = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in entries for line in path.read_text().splitlines()]
    there = [action["metaData"] for action in actions if "metaData" in action][-1]
    schema = json.loads(there["schemaString"])
    for field in schema["fields"]:
        field["metadata"] = {}
    without = {**there, "schemaString": json.dumps(schema), "configuration": {}}
    commit(tmp_path / "t", len(entries), [metadata(**without)])
    query.start()
    with pytest.raises(SchemaMismatchError, match="column mapping"):
        query.rows()


INT, TEXT, STRUCT = pa.array([5]), pa.array(["q"]), pa.array([{"x": 1}])


@pytest.mark.parametrize("feed", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "partitioned"),
    [
        (TEXT, INT, False),
        (STRUCT, INT, False),
        (INT, STRUCT, False),
        (pa.array([2**40]), INT.cast(pa.int8()), False),
        (pa.array([{"x": "q"}]), STRUCT, False),
        (TEXT, INT, True),
        (TEXT, STRUCT, True),
        (TEXT, pa.array([[1]], pa.list_(pa.field("element", pa.int64()))), True),
    ],
    ids=["text", "struct", "number", "wide", "field", "partition", "partition to struct", "partition to list"],
)
def test_values_of_a_type_that_an_overwrite_has_replaced_are_no_corrupt_file(
    before: pa.Array, after: pa.Array, partitioned: bool, feed: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    configuration = {"delta.enableChangeDataFeed": "true"}
    by = ["a"] if partitioned else None
    rows = pa.table({"id": [0], "a": before})
    deltalake.write_deltalake(uri, rows, configuration=configuration, partition_by=by)
    query = Query(uri)
    query.start()
    start = json.loads(json.dumps(query.reader.initialOffset()))
    rows = pa.table({"id": [1], "a": after})
    again_by = by if not pa.types.is_nested(after.type) else []
    deltalake.write_deltalake(uri, rows, mode="overwrite", schema_mode="overwrite", partition_by=again_by)
    again = Query(uri, **({"readChangeFeed": "true"} if feed else {"skipChangeCommits": "true"}))
    told = f"'a' .* had the type {re.escape(str(before.type))} in version 0 and has {re.escape(str(after.type))} now"
    for offset in (None, start):
        again.start(**({"startingVersion": 0} if offset is None else {}))
        again.offset = offset
        with pytest.raises(SchemaMismatchError, match=told):
            again.rows()


def test_a_file_that_was_never_of_its_columns_type_is_corrupt(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.delta.write_deltalake(uri, pa.table({"id": [1]}))
    file = next(Path(uri).glob("*.parquet"))
    pq.write_table(pa.table({"id": ["q"]}), file)
    with pytest.raises(CorruptFileError, match="'id': expected values that fit int64"):
        Query(uri).rows()
