"""Time travel of Delta tables by timestamp. If the zone of the session is not known, ambiguous times are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from esker.delta.read.feed_range import check_all_there, check_none_before
from esker.delta.read.versions import as_milliseconds, version_at
from esker.exceptions import InvalidArgumentError, NotFoundError
from esker.spark.options import ChangeRange

if TYPE_CHECKING:
    from esker.delta.table import DeltaTable

__all__ = ["first_version_since", "version_of_time", "version_range_of"]

_FARTHEST = ("+18:00", "-18:00")
"""Java has no zone further from UTC."""


def version_of_time(table: DeltaTable, moment: str, zone: str | None, option: str) -> int:
    """The version that was the newest at a time.

    Args:
        table: The table.
        moment: The time, with a zone or without one.
        zone: The zone of times without one, None if it is not known.
        option: The option with the time, for error messages.

    Raises:
        InvalidArgumentError: It is not a time, or it means different versions in different zones.
        NotFoundError: All versions are later.

    Example:
        `version_of_time(table, "2024-07-01 12:00:00", "Europe/Berlin", "timestampAsOf")`
    """
    times = table._commit_times()
    return _certain(lambda name: version_at(times, moment, table.table_uri, name), moment, zone, option)


def version_range_of(table: DeltaTable, changes: ChangeRange, zone: str | None) -> tuple[int, int]:
    """The first and the last version of a change data feed.

    Args:
        table: The table, in its newest version.
        changes: The range in the options.
        zone: The zone of times without one, None if it is not known.

    Raises:
        InvalidArgumentError: It starts after the newest version or after its end, or a time means different versions
            in different zones.
        NotFoundError: Versions were cleaned up that may be since the time with which it starts, or up to that with
            which it ends.
    """
    newest, times = table.version(), {} if changes.is_numbered else table._commit_times()
    start, end = changes.starting_version, changes.ending_version
    if start is None and changes.starting_timestamp is not None:
        start = first_version_since(times, newest, changes.starting_timestamp, zone)
        check_none_before(start, times, f"startingVersion={start}")
    if end is None and changes.ending_timestamp is not None:
        until = changes.ending_timestamp

        def last(name: str | None) -> int:
            return max((v for v, time in times.items() if time <= as_milliseconds(until, name)), default=-1)

        end = _certain(last, until, zone, "endingTimestamp")
        check_all_there(start or 0, end, times, "startingVersion")
    start, end = start or 0, newest if end is None else min(end, newest)
    if start > newest:
        raise InvalidArgumentError(
            f"option startingVersion: expected a version up to the newest, {newest}, found {start}", version=newest
        )
    if start > end:
        raise InvalidArgumentError(
            f"expected a change data feed that starts before it ends, found versions {start} to {end}"
        )
    return start, end


def first_version_since(times: Mapping[int, int], newest: int, moment: str, zone: str | None) -> int:
    """The first version that was committed at a time or later.

    Args:
        times: When the versions were committed, in milliseconds since the epoch.
        newest: The newest version.
        moment: The time, with a zone or without one.
        zone: The zone of times without one, None if it is not known.

    Raises:
        InvalidArgumentError: It is not a time, means different versions in different zones, or all versions are older.

    Example:
        >>> from esker.spark.time_travel import first_version_since
        >>> first_version_since({3: 1_000, 4: 5_000}, 4, "1970-01-01T00:00:02Z", "UTC")
        4
    """

    def first(name: str | None) -> int:
        return min((v for v, time in times.items() if time >= as_milliseconds(moment, name)), default=newest + 1)

    start = _certain(first, moment, zone, "startingTimestamp")
    if start > newest:
        raise InvalidArgumentError(
            f"option startingTimestamp: expected a time up to that of the newest version, {newest}, found {moment!r}",
            version=newest,
        )
    return start


def _certain(find: Callable[[str | None], int], moment: str, zone: str | None, option: str) -> int:
    if zone is not None:
        return find(zone)
    earliest, latest = (_found(find, name, option) for name in _FARTHEST)
    if isinstance(earliest, NotFoundError) and isinstance(latest, NotFoundError):
        return find(None)
    if isinstance(earliest, int) and earliest == latest:
        return earliest
    raise InvalidArgumentError(
        f"option {option}: expected a time with its zone, such as '{moment}Z', or the option timezone beside it, found "
        f"{moment!r}, which is not the same version in all zones: spark.sql.session.timeZone is not known here"
    )


def _found(find: Callable[[str | None], int], zone: str, option: str) -> int | NotFoundError:
    try:
        return find(zone)
    except NotFoundError as error:
        return error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"option {option}: {error}") from error
