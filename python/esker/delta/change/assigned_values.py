"""Values that SQL assigns to a column: cast to its type, at any depth; what does not fit is an error, or null.

```
int, text, list of texts ... -> fields by their names, elements -> casts -> the column's type
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Expression
from ...arrow.nested import is_list_like
from ...exceptions import EskerError, InvalidArgumentError
from ..read.session_zone import instants, shown, zone_name
from ..write.conformed_values import fitted

_WITH_ZONE = r"(?i)(?:z|:\d{2}(?:\.\d+)?\s*[+-]\d{2}(?::?\d{2})?)\s*$"
"""What a text ends with that says its zone."""
_NAMES = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.string(): "Utf8",
    pa.binary(): "Binary",
    pa.date32(): "Date32",
}


@dataclass(frozen=True)
class AssignedColumn:
    """A column that SQL gives values.

    Args:
        name: The column.
        kind: Its type.
        sql: The SQL, for messages.
        strict: Whether a value that does not fit is an error; if not, it becomes null, alone among those beside it.
        session_timezone: What times without a zone mean; UTC if not given.
        is_merged: Whether a merge assigns them. There deltalake makes floats decimals of 15 digits behind the point (7
            for `float`) before it rounds them to the column's: 1.005 is 1.01, and 1.00 in an update.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.change.assigned_values import AssignedColumn
        >>> column = AssignedColumn("n", pa.list_(pa.int64()), "[a, b]", strict=False)
        >>> column.taken(lambda first, rows: pa.array([["1", "x"]]).slice(first, rows), 1).to_pylist()
        [[1, None]]
    """

    name: str
    kind: pa.DataType
    sql: str
    strict: bool = True
    session_timezone: str | None = None
    is_merged: bool = False

    def check(self, found: pa.DataType) -> None:
        """Raises unless values of a type can become those of the column.

        Raises:
            InvalidArgumentError: No cast leads from the one to the other.
        """
        self._cast(pa.array([], found), strict=True)

    def taken(self, values: Callable[[int, int], pa.Array], rows: int) -> pa.Array:
        """What the column is.

        Args:
            values: The values of so many rows from a row on, as the SQL has them.
            rows: How many rows there are.

        Raises:
            InvalidArgumentError: A value that does not fit.
        """
        if self.strict:
            return self._cast(values(0, rows), strict=True)
        found = nulls_for_errors(values, 0, rows, values(0, 0).type)
        return nulls_for_errors(lambda first, count: self._cast(found.slice(first, count)), 0, rows, self.kind)

    def _cast(self, values: pa.Array, *, strict: bool = False) -> pa.Array:
        return fitted(values, self.kind, self.name, partial(self._within, strict))

    def _within(self, strict: bool, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Values that have no parts of their own; one stands for a list of it."""
        if pa.types.is_list(kind) and not is_list_like(values.type):
            inner = fitted(values, kind.value_type, self.name, partial(self._within, strict))
            return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), inner, kind)

        def cast(first: int, count: int) -> pa.Array:
            return self._plain(values.slice(first, count), kind, strict)

        return cast(0, len(values)) if strict else nulls_for_errors(cast, 0, len(values), kind)

    def _plain(self, values: pa.Array, kind: pa.DataType, strict: bool) -> pa.Array:
        types, found = pa.types, values.type
        if types.is_integer(found) and types.is_binary(kind):
            raise self._refusal(found, kind, "a number has no bytes (Unsupported CAST)")
        if types.is_float64(found) and types.is_float32(kind):
            # Beyond its range are the infinities.
            return values.cast(kind, safe=False)
        if self.is_merged and types.is_floating(found) and types.is_decimal(kind):
            return self._rounded_twice(values, kind, strict)
        zone = zone_name(self.session_timezone)
        if zone != "UTC" and types.is_timestamp(kind) and _has_zone(found) not in (None, _has_zone(kind)):
            return self._in_session(values, kind, zone)
        if zone != "UTC" and _has_zone(kind) and (types.is_string(found) or types.is_large_string(found)):
            return self._texts_in_session(values, kind, zone, strict)
        return self._by_sql(values, kind, zone, strict)

    def _rounded_twice(self, values: pa.Array, kind: pa.DataType, strict: bool) -> pa.Array:
        digits = 15 if pa.types.is_float64(values.type) else 7
        if kind.scale >= digits:
            return self._by_sql(values, kind, "UTC", strict)
        # Of larger ones a double has no such digits: deltalake makes 9999999999999999.64 of 1e16.
        small = pc.less(pc.abs(values), 1e12 if digits == 15 else 1e29)
        wide = self._by_sql(pc.if_else(small, values, None), pa.decimal128(38, digits), "UTC", strict)
        others = self._by_sql(pc.if_else(small, None, values), kind, "UTC", strict)
        return pc.coalesce(self._by_sql(wide, kind, "UTC", strict), others)

    def _texts_in_session(self, values: pa.Array, kind: pa.DataType, zone: str, strict: bool) -> pa.Array:
        """Times of texts; those without a zone are of the session's, as times without one are."""
        told = pc.match_substring_regex(values, _WITH_ZONE)
        others = self._by_sql(pc.if_else(told, None, values), pa.timestamp("us"), "UTC", strict)
        made = self._by_sql(pc.if_else(told, values, None), kind, zone, strict)
        return pc.coalesce(made, self._in_session(others, kind, zone))

    def _by_sql(self, values: pa.Array, kind: pa.DataType, zone: str, strict: bool) -> pa.Array:
        # Arrow looks at bytes as texts all at once, those of other rows among them; at views one by one. They are cast
        # here: pyarrow before 25 ends the process where it hands out a view that it has made of few bytes.
        value = "arrow_cast(value, 'BinaryView')" if pa.types.is_binary(values.type) else "value"
        kind = shown(kind, zone)
        batch = pa.record_batch({"value": values})
        sql = value if strict else f"arrow_try_cast({value}, '{_arrow_name(kind)}')"
        try:
            made = Expression.parse_sql(sql, batch.schema).evaluate(batch, data_type=kind)
        except InvalidArgumentError as error:
            message = error.message.replace(f"expression '{value}'", f"expression '{self.sql}'", 1)
            raise InvalidArgumentError(message, **error.facts) from error
        return pa.array(made).cast(shown(kind, "UTC"))

    def _in_session(self, values: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
        """Times with a zone of those without, or the other way round."""
        try:
            if kind.tz is None:
                return pc.local_timestamp(values.cast(pa.timestamp("us", zone), safe=False)).cast(kind)
            return instants(values.cast(pa.timestamp("us"), safe=False), zone).cast(kind)
        except pa.ArrowInvalid as error:
            raise self._refusal(values.type, kind, str(error)) from error

    def _refusal(self, found: pa.DataType, kind: pa.DataType, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the values of expression '{self.sql}' cannot be {kind}, found {found}: {why}", column=self.name
        )


def _arrow_name(kind: pa.DataType) -> str:
    """A type that columns have without parts, as Arrow's library for Rust spells it."""
    if pa.types.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp(Microsecond, {zone})"
    if pa.types.is_decimal(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    return _NAMES[kind]


def _has_zone(kind: pa.DataType) -> bool | None:
    """Whether times of a type have a zone, as days have none; None if values of it are no times."""
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return False if pa.types.is_date(kind) else None


def nulls_for_errors(values: Callable[[int, int], pa.Array], start: int, rows: int, kind: pa.DataType) -> pa.Array:
    """The values of rows, null where one is an error: halves are tried until the rows with errors are alone.

    Args:
        values: The values of so many rows from a row on.
        start: The first row.
        rows: How many.
        kind: Their type.

    Example:
        `nulls_for_errors(lambda start, rows: texts.slice(start, rows).cast("int64"), 0, len(texts), pa.int64())`
    """
    try:
        return values(start, rows)
    except EskerError:
        if rows <= 1:
            return pa.nulls(rows, kind)
        half = rows // 2
        parts = [nulls_for_errors(values, start, half, kind), nulls_for_errors(values, start + half, rows - half, kind)]
        return pa.concat_arrays(parts)
