"""An external manifest store in one SQLite file: for tables on a file system without hard links, for example."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...exceptions import IOFailedError
from .store import ManifestEntry

_TABLE = """
CREATE TABLE IF NOT EXISTS manifests (
    base_uri TEXT NOT NULL, version INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER, e_tag TEXT,
    PRIMARY KEY (base_uri, version)
) WITHOUT ROWID
"""
_ROW = "SELECT version, path, size, e_tag FROM manifests WHERE base_uri = ?"


class SqliteManifestStore:
    """An `ExternalManifestStore` in an SQLite file, for any number of tables and processes of one machine.

    The file must be on a local disk: SQLite's locks do not hold on network file systems. The first use creates it.
    Each call opens the file, so that an instance can be pickled, forked and shared by threads.

    Args:
        path: The file.
        timeout_s: Seconds to wait for other writers of the file.

    Raises:
        IOFailedError: (any method) The file cannot be opened, read or written.

    Example:
        >>> import tempfile
        >>> from esker.commit.external import SqliteManifestStore
        >>> store = SqliteManifestStore(tempfile.mkdtemp() + "/manifests.db")
        >>> store.put_if_not_exists("t", 1, "t/_versions/1.manifest", 10)
        True
        >>> store.put_if_not_exists("t", 1, "t/_versions/1.manifest-other", 10)
        False
        >>> store.get_latest("t").version
        1
    """

    def __init__(self, path: str | Path, *, timeout_s: float = 30.0) -> None:
        self.path = Path(path).expanduser().absolute()
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"SqliteManifestStore({str(self.path)!r})"

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """See `ExternalManifestStore.get`."""
        with self._connection() as connection:
            return _entry(connection.execute(f"{_ROW} AND version = ?", (base_uri, version)).fetchone())

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        """See `ExternalManifestStore.get_latest`."""
        with self._connection() as connection:
            return _entry(connection.execute(f"{_ROW} ORDER BY version DESC LIMIT 1", (base_uri,)).fetchone())

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_not_exists`."""
        row = (base_uri, version, path, size, e_tag)
        with self._connection() as connection:
            sql = "INSERT INTO manifests VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            return connection.execute(sql, row).rowcount == 1

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_exists`."""
        row = (path, size, e_tag, base_uri, version)
        with self._connection() as connection:
            sql = "UPDATE manifests SET path = ?, size = ?, e_tag = ? WHERE base_uri = ? AND version = ?"
            return connection.execute(sql, row).rowcount == 1

    def delete(self, base_uri: str) -> None:
        """See `ExternalManifestStore.delete`."""
        with self._connection() as connection:
            connection.execute("DELETE FROM manifests WHERE base_uri = ?", (base_uri,))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # isolation_level=None is autocommit: each statement is one transaction, durable when it returns.
        try:
            connection = sqlite3.connect(self.path, timeout=self.timeout_s, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(_TABLE)
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise IOFailedError(
                f"the manifest store {self.path} failed: {error}; expected an SQLite file on a local disk that can be "
                "written",
                path=str(self.path),
            ) from error


def _entry(row: tuple[int, str, int | None, str | None] | None) -> ManifestEntry | None:
    return ManifestEntry(*row) if row else None
