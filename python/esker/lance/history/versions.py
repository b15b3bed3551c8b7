"""The versions of a table: which exist, when each was committed, and by which transaction."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from ..._native.table import Manifest
from ...exceptions import InvalidArgumentError, NotFoundError
from ..log import NamingScheme
from ..operation import Transaction
from ..refs.places import check_number
from ..version import TableVersion


class Version(TypedDict):
    """One version of a table, as `LanceDataset.versions` lists it."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


def versions(table: TableVersion) -> list[Version]:
    """All versions, oldest first, each with its time (local, naive, as in pylance) and its counts."""
    listing = table.log.listing()
    found = (_manifest(table, number, listing.scheme) for number in listing.versions)
    return [describe(manifest) for manifest in found if manifest is not None]


def _manifest(table: TableVersion, number: int, scheme: NamingScheme) -> Manifest | None:
    """The manifest of a listed version; None if a clean-up has removed it since."""
    with suppress(NotFoundError):
        return table.log.manifest(number, scheme)
    return None


def read_transaction(table: TableVersion, version: int) -> Transaction | None:
    """The transaction that made a version, None if there is none to be found.

    Raises:
        NotFoundError: There is no such version.
        InvalidArgumentError: It is no number of a version.
    """
    found = table.log.transaction(table.log.open(check_number(version))[0])
    return Transaction.from_native(found) if found else None


def find_transaction(table: TableVersion, key: str, value: str, after: int) -> int | None:
    """The newest version above `after` whose transaction has a property; see `LanceDataset.find_transaction`."""
    listing = table.log.listing()
    for number in reversed(listing.versions):
        if number <= after:
            break
        manifest = _manifest(table, number, listing.scheme)
        found = table.log.transaction(manifest) if manifest is not None else None
        if found is not None and value == (found.uuid if key == "uuid" else found.properties.get(key)):
            return number
    return None


def version_asof(table: TableVersion, asof: datetime | str) -> int:
    """The latest version that was committed before a time.

    Args:
        table: The table.
        asof: A time, or its text in ISO 8601; local if it has no time zone.

    Raises:
        TypeError: It is neither a time nor a text.
        InvalidArgumentError: The text is not a time in ISO 8601.
        NotFoundError: All versions were committed later.

    Example:
        `version_asof(table, "2026-01-31 12:00")`
    """
    try:
        moment = datetime.fromisoformat(asof) if isinstance(asof, str) else asof
    except ValueError as error:
        raise InvalidArgumentError(f"expected asof as a time in ISO 8601, found {asof!r}") from error
    if not isinstance(moment, datetime):
        raise TypeError(f"expected asof as a datetime or a text, found {type(asof).__name__}; add the time of the day")
    if moment.tzinfo is not None:
        moment = moment.astimezone().replace(tzinfo=None)
    earlier = [version["version"] for version in versions(table) if version["timestamp"] < moment]
    if not earlier:
        raise NotFoundError(f"{moment} is earlier than the first version of {table.uri}", uri=table.uri)
    return max(earlier)


def describe(manifest: Manifest) -> Version:
    """A version with its time (local, naive, as in pylance) and its counts."""
    seconds, nanos = divmod(manifest.timestamp_ns, 10**9)
    return {
        "version": manifest.version,
        "timestamp": datetime.fromtimestamp(seconds) + timedelta(microseconds=nanos // 1000),
        "metadata": {name: str(count) for name, count in manifest.summary().items()},
    }
