"""What pylance's reader trips over, and our writer keeps out of its files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance.file
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.exceptions import UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter
from tests.random_columns import STYLES, RandomColumns
from tests.rounds import rounds

VERSIONS = ["2.1", "2.2"]
ANY_VERSION = ["2.0", *VERSIONS]


def _written(path: Path, table: pa.Table, version: str, *, cut: int = 1 << 20, **options: Any) -> str:
    with LanceFileWriter(str(path), table.schema, version=version, **options) as writer:
        for start in range(0, table.num_rows, cut):
            writer.write_batch(table.slice(start, cut))
    return str(path)


def _values(table: pa.Table) -> str:
    # As text, so that NaN is itself.
    return repr(table["c"].to_pylist())


def _check(path: str, table: pa.Table) -> None:
    """Both libraries read the file, whole and by row numbers."""
    rows = sorted({0, table.num_rows // 3, table.num_rows // 2, table.num_rows - 1})
    for reader in (LanceFileReader(path), lance.file.LanceFileReader(path)):
        assert _values(reader.read_all().to_table()) == _values(table)
        assert _values(reader.take_rows(rows).to_table()) == _values(table.take(rows))


def _column(values: Sequence[object], type_: pa.DataType, **metadata: str) -> pa.Table:
    named = {f"lance-encoding:{key.replace('_', '-')}": value for key, value in metadata.items()}
    schema = pa.schema([pa.field("c", type_, metadata=named or None)])
    return pa.table([pa.array(values, type_)], schema=schema)


@pytest.mark.parametrize("version", VERSIONS)
def test_structs_that_are_null_around_lists_that_are_all_there(version: str, tmp_path: Path) -> None:
    # Below a null struct lie lists that are neither null nor empty: the column's levels would call all lists valid.
    lists = pa.array([[i, None if i % 4 == 1 else i] for i in range(500)], pa.list_(pa.int32()))
    for nulls in ([True] * 500, [i % 3 == 0 for i in range(500)]):
        structs = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array(nulls))
        table = pa.table({"c": structs})
        _check(_written(tmp_path / "a.lance", table, version), table)
        inner = pa.StructArray.from_arrays([structs], ["s"])
        table = pa.table({"c": pa.ListArray.from_arrays(pa.array(range(0, 501, 5), pa.int32()), inner)})
        _check(_written(tmp_path / "b.lance", table, version, data_cache_bytes=300), table)


@pytest.mark.parametrize("type_", [pa.string(), pa.large_binary()])
@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
@pytest.mark.parametrize("version", VERSIONS)
def test_nulls_among_long_compressed_values(version: str, scheme: str, type_: pa.DataType, tmp_path: Path) -> None:
    text = [None if i % 3 == 1 else f"{i} moraine " * (60 + i % 7) for i in range(40)]
    _check(_written(tmp_path / "a.lance", _column(text, type_, compression=scheme), version), _column(text, type_))
    lists = [None if i % 5 == 4 else text[i : i + i % 4] for i in range(30)]
    table = _column(lists, pa.list_(type_), compression=scheme)
    _check(_written(tmp_path / "b.lance", table, version), table)


def test_fixed_size_lists_of_structs_that_are_null_on_some_pages_only(tmp_path: Path) -> None:
    type_ = pa.list_(pa.struct([("x", pa.string()), ("n", pa.int32())]), 2)
    whole = [[{"x": f"{i} moraine " * 30, "n": i}, {"x": "", "n": None}] for i in range(100)]
    table = _column([None if i in (41, 90) else row for i, row in enumerate(whole)], type_)
    for cache in (500, 5000, None):
        _check(_written(tmp_path / "a.lance", table, "2.2", cut=7, data_cache_bytes=cache), table)


@pytest.mark.parametrize("version", ANY_VERSION)
def test_narrow_dictionaries_over_many_pages_and_batches(version: str, tmp_path: Path) -> None:
    # 110 items leave little room in a byte: batches whose dictionaries are in another order become one all the same.
    items = [f"item {i}" for i in range(110)]
    batches = []
    for turn in range(8):
        turned = pa.array(items[turn:] + items[:turn])
        keys = pa.array([None if i % 50 == 7 else i for i in range(110)] * 3, pa.int8())
        batches.append(pa.DictionaryArray.from_arrays(keys, turned))
    table = pa.table({"c": pa.chunked_array(batches)})
    for cache in (200, None):
        path = _written(tmp_path / f"{cache}.lance", table, version, cut=330, data_cache_bytes=cache)
        assert LanceFileReader(path).read_all().to_table()["c"].to_pylist() == table["c"].to_pylist()
        peer = lance.file.LanceFileReader(path)
        # Many pages in one batch are too much for pylance.
        assert peer.read_all(batch_size=20).to_table()["c"].to_pylist() == table["c"].to_pylist()


def _column_of(seed: int, version: str, data: st.DataObject) -> pa.Table:
    source = RandomColumns(seed)
    column_type = source.type(version, data.draw(st.integers(0, 3)))
    length = data.draw(st.sampled_from([1, 2, 7, 100, 1000, 1025, 2000]))
    nulls = data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.99, 1.0]))
    column = source.values(column_type, length, nulls, data.draw(st.sampled_from(STYLES)))
    field = pa.field("c", column_type, metadata=source.metadata(column_type) or None)
    return pa.table([column], schema=pa.schema([field]))


@contextlib.contextmanager
def _folder(factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = factory.mktemp("random")
    yield folder
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@settings(max_examples=rounds(50))
@given(st.integers(0, (1 << 32) - 1), st.sampled_from(VERSIONS), st.data())
def test_any_column_is_written_so_that_pylance_reads_it(
    tmp_path_factory: pytest.TempPathFactory, seed: int, version: str, data: st.DataObject
) -> None:
    table = _column_of(seed, version, data)
    cache = data.draw(st.sampled_from([None, None, 500, 20_000]))
    cut = data.draw(st.sampled_from([1 << 20, 97, 1000]))
    with _folder(tmp_path_factory) as folder:
        try:
            path = _written(folder / "ours.lance", table, version, cut=cut, data_cache_bytes=cache)
        except UnsupportedError:
            return
        assert _values(LanceFileReader(path).read_all().to_table()) == _values(table)
        try:
            found = _values(lance.file.LanceFileReader(path).read_all().to_table())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            found = str(error)
        if found != _values(table) and "Dictionary key bigger" not in found:
            # What the peer does not bring back itself either is its own affair, and so are many narrow dictionaries.
            assert not _peer_reads_its_own(folder, table, version, cache), found


def _peer_reads_its_own(folder: Path, table: pa.Table, version: str, cache: int | None) -> bool:
    path = str(folder / "theirs.lance")
    try:
        with lance.file.LanceFileWriter(path, table.schema, version=version, data_cache_bytes=cache) as writer:
            writer.write_batch(table)
        return _values(lance.file.LanceFileReader(path).read_all().to_table()) == _values(table)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False


@pytest.mark.parametrize("version", ["0.1", *ANY_VERSION])
def test_narrow_dictionaries_over_many_fragments(version: str, uri: str) -> None:
    items = [f"item {i}" for i in range(120)]
    keys = pa.array(list(range(120)) * 3, pa.int8())
    parts = [pa.DictionaryArray.from_arrays(keys, pa.array(items[turn:] + items[:turn])) for turn in range(8)]
    table = pa.table({"c": pa.chunked_array(parts)})
    expected = [item for part in parts for item in part.to_pylist()]
    dataset = esker.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=360)
    assert dataset.to_table()["c"].to_pylist() == expected
    assert dataset.take(list(range(0, 2880, 3)))["c"].to_pylist() == expected[::3]
