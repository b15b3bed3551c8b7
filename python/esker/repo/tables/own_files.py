"""Which files below a table's folder are the table's own, and which only lie there."""

from __future__ import annotations

from .table_log import FOLDERS, TableFormat

REFS = "_refs/"
"""The folder of a Lance table's tags."""
TAGS = "_refs/tags/"
LATEST = "_latest.manifest"
HINT = "_delta_log/_last_checkpoint"

_LANCE = ("data/", "_deletions/", "_indices/", "_transactions/", FOLDERS["lance"], REFS)
_DELTA = (FOLDERS["delta"], "_change_data/")


def is_own(format: TableFormat, path: str) -> bool:
    """Whether writers of a format write such a file, by its path in the table's folder.

    Example:
        >>> from esker.repo.tables.own_files import is_own
        >>> is_own("lance", "data/1.lance"), is_own("lance", "README.md"), is_own("delta", "day=1/part-0.parquet")
        (True, False, True)
    """
    if format == "lance":
        return path.startswith(_LANCE) or path == LATEST
    name = path.rpartition("/")[2]
    return path.startswith(_DELTA) or name.endswith(".parquet") or name.startswith("deletion_vector_")


def is_ref(format: TableFormat, path: str) -> bool:
    """Whether a file, by its path in the table's folder, is a tag or the like of a Lance table."""
    return format == "lance" and path.startswith(REFS)
