"""Parquet by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from benches.peers.peer import Peer, Range, Reader


class ParquetReader(Reader):
    """An open file: scans by pyarrow's dataset, which reads with all threads; rows by row group."""

    def __init__(self, path: Path) -> None:
        self.dataset = pa.dataset.dataset(path, format="parquet")
        self.file = pa.parquet.ParquetFile(path)
        groups = (self.file.metadata.row_group(group).num_rows for group in range(self.file.num_row_groups))
        self.ends = np.cumsum(list(groups))

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def scan(self, columns: Sequence[str] | None = None, where: Range | None = None) -> pa.Table:
        return self.dataset.to_table(
            columns=list(columns) if columns else None, filter=where.arrow() if where else None
        )

    def stream(self) -> Iterator[pa.RecordBatch]:
        return iter(self.dataset.to_batches())

    def take(self, rows: pa.Array) -> pa.Table:
        """Read the row groups that hold the rows, and take the rows of them: pyarrow has nothing finer."""
        numbers = rows.to_numpy()
        owners = np.searchsorted(self.ends, numbers, side="right")
        groups = np.unique(owners)
        lengths = np.diff(self.ends, prepend=0)
        starts = self.ends - lengths
        kept_starts = dict(zip(groups.tolist(), (np.cumsum(lengths[groups]) - lengths[groups]).tolist(), strict=True))
        moved = numbers.astype(np.int64) - starts[owners] + np.array([kept_starts[owner] for owner in owners.tolist()])
        return self.file.read_row_groups(groups.tolist()).take(pa.array(moved))


class Parquet(Peer):
    """Parquet with pyarrow's defaults but for the compression, which is named."""

    def __init__(self, *, compression: str = "snappy") -> None:
        self.compression = compression
        self.name = "parquet" if compression == "snappy" else f"parquet {compression}"
        self.settings = f"compression {compression}, row groups of 1 Mi rows, dictionaries on; does not fsync"

    @property
    def version(self) -> str:
        return str(pa.__version__)

    def write(self, table: pa.Table, path: Path) -> None:
        pa.parquet.write_table(table, path, compression=self.compression)

    def open(self, path: Path) -> Reader:
        return ParquetReader(path)
