"""Requests and bytes that reached the store: per dataset, and per session of several datasets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from .._native.store import Store


@dataclass(frozen=True)
class IOStats:
    """What was read and written.

    Args:
        read_iops: Read requests, after near ranges were joined.
        read_bytes: Bytes read.
        write_iops: Write requests: puts, pieces of files, deletes.
        write_bytes: Bytes written.
    """

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    write_bytes: int = 0

    def __add__(self, other: IOStats) -> IOStats:
        return IOStats(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: IOStats) -> IOStats:
        return IOStats(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, store: Store) -> IOStats:
        """All that a store has done so far."""
        now = store.io_stats_snapshot()
        return cls(now.read_iops, now.read_bytes, now.write_iops, now.write_bytes)


class IOMeter:
    """Counts what stores do from now on.

    Args:
        stores: The stores to count over.
    """

    def __init__(self, stores: Iterable[Store] = ()) -> None:
        self._since: list[tuple[Store, IOStats]] = [(store, IOStats.of(store)) for store in stores]

    def snapshot(self) -> IOStats:
        """What was done since the last `take`, or since the start."""
        total = IOStats()
        for store, before in self._since:
            total = total + (IOStats.of(store) - before)
        return total

    def take(self) -> IOStats:
        """What was done since the last `take`; the next one starts from here."""
        total = self.snapshot()
        self._since = [(store, IOStats.of(store)) for store, _ in self._since]
        return total

    def watch(self, store: Store) -> None:
        """Counts over one more store, from its start."""
        self._since.append((store, IOStats()))


class Session:
    """What datasets share that are opened with it: one account of what they cost.

    Args:
        index_cache_size_bytes: A hint of pylance, of no effect here.
        metadata_cache_size_bytes: A hint of pylance, of no effect here.

    Example:
        >>> import esker, pyarrow as pa
        >>> _ = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-session")
        >>> session = esker.Session()
        >>> _ = esker.dataset("memory://doc-session", session=session).to_table()
        >>> session.io_stats().read_bytes > 0
        True
    """

    def __init__(self, index_cache_size_bytes: int | None = None, metadata_cache_size_bytes: int | None = None) -> None:
        del index_cache_size_bytes, metadata_cache_size_bytes
        self._meter = IOMeter()

    def io_stats(self) -> IOStats:
        """Requests and bytes of all its datasets since the last call."""
        return self._meter.take()

    def io_stats_snapshot(self) -> IOStats:
        """The same without starting anew."""
        return self._meter.snapshot()

    def _watch(self, store: Store) -> None:
        self._meter.watch(store)
