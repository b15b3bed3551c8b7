"""Filters whose times without a zone are in the zone of the session, which is not known when the driver plans.

A task binds the whole filter in the zone of its session. Before that the driver prunes files by a predicate that is
implied in any zone: times get a margin of a day on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from esker._native.expr import Expression, Predicate
from esker.arrow.predicate import portable_predicate
from esker.delta.read.implied_terms import Term, all_of, implied_terms
from esker.delta.read.session_zone import clock_as_columns, clock_in_zone, in_zone, leaps_in_zone, reads_clock
from esker.delta.read.sql_names import columns_in_backticks
from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.lance.system_columns import with_system_columns

__all__ = [
    "RowFilter",
    "instants_apart",
    "reads_times",
    "row_filter",
    "told_zone",
    "whatever_the_zone",
    "zoned_predicate",
]

_ROOM = timedelta(days=1)
_CLOCK = pa.schema({"_esker_now": pa.timestamp("us", "UTC"), "_esker_today": pa.date32()})
"""Columns in place of the clock, which no table has."""
_LENGTH = len("2024-07-01 12:00:00.000000")
_TIME = re.compile(
    # An apostrophe in a comment begins no text.
    r"(?P<skipped>--[^\n]*|/\*[\s\S]*?\*/|'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")"
    r"|\btimestamp\s*(?P<text>'(?:[^']|'')*')",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"(?:\b(?:timestamp|date)\s*)?(?P<text>'(?:[^']|'')*')|(?P<skipped>`(?:[^`]|``)*`)",
    re.IGNORECASE,
)
_ZONED = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*[^\s\d.:]")


def instants_apart(sql: str) -> str:
    """The same filter, in which time literals with a zone are cast to a type with a zone.

    Otherwise `TIMESTAMP '2024-07-01 00:00:00Z'` would be read as a time without a zone, in the zone of the session.

    Example:
        >>> from esker.spark.zoned_filter import instants_apart
        >>> instants_apart("t > timestamp '2024-07-01 00:00:00Z'")
        "t > CAST('2024-07-01 00:00:00Z' AS TIMESTAMP WITH TIME ZONE)"
    """

    def written(match: re.Match[str]) -> str:
        text = match["text"]
        if text is None or not _ZONED.search(text[:-1]):
            return match[0]
        return f"CAST({text} AS TIMESTAMP WITH TIME ZONE)"

    return _TIME.sub(written, sql)


def reads_times(sql: str, schema: pa.Schema) -> bool:
    """Whether a filter may depend on the zone of the session: it reads a column of times with a zone, or the clock.

    Raises:
        InvalidArgumentError: It does not parse, or has a column that does not exist.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.zoned_filter import reads_times
        >>> reads_times("t > '2024-07-01'", pa.schema({"t": pa.timestamp("us", "UTC")}))
        True
    """
    there = with_system_columns(schema)
    plain = instants_apart(sql)
    found = Predicate.parse_sql(plain, there).columns
    return reads_clock(plain, there.names) or any(_has_times(there.field(name).type) for name in found)


def told_zone(sql: str | None, schema: pa.Schema, zone: str | None) -> str | None:
    """The zone to bind a filter in.

    Raises:
        InvalidArgumentError: The filter reads times, and the zone is not known.
    """
    if zone is None and sql is not None and reads_times(sql, schema):
        raise InvalidArgumentError(
            f"expected the time zone of the session for {sql!r}, found none here; set the option timezone, or "
            "spark.sql.session.timeZone"
        )
    return zone


def zoned_predicate(sql: str, schema: pa.Schema, zone: str | None, clock: datetime | None = None) -> Predicate:
    """A filter over a Lance table's columns as a predicate, with times without a zone in `zone`, where it is `clock`.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.zoned_filter import zoned_predicate
        >>> zoned_predicate("id > 3", pa.schema({"id": pa.int64()}), "Europe/Berlin").columns
        ['id']
    """
    there = with_system_columns(schema)
    return Predicate.parse_sql(_timed(sql, there, zone, clock), in_zone(there, zone))


def row_filter(sql: str, schema: pa.Schema, zone: str | None) -> RowFilter:
    """A filter for batches that have all of its columns, with times without a zone in `zone`.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.zoned_filter import row_filter
        >>> rows = pa.record_batch({"id": [3, 4]})
        >>> row_filter("id > 3", rows.schema, None).evaluate(rows).to_pylist()
        [False, True]
    """
    shown = in_zone(schema, zone)
    return RowFilter(shown, Expression.parse_sql(_timed(sql, schema, zone), shown))


@dataclass(frozen=True)
class RowFilter:
    """A filter over batches. `row_filter` makes one."""

    schema: pa.Schema
    expression: Expression

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether it keeps each row: true, false or null."""
        if not batch.schema.equals(self.schema):
            arrays = [column.cast(field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return pa.array(self.expression.evaluate(batch))


def _timed(sql: str, schema: pa.Schema, zone: str | None, clock: datetime | None = None) -> str:
    return clock_in_zone(instants_apart(leaps_in_zone(sql, schema, zone)), schema.names, zone, clock)


def whatever_the_zone(sql: str, schema: pa.Schema) -> list[Predicate]:
    """Predicates that a filter implies in any zone, for pruning files.

    Args:
        sql: A filter that parses.
        schema: The columns of the filter.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.zoned_filter import whatever_the_zone
        >>> columns = pa.schema({"t": pa.timestamp("us", "UTC"), "n": pa.int64()})
        >>> whatever_the_zone("t > '2024-07-02' and n = 1", columns)[0].columns
        ['t', 'n']
    """
    names = {name: name for name in schema.names}
    plain = instants_apart(columns_in_backticks(sql))
    # What the clock shows is not known before there is a zone: it is compared with nothing here.
    plain = clock_as_columns(plain, schema.names, *_CLOCK.names)
    known = pa.schema([*schema, *(field for field in _CLOCK if field.name not in names)])
    terms = [term for term in implied_terms(plain, known) if not _has_times(known.field(term.column).type)]
    terms = [term for term in [*terms, *_times_with_room(plain, known)] if term.column in names]
    expression = all_of(terms, names)
    if expression is None:
        return []
    try:
        return [portable_predicate(expression, schema)]
    except (InvalidArgumentError, UnsupportedError):
        # The Rust core cannot evaluate the expression: prune nothing.
        return []


def _times_with_room(sql: str, schema: pa.Schema) -> Iterator[Term]:
    """The terms on times that a filter implies, with a margin: found over texts in one format, which sort as times."""
    spelled = _in_one_spelling(sql)
    times = [field.name for field in schema if pa.types.is_timestamp(field.type) and _has_times(field.type)]
    texts = pa.schema([field.with_type(pa.string()) if field.name in times else field for field in schema])
    try:
        terms = [] if spelled is None else implied_terms(spelled, texts)
    except InvalidArgumentError:
        # The filter does more with times than compare them with literals.
        return
    for term in terms:
        if term.column not in times or any(len(str(value)) != _LENGTH for value in term.values):
            continue
        if not term.values:
            yield term
            continue
        kind = schema.field(term.column).type
        moments = [datetime.fromisoformat(str(value)).replace(tzinfo=UTC) for value in term.values]
        if term.operator in (">", ">=", "=", "==", "in"):
            yield Term(term.column, ">=", (pa.scalar(min(moments) - _ROOM, pa.timestamp("us", "UTC")).cast(kind),))
        if term.operator in ("<", "<=", "=", "==", "in"):
            yield Term(term.column, "<=", (pa.scalar(max(moments) + _ROOM, pa.timestamp("us", "UTC")).cast(kind),))


def _in_one_spelling(sql: str) -> str | None:
    """The filter with all time literals in one format; None if one has a zone, or is outside of 1700 to 2200."""
    parts, at = [], 0
    for match in _TEXT.finditer(sql):
        text = match["text"]
        if text is None:
            continue
        try:
            moment = datetime.fromisoformat(text[1:-1].strip())
        except ValueError:
            continue
        if moment.tzinfo is not None or not 1700 < moment.year < 2200:
            return None
        parts += [sql[at : match.start()], f"'{moment.isoformat(sep=' ', timespec='microseconds')}'"]
        at = match.end()
    return "".join([*parts, sql[at:]])


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
