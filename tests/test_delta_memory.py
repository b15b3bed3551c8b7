"""Delta tables that live in this process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

ROWS = pa.table({"n": [1, 2]})


def test_a_table_in_memory_has_a_name_and_is_made_by_one_call() -> None:
    write_deltalake("memory://delta-in-memory", ROWS, mode="overwrite")
    assert DeltaTable("memory://delta-in-memory").count() == 2


def test_a_table_without_a_name_lasts_as_long_as_its_handle() -> None:
    table = DeltaTable.create("memory://", ROWS.schema)
    other = DeltaTable.create("memory://", ROWS.schema)
    assert table.table_uri != other.table_uri
    write_deltalake(table, ROWS, mode="append")
    assert (table.version(), table.count(), other.count()) == (1, 2, 0)
    assert DeltaTable(table.table_uri).count() == 2


def test_rows_that_nobody_would_find_again_are_refused() -> None:
    with pytest.raises(ValueError, match="give a name"):
        write_deltalake("memory://", ROWS)
