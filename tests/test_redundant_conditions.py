"""Filters with conditions that say nothing new, so that columns of the filter fall away: they are read all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

TABLE = pa.table(
    {
        "a": [1, 2, 3, 4, None],
        "b": [None, "x", None, "y", "z"],
        "c": [1, 2, 3, 4, 5],
        "d": [True, False, True, None, True],
    }
)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    "where",
    [
        "a > 1 AND b IS NULL AND (c IN (1, 3) OR b IS NULL)",
        "a > 1 AND b = 'x' AND (c = 2 OR b = 'x')",
        "a > 1 AND b = 'x' AND (c = 4 OR b = 'x') AND d IS NOT NULL",
        "b = 'x' AND (c = 2 OR b = 'x')",
        "(c = 2 OR b = 'x') AND b = 'x' AND a < 9",
        "a > 0 AND (a > 0 OR c = 1) AND b = 'y'",
        "a > 1 AND (b = 'y' OR b <> 'y') AND c > 0",
        "a > 1 AND c > 0 AND c > 0 AND (d OR c > 0)",
        "a > 1 AND c = 3 AND (c = 3 OR 10 / a > 1)",
    ],
)
def test_all_columns_come_whatever_the_filter_says_twice(tmp_path: Path, version: str, where: str) -> None:
    uri = str(tmp_path / "t")
    table = TABLE if version != "0.1" else TABLE.set_column(0, "a", pa.array([1, 2, 3, 4, 0])).drop_columns(["d"])
    if version == "0.1" and "d " in where:
        where = where.replace(" AND d IS NOT NULL", "").replace("(d OR c > 0)", "(c > 9 OR c > 0)")
    dataset = esker.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=3)
    # pylance's own answers from files of 0.1 are others.
    peer = lance.write_dataset(table, f"{uri}-peer", max_rows_per_file=3)
    expected = peer.to_table(filter=where)
    assert dataset.to_table(filter=where) == expected
    assert dataset.count_rows(where) == len(expected)
    for columns in (["a"], ["b"], ["c"], ["c", "b"], []):
        options: dict[str, Any] = {"columns": columns, "filter": where, "with_row_id": True}
        assert dataset.to_table(**options) == peer.to_table(**options)
    assert dataset.update({"c": "9"}, where=where)["num_rows_updated"] == len(expected)
