"""Delta tables on object stores: S3 and Azure as real servers play them, deltalake in the same bucket.

With MinIO: `ESKER_S3=minio`. Replies that get lost after their effect are dropped by a proxy in front of the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.commit import resolve
from esker.delta import CommitProperties, DeltaTable, write_deltalake
from esker.exceptions import AlreadyExistsError, CommitConflictError
from tests.servers import Azurite, S3Server
from tests.servers.faulty import FaultyProxy, Rule

COMMIT = f"_delta_log/{1:020}.json"


@dataclass(frozen=True)
class Place:
    """Where a table may be, and how both libraries get there."""

    uri: str
    options: dict[str, str]
    port: int


@pytest.fixture(params=["s3", "azure"])
def place(request: pytest.FixtureRequest) -> Place:
    server: Any = request.getfixturevalue(request.param)
    if isinstance(server, S3Server):
        return Place(f"s3://{server.bucket()}/deep/table", dict(server.storage_options), server.server.port)
    assert isinstance(server, Azurite)
    return Place(f"az://{server.container()}/deep/table", dict(server.storage_options), server.server.port)


@pytest.fixture
def proxy(place: Place) -> Iterator[FaultyProxy]:
    with FaultyProxy(place.port) as found:
        yield found


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"é {number % 2}" for number in ids]})


def both(place: Place) -> list[int]:
    """The ids that both libraries see."""
    found = sorted(DeltaTable(place.uri, storage_options=place.options).to_pyarrow_table()["id"].to_pylist())
    theirs = deltalake.DeltaTable(place.uri, storage_options=place.options)
    query = deltalake.QueryBuilder().register("t", theirs).execute("select id from t")
    assert sorted(pa.table(query)["id"].to_pylist()) == found
    return found


def test_both_write_to_one_table(place: Place) -> None:
    options = place.options
    properties = {"delta.checkpointInterval": "3"}
    write_deltalake(place.uri, rows(1, 2), partition_by=["p"], configuration=properties, storage_options=options)
    with pytest.raises(AlreadyExistsError):
        write_deltalake(place.uri, rows(1), storage_options=options)
    deltalake.write_deltalake(place.uri, rows(3, 4), mode="append", storage_options=options)
    write_deltalake(place.uri, rows(5), mode="append", storage_options=options)
    write_deltalake(place.uri, rows(8), mode="overwrite", predicate="p = 'é 0'", storage_options=options)
    assert both(place) == [1, 3, 5, 8]
    deltalake.DeltaTable(place.uri, storage_options=options).delete("id = 3")
    table = DeltaTable(place.uri, storage_options=options)
    assert len(table.to_pyarrow_table(filters=[("p", "=", "é 1")])) == 2
    assert table.to_pyarrow_dataset().count_rows() == 3
    table.create_checkpoint()
    write_deltalake(table, rows(9), mode="append")
    assert (table.version(), both(place)) == (5, [1, 5, 8, 9])
    assert DeltaTable(place.uri, version=1, storage_options=options).count() == 4


def test_writers_at_the_same_time_lose_nothing(place: Place) -> None:
    write_deltalake(place.uri, rows(0), storage_options=place.options)

    def ours(number: int) -> None:
        properties = CommitProperties(max_commit_retries=100)
        data = rows(number)
        write_deltalake(place.uri, data, mode="append", storage_options=place.options, commit_properties=properties)

    def theirs(number: int) -> None:
        properties = deltalake.CommitProperties(max_commit_retries=100)
        options = place.options
        deltalake.write_deltalake(
            place.uri, rows(number), mode="append", storage_options=options, commit_properties=properties
        )

    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(ours if number % 2 else theirs, number) for number in range(1, 17)]
        for job in jobs:
            job.result()
    assert both(place) == list(range(17))
    assert DeltaTable(place.uri, storage_options=place.options).version() == 16


def test_a_lost_race_is_no_retry_of_the_same_entry(place: Place) -> None:
    write_deltalake(place.uri, rows(1), storage_options=place.options)
    stale = DeltaTable(place.uri, storage_options=place.options)
    deltalake.write_deltalake(place.uri, rows(2), mode="append", storage_options=place.options)
    write_deltalake(stale, rows(3), mode="append")
    assert (stale.version(), both(place)) == (2, [1, 2, 3])
    stale = DeltaTable(place.uri, version=1, storage_options=place.options)
    with pytest.raises(CommitConflictError):
        write_deltalake(stale, rows(4), mode="overwrite")
    assert both(place) == [1, 2, 3]


@pytest.mark.parametrize("action", ["drop", "lose", "mask"])
@pytest.mark.parametrize("put", [COMMIT, "deletion_vector_"])
def test_a_delete_with_vectors_whose_reply_is_lost_is_done_once(
    place: Place, proxy: FaultyProxy, action: str, put: str
) -> None:
    data = pa.table({"id": range(3000), "p": ["x"] * 3000})
    on: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
    write_deltalake(place.uri, data, configuration=on, storage_options=place.options)
    proxy.plan(Rule(action, "PUT", put, times=1, status=500))
    table = DeltaTable(place.uri, storage_options=proxy.through(place.options))
    assert table.delete("id % 3 = 0")["num_deletion_vectors_added"] == 1
    assert proxy.hits() == [f"{action} PUT"]
    assert both(place) == [n for n in range(3000) if n % 3]
    table = DeltaTable(place.uri, storage_options=place.options)
    assert table.update({"p": "'y'"}, predicate="id = 1")["num_updated_rows"] == 1
    assert (table.version(), len(both(place))) == (2, 2000)


@pytest.mark.parametrize("action", ["drop", "lose", "mask"])
def test_a_merge_that_loses_a_race_and_a_reply_is_done_once(place: Place, proxy: FaultyProxy, action: str) -> None:
    on: dict[str, str | None] = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_deltalake(place.uri, rows(1, 2, 3), configuration=on, storage_options=place.options)
    stale = DeltaTable(place.uri, storage_options=proxy.through(place.options))
    write_deltalake(place.uri, rows(9), mode="append", storage_options=place.options)
    proxy.plan(Rule(action, "PUT", f"_delta_log/{2:020}.json", times=1, status=500))
    merger = stale.merge(rows(2, 9, 10), "t.id = s.id", "s", "t").when_matched_delete("s.id = 2")
    told = merger.when_matched_update({"p": "'new'"}).when_not_matched_insert_all().execute()
    assert proxy.hits() == [f"{action} PUT"]
    assert [told[f"num_target_rows_{done}"] for done in ("inserted", "updated", "deleted")] == [1, 1, 1]
    assert (stale.version(), both(place)) == (2, [1, 3, 9, 10])


@pytest.mark.parametrize("action", ["drop", "lose", "mask"])
def test_a_reply_that_is_lost_commits_once(place: Place, proxy: FaultyProxy, action: str) -> None:
    write_deltalake(place.uri, rows(1), storage_options=place.options)
    proxy.plan(Rule(action, "PUT", COMMIT, times=1, status=500))
    write_deltalake(place.uri, rows(2), mode="append", storage_options=proxy.through(place.options))
    assert proxy.hits() == [f"{action} PUT"]
    assert both(place) == [1, 2]
    assert DeltaTable(place.uri, storage_options=place.options).version() == 1
    store = resolve(place.uri, storage_options=place.options)
    (info,) = [json.loads(line) for line in store.get(COMMIT).splitlines() if b"commitInfo" in line]
    assert info["commitInfo"]["txnId"]


def test_a_store_that_is_away_for_a_while_is_asked_again(place: Place, proxy: FaultyProxy) -> None:
    write_deltalake(place.uri, rows(1), storage_options=place.options)
    proxy.plan(Rule("refuse", "PUT", "part-", times=1), Rule("refuse", "PUT", COMMIT, times=2))
    write_deltalake(place.uri, rows(2), mode="append", storage_options=proxy.through(place.options))
    assert len(proxy.hits()) == 3
    assert both(place) == [1, 2]
