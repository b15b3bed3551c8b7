"""Random schemas, lengths, nulls, batch boundaries and file sizes: what one writes, the other reads."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import lance
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from tests.rounds import rounds
from tests.samples import TYPES, column, nested_column, same, struct_column

EXAMPLES = rounds(20)


def _column(name: str, length: int, nulls: float, seed: int) -> pa.Array:
    if name == "nested":
        return nested_column(length, nulls=nulls, seed=seed)
    if name == "struct":
        return struct_column(length, nulls=nulls, seed=seed)
    return column(name, length, nulls=nulls, seed=seed)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of one to five columns, in chunks that end where they please."""
    length = draw(st.sampled_from([0, 1, 2, 7, 8, 9, 63, 64, 65, 200, 1025, 3000]))
    names = draw(st.lists(st.sampled_from([*TYPES, *["struct", "nested"] * 8]), min_size=1, max_size=5))
    nulls = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    seed = draw(st.integers(0, 10_000))
    columns = {}
    for number, name in enumerate(names):
        columns[f"c{number}"] = _column(name, length, nulls, seed + number)
    table = pa.table(columns)
    if length < 2:
        return table
    cuts = sorted(draw(st.lists(st.integers(1, length - 1), max_size=5)))
    bounds = [0, *cuts, length]
    return pa.concat_tables([table.slice(a, b - a) for a, b in itertools.pairwise(bounds)])


@settings(max_examples=EXAMPLES)
@given(tables(), st.integers(1, 4000), st.sampled_from([1, 4096, 1 << 20]))
def test_what_esker_writes_both_read(table: pa.Table, rows_per_file: int, memory: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows_per_file = max(rows_per_file, table.num_rows // 8 + 1)
        written = esker.write_dataset(table, folder + "/t", max_rows_per_file=rows_per_file, memory_limit=memory)
        same(table, written.to_table())
        same(table, lance.dataset(folder + "/t").to_table())


@settings(max_examples=EXAMPLES)
@given(tables(), st.integers(1, 4000), st.sampled_from([None, 64, 5000]), st.sampled_from([None, 1, 10, 8192]))
def test_what_pylance_writes_esker_reads(
    table: pa.Table, rows_per_file: int, page_bytes: int | None, batch_size: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows_per_file = max(rows_per_file, table.num_rows // 8 + 1)
        # The peer cannot take slices of structs within structs: it gets whole arrays.
        table = table.combine_chunks()
        lance.write_dataset(
            table,
            folder + "/t",
            data_storage_version="2.0",
            max_rows_per_file=rows_per_file,
            data_cache_bytes=page_bytes,
        )
        same(table, esker.dataset(folder + "/t").to_table(batch_size=batch_size))


@settings(max_examples=EXAMPLES)
@given(tables(), st.data())
def test_any_rows_are_taken_and_any_window_is_scanned(table: pa.Table, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = esker.write_dataset(table, folder + "/t", max_rows_per_file=max(1, table.num_rows // 3))
        offset = data.draw(st.integers(0, table.num_rows + 2))
        limit = data.draw(st.integers(0, table.num_rows + 2))
        same(table.slice(offset, limit), written.to_table(offset=offset, limit=limit))
        if table.num_rows:
            numbers = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=30))
            same(table.take(pa.array(numbers, pa.int64())), written.take(numbers))


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from(["append", "overwrite"]), st.integers(0, 50), st.booleans()), max_size=6))
def test_any_sequence_of_writes_by_both_ends_in_the_same_rows(steps: list[tuple[str, int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder, "t"))
        model: list[int] = []
        start = 0
        for mode, rows, by_peer in steps:
            table = pa.table({"id": pa.array(range(start, start + rows), pa.int64())})
            start += rows
            if by_peer:
                lance.write_dataset(table, uri, mode=mode, data_storage_version="2.0")
            else:
                esker.write_dataset(table, uri, mode=mode)
            model = [*(model if mode == "append" else []), *table["id"].to_pylist()]
            assert esker.dataset(uri).to_table()["id"].to_pylist() == model
            assert lance.dataset(uri).to_table()["id"].to_pylist() == model
