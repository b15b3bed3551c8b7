"""Random conditions over rows of Delta tables: as SQL, as tuples, as expressions of pyarrow, and what they mean."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.fuzzing.delta_rows import Column, RandomRows

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_EXPRESSIONS: dict[str, Callable[[Any, Any], pc.Expression]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Term:
    """A comparison of one column: `in` and `not in` have several values, `is null` and `is not null` none."""

    column: Column
    operator: str
    values: tuple[Any, ...] = ()

    def holds(self, row: dict[str, Any], *, in_sql: bool) -> bool | None:
        """Whether it is true of a row.

        In SQL NaN is above all numbers, and null is unknown in a list; to pyarrow NaN is no number, null is in no list.
        """
        value = row[self.column.name]
        if self.operator == "is null":
            return value is None
        if self.operator == "is not null":
            return value is not None
        if value is None:
            return None if in_sql or self.operator not in ("in", "not in") else False
        if isinstance(value, float) and math.isnan(value):
            if self.operator in (">", ">="):
                return in_sql
            return self.operator in ("!=", "not in")
        if self.operator == "in":
            return value in self.values
        if self.operator == "not in":
            return value not in self.values
        return _COMPARE[self.operator](value, self.values[0])

    def sql(self) -> str:
        """It as SQL; the column in double quotes, as deltalake has them."""
        name = f'"{self.column.name}"'
        if self.operator in ("is null", "is not null"):
            return f"{name} {self.operator}"
        texts = [literal(value) for value in self.values]
        if self.operator in ("in", "not in"):
            return f"{name} {self.operator} ({', '.join(texts)})"
        return f"{name} {self.operator} {texts[0]}"

    def expression(self) -> pc.Expression:
        """It as an expression of pyarrow."""
        field = pc.field(self.column.name)
        if self.operator == "is null":
            return field.is_null()
        if self.operator == "is not null":
            return field.is_valid()
        if self.operator in ("in", "not in"):
            found = field.isin(pa.array(list(self.values), self.column.arrow))
            # Null is in no list here, and in none that is negated.
            return found if self.operator == "in" else ~found & field.is_valid()
        return _EXPRESSIONS[self.operator](field, pa.scalar(self.values[0], self.column.arrow))

    def tuple_(self) -> tuple[str, str, Any] | None:
        """It as deltalake's tuple, if it has one."""
        name = self.column.name
        if self.operator == "is null":
            return (name, "=", None)
        if self.operator == "is not null":
            return (name, "!=", None)
        if any(value == "" for value in self.values):
            # It means null in some places.
            return None
        return (name, self.operator, list(self.values) if self.operator in ("in", "not in") else self.values[0])


@dataclass(frozen=True)
class Condition:
    """Terms: all of each list must hold, of one of the lists; the whole may be negated."""

    lists: tuple[tuple[Term, ...], ...]
    negated: bool = False

    @property
    def columns(self) -> list[Column]:
        """The columns that it reads."""
        return [term.column for terms in self.lists for term in terms]

    def keeps(self, row: dict[str, Any], *, in_sql: bool) -> bool:
        """Whether it is true of a row."""
        found = _any([_all([term.holds(row, in_sql=in_sql) for term in terms]) for terms in self.lists])
        return found is False if self.negated else found is True

    def sql(self) -> str:
        """It as SQL."""
        text = " or ".join("(" + " and ".join(term.sql() for term in terms) + ")" for terms in self.lists)
        return f"not ({text})" if self.negated else text

    def expression(self) -> pc.Expression:
        """It as an expression of pyarrow."""
        whole: Any = None
        for terms in self.lists:
            joined: Any = None
            for term in terms:
                joined = term.expression() if joined is None else joined & term.expression()
            whole = joined if whole is None else whole | joined
        return ~whole if self.negated else whole

    def tuples(self) -> list[list[tuple[str, str, Any]]] | None:
        """It as deltalake's tuples, if it has such."""
        if self.negated:
            return None
        found = [[term.tuple_() for term in terms] for terms in self.lists]
        if any(term is None for terms in found for term in terms):
            return None
        return [[term for term in terms if term is not None] for terms in found]


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def literal(value: Any) -> str:
    """A value as SQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'" if value.tzinfo is None else f"'{value.isoformat()}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"


def random_term(source: RandomRows, columns: list[Column]) -> Term:
    """A comparison of a plain column with a value that rows have, too."""
    column = source.random.choice([column for column in columns if column.plain is not None])
    operator = source.random.choice([*_COMPARE, *_COMPARE, "in", "not in", "is null", "is not null"])
    if operator in ("is null", "is not null"):
        return Term(column, operator)

    def value() -> Any:
        while True:
            found = source.value(column.arrow, 0.0)
            if not (isinstance(found, float) and not math.isfinite(found)):
                return found

    count = source.random.randint(1, 3) if operator in ("in", "not in") else 1
    return Term(column, operator, tuple(value() for _ in range(count)))


def random_condition(source: RandomRows, columns: list[Column]) -> Condition:
    """A condition of a few comparisons."""
    lists = [
        tuple(random_term(source, columns) for _ in range(source.random.choice([1, 1, 2, 3])))
        for _ in range(source.random.choice([1, 1, 2]))
    ]
    return Condition(tuple(lists), source.random.random() < 0.2)
