"""Checks the paths of an export: each must be a valid file or object name below the destination."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...exceptions import InvalidArgumentError

MOST_NAME_BYTES = 255
"""What file systems take as the name of a file or a folder."""
MOST_PATH_BYTES = 4096 - 256
"""What systems take as a path, with room for that of the folder."""
MOST_KEY_BYTES = 1024 - 128
"""What object stores take as a name, with room for that of the folder."""
_SHOWN = 3
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KEPT = re.compile(r"\.tmp-[0-9a-fA-F]{32}")


def check_exportable(paths: Iterable[str], destination: str) -> int:
    """Looks whether all paths can be those of files or objects below a destination; how many there are.

    Args:
        paths: The paths, in the order of their bytes.
        destination: The URI, for messages and for what it takes.

    Raises:
        InvalidArgumentError: Some cannot.

    Example:
        >>> from esker.repo.objects.export import check_exportable
        >>> check_exportable(["a", "b/c"], "/out")
        2
    """
    in_folders = "://" not in destination or destination.lower().startswith("file://")
    is_far = not in_folders and not destination.lower().startswith("memory://")
    found: list[str] = []
    wrong = count = 0
    before: list[str] = []
    for path in paths:
        count += 1
        while before and not path.startswith(before[-1]):
            before.pop()
        reason = _reason(path, in_folders)
        if reason is None and is_far and len(path.encode()) > MOST_KEY_BYTES:
            reason = f"it has more than {MOST_KEY_BYTES} bytes"
        if reason is None and in_folders:
            above = next((one for one in before if path[len(one) : len(one) + 1] == "/"), None)
            reason = None if above is None else f"{_shown(above)} is an object, and no folder"
        before.append(path)
        if reason is not None:
            wrong += 1
            if len(found) < _SHOWN:
                found.append(f"{_shown(path)} ({reason})")
    if wrong:
        raise InvalidArgumentError(
            f"{wrong} of {count} paths cannot be written below {destination}: {', '.join(found)}; nothing was "
            "exported: leave them out by a prefix, or copy them to other paths first"
        )
    return count


def _reason(path: str, in_folders: bool) -> str | None:
    names = path.split("/")
    if path.startswith("/"):
        return "it begins with '/'"
    if "" in names:
        return "it has an empty part"
    if "." in names or ".." in names:
        return "it has a part '.' or '..'"
    if _CONTROL.search(path):
        return "it has control characters"
    if any(_KEPT.fullmatch(name) for name in names):
        return "names of this form are kept for files that are still being written"
    if in_folders and (len(path.encode()) > MOST_PATH_BYTES or any(len(n.encode()) > MOST_NAME_BYTES for n in names)):
        return f"it has a part of more than {MOST_NAME_BYTES} bytes, or more than {MOST_PATH_BYTES} bytes in all"
    return None


def _shown(path: str) -> str:
    return repr(path if len(path) <= 80 else path[:80] + "...")
