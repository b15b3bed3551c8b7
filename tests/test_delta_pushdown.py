"""Filters that pyarrow, DuckDB and polars push into the dataset of a Delta table, on every type, in all its forms."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from esker.delta import DeltaTable, write_deltalake

DAYS = [dt.datetime(2024, 1, day, 5) for day in (1, 2, 3)]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [1, 2, 3]),
    "long": (pa.int64(), [1, 2, 3]),
    "float": (pa.float32(), [1.5, 2.5, 3.5]),
    "double": (pa.float64(), [1.5, 2.5, 3.5]),
    "bool": (pa.bool_(), [True, False, True]),
    "text": (pa.string(), ["a", "b", "c"]),
    "bytes": (pa.binary(), [b"a", b"b", b"c"]),
    "day": (pa.date32(), [day.date() for day in DAYS]),
    "time": (pa.timestamp("us", "UTC"), [day.replace(tzinfo=dt.UTC) for day in DAYS]),
    "clock": (pa.timestamp("us"), DAYS),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("2.50"), Decimal("3.50")]),
    "given as dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c"]),
}
FORMS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "large": {"as_large_types": True},
    "dictionaries": {"parquet_read_options": ds.ParquetReadOptions(dictionary_columns={"text", "given as dictionary"})},
}


def _rows() -> pa.Table:
    columns = {name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()}
    struct = pa.array(
        [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])
    )
    return pa.table({"id": [1, 2, 3], **columns, "struct": struct})


@pytest.fixture(scope="module", params=["ours", "views", "mapped", "vectors", "partitions"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("pushdown") / "t"
    more = pa.concat_tables([_rows(), _rows().set_column(0, "id", pa.array([9, 9, 9]))])
    if request.param == "ours":
        write_deltalake(path, _rows())
    elif request.param == "mapped":
        write_deltalake(path, _rows(), configuration={"delta.columnMapping.mode": "name"})
    elif request.param == "partitions":
        write_deltalake(path, _rows(), partition_by=["text", "day", "decimal", "time", "bool"])
    else:
        vectors = {"delta.enableDeletionVectors": "true"} if request.param == "vectors" else None
        deltalake.write_deltalake(path, more, configuration=vectors)
        deltalake.DeltaTable(path).delete("id = 9")
    return DeltaTable(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_filter_that_is_pushed_down_finds_its_row(table: DeltaTable, name: str, form: str) -> None:
    dataset = table.to_pyarrow_dataset(**FORMS[form])
    kind, values = COLUMNS[name]
    value = values[1]
    typed = pa.scalar(value, kind.value_type if pa.types.is_dictionary(kind) else kind)
    for condition in (pc.field(name) == value, pc.field(name) == typed, pc.field(name).isin([value])):
        assert dataset.to_table(filter=condition)["id"].to_pylist() == [2]
        assert table.to_pyarrow_table(filters=condition)["id"].to_pylist() == [2]
    for where in ("= ?", "in (?)", "is not distinct from ?"):
        found = duckdb.connect().execute(f'select id from dataset where "{name}" {where}', [value]).fetchall()
        assert found == [(2,)]
    column = polars.col(name)
    for lazily in (column == value, column.is_in([value]), column.eq(value) & column.is_not_null()):
        assert polars.scan_pyarrow_dataset(dataset).filter(lazily).collect()["id"].to_list() == [2]


@pytest.mark.parametrize("form", FORMS)
def test_a_filter_on_a_field_of_a_struct_finds_its_row(table: DeltaTable, form: str) -> None:
    dataset = table.to_pyarrow_dataset(**FORMS[form])
    assert dataset.to_table(filter=pc.field("struct", "x") == 2)["id"].to_pylist() == [2]
    assert duckdb.connect().execute("select id from dataset where struct.y = 'b'").fetchall() == [(2,)]
    lazily = polars.col("struct").struct.field("x") == 2
    assert polars.scan_pyarrow_dataset(dataset).filter(lazily).collect()["id"].to_list() == [2]
