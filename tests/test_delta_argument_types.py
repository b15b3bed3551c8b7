"""Arguments of alterations and writes that are none, and what a version of the protocol brings."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import esker.delta
from esker.delta import (
    ColumnProperties,
    DeltaTable,
    Field,
    PrimitiveType,
    Schema,
    WriterProperties,
    write_deltalake,
)
from esker.exceptions import InvalidArgumentError, InvalidTypeError

ROWS = pa.table({"i": [1, 2]})
REFUSED: dict[str, tuple[Callable[[Any], object], type[Exception], str]] = {
    "a text as a column": (lambda table: table.alter.add_columns("z"), TypeError, "expected a Field"),
    "no value": (lambda table: table.alter.set_table_properties({"delta.appendOnly": None}), TypeError, "as a text"),
    "a boolean": (lambda table: table.alter.set_table_properties({"delta.appendOnly": True}), TypeError, "as a text"),
    "no features": (
        lambda table: table.alter.add_feature([], allow_protocol_versions_increase=True),
        InvalidArgumentError,
        "No features provided",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_argument_is_refused_as_by_deltalake(tmp_path: Path, name: str) -> None:
    act, error, words = REFUSED[name]
    deltalake.write_deltalake(tmp_path, ROWS)
    with pytest.raises(error, match=words):
        act(DeltaTable(tmp_path))
    with pytest.raises((TypeError, deltalake.exceptions.DeltaError)):
        act(deltalake.DeltaTable(tmp_path))
    assert DeltaTable(tmp_path).version() == 0


def test_a_property_of_a_new_table_is_a_text(tmp_path: Path) -> None:
    for library in (esker.delta, deltalake):
        configuration: Any = {"delta.appendOnly": True}
        with pytest.raises(TypeError):
            library.write_deltalake(tmp_path, ROWS, configuration=configuration)
        with pytest.raises(TypeError):
            library.DeltaTable.create(tmp_path, ROWS.schema, configuration=configuration)


@pytest.mark.parametrize("data", [None, 5, {"i": [1]}, object()], ids=lambda data: type(data).__name__)
def test_what_is_no_data_is_refused_as_by_deltalake(tmp_path: Path, data: Any) -> None:
    for library in (esker.delta, deltalake):
        with pytest.raises(ValueError, match="__arrow_c_|Arrow PyCapsule interface"):
            library.write_deltalake(tmp_path / "new", data)
        library.write_deltalake(tmp_path, ROWS, mode="overwrite")
        with pytest.raises(ValueError, match="__arrow_c_|Arrow PyCapsule interface"):
            library.DeltaTable(tmp_path).merge(data, "true")
    assert issubclass(InvalidTypeError, TypeError)
    assert not DeltaTable.is_deltatable(tmp_path / "new")


def test_a_schema_that_is_none_is_refused_as_by_deltalake(tmp_path: Path) -> None:
    for library in (esker.delta, deltalake):
        nothing: Any = 5
        with pytest.raises(ValueError, match="__arrow_c_schema__|Arrow PyCapsule interface"):
            library.DeltaTable.create(tmp_path, nothing)
    assert not DeltaTable.is_deltatable(tmp_path)


def test_fields_and_types_are_arrow_to_other_libraries() -> None:
    for library in (esker.delta, deltalake):
        kind = library.schema.ArrayType(library.schema.PrimitiveType("long"), False)
        field: Any = library.Field("a", kind, False)
        assert pa.field(field).equals(pa.field("a", pa.list_(pa.field("element", pa.int64(), False)), False))
        types: list[Any] = [
            kind,
            library.schema.MapType("string", "date"),
            library.schema.PrimitiveType("decimal(5,2)"),
        ]
        assert [pa.field(each).type for each in types] == [
            pa.list_(pa.field("element", pa.int64(), False)),
            pa.map_(pa.string(), pa.date32()),
            pa.decimal128(5, 2),
        ]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.WriterProperties(default_column_properties=m.ColumnProperties(statistics_enabled="some")),
        lambda m: m.WriterProperties(max_row_group_size=0),
        lambda m: m.WriterProperties(column_properties={"i": "PLAIN"}),
    ],
)
def test_properties_of_a_writer_that_are_none_are_refused_as_by_deltalake(tmp_path: Path, make: Any) -> None:
    for library in (esker.delta, deltalake):
        # deltalake panics for one of them, with an exception of its own.
        expected = InvalidArgumentError if library is esker.delta else BaseException
        with pytest.raises(expected, match=r"statistics|max.row.group|failed to extract|ColumnProperties"):
            library.write_deltalake(tmp_path, ROWS, writer_properties=make(library))
    assert not DeltaTable.is_deltatable(tmp_path)


def test_statistics_of_columns_are_named_in_any_case(tmp_path: Path) -> None:
    given: Any = "none"
    column = ColumnProperties(statistics_enabled=given)
    write_deltalake(tmp_path, ROWS, writer_properties=WriterProperties(column_properties={"i": column}))
    file = pq.ParquetFile(DeltaTable(tmp_path).file_uris()[0])
    assert not file.metadata.row_group(0).column(0).is_stats_set


WRITES: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"target_file_size": 0}, ValueError),
    ({"target_file_size": -1}, ValueError),
    ({"target_file_size": 1.5}, TypeError),
    ({"mode": None}, TypeError),
]


@pytest.mark.parametrize(("given", "error"), WRITES, ids=str)
def test_what_is_no_argument_of_a_write_is_refused(
    tmp_path: Path, given: dict[str, Any], error: type[Exception]
) -> None:
    for library in (esker.delta, deltalake):
        with pytest.raises((error, OverflowError)):
            library.write_deltalake(tmp_path, ROWS, **given)
    assert not DeltaTable.is_deltatable(tmp_path)


@pytest.mark.parametrize("versions", [{"delta.minReaderVersion": "3"}, {"delta.minWriterVersion": "7"}], ids=str)
def test_a_protocol_version_brings_what_readers_look_for(tmp_path: Path, versions: dict[str, str]) -> None:
    deltalake.write_deltalake(tmp_path / "there", ROWS)
    DeltaTable(tmp_path / "there").alter.set_table_properties(versions)
    esker.delta.write_deltalake(tmp_path / "new", ROWS, configuration=versions)
    for place in ("there", "new"):
        esker.delta.write_deltalake(tmp_path / place, ROWS, mode="append")
        theirs = deltalake.DeltaTable(tmp_path / place)
        assert theirs.to_pyarrow_table().num_rows == 4
        protocol = theirs.protocol()
        assert protocol.min_writer_version == 7
        assert sorted(protocol.writer_features or []) == ["appendOnly", "invariants"]
        assert protocol.reader_features in (None, [])


NO_TRANSACTIONS: list[tuple[Any, Any, Any]] = [
    (1, 1, None),
    ("a", "x", None),
    ("a", 1.5, None),
    ("a", 2**63, None),
    ("a", 1, "x"),
    (b"a", 1, None),
]


@pytest.mark.parametrize(("app_id", "version", "updated"), NO_TRANSACTIONS)
def test_what_is_no_transaction_does_not_get_into_a_log(
    tmp_path: Path, app_id: Any, version: Any, updated: Any
) -> None:
    for library in (esker.delta, deltalake):
        with pytest.raises((TypeError, InvalidArgumentError, OverflowError)):
            library.Transaction(app_id, version, updated)
    if updated is None:
        with pytest.raises((TypeError, InvalidArgumentError)):
            esker.delta.write_deltalake(tmp_path, ROWS, txn_app_id=app_id, txn_version=version)
    assert not DeltaTable.is_deltatable(tmp_path)


def test_numbers_of_transactions_are_any_integers(tmp_path: Path) -> None:
    number: Any = pa.scalar(7).as_py()
    for version in (number, True, 2**63 - 1):
        given = esker.delta.CommitProperties(app_transactions=[esker.delta.Transaction("a", version)])
        esker.delta.write_deltalake(tmp_path, ROWS, mode="append", commit_properties=given)
        assert DeltaTable(tmp_path).transaction_version("a") == version
        assert deltalake.DeltaTable(tmp_path).transaction_version("a") == version


@pytest.mark.parametrize(
    "given", [{"starting_version": 1.5}, {"ending_version": "1"}, {"starting_timestamp": 1}], ids=str
)
def test_what_is_no_range_of_a_feed_is_refused_at_once(tmp_path: Path, given: dict[str, Any]) -> None:
    deltalake.write_deltalake(tmp_path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    for table in (DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)):
        with pytest.raises(TypeError):
            table.load_cdf(**given)


def test_times_have_letters_of_any_case(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, ROWS)
    for table in (DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)):
        table.load_as_version("2100-01-01t00:00:00z")
        assert table.version() == 0


@pytest.mark.parametrize("name", ["decimal", "decimal()", "decimal(39,1)", "char(3)", "varchar(3)", "int"])
def test_a_type_that_deltalake_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="invalid type string"):
        deltalake.schema.PrimitiveType(name)
    with pytest.raises(ValueError, match="expected a type"):
        PrimitiveType(name)
    with pytest.raises(ValueError, match="expected a type"):
        Field("x", name)


@pytest.mark.parametrize("name", ["decimal", "char(3)", "varchar(3)"])
def test_a_type_that_spark_alone_reads_is_read_and_kept(tmp_path: Path, name: str) -> None:
    rows = pa.table({"x": pa.array([], pa.decimal128(10, 0) if name == "decimal" else pa.string())})
    write_deltalake(tmp_path, rows)
    entry = tmp_path / "_delta_log" / f"{0:020}.json"
    before = DeltaTable(tmp_path).schema().fields[0].type.type
    entry.write_text(entry.read_text().replace(f'\\"{before}\\"', f'\\"{name}\\"'))
    written = pa.Table.from_pylist([{"x": Decimal(7) if name == "decimal" else "seven"}], rows.schema)
    write_deltalake(tmp_path, written, mode="append")
    table = pickle.loads(pickle.dumps(DeltaTable(tmp_path)))
    assert table.schema().fields[0].type == Schema.from_json(table.schema().to_json()).fields[0].type
    assert table.schema().to_json().count(f'"{name}"') == 1
    assert table.to_pyarrow_table().equals(written)
