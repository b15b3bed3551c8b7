"""External manifest stores for tests: one of each kind, one that fails as planned, and what all must leave behind."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from esker.commit.external import (
    DynamoDBManifestStore,
    ExternalManifestStore,
    ManifestEntry,
    PostgresManifestStore,
    RedisManifestStore,
    SqliteManifestStore,
)
from esker.exceptions import IOFailedError

KINDS = ("sqlite", "dynamodb", "redis", "postgres")


def make_store(kind: str, request: pytest.FixtureRequest, folder: Path) -> Any:
    """An empty store of a kind, on the session's real server."""
    if kind == "sqlite":
        return SqliteManifestStore(folder / "manifests.db")
    if kind == "dynamodb":
        dynamodb = request.getfixturevalue("dynamodb_server")
        return DynamoDBManifestStore(dynamodb.table(), dynamodb.storage_options)
    name = f"t_{secrets.token_hex(6)}"
    if kind == "redis":
        return RedisManifestStore(request.getfixturevalue("redis_server").url, prefix=f"{name}:")
    return PostgresManifestStore(request.getfixturevalue("postgres_server").url, table=name)


class Killed(BaseException):
    """The process is dead: no `except Exception` of ours runs any more."""


class Failing:
    """An external store that fails in one of its calls.

    Args:
        inner: The store that really holds the entries.
        fault: "kill_before", "kill_after", "fail" (nothing happens) or "lose_reply" (it happens, and nobody is told).
        at: The number of the call that fails, from 0, or its name; -1 for none.
        dead: Whether the process is dead already.
    """

    def __init__(
        self,
        inner: ExternalManifestStore,
        fault: str = "",
        at: int | str = -1,
        dead: Callable[[], bool] = lambda: False,
    ) -> None:
        self.inner = inner
        self.calls: list[tuple[str, int | None]] = []
        self._fault = fault
        self._at = at
        self._dead = dead

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        return self._call("get", version, lambda: self.inner.get(base_uri, version))

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        return self._call("get_latest", None, lambda: self.inner.get_latest(base_uri))

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        return self._call(
            "put_if_not_exists", version, lambda: self.inner.put_if_not_exists(base_uri, version, path, size, e_tag)
        )

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        return self._call(
            "put_if_exists", version, lambda: self.inner.put_if_exists(base_uri, version, path, size, e_tag)
        )

    def delete(self, base_uri: str) -> None:
        return self._call("delete", None, lambda: self.inner.delete(base_uri))

    def _call(self, verb: str, version: int | None, call: Callable[[], Any]) -> Any:
        if self._dead():
            raise Killed
        number = len(self.calls)
        self.calls.append((verb, version))
        if self._at not in (number, verb):
            return call()
        if self._fault in ("fail", "kill_before"):
            raise Killed if self._fault == "kill_before" else IOFailedError("planned: no reply")
        call()
        if self._fault == "kill_after":
            self._dead = lambda: True
            raise Killed
        raise IOFailedError("planned: the reply was lost")


class Cutting:
    """A proxy before a server that loses the reply to one request: the server has done it, and the line is cut.

    Args:
        port: The server's, on this machine.
        marker: Bytes that tell the request.
    """

    def __init__(self, port: int, marker: bytes) -> None:
        self.lost = 0
        self._server = ("127.0.0.1", port)
        self._marker = marker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                doomed = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, doomed), daemon=True).start()
                threading.Thread(target=self._replies, args=(client, server, doomed), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self._marker in data and not self.lost:
                    self.lost += 1
                    doomed.set()
                server.sendall(data)
            server.close()

    def _replies(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if doomed.is_set():
                    break
                client.sendall(data)
            # Not close alone: the other thread still waits for this socket.
            client.shutdown(socket.SHUT_RDWR)
            client.close()

    def __enter__(self) -> Cutting:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
