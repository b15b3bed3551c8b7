"""Arguments of commits that callers give by position, as older releases of deltalake had them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from .log.commit import CommitRequest
from .properties import CommitProperties, PostCommitHookProperties

_ORDER = ("commit_properties", "post_commithook_properties")
_Method = TypeVar("_Method", bound=Callable[..., Any])


def commit_request(
    method: str,
    given: tuple[Any, ...],
    commit_properties: CommitProperties | None,
    post_commithook_properties: PostCommitHookProperties | None,
    order: tuple[str, ...] = _ORDER,
) -> CommitRequest:
    """What a caller wants of a commit, by position or by name.

    Args:
        method: The method that was called, for messages.
        given: What was given by position.
        commit_properties: By name.
        post_commithook_properties: By name.
        order: What positions mean.

    Raises:
        TypeError: More than there are, or one of them twice.

    Example:
        >>> from esker.delta.positional import commit_request
        >>> commit_request("delete", (), None, None).properties is None
        True
    """
    named: dict[str, Any] = {
        "commit_properties": commit_properties,
        "post_commithook_properties": post_commithook_properties,
    }
    _take(method, given, named, order, stacklevel=4)
    return CommitRequest(named["commit_properties"], named["post_commithook_properties"])


def with_positional(*order: str) -> Callable[[_Method], _Method]:
    """Lets a method take arguments that go by name alone by position as well, behind all others, with a warning.

    Args:
        order: Their names; those of a commit if not given.

    Example:
        `@with_positional("commit_properties", "post_commithook_properties", "raise_if_key_not_exists")`
    """

    def decorate(method: _Method) -> _Method:
        kinds = [parameter.kind for parameter in inspect.signature(method).parameters.values()]
        count = sum(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)

        @wraps(method)
        def taking(*args: Any, **named: Any) -> Any:
            if len(args) > count:
                _take(method.__name__, args[count:], named, order or _ORDER, stacklevel=3)
            return method(*args[:count], **named)

        return cast(_Method, taking)

    return decorate


def _take(method: str, given: tuple[Any, ...], named: dict[str, Any], order: tuple[str, ...], stacklevel: int) -> None:
    """Puts arguments that are given by position among those that are given by name."""
    if len(given) > len(order):
        raise TypeError(
            f"{method}() takes at most {len(order)} positional commit argument(s), got {len(given)}; give them by name"
        )
    if given:
        warnings.warn(
            f"Passing commit arguments positionally to {method}() is deprecated and will be removed in a future "
            "release. Use keyword arguments instead.",
            DeprecationWarning,
            stacklevel=stacklevel,
        )
    for name, value in zip(order, given, strict=False):
        if named.get(name) is not None:
            raise TypeError(f"{method}() got multiple values for {name!r}; give it once")
        named[name] = value
