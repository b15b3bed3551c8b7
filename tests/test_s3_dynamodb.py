"""`s3+ddb://`: pylance and esker at the same table in the same moment, on real servers."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.commit.external import DynamoDBManifestStore, parse_staged_manifest
from esker.exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from tests.external import Killed
from tests.servers import DynamoDBServer, S3Server
from tests.servers.counting import CountingProxy

# What a table may be called: the key in DynamoDB is the path as pylance decodes it.
PATHS = ["t.lance", "a/b/t.lance", "with space/t+ü.lance", "a%20b/t.lance", "t.lance/"]


class Place:
    """A bucket, a DynamoDB table, and what finds both."""

    def __init__(self, s3: S3Server, dynamodb: DynamoDBServer) -> None:
        self.s3, self.dynamodb = s3, dynamodb
        self.bucket, self.commits = s3.bucket(), dynamodb.table()
        self.options = {**dynamodb.storage_options, **s3.storage_options}

    def uri(self, path: str = "t.lance") -> str:
        return f"s3+ddb://{self.bucket}/{path}?ddbTableName={self.commits}"

    def entries(self) -> dict[tuple[str, int], str]:
        items = self.dynamodb.items(self.commits)
        return {(item["base_uri"]["S"], int(item["version"]["N"])): item["path"]["S"] for item in items}

    def rows(self, uri: str) -> list[int]:
        ours, theirs = (
            sorted(library.dataset(uri, storage_options=self.options).to_table()["id"].to_pylist())
            for library in (esker, lance)
        )
        assert ours == theirs
        return list(ours)


@pytest.fixture
def place(s3: S3Server, dynamodb_server: DynamoDBServer) -> Place:
    return Place(s3, dynamodb_server)


def _ids(start: int, count: int = 1) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


@pytest.mark.parametrize("path", PATHS)
def test_both_libraries_use_the_same_keys_and_paths(place: Place, path: str) -> None:
    uri = place.uri(path)
    lance.write_dataset(_ids(0), uri, storage_options=place.options)
    esker.write_dataset(_ids(1), uri, mode="append", storage_options=place.options)
    lance.write_dataset(_ids(2), uri, mode="append", storage_options=place.options)
    esker.dataset(uri, storage_options=place.options).delete("id = 0")
    assert place.rows(uri) == [1, 2]
    entries = place.entries()
    assert len({base for base, _ in entries}) == 1
    assert sorted(version for _, version in entries) == [1, 2, 3, 4]
    for (base, version), found in entries.items():
        assert found == f"{base}/_versions/{2**64 - 1 - version}.manifest"
    assert [v["version"] for v in esker.dataset(uri, storage_options=place.options).versions()] == [1, 2, 3, 4]


@pytest.mark.parametrize("v2", [True, False])
def test_a_table_of_esker_is_read_and_written_by_pylance(place: Place, v2: bool) -> None:
    uri = place.uri()
    esker.write_dataset(_ids(0), uri, storage_options=place.options, enable_v2_manifest_paths=v2)
    lance.write_dataset(_ids(1), uri, mode="append", storage_options=place.options)
    esker.write_dataset(_ids(2), uri, mode="append", storage_options=place.options)
    assert place.rows(uri) == [0, 1, 2]
    names = {path.rpartition("/")[2] for path in place.entries().values()}
    assert names == {f"{2**64 - 1 - v}.manifest" if v2 else f"{v}.manifest" for v in (1, 2, 3)}


class Dying(DynamoDBManifestStore):
    """The writer's life ends when DynamoDB has taken its commit."""

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        super().put_if_not_exists(base_uri, version, path, size, e_tag)
        raise Killed


