"""Counts requests to stores and their bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from .._native.store import Store, total_reads


@dataclass(frozen=True)
class IOStats:
    """Requests to a store and their bytes.

    Args:
        read_iops: Read requests, after ranges close to each other were joined.
        read_bytes: Bytes read.
        write_iops: Write requests: puts, parts of files, deletes.
        write_bytes: Bytes written.
    """

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    write_bytes: int = 0

    @property
    def written_bytes(self) -> int:
        """Bytes written, by pylance's name."""
        return self.write_bytes

    def __add__(self, other: IOStats) -> IOStats:
        return IOStats(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: IOStats) -> IOStats:
        return IOStats(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, store: Store) -> IOStats:
        """The counts of a store since it was opened."""
        now = store.io_stats_snapshot()
        return cls(now.read_iops, now.read_bytes, now.write_iops, now.write_bytes)


class IOMeter:
    """Counts the requests to stores from now on.

    Args:
        stores: The stores to count over.
    """

    def __init__(self, stores: Iterable[Store] = ()) -> None:
        self._since: list[tuple[Store, IOStats]] = [(store, IOStats.of(store)) for store in stores]

    def snapshot(self) -> IOStats:
        """The counts since the last `take`, or since the start."""
        total = IOStats()
        for store, before in self._since:
            total = total + (IOStats.of(store) - before)
        return total

    def take(self) -> IOStats:
        """The counts since the last `take`; counting starts anew."""
        total = self.snapshot()
        self._since = [(store, IOStats.of(store)) for store, _ in self._since]
        return total

    def watch(self, store: Store) -> None:
        """Counts one more store, including its requests so far."""
        if all(known is not store for known, _ in self._since):
            self._since.append((store, IOStats()))


def iops_counter() -> int:
    """The read requests of this process since its start, of all stores, as `lance.iops_counter`.

    Example:
        >>> import esker
        >>> esker.iops_counter() >= 0
        True
    """
    return total_reads()[0]


def bytes_read_counter() -> int:
    """The bytes that this process has read from all stores since its start, as `lance.bytes_read_counter`.

    Example:
        >>> import esker
        >>> esker.bytes_read_counter() >= 0
        True
    """
    return total_reads()[1]
