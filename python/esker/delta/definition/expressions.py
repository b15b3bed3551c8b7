"""SQL expressions in a table's metadata: the subset that means the same here as in Spark. All others are refused.

The text of a constraint or of a generated column may have these parts: columns (plain, in backticks, fields of
structs), literals, `=`, `==`, `<=>`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `AND`, `OR`, `NOT`, `IS [NOT] NULL`, `IN`,
`BETWEEN`, `LIKE`, `CASE`, `+`, `-`, `*`, `%`, `||`, `CAST`, and the functions `abs`, `coalesce`, `length`, `lower`,
`upper`; as a whole also `year(x)`, `month(x)`, `day(x)`, `dayofmonth(x)`, `hour(x)`, and of days or times
`trunc(x, 'year')`, with `quarter`, `month` and `week`. Times are of UTC. A `float` is compared with a fraction as a
double, so that none equals `0.1`.

Refused: `/`, which gives fractions in Spark and integers here; double quotes, which mean text there and a column here;
casts of times and floats to text, which Spark spells in another way, and of times to numbers and back, which it counts
in seconds; operands of types that make other values there, see `operand_types`.

Spec: "Column Invariants", "CHECK Constraints", "Generated Columns".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Expression
from ...exceptions import EskerError, InvalidArgumentError, UnsupportedError
from .operand_types import check_operands

_FUNCTIONS = {"abs", "cast", "coalesce", "length", "lower", "upper"}
_KEYWORDS = {
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "case",
    "when",
    "then",
    "else",
    "end",
    "is",
    "null",
    "as",
    "decimal",
}
_CALL = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(")
_PART = re.compile(r"^\s*(year|month|day|dayofmonth|hour)\s*\(\s*`?([^`()]+?)`?\s*\)\s*$", re.IGNORECASE)
_TRUNC = re.compile(r"^\s*[`\"]?trunc[`\"]?\s*\(\s*`?([^`(),]+?)`?\s*,\s*'(\w+)'\s*\)\s*$", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(["year", "yyyy", "yy"], "year"),
    **dict.fromkeys(["month", "mon", "mm"], "month"),
    "quarter": "quarter",
    "week": "week",
}
"""Of Spark's `trunc`; a week starts on a Monday."""
_CAST = re.compile(r"\bcast\s*\(", re.IGNORECASE)
_AS = re.compile(r"\sas\s", re.IGNORECASE)
_LITERAL = re.compile(r"'(?:[^']|'')*'|`[^`]*`")
_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "dayofmonth": pc.day,
    "hour": pc.hour,
}


class TableExpression:
    """An expression over the columns of a table.

    Args:
        sql: Its text.
        schema: The table's columns.
        where: What has it, for messages.
        is_new: Whether a caller gives it now; if not, a table has it, whose writer may have known more than we do.

    Raises:
        InvalidArgumentError: A new one does not parse, or names no column.
        UnsupportedError: It is outside the subset.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.definition.expressions import TableExpression
        >>> found = TableExpression("x > 1", pa.schema([("x", pa.int64())]), "constraint 'a'")
        >>> found.evaluate(pa.record_batch({"x": [1, 2]})).to_pylist()
        [False, True]
    """

    def __init__(self, sql: str, schema: pa.Schema, where: str, *, is_new: bool = False) -> None:
        self.sql = sql
        self._part: tuple[str, str] | None = None
        self._floor: tuple[str, str] | None = None
        self._expression: Expression | None = None
        part = _PART.match(sql)
        if part is not None and _is_of_days(schema, part.group(2), part.group(1).lower() == "hour"):
            self._part = (part.group(1).lower(), part.group(2))
            self.columns = [part.group(2)]
            return
        floor = _TRUNC.match(sql)
        if floor is not None and _is_of_days(schema, floor.group(1)) and floor.group(2).lower() in _UNITS:
            self._floor = (_UNITS[floor.group(2).lower()], floor.group(1))
            self.columns = [floor.group(1)]
            return
        _check(sql, where)
        try:
            self._expression = Expression.parse_rule(sql, schema)
        except EskerError as error:
            if is_new and isinstance(error, InvalidArgumentError):
                raise InvalidArgumentError(f"{where}: {error}") from error
            raise UnsupportedError(
                f"{where}: this release does not evaluate {sql!r} ({error}); write with another "
                "writer, or drop it before the columns that it reads"
            ) from error
        _check_casts(sql, schema, where)
        check_operands(sql, schema, where)
        self.columns = self._expression.columns

    @property
    def data_type(self) -> pa.DataType:
        """The type of its values."""
        if self._floor is not None:
            return pa.date32()
        if self._expression is None:
            return pa.int64()
        return pa.field(self._expression).type

    def evaluate(self, batch: pa.RecordBatch, data_type: pa.DataType | None = None) -> pa.Array:
        """Its values for a batch, of a type if one is given."""
        if self._part is not None:
            name, column = self._part
            found = _PARTS[name](batch.column(column))
        elif self._floor is not None:
            unit, column = self._floor
            # The day of a time first: casts round up before 1970.
            days = pc.floor_temporal(batch.column(column), unit="day").cast(pa.date32())
            found = pc.floor_temporal(days, unit=unit)
        elif self._expression is not None:
            found = pa.array(self._expression.evaluate(with_nulls_below(batch.select(self.columns))))
        return found if data_type is None else found.cast(data_type)


