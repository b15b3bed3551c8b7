"""The parts of a merge's condition: what AND joins, and the two sides of an equality."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<text>'(?:[^']|'')*')
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<operator><=>|<=|>=|<>|!=|==|=|<|>|[()\[\].])
    | (?P<other>\S)
    """,
    re.VERBOSE,
)
_BLURRING = {"and", "or", "not", "is", "in", "like", "ilike", "between", "similar", "rlike", "regexp", "exists"}
_COMPARING = {"<=>", "<=", ">=", "<>", "!=", "<", ">"}


@dataclass(frozen=True)
class Token:
    """A token of SQL, where it is, and how deep in parentheses and CASE expressions."""

    kind: str
    text: str
    start: int
    end: int
    depth: int

    def is_word(self, word: str) -> bool:
        """Whether it is this word, in any case."""
        return self.kind == "word" and self.text.lower() == word


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of SQL in which names are in backticks, texts in single quotes.

    Example:
        >>> from esker.delta.merge.sql_parts import tokens
        >>> [token.text for token in tokens("t.`a b` = 'x'")]
        ['t', '.', '`a b`', '=', "'x'"]
    """
    depth = 0
    before = ""
    for found in _TOKEN.finditer(sql):
        kind, text = str(found.lastgroup), found.group()
        if kind == "word" and (before == "." or sql[found.end() :].lstrip().startswith(".")):
            # `t.end` and `t.and` are columns.
            kind = "name"
        before = text
        closes = text in (")", "]") or (kind == "word" and text.lower() == "end")
        depth -= closes
        yield Token(kind, text, found.start(), found.end(), depth)
        depth += text in ("(", "[") or (kind == "word" and text.lower() == "case")


def conjuncts(sql: str) -> list[str]:
    """The parts that AND joins, all of which must hold.

    Example:
        >>> from esker.delta.merge.sql_parts import conjuncts
        >>> conjuncts("(t.a = s.a AND t.b BETWEEN 1 AND 3) AND s.c IN (1, 2)")
        ['t.a = s.a', 't.b BETWEEN 1 AND 3', 's.c IN (1, 2)']
    """
    found = list(tokens(sql))
    if len(found) > 1 and found[0].text == "(" and found[-1].text == ")":
        inside = found[1:-1]
        if all(token.depth > 0 for token in inside):
            return conjuncts(sql[found[0].end : found[-1].start])
    parts, start, between = [], 0, False
    for token in found:
        if token.depth:
            continue
        if token.is_word("or"):
            return [sql.strip()]
        if token.is_word("between"):
            between = True
        elif token.is_word("and") and between:
            between = False
        elif token.is_word("and"):
            parts.append(sql[start : token.start])
            start = token.end
    parts.append(sql[start:])
    if len(parts) == 1:
        return [sql.strip()]
    return [inner for part in parts for inner in conjuncts(part)]


def sides(sql: str) -> tuple[str, str] | None:
    """Both sides of an equality; None if it is something else.

    Example:
        >>> from esker.delta.merge.sql_parts import sides
        >>> sides("t.a = lower(s.b)"), sides("t.a = 1 OR s.b = 2"), sides("t.a <= s.b")
        (('t.a', 'lower(s.b)'), None, None)
    """
    equal = []
    for token in tokens(sql):
        if token.depth:
            continue
        if token.text in _COMPARING or (token.kind == "word" and token.text.lower() in _BLURRING):
            return None
        if token.text in ("=", "=="):
            equal.append(token)
    if len(equal) != 1:
        return None
    return sql[: equal[0].start].strip(), sql[equal[0].end :].strip()


def names_column(sql: str, column: str) -> bool:
    """Whether SQL is the name of a column alone, with or without the alias of its table.

    Of a field in a column of the same name, `a.a`, it is not known here.

    Example:
        >>> from esker.delta.merge.sql_parts import names_column
        >>> names_column("t.`a b`", "a b"), names_column("t.a + 1", "a"), names_column("not t.a", "a")
        (True, False, False)
    """
    found = list(tokens(sql))
    kinds = [token.kind in ("word", "name") for token in found]
    if kinds != [True] and not (kinds == [True, False, True] and found[1].text == "."):
        return False
    return bare(found[-1].text).lower() == column.lower()


def without_alias(sql: str, alias: str) -> str:
    """The same SQL with names that have no alias any more.

    Example:
        >>> from esker.delta.merge.sql_parts import without_alias
        >>> without_alias("t.day > '2024-01-01' AND `t`.n = 1", "t")
        "day > '2024-01-01' AND n = 1"
    """
    out, start, before = [], 0, ""
    found = list(tokens(sql))
    for token, after in zip(found, [*found[1:], None], strict=True):
        is_alias = token.kind in ("word", "name") and bare(token.text).lower() == alias.lower()
        if is_alias and before != "." and after is not None and after.text == ".":
            out.append(sql[start : token.start])
            start = after.end
        before = token.text
    return "".join([*out, sql[start:]])


def bare(name: str) -> str:
    """A name without its quotes.

    Example:
        >>> from esker.delta.merge.sql_parts import bare
        >>> bare("`a b`"), bare('"x"'), bare("y")
        ('a b', 'x', 'y')
    """
    if len(name) > 1 and name[0] == name[-1] and name[0] in '`"':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name
