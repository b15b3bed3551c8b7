"""Packs what a read has to read into Spark partitions: small files share one, as in Spark's own file sources.

A partition has a size to aim at: what there is, spread over the cores, but neither less than what it costs to open a
file nor more than `bytesPerPartition`. Neighbours stay neighbours: rows keep their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["OPEN_BYTES", "packed", "target_bytes"]

OPEN_BYTES = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile: Spark's own `spark.sql.files.openCostInBytes`."""

_LEAST_TASKS = 8

Item = TypeVar("Item")


def target_bytes(sizes: Sequence[int], *, max_bytes: int, parallelism: int | None = None) -> int:
    """The size of a partition to aim at.

    A Python data source is not told how many tasks run at once. Twice the cores of the driver's machine keep a local
    session busy; a table that is large enough for a cluster has more partitions than that by its bytes.

    Args:
        sizes: The bytes of each file.
        max_bytes: The maximum number of bytes of a partition.
        parallelism: How many tasks run at once; None if nobody knows.

    Example:
        >>> from esker.spark.packing import target_bytes
        >>> target_bytes([100 << 20, 92 << 20], max_bytes=128 << 20, parallelism=4) >> 20
        50
    """
    tasks = parallelism or max(_LEAST_TASKS, 2 * (os.cpu_count() or 1))
    total = sum(sizes) + OPEN_BYTES * len(sizes)
    return min(max_bytes, max(OPEN_BYTES, -(-total // tasks)))


def packed(
    items: Iterable[Item], weigh: Callable[[Item], tuple[int, int]], *, max_rows: int | None = None, max_bytes: int
) -> list[Sequence[Item]]:
    """Items in groups of neighbours, each of which is a partition.

    Args:
        items: What there is to read; none of them is cut.
        weigh: The rows and the bytes of an item.
        max_rows: The maximum number of rows of a group, unless one item has more.
        max_bytes: The maximum number of bytes of a group, unless one item has more; each item adds what it costs to
            open it.

    Example:
        >>> from esker.spark.packing import packed
        >>> [len(group) for group in packed([1 << 20] * 5, lambda size: (10, size), max_bytes=12 << 20)]
        [3, 2]
    """
    groups: list[Sequence[Item]] = []
    group: list[Item] = []
    rows = filled = 0
    for item in items:
        count, size = weigh(item)
        if group and ((max_rows is not None and rows + count > max_rows) or filled + size > max_bytes):
            groups.append(group)
            group, rows, filled = [], 0, 0
        group.append(item)
        rows += count
        filled += size + OPEN_BYTES
    if group:
        groups.append(group)
    return groups
