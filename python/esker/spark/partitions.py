"""What the driver describes instead of rows, for reads by `mapInArrow`: one row for each partition.

The rows come from the data source and not from `range`: Spark takes a DataFrame made of a range for as small as the
range, a few bytes, and would broadcast it into any join.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, StructField, StructType

__all__ = ["PARTITION_SCHEMA", "described", "from_descriptions"]

PARTITION_SCHEMA = StructType([StructField("partition", BinaryType())])
"""The Spark schema of the description of a partition, for the option `output=partitions`."""


def described(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """A row that describes a partition.

    Example:
        `next(described(partition)).num_rows`
    """
    schema = pa.schema([pa.field("partition", pa.binary())])
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(partition)], pa.binary())], schema=schema)


def from_descriptions(batches: Iterator[pa.RecordBatch]) -> Iterator[InputPartition]:
    """The partitions that rows describe.

    Example:
        `list(from_descriptions(described(partition)))`
    """
    for batch in batches:
        for value in batch.column(0).to_pylist():
            yield pickle.loads(value)
