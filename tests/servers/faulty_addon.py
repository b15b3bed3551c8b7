"""Runs inside mitmproxy: follows the plan of `faulty`. Imports nothing of this project."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote

from mitmproxy import http

PLAN = "/__plan"
CODES = {403: "AccessDenied", 429: "TooManyRequests", 500: "InternalError", 501: "NotImplemented", 503: "SlowDown"}


class Faults:
    """Rules, and what they have done."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.hits: list[str] = []

    def _rule(self, request: http.Request) -> dict[str, Any] | None:
        target = unquote(request.path)
        method = (
            "LIST" if request.method == "GET" and ("list-type=" in target or "comp=list" in target) else request.method
        )
        for rule in self.rules:
            if rule["times"] <= 0 or (rule["method"] and rule["method"] != method) or rule["match"] not in target:
                continue
            if rule["skip"] > 0:
                rule["skip"] -= 1
                continue
            rule["times"] -= 1
            self.hits.append(f"{rule['action']} {method}")
            return rule
        return None

    def request(self, flow: http.HTTPFlow) -> None:
        if flow.request.path == PLAN:
            rules = json.loads(flow.request.content or b"null")
            if rules is not None:
                self.rules, self.hits = rules, []
            flow.response = http.Response.make(200, json.dumps({"hits": self.hits}))
            return
        rule = self._rule(flow.request)
        if rule is None:
            return
        if rule["action"] == "lose":
            flow.kill()
        elif rule["action"] == "expire":
            self.rules.insert(0, {**rule, "action": "refuse", "method": "", "match": "", "times": 1 << 30, "skip": 0})
            flow.response = _no(rule["status"])
        elif rule["action"] == "refuse":
            flow.response = _no(rule["status"])
        elif rule["action"] == "whole":
            flow.request.headers.pop("Range", None)
        else:
            flow.metadata["rule"] = rule

    async def response(self, flow: http.HTTPFlow) -> None:
        rule = flow.metadata.get("rule")
        if rule is None:
            return
        if rule["action"] == "drop":
            flow.kill()
        elif rule["action"] == "mask":
            flow.response = _no(rule["status"])
        elif rule["action"] == "cut" and flow.response is not None:
            whole = flow.response.raw_content or b""
            flow.response.raw_content = whole[: len(whole) // 2]
            flow.response.headers["Content-Length"] = str(len(whole))
            flow.response.headers["Connection"] = "close"
        elif rule["action"] == "delay":
            await asyncio.sleep(rule["seconds"])


def _no(status: int) -> http.Response:
    code = CODES.get(status, "Error")
    body = f"<Error><Code>{code}</Code><Message>not now</Message></Error>"
    return http.Response.make(status, body, {"Content-Type": "application/xml"})


addons = [Faults()]
