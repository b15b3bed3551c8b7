"""What we write in versions 2.1 and 2.2, pylance reads: values, nulls, nesting, ranges, takes; what fields ask for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import esker
from benches.data import make_input
from esker.exceptions import EskerError, InvalidArgumentError, UnsupportedError
from esker.file import LanceFileWriter
from tests.samples import TYPES, Draw, nested_type

VERSIONS = ["2.1", "2.2"]

FIXED = [name for name in TYPES if not any(part in name for part in ("utf8", "list", "vector"))]
FIXED.remove("binary")
FIXED.remove("large_binary")

NESTS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "flat": lambda type_: type_,
    "list": pa.list_,
    "struct": lambda type_: pa.struct([("v", type_), ("w", type_)]),
    "list of struct": lambda type_: pa.list_(pa.struct([("v", type_)])),
    "struct of list": lambda type_: pa.struct([("v", pa.large_list(type_))]),
    "list of list": lambda type_: pa.list_(pa.list_(type_)),
}


def _drawn(type_: pa.DataType, leaf: pa.DataType, draw: Draw, rng: random.Random, nulls: float) -> object:
    """A value of a nested type whose leaves `draw` draws; every part of it is null with the probability `nulls`."""
    if rng.random() < nulls:
        return None
    if type_ == leaf:
        return draw(rng)
    if pa.types.is_struct(type_):
        return {field.name: _drawn(field.type, leaf, draw, rng, nulls) for field in type_}
    return [_drawn(type_.value_type, leaf, draw, rng, nulls) for _ in range(rng.choice([0, 1, 1, 2, 5]))]


def _table(names: list[str], nest: str, rows: int, nulls: float) -> pa.Table:
    columns = {}
    for name in names:
        rng = random.Random(f"{name} {nest} {nulls}")
        leaf, draw = TYPES[name]
        type_ = NESTS[nest](leaf)
        columns[name] = pa.array([_drawn(type_, leaf, draw, rng, nulls) for _ in range(rows)], type_)
    return pa.table(columns)


def _written(path: Path, table: pa.Table, version: str, *, cut: int = 700, **options: Any) -> str:
    with LanceFileWriter(str(path), table.schema, version=version, **options) as writer:
        for start in range(0, table.num_rows, cut):
            writer.write_batch(table.slice(start, cut).combine_chunks())
    return str(path)


def _same(found: pa.Table, expected: pa.Table) -> None:
    for name in expected.column_names:
        # As text, so that no NaN differs from itself.
        assert repr(found[name].to_pylist()) == repr(expected[name].to_pylist()), name


def _check(path: str, table: pa.Table) -> None:
    """Pylance reads the whole file, ranges around edges of chunks and batches, and single rows."""
    reader = lance.file.LanceFileReader(path)
    rows = table.num_rows
    _same(reader.read_all(batch_size=1000).to_table(), table)
    for edge in {1, 700, 1024, 2048, rows - 1}:
        start = max(0, min(edge, rows) - 2)
        length = min(4, rows - start)
        _same(reader.read_range(start, length).to_table(), table.slice(start, length))
    picked = sorted({0, rows // 3, min(1023, rows - 1), min(1024, rows - 1), rows - 1})
    found = reader.take_rows(picked).to_table()
    for name in table.column_names:
        assert repr(found[name].to_pylist()) == repr([table[name][row].as_py() for row in picked]), name


@pytest.mark.parametrize("nulls", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_every_type_in_every_nesting(version: str, nest: str, nulls: float, tmp_path: Path) -> None:
    table = _table(list(TYPES), nest, 300 if nest != "flat" else 2500, nulls)
    _check(_written(tmp_path / "a.lance", table, version), table)


@pytest.mark.parametrize("page_bytes", [1, 300, 5000])
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_pages_of_any_size(version: str, page_bytes: int, tmp_path: Path) -> None:
    for nest in NESTS:
        table = _table(["int64", "utf8", "bool", "vector"], nest, 400, 0.2)
        _check(_written(tmp_path / f"{nest}.lance", table, version, cut=150, data_cache_bytes=page_bytes), table)


@pytest.mark.parametrize("seed", range(20))
def test_pylance_reads_random_nestings(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    nulls = rng.choice([0.0, 0.1, 0.5])
    columns = {}
    for index in range(3):
        type_, draw = nested_type(rng, 3, nulls=nulls)
        values = [None if rng.random() < nulls else draw(rng) for _ in range(500)]
        columns[f"c{index}"] = pa.array(values, type_)
    table = pa.table(columns)
    page_bytes = rng.choice([200, 2000, 8 << 20])
    _check(_written(tmp_path / "a.lance", table, rng.choice(VERSIONS), data_cache_bytes=page_bytes), table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_of_the_version_is_written_appended_to_and_read_by_pylance(version: str, uri: str) -> None:
    first = _table(["int64", "utf8", "list_utf8"], "flat", 2000, 0.1)
    esker.write_dataset(first, uri, data_storage_version=version)
    esker.write_dataset(first.slice(0, 10), uri, mode="append")
    peer = lance.dataset(uri)
    assert peer.data_storage_version == version
    _same(peer.to_table(), pa.concat_tables([first, first.slice(0, 10)]))
    _same(peer.take([0, 1999, 2000, 2009]), peer.to_table().take([0, 1999, 2000, 2009]))


@pytest.mark.parametrize("version", VERSIONS)
def test_sliced_arrays_with_rubbish_below_their_nulls_are_written(version: str, tmp_path: Path) -> None:
    offsets = pa.array([0, 2, 4, 4, 6], pa.int32()).buffers()[1]
    validity = pa.py_buffer(b"\x0d")  # the second list is null, and has items all the same
    items = pa.array([1, 2, 3, 4, 5, 6])
    lists = pa.ListArray.from_buffers(pa.list_(pa.int64()), 4, [validity, offsets], children=[items])
    texts = pa.Array.from_buffers(pa.string(), 4, [validity, offsets, pa.py_buffer(b"aabbcc")])
    table = pa.table({"l": pa.concat_arrays([lists, lists]).slice(1, 5), "t": pa.concat_arrays([texts, texts])[1:6]})
    assert table["l"].to_pylist() == [None, [], [5, 6], [1, 2], None]
    _same(lance.file.LanceFileReader(_written(tmp_path / "a.lance", table, version)).read_all().to_table(), table)


@pytest.mark.parametrize("version", VERSIONS)
def test_structs_around_lists_are_null_in_some_pages_and_not_in_others(version: str, tmp_path: Path) -> None:
    # Pylance counts the structs wrong in files of its own where pages differ in this.
    values = [{"l": list(range(i % 4))} if i < 500 else None if i % 3 == 0 else {"l": [i]} for i in range(1000)]
    table = pa.table({"s": pa.array(values, pa.struct([("l", pa.list_(pa.int64()))]))})
    _check(_written(tmp_path / "a.lance", table, version, data_cache_bytes=1000), table)


DICTIONARIES = {
    "int8": pa.array(["a", None, "b", "a"] * 300).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "int64 keys": pa.array(["a", "b"] * 300).dictionary_encode().cast(pa.dictionary(pa.int64(), pa.string())),
    "numbers": pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * 100), pa.array([1 << 40, 7])),
    "null among the values": pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * 100), pa.array(["x", None])),
}


@pytest.mark.parametrize("name", DICTIONARIES)
@pytest.mark.parametrize("version", VERSIONS)
def test_dictionary_columns_are_written(version: str, name: str, tmp_path: Path) -> None:
    table = pa.table({"c": DICTIONARIES[name]})
    found = lance.file.LanceFileReader(_written(tmp_path / "a.lance", table, version)).read_all().to_table()
    assert found.schema == table.schema
    _same(found, table)


ROWS = 20_000
_RNG = np.random.default_rng(5)
ASKED: dict[str, tuple[pa.Array, dict[str, str], str]] = {
    "lz4": (pa.array(_RNG.integers(0, 1 << 40, ROWS) // 1000 * 1000), {"compression": "lz4"}, "lz4("),
    "zstd": (pa.array([f"{i % 97} is a text" for i in range(ROWS)]), {"compression": "zstd"}, "zstd("),
    "none": (pa.array(range(ROWS)), {"compression": "none"}, "mini_block(flat(64)"),
    "runs": (pa.array([i // 2 for i in range(ROWS)], pa.int32()), {"rle-threshold": "0.9"}, "rle("),
    # Without a dictionary, whose numbers would be runs.
    "no runs": (
        pa.array([i // 100 for i in range(ROWS)]),
        {"rle-threshold": "0", "dict-size-ratio": "0.001"},
        "lz4(byte_stream_split(",
    ),
    "split": (pa.array(_RNG.normal(size=ROWS)), {"compression": "zstd", "bss": "on"}, "byte_stream_split"),
    "full zip": (pa.array(["short"] * ROWS + ["shorter"]), {"structural-encoding": "fullzip"}, "full_zip("),
    "chunks": (pa.array(["x" * 300 + str(i) for i in range(99)]), {"structural-encoding": "miniblock"}, "mini_block("),
    "dictionary": (pa.array([str(i % 9000) for i in range(ROWS)]), {"dict-divisor": "2"}, "dictionary"),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("version", VERSIONS)
def test_fields_get_the_encoding_that_they_ask_for(version: str, name: str, tmp_path: Path) -> None:
    array, asked, encoding = ASKED[name]
    metadata = {f"lance-encoding:{key}": value for key, value in asked.items()}
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=metadata)]))
    path = _written(tmp_path / "a.lance", table, version, cut=table.num_rows)
    _same(lance.file.LanceFileReader(path).read_all().to_table(), table)
    layout = esker.file.LanceFileReader(path).metadata().columns[0].pages[0].encoding
    assert encoding in layout


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression", "gzip"),
        ("compression-level", "high"),
        ("rle-threshold", "2"),
        ("bss", "maybe"),
        ("dict-divisor", "0"),
        ("dict-size-ratio", "1.5"),
        ("structural-encoding", "rows"),
        ("dict-values-compression", "fsst"),
    ],
)
def test_what_a_field_asks_for_in_vain_is_an_error_with_column_and_key(key: str, value: str, uri: str) -> None:
    field = pa.field("c", pa.int64(), metadata={f"lance-encoding:{key}": value})
    table = pa.table([pa.array([1])], schema=pa.schema([field]))
    with pytest.raises(InvalidArgumentError, match=f"'c'.*lance-encoding:{key}.*'{value}'"):
        esker.write_dataset(table, uri, data_storage_version="2.1")


_PACKED = {"lance-encoding:packed": "true"}


def _packed(**fields: pa.DataType) -> pa.Table:
    type_ = pa.struct(list(fields.items()))
    drawn = {"a": lambda row: row, "b": lambda row: "ab"[: row % 3] if fields["b"] == pa.string() else [row, row]}
    rows = [{name: drawn[name](row) for name in fields} for row in range(300)]
    return pa.table([pa.array(rows, type_)], schema=pa.schema([pa.field("c", type_, metadata=_PACKED)]))


LATER = {
    "map": pa.table({"c": pa.array([[("a", 1)], [], None] * 50, pa.map_(pa.string(), pa.int64()))}),
    "vector of structs": pa.table(
        {"c": pa.array([[{"a": 1}, None], None] * 50, pa.list_(pa.struct([("a", pa.int8())]), 2))}
    ),
    "packed strings": _packed(a=pa.int32(), b=pa.string()),
    "packed vectors": _packed(a=pa.int32(), b=pa.list_(pa.float32(), 2)),
}


@pytest.mark.parametrize("name", LATER)
def test_what_version_2_2_adds_is_written_there_and_refused_by_name_before(name: str, tmp_path: Path) -> None:
    table = LATER[name]
    _same(lance.file.LanceFileReader(_written(tmp_path / "b.lance", table, "2.2")).read_all().to_table(), table)
    with pytest.raises(UnsupportedError, match=r"'c.*version 2\.1.*2\.2"):
        _written(tmp_path / "a.lance", table, "2.1")


REFUSED = {
    "nulls in a packed struct": pa.table(
        [pa.array([{"a": None}] * 5, pa.struct([("a", pa.int32())]))],
        schema=pa.schema([pa.field("c", pa.struct([("a", pa.int32())]), metadata=_PACKED)]),
    ),
    "vectors of strings": pa.table({"c": pa.array([["a", "b"]], pa.list_(pa.string(), 2))}),
    "vectors of structs beside others": LATER["vector of structs"].append_column("d", pa.array(range(100))),
    "vectors of width 0": pa.table({"c": pa.array([[]], pa.list_(pa.int8(), 0))}),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_pylance_cannot_read_back_is_refused(version: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(EskerError, match="'[cd]"):
        _written(tmp_path / "a.lance", REFUSED[name], version)


@pytest.mark.parametrize("name", ["numbers", "strings", "nested", "vectors", "blobs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_files_are_at_most_as_large_as_those_of_pylance(version: str, name: str, tmp_path: Path) -> None:
    table = make_input(name, 100_000, 3).table
    ours = Path(_written(tmp_path / "a.lance", table, version, cut=table.num_rows))
    with lance.file.LanceFileWriter(str(tmp_path / "b.lance"), table.schema, version=version) as writer:
        writer.write_batch(table)
    assert ours.stat().st_size <= (tmp_path / "b.lance").stat().st_size * 1.001 + 512
