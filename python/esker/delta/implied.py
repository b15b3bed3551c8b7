"""What a filter says of single columns, for whatever can only be asked about those: row groups, by their statistics.

Of `a > 3 AND (b = 'x' OR c) AND f(d)` that is `a > 3`. Each row that the filter keeps fulfils every term, so that
nothing is lost by leaving out what does not; rows are filtered by the whole of it all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>`(?:[^`]|``)+`)|(?P<number>-?\d+(?:\.\d+)?(?![\w.]))"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<mark><=|>=|<>|!=|==|=|<|>|\(|\)|,|.))",
    re.DOTALL,
)
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "==": "=="}
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
        >>> from esker.delta.implied import all_of, implied_terms
        >>> all_of(implied_terms("a > 3 and f(b)", pa.schema([("a", pa.int64())])), {"a": "col-1"})
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
        sql: A filter that parses.
        schema: The columns that it is over.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.implied import implied_terms
        >>> [term.operator for term in implied_terms("a BETWEEN 1 AND 3", pa.schema([("a", pa.int64())]))]
        ['>=', '<=']
    """
    tokens = [(str(match.lastgroup), match.group(str(match.lastgroup))) for match in _TOKEN.finditer(sql)]
    return _of_tokens(tokens, schema)


Tokens = list[tuple[str, str]]


def _of_tokens(tokens: Tokens, schema: pa.Schema) -> list[Term]:
    parts: list[Tokens] = [[]]
    depth, between = 0, False
    for kind, text in tokens:
        word = text.lower() if kind == "word" else ""
        if word == "case":
            # What stands in it belongs together; it is not worth more.
            return []
        depth += {"(": 1, ")": -1}.get(text, 0) if kind == "mark" else 0
        if depth == 0 and word == "or":
            return []
        if depth == 0 and word == "between":
            between = True
        elif depth == 0 and word == "and":
            if not between:
                parts.append([])
                continue
            between = False
        parts[-1].append((kind, text))
    if len(parts) > 1:
        return [term for part in parts for term in _of_tokens(part, schema)]
    (only,) = parts
    if len(only) > 2 and only[0] == ("mark", "(") and _closes(only) == len(only) - 1:
        return _of_tokens(only[1:-1], schema)
    return _terms(only, schema)


def _closes(tokens: Tokens) -> int:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {("mark", "("): 1, ("mark", ")"): -1}.get(token, 0)
        if depth == 0:
            return at
    return -1


def _terms(tokens: Tokens, schema: pa.Schema) -> list[Term]:
    words = [text.lower() if kind == "word" else text for kind, text in tokens]
    column = _column(tokens[0], schema) if tokens else None
    if column is None:
        if len(tokens) == 3 and words[1] in _FLIPPED and _column(tokens[2], schema) is not None:
            return _terms([tokens[2], ("mark", _FLIPPED[words[1]]), tokens[0]], schema)
        return []
    kind = schema.field(column).type
    if words[1:] in (["is", "null"], ["is", "not", "null"]):
        return [Term(column, " ".join(words[1:]))]
    if len(tokens) == 3 and words[1] in _FLIPPED:
        return _compared(column, words[1], _value(tokens[2], kind), kind)
    if len(tokens) == 5 and words[1] == "between" and words[3] == "and":
        low, high = _value(tokens[2], kind), _value(tokens[4], kind)
        return [*_compared(column, ">=", low, kind), *_compared(column, "<=", high, kind)]
    if len(tokens) > 4 and words[1:3] == ["in", "("] and words[-1] == ")":
        values = [_value(token, kind) for token in tokens[3:-1:2]]
        if all(mark == "," for mark in words[4:-1:2]) and all(value is not None for value in values):
            return [Term(column, "in", tuple(value for value in values if value is not None))]
    return []


def _compared(column: str, operator: str, value: pa.Scalar | None, kind: pa.DataType) -> list[Term]:
    # NaN is above all numbers here, and in no statistics.
    if value is None or (pa.types.is_floating(kind) and operator.startswith(">")):
        return []
    return [Term(column, operator, (value,))]


def _column(token: tuple[str, str], schema: pa.Schema) -> str | None:
    kind, text = token
    name = text[1:-1].replace("``", "`") if kind == "quoted" else text if kind == "word" else None
    return name if name in schema.names else None


def _value(token: tuple[str, str], kind: pa.DataType) -> pa.Scalar | None:
    """A literal as a value of a type, None where it is none, or where it might mean something else."""
    found, text = token
    types = pa.types
    try:
        if found == "number" and (types.is_integer(kind) or types.is_decimal(kind)):
            number = Decimal(text)
            if types.is_integer(kind):
                return pa.scalar(int(number), kind) if number == int(number) else None
            return pa.scalar(number, kind)
        if found == "number" and types.is_float64(kind):
            return pa.scalar(float(text), kind)
        if found == "text" and types.is_string(kind):
            return pa.scalar(text[1:-1].replace("''", "'"), kind)
        if found == "text" and types.is_date32(kind):
            return pa.scalar(text[1:-1]).cast(kind)
    except (pa.ArrowException, OverflowError, ValueError):
        return None
    return None
