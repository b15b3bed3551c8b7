"""Copies of data files in which some columns have new values: the pages of the other columns are copied as they are.

```
old file -> what happens to the rows of a row group -> column by column: its old pages, or new ones -> new file
```

A column of a row group is in memory at a time, of each file that is copied.

Spec: "Data Files", "Per-file Statistics".
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import ColumnSplice
from ...commit.gate import Gate
from ...commit.orphans import StagedFiles
from ..definition.partition_text import directories, encode_path
from ..definition.physical_names import PhysicalNames
from ..definition.statistics_columns import statistics_columns
from ..definition.table_state import TableState
from ..properties import WriterProperties
from ..read.conform import plain
from ..read.file_errors import each_batch
from ..write.conformed_values import fitted
from ..write.file_columns import as_in_files, leaf_columns
from ..write.file_statistics import FileStatistics, decode, encode
from .changed_table import ChangedTable, MatchedFile
from .copied_encodings import encodings_like
from .group_change import GroupChange

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_THREADS = 2
LEAST_COPIED = 4 * 1024 * 1024
"""Bytes of a file from which on it is copied on its own where others would be written together with it."""
_BOUNDS = ("minValues", "maxValues", "nullCount")
_REPEATS = 3
"""Bytes of a text up to which all of a row group are numbers of a dictionary: others take four at least."""
_BATCH_VALUES = 64 * 1024
"""Values that are encoded at a time, where they are numbers, of a dictionary's or their own."""


