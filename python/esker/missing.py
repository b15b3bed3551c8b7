"""Names and options of a peer that esker does not have: each raises an error that says what to do instead.

What is raised is an `UnsupportedError` that is an `AttributeError` too, so that `hasattr` is False, `getattr` takes its
default, and tools that look at all attributes of objects or modules (inspect, pydoc, debuggers, pickle) pass over such
names. Only `from esker import tokenize` gets an `UnsupportedError` alone: Python would replace an `AttributeError` by
an `ImportError` that says nothing of what to do. `dir` of a module lists none of these names.
"""

from __future__ import annotations

import difflib
import importlib
import opcode
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from .exceptions import InvalidTypeError, UnsupportedError


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute of the peer's objects that ours do not have yet."""


_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def missing_from_module(told: str, name: str) -> UnsupportedError:
    """The error for a name that a module lacks, to be raised by its `__getattr__`.

    Args:
        told: The message.
        name: The name.
    """
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "esker":
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:
        # An import asks a package by `importlib._bootstrap._handle_fromlist`, and any module by its own instruction.
        asked_by = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else None
        if frame.f_globals.get("__name__") == "importlib._bootstrap" or asked_by == _IMPORT_FROM:
            return UnsupportedError(told, operation=name)
    return MissingAttributeError(told, operation=name)


def missing_method(owner: str, name: str, advice: str) -> Callable[..., NoReturn]:
    """A method of that name that raises `UnsupportedError`.

    Args:
        owner: The class or the module that it belongs to.
        name: Its name.
        advice: What to do instead.

    Example:
        >>> from esker.missing import missing_method
        >>> missing_method("LanceDataset", "join", "use DuckDB")(None)
        Traceback (most recent call last):
        ...
        esker.exceptions.UnsupportedError: LanceDataset.join is not supported yet; use DuckDB
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
    """A class of that name without instances: its constructor raises `UnsupportedError`; see `missing_method`."""

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(_told(owner, name, advice), operation=name)

    return type(name, (), {"__new__": refuse, "__doc__": f"Raises `UnsupportedError`: not supported yet; {advice}."})


def names_of_peer(module: str, homes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's `__getattr__` for names of its peer that esker has in another module or not at all.

    The advice for missing names is in `esker.missing_names`, which is imported when it is first needed.

    Args:
        module: The module's `__name__`.
        homes: Our module of each name that esker has elsewhere.

    Example:
        >>> from esker.missing import names_of_peer
        >>> find = names_of_peer("esker.udf", {"BatchUDF": "esker.udf"})
        >>> find("BatchUDF").__name__
        'BatchUDF'
        >>> find("BatchUDFCheckpoint")
        Traceback (most recent call last):
        ...
        esker.missing.MissingAttributeError: esker.udf.BatchUDFCheckpoint is not supported yet; name a file: \
batch_udf(checkpoint_file=...)
    """

    def find(name: str) -> Any:
        if homes is not None and name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        # Python itself looks up names with underscores in modules; no peer has such names.
        if not name.startswith("_"):
            from .missing_names import NAMES

            if name in NAMES[module]:
                raise missing_from_module(_told(module, name, NAMES[module][name]), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def _told(owner: str, name: str, advice: str) -> str:
    return f"{owner}.{name} is not supported yet; {advice}"


def refuse_options(**options: Any) -> None:
    """Refuses options of a peer that this release does not have, instead of ignoring them.

    Raises:
        UnsupportedError: One of them has a value other than None and False.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"option {name} is not supported yet, leave it out", operation=name)


def refuse_arguments(
    call: str, given: Mapping[str, Any], known: Collection[str], of_peer: Collection[str] = frozenset()
) -> None:
    """Refuses arguments that a function with `**options` does not have.

    Args:
        call: The name of the function.
        given: What it was called with.
        known: The names that it has.
        of_peer: The names that only the peer has, which this release does not have yet.

    Raises:
        InvalidTypeError: Nobody has an argument of that name: it is misspelt.
        UnsupportedError: The peer has it, and it has a value other than None and False.

    Example:
        >>> from esker.missing import refuse_arguments
        >>> refuse_arguments("write_dataset", {"max_row_per_file": 8}, {"max_rows_per_file", "durable"})
        Traceback (most recent call last):
        ...
        esker.exceptions.InvalidTypeError: write_dataset() got an unexpected keyword argument 'max_row_per_file', \
did you mean 'max_rows_per_file'?
    """
    for name, value in given.items():
        if name in known:
            continue
        if name not in of_peer:
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(sorted(known))}"
            raise InvalidTypeError(f"{call}() got an unexpected keyword argument {name!r}, {advice}", found=name)
        refuse_options(**{name: value})
