"""Change feeds over versions with other columns: right values, or an error that says where they end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import UnsupportedError

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {**FEED, "delta.columnMapping.mode": "name"}


def _feed(table: Any, **asked: Any) -> list[tuple[Any, ...]]:
    found = pa.table(table.load_cdf(**asked).read_all()).drop_columns(["_commit_timestamp"])
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


def _actions(path: Path, version: int) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _commit(path: Path, version: int, actions: list[dict[str, Any]]) -> None:
    entry = path / "_delta_log" / f"{version:020}.json"
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _replaced_without_mapping(path: Path) -> None:
    """A mapped table of which version 2 replaces all by what is not mapped, as REPLACE TABLE does."""
    write_deltalake(path, pa.table({"a": [1], "b": ["x"]}), configuration=MAPPED)
    write_deltalake(path, pa.table({"a": [2], "b": ["y"]}), mode="append")
    plain = path.parent / "plain"
    write_deltalake(plain, pa.table({"a": [3], "b": ["z"]}), configuration=FEED)
    added = [action["add"] for version in (0, 1) for action in _actions(path, version) if "add" in action]
    kept = [action for action in _actions(plain, 0) if "add" in action or "metaData" in action]
    for action in kept:
        if "add" in action:
            shutil.copy(plain / action["add"]["path"], path)
    gone = {"dataChange": True, "deletionTimestamp": 1, "partitionValues": {}, "extendedFileMetadata": True}
    _commit(path, 2, [*({"remove": {**gone, "path": add["path"], "size": add["size"]}} for add in added), *kept])


def test_rows_of_mapped_columns_are_no_nulls_once_the_table_is_not_mapped(tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    _replaced_without_mapping(path)
    for start in (0, 1, 2):
        with pytest.raises(UnsupportedError, match=r"before version 2 .* column mapping .* version=1\)"):
            _feed(DeltaTable(path), starting_version=start)
    assert _feed(DeltaTable(path, version=1)) == [(1, "x", "insert", 0), (2, "y", "insert", 1)]
    write_deltalake(path, pa.table({"a": [4], "b": ["w"]}), mode="append")
    assert _feed(DeltaTable(path), starting_version=3) == [(4, "w", "insert", 3)]


@pytest.mark.parametrize("partition_by", [None, ["a"]])
def test_columns_that_exchange_their_names_keep_their_values(tmp_path: Path, partition_by: list[str] | None) -> None:
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": [10], "c": ["k"]})
    write_deltalake(tmp_path, rows, configuration=MAPPED, partition_by=partition_by)
    DeltaTable(tmp_path).update({"b": "b + 1"})
    (metadata,) = [action for action in _actions(tmp_path, 0) if "metaData" in action]
    schema = json.loads(metadata["metaData"]["schemaString"])
    first, second, _ = schema["fields"]
    # What was `a` has texts now.
    first["name"], first["type"], second["name"] = "b", "string", "a"
    metadata["metaData"]["schemaString"] = json.dumps(schema)
    metadata["metaData"]["partitionColumns"] = ["b"] if partition_by else []
    _commit(tmp_path, 2, [metadata])
    assert DeltaTable(tmp_path).load_cdf().schema.names[:3] == ["b", "a", "c"]
    assert _feed(DeltaTable(tmp_path)) == [
        ("1", 10, "k", "insert", 0),
        ("1", 10, "k", "update_preimage", 1),
        ("1", 11, "k", "update_postimage", 1),
    ]


OTHERS: dict[str, tuple[pa.Table, pa.Table]] = {
    "added": (pa.table({"a": [1]}), pa.table({"a": [2], "b": ["x"]})),
    "dropped": (pa.table({"a": [1], "b": ["x"]}), pa.table({"a": [2]})),
    "to numbers": (pa.table({"a": ["7"]}), pa.table({"a": [5]})),
    "to texts": (pa.table({"a": [7]}), pa.table({"a": ["5"]})),
    "in a struct": (pa.table({"s": [{"a": 1}]}), pa.table({"s": [{"a": 2, "b": "x"}]})),
}


@pytest.mark.parametrize("case", OTHERS)
def test_rows_have_the_columns_of_the_open_version_as_in_deltalake(tmp_path: Path, case: str) -> None:
    before, after = OTHERS[case]
    write_deltalake(tmp_path, before, configuration=FEED)
    write_deltalake(tmp_path, after, mode="overwrite", schema_mode="overwrite")
    for start in (0, 1):
        ours, theirs = (
            _feed(table(str(tmp_path)), starting_version=start) for table in (DeltaTable, deltalake.DeltaTable)
        )
        assert ours == theirs


def test_values_that_a_column_no_longer_has_are_told_with_where_they_end(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": ["x"]}), configuration=FEED)
    write_deltalake(tmp_path, pa.table({"a": [1]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(UnsupportedError, match=r"other columns before version 1.*'x'.*version=0\)"):
        _feed(DeltaTable(tmp_path))
    assert _feed(DeltaTable(tmp_path, version=0)) == [("x", "insert", 0)]


def _feed_turned_on_later(path: Path, *, checkpoint: int) -> None:
    """Version 2 rewrites a file, version 3 turns the feed on; what is older than a checkpoint is gone."""
    write_deltalake(path, pa.table({"a": [1, 2, 3]}))
    write_deltalake(path, pa.table({"a": [4]}), mode="append")
    DeltaTable(path).update({"a": "9"}, predicate="a = 1")
    DeltaTable(path).alter.set_table_properties(FEED)
    write_deltalake(path, pa.table({"a": [5]}), mode="append")
    DeltaTable(path, version=checkpoint).create_checkpoint()
    (path / "_delta_log" / f"{0:020}.json").unlink()


def test_a_feed_that_was_off_is_not_on_where_the_version_before_was_cleaned_up(tmp_path: Path) -> None:
    path = tmp_path / "later"
    _feed_turned_on_later(path, checkpoint=1)
    for start in (1, 2):
        with pytest.raises(UnsupportedError, match=f"version {start} was written without a change data feed"):
            _feed(DeltaTable(path), starting_version=start)
    assert _feed(DeltaTable(path), starting_version=3) == [(5, "insert", 4)]


def test_what_a_feed_was_before_anything_that_is_left_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    _feed_turned_on_later(path, checkpoint=4)
    for start in (1, 2):
        with pytest.raises(UnsupportedError, match=rf"version {start} .* not known.* before version 3 .*start with"):
            _feed(DeltaTable(path), starting_version=start)
    assert _feed(DeltaTable(path), starting_version=3) == [(5, "insert", 4)]
