"""The partitions of reads, and what the driver describes instead of rows for reads by `mapInArrow`: one row for each.

The rows come from an RDD of the driver, or from the data source where a session has none, and not from `range`: Spark
takes a DataFrame made of a range for as small as the range, a few bytes, and would broadcast it into any join. A
description is an Arrow stream: nothing is unpickled.

```
slices   | fragment | start | end |
files    | path | vector | start | end | =column, for each partition column |
changes  no columns
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, StructField, StructType

if TYPE_CHECKING:
    from esker.delta.read.file_reader import TableFile

__all__ = [
    "PARTITION_SCHEMA",
    "ChangesPartition",
    "FilesPartition",
    "SlicePartition",
    "described",
    "descriptions",
    "from_descriptions",
]

PARTITION_SCHEMA = StructType([StructField("partition", BinaryType())])
"""The Spark schema of the description of a partition, for the option `output=partitions`."""

_SLICES = pa.schema([("fragment", pa.int64()), ("start", pa.int64()), ("end", pa.int64())])
_BATCH_ROWS = b"batch_rows"
_VALUE = "="
"""What the name of a partition column begins with in a description."""


@dataclass(frozen=True)
class SlicePartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """A partition: slices of fragments that one task reads.

    Args:
        slices: For each of them the fragment, its first physical row to read, and the row after the last one; None for
            the whole fragment.
        batch_rows: The maximum number of rows per batch.
    """

    slices: tuple[tuple[int, int, int | None], ...]
    batch_rows: int


@dataclass(frozen=True)
class FilesPartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """Files, which one task reads."""

    files: tuple[TableFile, ...]


class ChangesPartition(InputPartition):
    """All that changed, which one task reads."""


def described(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """A row that describes a partition; none for one of Spark's own, where there is nothing to read.

    Example:
        `next(described(partition)).num_rows`
    """
    for value in descriptions(partition):
        yield pa.RecordBatch.from_arrays([pa.array([value], pa.binary())], names=["partition"])


def descriptions(partition: InputPartition) -> Iterator[bytes]:
    """What describes a partition.

    Example:
        `list(descriptions(partition))`
    """
    if isinstance(partition, SlicePartition):
        columns = list(zip(*partition.slices, strict=True)) or [(), (), ()]
        arrays = [pa.array(column, pa.int64()) for column in columns]
        schema = _SLICES.with_metadata({_BATCH_ROWS: str(partition.batch_rows)})
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    elif isinstance(partition, FilesPartition):
        batch = _of_files(partition.files)
    elif isinstance(partition, ChangesPartition):
        batch = pa.RecordBatch.from_arrays([], names=[])
    else:
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    yield sink.getvalue().to_pybytes()


def from_descriptions(batches: Iterator[pa.RecordBatch]) -> Iterator[InputPartition]:
    """The partitions that rows describe.

    Example:
        `list(from_descriptions(described(partition)))`
    """
    for batch in batches:
        for value in batch.column(0).to_pylist():
            yield _partition(pa.ipc.open_stream(value).read_all())


def _of_files(files: tuple[TableFile, ...]) -> pa.RecordBatch:
    arrays = {
        "path": pa.array([file.path for file in files], pa.string()),
        "vector": pa.array([json.dumps(file.deletion_vector) for file in files], pa.string()),
        "start": pa.array([file.span and file.span[0] for file in files], pa.int64()),
        "end": pa.array([file.span and file.span[1] for file in files], pa.int64()),
    }
    for name, first in files[0].partition.items() if files else ():
        values = [file.partition[name].as_py() for file in files]
        arrays[_VALUE + name] = pa.array(values, first.type)
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _partition(table: pa.Table) -> InputPartition:
    if table.schema.names == _SLICES.names:
        slices = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return SlicePartition(tuple(slices), int((table.schema.metadata or {})[_BATCH_ROWS]))
    if not table.schema.names:
        return ChangesPartition(0)
    from esker.delta.read.file_reader import TableFile

    names = [name for name in table.schema.names if name.startswith(_VALUE)]
    files = []
    described = zip(*(table[name].to_pylist() for name in ("path", "vector", "start", "end")), strict=True)
    for at, (path, vector, start, end) in enumerate(described):
        values = {name.removeprefix(_VALUE): table[name][at] for name in names}
        files.append(TableFile(path, values, json.loads(vector), None if start is None else (start, end)))
    return FilesPartition(tuple(files))
