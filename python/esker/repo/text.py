"""Text of users that a repository stores: any that can be written as UTF-8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exceptions import InvalidArgumentError


def check_text(value: Any, what: str) -> str:
    """A text, checked.

    Args:
        value: The text.
        what: What it is, for messages.

    Raises:
        InvalidArgumentError: It is no text, or half a character that no file could hold.

    Example:
        >>> from esker.repo.text import check_text
        >>> check_text("a\u2028b", "a message")
        'a\u2028b'
    """
    if not isinstance(value, str):
        raise InvalidArgumentError(f"expected {what} as str, found {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"expected {what} that can be written as UTF-8, found half a character at {error.start} of {value[:80]!r}; "
            "decode it with errors='replace' first"
        ) from error
    return value


def check_pairs(pairs: Mapping[str, str] | None, what: str) -> dict[str, str]:
    """Keys and values, checked.

    Args:
        pairs: The keys with their values; None for none.
        what: What they are, for messages.

    Raises:
        InvalidArgumentError: They are no texts.

    Example:
        >>> from esker.repo.text import check_pairs
        >>> check_pairs({"job": "17"}, "metadata")
        {'job': '17'}
    """
    if pairs is None:
        return {}
    if not isinstance(pairs, Mapping):
        raise InvalidArgumentError(f"expected {what} as a mapping of str to str, found {type(pairs).__name__}")
    return {
        check_text(key, f"a key of {what}"): check_text(value, f"a value of {what}") for key, value in pairs.items()
    }
