"""`load_cdf` of ranges with nothing in them, beside deltalake: empty by their times, refused by their versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta

EARLY, LATE = "2001-01-01T00:00:00Z", "2091-01-01T00:00:00Z"
RANGES: list[dict[str, Any]] = [
    {"ending_timestamp": EARLY},
    {"starting_version": 2, "ending_timestamp": EARLY},
    {"ending_version": 2, "ending_timestamp": EARLY},
    {"starting_timestamp": LATE, "allow_out_of_range": True},
    {"starting_version": 9, "allow_out_of_range": True},
    {"starting_version": 1, "ending_version": 99},
    {"starting_timestamp": EARLY, "ending_version": 0},
]
REFUSED: list[dict[str, Any]] = [
    {"starting_timestamp": LATE},
    {"starting_timestamp": LATE, "ending_version": 1},
    {"starting_version": 2, "ending_version": 1},
    {"starting_version": 9},
]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    for number in range(3):
        on = {"delta.enableChangeDataFeed": "true"} if number == 0 else None
        deltalake.write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append", configuration=on)
    return str(tmp_path)


def _versions(library: Any, uri: str, asked: dict[str, Any]) -> list[int]:
    return sorted(pa.table(library.DeltaTable(uri).load_cdf(**asked))["_commit_version"].to_pylist())


@pytest.mark.parametrize("asked", RANGES, ids=str)
def test_ranges_have_the_same_rows(uri: str, asked: dict[str, Any]) -> None:
    assert _versions(esker.delta, uri, asked) == _versions(deltalake, uri, asked)


@pytest.mark.parametrize("asked", REFUSED, ids=str)
def test_ranges_that_are_none_are_refused(uri: str, asked: dict[str, Any]) -> None:
    for library in (esker.delta, deltalake):
        with pytest.raises((deltalake.exceptions.DeltaError, esker.exceptions.InvalidArgumentError)):
            _versions(library, uri, asked)
