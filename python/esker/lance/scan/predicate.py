"""Filters as users write them, made into predicates of the Rust core: SQL text, or expressions of pyarrow, pickled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Predicate
from ...arrow.predicate import predicate_of
from ..system_columns import with_system_columns

if TYPE_CHECKING:
    Filter: TypeAlias = str | pc.Expression | Predicate
else:
    Filter = Any


def to_predicate(filter: Filter, schema: pa.Schema) -> Predicate:
    """The predicate that a filter means over a schema.

    Args:
        filter: The text of a WHERE clause, a pyarrow expression, or a predicate that is bound to such columns already.
        schema: The table's columns.

    Raises:
        InvalidArgumentError: It does not parse, or names a column that does not exist.
        UnsupportedError: A function or a type that the Rust core does not have.

    Example:
        >>> import pyarrow as pa, pyarrow.compute as pc
        >>> from esker.lance.scan.predicate import to_predicate
        >>> to_predicate(pc.field("id") > 3, pa.schema([("id", pa.int64())])).columns
        ['id']
    """
    if isinstance(filter, Predicate):
        return filter
    schema = with_system_columns(schema)
    if isinstance(filter, pc.Expression):
        return predicate_of(filter, schema, as_arrow=False)
    if isinstance(filter, str):
        return Predicate.parse_sql(filter, schema)
    raise TypeError(f"expected a filter as SQL text or pyarrow.compute.Expression, found {type(filter).__name__}")
