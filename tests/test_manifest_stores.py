"""Each kind of external manifest store does what `ExternalManifestStore` asks, on a real server."""

from __future__ import annotations

import importlib
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from esker.commit import pickle_storage_options
from esker.commit.external import (
    DynamoDBManifestStore,
    ExternalManifestStore,
    ManifestEntry,
    PostgresManifestStore,
    RedisManifestStore,
    SqliteManifestStore,
    base_uri_of,
    open_manifest_store,
    parse_staged_manifest,
    staged_manifest_name,
)
from esker.exceptions import InvalidArgumentError, IOFailedError, NotFoundError
from esker.store.pickling import pickled_options
from tests.external import KINDS, make_store
from tests.servers import DynamoDBServer


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return make_store(request.param, request, tmp_path)


BASES = ["lake/t.lance", "", "/a b/ü{x}%7D.lance", "s3://bucket/t"]


@pytest.mark.parametrize("base", BASES)
def test_a_version_has_one_entry_and_the_first_put_makes_it(store: Any, base: str) -> None:
    if base == "" and isinstance(store, DynamoDBManifestStore):
        base = "root"  # A key of DynamoDB is never empty, so no table of pylance's lies at a bucket's root.
    assert isinstance(store, ExternalManifestStore)
    assert store.get(base, 1) is None
    assert store.get_latest(base) is None
    assert store.put_if_not_exists(base, 1, "p/1-a", 11) is True
    assert store.put_if_not_exists(base, 1, "p/1-b", 12, "tag") is False
    assert store.get(base, 1) == ManifestEntry(1, "p/1-a", 11, None)
    assert store.put_if_exists(base, 1, "p/1", 13, 'W/"tag"') is True
    assert store.get(base, 1) == ManifestEntry(1, "p/1", 13, 'W/"tag"')
    assert store.put_if_exists(base, 2, "p/2", 13) is False
    assert store.get(base, 2) is None


def test_the_latest_entry_is_that_of_the_highest_number(store: Any) -> None:
    for version in (9, 10, 2, 1, 100, 99):
        assert store.put_if_not_exists("t", version, f"p/{version}", version)
        assert store.put_if_not_exists("t/other", version + 1000, "p", 1)
    assert store.get_latest("t") == ManifestEntry(100, "p/100", 100, None)
    assert store.get_latest("t/other").version == 1100
    store.delete("t")
    assert store.get_latest("t") is None
    assert store.get("t", 9) is None
    assert store.get_latest("t/other").version == 1100
    assert store.put_if_not_exists("t", 1, "again", 1)


def test_one_of_many_raced_puts_wins(store: Any) -> None:
    copies = [pickle.loads(pickle.dumps(store)) for _ in range(8)]
    for version in range(1, 11):
        start = threading.Barrier(len(copies))

        def race(number: int, start: threading.Barrier = start, version: int = version) -> bool:
            start.wait()
            won: bool = copies[number].put_if_not_exists("t", version, f"p/{number}", number)
            return won

        with ThreadPoolExecutor(len(copies)) as threads:
            winners = [number for number, won in enumerate(threads.map(race, range(len(copies)))) if won]
        assert len(winners) == 1
        assert store.get("t", version).path == f"p/{winners[0]}"


def test_dynamodb_detached_versions_of_pylance_are_not_the_latest(dynamodb_server: DynamoDBServer) -> None:
    store = DynamoDBManifestStore(dynamodb_server.table(), dynamodb_server.storage_options)
    store.put_if_not_exists("t", 3, "t/_versions/3.manifest", 1)
    store.put_if_not_exists("t", 9719240022038728633, "t/_versions/d9719240022038728633.manifest", 1)
    latest = store.get_latest("t")
    assert latest is not None
    assert latest.version == 3


def test_a_dynamodb_table_with_other_keys_or_none_is_refused(dynamodb_server: DynamoDBServer) -> None:
    other = DynamoDBManifestStore(dynamodb_server.table("uri", "number"), dynamodb_server.storage_options)
    with pytest.raises(
        InvalidArgumentError, match="partition key base_uri and the sort key version, found number, uri"
    ):
        other.get("t", 1)
    with pytest.raises(NotFoundError, match="no DynamoDB table none-here"):
        DynamoDBManifestStore("none-here", dynamodb_server.storage_options).get("t", 1)


