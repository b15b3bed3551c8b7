"""Filters over partition columns of floats, NaN and zeros of both signs among them: partitions are known for sure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.delta import DeltaTable
from esker.exceptions import InvalidArgumentError

VALUES = [1.5, float("nan"), -0.0, 0.0, math.inf, None, -2.5]
FILTERS: list[Any] = [
    "p = 1.5",
    "p != 1.5",
    "p in (1.5, 2)",
    "p not in (1.5)",
    "not (p = 1.5)",
    "p > 0",
    "p = cast('NaN' as double)",
    "p != cast('NaN' as double)",
    "p is null",
]
TUPLES: list[Any] = [("p", "=", "1.5"), ("p", "!=", "1.5"), ("p", "<", "-1"), ("p", "in", ["1.5", "inf"])]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    deltalake.write_deltalake(tmp_path, pa.table({"id": range(7), "p": pa.array(VALUES)}), partition_by=["p"])
    return str(tmp_path)


@pytest.mark.parametrize("where", [*FILTERS, *([one] for one in TUPLES)], ids=str)
def test_files_and_partitions_are_those_of_deltalake(uri: str, where: Any) -> None:
    ours, theirs = DeltaTable(uri), deltalake.DeltaTable(uri)
    expected = sorted(theirs.file_uris(file_pruning_predicate=where))
    assert sorted(ours.file_uris(file_pruning_predicate=where)) == expected
    partitions = [table.partitions(file_pruning_predicate=where) for table in (ours, theirs)]
    assert sorted(map(repr, partitions[0])) == sorted(map(repr, partitions[1]))
    rows = [table.to_pyarrow_dataset(file_pruning_predicate=where).to_table()["id"] for table in (ours, theirs)]
    assert sorted(rows[0].to_pylist()) == sorted(rows[1].to_pylist())


@pytest.mark.parametrize("where", TUPLES, ids=str)
def test_a_transaction_replaces_the_partitions_that_it_names_and_no_others(
    uri: str, tmp_path: Path, where: Any
) -> None:
    kept = []
    for library in (esker.delta, deltalake):
        place = tmp_path / library.__name__
        library.write_deltalake(place, DeltaTable(uri).to_pyarrow_table(), partition_by=["p"])
        table: Any = library.DeltaTable(place)
        table.create_write_transaction([], "overwrite", table.schema(), ["p"], partition_filters=[where])
        kept.append(sorted(DeltaTable(place).to_pyarrow_table()["id"].to_pylist()))
    assert kept[0] == kept[1]


def test_a_transaction_replaces_no_files_by_what_their_rows_may_be(uri: str) -> None:
    table = DeltaTable(uri)
    for filters in ([("id", "=", 3)], [("p", "=", "1.5"), ("id", "=", 3)]):
        with pytest.raises(InvalidArgumentError, match=r"over the partition columns \['p'\], found .*predicate="):
            table.create_write_transaction([], "overwrite", table.schema(), ["p"], partition_filters=filters)
