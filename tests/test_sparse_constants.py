"""Columns that hold one long value among nulls, which the peer writes as a page of one value: nulls take no bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from tests.rounds import rounds

LONG = "".join(random.Random(3).choices("abcdefghijklmnopqrstuvwxyz", k=3_000))
ROWS = 4_000

SHAPES: dict[str, Any] = {
    "texts": lambda value: (value, pa.string()),
    "large texts": lambda value: (value, pa.large_string()),
    "binary": lambda value: (value and value.encode(), pa.binary()),
    "lists": lambda value: ([value, None, value], pa.list_(pa.string())),
    "lists of none": lambda value: (None if value is None else [value, None], pa.large_list(pa.string())),
    "structs": lambda value: (None if value is None else {"x": value}, pa.struct({"x": pa.string()})),
    "nulls in structs": lambda value: ({"x": value}, pa.struct({"x": pa.string()})),
}


def _column(places: set[int], shape: str, rows: int, value: str = LONG) -> pa.Array:
    made = [SHAPES[shape](value if row in places else None) for row in range(rows)]
    return pa.array([value for value, _ in made], made[0][1])


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("writer", [lance, esker])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("places", [{0}, {ROWS - 1}, {17, 1_800, 1_801, 3_999}], ids=["first", "last", "scattered"])
def test_nulls_beside_one_long_value_take_no_bytes(
    places: set[int], shape: str, writer: Any, version: str, tmp_path: Path
) -> None:
    rows = pa.table({"c": _column(places, shape, ROWS), "i": range(ROWS)})
    writer.write_dataset(rows, tmp_path / "t", data_storage_version=version)
    found = esker.dataset(tmp_path / "t")
    read = found.to_table()
    expected = lance.dataset(str(tmp_path / "t")).to_table()
    assert read["c"].to_pylist() == rows["c"].to_pylist()
    assert read.schema == expected.schema
    most = rows.nbytes + len(LONG) + 64 * ROWS
    assert read.nbytes < most
    assert found.take(list(range(ROWS - 1, 0, -3))).nbytes < most
    assert found.to_table(filter="i % 2 = 1").nbytes < most
    picked = [*places, 1, 2, *places]
    assert found.take(picked)["c"].to_pylist() == rows["c"].take(picked).to_pylist()
    nulls = found.to_table(filter="c is null")
    assert nulls.num_rows == rows["c"].null_count
    assert nulls.nbytes < 64 * ROWS


@settings(max_examples=rounds(30), deadline=None)
@given(data=st.data())
def test_the_rows_are_those_that_were_written_wherever_the_value_is(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = data.draw(st.integers(1, 300))
    everywhere = st.just(set(range(rows)))
    places = data.draw(everywhere | st.sets(st.integers(0, rows - 1), min_size=1))
    shape = data.draw(st.sampled_from(sorted(SHAPES)))
    value = data.draw(st.sampled_from(["", "a", "x" * 20, "é" * 30, LONG]))
    uri = str(tmp_path_factory.mktemp("t") / "t")
    lance.write_dataset(pa.table({"c": _column(places, shape, rows, value)}), uri, data_storage_version="2.2")
    expected = lance.dataset(uri).to_table()["c"].to_pylist()
    found = esker.dataset(uri)
    assert found.to_table()["c"].to_pylist() == expected
    wanted = data.draw(st.lists(st.integers(0, rows - 1), max_size=20))
    assert found.take(wanted)["c"].to_pylist() == [expected[row] for row in wanted]
    size = data.draw(st.integers(1, rows))
    parts = [batch["c"].to_pylist() for batch in found.to_batches(batch_size=size)]
    assert [value for part in parts for value in part] == expected
