"""Ctrl-C at a chosen call of the store: before it, or as it returns, which is where Python delivers it."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """Counts the calls of `Store` on this thread, and raises `KeyboardInterrupt` at one of them.

    Args:
        at: The number of the event: even ones are calls, odd ones returns. None only counts.

    Example:
        `with Interrupt(7): dataset.delete("id = 1")`
    """

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.events: list[str] = []

    def __enter__(self) -> Interrupt:
        sys.setprofile(self._event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, what: Any) -> None:
        name = getattr(what, "__qualname__", "")
        if event not in ("c_call", "c_return", "c_exception") or not name.startswith("Store."):
            return
        self.events.append(f"{event} {name}")
        if len(self.events) - 1 == self.at:
            sys.setprofile(None)
            raise KeyboardInterrupt(f"at event {self.at}, {event} {name}")
