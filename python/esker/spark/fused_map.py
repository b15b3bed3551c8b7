"""`map_batches`: a scan fused with a function. The rows stay in Python: Spark gets what the function returns."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.spark.cast import cast_batch
from esker.spark.options import checked_mapping
from esker.spark.partitions import from_descriptions
from esker.spark.planned_read import PartitionReader, plan_read
from esker.spark.session_settings import ZONE
from esker.spark.spelling import list_of_names
from esker.spark.table_read import partitions_of
from esker.spark.types import exchange_schema
from esker.spark.worker_task import WorkerTask

__all__ = ["map_batches"]

Rows: TypeAlias = "pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch] | None"


def map_batches(
    uri: str | os.PathLike[str],
    fn: Callable[[pa.RecordBatch], Rows],
    columns: str | Sequence[str] | None = None,
    filter: str | None = None,
    *,
    schema: StructType | str | None = None,
    version: int | None = None,
    rows_per_partition: int | None = None,
    bytes_per_partition: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    timezone: str | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Runs a function on each batch of a table, in the tasks that read it.

    The batches do not go through the JVM: the function gets them as the table has them, vectors as fixed_size_list, and
    only what it returns becomes rows of Spark. That is the fast way for all that makes less out of much.

    Args:
        uri: The table, of either format.
        fn: Gets a batch; returns a batch, a table, several batches, or None. Its columns are matched by name.
        columns: Columns to read, in this order, or the name of one; None for all.
        filter: The text of an SQL WHERE clause; only rows for which it is true are read.
        schema: The Spark schema of what the function returns, as a type or as DDL; None for that of what is read.
        version: The version, None for the newest; it is pinned now.
        rows_per_partition: The maximum number of rows per Spark partition.
        bytes_per_partition: The maximum number of bytes of data files per Spark partition.
        storage_options: Options of the store.
        timezone: The zone of times without one in the filter; by default the zone of the session.
        spark: A session; by default the active one.

    Returns:
        A DataFrame of what the function returns. The function runs when it is asked for rows, each time.

    Raises:
        NotFoundError: There is no table, or no such version.
        InvalidArgumentError: A column does not exist, the filter does not parse, the schema is none of columns of
            different names, or there is no session.

    Example:
        `esker.spark.map_batches("t.lance", lambda b: b.slice(0, 1), ["id"]).collect()`
    """
    if not callable(fn):
        raise InvalidArgumentError(f"expected a function of a batch, found {fn!r}")
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidArgumentError("expected an active session of Spark, found none; give one as spark=")
    store = checked_mapping("storage_options", storage_options, '{"aws_region": "eu-central-1"}')
    given = {
        "columns": None if columns is None else json.dumps(list_of_names(columns)),
        "filter": filter,
        "version": version,
        "rows_per_partition": rows_per_partition,
        "bytes_per_partition": bytes_per_partition,
        "storage_options": json.dumps(store) if store else None,
        "timezone": None if filter is None else timezone or session.conf.get(ZONE),
    }
    options = {"path": os.fspath(uri), **{name: str(value) for name, value in given.items() if value is not None}}
    plan = plan_read(options)
    shown = _schema(schema) or plan.schema
    wanted = exchange_schema(shown)
    return partitions_of(session, plan).mapInArrow(WorkerTask(_mapped, plan.reader, fn, wanted), shown)


def _mapped(
    reader: PartitionReader,
    fn: Callable[[pa.RecordBatch], Rows],
    wanted: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in reader.rows(from_descriptions(batches)):
        for made in _batches(fn(batch)):
            if made.num_rows:
                yield cast_batch(made, wanted)


def _schema(given: StructType | str | None) -> StructType | None:
    if given is None:
        return None
    made = StructType.fromDDL(given) if isinstance(given, str) else given
    if not isinstance(made, StructType):
        raise InvalidArgumentError(
            f"expected a schema of columns, as a StructType or as DDL such as 'id bigint, s string', found {given!r}"
        )
    twice = sorted(name for name, times in Counter(made.names).items() if times > 1)
    if twice:
        raise InvalidArgumentError(
            f"expected a schema of columns of different names, found {', '.join(twice)} twice", column=twice[0]
        )
    return made


def _batches(found: object) -> Iterator[pa.RecordBatch]:
    if found is None:
        return
    if isinstance(found, pa.RecordBatch):
        yield found
    elif isinstance(found, pa.Table):
        yield from found.to_batches()
    elif isinstance(found, Iterable) and not _is_of_others(found):
        for each in found:
            if not isinstance(each, pa.RecordBatch | pa.Table):
                raise _no_rows(f"{type(found).__name__} of {type(each).__name__}")
            yield from _batches(each)
    else:
        raise _no_rows(type(found).__name__)


def _is_of_others(found: object) -> bool:
    """Whether it is rows of another library, or one column: iterating over it gives no batches."""
    return isinstance(found, pa.Array | pa.ChunkedArray | Mapping | str | bytes) or hasattr(found, "columns")


def _no_rows(found: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"expected a function that returns a batch, a table or batches of pyarrow, found {found}; return "
        "pyarrow.RecordBatch.from_pylist(rows), pyarrow.RecordBatch.from_pandas(frame), or None for no rows"
    )
