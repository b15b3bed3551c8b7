"""What a data file says of the encodings of its pages."""

from __future__ import annotations

from pathlib import Path

from esker._native.file import inspect
from esker._native.store import Store


def page_encodings(path: Path) -> str:
    """The encodings of all pages of a file, as text."""
    layout = inspect(Store(str(path.parent)), path.name)
    return " ".join(page.encoding for column in layout.columns for page in column.pages)