@pytest.mark.parametrize("reader", ["esker", "lance"])
def test_each_library_finishes_what_a_dead_esker_left(place: Place, reader: str) -> None:
    uri = place.uri()
    esker.write_dataset(_ids(0), uri, storage_options=place.options)
    dying = Dying(place.commits, place.options)
    with pytest.raises(Killed):
        esker.write_dataset(_ids(7), uri, mode="append", storage_options=place.options, manifest_store=dying)
    assert parse_staged_manifest(place.entries()["t.lance", 2].rpartition("/")[2]) is not None
    library: Any = {"esker": esker, "lance": lance}[reader]
    assert library.dataset(uri, storage_options=place.options).version == 2
    assert place.entries()["t.lance", 2] == "t.lance/_versions/18446744073709551613.manifest"
    assert len(place.s3.keys(place.bucket, "t.lance/_versions/")) == 2
    assert place.rows(uri) == [0, 7]


def test_esker_finishes_what_a_dead_pylance_left(place: Place) -> None:
    uri = place.uri()
    lance.write_dataset(_ids(0), uri, storage_options=place.options)
    lance.write_dataset(_ids(1), uri, mode="append", storage_options=place.options)
    # As it lies between pylance's second and third step.
    final = "t.lance/_versions/18446744073709551613.manifest"
    staged = f"{final}-6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0"
    client = place.s3.client()
    client.copy_object(Bucket=place.bucket, Key=staged, CopySource=f"{place.bucket}/{final}")
    client.delete_object(Bucket=place.bucket, Key=final)
    store = DynamoDBManifestStore(place.commits, place.options)
    entry = store.get("t.lance", 2)
    assert entry is not None
    assert store.put_if_exists("t.lance", 2, staged, entry.size or 0)
    assert esker.dataset(uri, storage_options=place.options).count_rows() == 2
    assert place.entries()["t.lance", 2] == final
    assert staged not in place.s3.keys(place.bucket)
    assert place.rows(uri) == [0, 1]


WRITER = """
import json, sys
import pyarrow as pa
library, uri, number, commits, options = sys.argv[1:]
number, commits, options = int(number), int(commits), json.loads(options)
module = __import__(library)
for turn in range(commits):
    rows = pa.table({"id": pa.array([number * 1000 + turn], pa.int64())})
    for attempt in range(50):
        try:
            module.write_dataset(rows, uri, mode="append", storage_options=options)
            break
        except OSError as error:
            if "onflict" not in str(error):
                raise
    else:
        raise SystemExit("never won")
"""


def test_pylance_and_esker_commit_to_one_table_at_once(place: Place) -> None:
    uri, commits = place.uri(), 3
    esker.write_dataset(_ids(0, 0), uri, storage_options=place.options)
    options = json.dumps(place.options)
    libraries = ["esker", "lance", "esker", "lance"]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, library, uri, str(number), str(commits), options], stderr=subprocess.PIPE
        )
        for number, library in enumerate(libraries, 1)
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()[-3000:]
    expected = sorted(number * 1000 + turn for number in range(1, 5) for turn in range(commits))
    assert place.rows(uri) == expected
    entries = place.entries()
    assert [parse_staged_manifest(path.rpartition("/")[2]) for path in entries.values()] == [None] * len(entries)
    plain = esker.dataset(f"s3://{place.bucket}/t.lance", storage_options=place.s3.storage_options)
    assert plain.version == max(version for _, version in entries)
    assert sorted(plain.to_table()["id"].to_pylist()) == expected


def test_no_more_requests_than_pylance(place: Place) -> None:
    counted: dict[str, list[int]] = {}
    with CountingProxy(place.s3.server.port) as s3, CountingProxy(place.dynamodb.server.port) as dynamodb:
        options = {**place.options, "aws_endpoint": s3.endpoint, "dynamodb_endpoint": dynamodb.endpoint}
        for library in (lance, esker):
            uri = place.uri(library.__name__)
            library.write_dataset(_ids(0), uri, storage_options=options)
            library.write_dataset(_ids(1), uri, mode="append", storage_options=options)
            counts = counted.setdefault(library.__name__, [])
            s3.take()
            dataset = library.dataset(uri, storage_options=options)
            counts.append(len(s3.take()))
            library.write_dataset(_ids(2), uri, mode="append", storage_options=options)
            counts.append(len(s3.take()))
            library.write_dataset(_ids(3), dataset, mode="append", storage_options=options)
            counts.append(len(s3.take()))
            dynamodb.take()
            library.dataset(uri, storage_options=options)
            counts.append(len(dynamodb.take()))
    assert all(ours <= theirs for ours, theirs in zip(counted["esker"], counted["lance"], strict=True)), counted


