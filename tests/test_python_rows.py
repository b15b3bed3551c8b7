"""`python_rows`: maps become dicts with any release of pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from esker.arrow.python_rows import python_rows, with_dicts

TEXTS = pa.map_(pa.string(), pa.int64())
NESTED = pa.struct([("m", TEXTS), ("l", pa.list_(pa.map_(pa.int8(), TEXTS)))])
ROWS: list[dict[str, Any]] = [
    {"id": 1, "m": {"a": 1, "b": None}, "s": {"m": {}, "l": [{1: {"x": 2}}, {}, None]}},
    {"id": None, "m": None, "s": None},
    {"id": 3, "m": {}, "s": {"m": None, "l": None}},
]


def test_maps_are_dicts_at_every_depth() -> None:
    table = pa.Table.from_pylist(ROWS, pa.schema([("id", pa.int8()), ("m", TEXTS), ("s", NESTED)]))
    for rows in (table, table.combine_chunks().to_batches()[0]):
        assert python_rows(rows) == with_dicts(rows) == ROWS
    for name in table.column_names:
        column = table[name].combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        assert python_rows(column) == with_dicts(column) == [row[name] for row in ROWS]


def test_a_key_that_is_there_twice_is_an_error() -> None:
    column = pa.array([[("a", 1), ("a", 2)]], TEXTS)
    for made in (python_rows, with_dicts):
        with pytest.raises(KeyError):
            made(column)
