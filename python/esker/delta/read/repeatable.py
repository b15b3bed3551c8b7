"""Predicates of rows that change: asked for files, for rows and for those that stay, with one answer."""

from __future__ import annotations

import re

from ...exceptions import InvalidArgumentError
from .sql_names import columns_in_backticks

_CHANCE = re.compile(
    r"'(?:[^']|'')*'|`(?:[^`]|``)*`"
    r"|(?<![\w.])(?P<name>rand|random|uuid|input_file_name|file_row_index)\s*\(",
    re.IGNORECASE,
)


def check_repeatable(sql: str) -> None:
    """Raises if a predicate is another one each time that it is asked. Of the time of day it may be.

    Args:
        sql: The predicate.

    Raises:
        InvalidArgumentError: It has a function of chance.

    Example:
        >>> from esker.delta.read.repeatable import check_repeatable
        >>> check_repeatable("day < current_date and name <> 'random()'")
    """
    for found in _CHANCE.finditer(columns_in_backticks(sql)):
        name = found["name"]
        if name is not None:
            raise InvalidArgumentError(
                f"expected a predicate that means the same rows each time, found {name}() in {sql!r}; give a column "
                f"its values first, with update (Find files predicate contains nondeterministic function {name})"
            )
