"""The source of a merge: rows of any kind, kept so that they can be read again; beyond a limit on disk.

```
a table, a reader, a frame -> batches of plain columns -> in memory, or a file without a name
   └ for one run of the merge: its parts, each of which fits in memory, with a number for each row
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.merge import DiskQuota, KeyJoin, MergeSource, RowPartitions
from ...arrow.struct_offsets import rebased
from ...exceptions import EskerError, InvalidArgumentError
from ..definition.constraints import GENERATION
from ..write.conformed_values import fitted
from ..write.incoming import BATCH_ROWS, incoming
from .condition import JoinCondition

_KEPT_BYTES = 32 * 1024 * 1024
_KEY_BYTES = 40
"""Bytes that the key of one row takes where it is looked up, beside its values."""
_VALUES = 256
"""Distinct values of a key up to which files are looked for by each of them."""


def source_reader(data: Any) -> pa.RecordBatchReader:
    """Rows of any library as a stream: what `write_deltalake` takes, and datasets, scanners, DuckDB's relations.

    Raises:
        TypeError: They are no rows.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.merge.source import source_reader
        >>> source_reader(pa.table({"x": [1]})).read_all().num_rows
        1
    """
    if hasattr(data, "scanner") and not hasattr(data, "__arrow_c_stream__"):
        data = data.scanner()
    if hasattr(data, "to_reader") and not isinstance(data, pa.Table) and not hasattr(data, "__arrow_c_stream__"):
        return data.to_reader()
    if hasattr(data, "fetch_record_batch") and not hasattr(data, "__arrow_c_stream__"):
        return data.fetch_record_batch()
    return incoming(data)


class KeptSource:
    """Rows of a merge's source, with plain types.

    Args:
        data: The rows.
        memory_limit: Bytes that are kept in memory.
        disk: What temporary files take their bytes of.

    Raises:
        InvalidArgumentError: A column's name is there twice, ignoring case.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.merge.source import KeptSource
        >>> KeptSource(pa.table({"x": [1, 2]})).num_rows
        2
    """

    def __init__(self, data: Any, *, memory_limit: int = _KEPT_BYTES, disk: DiskQuota | None = None) -> None:
        reader = source_reader(data)
        seen: set[str] = set()
        for name in reader.schema.names:
            if name.lower() in seen:
                raise InvalidArgumentError(
                    f"expected each column of the source once, found {name!r} twice", column=name
                )
            seen.add(name.lower())
        self.schema = pa.schema([pa.field(field.name, plain_type(field.type)) for field in reader.schema])
        self.generated = {
            field.name: field.metadata for field in reader.schema if GENERATION.encode() in (field.metadata or {})
        }
        """What columns say of how they are generated, which no column that a merge adds may be."""
        failed: list[BaseException] = []
        made = pa.RecordBatchReader.from_batches(self.schema, _noted(_plain(reader, self.schema), failed))
        try:
            self._kept = MergeSource(rebased(made), memory_limit=memory_limit, disk=disk)
        except EskerError:
            if not failed:
                raise
        if failed:
            # What the caller's rows raised, Ctrl-C among it, with its own cause, not what became of it on its way.
            raise failed[0]
        self.disk = disk

    @property
    def num_rows(self) -> int:
        """How many."""
        return self._kept.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        yield from pa.RecordBatchReader.from_stream(self._kept)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without views, extensions and run-ends, and times as tables have them: of UTC, without nanoseconds.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.merge.source import plain_type
        >>> plain_type(pa.list_(pa.string_view()))
        ListType(list<item: string>)
        >>> plain_type(pa.timestamp("ns", "Asia/Tokyo"))
        TimestampType(timestamp[us, tz=UTC])
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_string_view(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_binary_view(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_timestamp(kind):
        # A key, a day and a text of it must be those of a row that was written with it.
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, None if kind.tz is None else "UTC")
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in fields])
    if types.is_map(kind):
        return pa.map_(pa.field("key", plain_type(kind.key_type), False), pa.field("value", plain_type(kind.item_type)))
    if any(check(kind) for check in (types.is_list, types.is_large_list, types.is_fixed_size_list)):
        return pa.list_(pa.field(kind.value_field.name, plain_type(kind.value_type)))
    return kind


def _noted(batches: Iterator[pa.RecordBatch], failed: list[BaseException]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except GeneratorExit:
        raise
    except BaseException as error:
        failed.append(error)
        raise


def _plain(batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for whole in batches:
        for start in range(0, whole.num_rows, BATCH_ROWS):
            batch = whole.slice(start, BATCH_ROWS)
            columns = []
            for field, values in zip(schema, batch.columns, strict=True):
                if pa.types.is_run_end_encoded(values.type):
                    values = pc.run_end_decode(values)
                columns.append(fitted(values, field.type, field.name))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass
class SourceRange:
    """What a key is on the side of the source: its ends, and its values if they are few; None if there is none."""

    least: pa.Scalar | None = None
    most: pa.Scalar | None = None
    values: pa.Array | None = None
    is_empty: bool = True
    is_many: bool = False

    def add(self, keys: pa.Array) -> None:
        """Keys of more rows."""
        keys = keys.drop_null()
        if not len(keys):
            return
        ends = pc.min_max(keys)
        least, most = ends["min"], ends["max"]
        if not self.is_empty:
            # Values side by side: element by element, times with a zone have no order in pyarrow.
            ends = pc.min_max(pa.array([least, most, self.least, self.most], keys.type))
            least, most = ends["min"], ends["max"]
        self.least, self.most, self.is_empty = least, most, False
        if not self.is_many:
            parts = [keys] if self.values is None else [self.values, keys]
            self.values = pc.unique(pa.chunked_array(parts, keys.type))
            self.is_many = len(self.values) > _VALUES
        if self.is_many:
            self.values = None


@dataclass
class SourcePart:
    """Rows of the source that are in memory, numbered from 0.

    Args:
        rows: The rows.
        join: Their keys; None if every row of the table is compared with every one of them.
    """

    rows: pa.RecordBatch
    join: KeyJoin | None


class SourceParts:
    """The source in parts: rows with equal keys are in one.

    Args:
        source: The rows.
        condition: What they are joined by.
        part_bytes: Bytes of a part with its keys, about.

    Example:
        `for part in SourceParts(source, condition, 1 << 25): part.rows.num_rows`
    """

    def __init__(self, source: KeptSource, condition: JoinCondition, part_bytes: int) -> None:
        self._source = source
        self._condition = condition
        self.ranges = [SourceRange() for _ in condition.keys]
        size = 0
        for batch in source.batches():
            size += self._bytes(batch)
            if condition.keys:
                for found, keys in zip(self.ranges, condition.source_keys(batch).columns, strict=True):
                    if _has_order(keys.type):
                        found.add(keys)
        self._limit = part_bytes
        self.count = max(1, -(-size // part_bytes))
        self._spilled: RowPartitions | None = None
        if self.count > 1 and condition.keys:
            self._spilled = RowPartitions(source.schema, self.count, memory_limit=part_bytes // 2, disk=source.disk)
            for batch in source.batches():
                self._spilled.push_by_key(batch, condition.source_keys(batch))

    def __iter__(self) -> Iterator[SourcePart]:
        if self._spilled is not None:
            for number in range(self.count):
                yield self._part([pa.record_batch(part) for part in self._spilled.read(number)])
            return
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in self._source.batches():
            if self.count > 1 and held and size + self._bytes(batch) > self._limit:
                yield self._part(held)
                held, size = [], 0
            held.append(batch)
            size += self._bytes(batch)
        yield self._part(held)

    def _bytes(self, batch: pa.RecordBatch) -> int:
        return int(batch.nbytes) + (_KEY_BYTES * batch.num_rows if self._condition.keys else 0)

    def _part(self, batches: list[pa.RecordBatch]) -> SourcePart:
        schema = self._source.schema
        table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
        batches.clear()
        whole = table.combine_chunks().to_batches()
        del table
        if len(whole) > 1:
            raise InvalidArgumentError("expected texts of less than 2 GiB in one part of the source, found more")
        rows = whole[0] if whole else pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        if not self._condition.keys:
            return SourcePart(rows, None)
        keys = self._condition.source_keys(rows)
        return SourcePart(rows, KeyJoin(pa.RecordBatchReader.from_batches(keys.schema, [keys])))


def _has_order(kind: pa.DataType) -> bool:
    """Whether bounds of such keys rule out files."""
    types = pa.types
    ordered = types.is_integer(kind) or types.is_string(kind) or types.is_temporal(kind) or types.is_decimal(kind)
    return bool(ordered)
