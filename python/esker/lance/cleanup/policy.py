"""`CleanupPolicy`: which versions a clean-up removes, by pylance's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import SupportsIndex

from ...exceptions import InvalidArgumentError, InvalidTypeError

DEFAULT_OLDER_THAN = timedelta(days=14)
"""The age from which versions are removed if no other condition is given, as in pylance."""
UNVERIFIED_AGE = timedelta(days=7)
"""The age from which a file that no version ever referred to is an orphan, as in pylance: a younger one may be part of
a commit under way."""

UNDER_WAY_AGE = timedelta(hours=1)
"""The age up to which a transaction may be a commit under way, whose writer is about to put a version. Writers stage
their transaction again after a third of that."""


class CleanupOptionError(InvalidArgumentError, OSError):
    """A number that is not positive, or no versions: pylance refuses them by an `OSError`."""


@dataclass(frozen=True)
class CleanupPolicy:
    """Which versions are removed: those that meet all conditions. And how fast.

    Args:
        older_than: Only versions older than this. Zero is no condition, as in pylance.
        retain_versions: How many of the newest versions are kept.
        versions: Only these versions.
        delete_unverified: Whether files that no version ever referred to are removed whatever their age.
        error_if_tagged: Whether it is an error if a tag keeps a version that would be removed otherwise.
        rate_limit: Deletions per second.
        concurrency: Concurrent requests.

    Raises:
        InvalidArgumentError: A number is not positive, or `versions` is empty.
        InvalidTypeError: `older_than` is no `timedelta`, or a number is none.

    Example:
        >>> from esker.lance.cleanup import CleanupPolicy
        >>> CleanupPolicy().older_than.days, CleanupPolicy(retain_versions=3).older_than
        (14, None)
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: Sequence[int] | None = None
    delete_unverified: bool = False
    error_if_tagged: bool = True
    rate_limit: int | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        # It would fail at the first old version only, of which a table may have none.
        age: object = self.older_than
        if age is not None and not isinstance(age, timedelta) and age != 0:
            raise InvalidTypeError(f"expected older_than as a datetime.timedelta, found {age!r}")
        for name, value in (
            ("retain_versions", self.retain_versions),
            ("delete_rate_limit", self.rate_limit),
            ("delete_concurrency", self.concurrency),
        ):
            if value is not None and not isinstance(value, SupportsIndex):
                raise InvalidTypeError(f"expected {name} as a whole number, found {value!r}")
            if value is not None and value <= 0:
                raise CleanupOptionError(f"expected a positive number: {name} must be greater than 0, got {value}")
        if self.versions is not None and not self.versions:
            raise CleanupOptionError("expected at least one version in versions, found none")
        if self.older_than is None and self.retain_versions is None and self.versions is None:
            object.__setattr__(self, "older_than", DEFAULT_OLDER_THAN)

    def selects(self, version: int, timestamp_ns: int, *, now_ns: int, history: Sequence[int]) -> bool:
        """Whether these conditions select a version for removal.

        Args:
            version: Its number.
            timestamp_ns: When it was committed.
            now_ns: The current time.
            history: All versions, in rising order.
        """
        if self.older_than and timestamp_ns >= now_ns - self.older_than // timedelta(microseconds=1) * 1000:
            return False
        if self.retain_versions is not None and version in history[-self.retain_versions :]:
            return False
        return self.versions is None or version in self.versions
