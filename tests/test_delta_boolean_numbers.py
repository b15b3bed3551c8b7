"""Booleans compared with numbers, beside deltalake: 1 is true, and 0 false; other numbers are refused here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.exceptions import InvalidArgumentError

ROWS = pa.table({"b": [True, False, None], "i": [1, 2, 3]})


@pytest.mark.parametrize(
    "sql", ["b = 1", "b = 0", "1 = b", "b <> 1", "b > 0", "b in (1)", "b = 1.0", "b between 0 and 0"]
)
def test_zero_is_false_and_one_is_true(tmp_path: Path, sql: str) -> None:
    left = []
    for library in (deltalake, esker.delta):
        peer: Any = library
        uri = str(tmp_path / library.__name__)
        peer.write_deltalake(uri, ROWS)
        peer.DeltaTable(uri).delete(sql)
        left.append(sorted(peer.DeltaTable(uri).to_pyarrow_table()["i"].to_pylist()))
    assert left[0] == left[1]


@pytest.mark.parametrize("sql", ["b = 2", "b = 0.5"])
def test_other_numbers_are_no_booleans(tmp_path: Path, sql: str) -> None:
    uri = str(tmp_path / "t")
    esker.delta.write_deltalake(uri, ROWS)
    table = esker.delta.DeltaTable(uri)
    with pytest.raises(InvalidArgumentError):
        table.delete(sql)
    assert table.version() == 0
