"""Zone maps after a compaction: of rows that are encoded anew by their values, of copied pages by their files' maps."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import esker
from tests.rewriting import rewritten
from tests.test_zone_maps import VERSIONS, ZONE, numbered, scanned, seeds

CLUSTERED = {"id", "half", "day", "at", "text", "near", "price"}
LARGE = 20 * ZONE + 77
"""Rows of a file whose pages of numbers are large enough to be copied."""


def _written(uri: str, rows: list[int], **options: Any) -> esker.LanceDataset:
    start = 0
    for number, count in enumerate(rows):
        mode = "append" if number else "create"
        esker.write_dataset(numbered(count, start=start), uri, mode=mode, durable=False, **options)
        start += count
    return esker.dataset(uri)


def _newest(uri: str) -> dict[str, int]:
    """The seeds of the one data file that the table has now."""
    (fragment,) = esker.dataset(uri).get_fragments()
    (path,) = [file.path for file in fragment.data_files()]
    there = sorted(path.name for path in Path(uri, "data").glob("*.lance"))
    return seeds(uri)[there.index(path)]


def _check(uri: str, conditions: list[str]) -> None:
    dataset = esker.dataset(uri)
    for condition in conditions:
        found, _ = scanned(dataset, condition)
        assert found.num_rows == lance.dataset(uri).count_rows(condition), condition


CONDITIONS = [
    "id = 12345",
    "id > 100000 and id < 100010",
    "half is null and id < 1000",
    "text = '000054321'",
    "text is null",
    "text > '0000990'",
    "near between 5000 and 5100",
    "half < 3",
    "day = cast('1970-01-04' as date)",
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("copy_pages", [True, False])
@pytest.mark.parametrize("rows", [[5 * ZONE - 100, 5 * ZONE + 3], [LARGE, LARGE], [LARGE, 100, 9, LARGE + 5000]])
def test_a_compacted_file_has_the_zone_maps_that_its_columns_deserve(
    rows: list[int], copy_pages: bool, version: str, uri: str
) -> None:
    _written(uri, rows, data_storage_version=version)
    outcome = rewritten(uri, copy_pages=copy_pages)
    if copy_pages and version != "2.0" and max(rows) == min(rows[0], LARGE):
        assert outcome.pages_copied > 0
    assert set(_newest(uri)) == CLUSTERED
    _check(uri, CONDITIONS)
    found, cost = scanned(esker.dataset(uri), "id = 5")
    assert found.num_rows == 1
    assert cost.groups_skipped >= cost.groups - 2


@pytest.mark.parametrize("copy_pages", [True, False])
def test_deleted_rows_leave_the_zones_of_what_is_there(copy_pages: bool, uri: str) -> None:
    _written(uri, [LARGE, LARGE]).delete("id % 5000 = 7 or id < 10000 or text is null")
    rewritten(uri, copy_pages=copy_pages)
    assert set(_newest(uri)) == CLUSTERED
    _check(uri, CONDITIONS)
    assert scanned(esker.dataset(uri), "text is null")[1].groups_skipped > 10


def test_zones_with_nan_or_of_nulls_alone_are_no_lie(uri: str) -> None:
    numbers = np.arange(LARGE * 2, dtype=np.float64)
    numbers[LARGE + 5] = np.nan
    numbers[3] = np.inf
    nothing = pa.array(numbers, mask=np.arange(LARGE * 2) < 3 * ZONE)
    rows = pa.table({"f": numbers, "late": nothing, "id": pa.array(range(LARGE * 2), pa.int64())})
    for start in (0, LARGE):
        mode = "append" if start else "create"
        esker.write_dataset(rows.slice(start, LARGE), uri, mode=mode)
    assert rewritten(uri).pages_copied > 0
    assert set(_newest(uri)) == {"id", "late", "f"}
    for condition in ("f > 1e300", "f = 7", "isnan(f)", "late is null", "late is not null", "late < 80000", "f >= 0"):
        scanned(esker.dataset(uri), condition)
    assert esker.dataset(uri).count_rows("late is null") == 3 * ZONE
    assert esker.dataset(uri).count_rows("isnan(f)") == 1


def test_pages_of_files_without_zone_maps_leave_their_columns_without(uri: str) -> None:
    # pylance's files have none unless an index asks for them.
    for start in (0, LARGE):
        lance.write_dataset(
            numbered(LARGE, start=start), uri, mode="append" if start else "create", data_storage_version="2.2"
        )
    assert rewritten(uri).pages_copied > 0
    copied = set(_newest(uri))
    assert copied < CLUSTERED
    _check(uri, CONDITIONS)


def test_pylance_trains_an_index_with_the_zones_of_a_compacted_file(uri: str) -> None:
    data = numbered(2 * LARGE).select(["id", "text", "half"])
    theirs = lance.write_dataset(data.slice(0, 10), uri)
    theirs.create_scalar_index("id", IndexConfig("zonemap", {"rows_per_zone": ZONE, "use_seeds": True}))
    theirs.create_scalar_index("text", IndexConfig("zonemap", {"rows_per_zone": ZONE, "use_seeds": True}))
    for start in (0, LARGE):
        esker.write_dataset(data.slice(start, LARGE), uri, mode="append")
    rewritten(uri, [1, 2])
    after = lance.dataset(uri)
    after.optimize.optimize_indices()
    for condition in ("id = 50000", "text = '000050000'", "text IS NULL", "id > 98000", "text IS NOT NULL and id < 5"):
        assert "ScalarIndexQuery" in after.scanner(filter=condition).explain_plan()
        assert after.count_rows(condition) == after.scanner(filter=condition, use_scalar_index=False).count_rows()
        assert after.count_rows(condition) == esker.dataset(uri).count_rows(condition)


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_find_the_same_rows_as_without_statistics(seed: int, uri: str) -> None:
    rng = random.Random(seed)
    rows = [rng.choice([100, 3 * ZONE + 1, LARGE, LARGE + 4096]) for _ in range(rng.randrange(2, 5))]
    total = sum(rows)
    noise = np.random.RandomState(seed)
    values = np.sort(noise.randint(0, total, total)) + noise.randint(0, 50, total)
    nulls = noise.random_sample(total) < rng.choice([0, 0.0001, 0.5])
    nulls[total // 3 : total // 2] |= rng.random() < 0.5
    texts = pa.array([f"{n:06}" * rng.choice([1, 1, 12]) for n in values.tolist()], mask=nulls)
    table = pa.table({"n": pa.array(values, mask=nulls), "t": texts, "f": pa.array(values / 3, mask=nulls)})
    start = 0
    for number, count in enumerate(rows):
        esker.write_dataset(table.slice(start, count), uri, mode="append" if number else "create", durable=False)
        start += count
    if rng.random() < 0.5:
        esker.dataset(uri).delete(f"n % {rng.choice([3, 1000, 50000])} = 1", durable=False)
    rewritten(uri, copy_pages=rng.random() < 0.7)
    dataset = esker.dataset(uri)
    for _ in range(40):
        number, compare = rng.randrange(-10, total + 100), rng.choice(["=", "<", "<=", ">", ">=", "!="])
        condition = rng.choice(
            [
                f"n {compare} {number}",
                f"f {compare} {number / 3}",
                f"t {compare} '{abs(number):06}'",
                f"{rng.choice('ntf')} is {rng.choice(['', 'not '])}null",
            ]
        )
        scanned(dataset, condition)
