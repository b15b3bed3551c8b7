"""Constraints on the rows of a write: NOT NULL, invariants, CHECK constraints, generated columns.

Spec: "Column Invariants", "CHECK Constraints", "Generated Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError
from ..schema import ArrayType, DataType, MapType, Schema, StructType
from .expressions import TableExpression, invariant_sql
from .protocol import features_of, fields_of

CONSTRAINT = "delta.constraints."
GENERATION = "delta.generationExpression"
INVARIANTS = "delta.invariants"


class Constraints:
    """The conditions of one table, over batches with its columns.

    Args:
        schema: The table's columns.
        configuration: Its properties.
        protocol: Its protocol: CHECK constraints and generated columns hold where its writer version has them.
        is_new: Whether a caller gives them now.

    Raises:
        InvalidArgumentError: A constraint is no condition; a new one does not parse, or names no column.
        UnsupportedError: An expression is outside of the subset that this release evaluates.

    Example:
        `batch = Constraints(schema, configuration, protocol).enforce(batch)`
    """

    def __init__(
        self,
        schema: Schema,
        configuration: Mapping[str, str],
        protocol: Mapping[str, Any],
        *,
        is_new: bool = False,
    ) -> None:
        self._schema = schema
        self._arrow = schema.to_plain_arrow()
        features = features_of(protocol)
        self._checks: list[tuple[str, TableExpression]] = []
        for path, field in fields_of(schema.fields):
            if INVARIANTS in field.metadata and "invariants" in features:
                where = f"invariant of column {path!r}"
                sql = invariant_sql(str(field.metadata[INVARIANTS]))
                self._checks.append((where, self._condition(sql, where, is_new)))
        for key, sql in configuration.items():
            if key.startswith(CONSTRAINT) and "checkConstraints" in features:
                where = f"constraint {key.removeprefix(CONSTRAINT)!r}"
                self._checks.append((where, self._condition(sql, where, is_new)))
        self._generated: dict[str, TableExpression] = {}
        for field in schema.fields:
            if GENERATION in field.metadata and "generatedColumns" in features:
                where = f"generated column {field.name!r}"
                sql = str(field.metadata[GENERATION])
                self._generated[field.name] = TableExpression(sql, self._arrow, where, is_new=is_new)

    def _condition(self, sql: str, where: str, is_new: bool) -> TableExpression:
        found = TableExpression(sql, self._arrow, where, is_new=is_new)
        kind = found.data_type
        if not pa.types.is_boolean(kind):
            raise InvalidArgumentError(
                f"{where}: expected a condition, which is true or false for each row, found {sql!r} of type {kind}"
            )
        return found

    @property
    def columns(self) -> set[str]:
        """The columns that its expressions read, and the generated ones."""
        expressions = [*(expression for _, expression in self._checks), *self._generated.values()]
        return {column for expression in expressions for column in expression.columns} | self.generated

    @property
    def generated(self) -> set[str]:
        """The columns that need not be given."""
        return set(self._generated)

    def generate(self, batch: pa.RecordBatch, missing: set[str]) -> pa.RecordBatch:
        """The batch with the generated columns that were not given; they are there as nulls."""
        for name in self._generated:
            if name in missing:
                index = batch.schema.get_field_index(name)
                values = self._generated[name].evaluate(batch, self._arrow.field(name).type)
                batch = batch.set_column(index, batch.schema.field(name), values)
        return batch

    def enforce(self, batch: pa.RecordBatch) -> None:
        """Raises if a row may not be in the table. Columns that no constraint reads need not be there.

        Raises:
            InvalidArgumentError: It names the column or the constraint.
        """
        there = set(batch.schema.names)
        for field in self._schema.fields:
            if field.name not in there:
                continue
            _check_nulls(batch.column(field.name), field.type, field.nullable, field.name)
        for where, expression in self._checks:
            held = expression.evaluate(batch)
            if pa.types.is_null(held.type):
                held = held.cast(pa.bool_())
            # A condition that is null does not hold.
            broken = pc.invert(pc.fill_null(held, False))
            if pc.any(broken).as_py():
                row = batch.filter(broken).slice(0, 1).select(expression.columns).to_pylist()
                raise InvalidArgumentError(
                    f"{where}: expected rows for which {expression.sql} is true, found {row[0]}; nothing was written. "
                    + failed_check(broken)
                )
        for name, expression in self._generated.items():
            given = batch.column(name)
            wanted = expression.evaluate(batch, given.type)
            same = pc.fill_null(pc.equal(given, wanted), False)
            if pa.types.is_floating(given.type):
                # NaN is equal to none in Arrow.
                same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(given), pc.is_nan(wanted)), False))
            both_null = pc.and_(given.is_null(), wanted.is_null())
            wrong = pc.invert(pc.or_(same, both_null))
            if pc.any(wrong).as_py():
                at = pc.index(wrong, True).as_py()
                raise InvalidArgumentError(
                    f"generated column {name!r}: expected {expression.sql}, which is {wanted[at]}, found {given[at]}; "
                    f"leave the column out, and it is computed. {failed_check(wrong)}",
                    column=name,
                )


def failed_check(broken: pa.Array) -> str:
    """How many rows a check refuses, in deltalake's words, which programs look for.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.definition.constraints import failed_check
        >>> failed_check(pa.array([True, False]))
        'Invalid data found: 1 rows failed validation check.'
    """
    return f"Invalid data found: {pc.sum(broken).as_py() or 0} rows failed validation check."


def _check_nulls(values: pa.Array, kind: DataType, nullable: bool, path: str) -> None:
    """Raises for a null where a column, a field or an element may have none."""
    if not nullable and values.null_count:
        raise InvalidArgumentError(
            f"column {path!r}: expected no nulls (NOT NULL), found {values.null_count}; nothing was written",
            column=path,
        )
    if not _may_refuse(kind):
        return
    if isinstance(kind, StructType):
        there = values.drop_null() if values.null_count else values
        for inner, child in zip(kind.fields, there.flatten(), strict=True):
            _check_nulls(child, inner.type, inner.nullable, f"{path}.{inner.name}")
    elif isinstance(kind, ArrayType):
        _check_nulls(values.flatten(), kind.element_type, kind.contains_null, f"{path}.element")
    elif isinstance(kind, MapType):
        there = values.drop_null() if values.null_count else values
        first, last = there.offsets[0].as_py(), there.offsets[-1].as_py()
        # `items` has those of rows as well that were cut off.
        _check_nulls(there.items.slice(first, last - first), kind.value_type, kind.value_contains_null, f"{path}.value")


def _may_refuse(kind: DataType) -> bool:
    """Whether something within a type may not be null."""
    if isinstance(kind, StructType):
        return any(not inner.nullable or _may_refuse(inner.type) for inner in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.contains_null or _may_refuse(kind.element_type)
    if isinstance(kind, MapType):
        return not kind.value_contains_null or _may_refuse(kind.value_type)
    return False
