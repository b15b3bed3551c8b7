"""A Delta table never gets a schema that is nested too deeply to be read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError, UnsupportedError


def nested(structs: int) -> pa.Table:
    kind = pa.int64()
    for _ in range(structs):
        kind = pa.struct({"f": kind})
    return pa.table({"id": [1], "x": pa.nulls(1, kind)})


def test_what_is_written_can_be_read_and_one_level_more_is_refused(tmp_path: Path) -> None:
    uri, rows = str(tmp_path / "read"), nested(41)
    write_deltalake(uri, rows)
    assert DeltaTable(uri).to_pyarrow_table() == rows
    refused = str(tmp_path / "refused")
    with pytest.raises(UnsupportedError, match="column 'x'.*127 levels of JSON"):
        write_deltalake(refused, nested(42))
    with pytest.raises(NotFoundError):
        DeltaTable(refused)


def test_a_column_too_deep_is_not_merged_into_a_table(tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, nested(1).select(["id"]))
    with pytest.raises(UnsupportedError, match="levels of JSON"):
        write_deltalake(uri, nested(60), mode="append", schema_mode="merge")
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 1
