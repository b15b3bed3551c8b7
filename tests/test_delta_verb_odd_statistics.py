"""Deletes, updates and merges of files of which the log has odd statistics: cut, of other types, none, or wrong.

Bounds that leave out rows that are there are a lie that nobody sees through; everything else changes no outcome.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.delta import DeltaTable, write_deltalake
from tests.delta_rows import rows
from tests.test_delta_delete import read_by_theirs

Statistics = dict[str, Any]
DATA = pa.table(
    {
        "id": range(20),
        "x": [*map(float, range(19)), math.nan],
        "b": [n % 3 == 0 for n in range(20)],
        "s": [f"s{n:02}" for n in range(20)],
        "g": ["a", "b"] * 10,
    }
)
LAYOUTS: dict[str, dict[str, Any]] = {
    "copy": {},
    "vectors": {"configuration": {"delta.enableDeletionVectors": "true"}},
    "partitions": {"configuration": {"delta.enableChangeDataFeed": "true"}, "partition_by": "g"},
}


def _with(**parts: Any) -> Callable[[Statistics], str]:
    return lambda found: json.dumps(found | parts)


def _bounds(low: Statistics, high: Statistics) -> Callable[[Statistics], str]:
    def made(found: Statistics) -> str:
        return json.dumps(found | {"minValues": found["minValues"] | low, "maxValues": found["maxValues"] | high})

    return made


ODD: dict[str, Callable[[Statistics], str | None]] = {
    "none": lambda _: None,
    "empty": lambda _: "",
    "cut": lambda found: json.dumps(found)[:-9],
    "null": lambda _: "null",
    "a list": lambda _: "[1]",
    "a deep list": lambda _: "[" * 100_000,
    "no number of rows": lambda found: json.dumps({k: v for k, v in found.items() if k != "numRecords"}),
    "a text for the number": _with(numRecords="10"),
    "a negative number": _with(numRecords=-4),
    "a small number": _with(numRecords=3),
    "a large number": _with(numRecords=10**12),
    "nothing counted": _with(numRecords=0),
    "no bounds": lambda found: json.dumps({"numRecords": found["numRecords"]}),
    "lists of bounds": _with(minValues=[1], maxValues="x", nullCount=None),
    "nested bounds": _with(minValues={"id": {"a": 1}}, maxValues={"id": [1]}),
    "texts for numbers": _bounds({"id": "0"}, {"id": "99"}),
    "cut texts": _bounds({"s": "s"}, {"s": "t"}),
    "null bounds": _bounds({"id": None, "s": None}, {"id": None, "s": None}),
    "bounds of booleans": _bounds({"b": False}, {"b": False}),
    "texts for NaN": _bounds({"x": "-Infinity"}, {"x": "NaN"}),
    "bare NaN": _bounds({"x": math.nan}, {"x": math.nan}),
    "bounds beside NaN": _bounds({"x": 0.0}, {"x": 18.0}),
    "endless bounds": lambda found: json.dumps(found).replace('"id": ', '"id": 1e999999999, "y": '),
    "odd counts of nulls": _with(nullCount={"id": -1, "x": "2", "s": 10**30, "b": {"c": 1}}),
}


def _merge(table: DeltaTable) -> dict[str, Any]:
    source = pa.table({"id": [3, 15, 99], "x": [0.5] * 3, "b": [True] * 3, "s": ["m"] * 3, "g": ["a"] * 3})
    merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
    return merger.execute()


def _merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    new = {"x": 0.5, "b": True, "s": "m", "g": "a"}
    return [*({**row, **new} if row["id"] in (3, 15) else row for row in found), {"id": 99, **new}]


VERBS: list[tuple[Callable[[DeltaTable], dict[str, Any]], Callable[[Any], Any], tuple[str, int]]] = [
    (lambda t: t.delete("id % 5 = 1"), lambda f: [r for r in f if r["id"] % 5 != 1], ("num_deleted_rows", 4)),
    (lambda t: t.delete("x > 17.5"), lambda f: [r for r in f if r["id"] < 18], ("num_deleted_rows", 2)),
    (lambda t: t.delete("b and s >= 's09'"), lambda f: [r for r in f if r["id"] not in (9, 12, 15, 18)], ("", 0)),
    (
        lambda t: t.update({"s": "'z'"}, predicate="id in (3, 15)"),
        lambda f: [{**r, "s": "z"} if r["id"] in (3, 15) else r for r in f],
        ("num_updated_rows", 2),
    ),
    (_merge, _merged, ("num_target_rows_updated", 2)),
]


def told_otherwise(path: Path, odd: Callable[[Statistics], str | None]) -> None:
    """Changes what the log says of each file."""
    for entry in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["stats"] = odd(json.loads(action["add"]["stats"]))
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("odd", ODD)
def test_each_verb_changes_the_rows_that_it_means(tmp_path: Path, odd: str, layout: str) -> None:
    for number, (change, expected, (key, count)) in enumerate(VERBS):
        path = tmp_path / str(number)
        write_deltalake(path, DATA.slice(0, 10), **LAYOUTS[layout])
        write_deltalake(path, DATA.slice(10), mode="append")
        told_otherwise(path, ODD[odd])
        told = change(DeltaTable(path))
        assert not key or told[key] == count, told
        wanted = rows(pa.Table.from_pylist(expected(DATA.to_pylist()), DATA.schema))
        assert rows(DeltaTable(path).to_pyarrow_table()) == wanted
        # What is written anew is told as it is.
        for action in map(json.loads, (path / "_delta_log" / f"{2:020}.json").read_text().splitlines()):
            if "add" in action:
                statistics = json.loads(action["add"]["stats"])
                assert statistics["numRecords"] == pq.read_metadata(path / action["add"]["path"]).num_rows
                assert all(
                    isinstance(statistics.get(part, {}), dict) for part in ("minValues", "maxValues", "nullCount")
                )


def test_deltalake_reads_what_was_made_of_odd_statistics(tmp_path: Path) -> None:
    for odd in ("none", "no bounds", "cut texts", "a small number"):
        path = tmp_path / odd.replace(" ", "-")
        write_deltalake(path, DATA, configuration=LAYOUTS["vectors"]["configuration"])
        told_otherwise(path, ODD[odd])
        DeltaTable(path).delete("id % 5 = 1")
        assert rows(read_by_theirs(path)) == rows(DeltaTable(path).to_pyarrow_table())
