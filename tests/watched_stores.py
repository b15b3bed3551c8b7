"""A store that tells of each request before it is made."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from esker._native.fault import FaultStore
from esker._native.store import Store


class Watched:
    """Stores behind `watched://` that tell of each request before it is made."""

    def __init__(self) -> None:
        self.watch: Callable[[str, str], None] = lambda verb, path: None

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        inner = Store(uri.removeprefix("watched://"), durable=False)

        def tell(verb: str, path: str) -> None:
            self.watch(verb, path)

        return FaultStore(inner, watch=tell).store


def in_another_thread(work: Callable[[], object]) -> None:
    """What a watch may do: its own thread is at work on a request."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()
