"""Replies of an object store that break off, and those that say no for good, alone and two at once.

A proxy before an S3 server cuts bodies; what was to be read or listed is asked for again. A store that refuses has not
done what was asked: a writer is told so, and not that the outcome is unknown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.graveler import SortedNames
from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitStateUnknownError, IOFailedError, UnsupportedError
from esker.repo import Repository
from tests.samples import people
from tests.servers import S3Server
from tests.servers.faulty import FaultyProxy, Rule


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3.server.port) as proxy:
        yield proxy


@pytest.fixture
def options(proxy: FaultyProxy, s3: S3Server) -> dict[str, str]:
    proxy.plan()
    return {**proxy.through(s3.storage_options), "client_max_retries": "2"}


@pytest.fixture
def table(s3: S3Server) -> str:
    """A table of one version, made without the proxy."""
    uri = f"s3://{s3.bucket()}/t"
    esker.write_dataset(people(10), uri, storage_options=s3.storage_options)
    return uri


READS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("f/x"),
    "get_ranges": lambda store: store.get_ranges("f/x", [(3, 700)])[0],
    "list": lambda store: [meta.path for meta in store.list()],
    "list_paths": lambda store: store.list_paths("f/"),
    "list_folders": lambda store: store.list_folders(),
    "list_first": lambda store: store.list_first("f/", 1),
    "list_batches": lambda store: _rows_in_batches(store),
}


def _rows_in_batches(store: Store) -> list[tuple[str, int, str, int | None]]:
    with tempfile.TemporaryDirectory() as folder:
        names, none = (SortedNames(folder, name, memory_bytes=1000) for name in "ab")
        listed = store.list_batches("f/")
        while names.add_batch(listed):
            pass
        return names.without(none).next_rows(10)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("read", READS)
def test_what_breaks_off_is_read_again(
    read: str, times: int, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    store = Store(f"s3://{s3.bucket()}/t", storage_options=options)
    store.put("f/x", bytes(range(256)) * 4)
    wanted = READS[read](store)
    proxy.plan(Rule("cut", times=times))
    assert READS[read](store) == wanted
    assert len(proxy.hits()) == times


def test_what_breaks_off_is_whole_though_the_store_serves_no_ranges(
    proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    store = Store(f"s3://{s3.bucket()}/t", storage_options=options)
    data = bytes(range(256)) * 4
    store.put("x", data)
    # The rest is asked for, and all of it comes: it was taken for the rest.
    proxy.plan(Rule("cut", "GET"), Rule("whole", "GET"))
    assert store.get("x") == data
    assert proxy.hits() == ["cut GET", "whole GET"]


def test_an_append_lands_once_though_a_listing_breaks_off_and_a_reply_is_lost(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    proxy.plan(Rule("cut", "LIST"), Rule("drop", "PUT", "_versions/"), Rule("cut", "GET", "_versions/"))
    esker.write_dataset(people(5, start=10), table, mode="append", storage_options=options)
    assert {"cut LIST", "drop PUT", "cut GET"} <= set(proxy.hits())
    found = lance.dataset(table, storage_options=s3.storage_options)
    assert (found.version, sorted(found.to_table()["id"].to_pylist())) == (2, list(range(15)))


def test_a_tag_is_made_though_the_listing_after_it_breaks_off(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    esker.write_dataset(people(5, start=10), table, mode="append", storage_options=s3.storage_options)
    dataset = esker.dataset(table, storage_options=options)
    proxy.plan(Rule("cut", "LIST"))
    dataset.tags.create("first", 1)
    assert proxy.hits() == ["cut LIST"]
    assert lance.dataset(table, version="first", storage_options=s3.storage_options).count_rows() == 10


def test_who_may_not_write_is_told_so(table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server) -> None:
    delta = f"{table}-delta"
    write_deltalake(delta, people(3), storage_options=s3.storage_options)
    store = Store(table, storage_options=s3.storage_options)
    before = store.list_paths("data/")
    dataset = esker.dataset(table, storage_options=options)
    writes: dict[str, Callable[[], object]] = {
        "_versions/": lambda: dataset.insert(people(1, start=50)),
        "_refs/tags": lambda: dataset.tags.create("a", 1),
        "_refs/branches": lambda: dataset.create_branch("b", 1),
        "-clone/_versions/": lambda: dataset.shallow_clone(f"{table}-clone", 1),
        "_delta_log/": lambda: DeltaTable(delta, storage_options=options).alter.set_table_properties({"a.b": "c"}),
        "-new/_delta_log/": lambda: DeltaTable.create(
            f"{table}-new", pa.schema([("x", pa.int64())]), storage_options=options
        ),
    }
    for match, write in writes.items():
        proxy.plan(Rule("refuse", "PUT", match, times=1000, status=403))
        with pytest.raises(IOFailedError, match="permission denied") as raised:
            write()
        assert not isinstance(raised.value, CommitStateUnknownError), match
        assert set(proxy.hits()) == {"refuse PUT"}
    assert store.list_paths("data/") == before
    assert esker.dataset(table, storage_options=s3.storage_options).version == 1


def test_whose_keys_expire_at_a_commit_is_told_so(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    """From the put on the store denies everything, the look after the put as well."""
    delta, lake = f"{table}-delta", f"{table}-lake"
    write_deltalake(delta, people(3), storage_options=s3.storage_options)
    Repository.create(lake, storage_options=s3.storage_options)
    store = Store(table, storage_options=s3.storage_options)
    before = store.list_paths("data/")
    dataset = esker.dataset(table, storage_options=options)
    log = DeltaTable(delta, storage_options=options)
    main = Repository(lake, storage_options=options).branch("main")
    main.object("x").upload(b"x")
    writes: dict[str, Callable[[], object]] = {
        "_versions/": lambda: dataset.insert(people(1, start=50)),
        "_refs/tags": lambda: dataset.tags.create("a", 1),
        "-clone/_versions/": lambda: dataset.shallow_clone(f"{table}-clone", 1),
        "_delta_log/": lambda: write_deltalake(log, people(1, start=50), mode="append"),
        "refs/heads/main": lambda: main.commit("with keys that expire"),
    }
    for match, write in writes.items():
        proxy.plan(Rule("expire", "PUT", match, status=403))
        with pytest.raises(IOFailedError, match="permission denied") as raised:
            write()
        assert not isinstance(raised.value, CommitStateUnknownError), match
        assert proxy.hits()[0] == "expire PUT"
    assert esker.dataset(table, storage_options=s3.storage_options).version == 1
    # With the keys what nobody refers to could not be deleted, either.
    assert len(store.list_paths("data/")) == len(before) + 1
    proxy.plan()
    assert main.commit("with new keys").get_commit().message == "with new keys"


def test_a_refusal_after_a_reply_that_was_lost_is_in_doubt(
    table: str, proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    dataset = esker.dataset(table, storage_options=options)
    # The first try may have its effect later: what is refused afterwards does not tell.
    proxy.plan(
        Rule("refuse", "PUT", "_versions/", status=500), Rule("refuse", "PUT", "_versions/", times=1000, status=403)
    )
    with pytest.raises(CommitStateUnknownError, match="permission denied"):
        dataset.insert(people(1, start=50))
    # It had its effect.
    proxy.plan(
        Rule("mask", "PUT", "_versions/", status=500), Rule("refuse", "PUT", "_versions/", times=1000, status=403)
    )
    dataset.insert(people(1, start=60))
    assert dataset.version == 2
    assert esker.dataset(table, storage_options=s3.storage_options).count_rows() == 11


def test_a_store_without_conditional_puts_is_named_as_such(
    table: str, proxy: FaultyProxy, options: dict[str, str]
) -> None:
    proxy.plan(Rule("refuse", "PUT", "_versions/", times=1000, status=501))
    with pytest.raises(UnsupportedError, match="no conditional put.*commit_lock"):
        esker.write_dataset(people(1, start=50), table, mode="append", storage_options=options)
    proxy.plan()
    assert esker.dataset(table, storage_options=options).version == 1


def test_what_a_store_refuses_as_a_conflict_is_told_in_its_words(
    proxy: FaultyProxy, options: dict[str, str], s3: S3Server
) -> None:
    store = Store(f"s3://{s3.bucket()}/t", storage_options=options)
    for status in (409, 412):
        proxy.plan(Rule("refuse", "PUT", times=1000, status=status))
        with pytest.raises(IOFailedError, match=f"cannot write: {status} Error: not now"):
            store.put("x", b"1")
        # Nothing is there that it could conflict with.
        with pytest.raises(IOFailedError, match=f"cannot create: {status} Error: not now"):
            store.put_if_absent("x", b"1")
