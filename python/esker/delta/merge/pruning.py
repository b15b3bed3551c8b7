"""Which files, and row groups of them, may hold rows that a merge matches: by the keys of its source."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import EskerError
from ..read.filters import BoundFilter, bind
from .condition import JoinCondition
from .source import SourceRange
from .sql_parts import without_alias


def matchable(
    schema: pa.Schema,
    condition: JoinCondition,
    ranges: list[SourceRange],
    target_alias: str | None,
    *,
    partition_by: list[str],
    session_timezone: str | None,
) -> BoundFilter | None:
    """A filter that every row of the table passes that may match; it leaves out files and row groups, not rows.

    Args:
        schema: The table's columns.
        condition: What rows are joined by.
        ranges: For each key what the source has.
        target_alias: What the condition calls the table.
        partition_by: The table's partition columns.
        session_timezone: What times without a zone mean; UTC if not given.

    Example:
        `where = matchable(schema, condition, parts.ranges, "t", partition_by=[], session_timezone=None)`
    """
    found = []
    for sql in condition.target_only:
        plain = sql if target_alias is None else without_alias(sql, target_alias)
        try:
            found.append(bind(plain, schema, partition_by=partition_by, session_timezone=session_timezone))
        except EskerError:
            # Another name than the alias may be left in it: rows are asked, files are not.
            continue
    terms = [
        term for key, known in zip(condition.keys, ranges, strict=True) for term in _terms(schema, key.column, known)
    ]
    if terms:
        found.append(bind(reduce(pc.Expression.__and__, terms), schema, partition_by=partition_by))
    parts = [part for part in found if part is not None]
    if not parts:
        return None
    return BoundFilter(
        predicates=[predicate for part in parts for predicate in part.predicates],
        columns=[],
        terms=[term for part in parts for term in part.terms],
    )


def _terms(schema: pa.Schema, column: str | None, known: SourceRange) -> list[pc.Expression]:
    if column is None or known.is_empty or known.least is None or known.most is None:
        return []
    kind = schema.field(column).type
    try:
        if known.values is not None:
            return [pc.field(column).isin(known.values.cast(kind))]
        return [pc.field(column) >= known.least.cast(kind), pc.field(column) <= known.most.cast(kind)]
    except pa.ArrowException:
        # Keys that the column's type does not hold.
        return []
