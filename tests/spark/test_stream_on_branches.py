"""A table on a branch of a repository as a stream: the branch goes on, is merged into, reset and deleted under it."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from unittest.mock import patch
from weakref import WeakValueDictionary

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError, InvalidArgumentError, NotFoundError
from esker.repo import ExpiredError, Repository, branch_store
from esker.repo.table_address import address
from tests.spark.stream_histories import upsert_of
from tests.spark.streams import Query


class Lake:
    """A repository with a table of one format, rows of which are numbers."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.repo = Repository.create(folder / "the lake", committer="me")
        self.main = self.repo.branch("main")

    def append(self, *ids: int, branch: str = "main") -> None:
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        with self.repo.branch(branch).transact(f"append {ids}") as tx:
            if self.kind == "delta":
                write_deltalake(tx.store_uri("t"), rows, mode="append")
            else:
                esker.write_dataset(rows, tx.store_uri("t"), mode="append")

    def drop(self) -> None:
        with self.main.transact("drop") as tx:
            tx.delete_objects([found.path for found in self.main.objects(prefix="t/")])


@pytest.fixture(params=["lance", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made = Lake(tmp_path, request.param)
    made.append(1, 2)
    made.append(3)
    return made


def following(lake: Lake, **options: object) -> Query:
    """A query that has read all that is there."""
    query = Query(lake.main.store_uri("t"), **options)
    assert ids(query) == [1, 2, 3]
    assert query.batch() is None
    return query


def ids(query: Query) -> list[int]:
    return sorted(row["id"] for row in query.rows())


def test_a_running_query_reads_what_is_committed_to_the_branch(lake: Lake) -> None:
    query = following(lake)
    for number in (4, 5):
        lake.append(number)
        assert ids(query) == [number]
    lake.repo.branch("other").create("main")
    lake.append(6, branch="other")
    assert query.batch() is None
    lake.repo.branch("other").merge_into("main")
    assert ids(query) == [6]
    query.start()
    lake.append(7)
    assert ids(query) == [7]


def test_what_a_revert_takes_back_is_a_version_that_changes_rows(lake: Lake) -> None:
    query, passing = following(lake), following(lake, skipChangeCommits=True)
    lake.main.revert("main")
    with pytest.raises(InvalidArgumentError, match=r"(?i)restore"):
        query.batch()
    lake.append(4)
    assert ids(passing) == [4]


@pytest.mark.parametrize("then", [0, 1, 2])
def test_a_reset_of_the_branch_is_an_error_to_a_running_query(lake: Lake, then: int) -> None:
    query = following(lake)
    lake.main.reset_to("main~1")
    for number in range(then):
        lake.append(10 + number)
    for _ in range(2):
        with pytest.raises(CommitConflictError, match="start a new query"):
            query.batch()


def test_a_query_that_a_reset_does_not_reach_goes_on(lake: Lake) -> None:
    query = following(lake, maxVersionsPerTrigger=1)
    for number in (4, 5):
        lake.append(number)
    assert [row["id"] for row in query.batch() or []] == [4]
    lake.main.reset_to("main~1")
    assert query.batch() is None
    lake.append(6)
    assert ids(query) == [6]


def test_a_table_that_is_dropped_and_made_anew_on_the_branch_is_another_one(lake: Lake) -> None:
    query = following(lake)
    lake.drop()
    with pytest.raises(NotFoundError, match="no table"):
        query.batch()
    lake.append(1, 2)
    lake.append(3)
    with pytest.raises(CommitConflictError, match="start a new query"):
        query.batch()


def test_a_branch_that_is_deleted_is_an_error_until_it_is_there_again(lake: Lake) -> None:
    lake.repo.branch("other").create("main")
    query = Query(lake.repo.branch("other").store_uri("t"))
    assert ids(query) == [1, 2, 3]
    lake.repo.branch("other").delete()
    with pytest.raises(NotFoundError, match="no branch 'other'"):
        query.batch()
    lake.repo.branch("other").create("main")
    lake.append(4, branch="other")
    assert ids(query) == [4]


def test_tasks_read_the_commit_at_which_their_batch_was_planned(lake: Lake) -> None:
    query = following(lake)
    lake.append(4)
    start, end = query.offset, json.loads(json.dumps(query.reader.latestOffset(query.offset, None)))
    parts = query.reader.partitions(start, end)
    lake.main.reset_to("main~1")
    lake.append(99)
    assert [row["id"] for part in parts for batch in query.reader.read(part) for row in batch.to_pylist()] == [4]


def test_a_clean_up_of_what_was_read_last_leaves_the_rest_to_a_running_query(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "lance")
    lake.append(1, 2)
    lake.append(3)
    query = following(lake)
    lake.append(4)
    esker.dataset(lake.main.store_uri("t")).cleanup_old_versions(retain_versions=1)
    assert ids(query) == [4]
    query.start()
    lake.append(5)
    assert ids(query) == [5]


def clean_up(lake: Lake) -> None:
    """Removes all versions but the newest one."""
    uri = lake.main.store_uri("t")
    if lake.kind == "lance":
        esker.dataset(uri).cleanup_old_versions(retain_versions=1)
        return
    table = DeltaTable(uri)
    table.create_checkpoint()
    table.cleanup_metadata()


@pytest.fixture
def brief(lake: Lake) -> Lake:
    """A table whose old versions a clean-up takes at once."""
    if lake.kind == "delta":
        uri = lake.main.store_uri("t")
        DeltaTable(uri).alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    return lake


def test_a_look_that_fails_forgets_nothing_of_what_was_read(brief: Lake) -> None:
    query = following(brief)
    brief.append(4)
    clean_up(brief)
    with patch.object(query.reader, "_open", side_effect=OSError("no network")), pytest.raises(OSError, match="netw"):
        query.batch()
    assert ids(query) == [4]


def test_a_table_that_moves_twice_between_two_batches_is_still_the_same(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "lance")
    lake.append(1, 2)
    query = Query(lake.main.store_uri("t"))
    assert ids(query) == [1, 2]
    # The version that was read goes with the first clean-up.
    for number in (3, 4):
        lake.append(number)
        esker.dataset(lake.main.store_uri("t")).cleanup_old_versions(retain_versions=number - 2)
        query.reader.reportLatestOffset()
    assert ids(query) == [3, 4]


def test_a_task_whose_commit_has_expired_is_told_that_and_not_a_lost_object(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = following(lake)
    lake.append(4)
    start, end = query.offset, json.loads(json.dumps(query.reader.latestOffset(query.offset, None)))
    sent = pickle.dumps(query.reader.partitions(start, end))
    at = address(lake.repo.uri, lake.main.get_commit().id, "t")
    lake.main.reset_to("main~1")
    lake.repo.gc(dry_run=False, grace_s=-3600, now=time.time() + 400 * 86_400)
    # As in another process, where nothing of the repository is cached.
    monkeypatch.setattr(branch_store, "_cores", WeakValueDictionary())
    with pytest.raises(NotFoundError, match="has expired") as raised:
        [list(query.reader.read(part)) for part in pickle.loads(sent)]
    # It is the query that is to be started again: not with another checkpoint.
    assert "checkpointLocation" not in str(raised.value)
    # Whoever else opens a table of that commit is told so, too.
    with pytest.raises(ExpiredError, match="has expired"):
        esker.dataset(at)
    with pytest.raises(ExpiredError, match="has expired"):
        DeltaTable(at)


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_the_numbers_of_upserts_are_those_of_the_branch(tmp_path: Path, kind: str) -> None:
    repo = Repository.create(tmp_path / "the lake", committer="me")
    main = repo.branch("main")

    def batch(number: int, branch: str = "main") -> None:
        upsert_of(address(repo.uri, branch, "t"), kind, "a query")([{"id": number, "by": "it"}], number)

    def there(branch: str = "main") -> list[int]:
        at = address(repo.uri, branch, "t")
        table = DeltaTable(at).to_pyarrow_table() if kind == "delta" else esker.dataset(at).to_table()
        return sorted(table["id"].to_pylist())

    for number in (0, 1, 1, 0):
        batch(number)
    assert there() == [0, 1]
    made = main.get_commit()
    # Another branch knows the batches of the one that it was made from.
    repo.branch("other").create("main")
    batch(1, "other")
    assert repo.branch("other").get_commit() == made
    batch(2, "other")
    assert (there("other"), there()) == ([0, 1, 2], [0, 1])
    repo.branch("other").merge_into("main")
    before = main.get_commit()
    batch(2)
    assert main.get_commit() == before
    # A reset takes batches back: one that is run again is there again, and the next one does not bring it.
    main.reset_to(made)
    batch(3)
    assert there() == [0, 1, 3]
    main.reset_to(made)
    batch(2)
    assert there() == [0, 1, 2]
    repo.branch("other").delete()
    with pytest.raises(NotFoundError, match="other"):
        batch(4, "other")
