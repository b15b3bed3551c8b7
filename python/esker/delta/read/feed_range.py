"""`FeedRange`: the versions whose changes a reader of a feed asks for, by their numbers and by times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ...exceptions import InvalidArgumentError, InvalidTypeError, NotFoundError
from ..log.entries import commit_path
from .versions import as_milliseconds


@dataclass(frozen=True)
class FeedRange:
    """A range of versions; where a number and a time are given, both hold.

    Args:
        starting_version: The first one; 0 if not given.
        ending_version: The last one; the newest if not given.
        starting_timestamp: None before the first that was made at that time or later.
        ending_timestamp: None behind the last that was made at that time or before.
        allow_out_of_range: Whether versions that are no range are an empty one.

    Raises:
        InvalidTypeError: A version is no integer, or a time none.

    Example:
        >>> from esker.delta.read.feed_range import FeedRange
        >>> FeedRange(1, None).versions({}, 4)
        (1, 4)
        >>> FeedRange(0, ending_timestamp="2001-01-01T00:00:00Z").versions({0: 10**12, 1: 2 * 10**12}, 1) is None
        True
    """

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: str | datetime | None = None
    ending_timestamp: str | datetime | None = None
    allow_out_of_range: bool = False

    def __post_init__(self) -> None:
        for version in (self.starting_version, self.ending_version):
            if version is not None and not hasattr(version, "__index__"):
                raise InvalidTypeError(f"expected a version as an integer, found {version!r}")
        for moment in (self.starting_timestamp, self.ending_timestamp):
            if moment is not None and not isinstance(moment, str | datetime):
                raise InvalidTypeError(f"expected a time as a text or a datetime, found {moment!r}")

    def versions(
        self, times: dict[int, int], newest: int, session_timezone: str | None = None
    ) -> tuple[int, int] | None:
        """The first and the last version to read, None if there are none: times may leave nothing between versions.

        Args:
            times: When versions were made.
            newest: The newest one.
            session_timezone: What times without a zone mean.

        Raises:
            InvalidArgumentError: The versions end before they start, or start behind the newest.
            NotFoundError: Versions were cleaned up that may be since the time with which it starts, or up to that
                with which it ends.
        """
        if self.ending_version is not None:
            self._checked(self.starting_version, self.ending_version, newest)
        since = _first_since(self.starting_version, self.starting_timestamp, times, newest, session_timezone)
        until = _last_until(self.ending_version, self.ending_timestamp, times, session_timezone)
        if self.ending_timestamp is not None and until is not None and until != self.ending_version:
            check_all_there(since or 0, until, times, "starting_version")
        is_timed = self.starting_timestamp is not None or self.ending_timestamp is not None
        if is_timed and until is not None and until < (since or 0) <= newest:
            return None
        return self._checked(since, until, newest)

    def _checked(self, start: int | None, end: int | None, newest: int) -> tuple[int, int] | None:
        first = 0 if start is None else start
        if first < 0:
            raise InvalidArgumentError(f"expected a version of 0 or more, found {first}", version=first)
        last = newest if end is None else min(end, newest)
        if end is not None and first > end:
            if self.allow_out_of_range:
                return None
            raise InvalidArgumentError(f"expected a range that starts before it ends, found versions {first} to {end}")
        if first > newest:
            if self.allow_out_of_range:
                return None
            raise InvalidArgumentError(
                f"expected a version up to the newest, {newest}, found {first} ({commit_path(first)}); "
                f"use allow_out_of_range=True to get no rows instead (Invalid table version: {first}; the start "
                "is greater than latest commit timestamp, where it is a time)",
                version=first,
            )
        return first, last


def _first_since(
    version: int | None,
    moment: str | datetime | None,
    times: dict[int, int],
    newest: int,
    session_timezone: str | None = None,
) -> int | None:
    """The version that a feed starts with: the one given, and the first made at a time or later, if that is later.

    Args:
        version: The one given.
        moment: The time.
        times: When versions were made.
        newest: The newest one; the one behind it if all are older.
        session_timezone: What times without a zone mean.
    """
    if moment is None:
        return version
    first = as_milliseconds(moment, session_timezone)
    since = min((found for found, time in times.items() if time >= first), default=newest + 1)
    if since > (version or 0):
        check_none_before(since, times, f"starting_version={since}")
    return max(since, version or 0)


def check_none_before(since: int, times: Mapping[int, int], advice: str) -> None:
    """Checks that the first version since a time is not only the first of those that were not cleaned up.

    Args:
        since: The first version that was made at a time or later.
        times: When versions were made, of those whose entries are there.
        advice: What reads from this version on.

    Raises:
        NotFoundError: The version before it was cleaned up, and may have been made at that time or later, too.

    Example:
        >>> from esker.delta.read.feed_range import check_none_before
        >>> check_none_before(2, {1: 10**12, 2: 2 * 10**12}, "starting_version=2")
    """
    if since in times and since > 0 and since - 1 not in times:
        raise NotFoundError(
            f"version {since} is the first one since that time that is there, and nobody can tell whether those that "
            f"were cleaned up before it are since then, too; {advice} reads what is there",
            version=since,
        )


def check_all_there(start: int, until: int, times: Mapping[int, int], option: str) -> None:
    """Checks that the last version up to a time is not only the last of those that were not cleaned up.

    Args:
        start: The version that a feed starts with.
        until: The last version that was made at that time or before, -1 if there is none.
        times: When versions were made, of those whose entries are there.
        option: What says where a feed starts.

    Raises:
        NotFoundError: Versions after it were cleaned up that the feed has if they were made by that time.

    Example:
        >>> from esker.delta.read.feed_range import check_all_there
        >>> check_all_there(0, 1, {0: 10**12, 1: 2 * 10**12, 2: 3 * 10**12}, "starting_version")
    """
    following = min((version for version in times if version > until), default=until + 1)
    if max(start, until + 1) < following:
        raise NotFoundError(
            f"version {following - 1} was cleaned up, and nobody can tell whether it was made by the time with which "
            f"the feed ends; {option}={following} reads what is there",
            version=following - 1,
        )


def _last_until(
    version: int | None, moment: str | datetime | None, times: dict[int, int], session_timezone: str | None = None
) -> int | None:
    """The version that a feed ends with: the one given, and the last made at a time or before; -1 if there is none."""
    if moment is None:
        return version
    last = as_milliseconds(moment, session_timezone)
    until = max((found for found, time in times.items() if time <= last), default=-1)
    return until if version is None else min(until, version)
