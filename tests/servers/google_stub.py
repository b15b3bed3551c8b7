"""A stand-in for Google's XML API, for routing only: that requests go where they should, with the token and the rule.

It keeps the rule of `x-goog-if-generation-match` under a lock, but proves nothing of Google: no emulator that we know
of keeps it (fake-gcs-server takes no notice), so nothing is promised here beyond what requests say.
"""

from __future__ import annotations

import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TOKEN = "a-bearer-token"


class GoogleStub:
    """A running stub with no objects.

    Example:
        with GoogleStub() as google:
            esker.write_dataset(table, "gs://bucket/t", storage_options=google.storage_options)
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        """By bucket and key, as `bucket/key`."""
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path with query, headers in lower case."""
        self._lock = threading.Lock()
        self._generation = 1
        self._generations: dict[str, int] = {}
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {key.lower(): value for key, value in self.headers.items()}
                status, found, extra = stub._answer(self.command, self.path, headers, body)
                self.send_response(status)
                for key, value in extra.items():
                    self.send_header(key, value)
                length = extra.get("X-Length", str(len(found)))
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(found)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def storage_options(self) -> dict[str, str]:
        """What opens its tables."""
        endpoint = f"http://127.0.0.1:{self._server.server_port}"
        return {"google_base_url": endpoint, "google_storage_token": TOKEN, "allow_http": "true"}

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        parts = urlsplit(target)
        path, query = unquote(parts.path).lstrip("/"), parse_qs(parts.query, keep_blank_values=True)
        with self._lock:
            self.requests.append((method, target, headers))
            if headers.get("authorization") != f"Bearer {TOKEN}":
                return 401, b"<Error><Code>AuthenticationRequired</Code></Error>", {}
            if method == "GET" and "list-type" in query:
                return 200, self._listed(path, query.get("prefix", [""])[0]), {}
            if method == "PUT":
                if headers.get("x-goog-if-generation-match") == "0" and path in self.objects:
                    return 412, b"<Error><Code>PreconditionFailed</Code></Error>", {}
                self._generation += 1
                self.objects[path] = body
                self._generations[path] = self._generation
                return 200, b"", self._described(path)
            if path not in self.objects:
                return 404, b"<Error><Code>NoSuchKey</Code></Error>", {}
            if method == "DELETE":
                del self.objects[path]
                return 204, b"", {}
            data = self.objects[path]
            extra = self._described(path)
            if method == "HEAD":
                return 200, b"", {**extra, "X-Length": str(len(data))}
            if "range" in headers:
                first, _, last = headers["range"].removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, len(data) - int(last))
                stop = min(len(data), int(last) + 1) if first and last else len(data)
                return 206, data[start:stop], {**extra, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
            return 200, data, extra

    def _described(self, path: str) -> dict[str, str]:
        return {
            "ETag": f'"{secrets.token_hex(4)}"',
            "x-goog-generation": str(self._generations[path]),
            "Last-Modified": "Fri, 01 Jan 2027 00:00:00 GMT",
        }

    def _listed(self, bucket: str, prefix: str) -> bytes:
        bucket = bucket.rstrip("/") + "/"
        rows = "".join(
            f"<Contents><Key>{escape(key.removeprefix(bucket))}</Key><Size>{len(data)}</Size>"
            "<LastModified>2027-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for key, data in sorted(self.objects.items())
            if key.startswith(bucket + prefix)
        )
        return f"<ListBucketResult>{rows}</ListBucketResult>".encode()

    def __enter__(self) -> GoogleStub:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
