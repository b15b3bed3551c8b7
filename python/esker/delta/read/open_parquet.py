"""A Parquet file that is open: batches of its row groups, of fewer rows where they are long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_ROWS = 64 * 1024
"""Rows of a batch at most."""
_LEAST_ROWS = 512
_UNKNOWN_ROWS = 8 * 1024
"""Rows at most where texts repeat, so that the footer does not tell how long they are, until some were seen."""
_BATCH_BYTES = 8 * 1024 * 1024


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
        self._columns: dict[int, dict[str, tuple[int, bool]]] = {}
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
                for name in names:
                    sizes[name] += batch.column(name).nbytes
                yield first, batch
                first += batch.num_rows
            rows = max(1, first - self.starts[group])
            self._taken |= {name: size / rows for name, size in sizes.items()}

    def _rows_at_once(self, group: int, names: list[str]) -> int:
        each, most = 0.0, BATCH_ROWS
        there = self._sizes(group)
        rows = max(1, self.starts[group + 1] - self.starts[group])
        for name in names:
            size, repeats = there.get(name, (0, False))
            if repeats and name not in self._taken:
                most = _UNKNOWN_ROWS
            each += max(size / rows, self._taken.get(name, 0))
        return max(_LEAST_ROWS, min(most, int(_BATCH_BYTES / max(each, 1))))

    def _sizes(self, group: int) -> dict[str, tuple[int, bool]]:
        """Of each column the bytes of its values in a row group, and whether they may be texts that repeat."""
        if group not in self._columns:
            found: dict[str, tuple[int, bool]] = {}
            metadata = self.metadata.row_group(group)
            for index in range(metadata.num_columns):
                column = metadata.column(index)
                name = column.path_in_schema.partition(".")[0]
                size, repeats = found.get(name, (0, False))
                repeats |= column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page
                found[name] = (size + column.total_uncompressed_size, repeats)
            self._columns[group] = found
        return self._columns[group]
