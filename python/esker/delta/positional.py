"""Arguments of commits that callers give by position, as older releases of deltalake had them."""

from __future__ import annotations

import warnings
from typing import Any

from .log.commit import CommitRequest
from .properties import CommitProperties, PostCommitHookProperties


def commit_request(
    method: str,
    given: tuple[Any, ...],
    commit_properties: CommitProperties | None,
    post_commithook_properties: PostCommitHookProperties | None,
    order: tuple[str, str] = ("commit_properties", "post_commithook_properties"),
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
    if len(given) > len(order):
        raise TypeError(
            f"{method}() takes at most {len(order)} positional commit argument(s), got {len(given)}; give them by name"
        )
    if given:
        warnings.warn(
            f"Passing commit arguments positionally to {method}() is deprecated and will be removed in a future "
            "release. Use keyword arguments instead.",
            DeprecationWarning,
            stacklevel=3,
        )
    for name, value in zip(order, given, strict=False):
        if named[name] is not None:
            raise TypeError(f"{method}() got multiple values for {name!r}; give it once")
        named[name] = value
    return CommitRequest(named["commit_properties"], named["post_commithook_properties"])
