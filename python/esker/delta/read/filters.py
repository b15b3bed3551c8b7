"""Filters: tuples, SQL or pyarrow expressions, bound to a table's columns, to skip files and to filter rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Expression, Predicate
from ...arrow.predicate import portable_predicate
from ...exceptions import InvalidArgumentError, UnsupportedError
from .filter_values import OPERATORS, compared, is_text, typed_value
from .implied_terms import Term, all_of, terms_of
from .session_zone import clock_in_zone, in_zone, leaps_in_zone
from .sql_names import columns_in_backticks, in_own_words

FilterLiteralType: TypeAlias = tuple[str, str, Any]
FilterConjunctionType: TypeAlias = list[FilterLiteralType]
FilterDNFType: TypeAlias = list[FilterConjunctionType]
FilterType: TypeAlias = FilterConjunctionType | FilterDNFType
if TYPE_CHECKING:
    RowFilter: TypeAlias = str | FilterType | pc.Expression
else:
    RowFilter = Any


@dataclass(frozen=True)
class BoundFilter:
    """A filter bound to the columns of a table.

    `predicates` leave out files, `terms` row groups; `columns` are what it reads, None if that is not known; rows are
    kept by `sql` or by `expression`, whichever is there. `keeps_nan` says whether `expression` may keep NaN, of which
    the statistics of row groups say nothing, so that pyarrow would leave it out.
    """

    predicates: list[Predicate] = field(default_factory=list)
    columns: list[str] | None = None
    sql: Expression | None = None
    expression: pc.Expression | None = None
    terms: list[Term] = field(default_factory=list)
    keeps_nan: bool = False

    @property
    def implied(self) -> pc.Expression | None:
        """An expression that no row that it keeps is false for, nor what statistics make of it."""
        if self.expression is not None and not self.keeps_nan:
            return self.expression
        return all_of(self.terms, {term.column: term.column for term in self.terms})

    @property
    def is_widened(self) -> bool:
        """Whether `implied` keeps other rows as well."""
        return self.expression is None or self.keeps_nan

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch for which it is true."""
        if self.sql is not None:
            return batch.filter(pa.array(self.sql.evaluate(batch)).cast(pa.bool_()))
        if self.expression is not None:
            return batch.filter(self.expression)
        return batch

    def places(self, batch: pa.RecordBatch) -> pa.Array:
        """The places of the rows of a batch for which it is true, where it is SQL."""
        if self.sql is None:
            return pa.array(range(batch.num_rows), pa.uint64())
        return pc.indices_nonzero(pa.array(self.sql.evaluate(batch)).cast(pa.bool_()))


def bind(
    filters: RowFilter | None,
    schema: pa.Schema,
    *,
    partition_by: Collection[str] = (),
    session_timezone: str | None = None,
    clock: datetime | None = None,
) -> BoundFilter | None:
    """A filter over the rows of a table with this schema.

    Args:
        filters: SQL, in which double quotes name columns and numbers beside texts are texts, a pyarrow expression, or
            tuples `(column, operator, value)`:
            a list of them, all of which must hold, or a list of such lists, of which one must.
        schema: The table's columns.
        partition_by: Those whose empty text is null.
        session_timezone: What times without a zone mean in it; UTC if not given.
        clock: What `now()` and today's day are in SQL; None for when it is evaluated.

    Raises:
        InvalidArgumentError: It does not parse, or names no column.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.filters import bind
        >>> bind([("x", ">", 3)], pa.schema([("x", pa.int64())])).columns
        ['x']
    """
    if filters is None or (isinstance(filters, list) and not filters):
        return None
    if isinstance(filters, str):
        given = filters
        filters = clock_in_zone(columns_in_backticks(filters), schema.names, session_timezone, clock)
        filters = leaps_in_zone(filters, schema, session_timezone)
        zoned = in_zone(schema, session_timezone)
        with in_own_words(given, filters):
            predicate = Predicate.parse_sql(filters, zoned, True)
            expression = Expression.parse_sql(filters, zoned, True)
        return BoundFilter([predicate], predicate.columns, sql=expression, terms=terms_of(predicate))
    if not isinstance(filters, pc.Expression):
        filters = _with_tuples(filters)
    expression = (
        filters
        if isinstance(filters, pc.Expression)
        else tuples_to_expression(filters, schema, partition_by=partition_by, session_timezone=session_timezone)
    )
    is_given = isinstance(filters, pc.Expression)
    terms = [] if is_given else _terms_of(filters, schema, partition_by, session_timezone)
    named = None if is_given else _columns_of(filters)
    try:
        predicate = portable_predicate(expression, schema)
    except (UnsupportedError, InvalidArgumentError):
        if not _takes(schema, expression):
            raise
        # Rows are filtered by it, but no file can be skipped.
        return BoundFilter([], named, expression=expression, terms=terms, keeps_nan=_reads_floats(schema, expression))
    if is_given:
        terms = terms_of(predicate)
    # With a literal NaN pyarrow skips row groups, by bounds, that hold matching rows. A false positive costs time only.
    names_nan = _may_name_nan(expression) and _reads_floats(schema, expression)
    keeps_nan = names_nan or bool(predicate.keeps_nan)
    # The simplified predicate may read fewer columns than the expression, by which rows are filtered.
    read = pa.schema([schema.field(name) for name in predicate.columns])
    columns = predicate.columns if _takes(read, expression) else named
    return BoundFilter([predicate], columns, expression=expression, terms=terms, keeps_nan=keeps_nan)


