"""Paths to fields: names with dots between them, in backticks where they hold dots themselves."""

from __future__ import annotations

from collections.abc import Container, Iterable


def parts_of(path: str) -> list[str]:
    """The names along a path.

    Backticks quote one, in which two stand for one; what is quoted wrongly is split at every dot.

    Example:
        >>> from esker.arrow.paths import parts_of
        >>> parts_of("s.`a.b`.`x``y`")
        ['s', 'a.b', 'x`y']
    """
    if "`" not in path:
        return path.split(".")
    parts, rest = [], path
    while True:
        if rest.startswith("`"):
            found = _unquoted(rest[1:])
            if found is None:
                break
            part, after = found
        else:
            part, dot, after = rest.partition(".")
            after = dot + after
        parts.append(part)
        if not after:
            return parts
        if not after.startswith("."):
            break
        rest = after[1:]
    return [part.strip("`") for part in path.split(".")]


def _unquoted(quoted: str) -> tuple[str, str] | None:
    """The name up to the backtick that ends it, and what follows that."""
    name = ""
    while True:
        before, tick, behind = quoted.partition("`")
        if not tick:
            return None
        name += before
        if not behind.startswith("`"):
            return name, behind
        name, quoted = name + "`", behind[1:]


def names_along(path: str, columns: Container[str]) -> list[str]:
    """The names along a path from one of some columns, of which one that is called as the path is found whole first.

    Example:
        >>> from esker.arrow.paths import names_along
        >>> names_along("a.b", ["a", "a.b"]), names_along("a.c", ["a", "a.b"])
        (['a.b'], ['a', 'c'])
    """
    return [path] if path in columns else parts_of(path)


def path_of(parts: Iterable[str]) -> str:
    """The path along some names: one spelling for each.

    Example:
        >>> from esker.arrow.paths import path_of
        >>> path_of(["s", "a.b"])
        's.`a.b`'
    """
    return ".".join(quoted(part) if "." in part or "`" in part else part for part in parts)


def quoted(name: str) -> str:
    """A name in backticks, as SQL has it.

    Example:
        >>> from esker.arrow.paths import quoted
        >>> quoted("x`y")
        '`x``y`'
    """
    return "`" + name.replace("`", "``") + "`"
