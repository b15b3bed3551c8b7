"""Which external manifest store a table has: by its URI, by a storage option, or by the `manifest_store` argument.

| given as | store |
|---|---|
| `s3+ddb://bucket/path?ddbTableName=name` as the table's URI | DynamoDB, shared with pylance |
| option `manifest_store` = `sqlite:///path/of/file` | SQLite |
| option `manifest_store` = `redis://...`, `rediss://...`, `unix://...`, with `?prefix=` if wanted | Redis |
| option `manifest_store` = `postgresql://...`, with `?table=` if wanted | PostgreSQL |
| option `manifest_store` = `dynamodb://name` | DynamoDB, as the first line |
| argument `manifest_store=` | the object given, or one of these URIs |
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from ...exceptions import InvalidArgumentError
from ...store.s3_ddb import S3_AND_DYNAMODB, s3_uri, split_s3_ddb
from ...store.secrets import MANIFEST_STORE, without_password
from .dynamodb import DynamoDBManifestStore
from .postgres import PostgresManifestStore
from .redis import RedisManifestStore
from .sqlite import SqliteManifestStore
from .store import ExternalManifestStore

_OF_S3 = ("s3://", "s3a://", S3_AND_DYNAMODB)
_VERBS = ("get", "get_latest", "put_if_not_exists", "put_if_exists", "delete")


def open_manifest_store(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    manifest_store: ExternalManifestStore | str | None = None,
) -> ExternalManifestStore | None:
    """The external manifest store of a table, None if it has none.

    Args:
        uri: The table's URI.
        storage_options: Its storage options.
        manifest_store: The argument of the caller: a store, or its URI.

    Raises:
        InvalidArgumentError: The URI is not that of a manifest store, or two stores are given for one table.
        TypeError: The object lacks methods of a manifest store.

    Example:
        >>> from esker.commit.external import open_manifest_store
        >>> open_manifest_store("/data/t.lance", {"manifest_store": "sqlite:///data/manifests.db"})
        SqliteManifestStore('/data/manifests.db')
    """
    options = storage_options or {}
    store = manifest_store if manifest_store is not None else options.get(MANIFEST_STORE)
    if uri.lower().startswith(S3_AND_DYNAMODB):
        table = split_s3_ddb(uri)[1]
        if store is None:
            return DynamoDBManifestStore(table, options)
        if not isinstance(store, DynamoDBManifestStore) or store.table_name != table:
            raise InvalidArgumentError(f"expected one manifest store, found another one besides that of {uri}")
    if store is None:
        return None
    if isinstance(store, str):
        return _by_uri(store, options)
    missing = [verb for verb in _VERBS if not callable(getattr(store, verb, None))]
    if missing:
        raise TypeError(
            f"expected manifest_store to be a URI or to have the methods of ExternalManifestStore, "
            f"found {type(store).__name__} without {', '.join(missing)}"
        )
    return store


def base_uri_of(store: ExternalManifestStore, uri: str) -> str:
    """The name of the table at `uri` in a manifest store. All writers of the table must use the same one.

    In DynamoDB it is the path within the S3 bucket, as in pylance; elsewhere it is the URI, a local one as a plain
    path.

    Example:
        >>> from esker.commit.external import DynamoDBManifestStore, SqliteManifestStore, base_uri_of
        >>> base_uri_of(DynamoDBManifestStore("commits"), "s3+ddb://lake/a/t.lance?ddbTableName=commits")
        'a/t.lance'
        >>> base_uri_of(SqliteManifestStore("/data/m.db"), "file:///data/t.lance/")
        '/data/t.lance'
    """
    if isinstance(store, DynamoDBManifestStore) and uri.lower().startswith(_OF_S3):
        return unquote(s3_uri(uri).partition("://")[2].partition("/")[2]).strip("/")
    if uri.lower().startswith("file://"):
        uri = unquote(urlsplit(uri).path)
    return uri.rstrip("/") or "/"


def _without(uri: str, name: str) -> str:
    """The URI without one parameter of its query."""
    plain, _, query = uri.partition("?")
    kept = "&".join(part for part in query.split("&") if part and part.partition("=")[0] != name)
    return f"{plain}?{kept}" if kept else plain


def _by_uri(uri: str, options: Mapping[str, str]) -> ExternalManifestStore:
    parts = urlsplit(uri)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    match parts.scheme.lower():
        case "sqlite":
            if parts.netloc or not parts.path.startswith("/") or query:
                raise InvalidArgumentError(f"expected sqlite:///path/of/file, an absolute path, found {uri!r}")
            return SqliteManifestStore(unquote(parts.path))
        case "redis" | "rediss" | "unix":
            plain = _without(uri, "prefix")
            return RedisManifestStore(plain, prefix=query["prefix"]) if "prefix" in query else RedisManifestStore(plain)
        case "postgresql" | "postgres":
            plain = _without(uri, "table")
            return (
                PostgresManifestStore(plain, table=query["table"]) if "table" in query else PostgresManifestStore(plain)
            )
        case "dynamodb":
            if not parts.netloc or parts.path.strip("/") or query:
                raise InvalidArgumentError(f"expected dynamodb://name, found {uri!r}")
            return DynamoDBManifestStore(parts.netloc, options)
    raise InvalidArgumentError(
        f"expected a manifest store as sqlite:///file, redis://, rediss://, unix://, postgresql:// or dynamodb://name, "
        f"found {without_password(uri)!r}"
    )