def _may_name_nan(expression: pc.Expression) -> bool:
    """Whether NaN is among an expression's literals, as far as its text tells, which leaves out what long lists have in
    the middle."""
    try:
        text = str(expression)
    except UnicodeDecodeError:
        # Long texts are cut in the middle of a character.
        return True
    return "nan" in text.lower() or "..." in text


def _takes(schema: pa.Schema, expression: pc.Expression) -> bool:
    """Whether pyarrow filters rows with these columns by an expression."""
    try:
        schema.empty_table().filter(expression)
    except pa.ArrowException:
        return False
    return True


def _reads_floats(schema: pa.Schema, expression: pc.Expression) -> bool:
    return not _takes(pa.schema([column for column in schema if not _holds_floats(column.type)]), expression)


def _holds_floats(type_: pa.DataType) -> bool:
    inner = [type_.field(i).type for i in range(type_.num_fields)]
    return bool(pa.types.is_floating(type_)) or any(_holds_floats(found) for found in inner)


def _with_tuples(filters: FilterType) -> FilterType:
    """Lists of a column, an operator and a value, which come out of JSON, are tuples to pyarrow, too."""

    def tupled(part: Any) -> Any:
        is_literal = isinstance(part, list) and len(part) == 3 and all(isinstance(word, str) for word in part[:2])
        return tuple(part) if is_literal else part

    return [[tupled(inner) for inner in part] if isinstance(part, list) else part for part in map(tupled, filters)]


def _columns_of(filters: FilterType) -> list[str]:
    literals = chain.from_iterable([part] if isinstance(part, tuple) else part for part in filters)
    return list(dict.fromkeys(name for name, _, _ in literals))


def _terms_of(filters: FilterType, schema: pa.Schema, partition_by: Collection[str], zone: str | None) -> list[Term]:
    """The terms over columns of files that tuples imply, all of which must hold."""
    terms = []
    for part in filters:
        if not isinstance(part, tuple):
            return []
        name, operator, value = part
        kind = schema.field(name).type
        if name not in partition_by and operator in ("=", "==", "<", "<=", ">", ">="):
            found = typed_value(value, kind, name, in_partition=False, may_be_empty=False, zone=zone)
            # An empty text may be null, and what the column's type does not have is compared in another one.
            terms += [] if found is None or found.type != kind else [Term(name, operator, (found,))]
    return terms


def tuples_to_expression(
    filters: FilterType,
    schema: pa.Schema,
    *,
    partition_by: Collection[str] = (),
    session_timezone: str | None = None,
) -> pc.Expression:
    """Tuples as an expression. Values become the column's type: texts as partition values are spelled, too.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.filters import tuples_to_expression
        >>> tuples_to_expression([("year", "=", "2021")], pa.schema([("year", pa.int32())]))
        <pyarrow.compute.Expression (year == 2021)>
    """
    if all(isinstance(part, list) for part in filters):
        conjunctions = cast("FilterDNFType", filters)
    elif all(isinstance(part, tuple) for part in filters):
        conjunctions = [cast("FilterConjunctionType", filters)]
    else:
        raise InvalidArgumentError(
            "expected filters as a list of (column, operator, value) tuples or a list of such lists, found both"
        )
    whole: pc.Expression | None = None
    for conjunction in conjunctions:
        if not conjunction:
            raise InvalidArgumentError("expected tuples in each list of filters, found an empty one; leave it out")
        joined: pc.Expression | None = None
        for literal in conjunction:
            term = _term(literal, schema, partition_by, session_timezone)
            joined = term if joined is None else joined & term
        whole = joined if whole is None else whole | joined
    return whole


def _term(
    literal: FilterLiteralType, schema: pa.Schema, partition_by: Collection[str], zone: str | None
) -> pc.Expression:
    try:
        name, operator, value = literal
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"expected a tuple (column, operator, value), found {literal!r}") from None
    if name not in schema.names:
        raise InvalidArgumentError(
            f"expected one of the columns {', '.join(schema.names)}, found {name!r}", column=name
        )
    column, type_ = pc.field(name), schema.field(name).type
    operator = operator.lower()
    in_partition = name in partition_by

    def typed(value: Any) -> pa.Scalar | None:
        may_be_empty = is_text(type_) and not in_partition
        return typed_value(value, type_, name, in_partition=in_partition, may_be_empty=may_be_empty, zone=zone)

    if operator in ("in", "not in"):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise InvalidArgumentError(f"expected a list of values after {operator!r}, found {value!r}")
        return _among(column, operator, [typed(item) for item in value], type_)
    if operator not in OPERATORS:
        raise InvalidArgumentError(f"expected one of {', '.join(OPERATORS)}, in, not in, found {operator!r}")
    found = typed(value)
    if found is not None:
        return compared(column, operator, found, in_partition=in_partition)
    # As deltalake has it: null, and the empty text of a partition, are null, which is equal or not, never less or more.
    if operator in ("=", "=="):
        return column.is_null()
    return ~column.is_null() if operator == "!=" else column.is_null() & column.is_valid()


def _among(column: pc.Expression, operator: str, values: list[pa.Scalar | None], type_: pa.DataType) -> pc.Expression:
    """Whether a column's value is among some, or is not; what its type does not have is among none."""
    fits = pa.types.is_floating(type_)
    present = [item.as_py() for item in values if item is not None and (fits or item.type == type_)]
    found = column.isin(pa.array(present, type_))
    if pa.types.is_floating(type_) and 0.0 in present:
        # pyarrow rules out row groups of zeros for a list, as if the zero in it had to have the same sign.
        found |= column == pa.scalar(0.0, type_)
    if operator == "not in":
        return ~found & column.is_valid()
    return found | column.is_null() if any(item is None for item in values) else found
