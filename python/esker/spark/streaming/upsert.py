"""`upsert_stream`: a stream of rows by key into a table of either format, each batch once."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

import esker
from esker.arrow.json_columns import shown_schema
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from esker.lance.commit import is_applied
from esker.lance.merge.merge import key_columns
from esker.lance.version import TableVersion
from esker.spark.cast import cast_batch
from esker.spark.matching import check_append, replacing_schema
from esker.spark.options import TableAddress, WriteOptions, checked_mapping, write_address
from esker.spark.spelling import list_of_names, spelled_as
from esker.spark.streaming.automatic_compaction import compact
from esker.spark.streaming.batch_identity import QUERY_ID
from esker.spark.table_format import is_delta, writes_delta
from esker.spark.wording import in_words_of_spark

__all__ = ["upsert_stream"]


def upsert_stream(
    frame: DataFrame,
    uri: str | os.PathLike[str],
    *,
    keys: str | Sequence[str],
    latest: str | None = None,
    vectors: Mapping[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    application: str | None = None,
    table_format: str | None = None,
    compact_every: int | None = None,
) -> Any:
    """Writes a stream into a table by key: rows whose key is there are updated, the others are inserted.

    Each batch is one version, and is there once: a batch that Spark runs again after a failure changes nothing, since
    the table knows the last batch of each checkpoint. The rows of a batch go through the driver, which merges them. A
    table that is not there is made so that its change feed can be streamed: with stable row ids, a Delta table with
    `delta.enableChangeDataFeed`. A null in a key matches nothing, as in SQL: such rows are inserted, each of them.

    On a branch of a repository each batch is a commit of the branch. A reset of the branch takes the batches after it
    back, whose rows Spark does not send again.

    Args:
        frame: A stream, of rows with the columns of the table.
        uri: The table. One on a branch of a repository is named by `branch.store_uri("...")`.
        keys: The columns that make a row the same one.
        latest: A column: of several rows of one key in a batch the one with the highest value is written. Without it
            such a batch is an error.
        vectors: The length of each array column that becomes a fixed_size_list in a new table.
        storage_options: Options of the store.
        application: The id of the stream, for Spark Connect, which does not tell it; by default that in the checkpoint.
        table_format: The format of a new table: "lance" (the default) or "delta". An existing table keeps its format.
        compact_every: For Lance tables: after how many batches the table is compacted; None for never.

    Returns:
        The writer of the stream: set its checkpoint and its trigger, and start it.

    Raises:
        InvalidArgumentError: The DataFrame is no stream, or lacks a key; a key, or `latest`, is an array, a map or a
            struct; an option is for tables of the other format, or has a value that no table could take.
        UnsupportedError: Nothing tells the id of the stream: under Spark Connect there is no application. The table
            lies in a repository, and not on a branch.

    Example:
        `upsert_stream(events, "t.lance", keys=["id"]).option("checkpointLocation", "c").start()`
    """
    if not frame.isStreaming:
        raise InvalidArgumentError("expected a DataFrame of readStream, found one that is no stream")
    given = {"path": os.fspath(uri)}
    if storage_options:
        given["storageOptions"] = json.dumps(
            checked_mapping("storage_options", storage_options, '{"aws_region": "eu-central-1"}')
        )
    if table_format is not None:
        given["tableFormat"] = table_format
    address = write_address(given, is_stream=True)
    is_delta = writes_delta(address, WriteOptions.parse(given))
    elsewhere = "leave it out"
    for name, value, instead in (
        ("vectors", vectors, elsewhere),
        ("compact_every", compact_every, f"{elsewhere}: OPTIMIZE of Spark's Delta and deltalake compact Delta tables"),
    ):
        if is_delta and value is not None:
            raise InvalidArgumentError(f"{name} is for Lance tables, found a Delta table at {address.uri}; {instead}")
    checked_mapping("vectors", vectors, '{"embedding": 256}')
    if compact_every is not None:
        _check_count("compact_every", compact_every)
    if application is not None and not application:
        raise InvalidArgumentError(
            "application: expected a text, found an empty one; leave it out for the checkpoint's"
        )
    named = list_of_names(keys)
    if not named:
        raise InvalidArgumentError("keys: expected the columns that make a row the same one, found none")
    for name in [*named, *([latest] if latest is not None else [])]:
        if spelled_as([name], frame.columns)[0] not in frame.columns:
            raise InvalidArgumentError(
                f"expected a column of the stream ({', '.join(frame.columns)}), found {name!r}", column=name
            )
    if len({name.lower() for name in named}) < len(named):
        raise InvalidArgumentError(f"expected each key once, found {', '.join(named)}; case does not tell them apart")
    for name in named:
        _check_plain(frame.schema, name, "keys", "that can be compared")
    if latest is not None:
        _check_plain(frame.schema, latest, "latest", "that have an order")
    # What no table could have is refused now, and not by the first batch.
    replacing_schema(frame.schema, None, vectors)
    if application is None and not hasattr(frame.sparkSession, "sparkContext"):
        # Spark Connect has no such thing; of an error of the first batch its users see a stack.
        raise _no_query()
    upsert = _Upsert(address, named, latest, dict(vectors or {}), application, is_delta, compact_every)
    return frame.writeStream.outputMode("update").foreachBatch(upsert)


@dataclass(frozen=True)
class _Upsert:
    """What happens to each batch."""

    address: TableAddress
    keys: list[str]
    latest: str | None
    vectors: dict[str, int]
    application: str | None
    is_delta: bool = False
    compact_every: int | None = None

    @in_words_of_spark()
    def __call__(self, frame: DataFrame, batch: int) -> None:
        application = (self.application or _query(frame), batch)
        if self.is_delta:
            self._into_delta(frame, application)
            return
        self._into_lance(frame, application)
        if self.compact_every is not None and (batch + 1) % self.compact_every == 0:
            compact(self.address)

    def _into_delta(self, frame: DataFrame, application: tuple[str, int]) -> None:
        from esker.delta import DeltaTable, write_deltalake
        from esker.delta.definition.constraints import Constraints
        from esker.delta.definition.table_state import TableState
        from esker.delta.read.scan import TableScan
        from esker.spark.char_lengths import check_lengths, lengths_of

        options = dict(self.address.storage_options)
        if not is_delta(self.address):
            empty = replacing_schema(frame.schema, None).empty_table()
            write_deltalake(
                self.address.uri,
                empty,
                mode="ignore",
                configuration={"delta.enableChangeDataFeed": "true"},
                storage_options=options,
            )
        table = DeltaTable(self.address.uri, storage_options=options)
        done = table.transaction_version(application[0])
        if done is not None and done >= application[1]:
            return
        schema = TableScan.schema_of(table._snapshot)
        keys = spelled_as(self.keys, schema.names)
        state = TableState.of(table._snapshot)
        generated = Constraints(state.schema, state.configuration, state.protocol).generated
        rows = self._rows(frame, schema, keys, optional=generated)
        if rows.num_rows == 0:
            return
        lengths = lengths_of(state.schema)
        for each in rows.to_batches():
            check_lengths(each, lengths)
        condition = " AND ".join(f"t.{name} = s.{name}" for name in map(_ticked, keys))
        merger = table.merge(rows, condition, "s", "t").when_matched_update_all().when_not_matched_insert_all()
        # The number goes into the same entry: another run of the batch finds it there, or loses the race to it.
        merger._commit = replace(merger._commit, application=application)
        merger.execute()

    def _into_lance(self, frame: DataFrame, application: tuple[str, int]) -> None:
        table = self._table(frame.schema)
        if is_applied(table.manifest, *application):
            return
        keys = key_columns(table, self.keys)
        rows = self._rows(frame, shown_schema(table.schema), keys)
        if rows.num_rows == 0:
            return
        dataset = esker.dataset(self.address.uri, storage_options=dict(self.address.storage_options))
        merge = dataset.merge_insert(keys).when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows, application=application)

    def _table(self, schema: StructType) -> TableVersion:
        options = dict(self.address.storage_options)
        try:
            return TableVersion.open(self.address.uri, storage_options=options)
        except NotFoundError:
            empty = replacing_schema(schema, None, self.vectors).empty_table()
        # Another one may have made it meanwhile.
        with suppress(AlreadyExistsError):
            esker.write_dataset(
                empty, self.address.uri, mode="create", enable_stable_row_ids=True, storage_options=options
            )
        return TableVersion.open(self.address.uri, storage_options=options)

    def _rows(
        self, frame: DataFrame, schema: pa.Schema, keys: list[str], *, optional: Collection[str] = ()
    ) -> pa.Table:
        frame = frame.toDF(*spelled_as(frame.columns, schema.names))
        advice = "select the table's columns"
        check_append(frame.schema, schema, self.address.uri, optional=optional, advice=advice)
        # The merge computes generated columns that are not given.
        given = [field for field in schema if field.name in frame.columns or field.name not in optional]
        schema = pa.schema(given, metadata=schema.metadata)
        # Spark's own conversion refuses nulls in place of structs whose fields are never null.
        free = _with_nulls(frame.schema)
        found = (frame if free == frame.schema else frame.to(free)).toArrow()
        batches = [cast_batch(batch, schema) for batch in found.to_batches() if batch.num_rows]
        rows = pa.Table.from_batches(batches, schema)
        latest = None if self.latest is None else spelled_as([self.latest], schema.names)[0]
        return _once(rows, keys, latest, is_delta=self.is_delta)


def _with_nulls(kind: Any) -> Any:
    """The same type, in which anything may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _with_nulls(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_with_nulls(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(_with_nulls(kind.keyType), _with_nulls(kind.valueType), True)
    return kind


def _check_count(argument: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgumentError(f"{argument}: expected a whole number from 1, found {value!r}")


def _check_plain(schema: StructType, name: str, argument: str, values: str) -> None:
    """Refuses a column of arrays, maps or structs."""
    found = schema[spelled_as([name], schema.names)[0]].dataType
    if isinstance(found, (ArrayType, MapType, StructType)):
        raise InvalidArgumentError(
            f"{argument}: expected a column of values {values}, found {name!r} of type {found.simpleString()}; name "
            "one of numbers, times or texts",
            column=name,
        )


def _ticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _query(frame: DataFrame) -> str:
    """The id of the query whose batch this is."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except Exception:
        # Spark Connect has no such thing.
        found = None
    if not found:
        raise _no_query()
    return str(found)


def _no_query() -> UnsupportedError:
    return UnsupportedError(
        f"expected Spark to tell the id of the query ({QUERY_ID}), found none; give upsert_stream an application, a "
        "text that is the same after a restart and different for each checkpoint"
    )


def _once(rows: pa.Table, keys: list[str], latest: str | None, *, is_delta: bool) -> pa.Table:
    """The rows with one for each key. A null matches nothing, not even another null: such rows stay, all of them."""
    named = reduce(pc.and_, (pc.is_valid(rows[name]) for name in keys))
    found = rows.filter(named)
    if found.num_rows < 2:
        return rows
    order = np.arange(found.num_rows) if latest is None else _ascending(_stored(found[latest]))
    # A merge of Delta takes both zeros for one key, as SQL does; one of Lance does not.
    stored = [_stored(found[name]) for name in keys]
    values = [_as_sql_compares(each) if is_delta else each for each in stored]
    places = [str(place) for place in range(len(keys))]
    numbered = pa.table([*(value.take(order) for value in values), np.arange(len(order))], names=[*places, "rank"])
    last = numbered.group_by(places).aggregate([("rank", "max")])["rank_max"]
    if len(last) == found.num_rows:
        return rows
    if latest is None:
        raise InvalidArgumentError(
            f"expected one row for each key ({', '.join(keys)}) in a batch, found {found.num_rows} rows of {len(last)} "
            "keys; name the column whose highest value wins as latest, or drop duplicates before"
        )
    return pa.concat_tables([found.take(pa.array(order).take(last)), rows.filter(pc.invert(named))])


def _stored(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of an extension type, such as UUIDs, as they are stored: Arrow neither groups nor sorts others."""
    kind = values.type
    if not isinstance(kind, pa.BaseExtensionType):
        return values
    return _stored(pa.chunked_array([chunk.storage for chunk in values.chunks], kind.storage_type))


def _ascending(values: pa.ChunkedArray) -> Any:
    """The places of values in ascending order: nulls first, NaN last, as in Spark."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    columns = {"valid": pc.is_valid(values), "value": values}
    if pa.types.is_floating(values.type):
        columns = {"valid": columns["valid"], "nan": pc.is_nan(values), "value": values}
    return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]))


def _as_sql_compares(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats of which both zeros are one value, and all NaN are."""
    if not pa.types.is_floating(values.type):
        return values
    zero, nan = (pa.scalar(value, values.type) for value in (0.0, math.nan))
    return pc.if_else(pc.is_nan(values), nan, pc.if_else(pc.equal(values, zero), zero, values))
