"""What a log entry must be, so that a branch may take it: all that it refers to lies on the branch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ..._native.table import Manifest
from ...exceptions import NotFoundError, UnsupportedError
from ..tables.references import lance_references
from ..tables.table_log import FOLDERS, TableFormat, entry_number

_ABSOLUTE = re.compile(rb'"path":"(/[^"]*|[a-zA-Z][a-zA-Z0-9+.-]*:[^"]*)"')
_VECTOR = re.compile(rb'"storageType":"p","pathOrInlineDv":"([^"]*)"')
_SHOWN = 120


def format_and_number(path: str) -> tuple[TableFormat, int] | None:
    """The format and the version of an entry by its path in the table's folder; None for what is no entry."""
    for format, folder in FOLDERS.items():
        if path.startswith(folder):
            number = entry_number(format, path.removeprefix(folder))
            return None if number is None else (format, number)
    return None


def check_entry(
    uri: str, format: TableFormat, path: str, data: bytes, change: object, missing: Callable[[Iterable[str]], list[str]]
) -> None:
    """Looks whether a branch can keep the version that an entry makes.

    Args:
        uri: The table, for messages.
        format: Its format.
        path: Of the entry, in the table's folder.
        data: The entry.
        change: The commit behind it.
        missing: Of paths in the table's folder, those at which the branch has nothing.

    Raises:
        UnsupportedError: It refers to what lies elsewhere: a shallow clone, a Lance branch, an absolute path.
        NotFoundError: It refers to a file that is not on the branch.
    """
    if format == "lance":
        found = lance_references(Manifest.decode(data, path))
        found.check_inside(uri)
        before: Manifest | None = getattr(change, "put_on", None)
        new = found.files if before is None else found.files - lance_references(before).files
    else:
        absolute = _ABSOLUTE.search(data) or _VECTOR.search(data)
        if absolute is not None:
            raise UnsupportedError(
                f"{uri}: expected files in the table's folder, found the absolute path "
                f"{absolute.group(1)[:_SHOWN].decode(errors='replace')!r}: a branch keeps what lies on it alone; copy "
                "the files into the table",
                uri=uri,
            )
        new = set(getattr(change, "adds", ()))
    gone = missing(new)
    if gone:
        raise NotFoundError(
            f"{uri}: expected the file {gone[0]!r} of the new version on the branch, found none ({len(gone)} of "
            f"{len(new)} are missing): files that another process or another store has written are not on it; write "
            "them in the process that commits, in one transaction (branch.transact)",
            uri=uri,
            path=gone[0],
        )
