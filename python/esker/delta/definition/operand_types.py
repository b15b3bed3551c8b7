"""Expressions in a table's metadata whose values differ from Spark's by the types of their operands. They are refused.

What differs, where names and functions are the same:

| here | in Spark |
|---|---|
| `0.1` is a double | a decimal: beside integers and decimals sums and products are exact |
| `float` beside an integer or a decimal is a `float` | a `double` |
| decimals keep their scale beyond 38 digits | they lose digits behind the point |
| a double becomes a decimal by its binary value | by its shortest text |
| `x % 0.0` is NaN | null, or an error |
| floats and times as texts, in `||`, `length`, `LIKE`, `upper` and `lower` | spelled in another way |
| `length` of bytes counts characters | bytes |
| the difference of two days or times is a number | an interval |

The texts are taken apart once more, with Spark's types. What is not understood here is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from ...exceptions import UnsupportedError

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>`[^`]+`)
    |(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)(?![A-Za-z_0-9])
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)|(?P<mark><=>|<<|>>|\|\||<>|!=|<=|>=|==|[-+*%=<>(),.|&^]))""",
    re.VERBOSE,
)
_COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The digits of integers by their bits, as Spark makes decimals of them."""
_MOST_DIGITS = 38
_EXACT_DIGITS = 15
"""The digits that a double keeps."""
_LEAST_BEYOND = 18
"""The digits that an integer of 64 bits has room for, whatever they are."""
_NAMED = {
    **dict.fromkeys(["tinyint", "byte"], ("integer", 3)),
    **dict.fromkeys(["smallint", "short"], ("integer", 5)),
    **dict.fromkeys(["int", "integer"], ("integer", 10)),
    **dict.fromkeys(["bigint", "long"], ("integer", 20)),
    **dict.fromkeys(["string", "varchar", "char"], ("text", 0)),
    "float": ("float", 0),
    "double": ("double", 0),
    "boolean": ("boolean", 0),
    "binary": ("binary", 0),
    "date": ("date", 0),
    "timestamp": ("time", 0),
    "timestamp_ntz": ("time", 0),
}
_FLOATS = frozenset({"float", "double"})
_EXACT = frozenset({"integer", "decimal"})
_NUMBERS = _FLOATS | _EXACT
_DAYS = frozenset({"date", "time"})


@dataclass(frozen=True)
class _Kind:
    """A type to Spark.

    Args:
        name: What it is; empty if that is not known.
        digits: Of integers and decimals.
        scale: Those behind the point.
        is_fraction: Whether it comes from a literal with a point, which is a double here.
        is_literal: Whether it is a literal.
        is_zero: Whether it is zero.
        is_rounded: Whether no double has its value, nor digits enough.
    """

    name: str = ""
    digits: int = 0
    scale: int = 0
    is_fraction: bool = False
    is_literal: bool = False
    is_zero: bool = False
    is_rounded: bool = False


_UNKNOWN = _Kind()
_TEXT = _Kind("text")
_BOOLEAN = _Kind("boolean")


class _NotUnderstoodError(Exception):
    """The text has parts that are not judged."""


def check_operands(sql: str, schema: pa.Schema, where: str) -> None:
    """Raises if an expression that this release evaluates has other values in Spark.

    Args:
        sql: The expression.
        schema: The table's columns.
        where: What has it, for the message.

    Raises:
        UnsupportedError: It names the part that differs.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.definition.operand_types import check_operands
        >>> check_operands("n + 1 > 0.5", pa.schema([("n", pa.int64())]), "constraint 'a'")
    """
    try:
        _Judge(sql, schema, where).judge()
    except (_NotUnderstoodError, RecursionError):
        return


class _Judge:
    """Reads an expression from its start to its end, and the types of its parts with it."""

    def __init__(self, sql: str, schema: pa.Schema, where: str) -> None:
        self._sql = sql
        self._columns = {field.name: field.type for field in schema}
        self._where = where
        self._tokens: list[tuple[str, str, int, int]] = []
        self._at = 0
        end = 0
        while sql[end:].strip():
            found = _TOKEN.match(sql, end)
            if found is None or found.lastgroup is None:
                raise _NotUnderstoodError
            kind = found.lastgroup
            self._tokens.append((kind, found.group(kind), found.start(kind), found.end(kind)))
            end = found.end()

    def judge(self) -> None:
        self._either()
        if self._at < len(self._tokens):
            raise _NotUnderstoodError

    def _is(self, *words: str) -> bool:
        """Whether these come next."""
        coming = self._tokens[self._at : self._at + len(words)]
        return len(coming) == len(words) and all(
            kind in ("word", "mark") and text.lower() == word
            for (kind, text, _, _), word in zip(coming, words, strict=True)
        )

    def _take(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self._at += len(words)
        return True

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            raise _NotUnderstoodError

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise _NotUnderstoodError
        kind, text, _, _ = self._tokens[self._at]
        self._at += 1
        return kind, text

    def _refuse_if(self, differs: bool, start: int) -> None:
        if differs:
            part = self._sql[self._tokens[start][2] : self._tokens[self._at - 1][3]]
            raise UnsupportedError(
                f"{self._where}: this release does not evaluate {part} as Spark does, in {self._sql!r}; "
                "write with another writer"
            )

    def _either(self) -> _Kind:
        found = self._both()
        while self._take("or"):
            self._both()
            found = _BOOLEAN
        return found

    def _both(self) -> _Kind:
        found = self._negated()
        while self._take("and"):
            self._negated()
            found = _BOOLEAN
        return found

    def _negated(self) -> _Kind:
        if self._take("not"):
            self._negated()
            return _BOOLEAN
        return self._condition()

    def _condition(self) -> _Kind:
        start = self._at
        left = self._bits()
        while self._at < len(self._tokens):
            kind, text, _, _ = self._tokens[self._at]
            if kind == "mark" and text in _COMPARISONS:
                self._at += 1
                others = [self._bits()]
            elif self._take("is"):
                self._take("not")
                if self._take("distinct", "from"):
                    others = [self._bits()]
                elif self._take("null") or self._take("true") or self._take("false"):
                    others = []
                else:
                    raise _NotUnderstoodError
            else:
                before = self._at
                self._take("not")
                if self._take("between"):
                    low = self._bits()
                    self._need("and")
                    others = [low, self._bits()]
                elif self._take("in"):
                    self._need("(")
                    others = self._list()
                elif self._take("like") or self._take("ilike"):
                    self._bits()
                    if self._take("escape"):
                        self._next()
                    self._refuse_if(_is_spelled_otherwise(left), start)
                    others = []
                elif self._take("similar"):
                    self._refuse_if(True, start)
                else:
                    self._at = before
                    return left
            self._refuse_if(_compares_otherwise([left, *others]), start)
            left = _BOOLEAN
        return left

    def _bits(self) -> _Kind:
        start = self._at
        found = self._sum()
        while self._is("|") or self._is("&") or self._is("^") or self._is("<<") or self._is(">>"):
            shifts = self._next()[1] in ("<<", ">>")
            self._sum()
            self._refuse_if(shifts, start)
            found = _UNKNOWN
        return found

    def _sum(self) -> _Kind:
        start = self._at
        found = self._product()
        while self._is("+") or self._is("-") or self._is("||"):
            mark = self._next()[1]
            other = self._product()
            if mark == "||":
                self._refuse_if(_is_spelled_otherwise(found) or _is_spelled_otherwise(other), start)
                found = _TEXT if (found.name, other.name) != ("binary", "binary") else found
            else:
                self._refuse_if(mark == "-" and found.name in _DAYS and other.name in _DAYS, start)
                found = self._computed(mark, found, other, start)
        return found

    def _product(self) -> _Kind:
        start = self._at
        found = self._signed()
        while self._is("*") or self._is("%"):
            mark = self._next()[1]
            found = self._computed(mark, found, self._signed(), start)
        return found

    def _computed(self, mark: str, left: _Kind, right: _Kind, start: int) -> _Kind:
        """What a sum, a product or a remainder is of."""
        names = {left.name, right.name}
        if not names <= _NUMBERS:
            return left if left.name in _DAYS else right if right.name in _DAYS else _UNKNOWN
        if names & _FLOATS:
            self._refuse_if(names != {"float"} and "float" in names and not _are_doubles(left, right), start)
            # By zero.
            self._refuse_if(mark == "%" and not (right.is_literal and not right.is_zero), start)
            return _Kind("float" if names == {"float"} else "double")
        self._refuse_if(left.is_fraction or right.is_fraction, start)
        if names == {"integer"}:
            return _Kind("integer", max(left.digits, right.digits))
        whole = (left.digits - left.scale, right.digits - right.scale)
        scale = max(left.scale, right.scale)
        digits = max(whole) + scale + 1
        if mark == "*":
            digits, scale = left.digits + right.digits + 1, left.scale + right.scale
        elif mark == "%":
            digits = min(whole) + scale
        self._refuse_if(digits > _MOST_DIGITS and scale > 0, start)
        return _Kind("decimal", min(digits, _MOST_DIGITS), scale)

    def _signed(self) -> _Kind:
        start = self._at
        if self._take("-") or self._take("+"):
            found = self._signed()
            self._refuse_if(found.name in _DAYS, start)
            return found
        return self._primary()

    def _primary(self) -> _Kind:
        start = self._at
        kind, text = self._next()
        if kind == "text":
            return replace(_TEXT, is_literal=True)
        if kind == "number":
            return _literal(text)
        if (kind, text) == ("mark", "("):
            found = self._either()
            self._need(")")
            return found
        if kind == "mark":
            raise _NotUnderstoodError
        word = text.lower() if kind == "word" else ""
        if word in ("null", "true", "false"):
            return _Kind("null") if word == "null" else _BOOLEAN
        if word == "case":
            return self._case(start)
        if word and self._take("("):
            return self._cast(start) if word == "cast" else self._call(word, start)
        if word and self._at < len(self._tokens) and self._tokens[self._at][0] == "text":
            # `date '2020-01-01'`, or the bytes of `X'41'`.
            self._at += 1
            return _Kind({"date": "date", "timestamp": "time"}.get(word, ""))
        return self._column(text)

    def _column(self, first: str) -> _Kind:
        found = _found(self._columns, first)
        while self._take("."):
            fields = list(found) if pa.types.is_struct(found) else []
            found = _found({field.name: field.type for field in fields}, self._next()[1])
        return _of_type(found)

    def _list(self) -> list[_Kind]:
        """The arguments up to the parenthesis that ends them."""
        found = [self._either()]
        while self._take(","):
            found.append(self._either())
        self._need(")")
        return found

    def _call(self, name: str, start: int) -> _Kind:
        given = self._list()
        if name in ("length", "upper", "lower"):
            self._refuse_if(any(map(_is_spelled_otherwise, given)), start)
            self._refuse_if(name == "length" and given[0].name == "binary", start)
            return _TEXT if name != "length" else _Kind("integer", 10)
        if name == "coalesce":
            return self._one_of(given, start)
        return replace(given[0], is_literal=False) if name == "abs" else _UNKNOWN

    def _case(self, start: int) -> _Kind:
        asked = None if self._is("when") else self._either()
        given = []
        while self._take("when"):
            wanted = self._either()
            if asked is not None:
                self._refuse_if(_compares_otherwise([asked, wanted]), start)
            self._need("then")
            given.append(self._either())
        if self._take("else"):
            given.append(self._either())
        self._need("end")
        return self._one_of(given, start)

    def _one_of(self, given: Sequence[_Kind], start: int) -> _Kind:
        """What values are of that come from several expressions."""
        known = [kind for kind in given if kind.name != "null"]
        names = {kind.name for kind in known}
        if not known or "" in names:
            return _UNKNOWN
        self._refuse_if("text" in names and bool(names & _NUMBERS), start)
        if not names <= _NUMBERS:
            return _Kind(known[0].name) if len(names) == 1 else _UNKNOWN
        exact = [kind for kind in known if kind.name in _EXACT and not kind.is_fraction]
        if names & _FLOATS:
            self._refuse_if("float" in names and any(kind.name == "decimal" for kind in exact), start)
            return _Kind("double" if names != {"float"} else "float")
        if any(kind.is_fraction for kind in known):
            is_long = any(kind.name == "integer" and kind.digits > _EXACT_DIGITS for kind in exact)
            self._refuse_if(is_long or (bool(exact) and any(kind.is_rounded for kind in known)), start)
            return _Kind("decimal", is_fraction=True)
        if names == {"integer"}:
            return _Kind("integer", max(kind.digits for kind in known))
        scale = max(kind.scale for kind in known)
        digits = max(kind.digits - kind.scale for kind in known) + scale
        self._refuse_if(digits > _MOST_DIGITS, start)
        return _Kind("decimal", digits, scale)

    def _cast(self, start: int) -> _Kind:
        given = self._either()
        self._need("as")
        name = self._next()[1].lower()
        sizes = []
        if self._take("("):
            sizes = [int(self._number())]
            while self._take(","):
                sizes.append(int(self._number()))
            self._need(")")
        self._need(")")
        if name in ("decimal", "dec", "numeric"):
            # Without digits it has ten of them in Spark.
            self._refuse_if(not sizes or given.name in _FLOATS, start)
            made = _Kind("decimal", sizes[0], sizes[1] if len(sizes) > 1 else 0)
            self._refuse_if(given.is_fraction and not (given.is_literal and given.scale <= made.scale), start)
            return made
        made = _Kind(*_NAMED.get(name, ("", 0)))
        self._refuse_if(made.name == "binary" and given.name not in ("binary", "text", "null", ""), start)
        return made

    def _number(self) -> str:
        kind, text = self._next()
        if kind != "number" or not text.isdigit():
            raise _NotUnderstoodError
        return text


def _found(fields: Mapping[str, pa.DataType], written: str) -> pa.DataType:
    """The type of a column, or of a field, as it is written, in any case."""
    name = written.strip("`")
    if name in fields:
        return fields[name]
    matching = [kind for known, kind in fields.items() if known.lower() == name.lower()]
    if len(matching) != 1:
        raise _NotUnderstoodError
    return matching[0]


def _literal(text: str) -> _Kind:
    if "e" in text.lower():
        return _Kind("double", is_literal=True, is_zero=float(text) == 0)
    whole, point, behind = text.partition(".")
    digits = len(whole.lstrip("0")) + len(behind)
    # An integer of more than 64 bits is a decimal there.
    is_large = not point and int(text) >= 1 << 63
    is_fraction = bool(point) or is_large
    is_rounded = is_fraction and digits > _EXACT_DIGITS and Decimal(float(text)) != Decimal(text)
    return _Kind(
        "decimal" if is_fraction else "integer",
        max(digits, 1),
        len(behind),
        is_fraction,
        is_literal=True,
        is_zero=float(text) == 0,
        is_rounded=is_rounded,
    )


def _of_type(kind: pa.DataType) -> _Kind:
    if pa.types.is_integer(kind):
        return _Kind("integer", _DIGITS[kind.bit_width])
    if pa.types.is_decimal(kind):
        return _Kind("decimal", kind.precision, kind.scale)
    tests = {
        "float": pa.types.is_float32(kind),
        "double": pa.types.is_float64(kind),
        "text": pa.types.is_string(kind),
        "binary": pa.types.is_binary(kind),
        "boolean": pa.types.is_boolean(kind),
        "date": pa.types.is_date(kind),
        "time": pa.types.is_timestamp(kind),
    }
    return next((_Kind(name) for name, is_it in tests.items() if is_it), _UNKNOWN)


def _is_spelled_otherwise(kind: _Kind) -> bool:
    """Whether its text is another one in Spark."""
    return kind.name in _FLOATS or kind.name == "time" or (kind.is_fraction and not kind.is_literal)


def _are_doubles(left: _Kind, right: _Kind) -> bool:
    """Whether a number beside a `float` makes both doubles here, too."""
    return any(kind.name == "double" or kind.is_fraction for kind in (left, right))


def _compares_otherwise(kinds: Sequence[_Kind]) -> bool:
    names = {kind.name for kind in kinds}
    if names & _DAYS and names & _NUMBERS:
        # An error there.
        return True
    if "integer" in names and any(kind.is_fraction and kind.digits - kind.scale > _LEAST_BEYOND for kind in kinds):
        # Nulls are smaller there, too, than what is larger than every integer.
        return True
    is_exact = any(kind.name in _EXACT and not kind.is_fraction for kind in kinds)
    return is_exact and any(kind.is_rounded for kind in kinds)
