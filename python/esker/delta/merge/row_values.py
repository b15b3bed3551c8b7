"""What a clause makes of rows: expressions over joined rows, cast to the types of the columns that they are for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...exceptions import InvalidArgumentError
from ..change.assigned_values import AssignedColumn
from ..change.struct_fields import check_fields
from ..definition.constraints import Constraints
from ..definition.protocol import check_defaults
from ..definition.table_state import TableState
from ..read.conform import plain
from ..read.sql_names import columns_in_backticks
from ..write.conformed_values import fitted
from .clauses import Action, Clause
from .joined import JoinedColumns, JoinedExpression
from .sql_parts import bare, tokens


def assigned_column(given: str, names: list[str], target_alias: str | None, source_alias: str | None) -> str | None:
    """The column that a caller names, with or without the table's alias; None if there is none of that name.

    Raises:
        InvalidArgumentError: A column of the source, or of an alias that is none; a field within a column.

    Example:
        >>> from esker.delta.merge.row_values import assigned_column
        >>> assigned_column("t.`a b`", ["a b"], "t", "s"), assigned_column("nope", ["a b"], "t", "s")
        ('a b', None)
    """
    if given in names:
        return given
    parts = [bare(token.text) for token in tokens(columns_in_backticks(given)) if token.text != "."]
    if len(parts) > 1 and target_alias is not None and parts[0].lower() == target_alias.lower():
        parts = parts[1:]
    elif len(parts) > 1 and source_alias is not None and parts[0].lower() == source_alias.lower():
        raise InvalidArgumentError(
            f"expected columns of the table to assign to, found {given!r}, a column of the source", column=given
        )
    found = [name for name in names if name.lower() == parts[0].lower()] if parts else []
    exact = [name for name in found if name == parts[0]]
    if found and len(parts) > 1:
        raise InvalidArgumentError(
            f"expected columns to assign to, found {given!r}, a field within column {found[0]!r}; give the whole "
            "column, built with named_struct",
            column=given,
        )
    if len(parts) > 1:
        known = "the table has no alias" if target_alias is None else f"the table's alias is {target_alias}"
        raise InvalidArgumentError(
            f"expected a column of the table to assign to, found {given!r}: {known} (Table alias '{parts[0]}' in "
            f"column reference '{given}' unknown)",
            column=given,
        )
    return next(iter([*exact, *found]), None)


@dataclass(frozen=True)
class BoundClause:
    """A clause over one version of a table.

    Args:
        action: What it does.
        predicate: For which rows; all if not given.
        values: What it assigns, by column.
        is_unconditional_delete: Whether two rows of the source may both ask for it.
        columns: For columns that get the value of one of the source as it is, which one that is.
    """

    action: Action
    predicate: JoinedExpression | None
    values: Mapping[str, JoinedExpression]
    is_unconditional_delete: bool
    columns: Mapping[str, str]

    @property
    def target(self) -> set[str]:
        """The table's columns that its values read."""
        return {name for value in self.values.values() for name in value.target}


def bind_clause(
    clause: Clause, columns: JoinedColumns, after: TableState, source: pa.Schema, *, fills: bool = False
) -> BoundClause:
    """Binds a clause.

    Args:
        clause: The clause.
        columns: The names of joined rows.
        after: The table after the merge: columns that it does not have are left out, with a warning.
        source: The source's columns.
        fills: Whether fields within columns may be missing from what is assigned; they are null then.

    Raises:
        InvalidArgumentError: SQL that does not parse, or names no column; a column that is assigned twice; values of a
            type that cannot be cast to the column's.
        SchemaMismatchError: Values that have other fields than their column.
        UnsupportedError: An insert without a column that has a default.
    """
    predicate = None if clause.predicate is None else columns.condition(clause.predicate, "the predicate of a clause")
    names = [field.name for field in after.schema.fields]
    values: dict[str, JoinedExpression] = {}
    as_they_are: dict[str, str] = {}
    given = dict(clause.assignments)
    if clause.takes_all:
        left_out = {name.lower() for name in clause.except_columns}
        exact = frozenset(names)
        by_lower = {own.lower(): own for own in reversed(names)}
        for name in source.names:
            found = name if name in exact else by_lower.get(name.lower())
            if found is not None and name.lower() not in left_out:
                values[found] = columns.source_column(name)
                as_they_are[found] = name
    for column, sql in given.items():
        found = assigned_column(column, names, columns.target_alias, columns.source_alias)
        if found is None:
            warnings.warn(
                f"the table has no column {column!r}, which is left out of the merge, as deltalake leaves it out; its "
                f"columns are {', '.join(names)}",
                stacklevel=2,
            )
            continue
        if found in values:
            raise InvalidArgumentError(f"expected each column once, found {found!r} twice", column=found)
        value = values[found] = columns.parse(sql)
        same = None if value.target else value.is_column(columns_in_backticks(sql))
        if same is not None:
            as_they_are[found] = same
    if clause.action == "insert":
        check_defaults(after.schema, set(names) - values.keys())
    for own in after.schema.to_plain_arrow():
        if own.name in values:
            value, kind = values[own.name], plain(own.type)
            check_fields(value.type, kind, own.name, fills=fills)
            AssignedColumn(own.name, kind, str(value.expression)).check(value.type)
    return BoundClause(clause.action, predicate, values, clause.is_unconditional_delete, as_they_are)


