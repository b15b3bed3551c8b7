"""Chosen rows of Parquet files: pages are passed over, values are skipped; beside the whole file, and of odd bytes."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker._native.delta import FileRows
from esker._native.store import Store
from esker.delta import DeltaTable, WriterProperties, write_deltalake
from esker.exceptions import CorruptFileError, EskerError, InvalidArgumentError
from tests.rounds import rounds

_INNER = pa.struct([("p", pa.int32()), ("q", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("few", pa.int64()),
        ("x", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("money", pa.decimal128(15, 3)),
        ("at", pa.timestamp("us", "UTC")),
        ("a.b", pa.list_(pa.int64())),
        ("inner", _INNER),
        ("inners", pa.list_(_INNER)),
        ("map", pa.map_(pa.int64(), pa.string())),
    ]
)
KEYS = ("compression", "data_page_version", "use_dictionary", "write_page_index", "data_page_size", "row_group_size")


def made(count: int, seed: int, nulls: float) -> pa.Table:
    """Rows of every kind."""
    chance = random.Random(seed)

    def value(kind: pa.DataType, row: int) -> Any:
        if chance.random() < nulls:
            return None
        if pa.types.is_struct(kind):
            return {kind.field(i).name: value(kind.field(i).type, row) for i in range(kind.num_fields)}
        if pa.types.is_map(kind):
            return [(key, value(kind.item_type, row)) for key in range(chance.choice([0, 1, 3]))]
        if pa.types.is_list(kind):
            return [value(kind.value_type, row) for _ in range(chance.choice([0, 1, 2, 9]))]
        if pa.types.is_string(kind):
            return chance.choice(["", "é", "x" * chance.randrange(90), f"t{row}"])
        if pa.types.is_boolean(kind):
            return chance.random() < 0.5
        if pa.types.is_floating(kind):
            return chance.random()
        return pa.scalar(chance.randrange(10**6)).cast(pa.int64()).as_py()

    columns = {"id": pa.array(range(count)), "few": pa.array([chance.randrange(5) for _ in range(count)])}
    columns |= {name: pa.array([value(SCHEMA.field(name).type, n) for n in range(count)]) for name in ("x", "flag")}
    numbers = [value(pa.int64(), row) for row in range(count)]
    for field in SCHEMA:
        if field.name in columns:
            continue
        if pa.types.is_decimal(field.type):
            columns[field.name] = pa.array([None if n is None else Decimal(n).scaleb(-3) for n in numbers], field.type)
        elif pa.types.is_timestamp(field.type):
            columns[field.name] = pa.array(numbers, pa.int64()).cast(field.type)
        else:
            columns[field.name] = pa.array([value(field.type, row) for row in range(count)], field.type)
    return pa.table([columns[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA)


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """How a file is written."""
    chosen = (
        st.sampled_from(["snappy", "none", "zstd", "gzip"]),
        st.sampled_from(["1.0", "2.0"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from([1, 300, 1 << 20]),
        st.sampled_from([7, 100, 10_000]),
    )
    return dict(zip(KEYS, draw(st.tuples(*chosen)), strict=True))


def read(path: Path, columns: list[int], groups: list[int], rows: Any, batch_rows: int) -> list[pa.RecordBatch]:
    numbers = pa.array(rows, pa.uint64())
    found = FileRows(
        Store(str(path.parent)), path.name, columns=columns, groups=groups, rows=numbers, batch_rows=batch_rows
    )
    return [pa.record_batch(batch) for batch in found]


@settings(deadline=None, max_examples=rounds(40))
@given(st.integers(1, 400), st.integers(0, 999), st.sampled_from([0, 0.1, 0.9]), layouts(), st.data())
def test_chosen_rows_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, nulls: float, layout: dict[str, Any], data: Any
) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    whole = made(count, seed, nulls)
    pq.write_table(whole, path, write_batch_size=16, **layout)
    sizes = [pq.read_metadata(path).row_group(n).num_rows for n in range(pq.read_metadata(path).num_row_groups)]
    starts = np.cumsum([0, *sizes])
    rows = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    groups = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1))))
    columns = data.draw(st.lists(st.integers(0, len(SCHEMA) - 1), min_size=1, unique=True))
    found = read(path, columns, groups, rows, data.draw(st.sampled_from([1, 10, 100_000])))
    kept = [row for row in rows if any(starts[group] <= row < starts[group + 1] for group in groups)]
    for place, column in enumerate(columns):
        values = [value for batch in found for value in batch.column(place).to_pylist()]
        assert values == whole.column(column).take(pa.array(kept, pa.int64())).to_pylist()


@settings(deadline=None, max_examples=rounds(60))
@given(st.integers(0, 999), layouts(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=9), st.data())
def test_any_bytes_are_rows_or_an_error(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    layout: dict[str, Any],
    changes: list[tuple[float, int]],
    data: Any,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    pq.write_table(made(60, seed, 0.2), path, **layout)
    groups = list(range(pq.read_metadata(path).num_row_groups))
    bytes_ = bytearray(path.read_bytes())
    for place, value in changes:
        bytes_[int(place * (len(bytes_) - 1))] = value
    path.write_bytes(bytes_[: data.draw(st.one_of(st.none(), st.integers(0, len(bytes_))))])
    try:
        found = read(path, list(range(len(SCHEMA))), groups, [3, 17, 18, 59], 100)
    except EskerError:
        return
    assert sum(batch.num_rows for batch in found) <= 4


def test_what_a_file_does_not_have_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(made(20, 1, 0), path, row_group_size=10)
    assert [batch.num_rows for batch in read(path, [0], [0, 1], [1, 12, 99], 100)] == [1, 1]
    for columns, groups, rows in (([99], [0], [1]), ([], [0], [1]), ([0], [2], [1]), ([0], [1, 0], [1])):
        with pytest.raises(InvalidArgumentError):
            read(path, columns, groups, rows, 100)
    with pytest.raises(InvalidArgumentError, match="ascend"):
        read(path, [0], [0], [2, 2], 100)
    path.write_bytes(b"none")
    with pytest.raises(CorruptFileError):
        read(path, [0], [0], [1], 100)


def test_what_the_parquet_library_gives_up_on_is_an_error_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, whole = tmp_path / "a.parquet", made(60, 1, 0.2)
    given_up = 0
    for seed in range(600):
        chance = random.Random(seed)
        pq.write_table(whole, path, data_page_version=chance.choice(["1.0", "2.0"]))
        damaged = bytearray(path.read_bytes())
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            read(path, list(range(len(SCHEMA))), [0], [3, 17, 18, 59], 100)
        except EskerError as error:
            given_up += "no reader takes" in str(error)
        if given_up > 1:
            break
    assert given_up > 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("compression", ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"])
def test_few_rows_change_whatever_files_are_compressed_with(tmp_path: Path, compression: Any) -> None:
    properties = WriterProperties(compression=compression)
    given = pa.table({"id": range(1000), "s": ["a", "b"] * 500})
    vectors: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path, given, writer_properties=properties, configuration=vectors)
    DeltaTable(tmp_path).update({"s": "'new'"}, predicate="id = 7")
    arrived = pa.table({"id": [9, 2000], "s": ["merged", "added"]})
    merge = DeltaTable(tmp_path).merge(arrived, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = dict(zip(*DeltaTable(tmp_path).to_pyarrow_table().select(["id", "s"]).to_pydict().values(), strict=True))
    want = dict(zip(*given.to_pydict().values(), strict=True)) | {7: "new", 9: "merged", 2000: "added"}
    assert found == want
