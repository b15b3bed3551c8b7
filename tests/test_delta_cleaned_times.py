"""Versions by their times, and feeds up to a time, where a clean-up has taken entries of the log, or is at work."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError
from tests.tree_branches import meanwhile, watched_stores


def _entry(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020}.json"


def _table(path: Path, *, in_commit: bool) -> list[datetime]:
    """A table of four versions with a checkpoint of version 2; for each version a time before the next one."""
    on: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
    on["delta.enableInCommitTimestamps"] = str(in_commit).lower()
    moments = []
    for number in range(4):
        write_deltalake(path, pa.table({"id": [number]}), mode="append", configuration=None if number else on)
        time.sleep(0.01)
        moments.append(datetime.now(UTC))
        time.sleep(0.01)
    DeltaTable(path, version=2).create_checkpoint()
    return moments


def _ids(library: Any, path: Path, **asked: Any) -> list[int]:
    return sorted(pa.table(library.DeltaTable(path).load_cdf(**asked))["id"].to_pylist())


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("how", ["open", "feed"])
def test_an_entry_that_is_cleaned_up_while_times_are_read_is_none(tmp_path: Path, how: str, version: int) -> None:
    moments = _table(tmp_path, in_commit=True)

    def clean() -> None:
        for gone in range(version + 1):
            _entry(tmp_path, gone).unlink()

    with watched_stores() as watched:
        table = DeltaTable(tmp_path)
        watched["f"] = meanwhile(clean, verb="get", part=_entry(tmp_path, version).name)
        if how == "open":
            table.load_as_version(moments[2])
            assert table.version() == 2
        else:
            assert pa.table(table.load_cdf(2))["id"].to_pylist() == [2, 3]
    assert not _entry(tmp_path, version).exists()


@pytest.mark.parametrize("in_commit", [False, True])
def test_a_time_of_a_version_that_was_cleaned_up_opens_no_older_one(tmp_path: Path, in_commit: bool) -> None:
    moments = _table(tmp_path, in_commit=in_commit)
    _entry(tmp_path, 1).unlink()
    table = DeltaTable(tmp_path)
    with pytest.raises(NotFoundError, match="version 1 of .* was cleaned up, which may be of that time"):
        table.load_as_version(moments[1])
    assert table.version() == 3
    with pytest.raises(FileNotFoundError):
        deltalake.DeltaTable(tmp_path).load_as_version(moments[1])
    for version in (2, 3):
        table.load_as_version(moments[version])
        assert table.version() == version


@pytest.mark.parametrize("asked", [{}, {"starting_version": 0}, {"starting_version": 1}], ids=str)
@pytest.mark.parametrize("gone", [[0, 1], [1]], ids=str)
def test_a_feed_up_to_a_time_does_not_leave_out_versions_that_were_cleaned_up(
    tmp_path: Path, gone: list[int], asked: dict[str, int]
) -> None:
    moments = _table(tmp_path, in_commit=False)
    for version in gone:
        _entry(tmp_path, version).unlink()
    until = {"ending_timestamp": moments[1].isoformat()}
    with pytest.raises(Exception, match=r"Invalid table version|gap"):
        _ids(deltalake, tmp_path, **asked, **until)
    with pytest.raises(NotFoundError, match=r"was cleaned up, .*; starting_version=2 reads what is there"):
        _ids(esker.delta, tmp_path, **asked, **until)
    if 0 in gone:
        assert _ids(esker.delta, tmp_path, starting_version=2, ending_timestamp=moments[2].isoformat()) == [2]
        assert _ids(esker.delta, tmp_path, starting_version=2, **until) == []