class OpenFile:
    """A file that is copied.

    Args:
        table: The version.
        found: The file.

    Example:
        `for batch in OpenFile(table, found).read(0, ["k"]): batch.num_rows`
    """

    def __init__(self, table: ChangedTable, found: MatchedFile) -> None:
        self.found = found
        self._table = table
        self._parquet = table.scan.open(found.file)
        self.starts = self._parquet.starts

    @property
    def metadata(self) -> pq.FileMetaData:
        """Its footer."""
        return self._parquet.metadata

    def repeated(self, group: int, name: str) -> Iterator[pa.DictionaryArray] | None:
        """The texts of a column as numbers of a dictionary, None where the file does not have them so.

        Args:
            group: The row group.
            name: The column's name in the file.
        """
        metadata = self.metadata.row_group(group)
        columns = (metadata.column(index) for index in range(metadata.num_columns))
        column = next((column for column in columns if column.path_in_schema == name), None)
        if column is None or column.physical_type != "BYTE_ARRAY" or not column.has_dictionary_page:
            return None
        if "." in name or column.total_uncompressed_size > _REPEATS * column.num_values:
            return None
        if self._parquet.parquet.schema_arrow.field(name).type != pa.string():
            return None
        opened = self._table.scan.open(self.found.file, dictionaries=[name])
        batches = opened.numbered([name], [group])
        return (batch.column(0) for _, batch in each_batch(batches, self._table.snapshot.version, self.found.file.path))

    def read(
        self, group: int, columns: list[str], *, only: pa.Array | None = None, numbered: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a row group; arguments as in `TableFileReader.read`."""
        read = partial(self._table.scan.read, opened=self._parquet, group=group)
        return read(self.found.file, columns, only=only, numbered=numbered)


Changes = Callable[[OpenFile, int], GroupChange]
"""What happens to the rows of a row group of a file, by its number."""


class ColumnCopies:
    """Copies files with new values in some columns, or without some rows.

    Args:
        table: The version that is changed.
        changed: The columns that get new values; None if rows may go, so that every column does.
        staged: Takes in each file before it is put.
        parquet: How Parquet is written.
        after: What the table is after the change, if it is something else than before.
        alone: Whether small files are copied on their own, too, rather than written into one.
        assigned: The columns that get new values where rows may go, too: files stay in their partitions.

    Example:
        `copies = ColumnCopies(table, {"n"}, staged, None)`
    """

    def __init__(
        self,
        table: ChangedTable,
        changed: set[str] | None,
        staged: StagedFiles,
        parquet: WriterProperties | None,
        *,
        after: TableState | None = None,
        alone: bool = False,
        assigned: Collection[str] = (),
    ) -> None:
        state = after or table.state
        self._table = table
        self._staged = staged
        self._names = PhysicalNames(state.schema, mapped=state.mapped)
        kept = [field for field in state.schema.fields if field.name not in state.partition_by]
        self._only = changed is None
        wanted = {field.name for field in kept} if changed is None else changed
        whole = self._names.file_schema(state.partition_by)
        self._columns = {self._names.of(field.name): field.name for field in kept if field.name in wanted}
        self._fields = {field.name: whole.field(at) for at, field in enumerate(kept) if field.name in wanted}
        arrow = state.schema.to_plain_arrow()
        self._kinds = {name: plain(arrow.field(name).type) for name in self._fields}
        every = statistics_columns(pa.schema([arrow.field(field.name) for field in kept]), state.configuration)
        self._statistics = {name: [path for path in every if path[0] == name] for name in self._fields}
        self._most = 0
        self._alone = alone
        self._is_possible = (
            parquet is None
            and not table.writes_vectors
            and not state.keeps_change_feed
            and (wanted | set(assigned)).isdisjoint(state.partition_by)
            and (self._only or bool(self._fields))
            and state.configuration.get("delta.columnMapping.mode") != "id"
        )

    def splice(self, found: MatchedFile) -> ColumnSplice | None:
        """A copy of a file to be, None if its rows have to be written anew.

        They have to where it is small, where rows of it are deleted, where the log has no statistics of it, where how
        its values are meant is said of all columns together, where a column has its name in another case, and where a
        column of a row group would take much memory.
        """
        if not self._is_possible or found.file.deletion_vector is not None or not found.statistics:
            return None
        if not self._alone and int(found.remove.get("size") or 0) < LEAST_COPIED:
            return None
        splice = ColumnSplice(*self._table.scan.place(found.file))
        groups = splice.row_groups
        if not splice.fits or not groups or not all(groups):
            return None
        footer = self._table.scan.footer(found.file)
        if self._meets_other_case(footer):
            return None
        most = self._most_bytes(footer)
        if most > self._table.budget.column:
            return None
        self._most = max(self._most, most)
        return splice

    def _meets_other_case(self, metadata: pq.FileMetaData) -> bool:
        """Whether a new column would lie beside one whose name differs only by case, which Spark does not read."""
        there = {metadata.schema.column(index).path.partition(".")[0] for index in range(metadata.num_columns)}
        lowered = {name.lower() for name in there}
        return not self._only and any(name not in there and name.lower() in lowered for name in self._columns)

    def _most_bytes(self, metadata: pq.FileMetaData) -> int:
        """Bytes of the largest column of a row group that would be held."""
        most = 0
        for number in range(metadata.num_row_groups):
            group, sizes = metadata.row_group(number), dict.fromkeys(self._columns, 0)
            for index in range(group.num_columns):
                column = group.column(index)
                name = column.path_in_schema.partition(".")[0]
                if name in sizes:
                    sizes[name] += max(column.total_uncompressed_size, 8 * column.num_values)
            most = max([most, *sizes.values()])
        return most

    def copy(self, files: Sequence[tuple[MatchedFile, ColumnSplice]], changes: Changes) -> list[dict[str, Any]]:
        """Copies files, two at a time if memory has room for it; the `add` actions of the copies.

        Args:
            files: The files, with their copies to be.
            changes: What happens to their rows; it is called by two threads.
        """
        threads = _THREADS if self._most * _THREADS <= self._table.budget.column else 1
        with ThreadPoolExecutor(threads, thread_name_prefix="esker-delta-copies") as pool:
            gate = Gate()
            try:
                copy = partial(self._copy, changes=changes, gate=gate)
                return list(pool.map(lambda pair: gate.run(partial(copy, *pair)), files))
            except BaseException:
                gate.close()
                pool.shutdown(cancel_futures=True)
                raise

    def _copy(self, found: MatchedFile, splice: ColumnSplice, changes: Changes, gate: Gate) -> dict[str, Any]:
        store = self._table.target.store
        partition: dict[str, str | None] = found.remove.get("partitionValues") or {}
        folder = "" if self._names.mapped else directories(partition)
        path = f"{folder}part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        rows = OpenFile(self._table, found)
        properties = encodings_like(rows.metadata, None)
        leaves = {
            name: [leaf.path for leaf in leaf_columns(pa.schema([field]))] for name, field in self._fields.items()
        }
        arguments = {name: properties.arguments(paths) for name, paths in leaves.items()}
        statistics = {
            name: FileStatistics(paths, self._names.by_path) for name, paths in self._statistics.items() if paths
        }
        kept = 0
        self._staged.add(store, path)
        try:
            splice.begin(store, path, _encoded(pa.schema(self._fields.values()), {}, None), only=self._only)
            for group in range(len(splice.row_groups)):
                change = changes(rows, group)
                kept += change.kept

                def part(column: str, group: int = group, change: GroupChange = change) -> bytes:
                    name = self._columns[column]
                    return self._part(rows, group, change, name, statistics.get(name), arguments[name])

                splice.append(change.kept, part)
                del change, part
                pa.default_memory_pool().release_unused()
            size = splice.finish()
            if gate.is_closed:
                # Nobody waits for it any more.
                store.delete(path)
        except BaseException:
            splice.abort()
            raise
        return {
            "path": encode_path(path),
            "partitionValues": partition,
            "size": size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": self._merged(found.statistics, statistics.values(), kept),
        }

    def _part(
        self,
        rows: OpenFile,
        group: int,
        change: GroupChange,
        name: str,
        statistics: FileStatistics | None,
        arguments: Mapping[str, Any],
    ) -> bytes:
        """The values of one column of a row group, as a Parquet file of that column alone."""
        if self._is_fixed(name):
            arguments = {**arguments, "write_batch_size": _BATCH_VALUES}
        elif change.made is None and name not in change.held and self._kinds[name] == pa.string():
            texts = rows.repeated(group, self._fields[name].name)
            if texts is not None:
                return self._repeated(texts, change, name, statistics, arguments)
        old = self._old(rows, group, change, name)
        chunks: list[pa.Array] = []
        for values in change.applied(name, old):
            if statistics is not None:
                statistics.add(pa.RecordBatch.from_arrays([values], names=[name]))
            chunks.append(values)
        table = pa.Table.from_arrays([pa.chunked_array(chunks)], names=[name])
        chunks.clear()
        return _encoded(pa.schema([self._fields[name]]), arguments, table)

    def _is_fixed(self, name: str) -> bool:
        """Whether values of a column have eight bytes at most, so that a page has many."""
        kind = self._kinds[name]
        return bool(pa.types.is_primitive(kind)) and kind.bit_width <= 64

    def _repeated(
        self,
        texts: Iterator[pa.DictionaryArray],
        change: GroupChange,
        name: str,
        statistics: FileStatistics | None,
        arguments: Mapping[str, Any],
    ) -> bytes:
        """Texts of a row group that stay, none of which is looked up again in a dictionary."""
        chunks = list(change.applied(name, texts))
        longest = max((chunk.dictionary for chunk in chunks), key=len)
        if any(not longest.slice(0, len(chunk.dictionary)).equals(chunk.dictionary) for chunk in chunks):
            whole = pa.chunked_array(chunks).unify_dictionaries()
            chunks, longest = whole.chunks, whole.chunk(0).dictionary
        indices = pa.chunked_array([chunk.indices for chunk in chunks])
        if statistics is not None:
            used = longest.take(pc.unique(indices).drop_null())
            both = pa.concat_arrays([used, pa.nulls(indices.null_count, used.type)])
            statistics.add(pa.RecordBatch.from_arrays([both], names=[name]))
        made = [pa.DictionaryArray.from_arrays(part, longest) for part in indices.chunks]
        field = self._fields[name].with_type(made[0].type)
        table = pa.Table.from_arrays([pa.chunked_array(made)], schema=pa.schema([field]))
        return _encoded(table.schema, {**arguments, "write_batch_size": _BATCH_VALUES}, table, is_ready=True)

    def _old(self, rows: OpenFile, group: int, change: GroupChange, name: str) -> Iterator[pa.Array]:
        """The values of a column before the change, in the type that it has afterwards."""
        kind = self._kinds[name]
        if name not in self._table.names:
            return iter([pa.nulls(change.rows, kind)])
        held = change.held.pop(name, None)
        old = iter(held) if held is not None else (batch.column(0) for batch in rows.read(group, [name]))
        return (values if values.type == kind else fitted(values, kind, name) for values in old)

    def _merged(self, old: str | None, new: Iterable[FileStatistics], rows: int) -> str:
        """The statistics of a copy: the old ones, but for the columns that have new values."""
        whole = decode(old)
        kept = {
            part: {
                name: value
                for name, value in (whole.get(part) or {}).items()
                if not self._only and name not in self._columns
            }
            for part in _BOUNDS
        }
        for column in new:
            found = decode(column.json())
            for part in _BOUNDS:
                kept[part] |= found.get(part, {})
        whole["numRecords"] = rows
        return encode(whole | {part: values for part, values in kept.items() if part in whole or values})


def _encoded(
    schema: pa.Schema, arguments: Mapping[str, Any], rows: pa.Table | None, *, is_ready: bool = False
) -> bytes:
    """Rows as a Parquet file of one row group, or a file without rows.

    Args:
        schema: The columns as the file has them.
        arguments: How it is written.
        rows: The rows.
        is_ready: Whether they have that schema.
    """
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False, **arguments) as writer:
        if rows is not None:
            made = rows if is_ready else as_in_files(rows, schema)
            writer.write_table(made, row_group_size=rows.num_rows)
    return sink.getvalue()
