"""SQL as deltalake's users write it: double quotes name columns there, as in standard SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...exceptions import EskerError

_COMMENT = re.compile(r"/\*|\*/")
_DOLLARS = re.compile(r"(?<![\w$@#])\$\w*\$")
"""What a text begins with that ends with the same: `$$it's$$`. Names may hold a dollar."""
_UNKNOWN = re.compile(r"expected a (?:column|field[^,]*), found (.+?): there are")


def columns_in_backticks(sql: str) -> str:
    """The same SQL with the names that stand in double quotes in backticks, and without comments.

    Args:
        sql: A filter, a predicate or a constraint. Texts are in single quotes, or in dollars, which become such.

    Example:
        >>> from esker.delta.read.sql_names import columns_in_backticks
        >>> print(columns_in_backticks('"Product.Id" > 3'))
        `Product.Id` > 3
    """
    out: list[str] = []
    at = 0
    while at < len(sql):
        mark = sql[at]
        comment = _comment_end(sql, at)
        if comment is not None:
            # Parts of it are put together in other ways, where a comment would hide what follows.
            out.append(" ")
            at = comment
            continue
        text = _in_dollars(sql, at)
        if text is not None:
            out.append("'" + text[0].replace("'", "''") + "'")
            at = text[1]
            continue
        if mark not in "'\"`":
            out.append(mark)
            at += 1
            continue
        end = at + 1
        while end < len(sql):
            if sql[end] != mark:
                end += 1
            elif sql[end : end + 2] == mark * 2:
                end += 2
            else:
                break
        quoted = sql[at : end + 1]
        if mark == '"' and end < len(sql):
            name = quoted[1:-1].replace('""', '"').replace("`", "``")
            quoted = f"`{name}`"
        out.append(quoted)
        at = end + 1
    return "".join(out)


def _comment_end(sql: str, start: int) -> int | None:
    """Where the comment ends that begins here; None if none does, or if it has no end, which is an error of parsing."""
    if sql.startswith("--", start):
        line = sql.find("\n", start)
        return len(sql) if line < 0 else line
    if not sql.startswith("/*", start):
        return None
    depth = 0
    for mark in _COMMENT.finditer(sql, start):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return mark.end()
    return None


def _in_dollars(sql: str, start: int) -> tuple[str, int] | None:
    """The text in dollars that begins here, and where it ends; None if none does, or if it has no end."""
    opening = _DOLLARS.match(sql, start)
    if opening is None:
        return None
    end = sql.find(opening.group(), opening.end())
    return None if end < 0 else (sql[opening.end() : end], end + len(opening.group()))


@contextmanager
def in_own_words(given: str, sql: str) -> Iterator[None]:
    """Errors of what runs within speak of the SQL as it was given.

    Args:
        given: What the caller wrote.
        sql: What became of it.

    Example:
        >>> from esker.delta.read.sql_names import in_own_words
        >>> from esker.exceptions import InvalidArgumentError
        >>> try:
        ...     with in_own_words('"a" > 3', "`a` > 3"):
        ...         raise InvalidArgumentError("expected a column, found `a` > 3")
        ... except InvalidArgumentError as error:
        ...     print(error)
        expected a column, found "a" > 3
    """
    try:
        yield
    except EskerError as error:
        message = error.message.replace(sql, given) if sql.strip() else error.message
        unknown = _UNKNOWN.search(message)
        if given == sql and unknown is None:
            raise
        if unknown is not None and f'"{unknown[1]}"' in given:
            message += f"; \"{unknown[1]}\" names a column here, write '{unknown[1]}' for the text"
        if unknown is not None:
            # deltalake's words, which programs look for.
            message += f" (No field named {unknown[1]}.)"
        raise type(error)(message, **error.facts) from error