def test_workers_and_options(place: Place) -> None:
    uri = place.uri()
    dataset = esker.write_dataset(_ids(0), uri, storage_options=place.options)
    copy = pickle.loads(pickle.dumps(dataset))
    esker.write_dataset(_ids(1), copy, mode="append")
    assert place.rows(uri) == [0, 1]
    # The same store, named another way.
    by_option = {**place.options, "manifest_store": f"dynamodb://{place.commits}"}
    plain = f"s3://{place.bucket}/t.lance"
    esker.write_dataset(_ids(2), plain, mode="append", storage_options=by_option)
    assert place.rows(uri) == [0, 1, 2]
    assert place.options["aws_secret_access_key"] not in repr(copy) + repr(copy._log.manifest_store)
    with pytest.raises(InvalidArgumentError, match="ddbTableName=name"):
        esker.dataset(f"s3+ddb://{place.bucket}/t.lance", storage_options=place.options)
    with pytest.raises(NotFoundError, match="no DynamoDB table"):
        esker.dataset(uri.replace(place.commits, "none-here"), storage_options=place.options)
    with pytest.raises(NotFoundError, match="no table at"):
        esker.dataset(place.uri("none.lance"), storage_options=place.options)


def test_an_object_store_without_conditional_puts(s3: S3Server, tmp_path: Path) -> None:
    uri = f"s3://{s3.bucket()}/t.lance"
    options = {**s3.storage_options, "aws_conditional_put": "disabled"}
    with pytest.raises(UnsupportedError):
        esker.write_dataset(_ids(0), uri, storage_options=options)
    options["manifest_store"] = f"sqlite://{tmp_path}/manifests.db"
    dataset = esker.write_dataset(_ids(0), uri, storage_options=options)
    esker.write_dataset(_ids(1), uri, mode="append", storage_options=options)
    dataset.checkout_latest()
    dataset.delete("id = 0")
    assert esker.dataset(uri, storage_options=options).version == 3
    assert lance.dataset(uri, storage_options=s3.storage_options).to_table()["id"].to_pylist() == [1]
    detached = esker.LanceOperation.Append([fragment.metadata for fragment in dataset.get_fragments()])
    made = esker.LanceDataset.commit(dataset, detached, read_version=3, detached=True)
    assert made.count_rows() == 2


def test_branches_have_entries_of_their_own(place: Place) -> None:
    uri = place.uri("a/t.lance")
    options = place.options
    esker.write_dataset(_ids(0), uri, storage_options=options)
    dataset = esker.write_dataset(_ids(1), uri, mode="append", storage_options=options)
    branch = dataset.create_branch("feat", 1)
    assert branch.uri == f"s3+ddb://{place.bucket}/a/t.lance/tree/feat?ddbTableName={place.commits}"
    branch.insert(_ids(10))
    assert place.rows(branch.uri) == [0, 10]
    again = esker.dataset(uri, ("feat", None), storage_options=options)
    again.delete("id = 0")
    assert place.rows(branch.uri) == [10]
    assert place.rows(uri) == [0, 1]
    again.tags.create("t")
    assert esker.dataset(uri, "t", storage_options=options).version == 3
    assert {base for base, _ in place.entries()} == {"a/t.lance", "a/t.lance/tree/feat"}
    dataset.tags.delete("t")
    dataset.branches.delete("feat")
    assert {base for base, _ in place.entries()} == {"a/t.lance"}
    assert dataset.create_branch("feat", 2).version == 2
