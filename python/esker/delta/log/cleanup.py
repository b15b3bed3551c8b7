"""Log clean-up: finds the expired log files that no retained version needs, and deletes them.

A version can be opened as long as a checkpoint at or before it and all entries after that checkpoint exist. Entries
older than `delta.logRetentionDuration` are deleted, up to the newest checkpoint from which every retained version can
be replayed. After a commit, which has put files just now, the newest of them says how late it is, if this machine's
clock is ahead of it.

Spec: "Metadata Cleanup".
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping

from ..._native.delta import Snapshot
from ..._native.store import ObjectMeta, Store
from ...exceptions import CorruptFileError, NotFoundError
from ..definition.durations import LOG_FILES, retention
from ..definition.protocol import check_writable
from ..definition.table_state import TableState
from .checkpoint_files import SIDECARS, check_checkpoint, sidecars_of
from .entries import LOG
from .snapshots import refresh_snapshot

_NAMED = re.compile(r"^_delta_log/(\d{20})\.(json|crc|checkpoint\..*|\d{20}\.compacted\.json)$")
_WITH_SIDECARS = re.compile(r"^_delta_log/\d{20}\.checkpoint\.([0-9a-fA-F-]{36}\.(json|parquet)|parquet)$")
_COMPACTED = ".compacted.json"
"""Of a file that has the entries of several versions, from the one that its name begins with: who reads from the
checkpoint on has no use for it if that is one of those before, or the checkpoint's own."""
_IN_THE_MAKING_US = 24 * 3600 * 1_000_000
"""A sidecar is put before the checkpoint that names it."""


def expired_log_files(
    store: Store, listed: Iterable[ObjectMeta], configuration: Mapping[str, str], version: int, now_us: int
) -> list[str]:
    """The log files that may go, oldest first.

    Args:
        store: The table's.
        listed: The files of its log.
        configuration: Its properties.
        version: The newest version, whose files stay.
        now_us: The time, in microseconds since the Unix epoch.

    Example:
        `expired_log_files(store, store.list("_delta_log/"), {"delta.logRetentionDuration": "interval 1 day"}, 10, now)`
    """
    cutoff_us = now_us - retention(configuration, LOG_FILES) * 1000
    files: list[tuple[int, str, int]] = []
    for meta in listed:
        match = _NAMED.match(meta.path)
        if match is not None:
            files.append((int(match.group(1)), meta.path, meta.last_modified_us or now_us))
    entries = [file for file in files if file[1].endswith(".json") and not file[1].endswith(_COMPACTED)]
    kept = [number for number, _, changed in entries if changed >= cutoff_us]
    first_kept = min([version, *kept])
    for number in sorted({number for number, path, _ in files if ".checkpoint." in path}, reverse=True):
        if number > first_kept:
            continue
        try:
            check_checkpoint(store, number)
        except (NotFoundError, CorruptFileError):
            continue
        # An entry that is younger than a later one stays, and so do all entries after it: the log has no gaps.
        return [
            path
            for found, path, changed in sorted(files)
            if (found < number or (found == number and path.endswith(_COMPACTED))) and changed < cutoff_us
        ]
    return []


def clean_up(store: Store, snapshot: Snapshot) -> list[str]:
    """Deletes the log files that may go by what the table is now: the version that is open may have other properties.

    Args:
        store: The table's.
        snapshot: The version that is open, which stays if it is there.

    Raises:
        UnsupportedError: The table has features that this release does not write: they may ask for entries to stay.

    Example:
        `clean_up(store, load_snapshot(store))`
    """
    newest = refresh_snapshot(snapshot, store)
    state = TableState.of(newest)
    check_writable(state.protocol, None, state.configuration, state.partition_by)
    return clean_log(store, state.configuration, min(snapshot.version, newest.version))


def clean_log(store: Store, configuration: Mapping[str, str], version: int, *, after_commit: bool = False) -> list[str]:
    """Deletes the log files that may go, and the sidecars that went with them; their paths.

    Args:
        store: The table's.
        configuration: Its properties.
        version: The newest version, whose files stay.
        after_commit: Whether files of the log were put just now.

    Example:
        `clean_log(store, {}, 10)`
    """
    listed, now_us = store.list(LOG), time.time_ns() // 1000
    if after_commit:
        now_us = min(now_us, max((meta.last_modified_us or now_us for meta in listed), default=now_us))
    expired = expired_log_files(store, listed, configuration, version, now_us)
    if not expired:
        return []
    gone = set(expired)
    went_with = _sidecars(store, expired)
    for path in expired:
        store.delete(path)
    cutoff_us = now_us - retention(configuration, LOG_FILES) * 1000
    sidecars = store.list(SIDECARS)
    used = _sidecars(store, store.list_paths(LOG)) if sidecars else set()
    if used is None:
        # A checkpoint that cannot be read may be the last one of the table, and name any sidecar.
        return sorted(gone)
    for meta in sidecars:
        # A young sidecar that no checkpoint names may belong to a checkpoint that is being written.
        before_us = cutoff_us if meta.path in (went_with or ()) else min(cutoff_us, now_us - _IN_THE_MAKING_US)
        if meta.path not in used and (meta.last_modified_us or now_us) < before_us:
            store.delete(meta.path)
            gone.add(meta.path)
    return sorted(gone)


def _sidecars(store: Store, paths: Iterable[str]) -> set[str] | None:
    """The sidecars of all checkpoints among some files, None if one of them cannot be read."""
    found: set[str] = set()
    for path in paths:
        if not _WITH_SIDECARS.match(path):
            continue
        try:
            found.update(sidecars_of(store, path))
        except NotFoundError:
            # A concurrent clean-up has deleted it.
            continue
        except (CorruptFileError, OSError):
            return None
    return found
