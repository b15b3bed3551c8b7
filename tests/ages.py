"""How tests make what lies in a folder older: by the store's clock, which is the only one that counts."""

from __future__ import annotations

import os
from pathlib import Path


def made_older(folder: str | os.PathLike[str], seconds: float) -> None:
    """Moves the times of all files in a folder so far back."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            found = path.stat()
            os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))
