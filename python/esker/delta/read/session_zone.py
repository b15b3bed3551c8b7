"""The session time zone: what times without a zone mean in filters, predicates and time travel. UTC if not given.

Spark's users write `ts >= '2024-07-02'` and mean midnight of the session's zone. A filter is bound to columns whose
times are in that zone: then a text without a zone is one of it, and so are what `hour(ts)` and `cast(ts as date)` give.
The values are the same: a zone only says how a time is shown.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError

_OFFSET = re.compile(r"^(?:UTC|GMT|UT)?(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?)?$", re.IGNORECASE)
_WITH_ZONE = re.compile(r"\d\s*(?:Z|[+-]\d{2}(?::?\d{2})?)$", re.IGNORECASE)


def zone_name(session_timezone: str | None) -> str:
    """The zone that a name means, as Arrow spells it: `UTC`, `Europe/Berlin`, `+02:00`.

    Args:
        session_timezone: As in Spark's `spark.sql.session.timeZone`; UTC if not given.

    Raises:
        InvalidArgumentError: There is no such zone.

    Example:
        >>> from esker.delta.read.session_zone import zone_name
        >>> zone_name("GMT+2"), zone_name(None)
        ('+02:00', 'UTC')
    """
    if session_timezone is None or session_timezone in ("Z", "Etc/UTC"):
        return "UTC"
    found = _OFFSET.match(session_timezone)
    if found is not None and session_timezone:
        hours, minutes = int(found["hours"] or 0), int(found["minutes"] or 0)
        if hours <= 18 and minutes < 60:
            return f"{found['sign']}{hours:02}:{minutes:02}" if hours or minutes else "UTC"
    try:
        return ZoneInfo(session_timezone).key
    except (ValueError, LookupError, OSError):
        raise InvalidArgumentError(
            f"expected a time zone such as Europe/Berlin or +02:00, found {session_timezone!r}"
        ) from None


def zone_of(session_timezone: str | None) -> tzinfo:
    """The same as `zone_name`, for Python's datetimes.

    Example:
        >>> from esker.delta.read.session_zone import zone_of
        >>> print(zone_of("-3"))
        UTC-03:00
    """
    name = zone_name(session_timezone)
    if name == "UTC":
        return UTC
    if name[0] in "+-":
        offset = timedelta(hours=int(name[1:3]), minutes=int(name[4:6]))
        return timezone(-offset if name[0] == "-" else offset)
    return ZoneInfo(name)


def in_zone(schema: pa.Schema, session_timezone: str | None) -> pa.Schema:
    """The columns with their times in the session's zone, for filters to be bound to.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import in_zone
        >>> in_zone(pa.schema([("t", pa.timestamp("us", "UTC"))]), "Europe/Berlin").field("t").type
        TimestampType(timestamp[us, tz=Europe/Berlin])
    """
    name = zone_name(session_timezone)
    return schema if name == "UTC" else pa.schema([field.with_type(_shown(field.type, name)) for field in schema])


def _shown(kind: pa.DataType, zone: str) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, zone)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(_shown(field.type, zone)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_shown(kind.value_type, zone)))
    if pa.types.is_map(kind):
        key, value = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_shown(key.type, zone)), value.with_type(_shown(value.type, zone)))
    return kind


def instant(value: pa.Scalar, kind: pa.DataType, session_timezone: str | None) -> pa.Scalar:
    """A text, a date or a time as a time with a zone; one that names none is of the session's.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import instant
        >>> print(instant(pa.scalar("2024-07-01 02:00:00"), pa.timestamp("us", "UTC"), "Europe/Berlin").cast("int64"))
        1719792000000000
    """
    if pa.types.is_string(value.type):
        if _WITH_ZONE.search(value.as_py()) and ":" in value.as_py():
            return value.cast(kind)
        value = value.cast(pa.timestamp("us"))
    if pa.types.is_date(value.type):
        value = value.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(value.type) and value.type.tz is None and value.is_valid:
        moment: datetime = value.cast(pa.timestamp("us")).as_py()
        zone = zone_of(session_timezone)
        # Where clocks go back, the first of the two moments, as in Spark.
        return pa.scalar(moment.replace(tzinfo=zone, fold=0).astimezone(UTC), pa.timestamp("us", "UTC")).cast(kind)
    return pc.cast(value, kind)
