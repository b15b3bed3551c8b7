"""Text of others on a terminal or in JSON: what is stored must not drive a terminal, nor break a reader of JSON."""

from __future__ import annotations

import math
import re
from typing import Any

# Controls of C0 and C1, which hold the escape sequences; separators that some programs take for line ends; marks that
# turn the direction of what follows; halves of surrogate pairs, which no encoding can print.
_DRIVES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Text as one line that a terminal shows and does not obey.

    Example:
        >>> from esker.cli.terminal_text import printable
        >>> printable("a\x1b[2Jb\n")
        'a\\x1b[2Jb\\n'
    """
    return _DRIVES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """JSON that says the same, without characters that a terminal would obey: they stand within strings only."""
    return _DRIVES.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def without_nan(value: Any) -> Any:
    """A value with the texts "NaN", "Infinity" and "-Infinity" in the place of numbers that JSON does not have.

    Example:
        >>> from esker.cli.terminal_text import without_nan
        >>> without_nan({"x": [float("nan"), 1.0, float("-inf")]})
        {'x': ['NaN', 1.0, '-Infinity']}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    code = ord(char)
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
