"""The session time zone: what times without a zone mean in filters, predicates and time travel. UTC if not given.

Spark's users write `ts >= '2024-07-02'` and mean midnight of the session's zone. A filter is bound to columns whose
times are in that zone: then a text without a zone is one of it, and so are what `hour(ts)` and `cast(ts as date)` give.
The values are the same: a zone only says how a time is shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError

_OFFSET = re.compile(r"^(?:UTC|GMT|UT)?(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?)?$", re.IGNORECASE)
_NOW = "now()"
_MOMENTS = {"now", "getdate", "current_timestamp"}
_CALLED = {"now", "getdate", "today", "curdate"}
"""Those that are functions with parentheses only."""
_TEXT = r"'(?P<{}>(?:[^']|'')*)'"
_CLOCK = re.compile(
    # An apostrophe in a comment begins no text.
    r"--[^\n]*|/\*[\s\S]*?\*/"
    rf"|(?<![\w.])timestamp\s*{_TEXT.format('moment')}"
    rf"|(?<![\w.])(?:try_)?cast\s*\(\s*{_TEXT.format('cast')}\s+as\s+timestamp\s*\)"
    rf"|(?<![\w.])to_timestamp\s*\(\s*{_TEXT.format('called')}\s*\)"
    rf"|{_TEXT.format('typed')}\s*::\s*timestamp\b"
    r"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\""
    r"|(?<![\w.])(?P<word>now|getdate|current_timestamp|today|curdate|current_date)\b(?!\s*\.)(?P<call>\s*\(\s*\))?(?!\s*\()",
    re.IGNORECASE,
)
_COMPARED = r"(?:<=|>=|<>|!=|==|=|<|>)"
_COLUMN_BEFORE = re.compile(rf"(?<![\w.`])(?P<name>`[^`]+`|\w+)\s*{_COMPARED}\s*$")
_COLUMN_AFTER = re.compile(rf"\s*{_COMPARED}\s*(?P<name>`[^`]+`|\w+)(?![\w.`(])")
_TYPED = re.compile(r"\b(?:date|time|interval)\s*$", re.IGNORECASE)
_NEAR = 256
"""How many characters from a literal the column is looked for."""
_NAMED_ZONE = re.compile(r":\d{2}(?:\.\d+)?\s+[A-Za-z][\w/+-]*$")
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
    return schema if name == "UTC" else pa.schema([field.with_type(shown(field.type, name)) for field in schema])


def shown(kind: pa.DataType, zone: str) -> pa.DataType:
    """A type with its times in a zone, at any depth.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import shown
        >>> shown(pa.list_(pa.timestamp("us", "UTC")), "Asia/Tokyo")
        ListType(list<item: timestamp[us, tz=Asia/Tokyo]>)
    """
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, zone)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(shown(field.type, zone)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(shown(kind.value_type, zone)))
    if pa.types.is_map(kind):
        key, value = kind.key_field, kind.item_field
        return pa.map_(key.with_type(shown(key.type, zone)), value.with_type(shown(value.type, zone)))
    return kind


def clock_in_zone(
    sql: str, columns: Collection[str], session_timezone: str | None, clock: datetime | None = None
) -> str:
    """The same SQL with `now()` and today's day by the session's clock, and `timestamp '...Z'`, or casts, as they are.

    By themselves the former are of UTC, and the latter loses its zone.

    Args:
        sql: Names are in backticks, texts in single quotes.
        columns: The names of columns, which may be called `current_date`.
        session_timezone: The zone; UTC if not given.
        clock: What the clock shows, where it is to show the same each time; None for whenever the SQL is evaluated.

    Example:
        >>> from esker.delta.read.session_zone import clock_in_zone
        >>> clock_in_zone("t > now()", ["t"], None)
        't > now()'
    """
    name = zone_name(session_timezone)
    if name == "UTC" and clock is None:
        return sql
    now = _NOW if clock is None else f"CAST('{clock.isoformat()}' AS TIMESTAMP WITH TIME ZONE)"
    for zone in ("UTC", name):
        now = f"arrow_cast({now}, 'Timestamp(Nanosecond, Some(\"{zone}\"))')"

    def replaced(found: re.Match[str]) -> str:
        word, moment = found["word"], _moment(found)
        if moment is not None and _has_zone(moment):
            return found.group() if name == "UTC" else _as_instant(moment, name)
        if not _is_clock(found, columns):
            return found.group()
        return now if word.lower() in _MOMENTS else f"cast({now} as date)"

    return _CLOCK.sub(replaced, sql)


def reads_clock(sql: str, columns: Collection[str]) -> bool:
    """Whether SQL has `now()` or today's day in it, which depend on the zone of the session.

    Args:
        sql: Names are in backticks, texts in single quotes.
        columns: The names of columns, which may be called `current_date`.

    Example:
        >>> from esker.delta.read.session_zone import reads_clock
        >>> reads_clock("day = current_date", ["day"]), reads_clock("day = 'current_date'", ["day"])
        (True, False)
    """
    return clock_as_columns(sql, columns, "", "") != sql


def clock_as_columns(sql: str, columns: Collection[str], moment: str, day: str) -> str:
    """The same SQL with columns in place of `now()` and of today's day, whose values are not known yet.

    Args:
        sql: Names are in backticks, texts in single quotes.
        columns: The names of columns, which may be called `current_date`.
        moment: The column in place of `now()`.
        day: The column in place of today's day.

    Example:
        >>> from esker.delta.read.session_zone import clock_as_columns
        >>> clock_as_columns("day = current_date() AND t < now()", ["day", "t"], "moment", "today")
        'day = `today` AND t < `moment`'
    """

    def replaced(found: re.Match[str]) -> str:
        if not _is_clock(found, columns):
            return found.group()
        return f"`{moment if found['word'].lower() in _MOMENTS else day}`"

    return _CLOCK.sub(replaced, sql)


def _is_clock(found: re.Match[str], columns: Collection[str]) -> bool:
    word = found["word"]
    return word is not None and (found["call"] is not None or not (word.lower() in _CALLED or word in columns))


def leaps_in_zone(sql: str, schema: pa.Schema, session_timezone: str | None) -> str:
    """The same filter with `timestamp '...'`, or casts, as moments where the session's clocks leap, or show them twice.

    It is the moment that `instant` gives. A text that is compared with a column of times with a zone is such a moment,
    too. Where a filter reads columns of times without a zone, what is not compared with another one may be such a time.

    Args:
        sql: Names are in backticks, texts in single quotes.
        schema: The columns.
        session_timezone: The zone; UTC if not given.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import leaps_in_zone
        >>> columns = pa.schema([("t", pa.timestamp("us", "UTC"))])
        >>> leaps_in_zone("t > timestamp '2024-07-01 12:00:00'", columns, "Europe/Berlin")
        "t > timestamp '2024-07-01 12:00:00'"
    """
    zone, name = zone_of(session_timezone), zone_name(session_timezone)
    if not isinstance(zone, ZoneInfo):
        return sql
    zoneless = [field.name for field in schema if re.search(r"timestamp\[\w+\]", str(field.type))]
    may_be_zoneless = any(re.search(rf"\b{re.escape(column)}\b", sql, re.I) for column in zoneless)
    zoned = {field.name.lower() for field in schema if pa.types.is_timestamp(field.type) and field.type.tz is not None}

    def is_compared_with_zoned(found: re.Match[str]) -> bool:
        before, after = sql[max(found.start() - _NEAR, 0) : found.start()], sql[found.end() : found.end() + _NEAR]
        if found.group().startswith("'") and _TYPED.search(before):
            return False
        sides = (_COLUMN_BEFORE.search(before), _COLUMN_AFTER.match(after))
        return any(side is not None and side["name"].strip("`").lower() in zoned for side in sides)

    def replaced(found: re.Match[str]) -> str:
        text, whole = _moment(found), found.group()
        is_plain = text is None and whole.startswith("'")
        try:
            moment = datetime.fromisoformat(whole[1:-1] if is_plain else text or "")
        except ValueError:
            return whole
        offsets = {moment.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}
        if moment.tzinfo is not None or len(offsets) == 1:
            return whole
        if (is_plain or may_be_zoneless) and not is_compared_with_zoned(found):
            return whole
        return _as_instant(moment.replace(tzinfo=zone).astimezone(UTC).isoformat(), name)

    return _CLOCK.sub(replaced, sql)


def _moment(found: re.Match[str]) -> str | None:
    """The text that becomes a time: a literal of a time, or a text that is cast to one."""
    texts = (found[name] for name in ("moment", "cast", "called", "typed"))
    return next((text for text in texts if text is not None), None)


def _has_zone(text: str) -> bool:
    return ":" in text and bool(_WITH_ZONE.search(text) or _NAMED_ZONE.search(text))


def _as_instant(text: str, zone: str) -> str:
    """SQL for a text that has a zone as a time that is shown in another one."""
    unit = "Nanosecond" if re.search(r"\.\d{7}", text) else "Microsecond"
    return f"arrow_cast('{text}', 'Timestamp({unit}, Some(\"{zone}\"))')"


def instants(values: pa.Array, session_timezone: str | None) -> pa.Array:
    """Times without a zone as those of the session's; where clocks leap, as in `instant`.

    Raises:
        pyarrow.ArrowInvalid: A time beyond what a zone can be told of.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import instants
        >>> instants(pa.array([0], pa.timestamp("us")), "+02:00").cast("int64").to_pylist()
        [-7200000000]
    """
    unit, name = values.type.unit, zone_name(session_timezone)
    first = pc.assume_timezone(values, name, ambiguous="earliest", nonexistent="earliest")
    offset = pc.subtract_checked(pc.local_timestamp(first).cast(pa.int64()), first.cast(pa.int64()))
    # A time that clocks leap over is counted from before the leap.
    return pc.subtract_checked(values.cast(pa.int64()), offset).cast(pa.timestamp(unit, "UTC"))


def instant(value: pa.Scalar, kind: pa.DataType, session_timezone: str | None) -> pa.Scalar:
    """A text, a date or a time as a time with a zone; one that names none is of the session's.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.session_zone import instant
        >>> print(instant(pa.scalar("2024-07-01 02:00:00"), pa.timestamp("us", "UTC"), "Europe/Berlin").cast("int64"))
        1719792000000000
    """
    if pa.types.is_string(value.type):
        if ":" in value.as_py() and _WITH_ZONE.search(value.as_py()):
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
