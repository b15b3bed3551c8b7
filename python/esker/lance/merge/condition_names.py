"""Names without a side in conditions of merges: `w > 2` is `target.w > 2` where only the table has a column `w`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIDES = {"source", "target"}
# Texts, comments, quoted names, plain names. In conditions double quotes hold texts, except behind a dot.
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`|[^\W\d]\w*", re.DOTALL)


def with_sides(condition: str, source: Sequence[str], target: Sequence[str]) -> str:
    """The condition with the side before each column that only one side has, as pylance looks them up.

    Args:
        condition: SQL.
        source: The columns of the source.
        target: The columns of the table.

    Example:
        >>> from esker.lance.merge.condition_names import with_sides
        >>> with_sides("w > 2 AND source.id < id AND _rowid > 7", ["id", "v"], ["id", "w", "_rowid"])
        'target.w > 2 AND source.id < id AND target._rowid > 7'
    """
    left, right = ({name.casefold() for name in side} for side in (source, target))

    def qualified(found: re.Match[str]) -> str:
        text = found.group()
        if text[0] in "'\"-/":
            return text
        name = (text[1:-1].replace("``", "`") if text[0] == "`" else text).casefold()
        before, after = condition[: found.start()].rstrip(), condition[found.end() :].lstrip()
        # Behind a dot is a field, before a bracket a function, before a text a type: `date '2024-01-01'`.
        if before.endswith(".") or after.startswith(("(", "'")) or (name in _SIDES and after.startswith(".")):
            return text
        if (name in left) == (name in right):
            return text
        return f"{'source' if name in left else 'target'}.{text}"

    return _TOKEN.sub(qualified, condition)
