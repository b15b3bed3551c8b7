"""The versions of a table: when each was committed, by whom, and which one was the newest at a time.

The time of a version is its in-commit timestamp where the table has these, else the time at which its entry was put.
Clocks differ: no version counts as older than the one before it, as in the reference. An in-commit timestamp is taken
as it is: the versions before it that have none are older, even where their entries were copied later.

Spec: "In-Commit Timestamps", "Commit Provenance Information".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from ..._native.store import Store
from ...exceptions import InvalidArgumentError, NotFoundError
from ..log.entries import LOG, commit_info
from .session_zone import zone_of

_COMMIT = re.compile(r"^_delta_log/(\d{20})\.json$")


def history(store: Store, newest: int, limit: int | None) -> list[dict[str, Any]]:
    """The `commitInfo` of versions, the newest first, as far back as there are entries."""
    found: list[dict[str, Any]] = []
    for version in range(newest, -1, -1):
        if limit is not None and len(found) >= limit:
            break
        try:
            info = commit_info(store, version)
        except NotFoundError:
            break
        found.append({**info, "version": version})
    return found


def as_milliseconds(moment: str | datetime, session_timezone: str | None = None) -> int:
    """A time as milliseconds since the epoch; one without a zone is of the session's, or of UTC.

    Example:
        >>> from esker.delta.read.versions import as_milliseconds
        >>> as_milliseconds("1970-01-01T01:00:01+01:00")
        1000
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.upper())
        except ValueError as error:
            raise InvalidArgumentError(
                f"Failed to parse datetime string: expected ISO 8601, found {moment!r}"
            ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_of(session_timezone))
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000


def commit_times(store: Store, *, in_commit: bool) -> dict[int, int]:
    """When versions were made, in milliseconds since the epoch, ascending, of those whose entries are there."""
    times: dict[int, int] = {}
    last: int | None = None
    # The newest time that an entry says itself.
    sure: int | None = None
    for meta in store.list(LOG):
        match = _COMMIT.match(meta.path)
        if match is None:
            continue
        version = int(match.group(1))
        time, before = (meta.last_modified_us or 0) // 1000, last
        if in_commit:
            try:
                stamp = commit_info(store, version).get("inCommitTimestamp")
            except NotFoundError:
                # It was cleaned up since the listing.
                continue
            if isinstance(stamp, int):
                time, before = stamp, sure
                sure = stamp if sure is None else max(stamp, sure + 1)
        if before is not None and time <= before:
            time = before + 1
        times[version] = last = time
    if sure is not None:
        _put_before_later_ones(times)
    return times


def _put_before_later_ones(times: dict[int, int]) -> None:
    following: int | None = None
    for version in reversed(times):
        if following is not None:
            times[version] = min(times[version], following - 1)
        following = times[version]


def version_at(times: dict[int, int], moment: str | datetime, uri: str, session_timezone: str | None = None) -> int:
    """The version that was the newest at a time.

    Raises:
        NotFoundError: The table is younger, or what was there has been cleaned up.

    Example:
        >>> from esker.delta.read.versions import version_at
        >>> version_at({3: 1_000, 4: 5_000}, "1970-01-01T00:00:02Z", "s3://lake/events")
        3
    """
    wanted = as_milliseconds(moment, session_timezone)
    before = [version for version, time in times.items() if time <= wanted]
    if not before:
        earliest = min(times.values(), default=0)
        raise NotFoundError(f"no version of {uri} is as old as {moment}: the oldest is of {_shown(earliest)}", uri=uri)
    found = max(before)
    if found != max(times) and found + 1 not in times:
        raise NotFoundError(
            f"version {found + 1} of {uri} was cleaned up, which may be of that time, {moment}; open a version by its "
            "number",
            uri=uri,
            version=found + 1,
        )
    return found


def _shown(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