class RowValues:
    """The rows that clauses make.

    Args:
        after: The table after the merge.
        strict: Whether a value that does not fit its column is an error; if not, it becomes null.
        session_timezone: What times without a zone mean; UTC if not given.

    Example:
        `RowValues(after, strict=True).made(clause, 3, old, source)`
    """

    def __init__(self, after: TableState, *, strict: bool, session_timezone: str | None = None) -> None:
        self.schema = pa.schema([pa.field(f.name, plain(f.type)) for f in after.schema.to_plain_arrow()])
        self._constraints = Constraints(after.schema, after.configuration, after.protocol)
        self._strict = strict
        self._zone = session_timezone

    @property
    def generated(self) -> set[str]:
        """The columns that are computed where they are not given."""
        return self._constraints.generated

    @property
    def checked(self) -> set[str]:
        """The columns that constraints read."""
        return self._constraints.columns

    def widened(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the table as it was, as rows of the table as it will be."""
        columns = []
        for field in self.schema:
            index = rows.schema.get_field_index(field.name)
            if index < 0:
                columns.append(pa.nulls(rows.num_rows, field.type))
            else:
                values = rows.column(index)
                columns.append(values if values.type == field.type else fitted(values, field.type, field.name))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def made(
        self, clause: BoundClause, rows: int, old: pa.RecordBatch | None, source: pa.RecordBatch | None
    ) -> pa.RecordBatch:
        """The rows that a clause makes of old ones, or of none.

        Args:
            clause: An update or an insert.
            rows: How many.
            old: The table's rows, with the columns of the table as it was; those that are read and kept at least.
            source: The source's rows beside them.

        Raises:
            InvalidArgumentError: A value that does not fit its column; rows that a constraint refuses.
        """
        columns = []
        for field in self.schema:
            value = clause.values.get(field.name)
            index = -1 if old is None else old.schema.get_field_index(field.name)
            if value is not None:
                given = _as_it_is(source, clause.columns.get(field.name), field.type)
                columns.append(self._evaluated(value, field, rows, old, source) if given is None else given)
            elif old is not None and index >= 0:
                kept = old.column(index)
                columns.append(kept if kept.type == field.type else fitted(kept, field.type, field.name))
            else:
                columns.append(pa.nulls(rows, field.type))
        made = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        made = self._constraints.generate(made, self.generated - clause.values.keys())
        # Of columns that were not read the old values stay.
        unread = set() if old is None else set(made.schema.names) - clause.values.keys() - set(old.schema.names)
        try:
            self._constraints.enforce(made.select([n for n in made.schema.names if n not in unread - self.checked]))
        except InvalidArgumentError as error:
            if "Invalid data found" in error.message:
                raise
            raise InvalidArgumentError(f"Invalid data found: {error.message}", **error.facts) from error
        return made

    def _evaluated(
        self,
        value: JoinedExpression,
        field: pa.Field,
        rows: int,
        old: pa.RecordBatch | None,
        source: pa.RecordBatch | None,
    ) -> pa.Array:
        def values(start: int, length: int) -> pa.Array:
            before = None if old is None else old.slice(start, length)
            beside = None if source is None else source.slice(start, length)
            return value.evaluate(length, before, beside)

        sql = str(value.expression)
        column = AssignedColumn(field.name, field.type, sql, self._strict, self._zone, is_merged=True)
        return column.taken(values, rows)


def _as_it_is(source: pa.RecordBatch | None, column: str | None, kind: pa.DataType) -> pa.Array | None:
    """The values of a column of the source that are assigned without any change, None if something happens to them."""
    if source is None or column is None or pa.types.is_timestamp(kind) or pa.types.is_nested(kind):
        return None
    return source.column(column) if source.schema.field(column).type == kind else None
