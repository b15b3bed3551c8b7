"""The columns that reads are asked for: fields within columns, names twice, names that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError

ROWS = pa.table(
    {
        "i": [1, 2, 3],
        "s": pa.array([{"x": 1, "y": {"z": "a"}}, None, {"x": None, "y": None}]),
        "a.b": [4, 5, 6],
        "p": ["u", "v", None],
    }
)
ASKED: list[Any] = [["s.x"], ["i", "s.y.z"], ["s.x", "s"], ["a.b"], ["s.y"], ["i", "i"], [], ["p", "s.x"]]
CONFIGURATIONS: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    {"delta.columnMapping.mode": "name"},
]


def _table(path: Path, configuration: dict[str, str]) -> DeltaTable:
    table = DeltaTable.create(path, ROWS.schema, partition_by=["p"], configuration=configuration)
    write_deltalake(table, ROWS, mode="append")
    if "delta.enableDeletionVectors" in configuration:
        write_deltalake(table, ROWS.slice(1, 2).set_column(0, "i", pa.array([3, 9])), mode="append")
        table.delete("i = 9")
    return table


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*table.columns, strict=True)))


@pytest.mark.parametrize("asked", ASKED, ids=repr)
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=repr)
def test_a_field_of_a_column_is_a_column(tmp_path: Path, asked: list[str], configuration: dict[str, str]) -> None:
    table = _table(tmp_path, configuration)
    expected = ds.dataset(table.to_pyarrow_table()).to_table(columns=asked)
    for found in (table.to_pyarrow_table(columns=asked), table.scan(asked).read_all()):
        assert found.schema.names == expected.schema.names
        assert found.num_rows == expected.num_rows
        assert _rows(found) == _rows(expected)
    kept = table.to_pyarrow_table(columns=asked, filters="i = 1")
    assert kept.schema == found.schema
    if not configuration:
        theirs = deltalake.DeltaTable(tmp_path).to_pyarrow_table(columns=asked)
        assert theirs.schema == found.schema
        frame = deltalake.DeltaTable(tmp_path).to_pandas(columns=asked)
        assert list(table.to_pandas(columns=asked).columns) == list(frame.columns)


def test_a_feed_has_the_columns_asked_for(tmp_path: Path) -> None:
    table = _table(tmp_path, CONFIGURATIONS[1])
    found = table.load_cdf(columns=["s.x", "_change_type", "_change_type"]).read_all()
    assert found.schema.names == ["x", "_change_type", "_change_type"]
    assert found["x"].to_pylist().count(1) == 1


@pytest.mark.parametrize("name", ["s.nope", "nope", "p.x", "s.x.y", "S", "", "."])
def test_a_name_of_no_column_is_an_error(tmp_path: Path, name: str) -> None:
    table = _table(tmp_path, CONFIGURATIONS[1])
    for read in (table.to_pyarrow_table, table.to_pandas, table.scan, table.load_cdf):
        with pytest.raises(InvalidArgumentError, match=f"expected some of the columns .*found '{name}'"):
            read(columns=[name])


@pytest.mark.parametrize("name", [None, 1])
def test_a_name_is_a_text(tmp_path: Path, name: Any) -> None:
    table = _table(tmp_path, {})
    for library_table in (table, deltalake.DeltaTable(tmp_path)):
        with pytest.raises(TypeError):
            library_table.to_pyarrow_table(columns=[name])
