"""Every type, with nulls and without, in lengths around what is special, both ways between esker and pylance."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import esker
from tests.samples import TYPES, column, people, same, struct_column

VERSIONS = ["2.0", "2.1", "2.2"]
LENGTHS = [1, 8, 1023, 1024, 5000]
NULLS = [0.0, 0.3, 1.0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", TYPES)
def test_pylance_reads_what_esker_writes(name: str, nulls: float, version: str, tmp_path: Path) -> None:
    for length in LENGTHS:
        table = pa.table({"c": column(name, length, nulls=nulls)})
        uri = str(tmp_path / f"{length}.lance")
        written = esker.write_dataset(table, uri, data_storage_version=version)
        peer = lance.dataset(uri)
        assert peer.data_storage_version == written.data_storage_version == version
        same(table, peer.to_table())
        same(table, written.to_table())
        peer.validate()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", TYPES)
def test_esker_reads_what_pylance_writes(name: str, nulls: float, version: str, tmp_path: Path) -> None:
    for length in LENGTHS:
        table = pa.table({"c": column(name, length, nulls=nulls)})
        uri = str(tmp_path / f"{length}.lance")
        lance.write_dataset(table, uri, data_storage_version=version)
        same(table, esker.dataset(uri).to_table())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nulls", [0.0, 0.4])
def test_structs_cross_both_ways(nulls: float, version: str, tmp_path: Path) -> None:
    table = pa.table({"s": struct_column(1500, nulls=nulls), "n": range(1500)})
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    same(table, esker.write_dataset(table, ours, data_storage_version=version).to_table())
    same(table, lance.dataset(ours).to_table())
    lance.write_dataset(table, theirs, data_storage_version=version)
    same(table, esker.dataset(theirs).to_table())


@pytest.mark.parametrize("version", VERSIONS)
def test_all_types_in_one_table_over_many_files(version: str, tmp_path: Path) -> None:
    table = pa.table({name: column(name, 3000, nulls=0.2) for name in TYPES})
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    written = esker.write_dataset(table, ours, max_rows_per_file=700, data_storage_version=version)
    assert [fragment.count_rows() for fragment in written.get_fragments()] == [700, 700, 700, 700, 200]
    same(table, lance.dataset(ours).to_table())
    lance.write_dataset(table, theirs, data_storage_version=version, max_rows_per_file=700)
    same(table, esker.dataset(theirs).to_table())


def test_sliced_and_chunked_input_keeps_its_rows(uri: str) -> None:
    pieces = [people(100, start=s).slice(s % 7, 50) for s in range(0, 1000, 100)]
    table = pa.concat_tables(pieces)
    same(table, esker.write_dataset(table, uri).to_table())
    same(table, lance.dataset(uri).to_table())


def test_nullability_and_metadata_of_schema_and_fields_survive(uri: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"unit": "rows"}),
            pa.field("s", pa.struct([pa.field("x", pa.int8(), nullable=False, metadata={"k": "v"})]), nullable=False),
        ],
        metadata={"owner": "tests", "empty": ""},
    )
    table = pa.table({"id": [1, 2], "s": [{"x": 1}, {"x": 2}]}, schema=schema)
    written = esker.write_dataset(table, uri)
    assert written.schema.equals(schema, check_metadata=True)
    same(table, written.to_table())
    same(table, lance.dataset(uri).to_table())


def test_an_empty_table_has_columns_and_no_fragments(tmp_path: Path) -> None:
    table = people(0)
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    written = esker.write_dataset(table, ours)
    peer = lance.write_dataset(table, theirs, data_storage_version="2.0")
    assert len(written.get_fragments()) == len(peer.get_fragments()) == 0
    same(table, written.to_table())
    same(table, lance.dataset(ours).to_table())
    assert esker.write_dataset(people(3), ours, mode="append").count_rows() == 3


def test_extension_types_survive(uri: str) -> None:
    storage = pa.array([bytes(range(i, i + 16)) for i in range(20)], pa.binary(16))
    table = pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    same(table, esker.write_dataset(table, uri).to_table())
    assert lance.dataset(uri).to_table()["u"].to_pylist() == table["u"].to_pylist()


def test_view_types_become_plain_ones_as_in_pylance(tmp_path: Path) -> None:
    table = pa.table(
        {
            "s": pa.array(["short", None, "a text of more than twelve bytes"], pa.string_view()),
            "b": pa.array([b"x", None, b"y" * 20], pa.binary_view()),
        }
    )
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    lance.write_dataset(table, theirs, data_storage_version="2.0")
    same(lance.dataset(theirs).to_table(), esker.write_dataset(table, ours).to_table())


class _Capsule:
    """Anything with the Arrow C stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=100)


