"""The last entries of all branches in one object, so that listing branches takes few requests.

Readers probe for later entries as always. The object is used while it is young: later on, entries after those that it
holds may have been compacted away.
"""

from __future__ import annotations

import json
import time

from ..._native.store import Store
from ...exceptions import NotFoundError
from .json_record import WRONG, decode_json
from .layout import DIGITS, PACKED_HEADS
from .numbered_log import KEPT_SECONDS, LogEntry

USED_SECONDS = KEPT_SECONDS / 7
"""For how long: a seventh of what entries are kept for, so that clocks may differ by days."""


def read(store: Store, now: float | None = None) -> dict[str, LogEntry]:
    """The entries by branch; none where there is no such object, or an old one, or one that does not read."""
    try:
        said = decode_json(store.get(PACKED_HEADS), PACKED_HEADS, "the last entries of branches")
        age = (time.time() if now is None else now) - float(said["time"])
        if not abs(age) <= USED_SECONDS:
            return {}
        heads = {
            str(name): LogEntry.decode(int(entry["number"]), json.dumps(entry["entry"]).encode(), PACKED_HEADS)
            for name, entry in said["heads"].items()
        }
        return {name: entry for name, entry in heads.items() if 0 < entry.number < 10**DIGITS - 1}
    except (NotFoundError, *WRONG):
        # A copy, and no more.
        return {}


def write(store: Store, heads: dict[str, LogEntry], now: float) -> None:
    """Writes the entries. The time `now` is from before they were read, so that nothing behind them is older."""
    entries = {name: {"number": entry.number, "entry": json.loads(entry.encode())} for name, entry in heads.items()}
    store.put(PACKED_HEADS, json.dumps({"time": now, "heads": entries}, sort_keys=True).encode())
