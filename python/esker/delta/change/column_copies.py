"""Copies of data files in which some columns have new values: the pages of the other columns are copied as they are.

```
old file -> the columns that are read -> new values of a row group -> beside the old pages of the others -> new file
```

Spec: "Data Files", "Per-file Statistics".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from ..._native.delta import ColumnSplice
from ...commit.orphans import StagedFiles
from ..definition.partition_text import directories, encode_path
from ..definition.physical_names import PhysicalNames
from ..definition.statistics_columns import statistics_columns
from ..properties import WriterProperties
from ..schema import Schema
from ..write.conformed import conformed
from ..write.data_files import leaf_columns
from ..write.file_sink import FileSink
from ..write.file_statistics import FileStatistics, decode, encode
from .changed_table import ChangedTable, MatchedFile
from .copied_encodings import encodings_like

_THREADS = 2
_BOUNDS = ("minValues", "maxValues", "nullCount")

NewValues = Callable[[pa.RecordBatch, "pa.Array | None"], pa.RecordBatch]
"""The new values of rows, of which those of a mask are meant (all, if it is None)."""


class ColumnCopies:
    """Copies files with new values in some columns.

    Args:
        table: The version that is changed.
        changed: The columns that get new values.
        read: The columns that those are computed from.
        staged: Takes in each file before it is put.
        parquet: How Parquet is written.

    Example:
        `copies = ColumnCopies(table, {"n"}, {"n"}, staged, None)`
    """

    def __init__(
        self,
        table: ChangedTable,
        changed: set[str],
        read: set[str],
        staged: StagedFiles,
        parquet: WriterProperties | None,
    ) -> None:
        state = table.state
        self._table = table
        self._staged = staged
        self._parquet = parquet
        self._names = PhysicalNames(state.schema, mapped=state.mapped)
        kept = [field for field in state.schema.fields if field.name not in state.partition_by]
        self._schema = Schema([field for field in kept if field.name in changed])
        whole = self._names.file_schema(state.partition_by)
        self._file_schema = pa.schema([whole.field(at) for at, field in enumerate(kept) if field.name in changed])
        arrow = state.schema.to_arrow()
        every = statistics_columns(pa.schema([arrow.field(field.name) for field in kept]), state.configuration)
        self._statistics = [path for path in every if path[0] in changed]
        needed = changed | read | set((table.where.columns if table.where is not None else None) or [])
        self._read = [name for name in table.names if name in needed]
        is_known = table.where is None or table.where.columns is not None
        is_flat = not any(pa.types.is_nested(kind) for kind in self._file_schema.types)
        self._is_possible = (
            is_known
            and is_flat
            and parquet is None
            and not table.writes_vectors
            and not state.keeps_change_feed
            and not changed & set(state.partition_by)
            and len(self._read) < len(table.names)
        )

    def splice(self, found: MatchedFile) -> ColumnSplice | None:
        """A copy of a file to be, None if all of its columns have to be written anew.

        They have to where rows of it are deleted, where the log has no statistics of it, and where how its values are
        meant is said of all columns together.
        """
        if not self._is_possible or found.file.deletion_vector is not None or not found.statistics:
            return None
        splice = ColumnSplice(*self._table.scan.place(found.file))
        groups = splice.row_groups
        return splice if splice.fits and groups and all(groups) else None

    def copy(self, files: Sequence[tuple[MatchedFile, ColumnSplice]], values: NewValues) -> list[dict[str, Any]]:
        """Copies files, two at a time; the `add` actions of the copies.

        Args:
            files: The files, with their copies to be.
            values: The new values; it is called by two threads.
        """
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="esker-delta-copies") as pool:
            made = pool.map(lambda pair: self._copy(pair[0], pair[1], values), files)
            try:
                return list(made)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _copy(self, found: MatchedFile, splice: ColumnSplice, values: NewValues) -> dict[str, Any]:
        store = self._table.target.store
        partition: dict[str, str | None] = found.remove.get("partitionValues") or {}
        folder = "" if self._names.mapped else directories(partition)
        path = f"{folder}part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        statistics = FileStatistics(self._statistics, self._names.by_path)
        properties = encodings_like(self._table.scan.footer(found.file), self._parquet)
        arguments = properties.arguments([column.path for column in leaf_columns(self._file_schema)])
        self._staged.add(store, path)
        sink = FileSink(store, path)
        try:
            rows = self._table.split(found, self._read)
            for count in splice.row_groups:
                sink.write(splice.append(self._part(rows, count, statistics, values, arguments)))
            sink.write(splice.finish())
            sink.finish()
        except BaseException:
            sink.abort()
            raise
        return {
            "path": encode_path(path),
            "partitionValues": partition,
            "size": sink.size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": self._merged(found.statistics, statistics, sum(splice.row_groups)),
        }

    def _part(
        self,
        rows: Iterator[tuple[pa.RecordBatch, pa.Array | None]],
        count: int,
        statistics: FileStatistics,
        values: NewValues,
        arguments: Mapping[str, Any],
    ) -> bytes:
        """The new values of a row group, as a Parquet file of those columns alone."""
        import pyarrow.parquet as pq

        batches: list[pa.RecordBatch] = []
        while count:
            # Batches do not go beyond their row group.
            batch, mask = next(rows)
            for made in conformed([values(batch, mask)], self._schema):
                statistics.add(made)
                batches.append(pa.RecordBatch.from_arrays(made.columns, schema=self._file_schema))
            count -= batch.num_rows
        sink = pa.BufferOutputStream()
        table = pa.Table.from_batches(batches)
        with pq.ParquetWriter(sink, self._file_schema, store_schema=False, **arguments) as writer:
            writer.write_table(table, row_group_size=table.num_rows)
        return bytes(memoryview(sink.getvalue()))

    def _merged(self, old: str | None, new: FileStatistics, rows: int) -> str:
        """The statistics of a copy: the old ones, but for the columns that have new values."""
        whole = {**decode(old), "numRecords": rows}
        found = decode(new.json())
        for part in _BOUNDS:
            kept = {
                name: value for name, value in (whole.get(part) or {}).items() if name not in self._file_schema.names
            }
            if part in whole or found.get(part):
                whole[part] = kept | found.get(part, {})
        return encode(whole)
