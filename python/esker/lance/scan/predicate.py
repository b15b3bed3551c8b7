"""Converts users' filters (SQL text or pyarrow expressions) to predicates of the Rust core."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Predicate
from ...arrow.predicate import predicate_of
from ...exceptions import InvalidArgumentError
from ..system_columns import with_system_columns

if TYPE_CHECKING:
    Filter: TypeAlias = str | pc.Expression | Predicate
else:
    Filter = Any


def to_predicate(filter: Filter, schema: pa.Schema) -> Predicate:
    """A filter as a predicate over the columns of a table and its system columns.

    Args:
        filter: The text of a WHERE clause, a pyarrow expression, or a predicate that is bound to these columns already.
        schema: The table's columns.

    Raises:
        InvalidArgumentError: The filter does not parse, or has a column that does not exist.
        UnsupportedError: It has a function or a type that the Rust core does not have.

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
        try:
            return Predicate.parse_sql(filter, schema)
        except InvalidArgumentError as error:
            # The words by which callers of pylance tell a wrong filter from other errors.
            unknown = re.match(r"expected a column, found (.+?): there are", str(error))
            which = f"No field named {unknown[1]}: " if unknown else ""
            raise type(error)(f"Invalid user input: {which}{error}", **error.facts) from error
    raise TypeError(f"expected a filter as SQL text or pyarrow.compute.Expression, found {type(filter).__name__}")
