"""`Position`: how far a stream has read, as the offset that Spark keeps in its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from esker.exceptions import CorruptFileError

__all__ = ["Position", "Stretch"]


@dataclass(frozen=True)
class Stretch:
    """What a batch reads of one version.

    Args:
        version: The version.
        is_snapshot: Whether it is all rows of the version, rather than those that it adds.
        first: The first unit.
        last: The unit after the last one, None for all that follow.
    """

    version: int
    is_snapshot: bool
    first: int
    last: int | None


@dataclass(frozen=True)
class Position:
    """How far a stream has read.

    Args:
        table: The format, "lance" or "delta".
        version: The version that was read last.
        entry: What tells its entry from another one with that number; empty if there was none.
        index: How many units of it were read, -1 for all of them.
        is_snapshot: Whether these are of all rows of the version, rather than of those that it adds.
    """

    table: str
    version: int
    entry: str
    index: int = -1
    is_snapshot: bool = False

    @classmethod
    def decode(cls, offset: Mapping[str, Any]) -> Position:
        """The position in an offset.

        Raises:
            CorruptFileError: It is no offset of such a stream.

        Example:
            >>> from esker.spark.streaming.position import Position
            >>> Position.decode(Position("lance", 3, "a").encode()).version
            3
        """
        try:
            found = cls(**offset)
        except TypeError as error:
            raise CorruptFileError(
                f"expected an offset of a stream of esker, found {dict(offset)}: the checkpoint belongs to another "
                "source; give another checkpointLocation"
            ) from error
        return found

    def encode(self) -> dict[str, Any]:
        """The offset."""
        return asdict(self)

    def stretches(self, end: Position) -> Iterator[Stretch]:
        """What lies between two positions, version by version."""
        if self == end:
            return
        if self.index >= 0:
            is_same = self.version == end.version and self.is_snapshot == end.is_snapshot and end.index >= 0
            yield Stretch(self.version, self.is_snapshot, self.index, end.index if is_same else None)
            if is_same:
                return
        for version in range(self.version + 1, end.version + 1):
            partial = version == end.version and end.index >= 0
            yield Stretch(version, False, 0, end.index if partial else None)
