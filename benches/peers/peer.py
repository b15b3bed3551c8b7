"""What an engine must do to take part."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True)
class Range:
    """The predicate ``low <= column < high``, which every engine can say."""

    column: str
    low: int
    high: int

    @property
    def sql(self) -> str:
        """The predicate as SQL."""
        return f"{self.column} >= {self.low} AND {self.column} < {self.high}"

    def arrow(self) -> pa.compute.Expression:
        """The predicate for pyarrow."""
        field = pa.compute.field(self.column)
        return (field >= self.low) & (field < self.high)


class Reader(abc.ABC):
    """An open table."""

    @abc.abstractmethod
    def count(self) -> int:
        """The number of rows."""

    @abc.abstractmethod
    def scan(self, columns: Sequence[str] | None = None, where: Range | None = None) -> pa.Table:
        """Read all rows, or those that a predicate keeps, in the table's order."""

    @abc.abstractmethod
    def stream(self) -> Iterator[pa.RecordBatch]:
        """Read all rows in batches of the engine's own size."""

    @abc.abstractmethod
    def take(self, rows: pa.Array) -> pa.Table:
        """Read rows by their numbers, in the order and with the repetitions asked for."""


class Peer(abc.ABC):
    """An engine."""

    name: str
    """What it is called in reports."""
    settings: str
    """What differs from its defaults, and what one must know of them."""

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """The version of its package."""

    @abc.abstractmethod
    def write(self, table: pa.Table, path: Path) -> None:
        """Write a table to a path that does not exist yet."""

    @abc.abstractmethod
    def open(self, path: Path) -> Reader:
        """Open what `write` wrote."""


class Unavailable(Exception):
    """An engine cannot take part; the message says why."""
