"""What happens to the rows of one row group of a file that is copied: some get new values, some go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError


class HeldColumns:
    """Values of a row group that were read already, as long as they are few.

    Args:
        names: The columns.
        limit: Bytes that are held at most.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.change.group_change import HeldColumns
        >>> held = HeldColumns(["x"], limit=100)
        >>> held.add(pa.record_batch({"x": [1, 2]}))
        >>> {name: len(parts) for name, parts in held.columns.items()}
        {'x': 1}
    """

    def __init__(self, names: Iterable[str], *, limit: int) -> None:
        self.columns: dict[str, list[pa.Array]] = {name: [] for name in names}
        self._limit = limit
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in the columns of the next batch."""
        self._bytes += sum(batch.column(name).nbytes for name in self.columns)
        if self._bytes > self._limit:
            # They are read again.
            self.columns.clear()
        for name, parts in self.columns.items():
            parts.append(batch.column(name))


@dataclass(frozen=True)
class GroupChange:
    """What happens to the rows of one row group.

    Args:
        rows: How many it has.
        places: The rows that get new values, ascending; None if all do.
        made: Their new values, in the columns that change; None if nothing does.
        stays: Which rows stay, as an array of booleans; None if all do.
        held: What was read of columns already, in batches.
    """

    rows: int
    places: np.ndarray | None = None
    made: pa.RecordBatch | None = None
    stays: pa.Array | None = None
    held: dict[str, list[pa.Array]] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """How many rows stay."""
        return self.rows if self.stays is None else int(self.stays.true_count)

    @property
    def replaces_all(self) -> bool:
        """Whether no old value is needed."""
        return self.made is not None and self.places is None

    def applied(self, column: str, old: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """The values of a column after the change.

        Args:
            column: The column.
            old: Its values before, in batches; not asked for if all rows get new ones.
        """
        new = self.made.column(column) if self.made is not None and column in self.made.schema.names else None
        if new is not None and self.places is None:
            yield self._kept(new, 0)
            return
        first = 0
        for values in old:
            rows = len(values)
            yield self._kept(values if new is None else self._replaced(values, new, first), first)
            first += rows

    def _replaced(self, values: pa.Array, new: pa.Array, first: int) -> pa.Array:
        places = self.places if self.places is not None else np.arange(self.rows)
        start, end = np.searchsorted(places, [first, first + len(values)])
        if start == end:
            return values
        part, chosen = new.slice(start, end - start), places[start:end] - first
        if part.type != values.type:
            part = part.cast(values.type)
        if len(part) == len(values):
            return part
        if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
            order = np.arange(len(values))
            order[chosen] = len(values) + np.arange(len(part))
            return pa.concat_arrays([values, part]).take(pa.array(order))
        mask = np.zeros(len(values), bool)
        mask[chosen] = True
        return pc.replace_with_mask(values, pa.array(mask), part)

    def _kept(self, values: pa.Array, first: int) -> pa.Array:
        if self.stays is None:
            return values
        return values.filter(self.stays.slice(first, len(values)))


def in_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """The rows of several batches in one, None if there are none.

    Raises:
        InvalidArgumentError: Texts that do not fit in one.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.change.group_change import in_one
        >>> in_one([pa.record_batch({"x": [1]}), pa.record_batch({"x": [2]})]).num_rows
        2
    """
    if len(batches) < 2:
        return batches[0] if batches else None
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(whole) > 1:
        raise InvalidArgumentError(
            "expected new texts of less than 2 GiB in one row group, found more; change fewer rows at a time"
        )
    return whole[0] if whole else batches[0]
