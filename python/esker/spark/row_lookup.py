"""`lookup`: the rows of a table for the rows of a DataFrame, by random access instead of a join."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from esker.exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.lance.log import entry_of
from esker.lance.scan.take import take_row_ids, take_rows
from esker.lance.system_columns import ROW_ID
from esker.spark.cast import cast_batch
from esker.spark.matching import renamed
from esker.spark.options import ReadOptions, TableAddress, read_address
from esker.spark.reader import read_schema
from esker.spark.spelling import list_of_names, spelled_as
from esker.spark.table import PinnedTable
from esker.spark.table_format import is_delta
from esker.spark.table_read import TableRead
from esker.spark.types import exchange_schema, spark_type
from esker.spark.worker_tables import check_entry, worker_dataset
from esker.spark.worker_task import WorkerTask

__all__ = ["lookup"]

_TAKEN_ROWS = 8 * 1024
_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_KINDS = (
    (*_WHOLE, spark.FloatType, spark.DoubleType),
    (*_WHOLE, spark.DecimalType),
    (spark.StringType, spark.CharType, spark.VarcharType, spark.BinaryType),
)
"""Types whose values are the same or not the same, whatever the session says of zones and of numbers as texts."""
_NO_ROW_ID = (spark.FloatType, spark.DoubleType, spark.DecimalType)


def lookup(
    frame: DataFrame | TableRead,
    uri: str | os.PathLike[str],
    *,
    on: str = ROW_ID,
    columns: str | Sequence[str] | None = None,
    how: Literal["left", "inner"] = "left",
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Adds columns of a Lance table to the rows of a DataFrame, by random access: nothing is shuffled.

    It pays where the DataFrame has few rows beside the table. A task takes only the rows that it asks for. By row id
    nothing else is read; by a key each Python worker reads the whole key column of the table once, and keeps it: about
    35 bytes a row for whole numbers, 80 for short texts.

    Args:
        frame: The rows, with a column of the name of `on`.
        uri: The Lance table.
        on: `_rowid`, or a column of the table whose values are there once; case does not tell names apart. Its type in
            the DataFrame may be another one of its kind: a value that the table's type cannot hold is not there.
        columns: Columns of the table to add, or the name of one; None for all others than the key.
        how: "left" keeps rows that the table has nothing for, with nulls; "inner" leaves them out.
        version: The version of the table, None for the newest; it is pinned now.
        storage_options: Options of the store.

    Returns:
        The DataFrame with these columns behind its own.

    Raises:
        NotFoundError: There is no table, or no such version.
        InvalidArgumentError: A column does not exist, or is on both sides; `on` is no text; the key is an array, a map
            or a struct, or of two kinds, such as times and days.
        UnsupportedError: It is a Delta table, which has no random access.

    Example:
        `esker.spark.lookup(clicks, "users.lance", on="user_id", columns=["name", "embedding"])`
    """
    if isinstance(frame, TableRead):
        frame = frame.to_df()
    if how not in ("left", "inner"):
        raise InvalidArgumentError(f"expected how of left or inner, found {how!r}")
    if not isinstance(on, str):
        raise InvalidArgumentError(f"on: expected the name of one column, found {on!r}; join the tables by several")
    address = read_address({"path": os.fspath(uri)})
    address = TableAddress(address.uri, dict(storage_options or {}))
    if is_delta(address):
        raise UnsupportedError(
            f"expected a Lance table to look rows up in, found a Delta table at {address.uri}: join it, "
            "esker.spark.read(spark, uri, broadcast=True) if it is small",
            uri=address.uri,
        )
    table = PinnedTable(address, version)
    known = [*table.schema.names, ROW_ID]
    key = spelled_as([on], known)[0]
    if key not in known:
        raise InvalidArgumentError(f"expected a column of the table ({', '.join(known)}), found {on!r}", column=on)
    asked = spelled_as([on], frame.columns)[0]
    if asked not in frame.columns:
        raise InvalidArgumentError(
            f"expected a column {on!r} in the DataFrame, found {', '.join(frame.columns)}", column=on
        )
    if key != ROW_ID:
        kind = table.schema.field(key).type
        if pa.types.is_nested(getattr(kind, "storage_type", kind)):
            raise _no_key(on, str(kind), f"the table at {address.uri}")
    shown_as = frame.schema[asked].dataType
    if isinstance(shown_as, (ArrayType, MapType, StructType)):
        raise _no_key(on, shown_as.simpleString(), "the DataFrame")
    there = spark.LongType() if key == ROW_ID else spark_type(table.schema.field(key).type, key)
    if not _is_of_kind(shown_as, there) or (key == ROW_ID and isinstance(shown_as, _NO_ROW_ID)):
        raise InvalidArgumentError(
            f"on: expected {on!r} in the DataFrame to be {there.simpleString()} as in the table, found "
            f"{shown_as.simpleString()}; cast it first",
            column=on,
        )
    others = [name for name in table.schema.names if name != key]
    names = others if columns is None else spelled_as(list_of_names(columns), known)
    twice = {name.lower() for name in names} & {name.lower() for name in frame.columns}
    if twice:
        raise InvalidArgumentError(
            f"expected columns that the DataFrame lacks, found {', '.join(sorted(twice))} on both sides; name others "
            "as columns, or rename them in the DataFrame"
        )
    added = read_schema(table, ReadOptions(columns=tuple(names))) if names else StructType()
    shown = StructType([*frame.schema.fields, *(StructField(f.name, f.dataType, True) for f in added.fields)])
    left = exchange_schema(renamed(frame.schema, frame.columns))
    right, number, entry = exchange_schema(added), table.version, table.entry
    options = dict(address.storage_options)

    def looked_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for whole in batches:
            for start in range(0, whole.num_rows, _TAKEN_ROWS):
                batch = whole.slice(start, _TAKEN_ROWS)
                found, rows = _found(address.uri, number, entry, options, key, names, batch.column(asked))
                if how == "inner":
                    there = pc.is_valid(rows)
                    batch, rows = batch.filter(there), rows.filter(there)
                cast = cast_batch(found.combine_chunks().to_batches()[0], right) if found.num_rows else None
                taken = [
                    pa.nulls(batch.num_rows, field.type) if cast is None else cast.column(i).take(rows)
                    for i, field in enumerate(right)
                ]
                if batch.num_rows:
                    columns = [*cast_batch(batch, left).columns, *taken]
                    yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([*left, *right]))

    return frame.mapInArrow(WorkerTask(looked_up), shown)


