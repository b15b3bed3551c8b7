"""A reverse proxy on loopback that counts requests and can hold replies back: for figures, not for faults.

It reads each request whole, hands it on unchanged (signatures hold), and hands the reply back after `delay_s` seconds,
as a network of that latency would. For replies that get lost see `faulty`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Request:
    """One request that came by."""

    method: str
    path: str
    query: str
    status: int
    sent: int
    received: int
    """Bytes of the bodies: of the request and of the reply."""

    @property
    def kind(self) -> str:
        """What it is for, in the words of the table's layout: "GET manifest", "LIST versions"."""
        name = unquote(self.path)
        method = "LIST" if self.method == "GET" and "list-type" in self.query else self.method
        listed = unquote(self.query)
        for part, noun in _NOUNS:
            if part in name or (method == "LIST" and part in listed):
                return f"{method} {noun}"
        return f"{method} other"


_NOUNS = (
    ("_versions", "manifest"),
    ("_transactions", "transaction"),
    ("_deletions", "deletion file"),
    ("_latest.manifest", "latest copy"),
    ("data/", "data file"),
)


class CountingProxy:
    """Listens on a free port of 127.0.0.1 and hands everything on to `port`."""

    def __init__(self, port: int, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self._upstream = port
        self._requests: list[Request] = []
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="counting-proxy", daemon=True)
        self._thread.start()
        if not self._started.wait(30):
            raise RuntimeError("the counting proxy did not start")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self) -> list[Request]:
        """The requests since the last call."""
        found, self._requests = self._requests, []
        return found

    def __enter__(self) -> CountingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                if b"\r\nexpect: 100-continue" in head.lower():
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
                body = await _body(head, reader)
                if upstream is None:
                    upstream = await asyncio.open_connection("127.0.0.1", self._upstream)
                upstream[1].write(head + body)
                reply_head = await upstream[0].readuntil(b"\r\n\r\n")
                status = int(reply_head.split(b" ", 2)[1])
                empty = method == "HEAD" or status in (204, 304)
                reply = b"" if empty else await _body(reply_head, upstream[0])
                path, _, query = target.partition("?")
                self._requests.append(Request(method, path, query, status, len(body), len(reply)))
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(reply_head + reply)
                await writer.drain()
        for stream in (writer, upstream[1] if upstream else None):
            if stream is not None:
                stream.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    """The bytes that follow a head, as they came."""
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return await reader.readexactly(int(value))
        if name == b"transfer-encoding" and b"chunked" in value:
            return await _chunks(reader)
    return b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        found += line + await reader.readexactly(size + 2)
        if size == 0:
            return found
