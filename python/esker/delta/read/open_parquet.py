"""A Parquet file that is open: batches of its row groups, of fewer rows where they are long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ..._native.delta import FileRows
from ..._native.store import Store
from ...progress import byte_count

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_ROWS = 64 * 1024
"""Rows of a batch at most."""
_LEAST_ROWS = 512
_UNKNOWN_ROWS = 8 * 1024
"""Rows at most where texts repeat, so that the footer does not tell how long they are, until some were seen."""
_BATCH_BYTES = 8 * 1024 * 1024
_NARROW_ROWS = 256 * 1024
"""Rows at most where they are a number or two each: calls cost more than their values."""
_NUMBERS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
_SPARSE = 16
"""One row of so many at most is chosen where the others are skipped rather than read and dropped."""
_ONLY_PYARROW = frozenset({"BROTLI"})


class OpenParquet:
    """A Parquet file that is open.

    Args:
        parquet: The file.

    Example:
        `for first, batch in OpenParquet(parquet).numbered(["x"], [0]): batch.num_rows`
    """

    def __init__(self, parquet: pq.ParquetFile) -> None:
        self.parquet = parquet
        self.metadata: pq.FileMetaData = parquet.metadata
        sizes = [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]
        self.starts = [sum(sizes[:group]) for group in range(len(sizes) + 1)]
        """The number of the first row of each row group, and of all rows."""
        self._columns: dict[int, dict[str, tuple[int, bool, bool]]] = {}
        self._taken: dict[str, float] = {}

    def numbered(self, names: list[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of some row groups, each with the number of its first row in the file.

        Args:
            names: The columns that are read.
            groups: The row groups.
        """
        for group in groups:
            first, sizes = self.starts[group], dict.fromkeys(names, 0)
            batches = self.parquet.iter_batches(
                batch_size=self._rows_at_once(group, names), row_groups=[group], columns=names
            )
            for batch in batches:
                for name, values in zip(batch.schema.names, batch.columns, strict=True):
                    # A name with a dot may bring what it begins with.
                    if name in sizes:
                        sizes[name] += byte_count(values)
                yield first, batch
                first += batch.num_rows
            rows = max(1, first - self.starts[group])
            self._taken |= {name: size / rows for name, size in sizes.items()}

    def place(self, group: int) -> int:
        """Where a row group begins in the file, in bytes; 0 where a footer says what cannot be."""
        found = self.metadata.row_group(group)
        if not found.num_columns:
            return 0
        column = found.column(0)
        dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
        return max(0, int(min(dictionary or column.data_page_offset, column.data_page_offset)))

    def is_sparse(self, groups: Sequence[int], rows: int) -> bool:
        """Whether so many rows of some row groups are few enough to be read by `chosen`.

        Args:
            groups: The row groups that hold the rows.
            rows: How many.
        """
        held = sum(self.starts[group + 1] - self.starts[group] for group in groups)
        if not rows or rows * _SPARSE > held:
            return False
        # Times of 96 bits are read by pyarrow, which makes them microseconds.
        schema = self.metadata.schema
        if any(schema.column(index).physical_type == "INT96" for index in range(len(schema))):
            return False
        # So are pages that are compressed in a way that only pyarrow has.
        found = (self.metadata.row_group(group) for group in groups)
        return all(
            group.column(index).compression not in _ONLY_PYARROW for group in found for index in range(len(schema))
        )

    def chosen(
        self, names: list[str], groups: Sequence[int], rows: pa.Array, place: tuple[Store, str]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of a few rows, each with the place of its first one among them.

        Args:
            names: The columns that are read.
            groups: The row groups that hold the rows.
            rows: The numbers of the rows in the file, ascending.
            place: The store that the file is in, and its path there.
        """
        there = {name: place for place, name in reversed(list(enumerate(self.parquet.schema_arrow.names)))}
        at_once = min(self._rows_at_once(group, names) for group in groups)
        columns = [there[name] for name in names]
        found = FileRows(*place, columns=columns, groups=list(groups), rows=rows, batch_rows=at_once)
        first = 0
        for part in found:
            batch = pa.record_batch(part)
            yield first, batch
            first += batch.num_rows

    def _rows_at_once(self, group: int, names: list[str]) -> int:
        there = self._sizes(group)
        is_narrow = len(names) <= 2 and all(name in there and there[name][2] for name in names)
        each, most = 0.0, _NARROW_ROWS if is_narrow else BATCH_ROWS
        rows = max(1, self.starts[group + 1] - self.starts[group])
        for name in names:
            size, repeats, _ = there.get(name, (0, False, False))
            if repeats and name not in self._taken:
                most = _UNKNOWN_ROWS
            each += max(size / rows, self._taken.get(name, 0))
        return max(_LEAST_ROWS, min(most, int(_BATCH_BYTES / max(each, 1))))

    def _sizes(self, group: int) -> dict[str, tuple[int, bool, bool]]:
        """Of each column the bytes of its values in a row group; whether it may be texts that repeat, or is numbers."""
        if group not in self._columns:
            found: dict[str, tuple[int, bool, bool]] = {}
            metadata = self.metadata.row_group(group)
            for index in range(metadata.num_columns):
                column = metadata.column(index)
                name = column.path_in_schema.partition(".")[0]
                size, repeats, _ = found.get(name, (0, False, False))
                repeats |= column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page
                is_number = column.path_in_schema == name and column.physical_type in _NUMBERS
                found[name] = (size + column.total_uncompressed_size, repeats, is_number)
            self._columns[group] = found
        return self._columns[group]
