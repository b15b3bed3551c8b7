"""Arrow's extension types: written as what they are stored as, and read from tables that keep their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, QueryBuilder, write_deltalake

COLUMNS: dict[str, pa.Array] = {
    "uuid": pa.array([b"0" * 16, None], pa.uuid()),
    "json": pa.array(['{"a":1}', None], pa.json_()),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2], None], pa.list_(pa.int32(), 2))
    ),
}


def _rows(column: pa.Array, nested: bool) -> pa.Table:
    return pa.table({"i": [1, 2], "x": pa.StructArray.from_arrays([column], ["y"]) if nested else column})


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_what_it_is_stored_as(tmp_path: Path, name: str, nested: bool) -> None:
    given = _rows(COLUMNS[name], nested)
    stored = COLUMNS[name].storage.to_pylist()
    expected: list[Any] = [{"y": value} for value in stored] if nested else stored
    write_deltalake(tmp_path, given)
    write_deltalake(tmp_path, given, mode="append")
    write_deltalake(tmp_path, given, mode="overwrite", schema_mode="overwrite")
    DeltaTable(tmp_path).merge(
        given, "t.i = s.i", source_alias="s", target_alias="t"
    ).when_matched_update_all().execute()
    for table in (DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)):
        found = table.to_pyarrow_table().sort_by("i")["x"]
        assert found.to_pylist() == expected
        assert not isinstance(found.type, pa.BaseExtensionType)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ["json", "bool8"])
def test_a_table_that_keeps_the_names_of_types_is_read_queried_and_written(
    tmp_path: Path, name: str, nested: bool
) -> None:
    given = _rows(COLUMNS[name], nested)
    deltalake.write_deltalake(tmp_path, given)
    assert DeltaTable(tmp_path).to_pyarrow_table() == deltalake.DeltaTable(tmp_path).to_pyarrow_table()
    write_deltalake(tmp_path, given, mode="append")
    query = QueryBuilder().register("t", DeltaTable(tmp_path))
    assert query.execute("select * from t where i = 1").read_all().num_rows == 2
    assert query.execute("select i from t").read_all()["i"].to_pylist() == [1, 2, 1, 2]
    stored = COLUMNS[name].storage.to_pylist()
    found = query.execute("select x from t where i = 1").read_all().to_pylist()
    assert [row["x"]["y"] if nested else row["x"] for row in found] == [stored[0]] * 2