def _is_of_kind(found: spark.DataType, there: spark.DataType) -> bool:
    if isinstance(found, spark.NullType) or type(found) is type(there):
        return True
    return any(isinstance(found, kind) and isinstance(there, kind) for kind in _KINDS)


def _no_key(on: str, kind: str, where: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"on: expected a column of values that can be compared, found {on!r} of type {kind} in {where}; name one of "
        "numbers, times or texts, or join the tables",
        column=on,
    )


def _found(
    uri: str, version: int, entry: str, options: dict[str, str], key: str, names: list[str], asked: pa.Array
) -> tuple[pa.Table, pa.Array]:
    """Rows of the table, and for each row that asks which of them it gets."""
    dataset = worker_dataset(uri, version, storage_options=options)
    table = dataset._table
    check_entry(uri, version, entry, entry_of(table.manifest))
    if key == ROW_ID:
        wanted = pc.unique(asked.drop_null()).cast(pa.int64())
        ids = wanted.filter(pc.greater_equal(wanted, 0)).cast(pa.uint64())
        found = take_row_ids(table.store, table.manifest, table.described_schema, ids, [*names, ROW_ID])
        numbers = found[ROW_ID].combine_chunks().cast(pa.int64())
        return found.select(names), pc.index_in(asked.cast(pa.int64()), numbers)
    index = _index(dataset, uri, version, key)
    try:
        values = _as_keys(asked, index.type)
    except pa.ArrowNotImplementedError as error:
        raise SchemaMismatchError(
            f"column {key!r} expected values that fit {index.type}, found {asked.type}: {str(error).splitlines()[0]}",
            column=key,
        ) from error
    at = index.find(values)
    wanted, rows = np.unique(at[at >= 0], return_inverse=True)
    found = pa.table({})
    if names:
        found = take_rows(
            table.store, table.manifest, table.described_schema, wanted, names, fragment_ids=None, rows=table.num_rows
        )
    places = np.full(len(at), -1, np.int64)
    places[at >= 0] = rows
    return found, pa.array(places, mask=places < 0)


