"""Files of versions 2.1 and 2.2 that pylance writes, read by esker at any rows: value for value, null for null."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker._native.file import inspect
from esker._native.store import Store
from esker.file import LanceFileReader
from tests.random_columns import STYLES, RandomColumns
from tests.rounds import rounds

VERSIONS = ["2.1", "2.2"]
EXAMPLES = rounds(50)


def _write(path: Path, column: pa.Array, version: str, field: pa.Field | None = None, **options: int) -> pa.Table:
    field = field or pa.field("c", column.type)
    table = pa.Table.from_arrays([column], schema=pa.schema([field]))
    with lance.file.LanceFileWriter(str(path), schema=table.schema, version=version, **options) as writer:
        writer.write_batch(table)
    return table


def _values(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def _same(expected: pa.ChunkedArray | pa.Array, found: pa.ChunkedArray | pa.Array) -> None:
    assert expected.type == found.type
    left, right = _values(expected), _values(found)
    if not left.equals(right):
        # NaN is not itself, and nulls of a dictionary may be in its keys or in its values.
        assert repr(left.to_pylist()) == repr(right.to_pylist())


def _check(path: Path, table: pa.Table, starts: list[int]) -> None:
    reader = LanceFileReader(str(path))
    length = table.num_rows
    assert reader.num_rows() == length
    _same(table["c"], reader.read_all().to_table()["c"])
    rows = sorted({min(max(0, start + step), length - 1) for start in starts for step in (-1, 0, 1)})
    if rows:
        _same(table["c"].take(pa.array(rows)), reader.take_rows(rows).to_table()["c"])
    for start in starts:
        if start < length:
            count = min(length - start, 1 + start % 1500)
            _same(table["c"].slice(start, count), reader.read_range(start, count).to_table()["c"])


@settings(max_examples=EXAMPLES)
@given(st.integers(0, (1 << 32) - 1), st.sampled_from(VERSIONS), st.data())
def test_any_column_that_pylance_writes_is_read(seed: int, version: str, data: st.DataObject) -> None:
    source = RandomColumns(seed)
    column_type = source.type(version, data.draw(st.integers(0, 3)))
    length = data.draw(st.sampled_from([1, 2, 7, 100, 1000, 1024, 1025, 2000, 4100]))
    nulls = data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.99, 1.0]))
    column = source.values(column_type, length, nulls, data.draw(st.sampled_from(STYLES)))
    field = pa.field("c", column_type, metadata=source.metadata(column_type) or None)
    options = data.draw(st.sampled_from([{}, {}, {"max_page_bytes": 1024}, {"max_page_bytes": 16384}]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.lance")
        try:
            table = _write(path, column, version, field, **options)
        except KeyboardInterrupt:
            raise
        except BaseException:  # The peer refuses some types, and panics on others.
            return
        _check(path, table, [0, 1, 1023, 1024, 2048, 4096, length // 2, length - 1])


RS = np.random.RandomState(5)
WORDS = np.array([f"{RS.randint(0, 1 << 30):x}" * 2 for _ in range(500)], object)
TEXTS = pa.array([f"{word} and the rest of a sentence, number {i}" for i, word in enumerate(np.resize(WORDS, 3000))])
SMALL = pa.array(RS.randint(0, 200, size=5000))
FLOATS = pa.array(np.cumsum(RS.standard_normal(9000)))
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array(RS.standard_normal(300 * 128).astype(np.float32)), 128)
STRUCTS = pa.StructArray.from_arrays([SMALL.cast(pa.int32()), SMALL], names=["a", "b"])
MIXED = pa.StructArray.from_arrays([SMALL, pa.array(np.resize(WORDS, 5000), pa.string())], names=["a", "b"])
NULLS = pa.array(RS.random_sample(5000) < 0.2)

ENCODINGS = [
    ("mini_block(flat(64))", "2.1", pa.array(RS.randint(-(1 << 62), 1 << 62, size=3000)), {}),
    ("mini_block(bitpacked(64))", "2.1", SMALL, {}),
    ("levels def bitpacked(1 of 16)", "2.1", pa.array(SMALL.to_numpy(), mask=NULLS.to_numpy(zero_copy_only=False)), {}),
    ("mini_block(rle(flat(64), flat(8)))", "2.1", pa.array(np.repeat(np.arange(200), 40)), {}),
    ("mini_block(variable(32))", "2.1", pa.array(np.resize(WORDS, 300), pa.string()), {}),
    ("mini_block(variable(64))", "2.1", pa.array(np.resize(WORDS, 300), pa.large_string()), {}),
    ("fsst(variable(32))", "2.1", TEXTS, {"lance-encoding:compression": "fsst"}),
    ("zstd(", "2.1", FLOATS, {"lance-encoding:compression": "zstd", "lance-encoding:bss": "on"}),
    ("byte_stream_split(flat(64))", "2.1", FLOATS, {"lance-encoding:compression": "zstd", "lance-encoding:bss": "on"}),
    ("lz4(", "2.1", TEXTS, {"lance-encoding:compression": "lz4"}),
    ("dictionary(", "2.1", pa.array(np.resize(WORDS[:9], 9000), pa.string()), {}),
    ("dictionary(", "2.2", pa.array(np.resize(WORDS[:9], 9000), pa.string()), {}),
    ("full_zip(fixed_size_list(128 x flat(32)))", "2.1", VECTORS, {}),
    ("full_zip(variable(32))", "2.1", pa.array([bytes([i % 251]) * 900 for i in range(200)]), {}),
    ("packed_struct(2 fields)", "2.1", STRUCTS, {"packed": "true"}),
    ("full_zip(packed_struct(flat(64), fsst(", "2.2", MIXED, {"packed": "true"}),
    ("constant(8 bytes)", "2.2", pa.array([7] * 3000), {}),
    ("constant(null or buffer)", "2.2", pa.array(["x"] * 3000), {}),
    ("constant(null or buffer)", "2.1", pa.nulls(3000, pa.int32()), {}),
]


@pytest.mark.parametrize(("encoding", "version", "column", "keys"), ENCODINGS)
def test_each_encoding_is_met_and_read(
    encoding: str, version: str, column: pa.Array, keys: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "c.lance"
    table = _write(path, column, version, pa.field("c", column.type, metadata=keys or None))
    layout = inspect(Store(str(tmp_path)), "c.lance")
    assert any(encoding in page.encoding for page in layout.columns[0].pages), layout.columns[0].pages[0].encoding
    _check(path, table, [0, 1, 511, 512, 1024, 2047, len(column) - 2])


def _people(rows: int) -> pa.Table:
    numbers = range(rows)
    structs = [None if i % 9 == 4 else {"x": i, "name": f"n{i % 50}", "tags": ["t"] * (i % 4)} for i in numbers]
    lists = [None if i % 7 == 3 else [{"a": i, "b": [f"{i}"] * (i % 3)}] * (i % 4) for i in numbers]
    place = pa.struct([("x", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
    item = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "place": pa.array(structs, place),
            "lists": pa.array(lists, pa.list_(item)),
            "vector": pa.array([[float(i), 0.5] for i in numbers], pa.list_(pa.float32(), 2)),
        }
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_of_pylance_is_scanned_filtered_taken_and_projected(version: str, uri: str) -> None:
    table = _people(9000)
    lance.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=4000)
    theirs, ours = lance.dataset(uri), esker.dataset(uri)
    assert ours.to_table().equals(theirs.to_table())
    for columns in (["place.name"], ["place.x", "place.tags"], ["lists.item.b", "id"], ["vector", "place"]):
        with contextlib.suppress(ValueError):
            expected = theirs.to_table(columns=columns)
            assert ours.to_table(columns=columns).equals(expected), columns
    found = ours.to_table(filter="place.x % 5 = 2 and id > 3900")
    assert found.equals(theirs.to_table(filter="place.x % 5 = 2 and id > 3900"))
    rows = [8999, 0, 3999, 4000, 4001, 17, 17, 5000]
    assert ours.take(rows).equals(theirs.take(rows))
    theirs.delete("id % 3 = 1")
    assert esker.dataset(uri).to_table().equals(lance.dataset(uri).to_table())


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_pylance_added_and_dropped_are_found(version: str, uri: str) -> None:
    dataset = lance.write_dataset(_people(500), uri, data_storage_version=version)
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["lists"])
    dataset.alter_columns({"path": "place", "name": "where"})
    assert esker.dataset(uri).to_table().equals(lance.dataset(uri).to_table())
    assert (
        esker.dataset(uri)
        .to_table(columns=["where.name", "twice"])
        .equals(lance.dataset(uri).to_table(columns=["where.name", "twice"]))
    )
