"""Statistics of version 0.1: groups that they rule out are not read, and no row goes missing for it."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.lance.scan.options import ScanStatistics

LEGACY = "legacy"
ROWS, GROUP = 2000, 100


def numbered() -> pa.Table:
    """Columns that grow with the row, so that each group has bounds of its own."""
    rng = random.Random(1)
    rows = range(ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "half": pa.array([row / 2 for row in rows], pa.float64()),
            "text": pa.array([f"{row:06}" for row in rows]),
            "label": pa.array([None if row % 300 < 100 else f"t{row // 100:02}" for row in rows]),
            "odd": pa.array([row >= 1000 for row in rows]),
            "day": pa.array(rows, pa.int32()).cast(pa.date32()),
            "place": pa.array([{"x": row, "name": f"n{row // 100}"} for row in rows]),
            "noise": pa.array([rng.random() for _ in rows]),
        }
    )


@pytest.fixture(params=["esker", "pylance"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> esker.LanceDataset:
    uri = str(tmp_path / "t")
    if request.param == "esker":
        esker.write_dataset(
            numbered(), uri, data_storage_version=LEGACY, max_rows_per_group=GROUP, max_rows_per_file=700
        )
    else:
        lance.write_dataset(
            numbered(), uri, data_storage_version=LEGACY, max_rows_per_group=GROUP, max_rows_per_file=700
        )
    return esker.dataset(uri)


def scanned(dataset: esker.LanceDataset, filter: str, **options: Any) -> tuple[pa.Table, ScanStatistics]:
    seen: list[ScanStatistics] = []
    scanner = dataset.scanner(filter=filter, scan_stats_callback=seen.append, **options)
    return scanner.to_table(), seen[0]


SKIPPED = {
    "id = 750": 19,
    "id >= 1850": 18,
    "id < 0": 20,
    "id BETWEEN 350 AND 420 OR id = 1999": 17,
    "id IN (5, 305, 1305)": 17,
    "half = 100.0": 19,
    "half BETWEEN 100 AND 110": 19,
    "half > 990": 0,
    "text LIKE '0007%'": 19,
    "text > '001850'": 18,
    "label IS NOT NULL": 7,
    "label IS NULL": 13,
    "odd": 10,
    "NOT odd AND id > 500": 15,
    "day = date '1970-01-31'": 19,
    "place.x = 1234": 19,
    "place.name = 'n7'": 18,
    "noise > 2": 0,
    "id + 1 = 751": 0,
}


@pytest.mark.parametrize("condition", SKIPPED)
def test_groups_that_are_ruled_out_are_not_read(condition: str, dataset: esker.LanceDataset) -> None:
    table, cost = scanned(dataset, condition)
    everything, full = scanned(dataset, condition, use_stats=False)
    assert table.equals(everything)
    assert table.num_rows == dataset.count_rows(condition) == lance.dataset(dataset.uri).count_rows(condition)
    assert (full.groups, full.groups_skipped) == (0, 0)
    assert cost.groups == ROWS // GROUP
    assert cost.groups_skipped >= SKIPPED[condition]
    if SKIPPED[condition] == 0:
        assert cost.groups_skipped <= 1


def test_what_is_skipped_costs_no_bytes(dataset: esker.LanceDataset) -> None:
    scanned(dataset, "id = 750", columns=["noise"])  # Opens the files and reads the statistics.
    one, cost = scanned(dataset, "id = 750", columns=["noise"])
    assert one.num_rows == 1
    assert cost.bytes_read <= 8 * GROUP + 8 * GROUP
    _, full = scanned(dataset, "id = 750", columns=["noise"], use_stats=False)
    assert full.bytes_read >= 8 * ROWS


def test_the_plan_says_what_was_skipped(dataset: esker.LanceDataset) -> None:
    scanner = dataset.scanner(filter="id = 750")
    assert "use_stats=True" in scanner.explain_plan()
    assert "use_stats=False" in dataset.scanner(filter="id = 750", use_stats=False).explain_plan()
    assert "groups_skipped=" in scanner.analyze_plan()
    assert "groups_skipped=" not in dataset.scanner(columns=["id"]).analyze_plan()


def test_deletions_limits_and_row_ids_see_the_same_rows(dataset: esker.LanceDataset) -> None:
    lance.dataset(dataset.uri).delete("id % 3 = 0")
    dataset = esker.dataset(dataset.uri)
    for options in (
        {"limit": 7},
        {"offset": 5, "limit": 3},
        {"with_row_id": True},
        {"columns": ["text"]},
        {"batch_size": 10},
    ):
        table, cost = scanned(dataset, "id > 450 AND id < 720", **options)
        everything, _ = scanned(dataset, "id > 450 AND id < 720", use_stats=False, **options)
        assert table.equals(everything), options
        assert cost.groups_skipped > 0


def test_lost_nulls_and_nan_are_never_ruled_out(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([5, None, 7, 8, 9, 10], pa.int32()),
            "f": pa.array([1.0, math.nan, 2.0, 1.0, 1.5, 2.0], pa.float64()),
            "s": pa.array(["a", "", "b", "a", "c", "b"]),
            "b": pa.array([True, None, True, True, True, True]),
        }
    )
    for name, write in (("esker", esker.write_dataset), ("pylance", lance.write_dataset)):
        uri = str(tmp_path / name)
        extra: dict[str, Any] = {"allow_null_loss": True} if name == "esker" else {}
        write(table, uri, data_storage_version=LEGACY, max_rows_per_group=3, **extra)
        dataset = esker.dataset(uri)
        for condition, expected in (
            ("i = 0", 1),
            ("f > 100", 1),
            ("s IS NULL", 1),
            ("s = ''", 0),
            ("NOT b", 1),
            ("i > 7", 3),
        ):
            rows, cost = scanned(dataset, condition)
            assert rows.num_rows == expected, condition
            assert cost.groups == 2
        assert scanned(dataset, "i = 0")[1].groups_skipped == 1
        assert scanned(dataset, "f = 100")[1].groups_skipped == 2
        assert scanned(dataset, "s > 'bz'")[1].groups_skipped == 1


def test_columns_without_statistics_are_read(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array(range(300), pa.timestamp("us")), "tags": [[row] for row in range(300)]})
    dataset = esker.write_dataset(table, tmp_path / "t", data_storage_version=LEGACY, max_rows_per_group=50)
    rows, cost = scanned(dataset, "at = timestamp '1970-01-01 00:00:00.000007'")
    assert (rows["tags"].to_pylist(), cost.groups) == ([[7]], 0)


@pytest.mark.parametrize("seed", range(5))
def test_random_conditions_find_the_same_rows_as_without_statistics(seed: int, dataset: esker.LanceDataset) -> None:
    rng = random.Random(seed)

    def part() -> str:
        row = rng.randrange(-50, ROWS + 50)
        compare = rng.choice(["=", "!=", "<", "<=", ">", ">="])
        return rng.choice(
            [
                f"id {compare} {row}",
                f"half {compare} {row / 2}",
                f"text {compare} '{abs(row):06}'",
                f"label {compare} 't{abs(row) // 100:02}'",
                f"label IS {rng.choice(['', 'NOT '])}NULL",
                f"day {compare} date '197{rng.randrange(6)}-01-01'",
                f"place.x {compare} {row}",
                f"{rng.choice(['', 'NOT '])}odd",
                f"id {rng.choice(['', 'NOT '])}IN ({row}, {row + 1})",
                f"text LIKE '{abs(row):06}'",
            ]
        )

    for _ in range(20):
        condition = f"({part()} {rng.choice(['AND', 'OR'])} {part()}) {rng.choice(['AND', 'OR'])} NOT ({part()})"
        table, _ = scanned(dataset, condition)
        everything, _ = scanned(dataset, condition, use_stats=False)
        assert table.equals(everything), condition