def _is_of_days(schema: pa.Schema, name: str, only_times: bool = False) -> bool:
    """Whether a column has days, or times."""
    if name not in schema.names:
        return False
    kind = schema.field(name).type
    return bool(pa.types.is_timestamp(kind) or (pa.types.is_date(kind) and not only_times))


def _check(sql: str, where: str) -> None:
    bare = _LITERAL.sub(" ", sql)
    refused = [f"{name}()" for name in _CALL.findall(bare) if name.lower() not in _FUNCTIONS | _KEYWORDS]
    refused += [mark for mark in ('"', "/", "\\") if mark in (sql if mark == "\\" else bare)]
    if refused:
        raise UnsupportedError(
            f"{where}: this release does not evaluate {', '.join(refused)} as Spark does, in {sql!r}; "
            "write with another writer"
        )


def _check_casts(sql: str, schema: pa.Schema, where: str) -> None:
    bare = _LITERAL.sub(lambda found: " " * len(found.group()), sql)
    for found in _CAST.finditer(bare):
        first, end, depth = found.end(), found.end(), 1
        while depth and end < len(bare):
            depth += {"(": 1, ")": -1}.get(bare[end], 0)
            end += 1
        ends = [it.start() for it in _AS.finditer(bare, first, end)]
        try:
            # The last AS is its own: those of casts within it come before.
            given = pa.field(Expression.parse_sql(sql[first : ends[-1]], schema)).type
            made = pa.field(Expression.parse_sql(sql[found.start() : end], schema)).type
        except (EskerError, IndexError):
            continue
        if not _is_cast_alike(given, made):
            raise UnsupportedError(
                f"{where}: this release does not evaluate {sql[found.start() : end]} as Spark does, in {sql!r}; "
                "write with another writer"
            )


def _is_cast_alike(given: pa.DataType, made: pa.DataType) -> bool:
    is_text = pa.types.is_string(made) or pa.types.is_large_string(made) or pa.types.is_string_view(made)
    if is_text:
        return not (pa.types.is_timestamp(given) or pa.types.is_floating(given))
    if pa.types.is_temporal(given):
        return bool(pa.types.is_temporal(made))
    return not pa.types.is_temporal(made) or not (pa.types.is_boolean(given) or _is_number(given))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def invariant_sql(text: str) -> str:
    """The SQL of a column invariant: within JSON as writers have it, or bare as the specification has it.

    Example:
        >>> from esker.delta.definition.expressions import invariant_sql
        >>> invariant_sql('{"expression": {"expression": "x > 3"}}'), invariant_sql("x > 3")
        ('x > 3', 'x > 3')
    """
    try:
        found = json.loads(text)["expression"]["expression"]
    except (ValueError, TypeError, KeyError):
        return text
    return found if isinstance(found, str) else text


def with_nulls_below(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the fields of null structs null as well."""
    if not any(pa.types.is_struct(column.type) for column in batch.columns):
        return batch
    return pa.record_batch([_below(column) for column in batch.columns], names=batch.schema.names)


def _below(array: pa.Array) -> pa.Array:
    if not pa.types.is_struct(array.type):
        return array
    children = [_below(child) for child in array.flatten()]
    fields = [pa.field(array.type.field(i).name, child.type, True) for i, child in enumerate(children)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
