"""What an update makes of rows: expressions over the old row, cast to the types of the columns that they are for.

Spec: "Generated Columns", "CHECK Constraints", "Column Invariants".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from ..._native.expr import Expression
from ...exceptions import InvalidArgumentError
from ..definition.constraints import Constraints
from ..definition.table_state import TableState
from ..merge.sql_parts import bare, tokens
from ..read.conform import plain
from ..read.session_zone import clock_in_zone, in_zone, zone_name
from ..read.sql_names import columns_in_backticks, in_own_words
from .assigned_values import AssignedColumn
from .struct_fields import check_fields

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sql_assignments(
    updates: Mapping[str, str] | None, new_values: Mapping[str, Any] | None, session_timezone: str | None = None
) -> dict[str, str]:
    """The SQL for each column, from SQL or from values of Python.

    Args:
        updates: SQL by column.
        new_values: Numbers, booleans, texts, times, or lists of them by column.
        session_timezone: What times without a zone mean; UTC if not given.

    Raises:
        InvalidArgumentError: Both are given, or none.
        TypeError: A value of another kind.

    Example:
        >>> from esker.delta.change.assignments import sql_assignments
        >>> sql_assignments(None, {"name": "O'Neill", "n": 3})
        {'name': "'O''Neill'", 'n': '3'}
    """
    if updates is not None and new_values is not None:
        raise InvalidArgumentError("Passing updates and new_values at same time is not allowed, pick one.")
    if updates is not None:
        if any(not isinstance(part, str) for pair in updates.items() for part in pair):
            raise TypeError(
                f"The values of the updates parameter must all be SQL strings. Got {updates}. Did you mean to use the "
                "new_values parameter?"
            )
        return dict(updates)
    if new_values is None:
        raise InvalidArgumentError("Either updates or new_values need to be passed to update the table.")
    is_utc = zone_name(session_timezone) == "UTC"
    return {name: _literal(value, is_utc) for name, value in new_values.items()}


def _literal(value: Any, is_utc: bool) -> str:
    """A value of Python as SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float) and not math.isfinite(value):
        return f"cast('{value}' as double)"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, datetime) and value.tzinfo is None and not is_utc:
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime):
        # Microseconds, as deltalake has them: an integer becomes a time of any kind. One without a zone is of UTC.
        time = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return str((time - _EPOCH) // timedelta(microseconds=1))
    if isinstance(value, list):
        return f"[{', '.join(_literal(item, is_utc) for item in value)}]"
    raise TypeError(
        "Invalid datatype provided in new_values, only int, float, bool, list, str or datetime or accepted."
    )


class Assignments:
    """The new values of columns, over rows of one table.

    Args:
        state: The table.
        sql: SQL by column. Columns that the table does not have are left out, with a warning.
        strict: Whether a value that does not fit its column is an error; if not, it becomes null.
        session_timezone: What times without a zone mean in it; UTC if not given.

    Raises:
        InvalidArgumentError: SQL that does not parse, or names no column; a field within a column; values of a type
            that cannot be cast to the column's.
        SchemaMismatchError: Structs of fields that their column does not have.
        UnsupportedError: A constraint that this release does not evaluate.

    Example:
        `new = Assignments(state, {"n": "n + 1"}).applied(rows)`
    """

    def __init__(
        self, state: TableState, sql: Mapping[str, str], *, strict: bool = True, session_timezone: str | None = None
    ) -> None:
        self._schema = pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in state.schema.to_plain_arrow()])
        self._constraints = Constraints(state.schema, state.configuration, state.protocol)
        self._values: dict[str, Expression] = {}
        self._columns: dict[str, AssignedColumn] = {}
        zoned = in_zone(self._schema, session_timezone)
        for given, text in sql.items():
            name = self._column(given)
            if name is None:
                continue
            prepared = clock_in_zone(columns_in_backticks(text), zoned.names, session_timezone)
            with in_own_words(text, prepared):
                self._values[name] = Expression.parse_sql(prepared, zoned, True)
            found, kind = pa.field(self._values[name]).type, self._schema.field(name).type
            check_fields(found, kind, name, fills=True)
            column = AssignedColumn(name, kind, text, strict=strict, session_timezone=session_timezone)
            column.check(found)
            self._columns[name] = column

    def _column(self, given: str) -> str | None:
        """The column that a caller names; None if the table has none of that name."""
        for name in (given, bare(given)):
            if name in self._schema.names:
                return name
        parts = [part.text for part in tokens(columns_in_backticks(given))]
        top = bare(parts[0]) if parts else given
        if len(parts) > 1 and parts[1] in (".", "[") and top in self._schema.names:
            raise InvalidArgumentError(
                f"expected columns to update, found {given!r}, a field within column {top!r}; give the whole column, "
                "built with named_struct",
                column=given,
            )
        warnings.warn(
            f"the table has no column {given!r}, which is left out of the update, as deltalake leaves it out; its "
            f"columns are {', '.join(self._schema.names)}",
            stacklevel=2,
        )
        return None

    @property
    def is_empty(self) -> bool:
        """Whether no column gets another value."""
        return not self._values

    @property
    def columns(self) -> set[str]:
        """The columns whose values may become others."""
        return self._values.keys() | self._constraints.generated

    @property
    def read(self) -> set[str]:
        """The columns that new values are computed from, and that constraints read."""
        read = {column for expression in self._values.values() for column in expression.columns}
        return read | self._constraints.columns

    def applied(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with their new values, generated columns computed anew, constraints enforced.

        Columns that are neither read nor changed need not be there.

        Raises:
            InvalidArgumentError: A value that does not fit its column; rows that a constraint refuses.
        """
        made = pa.RecordBatch.from_arrays(rows.columns, schema=_loose(rows.schema))
        for name, expression in self._values.items():
            index = rows.schema.get_field_index(name)
            values = self._evaluated(expression, rows, name)
            made = made.set_column(index, made.schema.field(index), values)
        made = self._constraints.generate(made, self._constraints.generated - self._values.keys())
        self._constraints.enforce(made)
        return made

    def _evaluated(self, expression: Expression, rows: pa.RecordBatch, name: str) -> pa.Array:
        def values(start: int, length: int) -> pa.Array:
            return pa.array(expression.evaluate(rows.slice(start, length)))

        return self._columns[name].taken(values, rows.num_rows)


def _loose(schema: pa.Schema) -> pa.Schema:
    # Constraints report nulls where there may be none, by the column's name.
    return pa.schema([field.with_nullable(True) for field in schema])
