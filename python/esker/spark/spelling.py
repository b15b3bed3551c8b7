"""Names in options in the spelling of the table: case does not tell columns apart, as in Spark by default."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["list_of_names", "spelled_as", "spelled_sql"]

_WORDS = re.compile(
    r"--[^\n]*|/\*[\s\S]*?\*/"
    r"|'(?:[^']|'')*'"
    r'|"(?P<quoted>(?:[^"]|"")*)"'
    r"|`(?P<ticked>(?:[^`]|``)+)`"
    r"|(?P<dotted>\.\s*)?(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?P<called>\s*\()?"
)


def list_of_names(given: str | Sequence[str]) -> list[str]:
    """Names of columns as a list. A text is the name of one, not of one for each of its letters.

    Example:
        >>> from esker.spark.spelling import list_of_names
        >>> list_of_names("id"), list_of_names(("id", "s"))
        (['id'], ['id', 's'])
    """
    return [given] if isinstance(given, str) else list(given)


def spelled_as(found: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of columns in the spelling of a table: case does not tell them apart, as in Spark by default.

    Args:
        found: The names in a DataFrame. One that the table has exactly stays, and so does one that fits several.
        known: The names in the table.

    Example:
        >>> from esker.spark.spelling import spelled_as
        >>> spelled_as(["ID", "new", "s"], ["id", "s"])
        ['id', 'new', 's']
    """
    exact, alike = set(found), Counter(name.lower() for name in found)
    near: dict[str, list[str]] = {}
    for each in known:
        near.setdefault(each.lower(), []).append(each)
    made = []
    for name in found:
        fits = near.get(name.lower(), [])
        is_clear = len(fits) == 1 and alike[name.lower()] == 1 and fits[0] not in exact
        made.append(fits[0] if is_clear else name)
    return made


def spelled_sql(sql: str, known: Sequence[str], *, quotes_names: bool = False) -> str:
    """A filter with the names of its columns in the spelling of a table.

    Texts, comments, names of functions and fields of structs stay as they are, and so do words that fit no column or
    several.

    Args:
        sql: The filter.
        known: The names in the table.
        quotes_names: Whether double quotes name a column, as for Delta tables; for Lance tables they hold a text.

    Example:
        >>> from esker.spark.spelling import spelled_sql
        >>> spelled_sql("ID > 3 AND s = 'ID' AND abs(`Id`) < 9", ["id", "s"])
        "id > 3 AND s = 'ID' AND abs(`id`) < 9"
    """
    exact = set(known)
    near: dict[str, str | None] = {}
    for name in known:
        near[name.lower()] = None if name.lower() in near else name

    def spelled(name: str) -> str:
        return name if name in exact else near.get(name.lower()) or name

    def written(match: re.Match[str]) -> str:
        if match["ticked"] is not None:
            name = spelled(match["ticked"].replace("``", "`"))
            return f"`{name.replace('`', '``')}`"
        if match["quoted"] is not None and quotes_names:
            name = spelled(match["quoted"].replace('""', '"'))
            return '"{}"'.format(name.replace('"', '""'))
        word = match["word"]
        if word is None or match["dotted"] is not None or match["called"] is not None:
            return match[0]
        name = spelled(word)
        plain = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"
        return plain if name != word else match[0]

    return _WORDS.sub(written, sql)