def _as_keys(asked: pa.Array, kind: Any) -> pa.Array:
    """Values in the type of the keys, null where that has no such value: none of the keys is it."""
    if pa.types.is_dictionary(kind):
        return _as_keys(asked, kind.value_type)
    if pa.types.is_floating(kind):
        made = asked.cast(kind, safe=False)
        back = made.cast(asked.type, safe=False)
        same = pc.equal(back, asked)
        if pa.types.is_floating(asked.type):
            same = pc.or_(same, pc.and_(pc.is_nan(back), pc.is_nan(asked)))
        return pc.if_else(same, made, pa.scalar(None, kind))
    try:
        if pa.types.is_integer(asked.type) and pa.types.is_decimal(kind):
            # Arrow asks for digits of all values of the type, not of these.
            asked = asked.cast(pa.decimal128(38, 0))
        return asked.cast(kind)
    except pa.ArrowInvalid:
        if len(asked) == 1:
            return pa.nulls(1, kind)
        half = len(asked) // 2
        return pa.concat_arrays([_as_keys(asked.slice(0, half), kind), _as_keys(asked.slice(half), kind)])


class _Index:
    """Where each value of a key column is: the numbers of rows. Nulls are nowhere."""

    def __init__(self, values: pa.ChunkedArray, column: str) -> None:
        import pandas as pd

        self.type = values.type
        self._rows = np.flatnonzero(np.asarray(pc.is_valid(values))) if values.null_count else None
        # A null would make doubles of whole numbers, of which many are equal.
        self._index = pd.Index(_comparable(values.drop_null()).to_pandas())
        if not self._index.is_unique:
            raise InvalidArgumentError(
                f"expected one row for each value of {column!r}, found some of one value; join the tables, or look up "
                "by _rowid",
                column=column,
            )

    def find(self, values: pa.Array) -> Any:
        """The number of the row of each value, -1 where there is none."""
        places = np.full(len(values), -1, np.int64)
        at = self._index.get_indexer(_comparable(values.drop_null()).to_pandas())
        if self._rows is not None and len(self._rows):
            at = np.where(at >= 0, self._rows[at], -1)
        places[np.asarray(pc.is_valid(values))] = at
        return places


def _comparable(values: Any) -> Any:
    """The same values in a type that pandas has an index for, which finds each of them and no other."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _comparable(values.cast(kind.value_type))
    if pa.types.is_float16(kind):
        return values.cast(pa.float32())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_temporal(kind) and kind != pa.month_day_nano_interval() else values


_INDICES: OrderedDict[tuple[str, int, str], tuple[Any, _Index]] = OrderedDict()


def _index(dataset: Any, uri: str, version: int, column: str) -> _Index:
    name = (uri, version, column)
    kept = _INDICES.get(name)
    if kept is None or kept[0] is not dataset:
        # Another table at the same place is another one.
        kept = _INDICES[name] = dataset, _Index(dataset.to_table(columns=[column])[column], column)
        while len(_INDICES) > 2:
            _INDICES.popitem(last=False)
    return kept[1]
