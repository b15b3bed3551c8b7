"""Names and options of a peer that esker does not have: each raises `UnsupportedError`, with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .exceptions import UnsupportedError


def missing_method(owner: str, name: str, advice: str = "") -> Callable[..., NoReturn]:
    """A method of that name, or the getter of a property, that raises `UnsupportedError`.

    Args:
        owner: The class or the module that it belongs to.
        name: Its name.
        advice: What to do instead.

    Example:
        >>> from esker.missing import missing_method
        >>> missing_method("LanceDataset", "sql", "use DuckDB")(None)
        Traceback (most recent call last):
        ...
        esker.exceptions.UnsupportedError: LanceDataset.sql is not supported yet; use DuckDB
    """
    told = f"{owner}.{name} is not supported yet" + (f"; {advice}" if advice else "")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(told, operation=name)

    refuse.__name__ = name
    refuse.__qualname__ = f"{owner}.{name}"
    refuse.__doc__ = "Raises `UnsupportedError`: not supported yet" + (f"; {advice}." if advice else ".")
    return refuse


def missing_property(owner: str, name: str, advice: str = "") -> property:
    """A property of that name that raises `UnsupportedError`; see `missing_method`."""
    refuse = missing_method(owner, name, advice)
    return property(refuse, doc=refuse.__doc__)


def refuse_options(**options: Any) -> None:
    """Refuses options of a peer that this release does not have, instead of ignoring them.

    Raises:
        UnsupportedError: One of them has a value other than None and False.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"option {name} is not supported yet, leave it out", operation=name)
