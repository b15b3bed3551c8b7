"""Single-column terms that a filter implies, by which row groups are skipped: their statistics are per column.

`a > 3 AND (b = 'x' OR c) AND f(d)` implies `a > 3`. Each row that the filter keeps satisfies every term, so that a row
group without such rows can be skipped; the rows of the others are filtered by the whole filter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Predicate

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "=": lambda column, value: column == value,
    "==": lambda column, value: column == value,
}


@dataclass(frozen=True)
class Term:
    """A comparison of one column with values of its type: several for `in`, none for `is null` and `is not null`."""

    column: str
    operator: str
    values: tuple[pa.Scalar, ...] = ()

    def over(self, name: str) -> pc.Expression:
        """It as an expression over a column of that name."""
        field = pc.field(name)
        if self.operator == "is null":
            return field.is_null()
        if self.operator == "is not null":
            return field.is_valid()
        if self.operator == "in":
            listed = field.isin(list(self.values))
            zeros = [value for value in self.values if pa.types.is_floating(value.type) and value.as_py() == 0.0]
            # pyarrow rules out row groups of zeros for a list, as if the zero in it had to have the same sign.
            return listed | (field == zeros[0]) if zeros else listed
        found: pc.Expression = _COMPARE[self.operator](field, self.values[0])
        return found


def all_of(terms: list[Term], names: Mapping[str, str]) -> pc.Expression | None:
    """That all terms hold whose columns have a name; None if there are none.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.implied_terms import all_of, implied_terms
        >>> all_of(implied_terms("a > 3 and abs(a) < 9", pa.schema([("a", pa.int64())])), {"a": "col-1"})
        <pyarrow.compute.Expression (col-1 > 3)>
    """
    whole: pc.Expression | None = None
    for term in terms:
        if term.column in names:
            found = term.over(names[term.column])
            whole = found if whole is None else whole & found
    return whole


def implied_terms(sql: str, schema: pa.Schema) -> list[Term]:
    """The terms that SQL implies.

    Args:
        sql: A filter.
        schema: The columns that it is over.

    Raises:
        InvalidArgumentError: It does not parse, or names no column.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.implied_terms import implied_terms
        >>> [term.operator for term in implied_terms("a BETWEEN 1 AND 3", pa.schema([("a", pa.int64())]))]
        ['>=', '<=']
    """
    return terms_of(Predicate.parse_sql(sql, schema))


def terms_of(predicate: Predicate) -> list[Term]:
    """The terms that a condition implies, as it was parsed.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.expr import Predicate
        >>> from esker.delta.read.implied_terms import terms_of
        >>> predicate = Predicate.parse_sql("a > 1 -- and b = 2", pa.schema([("a", pa.int64())]))
        >>> [term.column for term in terms_of(predicate)]
        ['a']
    """
    return [
        Term(column, operator, () if values is None else tuple(pa.array(values)))
        for column, operator, values in predicate.implied
    ]
