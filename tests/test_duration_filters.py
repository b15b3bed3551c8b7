"""Filters that compare durations with intervals: lengths of time, days among them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError

LENGTHS = [
    dt.timedelta(days=100),
    dt.timedelta(0),
    dt.timedelta(hours=-50),
    None,
    dt.timedelta(hours=24, seconds=1),
]


@pytest.fixture(params=["s", "ms", "us", "ns"])
def dataset(request: pytest.FixtureRequest, uri: str) -> Any:
    lengths = pa.array(LENGTHS, pa.duration("us")).cast(pa.duration(request.param), safe=False)
    starts = pa.array([dt.datetime(2024, 1, 1)] * len(LENGTHS), pa.timestamp("us"))
    return esker.write_dataset(pa.table({"k": range(len(LENGTHS)), "d": lengths, "start": starts}), uri)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("d > interval '1 day'", [0, 4]),
        ("d < interval '1 day'", [1, 2]),
        ("interval '1 day' >= d", [1, 2]),
        ("d = interval '100 days'", [0]),
        ("d != interval '2400 hours'", [1, 2, 4]),
        ("d between interval '-51 hours' and interval '0 days'", [1, 2]),
        ("d in (interval '100 days', interval '-2 days -2 hours')", [0, 2]),
        ("d < - interval '1 day'", [2]),
        ("d > interval '1 day 1 second'", [0]),
        ("start - timestamp '2023-12-31' >= interval '1 day'", [0, 1, 2, 3, 4]),
        ("start - timestamp '2023-12-31' > interval '1 day'", []),
    ],
)
def test_days_are_lengths(dataset: Any, condition: str, kept: list[int]) -> None:
    assert dataset.to_table(filter=condition)["k"].to_pylist() == kept
    assert dataset.count_rows(condition) == len(kept)


def test_rows_are_deleted_by_lengths(dataset: Any) -> None:
    dataset.delete("d < interval '1 day'")
    assert dataset.to_table()["k"].to_pylist() == [0, 3, 4]


@pytest.mark.parametrize("interval", ["interval '1 month'", "interval '1 year 2 days'", "interval '400000 years'"])
def test_months_have_no_length(dataset: Any, interval: str) -> None:
    with pytest.raises(InvalidArgumentError, match="months have no fixed length"):
        dataset.to_table(filter=f"d > {interval}")