# Nobody listens on port 9 (discard) of this machine.
DEAD: dict[str, Callable[[Path], Any]] = {
    "sqlite": lambda folder: SqliteManifestStore(folder / "none" / "m.db"),
    "redis": lambda folder: RedisManifestStore("redis://me:hunter2@127.0.0.1:9/0"),
    "postgres": lambda folder: PostgresManifestStore("postgresql://me:hunter2@127.0.0.1:9/db?sslpassword=hunter2"),
    "dynamodb": lambda folder: DynamoDBManifestStore(
        "t",
        {
            "dynamodb_endpoint": "http://127.0.0.1:9",
            "aws_region": "us-east-1",
            "aws_access_key_id": "key",
            "aws_secret_access_key": "hunter2",
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_not_there_is_an_io_error_without_credentials(kind: str, tmp_path: Path) -> None:
    store = DEAD[kind](tmp_path)
    with pytest.raises(IOFailedError, match="failed") as caught:
        store.get("t", 1)
    assert "hunter2" not in str(caught.value) + repr(caught.value) + repr(store)
    assert caught.value.__cause__ is None or "hunter2" not in str(caught.value.__cause__)


def test_wrong_passwords_are_not_repeated(redis_server: Any, postgres_server: Any) -> None:
    for store in (
        RedisManifestStore(redis_server.url.replace("esker-test-secret", "hunter2")),
        PostgresManifestStore(postgres_server.url.replace("esker-test-secret", "hunter2")),
    ):
        with pytest.raises(IOFailedError) as caught:
            store.get("t", 1)
        assert "hunter2" not in str(caught.value) + repr(store)


def test_writers_create_the_table_of_postgres_at_the_same_moment(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    # PostgreSQL's IF NOT EXISTS fails in three ways beside another writer's, the rarest about once in 200 of these.
    writers = 8
    for _ in range(8):
        made = make_store("postgres", request, tmp_path)
        ready = threading.Barrier(writers)

        def put(version: int, store: Any = made, ready: threading.Barrier = ready) -> bool:
            ready.wait()
            return bool(store.put_if_not_exists("t", version, f"t/{version}.manifest", 1))

        with ThreadPoolExecutor(writers) as pool:
            assert all(pool.map(put, range(1, writers + 1)))
        latest = made.get_latest("t")
        assert latest is not None
        assert latest.version == writers


@pytest.mark.parametrize(("given", "idle"), [("", "15"), ("?keepalives_idle=7", "7")])
def test_a_server_of_postgres_that_is_gone_without_a_word_is_not_waited_for(
    given: str, idle: str, postgres_server: Any
) -> None:
    store = PostgresManifestStore(postgres_server.url + given, table="patient")
    assert store.get("t", 1) is None
    asked = store._local.connection.info.get_parameters()
    assert (asked["keepalives_idle"], asked["tcp_user_timeout"]) == (idle, "30000")


def test_a_type_of_postgres_in_the_place_of_the_table_is_an_error(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    psycopg = importlib.import_module("psycopg")
    store = make_store("postgres", request, tmp_path)
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute(f"CREATE TYPE {store.table} AS ENUM ('a')")
        for _ in range(2):
            with pytest.raises(IOFailedError, match=f'type "{store.table}" already exists'):
                store.put_if_not_exists("t", 1, "t/1.manifest", 1)
        connection.execute(f"DROP TYPE {store.table}")
    assert store.put_if_not_exists("t", 1, "t/1.manifest", 1)


def test_pickles_leave_passwords_out_where_they_are_told_to() -> None:
    options = {"aws_secret_access_key": "hunter2", "aws_region": "eu-west-1", "manifest_store": "redis://:hunter2@h/0"}
    made = [
        RedisManifestStore("redis://me:hunter2@host/0?password=hunter2"),
        PostgresManifestStore("postgresql://me:hunter2@host/db?sslpassword=hunter2&sslmode=require"),
        DynamoDBManifestStore("t", options),
    ]
    for store in made:
        assert b"hunter2" in pickle.dumps(store)
        with pickle_storage_options(False):
            pickled = pickle.dumps(store)
        assert b"hunter2" not in pickled
        assert type(pickle.loads(pickled)) is type(store)
    with pickle_storage_options(False):
        assert pickle.loads(pickle.dumps(made[1])).url == "postgresql://me@host/db?sslmode=require"
        assert pickled_options(options) == {"aws_region": "eu-west-1", "manifest_store": "redis://h/0"}


def test_a_damaged_sqlite_file_is_an_io_error(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_bytes(b"no database" * 100)
    with pytest.raises(IOFailedError, match="expected an SQLite file"):
        SqliteManifestStore(tmp_path / "m.db").get("t", 1)


def test_a_store_is_named_by_a_uri() -> None:
    def opened(option: str) -> Any:
        return open_manifest_store("/data/t", {"manifest_store": option, "aws_region": "eu-west-1"})

    assert opened("sqlite:///data/my%20m.db").path == Path("/data/my m.db")
    redis = opened("redis://me:secret@host:6379/3?prefix=x:&ssl_cert_reqs=none")
    assert (redis.url, redis.prefix) == ("redis://me:secret@host:6379/3?ssl_cert_reqs=none", "x:")
    assert opened("unix:///run/redis.sock").url == "unix:///run/redis.sock"
    postgres = opened("postgresql://me:secret@host/db?table=lake.commits&sslmode=require")
    assert (postgres.url, postgres.table) == ("postgresql://me:secret@host/db?sslmode=require", "lake.commits")
    dynamodb = opened("dynamodb://commits")
    assert (dynamodb.table_name, dynamodb.storage_options["aws_region"]) == ("commits", "eu-west-1")
    assert open_manifest_store("/data/t") is None
    assert open_manifest_store("s3+ddb://b/t?ddbTableName=c").table_name == "c"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "option",
    ["sqlite://m.db", "sqlite:m.db", "sqlite:///m.db?x=1", "mysql://u:secret@host/db", "dynamodb://", "m.db", ""],
)
def test_what_names_no_store_is_refused(option: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        open_manifest_store("/data/t", {"manifest_store": option})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("uri", ["s3+ddb://b/t", "s3+ddb://b/t?ddbTableName=", "s3+ddb://b/t?ddbTableName=a&x=1"])
def test_s3_ddb_wants_one_table_name(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="ddbTableName=name"):
        open_manifest_store(uri)


def test_one_table_has_one_store() -> None:
    with pytest.raises(InvalidArgumentError, match="one manifest store"):
        open_manifest_store("s3+ddb://b/t?ddbTableName=c", {}, SqliteManifestStore("/m.db"))
    with pytest.raises(TypeError, match="found dict without get_latest, put_if_not_exists"):
        open_manifest_store("/t", {}, {})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="plain or schema.name"):
        PostgresManifestStore("postgresql://h/d", table="x; drop table y")


def test_all_names_of_a_table_are_one_base_uri() -> None:
    sqlite, dynamodb = SqliteManifestStore("/m.db"), DynamoDBManifestStore("c")
    assert {base_uri_of(sqlite, uri) for uri in ("/d/t", "file:///d/t", "file:///d/t/")} == {"/d/t"}
    # What pylance has as the key: without the bucket, decoded.
    for uri in ("s3+ddb://b/x/t%20u.lance?ddbTableName=c", "s3://b/x/t u.lance/", "s3+ddb://b/x/t u.lance/"):
        assert base_uri_of(dynamodb, uri) == "x/t u.lance"
    assert base_uri_of(sqlite, "s3://b/x/t.lance/") == "s3://b/x/t.lance"


def test_names_of_staged_manifests() -> None:
    for final in ("7.manifest", "18446744073709551608.manifest"):
        found = parse_staged_manifest(staged_manifest_name(final))
        assert found is not None
        assert (found.version, found.final) == (7, final)
        assert found.scheme == ("V1" if final == "7.manifest" else "V2")
    uuid = "6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0"
    for name in (
        f"7.manifest-{uuid}x",
        f"d7.manifest-{uuid}",
        f"7.manifest-{uuid[:-1]}",
        f"x7.manifest-{uuid}",
        "",
        uuid,
    ):
        assert parse_staged_manifest(name) is None, name