@pytest.mark.parametrize(
    "kind", ["table", "batch", "reader", "dataset", "scanner", "capsule", "iterator", "lance", "esker", "dict", "rows"]
)
def test_every_kind_of_input_is_taken(kind: str, tmp_path: Path) -> None:
    table = people(450)
    inputs = {
        "table": lambda: table,
        "batch": lambda: table.combine_chunks().to_batches()[0],
        "reader": lambda: table.to_reader(max_chunksize=64),
        "dataset": lambda: pa.dataset.dataset(table),
        "scanner": lambda: pa.dataset.dataset(table).scanner(),
        "capsule": lambda: _Capsule(table),
        "iterator": lambda: _batches(table),
        "lance": lambda: lance.write_dataset(table, str(tmp_path / "peer")),
        "esker": lambda: esker.write_dataset(table, str(tmp_path / "other")),
        "dict": lambda: {name: table[name].combine_chunks() for name in table.column_names},
        "rows": lambda: table.to_pylist(),
    }
    schema = table.schema if kind in ("iterator", "rows") else None
    written = esker.write_dataset(inputs[kind](), str(tmp_path / "table"), schema=schema)
    same(table, written.to_table())


def test_pandas_and_polars_frames_are_taken_as_pylance_takes_them(tmp_path: Path) -> None:
    pandas_frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 2.5], "c": [True, False, True]})
    polars_frame = pl.DataFrame({"a": [1, None], "s": ["x", "yy"], "l": [[1], [2, 3]]})
    for number, frame in enumerate((pandas_frame, polars_frame)):
        ours, theirs = str(tmp_path / f"ours{number}"), str(tmp_path / f"theirs{number}")
        lance.write_dataset(frame, theirs, data_storage_version="2.0")
        same(lance.dataset(theirs).to_table(), esker.write_dataset(frame, ours).to_table())


def test_max_bytes_per_file_starts_new_files(uri: str) -> None:
    table = pa.table({"b": pa.array([bytes([i % 256]) * 1000 for i in range(4000)])})
    written = esker.write_dataset(table.to_reader(max_chunksize=250), uri, max_bytes_per_file=1_000_000)
    sizes = [file.file_size_bytes for fragment in written.get_fragments() for file in fragment.data_files()]
    assert len(sizes) >= 3
    assert all(size is not None and size < 3_000_000 for size in sizes)
    same(table, lance.dataset(uri).to_table())


def test_progress_counts_the_rows_taken(uri: str) -> None:
    seen: list[int] = []
    esker.write_dataset(people(1000).to_reader(max_chunksize=300), uri, progress=seen.append)
    assert seen == [300, 600, 900, 1000]


def test_memory_tables_are_shared_within_the_process(request: pytest.FixtureRequest) -> None:
    uri = f"memory://{request.node.name}"
    esker.write_dataset(people(10), uri)
    assert esker.dataset(uri).count_rows() == 10


def test_the_arguments_of_a_write_are_in_its_signature() -> None:
    for function in (esker.write_dataset, esker.fragment.write_fragments):
        parameters = inspect.signature(function).parameters
        assert parameters["max_rows_per_file"].default == 1024 * 1024
        assert parameters["durable"].annotation == "bool"
        assert ("commit_message" in parameters) == (function is esker.write_dataset)
