"""`load_cdf` of ranges with nothing in them, beside deltalake: empty by their times, refused by their versions."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError
from tests.delta_logs import commit, metadata, remove

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


FIRST = datetime(2024, 1, 2, 3, 0, 0, 123_000, UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(params=[False, True], ids=["put", "in-commit"])
def dated(uri: str, request: pytest.FixtureRequest) -> tuple[str, bool]:
    """A table with a version each second, and whether its entries say so or the files of its log."""
    for number in range(3):
        path = Path(uri) / "_delta_log" / f"{number:020}.json"
        time = round((FIRST + number * SECOND).timestamp() * 1000)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["timestamp"] = time
                line["commitInfo"] |= {"inCommitTimestamp": time} if request.param else {}
            if "metaData" in line and request.param:
                line["metaData"]["configuration"]["delta.enableInCommitTimestamps"] = "true"
            if "protocol" in line and request.param:
                features = ["changeDataFeed", "inCommitTimestamp"]
                line["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        put = time if not request.param else time + 7_000_000
        os.utime(path, ns=(put * 1_000_000, put * 1_000_000))
    return uri, bool(request.param)


@pytest.mark.parametrize(
    ("after", "opened", "since", "until"),
    [
        (timedelta(0), 0, [0, 1, 2], [0]),
        (timedelta(microseconds=999), 0, [0, 1, 2], [0]),
        (timedelta(milliseconds=1), 0, [1, 2], [0]),
        (timedelta(milliseconds=999), 0, [1, 2], [0]),
        (SECOND, 1, [1, 2], [0, 1]),
        (2 * SECOND, 2, [2], [0, 1, 2]),
        (3 * SECOND, 2, None, [0, 1, 2]),
    ],
    ids=str,
)
def test_times_at_and_between_commits(
    dated: tuple[str, bool], after: timedelta, opened: int, since: list[int] | None, until: list[int]
) -> None:
    (uri, in_commit), moment = dated, FIRST + after
    # Of in-commit timestamps deltalake knows nothing.
    for library in (esker.delta,) if in_commit else (esker.delta, deltalake):
        table = library.DeltaTable(uri)
        table.load_as_version(moment)
        assert table.version() == opened
        if since is not None:
            assert _versions(library, uri, {"starting_timestamp": moment.isoformat()}) == since
        assert _versions(library, uri, {"ending_timestamp": moment.isoformat()}) == until


def test_in_commit_timestamps_hold_where_the_log_was_copied_later(tmp_path: Path) -> None:
    """Files of entries that have none are newer than the stamps of later entries."""
    settings_ = {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"}
    features = ["changeDataFeed", "inCommitTimestamp"]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
    write_deltalake(tmp_path, pa.table({"id": [0]}), configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    told = metadata(configuration=settings_)
    told["metaData"]["schemaString"] = DeltaTable(tmp_path).schema().to_json()
    commit(tmp_path, 2, [{"commitInfo": {"inCommitTimestamp": 1_700_000_000_000}}, protocol, told])
    (first, *_) = DeltaTable(tmp_path).get_add_actions().to_pylist()
    gone = remove(first["path"], partitionValues={}, size=first["size_bytes"])
    commit(
        tmp_path,
        3,
        [{"commitInfo": {"inCommitTimestamp": 1_700_000_005_000}}, gone],
    )
    table = DeltaTable(tmp_path)
    for moment, version in [("2023-11-14T22:13:20Z", 2), ("2023-11-14T22:13:24Z", 2), ("2023-11-14T22:13:25Z", 3)]:
        table.load_as_version(moment)
        assert table.version() == version
    older = DeltaTable(tmp_path, version=0)
    older.load_as_version("2023-11-14T22:13:24Z")
    assert older.version() == 2
    table.load_as_version("2023-11-14T22:13:19.999Z")
    assert table.version() == 1
    feed = DeltaTable(tmp_path).load_cdf(starting_timestamp="2023-11-14T22:13:20Z").read_all()
    assert pa.table(feed)["_commit_version"].to_pylist() == [3]
    theirs = pa.table(deltalake.DeltaTable(tmp_path).load_cdf(starting_version=3).read_all())
    assert pa.table(feed)["_commit_timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_005_000_000]
    assert theirs["_commit_timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_005_000]


def test_a_starting_time_before_entries_that_were_cleaned_up_is_refused_as_deltalake_does(tmp_path: Path) -> None:
    for n in range(4):
        feed = {"delta.enableChangeDataFeed": "true"} if n == 0 else None
        write_deltalake(tmp_path, pa.table({"id": [n]}), mode="append", configuration=feed)
    DeltaTable(tmp_path).create_checkpoint()
    for n in range(2):
        Path(tmp_path, f"_delta_log/{n:020}.json").unlink()
    asked = {"starting_timestamp": EARLY}
    with pytest.raises(Exception, match="Invalid table version: 0"):
        _versions(deltalake, str(tmp_path), asked)
    with pytest.raises(NotFoundError, match="cleaned up before it .*; starting_version=2 reads what is there"):
        _versions(esker.delta, str(tmp_path), asked)
    assert _versions(esker.delta, str(tmp_path), asked | {"starting_version": 2}) == [2, 3]
    made = datetime.fromtimestamp(Path(tmp_path, f"_delta_log/{3:020}.json").stat().st_mtime, UTC)
    assert _versions(esker.delta, str(tmp_path), {"starting_timestamp": made.isoformat()}) == [3]
