"""Changes of wide tables look up each column once: names of schemas are made anew whenever they are asked for."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from esker.arrow.blob_arrays import marked_schema
from esker.blob import blob_field
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.lance.merge.source import check_columns

COLUMNS = 6_000


def test_blobs_of_a_wide_table_are_marked_in_a_pass_over_its_columns() -> None:
    table = pa.schema([*(pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)), blob_field("b")])
    found = pa.schema([*(field for field in table if field.name != "b"), ("b", pa.large_binary()), ("x", pa.int8())])
    started = time.process_time()
    marked = marked_schema(found, table)
    # A pass over all names for each column took ten times as long.
    assert time.process_time() - started < 0.5
    assert marked.names == found.names
    assert marked.field("b").metadata[b"lance-encoding:blob"] == b"true"
    assert marked.field("c7").metadata is None
    assert marked.field("x").metadata is None


def test_columns_of_a_wide_source_are_checked_in_a_pass_over_them() -> None:
    table = pa.schema([pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)])
    started = time.process_time()
    check_columns(table, table, on=["c7"], insert=True, update=True)
    # A pass over all names for each column took ten times as long.
    assert time.process_time() - started < 0.5
    for source, expected in (
        (pa.schema([*table, table.field(7)]), InvalidArgumentError),
        (table.append(pa.field("other", pa.int8())), SchemaMismatchError),
        (table.remove(7), SchemaMismatchError),
    ):
        with pytest.raises(expected):
            check_columns(source, table, on=["c7"], insert=True, update=True)
