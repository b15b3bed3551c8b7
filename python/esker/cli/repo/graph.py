"""The graph beside a history, as git draws it: a column for each line of descent."""

from __future__ import annotations

from collections.abc import Sequence


class Graph:
    """Draws commits one after the other, each before its parents.

    Example:
        >>> from esker.cli.repo.graph import Graph
        >>> graph = Graph()
        >>> for id, parents in (("m", ["a", "b"]), ("b", ["a"]), ("a", [])):
        ...     above, own, below = graph.add(id, parents)
        ...     print("\\n".join([*above, f"{own} {id}", *below]))
        * m
        |\\
        | * b
        |/
        * a
    """

    def __init__(self) -> None:
        self._columns: list[str] = []
        """The commit that each column waits for."""

    def add(self, id: str, parents: Sequence[str]) -> tuple[list[str], str, list[str]]:
        """The lines above a commit's own, what stands before it in its own, and the lines below."""
        columns = self._columns
        if id not in columns:
            columns.append(id)
        at = columns.index(id)
        above = []
        for column in reversed([n for n, waits in enumerate(columns) if waits == id and n != at]):
            above.append(_left(len(columns), at, column))
            del columns[column]
        own = " ".join("*" if n == at else "|" for n in range(len(columns)))
        if not parents:
            del columns[at]
            below = [_left(len(columns) + 1, at, at + 1)] if at < len(columns) else []
            return above, own, [line[: 2 * at] + " " + line[2 * at + 1 :] for line in below]
        columns[at] = parents[0]
        below = []
        for parent in reversed(parents[1:]):
            below.append(_right(len(columns), at))
            columns.insert(at + 1, parent)
        return above, own, below


def _left(count: int, to: int, column: int) -> str:
    """A column ends in one further left, and those on its right move up."""
    line = [" "] * (2 * count)
    for n in range(count):
        line[2 * n - (n >= column)] = "|" if n < column else "/"
    for n in range(to, column - 1):
        line[2 * n + 1] = "_"
    return "".join(line).rstrip()


def _right(count: int, at: int) -> str:
    """A column begins right of another, and those on its right make room."""
    line = [" "] * (2 * count + 1)
    for n in range(count):
        line[2 * n + (n > at)] = "|" if n <= at else "\\"
    line[2 * at + 1] = "\\"
    return "".join(line).rstrip()
