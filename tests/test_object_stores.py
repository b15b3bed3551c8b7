"""Tables on object stores: S3 and Azure as real servers play them, with pylance at the same bucket."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.store import Store
from esker._native.table import Manifest, Transaction, manifest_name
from esker.cli import main
from esker.exceptions import AlreadyExistsError, NotFoundError, UnsupportedError
from esker.file import LanceFileReader, LanceFileSession, LanceFileWriter
from esker.fragment import write_fragments
from esker.lance.log import VERSIONS
from tests.samples import people
from tests.servers import Azurite, S3Server
from tests.servers.counting import CountingProxy


@dataclass(frozen=True)
class Bucket:
    """An empty bucket of some store."""

    root: str
    options: dict[str, str]


@pytest.fixture(params=["s3", "azure"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    server: Any = request.getfixturevalue(request.param)
    if isinstance(server, S3Server):
        return Bucket(f"s3://{server.bucket()}", server.storage_options)
    assert isinstance(server, Azurite)
    return Bucket(f"az://{server.container()}", server.storage_options)


def _ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_a_table_lives_its_life_on_an_object_store(bucket: Bucket) -> None:
    uri = f"{bucket.root}/deep/er/people.lance"
    made = esker.write_dataset(people(100), uri, storage_options=bucket.options, max_rows_per_file=30)
    assert (made.version, len(made.get_fragments())) == (1, 4)
    with pytest.raises(AlreadyExistsError):
        esker.write_dataset(people(1), uri, storage_options=bucket.options)
    dataset = esker.dataset(uri, storage_options=bucket.options)
    dataset.insert(people(10, start=100))
    dataset.delete("id < 5")
    dataset.update({"name": "'new'"}, where="id = 7")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(people(2, start=109))
    assert _ids(dataset.to_table()) == list(range(5, 111))
    assert dataset.take([0], columns=["id"])["id"].to_pylist() == [5]
    assert dataset.to_table(filter="name = 'new'").num_rows == 1
    assert dataset.checkout_version(1).count_rows() == 100
    assert [version["version"] for version in dataset.versions()] == [1, 2, 3, 4, 5]
    # The peer sees the same, and goes on from there.
    theirs = lance.dataset(uri, storage_options=bucket.options)
    assert _ids(theirs.to_table()) == list(range(5, 111))
    theirs = lance.write_dataset(people(1, start=500), uri, mode="append", storage_options=bucket.options)
    theirs.delete("id = 6")
    dataset = esker.dataset(uri, storage_options=bucket.options)
    assert (dataset.version, _ids(dataset.to_table())) == (7, [5, *range(7, 111), 500])
    dataset.restore()
    assert lance.dataset(uri, storage_options=bucket.options).version == 8


@pytest.mark.parametrize(
    "path", ["plain", "a b", "a%20b", "a%25b", "a%b", "ä/日本", "a+b&c=d", "x=1/y~*'()", "tail/", "[x]/<y>|^`{}"]
)
def test_keys_are_those_that_pylance_writes(path: str, s3: S3Server) -> None:
    ours, theirs = s3.bucket(), s3.bucket()
    esker.write_dataset(people(3), f"s3://{ours}/{path}", storage_options=s3.storage_options)
    lance.write_dataset(people(3), f"s3://{theirs}/{path}", storage_options=s3.storage_options)
    manifests = [[key for key in s3.keys(name) if "_versions" in key] for name in (ours, theirs)]
    assert manifests[0] == manifests[1]
    assert len(manifests[0]) == 1
    there = esker.dataset(f"s3://{theirs}/{path}", storage_options=s3.storage_options)
    assert there.count_rows() == lance.dataset(f"s3://{ours}/{path}", storage_options=s3.storage_options).count_rows()


def test_all_of_many_writers_appends_are_there_once(bucket: Bucket) -> None:
    uri = f"{bucket.root}/raced"
    esker.write_dataset(people(1), uri, storage_options=bucket.options)
    writers, rounds = 6, 3

    def run(writer: int) -> None:
        # Every third one is the peer.
        write: Any = lance.write_dataset if writer % 3 == 2 else esker.write_dataset
        for number in range(rounds):
            more = people(1, start=1 + writer * rounds + number)
            write(more, uri, mode="append", storage_options=bucket.options)

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(run, range(writers)))
    dataset = esker.dataset(uri, storage_options=bucket.options)
    assert dataset.version == 1 + writers * rounds
    assert _ids(dataset.to_table()) == list(range(1 + writers * rounds))


def test_one_of_many_creators_wins(bucket: Bucket) -> None:
    uri = f"{bucket.root}/created"
    barrier = threading.Barrier(6)

    def run(writer: int) -> bool:
        barrier.wait(30)
        try:
            esker.write_dataset(people(1, start=writer), uri, storage_options=bucket.options)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(run, range(6)))
    assert _ids(esker.dataset(uri, storage_options=bucket.options).to_table()) == [won.index(True)]
    assert sum(won) == 1


def test_a_lock_stands_in_for_conditional_puts(s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/locked"
    options = {**s3.storage_options, "aws_conditional_put": "disabled"}
    with pytest.raises(UnsupportedError, match="commit_lock"):
        esker.write_dataset(people(1), uri, storage_options=options)
    lock = threading.Lock()
    held: list[int] = []

    @contextmanager
    def guard(version: int) -> Iterator[None]:
        with lock:
            held.append(version)
            yield

    esker.write_dataset(people(1), uri, storage_options=options, commit_lock=guard)

    def run(writer: int) -> None:
        more = people(1, start=1 + writer)
        esker.write_dataset(more, uri, mode="append", storage_options=options, commit_lock=guard)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(run, range(5)))
    dataset = esker.dataset(uri, storage_options=options, commit_lock=guard)
    assert (dataset.version, _ids(dataset.to_table())) == (6, list(range(6)))
    assert set(held) == set(range(1, 7))
    dataset.delete("id = 0")
    assert (held[-1], dataset.version) == (7, 7)


@pytest.mark.parametrize("names", ["V1", "V2"])
def test_the_newest_of_many_versions_is_found(names: Literal["V1", "V2"], s3: S3Server, bucket: Bucket) -> None:
    uri = f"{bucket.root}/many"
    esker.write_dataset(people(1), uri, storage_options=bucket.options, enable_v2_manifest_paths=names == "V2")
    dataset = esker.dataset(uri, storage_options=bucket.options)
    for number in range(1, 25):
        dataset.insert(people(1, start=number))
        assert dataset.latest_version == 1 + number
    opened = esker.dataset(uri, storage_options=bucket.options)
    assert (opened.version, opened.count_rows(), len(opened.versions())) == (25, 25, 25)
    assert esker.dataset(uri, 3, storage_options=bucket.options).count_rows() == 3
    assert lance.dataset(uri, storage_options=bucket.options).version == 25
    with pytest.raises(NotFoundError, match="no version 26, expected one of 1-25"):
        esker.dataset(uri, 26, storage_options=bucket.options)


def test_workers_read_and_write_what_was_pickled(s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/pickled"
    esker.write_dataset(people(1000), uri, storage_options=s3.storage_options, max_rows_per_file=300)
    dataset = esker.dataset(uri, storage_options=s3.storage_options)
    assert dataset.count_rows("id < 10") == 10
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(_rows_of, dataset.get_fragments(), timeout=120)) == [300, 300, 300, 100]
        assert list(pool.map(_first_id, [dataset] * 3, timeout=120)) == [0, 0, 0]
    # The parent's connections are its own, whatever its children did.
    assert dataset.count_rows("id >= 990") == 10


def _rows_of(fragment: esker.LanceFragment) -> int:
    return fragment.to_table().num_rows


def _first_id(dataset: esker.LanceDataset) -> int:
    dataset.insert(people(1, start=5000))
    return int(dataset.take([0])["id"][0].as_py())


_inherited: list[esker.LanceDataset] = []


def _inherited_rows(start: int) -> int:
    return _inherited[0].count_rows(f"id >= {start}")


def test_a_forked_worker_uses_connections_of_its_own(s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/forked"
    _inherited[:] = [esker.write_dataset(people(500), uri, storage_options=s3.storage_options)]
    assert _inherited_rows(0) == 500
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
        found = [pool.submit(_inherited_rows, start) for start in range(0, 500, 50)]
        # While they read over what they inherited, so does the parent.
        assert [_inherited_rows(start) for start in range(0, 500, 50)] == list(range(500, 0, -50))
        assert [future.result(60) for future in found] == list(range(500, 0, -50))


def test_lone_files_lie_on_object_stores(bucket: Bucket) -> None:
    path = f"{bucket.root}/files/a%20b.lance"
    with LanceFileWriter(path, storage_options=bucket.options) as writer:
        writer.write_batch(people(7))
    assert LanceFileReader(path, storage_options=bucket.options).read_all().to_table().num_rows == 7
    theirs = lance.file.LanceFileReader(path, storage_options=bucket.options)
    assert theirs.read_all().to_table() == people(7)
    session = LanceFileSession(f"{bucket.root}/files", storage_options=bucket.options)
    assert session.list() == ["a b.lance"]
    assert session.open_reader("a b.lance").num_rows() == 7


def test_what_is_staged_elsewhere_is_committed_with_the_same_options(bucket: Bucket) -> None:
    uri, options = f"{bucket.root}/staged", bucket.options
    staged = write_fragments(people(10), uri, storage_options=options)
    first = esker.LanceOperation.Overwrite(people(1).schema, staged)
    assert esker.LanceDataset.commit(uri, first, storage_options=options).version == 1
    more = [esker.LanceFragment.create(uri, people(5, start=10), storage_options=options)]
    dataset = esker.LanceDataset.commit(uri, esker.LanceOperation.Append(more), read_version=1, storage_options=options)
    assert (dataset.version, dataset.count_rows()) == (2, 15)
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["name"])
    assert dataset.to_table(filter="twice > 20")["id"].to_pylist() == [11, 12, 13, 14]
    for name, clone in (("deep", dataset.deep_clone), ("shallow", dataset.shallow_clone)):
        copy = clone(f"{bucket.root}/{name}", dataset.version, storage_options=options)
        assert copy.count_rows("id >= 0") == 15
        assert _ids(lance.dataset(f"{bucket.root}/{name}", storage_options=options).to_table()) == list(range(15))


def test_the_command_line_takes_storage_options(
    s3: S3Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"s3://{s3.bucket()}/cli"
    esker.write_dataset(people(12), uri, storage_options=s3.storage_options)
    options = [part for key, value in s3.storage_options.items() for part in ("--storage-option", f"{key}={value}")]
    assert main(["info", uri, "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 12
    # What the environment says needs no option.
    for key, value in s3.storage_options.items():
        monkeypatch.setenv(key.upper(), value)
    assert main(["info", uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 12
    assert esker.dataset(uri).count_rows() == 12
    # What is given goes before what the environment says, under whichever name.
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    given = {"secret_access_key": s3.secret, "endpoint_url": s3.endpoint, "Access_Key_ID": s3.key}
    assert esker.dataset(uri, storage_options=given).count_rows() == 12


def test_long_objects_go_up_in_parts(bucket: Bucket) -> None:
    store = Store(f"{bucket.root}/long", storage_options=bucket.options)
    wide = pa.table({"x": pa.array(range(5_000_000), pa.int64())})
    uri = f"{bucket.root}/long"
    esker.write_dataset(wide, uri, storage_options=bucket.options, data_storage_version="2.0", max_rows_per_file=10**7)
    sizes = [meta.size for meta in store.list("data/")]
    assert len(sizes) == 1
    assert sizes[0] > 2 * (16 << 20)
    assert esker.dataset(f"{bucket.root}/long", storage_options=bucket.options).to_table() == wide


def test_a_bucket_that_is_not_there_is_said(s3: S3Server) -> None:
    with pytest.raises(NotFoundError, match="no such bucket"):
        esker.write_dataset(people(1), "s3://never-made-bucket/t", storage_options=s3.storage_options)
    with pytest.raises((NotFoundError, OSError)):
        esker.dataset("s3://never-made-bucket/t", storage_options=s3.storage_options)


def test_opening_a_long_history_costs_two_requests(s3: S3Server) -> None:
    name = s3.bucket()
    uri = f"s3://{name}/history"
    esker.write_dataset(people(1), uri, storage_options=s3.storage_options)
    store = Store(uri, storage_options=s3.storage_options)
    made = Manifest.decode(store.get(VERSIONS + manifest_name(1, "V2")), "1")
    files = {}
    for number in range(2, 1001):
        change = Transaction.append(number - 1, [])
        storage = made.data_storage_version
        made = change.apply(made, version=number, data_storage_version=storage, timestamp_ns=time.time_ns())
        files[VERSIONS + manifest_name(number, "V2")] = made.encode()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(store.put_if_absent, files.keys(), files.values()))
    with CountingProxy(s3.server.port) as proxy:
        options = {**s3.storage_options, "aws_endpoint": proxy.endpoint}
        opened = esker.dataset(uri, storage_options=options)
        assert [request.kind for request in proxy.take()] == ["LIST manifest", "GET manifest"]
        assert (opened.version, opened.latest_version) == (1000, 1000)
        assert [request.kind for request in proxy.take()] == ["LIST manifest"]
        # One manifest of up to 64 KiB is one request, and so is a longer one.
        assert esker.dataset(uri, 1, storage_options=options).version == 1
        assert len(proxy.take()) == 2
