"""Values of an object that are found when they are first asked for, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import cached_property
else:
    _Value = TypeVar("_Value")

    class cached_property(Generic[_Value]):
        """What Python 3.12 has of this name, in all versions: nobody waits while another thread finds the value.

        Those before hold a lock meanwhile, of which a forked child has a copy that nobody gives back. Two threads may
        find the value at once; both get the one that was there first.
        """

        def __init__(self, func: Callable[[Any], _Value]) -> None:
            self._func = func
            self._name = func.__name__
            self.__doc__ = func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object | None, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._func(instance))


__all__ = ["cached_property"]
