"""Writes data files: rows in, staged Parquet files and their `add` actions out, within a memory limit.

```
batches -> by partition -> buffered rows -> row groups -> a file of about target_file_size -> store
```

Rows of each partition are buffered; what is buffered by all partitions together stays within a limit, and beyond it
the largest file in the making is finished. Row groups are encoded, and go to the store, by threads of the writer's own,
while the next rows come: a file is never in memory as a whole, unless it is small. A file has a unique name (a UUID),
and is staged before a log entry names it.

Spec: "Data Files", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..._native.store import Store
from ...commit.gate import Gate
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError
from ..definition.partition_text import check_partition_type, directories, encode_path, partition_text
from ..definition.physical_names import PhysicalNames
from ..definition.protocol import check_has_fields
from ..definition.statistics_columns import statistics_columns
from ..properties import WriterProperties
from ..schema import Schema
from .file_columns import as_in_files, leaf_columns
from .file_sink import FileSink
from .file_statistics import FileStatistics

if TYPE_CHECKING:
    import pyarrow.parquet as pq

DEFAULT_FILE_SIZE = 100 * 1024 * 1024
MEMORY_LIMIT = 256 * 1024 * 1024
_ROW_GROUP_BYTES = 32 * 1024 * 1024
_LEAST_ROW_GROUP = 1024 * 1024
_ROW_GROUP_ROWS = 1024 * 1024
_THREADS = 8


class _OpenFile:
    """One file in the making."""

    def __init__(self, values: dict[str, str | None], statistics: FileStatistics, path: str, store: Store) -> None:
        self.values = values
        self.statistics = statistics
        self.path = path
        self.pending: list[pa.RecordBatch] = []
        self.pending_bytes = 0
        self.pending_rows = 0
        self.rows = 0
        self.encoding: Future[None] | None = None
        self.encoding_bytes = 0
        self.sink = FileSink(store, path)
        self.writer: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        """Bytes of the file, about, with the rows that it has so far."""
        return self.pending_bytes + self.encoding_bytes + self.sink.size

    @property
    def held(self) -> int:
        """Bytes that it holds in memory."""
        return self.pending_bytes + self.encoding_bytes + self.sink.held

    def wait(self) -> None:
        """Returns once its row groups are encoded."""
        if self.encoding is not None:
            self.encoding.result()
            self.encoding = None

    def drop(self) -> None:
        """Leaves nothing behind of a file that is not finished."""
        if self.writer is not None:
            # pyarrow closes a writer that goes out of use, which writes a footer: into a store that may have failed.
            self.writer.is_open, self.writer = False, None
        self.sink.abort()


class DataFileWriter:
    """Stages data files.

    Args:
        store: The table's.
        schema: The table's columns.
        partition_by: The partition columns.
        configuration: The table's properties: which statistics are kept, how large files are.
        mapped: Whether column mapping is on.
        target_file_size: Bytes of a file, about; `delta.targetFileSize` or 100 MiB if not given.
        properties: How Parquet is written.
        tight: Whether statistics say that their bounds are tight.
        stem: A folder that all files are in, and how their names start.
        memory_limit: Bytes that files in the making hold.
        staged: Takes in each file before it is put; if not given, one of its own.

    Raises:
        UnsupportedError: A column to partition by, or of structs without fields, that files do not hold.

    Example:
        `writer = DataFileWriter(store, schema, [], {}); writer.write(batch); adds = writer.close()`
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        partition_by: list[str],
        configuration: Mapping[str, str],
        *,
        mapped: bool = False,
        target_file_size: int | None = None,
        properties: WriterProperties | None = None,
        tight: bool = False,
        stem: tuple[str, str] = ("", "part"),
        memory_limit: int = MEMORY_LIMIT,
        staged: StagedFiles | None = None,
    ) -> None:
        check_has_fields(schema)
        arrow = schema.to_plain_arrow()
        for name in partition_by:
            check_partition_type(name, arrow.field(name).type)
        self._store = store
        self._partition_by = partition_by
        self._required = [name for name in partition_by if not arrow.field(name).nullable]
        self._names = PhysicalNames(schema, mapped=mapped)
        self._file_schema = self._names.file_schema(partition_by)
        self._columns = [field.name for field in schema.fields if field.name not in partition_by]
        kept = pa.schema([arrow.field(name) for name in self._columns])
        self._statistics = statistics_columns(kept, configuration)
        self._target = target_file_size or int(configuration.get("delta.targetFileSize", DEFAULT_FILE_SIZE))
        properties = properties or WriterProperties()
        if not self._columns:
            raise InvalidArgumentError("expected a column to put into data files, found only those to partition by")
        leaves = [column.path for column in leaf_columns(self._file_schema)]
        self._arguments = properties.arguments(leaves)
        self._codec = str(self._arguments["compression"])
        self._row_group_rows = properties.max_row_group_size or _ROW_GROUP_ROWS
        self._tight = tight
        self._above, self._stem = stem
        self._limit = memory_limit
        self._row_group_bytes = min(_ROW_GROUP_BYTES, max(_LEAST_ROW_GROUP, memory_limit // 4), self._target)
        self._staged = StagedFiles() if staged is None else staged
        self._open: dict[tuple[str | None, ...], _OpenFile] = {}
        self._adds: list[dict[str, Any]] = []
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="esker-delta-files")
        self._gate = Gate()
        self._leaving: deque[tuple[_OpenFile, Future[None]]] = deque()
        self._unfinished: set[_OpenFile] = set()
        self._named = 0
        self.rows = 0
        self.max_rows: int | None = None
        """Rows of one file at most; None if only its bytes count."""

    @property
    def adds(self) -> list[dict[str, Any]]:
        """The `add` actions of the files that are staged so far."""
        return self._adds

    def write(self, batch: pa.RecordBatch) -> None:
        """Rows of the table, with its columns under their logical names and types."""
        self.rows += batch.num_rows
        for values, rows in self._by_partition(batch):
            self._append(values, rows)
        while sum(file.held for file in self._open.values()) > self._limit:
            largest = max(self._open, key=lambda key: self._open[key].held)
            self._finish(self._open.pop(largest))

    def close(self) -> list[dict[str, Any]]:
        """Finishes all files and hands out their `add` actions."""
        try:
            while self._open:
                self._finish(self._open.pop(next(iter(self._open))))
            self._wait(0, 0)
        finally:
            self._gate.close()
            self._pool.shutdown()
            self._abort()
        return self._adds

    def stop(self) -> None:
        """Drops what is not written yet, and returns once no put is running: then files can be deleted."""
        self._open.clear()
        try:
            self._gate.close()
        except BaseException:
            # A second Ctrl-C: what is being put deletes itself.
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._pool.shutdown(cancel_futures=True)
        self._abort()

    def _abort(self) -> None:
        """Drops files that were begun at the store and have no end."""
        for file in self._unfinished:
            file.drop()
        self._unfinished.clear()

    def abandon(self) -> None:
        """Deletes what was staged, unless a commit may name it."""
        self.stop()
        self._staged.discard()

    def __enter__(self) -> DataFileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _by_partition(self, batch: pa.RecordBatch) -> Iterator[tuple[dict[str, str | None], pa.RecordBatch]]:
        if batch.num_rows == 0:
            return
        if not self._partition_by:
            yield {}, batch
            return
        code = np.zeros(batch.num_rows, np.int64)
        for name in self._partition_by:
            encoded = pc.dictionary_encode(batch.column(name), null_encoding="encode")
            indices = encoded.indices.to_numpy(zero_copy_only=False)
            code = np.unique(code * len(encoded.dictionary) + indices, return_inverse=True)[1]
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        ends = [*starts[1:], batch.num_rows]
        kept = batch.select(self._columns)
        for start, end in zip(starts.tolist(), ends, strict=True):
            first = int(order[start])
            values = {self._names.of(name): partition_text(batch.column(name)[first]) for name in self._partition_by}
            for name in self._required:
                if values[self._names.of(name)] is None:
                    raise InvalidArgumentError(
                        f"column {name!r}: expected no nulls (NOT NULL), found an empty text, which is null as a "
                        "partition value; nothing was written",
                        column=name,
                    )
            # A copy: a slice would hold all rows of the batch for as long as its file is in the making.
            yield values, kept if len(starts) == 1 else kept.take(pa.array(order[start:end]))

    def _append(self, values: dict[str, str | None], rows: pa.RecordBatch) -> None:
        key = tuple(values.values())
        while rows.num_rows:
            if key not in self._open:
                statistics = FileStatistics(self._statistics, self._names.by_path, tight=self._tight)
                self._open[key] = _OpenFile(values, statistics, self._new_path(values), self._store)
                self._unfinished.add(self._open[key])
            file = self._open[key]
            room = self._row_group_rows - file.pending_rows
            part = rows.slice(0, room if self.max_rows is None else min(room, self.max_rows - file.rows))
            rows = rows.slice(part.num_rows)
            file.pending.append(part)
            file.rows += part.num_rows
            file.pending_rows += part.num_rows
            file.pending_bytes += part.nbytes
            if file.pending_rows >= self._row_group_rows or file.pending_bytes >= self._row_group_bytes:
                self._write_row_group(file)
                if file.size >= self._target:
                    # Encoding makes it smaller: wait for its size.
                    file.wait()
                if file.size >= self._target:
                    self._finish(self._open.pop(key))
            if key in self._open and self.max_rows is not None and file.rows >= self.max_rows:
                self._finish(self._open.pop(key))

    def _new_path(self, values: dict[str, str | None]) -> str:
        """A path that no other file has; the file is staged from now on."""
        # Directories of physical names would mean nothing to a reader.
        folder = "" if self._names.mapped else directories(values)
        codec = "" if self._codec == "none" else f".{self._codec}"
        path = f"{self._above}{folder}{self._stem}-{self._named:05}-{uuid.uuid4()}-c000{codec}.parquet"
        self._named += 1
        self._staged.add(self._store, path)
        return path

    def _write_row_group(self, file: _OpenFile) -> None:
        """Has the rows that are pending encoded, one group of a file at a time."""
        if not file.pending_rows:
            return
        file.wait()
        batches, file.encoding_bytes = file.pending, file.pending_bytes
        file.pending, file.pending_bytes, file.pending_rows = [], 0, 0
        file.encoding = self._pool.submit(self._gate.run, partial(self._encode, file, batches))

    def _encode(self, file: _OpenFile, batches: list[pa.RecordBatch]) -> None:
        import pyarrow.parquet as pq

        for rows in batches:
            file.statistics.add(rows)
        table = pa.Table.from_batches(batches).select(self._columns)
        batches.clear()
        table = as_in_files(table, self._file_schema)
        if file.writer is None:
            file.writer = pq.ParquetWriter(file.sink, self._file_schema, store_schema=False, **self._arguments)
        file.writer.write_table(table, row_group_size=self._row_group_rows)
        file.encoding_bytes = 0

    def _finish(self, file: _OpenFile) -> None:
        """Has a file put, once its last rows are encoded; waits where many are on their way."""
        self._write_row_group(file)
        if file.encoding is None and file.writer is None:
            return
        add = {
            "path": encode_path(file.path),
            "partitionValues": file.values,
            "size": 0,
            "modificationTime": 0,
            "dataChange": True,
            "stats": "",
            "_staged": file.path,
        }
        self._adds.append(add)
        # Its last row group was submitted before this, so that the pool cannot deadlock.
        self._leaving.append((file, self._pool.submit(self._gate.run, partial(self._put, file, add))))
        self._wait(2 * _THREADS, self._limit)

    def _wait(self, files: int, size: int) -> None:
        """Returns once no more files, and no more bytes, are on their way to the store."""
        while len(self._leaving) > files or sum(file.held for file, _ in self._leaving) > size:
            self._leaving.popleft()[1].result()

    def _put(self, file: _OpenFile, add: dict[str, Any]) -> None:
        file.wait()
        if file.writer is None:
            return
        file.writer.close()
        file.writer = None
        add["size"], add["modificationTime"] = file.sink.size, time.time_ns() // 1_000_000
        add["stats"] = file.statistics.json()
        file.sink.finish()
        self._unfinished.discard(file)
        if self._gate.is_closed:
            # Nobody waits for it any more.
            self._store.delete(file.path)
