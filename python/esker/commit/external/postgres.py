"""An external manifest store in PostgreSQL."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

from ...exceptions import InvalidArgumentError, IOFailedError, UnsupportedError
from ...store.pickling import pickled_url
from ...store.secrets import redacted, without_password
from .store import ManifestEntry

_PATIENCE: dict[str, int] = {
    "connect_timeout": 30,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""libpq's parameters by which a server that went without a word is an error in about 30 seconds: by the system's own it
is one in two hours, and whoever commits would wait for its reply as long."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


class PostgresManifestStore:
    """An `ExternalManifestStore` in a table of a PostgreSQL database.

    The first use creates the table if it is missing: `base_uri text, version numeric(20), path text, size bigint,
    e_tag text`, the first two its primary key. Each thread keeps one connection.

    Args:
        url: The database: `postgresql://user:password@host:5432/name`, with libpq's parameters. Without its own for
            timeouts, a server that can't be reached any more is an error in 30 seconds. Pickles carry the URL, see
            `pickle_storage_options`.
        table: The table's name, with a schema or without.

    Raises:
        InvalidArgumentError: The name would have to be quoted.
        UnsupportedError: The package psycopg is not installed: `pip install 'esker[postgres]'`.
        IOFailedError: (any method) The server did not answer, or refused.

    Example:
        `esker.write_dataset(table, uri, manifest_store=PostgresManifestStore("postgresql://localhost/lake"))`
    """

    def __init__(self, url: str, *, table: str = "esker_manifests") -> None:
        if not _NAME.fullmatch(table):
            raise InvalidArgumentError(f"expected the name of a table, plain or schema.name, found {table!r}")
        self.url = url
        self.table = table
        self._local = _Connections()

    def __repr__(self) -> str:
        return f"PostgresManifestStore({without_password(self.url)!r}, table={self.table!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (pickled_url(self.url), self.table)

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """See `ExternalManifestStore.get`."""
        return self._row("AND version = %s", base_uri, version)

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        """See `ExternalManifestStore.get_latest`."""
        return self._row("ORDER BY version DESC LIMIT 1", base_uri)

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_not_exists`."""
        sql = f"INSERT INTO {self.table} VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
        return self._run(sql, base_uri, version, path, size, e_tag)[0] == 1

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_exists`."""
        sql = f"UPDATE {self.table} SET path = %s, size = %s, e_tag = %s WHERE base_uri = %s AND version = %s"
        return self._run(sql, path, size, e_tag, base_uri, version)[0] == 1

    def delete(self, base_uri: str) -> None:
        """See `ExternalManifestStore.delete`."""
        self._run(f"DELETE FROM {self.table} WHERE base_uri = %s", base_uri)

    def _row(self, which: str, *values: Any) -> ManifestEntry | None:
        sql = f"SELECT version, path, size, e_tag FROM {self.table} WHERE base_uri = %s {which}"
        _, row = self._run(sql, *values)
        return ManifestEntry(int(row[0]), *row[1:]) if row else None

    def _run(self, sql: str, *values: Any) -> tuple[int, Any]:
        """How many rows a statement touched, and the first that it returned."""
        try:
            import psycopg
        except ImportError as error:
            raise UnsupportedError("expected the package psycopg, found none: pip install 'esker[postgres]'") from error
        try:
            cursor = self._connection(psycopg).execute(sql, values)
            return cursor.rowcount, cursor.fetchone() if cursor.description else None
        except (psycopg.Error, OSError) as error:
            # A connection that failed is not used again.
            self._local.connection = None
            raise IOFailedError(
                f"{self!r} failed: {redacted(str(error), self.url)}; look at the server, and try again"
            ) from None

    def _connection(self, psycopg: Any) -> Any:
        """This thread's connection, a new one after a fork."""
        if self._local.connection is None or self._local.process != os.getpid() or self._local.connection.closed:
            # Autocommit: each statement is one transaction, durable when it returns.
            given = psycopg.conninfo.conninfo_to_dict(self.url)
            patience = {name: value for name, value in _PATIENCE.items() if name not in given}
            connection = psycopg.connect(self.url, autocommit=True, **patience)
            self._make_table(psycopg, connection)
            self._local.connection, self._local.process = connection, os.getpid()
        return self._local.connection

    def _make_table(self, psycopg: Any, connection: Any) -> None:
        if self._has_table(connection):
            return
        sql = (
            f"CREATE TABLE IF NOT EXISTS {self.table} (base_uri text NOT NULL, version numeric(20) NOT NULL, "
            "path text NOT NULL, size bigint, e_tag text, PRIMARY KEY (base_uri, version))"
        )
        errors = psycopg.errors
        try:
            connection.execute(sql)
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
            # Another writer created it at the same moment. PostgreSQL says so of whichever it met first: the entry of
            # an index, the table, or the type of the table's rows, which may also be a type of that name without one.
            if not self._has_table(connection):
                raise

    def _has_table(self, connection: Any) -> bool:
        return connection.execute("SELECT to_regclass(%s)", (self.table,)).fetchone()[0] is not None


class _Connections(threading.local):
    """Each thread's connection, and the process that it belongs to."""

    connection: Any = None
    process: int = 0


def _rebuild(url: str, table: str) -> PostgresManifestStore:
    return PostgresManifestStore(url, table=table)
