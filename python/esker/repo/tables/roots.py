"""Finds the tables of a content: a table's root is the folder that holds its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow.compute as pc

from ..._native.graveler import Storage
from ..objects.batches import BATCH_ROWS, table
from .table_log import FOLDERS, TableFormat, TableLog, entry_number, has_log, read_log


class TableRoots:
    """The tables of some contents of one repository: those of both sides of a merge and of what both come from.

    A folder that is a table's in one of them is a table's in all: a path below it belongs to the table, wherever it is.

    Args:
        storage: The repository's.
        contents: Metaranges.

    Example:
        `TableRoots(core.storage, [commit.meta_range_id]).root_of("lake/t/data/1.lance") == "lake/t/"`
    """

    def __init__(self, storage: Storage, contents: Sequence[str]) -> None:
        self._storage = storage
        self._contents = list(dict.fromkeys(contents))
        self._is_root: dict[str, bool] = {}
        self._roots: dict[str, str | None] = {}

    def root_of(self, path: str) -> str | None:
        """The folder of the innermost table that a path belongs to, with a `/` at its end; None if it is in none."""
        return self._root_of_folder(path.rpartition("/")[0])

    def _root_of_folder(self, folder: str) -> str | None:
        if folder not in self._roots:
            place = folder + "/" if folder else ""
            if self.is_root(place):
                self._roots[folder] = place
            else:
                self._roots[folder] = self._root_of_folder(folder.rpartition("/")[0]) if folder else None
        return self._roots[folder]

    def is_root(self, folder: str) -> bool:
        """Whether a folder, with a `/` at its end or empty, is a table's in one of the contents."""
        if folder not in self._is_root:
            found = any(has_log(self._storage, one, folder, format) for format in FOLDERS for one in self._contents)
            self._is_root[folder] = found
        return self._is_root[folder]

    def touched(self, left: str, right: str) -> list[str]:
        """The tables below whose folders two contents differ, in the order of their folders."""
        return [root for root in self.places_of_changes(left, right) if root is not None]

    def places_of_changes(self, left: str, right: str) -> list[str | None]:
        """The same, and None as the last if they differ outside of tables as well."""
        folders: set[str] = set()
        differences = self._storage.diff(left, right)
        while (batch := differences.next_batch(BATCH_ROWS)) is not None:
            paths = table(batch).column("path")
            # `a/b/c` to `a/b`; a path without a folder to nothing.
            parents = pc.replace_substring_regex(paths, r"/?[^/]*$", "")
            folders.update(pc.unique(parents).to_pylist())
        found = {self._root_of_folder(folder) for folder in folders}
        return [*sorted(root for root in found if root is not None), *([None] if None in found else [])]

    def of_paths(self, paths: Iterable[str]) -> list[str]:
        """The tables to which some paths belong, in the order of their folders."""
        found = {self.root_of(path) for path in paths}
        return sorted(root for root in found if root is not None)


def logs_at(storage: Storage, content: str, folder: str) -> dict[TableFormat, TableLog]:
    """The logs in a folder of a content, by their formats: one, or none where there is no table."""
    found = {format: read_log(storage, content, folder, format) for format in FOLDERS}
    return {format: log for format, log in found.items() if log is not None}


def all_tables(storage: Storage, content: str) -> Iterator[TableLog]:
    """All tables of a content. Lists all of its paths."""
    seen: set[tuple[str, TableFormat]] = set()
    listing = storage.list(content)
    while (batch := listing.next_batch(BATCH_ROWS)) is not None:
        paths = table(batch).column("path")
        logs = paths.filter(pc.match_substring_regex(paths, r"(^|/)(_versions|_delta_log)/[^/]+$"))
        for path in logs.to_pylist():
            folder, _, name = path.rpartition("/")
            for format, log_folder in FOLDERS.items():
                if (folder + "/").endswith(log_folder):
                    root = (folder + "/").removesuffix(log_folder)
                    if (root, format) not in seen and (entry_number(format, name) is not None or format == "delta"):
                        seen.add((root, format))
                        log = read_log(storage, content, root, format)
                        if log is not None:
                            yield log
