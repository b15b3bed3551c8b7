"""Docstrings here say `Example:`, griffe's Google style knows `Examples:`: without this, `>>>` becomes a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class DocstringExamples(griffe.Extension):
    """Shows the examples of docstrings as code in the reference pages."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each object that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub("Examples:", obj.docstring.value)
