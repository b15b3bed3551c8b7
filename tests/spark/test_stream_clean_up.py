"""Streams up to a version that is cleaned up: a running query goes on if it knows the table, others say how to."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest

import esker
import esker.delta
from esker.exceptions import EskerError, NotFoundError
from esker.spark import EskerSource
from tests.spark.streams import Query

KINDS = ["lance", "delta"]


def _append(kind: str, uri: str, *numbers: int) -> None:
    rows = pa.table({"id": pa.array(numbers, pa.int64())})
    if kind == "lance":
        lance.write_dataset(rows, uri, mode="append", enable_stable_row_ids=True)
    else:
        esker.delta.write_deltalake(uri, rows, mode="append")


def _clean_up(kind: str, uri: str) -> None:
    """Leaves the newest version alone."""
    if kind == "lance":
        lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0))
        return
    deltalake.DeltaTable(uri).create_checkpoint()
    for entry in sorted(Path(uri, "_delta_log").glob("*.json"))[:-1]:
        os.remove(entry)


def _ids(rows: list[dict[str, Any]] | None) -> list[int]:
    assert rows is not None
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"maxFilesPerTrigger": 1}, {"skipChangeCommits": "true"}])
def test_a_running_query_goes_on_from_a_version_that_was_cleaned_up(
    kind: str, options: dict[str, object], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _append(kind, uri, 0)
    query = Query(uri, **options)
    read = [_ids(query.rows())]
    for n in range(1, 4):
        _append(kind, uri, n)
        _clean_up(kind, uri)
        read.append(_ids(query.rows()))
    assert read == [[0], [1], [2], [3]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_is_started_again_says_which_version_gives_exactly_the_rest(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(kind, uri, 0)
    query = Query(uri)
    query.rows()
    assert query.offset is not None
    following = query.offset["version"] + 1
    _append(kind, uri, 1)
    _clean_up(kind, uri)
    query.start()
    with pytest.raises(NotFoundError, match=f"startingVersion={following} and another .* exactly the rest"):
        query.rows()
    assert _ids(Query(uri, startingVersion=following).rows()) == [1]
    # Without the version after it nothing gives exactly the rest.
    _append(kind, uri, 2)
    _clean_up(kind, uri)
    with pytest.raises(NotFoundError, match="cleaned up, or the table was replaced") as caught:
        query.rows()
    assert "exactly the rest" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_was_planned_runs_again_without_the_version_before_it(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(kind, uri, 0)
    query = Query(uri)
    query.rows()
    start = query.offset
    _append(kind, uri, 1)
    query.batch()
    end = query.offset
    _clean_up(kind, uri)
    query.start()
    assert start is not None
    assert end is not None
    assert _ids(query.between(start, end)) == [1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [(7,), ()], ids=["other rows", "no rows"])
def test_a_table_that_was_replaced_and_cleaned_up_stops_a_running_query(
    other: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _append(kind, uri, *other)
    query = Query(uri)
    query.rows()
    shutil.rmtree(uri)
    _append(kind, uri, *other)
    _append(kind, uri, 8)
    _clean_up(kind, uri)
    with pytest.raises(NotFoundError, match="nobody can tell"):
        query.rows()


def test_an_older_state_that_was_brought_back_stops_a_running_query(tmp_path: Path) -> None:
    uri, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    for n in range(2):
        esker.delta.write_deltalake(uri, pa.table({"id": [n]}), mode="append")
        if n == 0:
            shutil.copytree(uri, copy)
    query = Query(uri)
    query.rows()
    shutil.rmtree(uri)
    shutil.copytree(copy, uri)
    for n in (5, 6):
        esker.delta.write_deltalake(uri, pa.table({"id": [n]}), mode="append")
    _clean_up("delta", uri)
    with pytest.raises(NotFoundError, match="nobody can tell"):
        query.rows()


def test_a_feed_says_that_it_needs_the_version_before_a_change(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append("lance", uri, 0, 1)
    lance.dataset(uri).delete("id = 0")
    _clean_up("lance", uri)
    with pytest.raises(NotFoundError, match=r"version 1 .* without which nobody can tell the rows that version 2"):
        Query(uri, readChangeFeed="true", startingVersion=2).rows()


def test_a_branch_that_was_made_anew_from_a_later_version_may_be_another_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append("lance", uri, 0)
    _append("lance", uri, 1)
    branch = f"{uri}/tree/b"
    esker.dataset(uri).create_branch("b", 1)
    query = Query(branch)
    assert _ids(query.rows()) == [0]
    esker.dataset(uri).branches.delete("b")
    esker.dataset(uri).create_branch("b", 2)
    with pytest.raises(NotFoundError, match="or the table was replaced"):
        query.rows()


def test_a_clone_whose_source_is_gone_does_not_say_that_it_was_cleaned_up_itself(tmp_path: Path) -> None:
    uri, clone = str(tmp_path / "t"), str(tmp_path / "clone")
    _append("lance", uri, 0, 1)
    lance.dataset(uri).shallow_clone(clone, 1)
    query = Query(clone, maxRowsPerTrigger=1)
    assert _ids(query.batch()) == [0]
    shutil.rmtree(uri)
    with pytest.raises(EskerError, match="of which this one is a clone, which is gone"):
        query.rows()


@pytest.mark.parametrize("kind", KINDS)
def test_a_starting_time_before_which_versions_were_cleaned_up_says_how_to_read_the_rest(
    kind: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    for n in range(4):
        _append(kind, uri, n)
    long_ago = "2001-01-01T00:00:00Z"
    assert _ids(Query(uri, startingTimestamp=long_ago).rows()) == [0, 1, 2, 3]
    _clean_up(kind, uri)
    oldest = 4 if kind == "lance" else 3
    with pytest.raises(NotFoundError, match=f"startingTimestamp.* cleaned up .*startingVersion={oldest} reads"):
        Query(uri, startingTimestamp=long_ago).rows()
    assert _ids(Query(uri, startingVersion=oldest).rows()) == [3]


def test_a_starting_time_before_a_gap_that_a_tag_has_left_loses_no_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append("lance", uri, 0)
    _append("lance", uri, 1)
    lance.dataset(uri).tags.create("kept", 1)
    since = lance.dataset(uri).versions()[1]["timestamp"].astimezone(UTC).isoformat()
    _append("lance", uri, 2)
    query = Query(uri, startingTimestamp=since)
    assert _ids(query.rows()) == [1, 2]
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    with pytest.raises(NotFoundError, match="startingTimestamp: version 3 is the first one since"):
        Query(uri, startingTimestamp=since).rows()
    _append("lance", uri, 3)
    since = lance.dataset(uri).versions()[-1]["timestamp"].astimezone(UTC).isoformat()
    assert _ids(Query(uri, startingTimestamp=since).rows()) == [3]


def test_a_starting_time_before_a_clone_and_a_branch_reads_all_of_them(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for n in range(3):
        _append("lance", uri, n)
    clone = esker.dataset(uri).shallow_clone(str(tmp_path / "clone"), 2).uri
    branch = esker.dataset(uri).create_branch("b").uri
    for made, rows in ((clone, [0, 1, 9]), (branch, [0, 1, 2, 9])):
        esker.write_dataset(pa.table({"id": [9]}), made, mode="append")
        assert _ids(Query(made, startingTimestamp="2001-01-01T00:00:00Z").rows()) == rows


def test_a_feed_of_a_frame_from_a_time_before_entries_that_were_cleaned_up_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for n in range(3):
        feed = {"delta.enableChangeDataFeed": "true"} if n == 0 else None
        esker.delta.write_deltalake(uri, pa.table({"id": [n]}), mode="append", configuration=feed)
    _clean_up("delta", uri)
    source = EskerSource({"path": uri, "readChangeFeed": "true", "startingTimestamp": "2001-01-01T00:00:00Z"})
    with pytest.raises(NotFoundError, match="cleaned up before it .*; startingVersion=2 reads what is there"):
        source.reader(source.schema())
