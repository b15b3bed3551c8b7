"""mitmproxy between us and a store: replies that get lost after their effect, delays, a store that says no for a while.

The proxy runs `faulty_addon.py`, which follows a plan that is posted to it: rules that each match some requests and are
used up after so many of them.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import install
from .process import Server

ADDON = Path(__file__).with_name("faulty_addon.py")
PLAN = "/__plan"


@dataclass(frozen=True)
class Rule:
    """What happens to requests of one kind.

    Args:
        action: "drop" hands the request on and closes the connection in place of the reply; "lose" closes it before the
            request reaches the store; "refuse" answers `status` and hands nothing on; "expire" does so with all that
            follow, too; "mask" hands the request on and answers `status` in place of the reply; "delay" waits `seconds`
            before the reply; "cut" closes the connection amid the reply's body; "whole" asks the store for the whole
            object in place of a range.
        method: PUT, GET, HEAD, POST, DELETE; LIST for a GET that lists; empty for all.
        match: Part of the path and query, decoded.
        times: How many requests it applies to.
        skip: How many that match are let through before.
    """

    action: str
    method: str = ""
    match: str = ""
    times: int = 1
    skip: int = 0
    status: int = 503
    seconds: float = 0.0


class FaultyProxy:
    """A running proxy in front of the server at `port`.

    Example:
        with FaultyProxy(s3.server.port) as proxy:
            proxy.plan(Rule("drop", "PUT", "_versions/"))
            esker.write_dataset(more, uri, mode="append", storage_options=proxy.through(s3.storage_options))
            assert proxy.hits() == ["drop PUT"]
    """

    def __init__(self, port: int) -> None:
        command = [
            str(install.mitmdump()),
            *("--mode", f"reverse:http://127.0.0.1:{port}", "--listen-host", "127.0.0.1", "--listen-port", "{port}"),
            *("--set", "keep_host_header=true", "--set", "confdir={folder}", "--set", "stream_large_bodies=64m"),
            *("--set", "termlog_verbosity=error", "--quiet", "--scripts", str(ADDON)),
        ]
        self.server = Server("mitmproxy", command)

    def plan(self, *rules: Rule) -> None:
        """Sets the rules, in place of those before, and forgets what was hit."""
        self._post([asdict(rule) for rule in rules])

    def hits(self) -> list[str]:
        """What was done so far: the action and the request's method, in order."""
        found: list[str] = self._post(None)["hits"]
        return found

    def through(self, options: dict[str, str]) -> dict[str, str]:
        """Storage options that lead to the same store through this proxy."""
        endpoints = ("aws_endpoint", "azure_endpoint", "google_base_url")
        return {key: self._moved(value) if key in endpoints else value for key, value in options.items()}

    def _moved(self, endpoint: str) -> str:
        rest = endpoint.split("://", 1)[1].partition("/")
        return self.server.endpoint + rest[1] + rest[2]

    def _post(self, rules: Iterable[dict[str, Any]] | None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request("POST", PLAN, body=json.dumps(rules))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def __enter__(self) -> FaultyProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
