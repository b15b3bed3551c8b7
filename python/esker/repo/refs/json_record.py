"""JSON records of a repository. Anybody with write access may have written them, so that they are checked."""

from __future__ import annotations

import json
from typing import Any

from ...exceptions import CorruptFileError

WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What taking a value apart ends in that is another than it should be."""


def decode_json(data: bytes, path: str, expected: str) -> Any:
    """The value that an object holds.

    Args:
        data: The object's bytes.
        path: The object, for messages.
        expected: What it should be, for messages.

    Raises:
        CorruptFileError: It is no JSON.

    Example:
        >>> from esker.repo.refs.json_record import decode_json
        >>> decode_json(b'{"a": 1}', "x", "a tag")
        {'a': 1}
    """
    try:
        said = json.loads(data)
        if b"\\ud" in data.lower():
            # Half a character is no text that could be written again.
            json.dumps(said, ensure_ascii=False).encode()
        return said
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"{path}: expected {expected}, found no JSON: {error}", path=path) from error
