"""Names and options that a peer has and esker has not: each answers with an error that says what to do instead.

A module raises `UnsupportedError`, so that `from esker import tokenize` says why. An attribute of an object raises an
error that is an `AttributeError` too, so that `hasattr` is False and tools that look at all attributes of an object
(inspect, pydoc, debuggers) pass over it. `dir` of a module lists none of these names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .exceptions import UnsupportedError


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute that the peer's objects have and ours have not yet."""


def missing_method(owner: str, name: str, advice: str) -> Callable[..., NoReturn]:
    """A method of that name that raises `UnsupportedError`.

    Args:
        owner: The class, or the module, that a user finds it in.
        name: Its name.
        advice: What to do instead.

    Example:
        >>> from esker.missing import missing_method
        >>> missing_method("LanceDataset", "sql", "use DuckDB")(None)
        Traceback (most recent call last):
        ...
        esker.exceptions.UnsupportedError: LanceDataset.sql is not supported yet; use DuckDB
    """
    told = _told(owner, name, advice)

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(told, operation=name)

    refuse.__name__ = name
    refuse.__qualname__ = f"{owner}.{name}"
    refuse.__doc__ = f"Raises `UnsupportedError`: not supported yet; {advice}."
    return refuse


def missing_property(owner: str, name: str, advice: str) -> property:
    """A property of that name that raises `MissingAttributeError`; see `missing_method`."""
    told = _told(owner, name, advice)

    def refuse(self: object) -> NoReturn:
        raise MissingAttributeError(told, operation=name)

    return property(refuse, doc=f"Raises `UnsupportedError`: not supported yet; {advice}.")


def missing_class(owner: str, name: str, advice: str) -> type:
    """A class of that name that nothing is an instance of; see `missing_method`."""

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(_told(owner, name, advice), operation=name)

    return type(name, (), {"__new__": refuse, "__doc__": f"Raises `UnsupportedError`: not supported yet; {advice}."})


def names_of_peer(module: str, homes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's `__getattr__`: for names that its peer has there, and we have elsewhere or not at all.

    What to do instead of the latter is in `esker.missing_names`, which loads when a name is first missed.

    Args:
        module: The module's `__name__`.
        homes: By name, the module of ours that has it.

    Example:
        >>> from esker.missing import names_of_peer
        >>> find = names_of_peer("esker.udf", {"BatchUDF": "esker.udf"})
        >>> find("BatchUDF").__name__
        'BatchUDF'
        >>> find("BatchUDFCheckpoint")
        Traceback (most recent call last):
        ...
        esker.exceptions.UnsupportedError: esker.udf.BatchUDFCheckpoint is not supported yet; name a file: \
batch_udf(checkpoint_file=...)
    """

    def find(name: str) -> Any:
        if homes is not None and name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        # Python itself asks modules for names with underscores, which no peer has.
        if not name.startswith("_"):
            from .missing_names import NAMES

            if name in NAMES[module]:
                raise UnsupportedError(_told(module, name, NAMES[module][name]), operation=name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def _told(owner: str, name: str, advice: str) -> str:
    return f"{owner}.{name} is not supported yet; {advice}"


def refuse_options(**options: Any) -> None:
    """Refuses options of a peer that this release does not have, rather than ignore what they ask for.

    Raises:
        UnsupportedError: One of them is given.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"option {name} is not supported yet, leave it out", operation=name)
