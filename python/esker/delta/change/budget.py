"""What a change of rows may take: memory, and temporary files, each of them together."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..._native.merge import DiskQuota
from ...exceptions import InvalidArgumentError

MEMORY_LIMIT = 512 * 1024 * 1024
"""Bytes of memory that a change of rows takes, if the caller does not say."""
LEAST_MEMORY = 192 * 1024 * 1024
"""Bytes below which a change of rows cannot stay."""


@dataclass(frozen=True)
class Budget:
    """What a change of rows may take.

    Args:
        memory: Bytes that the process grows by at most, beside the caller's own rows.
        disk: What temporary files take their bytes of.

    Example:
        >>> from esker.delta.change.budget import Budget
        >>> Budget().source >> 20
        64
    """

    memory: int = MEMORY_LIMIT
    disk: DiskQuota = field(default_factory=DiskQuota)

    @property
    def source(self) -> int:
        """Bytes of a merge's source that are in memory at a time, with their keys."""
        return self.memory // 8

    @property
    def kept(self) -> int:
        """Bytes of a merge's source above which it is kept on disk."""
        return self.memory // 16

    @property
    def matches(self) -> int:
        """Bytes of what matched above which that is on disk."""
        return self.memory * 3 // 32

    @property
    def ahead(self) -> int:
        """Bytes of rows that are read ahead."""
        return self.memory // 16

    @property
    def written(self) -> int:
        """Bytes that files in the making hold."""
        return self.memory // 4

    @property
    def column(self) -> int:
        """Bytes of one column of a row group up to which it is copied in memory."""
        return self.memory // 8


def budget(memory_limit: int | None, max_temp_directory_size: int | None = None) -> Budget:
    """The budget that a caller gives.

    Args:
        memory_limit: Bytes of memory; 512 MiB if not given.
        max_temp_directory_size: Bytes of temporary files; any number if not given.

    Raises:
        InvalidArgumentError: Less than 192 MiB of memory.

    Example:
        >>> from esker.delta.change.budget import budget
        >>> budget(1 << 30).memory
        1073741824
    """
    memory = MEMORY_LIMIT if memory_limit is None else memory_limit
    if memory < LEAST_MEMORY:
        raise InvalidArgumentError(f"expected a memory_limit of {LEAST_MEMORY} bytes at least, found {memory_limit}")
    return Budget(memory, DiskQuota(max_temp_directory_size))
