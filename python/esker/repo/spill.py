"""More names than memory should hold: written to files of this machine in sorted runs, and read back in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

RUN_ROWS = 200_000
"""Names that are held in memory at once."""


class SortedNames:
    """Names with a size each, in any order in, in their order out.

    Args:
        folder: Where the runs go.
        name: What their files are called.

    Example:
        >>> import tempfile
        >>> from esker.repo.spill import SortedNames, without
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     some, others = SortedNames(folder, "some"), SortedNames(folder, "others")
        ...     for name in ("b", "a", "c"):
        ...         some.add(name, 1)
        ...     others.add("b")
        ...     list(without(some, others))
        [('a', 1), ('c', 1)]
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._rows: list[str] = []
        self._runs: list[Path] = []

    def add(self, name: str, size: int = 0, note: str = "") -> None:
        """Adds a name. One that is added twice comes out twice."""
        # A line each: what ends a line, and what would be taken for the end of a name, is written otherwise.
        if "\n" in name or "\x00" in name:
            return
        self._rows.append(f"{name}\x00{size}\x00{note!r}")
        if len(self._rows) >= RUN_ROWS:
            self._spill()

    def _spill(self) -> None:
        self._rows.sort()
        path = Path(self._folder, f"{self._name}-{len(self._runs)}")
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(row + "\n" for row in self._rows)
        self._runs.append(path)
        self._rows = []

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((name, size) for name, size, _ in self.noted())

    def noted(self) -> Iterator[tuple[str, int, str]]:
        """The same with what was noted of each, as Python writes it."""
        self._rows.sort()
        with ExitStack() as files:
            runs: list[Iterator[str]] = [
                (line.rstrip("\n") for line in files.enter_context(path.open(encoding="utf-8", newline="\n")))
                for path in self._runs
            ]
            for row in heapq.merge(*runs, iter(self._rows)):
                name, size, note = row.split("\x00", 2)
                yield name, int(size), note


def without(names: SortedNames, others: SortedNames) -> Iterator[tuple[str, int]]:
    """The names that are not among the others."""
    found = iter(others)
    other = next(found, None)
    for name, size in names:
        while other is not None and other[0] < name:
            other = next(found, None)
        if other is None or other[0] != name:
            yield name, size
