"""An external store has done it, and its reply is lost on the line: committed once, and no conflict."""

from __future__ import annotations

import errno
import secrets
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.commit.external import (
    DynamoDBManifestStore,
    ManifestEntry,
    PostgresManifestStore,
    RedisManifestStore,
    SqliteManifestStore,
)
from esker.exceptions import CommitStateUnknownError
from tests.external import Cutting
from tests.servers import S3Server

# What the request looks like on the line that puts a new entry, and the one that puts the final path.
MARKERS = {
    "dynamodb": (b"attribute_not_exists", b"attribute_exists"),
    "redis": (b"HSETNX", b"HEXISTS"),
    "postgres": (b"INSERT INTO", b"UPDATE t_"),
}


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize("kind", MARKERS)
def test_a_lost_reply_is_read_back(kind: str, step: int, uri: str, request: pytest.FixtureRequest) -> None:
    server: Any = request.getfixturevalue(f"{kind}_server")
    marker = MARKERS[kind][0 if step == 2 else 1]
    with Cutting(server.server.port, marker) as proxy:
        here, there = f"127.0.0.1:{server.server.port}", f"127.0.0.1:{proxy.port}"
        name = f"t_{secrets.token_hex(4)}"
        store: Any
        if kind == "dynamodb":
            options = {key: value.replace(here, there) for key, value in server.storage_options.items()}
            store = DynamoDBManifestStore(server.table(), options)
        elif kind == "redis":
            store = RedisManifestStore(server.url.replace(here, there), prefix=name)
        else:
            store = PostgresManifestStore(server.url.replace(here, there), table=name)
        dataset = esker.write_dataset(pa.table({"id": [1]}), uri, manifest_store=store)
        assert proxy.lost == 1
        assert dataset.version == 1
        assert [path.name for path in Path(uri, "_versions").iterdir()] == ["18446744073709551614.manifest"]
        assert esker.write_dataset(pa.table({"id": [2]}), dataset, mode="append").version == 2
        again = esker.dataset(uri, manifest_store=store)
        assert again.to_table()["id"].to_pylist() == [1, 2]
        assert store.get(uri, 1).path.endswith("/18446744073709551614.manifest")


class _Expires(SqliteManifestStore):
    """Gives no reply to the put of version 2, denies the look after it, and is down from then on."""

    denied = False

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        if version == 2:
            raise TimeoutError("no reply")
        return super().put_if_not_exists(base_uri, version, path, size, e_tag)

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        if version == 2 and not self.denied:
            self.denied = True
            raise PermissionError(errno.EACCES, "the keys have expired")
        return super().get(base_uri, version)

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        if self.denied:
            raise TimeoutError("down")
        return super().get_latest(base_uri)


def test_a_denied_look_after_a_lost_reply_is_no_refusal(uri: str, tmp_path: Path) -> None:
    """The put may still arrive: the files that it names stay."""
    dataset = esker.write_dataset(pa.table({"id": [1]}), uri, manifest_store=_Expires(tmp_path / "manifests.db"))
    with pytest.raises(CommitStateUnknownError, match="find_transaction"):
        esker.write_dataset(pa.table({"id": [2]}), dataset, mode="append")
    assert len(list(Path(uri, "data").iterdir())) == 2


class _Lands(_Expires):
    """Has put version 2 when its client, which got no reply, sends the put again, and denies each look after it."""

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        done = SqliteManifestStore.put_if_not_exists(self, base_uri, version, path, size, e_tag)
        return done and version != 2

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        if version == 2:
            self.denied = True
            raise PermissionError(errno.EACCES, "the keys have expired")
        return super().get(base_uri, version)


def test_a_denied_look_at_an_entry_that_is_there_is_no_refusal(s3: S3Server, tmp_path: Path) -> None:
    """It may be ours, as here: the files that it names stay."""
    uri, database = f"s3://{s3.bucket()}/t", tmp_path / "manifests.db"
    options = s3.storage_options
    dataset = esker.write_dataset(pa.table({"id": [1]}), uri, storage_options=options, manifest_store=_Lands(database))
    with pytest.raises(CommitStateUnknownError, match="find_transaction"):
        esker.write_dataset(pa.table({"id": [2]}), dataset, mode="append")
    found = esker.dataset(uri, storage_options=options, manifest_store=SqliteManifestStore(database))
    assert found.to_table()["id"].to_pylist() == [1, 2]
