"""Replies that get lost, come late, or say no: between us and a real S3 server stands a proxy that does so on request.

Whatever happens to one request, what was written is there once, and a writer is told the truth about its own commit.
A part of the combinations runs always, all of them with `ESKER_LOST_REPLIES=all`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, CommitStateUnknownError
from tests.samples import people
from tests.servers import Azurite, S3Server
from tests.servers.faulty import FaultyProxy, Rule


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3.server.port) as proxy:
        yield proxy


@pytest.fixture
def options(proxy: FaultyProxy, s3: S3Server) -> dict[str, str]:
    proxy.plan()
    return proxy.through(s3.storage_options)


@pytest.fixture
def table(s3: S3Server) -> str:
    """A table of one version, made without the proxy."""
    uri = f"s3://{s3.bucket()}/t"
    esker.write_dataset(people(10), uri, storage_options=s3.storage_options)
    return uri


FAULTS = {
    "the reply is lost after the effect": ("drop", 503),
    "the request is lost": ("lose", 503),
    "429": ("refuse", 429),
    "500": ("refuse", 500),
    "503": ("refuse", 503),
    "500 after the effect": ("mask", 500),
    "503 after the effect": ("mask", 503),
    "the reply is late": ("delay", 0),
}
STEPS = {
    "LIST _versions": ("LIST", "_versions"),
    "GET manifest": ("GET", "_versions/"),
    "PUT data file": ("PUT", "/data/"),
    "PUT transaction": ("PUT", "_transactions/"),
    "PUT manifest": ("PUT", "_versions/"),
}


ALL = os.environ.get("ESKER_LOST_REPLIES") == "all"
SOME_FAULTS = [fault for fault in FAULTS if ALL or fault not in ("500", "503 after the effect", "the reply is late")]


@pytest.mark.parametrize("times", [1, 2] if ALL else [1])
@pytest.mark.parametrize("fault", SOME_FAULTS)
@pytest.mark.parametrize("step", STEPS)
def test_an_append_lands_once_whatever_happens_to_a_request(
    step: str, fault: str, times: int, table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    action, status = FAULTS[fault]
    method, match = STEPS[step]
    proxy.plan(Rule(action, method, match, times=times, status=status, seconds=0.3))
    made = esker.write_dataset(people(5, start=10), table, mode="append", storage_options=options)
    assert len(proxy.hits()) >= 1
    assert set(proxy.hits()) == {f"{action} {method}"}
    assert made.version == 2
    for dataset in (
        esker.dataset(table, storage_options=s3.storage_options),
        lance.dataset(table, storage_options=s3.storage_options),
    ):
        assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(15))
        assert [version["version"] for version in dataset.versions()] == [1, 2]
    store = Store(table, storage_options=s3.storage_options)
    counts = [len(store.list(folder)) for folder in ("data/", "_versions/", "_transactions/")]
    assert counts == [2, 2, 2]


def test_a_commit_whose_reply_is_lost_is_read_back_and_no_conflict(
    table: str, proxy: FaultyProxy, options: dict[str, str]
) -> None:
    dataset = esker.dataset(table, storage_options=options)
    # Each try has its effect or finds that of the first, and the reply to none comes through.
    proxy.plan(Rule("drop", "PUT", "_versions/", times=5))
    dataset.delete("id = 3")
    assert dataset.version == 2
    assert esker.dataset(table, storage_options=options).count_rows() == 9


def test_of_two_one_wins_while_replies_are_lost(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    first = esker.dataset(table, storage_options=options)
    second = esker.dataset(table, storage_options=options)
    # The other's version 2 lands between our look and our put, and our reply is lost besides.
    proxy.plan(Rule("drop", "PUT", "_versions/", times=2))
    second.insert(people(1, start=50))
    proxy.plan(Rule("drop", "PUT", "_versions/", times=2))
    first.insert(people(1, start=60))
    found = esker.dataset(table, storage_options=s3.storage_options)
    assert sorted(found.to_table()["id"].to_pylist()) == [*range(10), 50, 60]
    assert found.version == 3


@pytest.mark.parametrize("is_shallow", [True, False], ids=["shallow", "deep"])
@pytest.mark.parametrize("times", [1, 5])
def test_a_clone_whose_reply_is_lost_is_read_back(
    times: int, is_shallow: bool, table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    dataset = esker.dataset(table, storage_options=options)
    make = dataset.shallow_clone if is_shallow else dataset.deep_clone
    proxy.plan(Rule("drop", "PUT", "_versions/", times=times))
    assert make(f"{table}-clone", 1).count_rows() == 10
    assert len(proxy.hits()) >= 1
    proxy.plan(Rule("drop", "PUT", "_versions/", times=5), Rule("refuse", "GET", "_versions/", times=50, status=503))
    with pytest.raises(CommitStateUnknownError, match="open it before you clone again"):
        make(f"{table}-other", 1)
    proxy.plan()
    assert esker.dataset(f"{table}-other", storage_options=s3.storage_options).count_rows() == 10
    with pytest.raises(AlreadyExistsError):
        make(f"{table}-clone", 1)


@pytest.mark.parametrize("action", ["drop", "mask", "lose", "refuse"] if ALL else ["drop", "mask"])
@pytest.mark.parametrize(
    ("method", "match"),
    [("POST", "uploads"), ("PUT", "partNumber=2"), ("POST", "uploadId=")],
    ids=["begin", "part", "complete"],
)
def test_a_long_file_is_written_once(
    method: str, match: str, action: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    uri = f"s3://{s3.bucket()}/long"
    wide = pa.table({"x": pa.array(range(4_500_000), pa.int64())})
    proxy.plan(Rule(action, method, match, times=1, status=500))
    esker.write_dataset(wide, uri, storage_options=options, data_storage_version="2.0", max_rows_per_file=10**7)
    assert proxy.hits() == [f"{action} {method}"]
    assert esker.dataset(uri, storage_options=s3.storage_options).to_table() == wide
    assert len(Store(uri, storage_options=s3.storage_options).list("data/")) == 1


@pytest.mark.parametrize("fault", SOME_FAULTS)
@pytest.mark.parametrize("verb", ["put", "put_if_absent", "delete", "list", "get", "get_ranges", "head"])
def test_a_store_does_what_it_says(
    verb: str, fault: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    name = s3.bucket()
    store = Store(f"s3://{name}/t", storage_options=options)
    store.put("old", b"old bytes")
    action, status = FAULTS[fault]
    proxy.plan(Rule(action, times=1, status=status, seconds=0.3))
    if verb == "put":
        store.put("old", b"new bytes")
        assert store.get("old") == b"new bytes"
    elif verb == "put_if_absent":
        assert store.put_if_absent("new", b"ours")
        assert not store.put_if_absent("new", b"theirs")
        assert store.get("new") == b"ours"
    elif verb == "delete":
        store.delete("old")
        assert store.list() == []
    elif verb == "list":
        assert store.list_paths() == ["old"]
    elif verb == "get":
        assert store.get("old") == b"old bytes"
    elif verb == "get_ranges":
        assert store.get_ranges("old", [(0, 3), (4, 9)]) == [b"old", b"bytes"]
    else:
        assert store.head("old").size == 9
    assert len(proxy.hits()) == 1


@pytest.mark.parametrize("fault", ["the reply is lost after the effect", "500 after the effect", "the request is lost"])
def test_azure_says_409_to_a_put_of_our_own_and_it_is_no_conflict(fault: str, azure: Azurite) -> None:
    action, status = FAULTS[fault]
    container = azure.container()
    uri = f"az://{container}/t"
    esker.write_dataset(people(10), uri, storage_options=azure.storage_options)
    with FaultyProxy(azure.server.port) as proxy:
        options = proxy.through(azure.storage_options)
        store = Store(uri, storage_options=options)
        proxy.plan(Rule(action, "PUT", "/new", status=status))
        assert store.put_if_absent("new", b"ours")
        assert proxy.hits() == [f"{action} PUT"]
        assert not store.put_if_absent("new", b"theirs")
        proxy.plan(*(Rule(action, "PUT", part, status=status) for part in ("/data/", "_transactions/", "_versions/")))
        esker.write_dataset(people(5, start=10), uri, mode="append", storage_options=options)
        assert len(proxy.hits()) == 3
    found = esker.dataset(uri, storage_options=azure.storage_options)
    assert (found.version, sorted(found.to_table()["id"].to_pylist())) == (2, list(range(15)))


def test_a_store_that_stays_away_is_an_error_and_leaves_the_table_alone(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    impatient = {**options, "client_max_retries": "1", "client_retry_timeout": "5"}
    dataset = esker.dataset(table, storage_options=impatient)
    for rule in (
        Rule("refuse", "PUT", "_versions/", times=1000, status=503),
        Rule("lose", "PUT", "_versions/", times=1000),
    ):
        proxy.plan(rule)
        with pytest.raises(OSError, match="_versions"):
            dataset.delete("id = 3")
    proxy.plan()
    assert esker.dataset(table, storage_options=s3.storage_options).version == 1
    dataset.delete("id = 3")
    assert dataset.version == 2


def test_what_does_not_come_in_time_is_an_error_of_its_own(
    table: str, proxy: FaultyProxy, options: dict[str, str]
) -> None:
    impatient = {**options, "timeout": "300ms", "client_max_retries": "1"}
    proxy.plan(Rule("delay", "GET", "_versions/", times=10, seconds=2))
    with pytest.raises(OSError, match="time"):
        esker.dataset(table, storage_options=impatient)
