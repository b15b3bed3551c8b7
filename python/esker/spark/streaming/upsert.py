"""`upsert_stream`: a stream of rows by key into a Lance table, each batch once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

import esker
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from esker.lance.commit import is_applied
from esker.lance.merge.merge import key_columns
from esker.lance.version import TableVersion
from esker.spark.cast import cast_batch
from esker.spark.delta_reader import is_delta
from esker.spark.matching import check_append, replacing_schema
from esker.spark.options import TableAddress, write_address
from esker.spark.streaming.batch_identity import QUERY_ID

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
) -> Any:
    """Writes a stream into a Lance table by key: rows whose key is there are updated, the others are inserted.

    Each batch is one version, and is there once: a batch that Spark runs again after a failure changes nothing, since
    the table knows the last batch of each checkpoint. The rows of a batch go through the driver, which merges them. A
    table that is not there is made, with stable row ids, so that its change feed can be streamed.

    Args:
        frame: A stream, of rows with the columns of the table.
        uri: The table.
        keys: The columns that make a row the same one.
        latest: A column: of several rows of one key in a batch the one with the highest value is written. Without it
            such a batch is an error.
        vectors: The length of each array column that becomes a fixed_size_list in a new table.
        storage_options: Options of the store.
        application: The id of the stream, for Spark Connect, which does not tell it; by default that in the checkpoint.

    Returns:
        The writer of the stream: set its checkpoint and its trigger, and start it.

    Raises:
        InvalidArgumentError: The DataFrame is no stream, or lacks a key.
        UnsupportedError: The table is a Delta table.

    Example:
        `upsert_stream(events, "t.lance", keys=["id"]).option("checkpointLocation", "c").start()`
    """
    if not frame.isStreaming:
        raise InvalidArgumentError("expected a DataFrame of readStream, found one that is no stream")
    given = {"path": os.fspath(uri)}
    if storage_options:
        given["storageOptions"] = json.dumps(dict(storage_options))
    address = write_address(given)
    if is_delta(address):
        raise UnsupportedError(
            f"expected a Lance table for an upsert, found a Delta table at {address.uri}: merge its batches in a "
            "foreachBatch of your own"
        )
    named = [keys] if isinstance(keys, str) else list(keys)
    known = {name.lower() for name in frame.columns}
    for name in [*named, *([latest] if latest is not None else [])]:
        if name.lower() not in known:
            raise InvalidArgumentError(
                f"expected a column of the stream ({', '.join(frame.columns)}), found {name!r}", column=name
            )
    upsert = _Upsert(address, named, latest, dict(vectors or {}), application)
    return frame.writeStream.outputMode("update").foreachBatch(upsert)


@dataclass(frozen=True)
class _Upsert:
    """What happens to each batch."""

    address: TableAddress
    keys: list[str]
    latest: str | None
    vectors: dict[str, int]
    application: str | None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        application = (self.application or _query(frame), batch)
        table = self._table(frame.schema)
        if is_applied(table.manifest, *application):
            return
        keys = key_columns(table, self.keys)
        rows = self._rows(frame, table.schema, keys)
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

    def _rows(self, frame: DataFrame, schema: pa.Schema, keys: list[str]) -> pa.Table:
        spelled = {name.lower(): name for name in schema.names}
        frame = frame.toDF(
            *(name if name in schema.names else spelled.get(name.lower(), name) for name in frame.columns)
        )
        check_append(frame.schema, schema, self.address.uri)
        found = frame.toArrow()
        batches = [cast_batch(batch, schema) for batch in found.to_batches() if batch.num_rows]
        rows = pa.Table.from_batches(batches, schema)
        return _once(rows, keys, None if self.latest is None else spelled.get(self.latest.lower(), self.latest))


def _query(frame: DataFrame) -> str:
    """The id of the query whose batch this is."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except Exception:
        # Spark Connect has no such thing.
        found = None
    if not found:
        raise UnsupportedError(
            f"expected Spark to tell the id of the query ({QUERY_ID}), found none; give upsert_stream an "
            "application, a text that is the same after a restart and different for each checkpoint"
        )
    return str(found)


def _once(rows: pa.Table, keys: list[str], latest: str | None) -> pa.Table:
    """The rows with one for each key."""
    if rows.num_rows < 2:
        return rows
    order = (
        np.arange(rows.num_rows)
        if latest is None
        else np.asarray(pc.sort_indices(rows[latest], null_placement="at_start"))
    )
    numbered = rows.select(keys).take(order).append_column("esker.row", pa.array(order))
    numbered = numbered.append_column("esker.rank", pa.array(np.arange(len(order))))
    last = numbered.group_by(keys).aggregate([("esker.rank", "max")])["esker.rank_max"]
    if len(last) == rows.num_rows:
        return rows
    if latest is None:
        raise InvalidArgumentError(
            f"expected one row for each key ({', '.join(keys)}) in a batch, found {rows.num_rows} rows of {len(last)} "
            "keys; name the column whose highest value wins as latest, or drop duplicates before"
        )
    return rows.take(numbered["esker.row"].take(last))
