"""Delta tables that esker and deltalake change in turns by every verb, beside a model of their rows.

Some here. By hand, many of them, and with Spark: `python -m tests.delta_mixed_turns --tables 100 --turns 25 [--spark]`.
"""

from __future__ import annotations

import collections
import os
import random
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from esker.delta import DeltaTable, write_deltalake
from tests.delta_mixed_model import SCHEMA, predicate, row_of
from tests.delta_mixed_turns import run

TABLES = int(os.environ.get("ESKER_MIXED_TABLES", "4"))
FIRST = int(os.environ.get("ESKER_MIXED_SEED", "0"))


def test_turns_of_both_writers_keep_the_models_rows(tmp_path: Path) -> None:
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(FIRST, FIRST + TABLES):
        counts += run(seed, 16, tmp_path)
    for verb in ("ours delete", "ours update", "ours merge", "theirs merge"):
        assert counts[verb], counts


def test_a_predicate_means_the_same_rows_in_sql_and_in_the_model(tmp_path: Path) -> None:
    numbers = random.Random(5)
    rows = [row_of(numbers, key, SCHEMA.names) for key in range(60)]
    for part in range(0, 60, 12):
        write_deltalake(tmp_path, pa.Table.from_pylist(rows[part : part + 12], SCHEMA), mode="append")
    table = DeltaTable(tmp_path)
    for _ in range(150):
        sql, test = predicate(numbers, rows)
        found = table.to_pyarrow_table(columns=["id"], filters=sql)["id"].to_pylist()
        assert sorted(found) == [row["id"] for row in rows if test(row) is True], sql


def test_the_feed_of_a_removed_file_has_none_of_the_rows_that_its_vector_deleted(tmp_path: Path) -> None:
    on: dict[str, str | None] = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"id": range(4)}), configuration=on)
    DeltaTable(tmp_path).delete("id = 2")
    DeltaTable(tmp_path).delete()

    def told(table: Any) -> list[int]:
        return sorted(pa.table(table.load_cdf(2, 2))["id"].to_pylist())

    assert told(DeltaTable(tmp_path)) == [0, 1, 3]
    assert told(deltalake.DeltaTable(tmp_path)) == [2], "theirs tells what the vector deleted no more"
