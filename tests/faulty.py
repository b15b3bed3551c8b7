"""A store that fails on purpose, behind `fault://` URIs: what crash tests write to."""

from __future__ import annotations

from collections.abc import Mapping

from esker._native.fault import FaultStore
from esker._native.store import Store

FAULTS = ["crash_before", "crash_after", "lose_reply", "fail", "disk_full", "tear:40"]


class Faulty:
    """Answers to `fault://` URIs: the store at the rest of the URI, failing by the plan in its storage options."""

    def __init__(self) -> None:
        self.made: list[FaultStore] = []

    def __call__(self, uri: str, options: Mapping[str, str], durable: bool) -> Store:
        """The store, and a note of it in `made`."""
        inner = Store(uri.removeprefix("fault://"), durable=False)
        self.made.append(FaultStore(inner, options.get("plan", "")))
        return self.made[-1].store
