"""What Spark does with a data source, without Spark: objects are pickled where it pickles them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from esker.spark import EskerSource
from esker.spark.types import exchange_schema


def planned(uri: str, schema: StructType, *, overwrite: Any = False, **options: object) -> Any:
    """The writer, as it comes back from the planner."""
    given = {"path": uri, **{name: str(value) for name, value in options.items()}}
    return _sent(EskerSource(given).writer(schema, overwrite))


def staged(writer: Any, tasks: Sequence[Iterable[pa.RecordBatch]]) -> list[Any]:
    """The messages of tasks, each of which has a writer of its own."""
    return [_sent(_sent(writer).write(iter(list(batches)))) for batches in tasks]


def wrote(
    uri: str, schema: StructType, rows: list[Any], *, overwrite: Any = False, zone: str = "UTC", **options: object
) -> None:
    """A whole write of one task, as Spark runs it: `abort` follows a commit that failed, in another process."""
    writer = planned(uri, schema, overwrite=overwrite, **options)
    messages = staged(writer, [batches(schema, rows, zone)])
    try:
        _sent(writer).commit(messages)
    except BaseException:
        _sent(writer).abort(messages)
        raise


def batches(schema: StructType, rows: list[Any], zone: str = "UTC") -> list[pa.RecordBatch]:
    """Rows as Spark hands them to a task: times in the zone of the session."""
    kinds = {f.name: f.type for f in exchange_schema(schema)}
    zoned = [name for name, kind in kinds.items() if pa.types.is_timestamp(kind) and kind.tz is not None]
    exchanged = pa.schema({**kinds, **{name: pa.timestamp("us", zone) for name in zoned}})
    return [pa.RecordBatch.from_pylist(rows, schema=exchanged)] if rows else []


def read(uri: str, schema: StructType | None = None, /, **options: object) -> list[dict[str, Any]]:
    """All rows, as Spark gets them."""
    source = EskerSource({"path": uri, **{name: str(value) for name, value in options.items()}})
    shown = source.schema() if schema is None else schema
    reader = _sent(_sent(source).reader(shown))
    made = _sent(source).reader(shown)
    return [row for part in made.partitions() for batch in reader.read(_sent(part)) for row in batch.to_pylist()]


def _sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))
