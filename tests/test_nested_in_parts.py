"""Nested columns whose pages hold more levels than are unravelled together: of either writer, whole and in ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.exceptions import UnsupportedError

ROWS = 30_000
PEERS: dict[str, Any] = {"esker": esker, "pylance": lance}


def _lists(rng: np.random.Generator, items: pa.Array, nulls: float, empty: float, large: bool = False) -> pa.Array:
    """Lists of all items, with some null and some empty ones between them."""
    lengths, left = [], len(items)
    while left:
        kind = rng.random()
        lengths.append(-1 if kind < nulls else 0 if kind < nulls + empty else min(left, int(rng.integers(1, 9))))
        left -= max(lengths[-1], 0)
    offsets = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))])
    mask = pa.array([length < 0 for length in lengths])
    if large:
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=mask)


def _column(kind: str) -> pa.Array:
    rng = np.random.default_rng(len(kind))
    some = pa.compute.if_else(pa.array(rng.random(ROWS) < 0.05), None, pa.array(rng.integers(0, 1 << 20, ROWS)))
    if kind == "lists":
        return _lists(rng, some, 0.1, 0.1)
    if kind == "full lists":
        return _lists(rng, pa.array(rng.integers(0, 9, ROWS)), 0, 0)
    if kind == "large lists of text":
        return _lists(rng, some.cast(pa.string()), 0.1, 0.1, large=True)
    if kind == "lists of lists":
        return _lists(rng, _lists(rng, some, 0.1, 0.2), 0.2, 0.1)
    if kind == "lists of structs of lists":
        inner = _lists(rng, some, 0.2, 0.2)
        structs = pa.StructArray.from_arrays(
            [inner, pa.array(np.arange(len(inner)))], ["l", "n"], mask=pa.array(rng.random(len(inner)) < 0.1)
        )
        return _lists(rng, structs, 0.1, 0.1)
    if kind == "lists of vectors":
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS), pa.float32()), 3)
        return _lists(rng, vectors, 0.1, 0.1)
    structs = pa.StructArray.from_arrays([some, some.cast(pa.string())], ["a", "b"])
    return pa.FixedSizeListArray.from_arrays(structs, 2)


KINDS = [
    "lists",
    "full lists",
    "large lists of text",
    "lists of lists",
    "lists of structs of lists",
    "lists of vectors",
]
CASES = [(version, kind) for version in ("2.1", "2.2") for kind in KINDS] + [("2.2", "fixed-size lists of structs")]


@pytest.mark.parametrize("writer", PEERS)
@pytest.mark.parametrize(("version", "kind"), CASES)
def test_pages_of_many_levels_read_as_they_were_written(tmp_path: Path, version: str, writer: str, kind: str) -> None:
    column = _column(kind)
    # Fixed-size lists of structs are written by themselves only: pylance could not read them beside others.
    is_alone = kind == "fixed-size lists of structs"
    table = pa.table({"c": column} if is_alone else {"c": column, "n": np.arange(len(column))})
    PEERS[writer].write_dataset(table, str(tmp_path), data_storage_version=version)
    dataset = esker.dataset(str(tmp_path))
    assert dataset.to_table() == table
    assert lance.dataset(str(tmp_path)).to_table() == table
    total = len(column)
    for start, end in [(1, total), (total // 3, total // 3 + 5), (total // 2, total - 1)]:
        assert dataset.to_table(offset=start, limit=end - start) == table.slice(start, end - start)
    rows = np.sort(np.random.default_rng(1).choice(total, 300, replace=False))
    assert dataset.take(rows.tolist()) == table.take(rows)
    if not is_alone:
        # Ranges that begin and end within chunks, many of a page.
        wanted = pa.compute.less(pa.array(np.arange(total) % 700), 500)
        assert dataset.to_table(filter="n % 700 < 500") == table.filter(wanted)


LISTS: dict[str, list[Any]] = {
    "lists": [[float(row)] * 5 for row in range(40_000)],
    "lists of lists": [[[row], [row, 1]] for row in range(40_000)],
    "lists of structs": [[{"x": row, "t": str(row % 7)}] * 2 for row in range(60_000)],
    "structs of lists": [{"l": [row, row]} for row in range(70_000)],
    "maps": [[(str(row % 9), row), ("k", 1)] for row in range(60_000)],
}
MAPS_OLD = ("2.1", "maps")
LIST_TYPES = {"maps": pa.map_(pa.string(), pa.int64()), "lists": pa.large_list(pa.float32())}


@pytest.mark.parametrize("place", [0, 0.5, 1])
@pytest.mark.parametrize("lone", [None, "empty"])
@pytest.mark.parametrize(
    ("version", "kind"),
    [(version, kind) for version in ("2.1", "2.2") for kind in LISTS if (version, kind) != MAPS_OLD],
)
def test_pages_without_nulls_beside_one_with_a_null(
    tmp_path: Path, version: str, kind: str, lone: str | None, place: float
) -> None:
    # pylance writes levels of all pages then: those of the others are packed into no bits.
    values = list(LISTS[kind])
    empty: Any = {"l": []} if kind == "structs of lists" else []
    values.insert(int(place * len(values)), empty if lone else None)
    table = pa.table({"id": np.arange(len(values)), "c": pa.array(values, LIST_TYPES.get(kind))})
    for peer in PEERS.values():
        peer.write_dataset(table, str(tmp_path), data_storage_version=version, mode="overwrite")
        dataset = esker.dataset(str(tmp_path))
        assert dataset.to_table() == table
        assert lance.dataset(str(tmp_path)).to_table() == table
        rows = [0, len(values) // 2, len(values) - 1]
        assert dataset.take(rows) == table.take(rows)
        assert dataset.count_rows("c IS NULL") == table["c"].null_count
        middle = len(values) // 2
        assert dataset.to_table(offset=middle, limit=7_000) == table.slice(middle, 7_000)


EMPTY = 70_000
"""More lists than a chunk of a page counts."""


@pytest.mark.parametrize("lone", [None, "empty"])
@pytest.mark.parametrize(
    "items",
    [["red", "blue"], [7], [1, 1, 1], [b"x"], [1.5, 2.5], ["a longer text that is the same each time"]],
    ids=str,
)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_many_lists_without_items_one_after_the_other(
    tmp_path: Path, version: str, items: list[Any], lone: str | None
) -> None:
    empty: Any = [] if lone else None
    table = pa.table({"c": pa.array([empty] * EMPTY + [items] * 20_000 + [empty] * EMPTY)})
    dataset = esker.write_dataset(table, tmp_path, data_storage_version=version)
    assert dataset.to_table() == table
    assert lance.dataset(str(tmp_path)).to_table() == table
    assert dataset.take([EMPTY, 0, EMPTY + 19_999]) == table.take([EMPTY, 0, EMPTY + 19_999])
    esker.write_dataset(table.slice(0, EMPTY), tmp_path, mode="append")
    dataset = esker.dataset(tmp_path)
    dataset.optimize.compact_files()
    assert dataset.to_table() == pa.concat_tables([table, table.slice(0, EMPTY)]).combine_chunks()
    assert lance.dataset(str(tmp_path)).to_table() == dataset.to_table()


BITS: dict[str, tuple[Any, pa.DataType]] = {
    "bits": ([True, None], pa.list_(pa.bool_())),
    "large lists of bits": ([False], pa.large_list(pa.bool_())),
    "dictionaries": (["a", "b"], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "structs": ([{"b": True, "s": "x"}], pa.list_(pa.struct({"b": pa.bool_(), "s": pa.string()}))),
    "lists in lists": ([[True], None, []], pa.list_(pa.list_(pa.bool_()))),
    "vectors of bits": ([[True, False, True]], pa.list_(pa.list_(pa.bool_(), 3))),
    "within structs": ({"l": [True]}, pa.struct({"l": pa.list_(pa.bool_())})),
}


@pytest.mark.parametrize("lone", [None, "empty"])
@pytest.mark.parametrize("shape", BITS)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_many_lists_of_bits_without_items_are_in_pages_of_their_own(
    tmp_path: Path, version: str, shape: str, lone: str | None
) -> None:
    """Only chunks hold bits and the indices of dictionaries, and none counts so many lists."""
    value, kind = BITS[shape]
    empty: Any = None if lone is None else [] if isinstance(value, list) else {"l": []}
    rows = [empty] * EMPTY + [value] + [empty] * (3 * EMPTY) + [value] * 50 + [empty] * 100 + [value] + [empty] * EMPTY
    table = pa.table({"c": pa.array(rows, kind), "id": range(len(rows))})
    theirs = lance.write_dataset(table, tmp_path / "theirs", data_storage_version=version)
    dataset = esker.write_dataset(table, tmp_path / "ours", data_storage_version=version)
    places = [EMPTY, 0, EMPTY + 1, 4 * EMPTY, 4 * EMPTY + 1, len(rows) - 1, EMPTY]
    expected = table["c"].combine_chunks().to_pylist()
    for read in (dataset, lance.dataset(str(tmp_path / "ours")), esker.dataset(tmp_path / "theirs")):
        assert read.to_table()["c"].to_pylist() == expected
        assert read.take(places)["c"].to_pylist() == [expected[place] for place in places]
    assert dataset.count_rows("c IS NULL") == table["c"].null_count
    # A compaction of what the peer has written holds them, too.
    other = pa.table({"c": pa.array([empty, value], kind), "id": [0, 1]})
    lance.write_dataset(other, theirs.uri, mode="append")
    compacted = esker.dataset(theirs.uri)
    compacted.optimize.compact_files()
    assert compacted.to_table()["c"].to_pylist() == [*expected, empty, value]
    assert lance.dataset(theirs.uri).to_table()["c"].to_pylist() == [*expected, empty, value]


def test_many_lists_of_bits_without_items_within_a_row_are_refused_in_words(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([[[]] * EMPTY + [[True]]], pa.list_(pa.list_(pa.bool_())))})
    with pytest.raises(UnsupportedError, match="65,536 null and empty lists one after the other within a row"):
        esker.write_dataset(table, tmp_path)
    assert not list(tmp_path.glob("data/*"))
