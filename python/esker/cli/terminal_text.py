"""Escapes stored text for a terminal and for JSON: it must not control the terminal, nor break a reader of JSON."""

from __future__ import annotations

import math
import re
from typing import Any

# Control characters (C0 and C1), which start escape sequences; separators that some programs take for line ends; marks
# that change the direction of text; lone surrogates, which no encoding can print.
_DRIVES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Text as one line, with all characters that control a terminal escaped.

    Example:
        >>> from esker.cli.terminal_text import printable
        >>> printable("a\x1b[2Jb\n")
        'a\\x1b[2Jb\\n'
    """
    return _DRIVES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """The same JSON, with characters that control a terminal escaped. They can only be within its strings."""
    return _DRIVES.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def without_nan(value: Any) -> Any:
    """A value with the texts "NaN", "Infinity" and "-Infinity" for numbers that JSON does not have.

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
