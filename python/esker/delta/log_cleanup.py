"""Log files that no reader needs any more: which they are, and their end.

A version can be opened as long as its own entry, or a checkpoint of it, is there with all that lies between. Entries
older than `delta.logRetentionDuration` go, up to the newest checkpoint from which every version
that is kept can be replayed.

Spec: "Metadata Cleanup".
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from .._native.store import Store
from ..exceptions import NotFoundError
from .durations import LOG_FILES, retention
from .history import LOG
from .log_state import SIDECARS, checkpoint_parts

_NAMED = re.compile(r"^_delta_log/(\d{20})\.(json|crc|checkpoint\..*)$")


def expired_log_files(store: Store, configuration: Mapping[str, str], version: int) -> list[str]:
    """The log files that may go, oldest first.

    Args:
        store: The table's.
        configuration: Its properties.
        version: The newest version: it and its like stay.

    Example:
        `expired_log_files(store, {"delta.logRetentionDuration": "interval 1 day"}, 10)`
    """
    cutoff_us = time.time_ns() // 1000 - retention(configuration, LOG_FILES) * 1000
    files: list[tuple[int, str, int]] = []
    for meta in store.list(LOG):
        match = _NAMED.match(meta.path)
        if match is not None:
            files.append((int(match.group(1)), meta.path, meta.last_modified_us or time.time_ns() // 1000))
    kept = [number for number, path, changed in files if path.endswith(".json") and changed >= cutoff_us]
    first_kept = min([version, *kept])
    for number in sorted({number for number, path, _ in files if ".checkpoint." in path}, reverse=True):
        if number > first_kept:
            continue
        try:
            checkpoint_parts(store, number)
        except (NotFoundError, ValueError):
            continue
        # An entry that is younger than one behind it stays, and with it all that come after: no gaps.
        return [path for found, path, changed in sorted(files) if found < number and changed < cutoff_us]
    return []


def clean_log(store: Store, configuration: Mapping[str, str], version: int) -> list[str]:
    """Deletes the log files that may go, and the sidecars that went with them; their paths.

    Example:
        `clean_log(store, {}, 10)`
    """
    expired = expired_log_files(store, configuration, version)
    if not expired:
        return []
    gone = set(expired)
    numbers = {int(match.group(1)) for path in store.list_paths(LOG) if (match := _NAMED.match(path))}
    for path in expired:
        store.delete(path)
    used: set[str] = set()
    for number in numbers:
        try:
            used |= set(checkpoint_parts(store, number))
        except (NotFoundError, ValueError):
            continue
    cutoff_us = time.time_ns() // 1000 - retention(configuration, LOG_FILES) * 1000
    for meta in store.list(SIDECARS):
        # A young one may belong to a checkpoint that is being written.
        if meta.path not in used and (meta.last_modified_us or cutoff_us) < cutoff_us:
            store.delete(meta.path)
            gone.add(meta.path)
    return sorted(gone)
