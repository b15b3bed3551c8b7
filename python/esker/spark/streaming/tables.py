"""Which history a stream reads, by the format of its table, and the schema of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from esker._native.expr import Predicate
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.lance.system_columns import SYSTEM_COLUMNS, with_system_columns
from esker.spark.matching import check_read, renamed
from esker.spark.options import ChangeRange, TableAddress
from esker.spark.reader import read_schema
from esker.spark.session_settings import machine_zone
from esker.spark.streaming.history import TableHistory, check_columns
from esker.spark.streaming.lance_history import LanceHistory
from esker.spark.streaming.lance_partition import FEED
from esker.spark.streaming.options import StreamReadOptions
from esker.spark.table import PinnedTable
from esker.spark.table_format import is_delta
from esker.spark.types import exchange_schema, spark_schema
from esker.spark.zoned_filter import instants_apart

if TYPE_CHECKING:
    from esker.spark.streaming.delta_history import DeltaHistory

__all__ = ["stream_schema", "table_history"]


def stream_schema(address: TableAddress, options: StreamReadOptions, wanted: StructType | None = None) -> StructType:
    """The Spark schema of the rows of a stream, checked against the table.

    Args:
        address: The table.
        options: The options, of which `columns` and `filter` are checked.
        wanted: The user's schema; None takes the table's types.

    Raises:
        InvalidArgumentError: A column does not exist, the filter does not parse, or an option is for tables of the
            other format.
        SchemaMismatchError: The table has a column with the name of one of the feed, or a type does not fit.

    Example:
        `stream_schema(address, StreamReadOptions.parse({"readChangeFeed": "true"})).names`
    """
    if is_delta(address):
        from esker.spark.delta_reader import delta_schema, open_delta

        options.read.check_format("delta", address.uri)
        read = replace(options.read, changes=ChangeRange() if options.feed else None)
        return delta_schema(open_delta(address, read), read, wanted)
    options.read.check_format("lance", address.uri)
    snapshot = PinnedTable(address)
    if not options.feed:
        return read_schema(snapshot, options.read, wanted)
    feed = pa.schema(FEED)
    read = options.read.spelled([*snapshot.schema.names, *feed.names])
    there = frozenset(snapshot.schema.names)
    for name in (*feed.names, *(read.columns or ())):
        if name in there and name in feed.names:
            raise SchemaMismatchError(
                f"the table has a column {name!r}, which a change feed adds; rename it", column=name
            )
        if name in SYSTEM_COLUMNS:
            raise InvalidArgumentError(f"option columns: expected columns of the table, found {name!r}", column=name)
    names = list(wanted.names if wanted is not None else read.columns or [*snapshot.schema.names, *feed.names])
    found = snapshot.projected_schema([name for name in names if name not in feed.names], None)
    if read.filter is not None:
        # It may ask for what happened, too.
        described = with_system_columns(snapshot.described_schema)
        Predicate.parse_sql(instants_apart(read.filter), pa.schema([*described, *feed]))
    schema = pa.schema([feed.field(name) if name in feed.names else found.field(name) for name in names])
    if wanted is None:
        return spark_schema(schema)
    check_read(schema, wanted)
    exchange_schema(wanted)
    return wanted


def table_history(address: TableAddress, schema: StructType, options: StreamReadOptions) -> TableHistory:
    """The history of a table for a stream.

    Args:
        address: The table.
        schema: The Spark schema of the rows, with names of columns in any case: rows have those of the table.
        options: What is read.

    Raises:
        SchemaMismatchError: A column is not there any more, or has another type, since the stream was loaded.
    """
    made: type[DeltaHistory] | type[LanceHistory]
    if is_delta(address):
        from esker.delta.read.scan import TableScan
        from esker.spark.delta_reader import open_delta
        from esker.spark.streaming.delta_history import DeltaHistory

        snapshot = open_delta(address, options.read)._snapshot
        made, version, known = DeltaHistory, snapshot.version, TableScan.schema_of(snapshot)
    else:
        table = PinnedTable(address)
        made, version, known = LanceHistory, table.version, table.schema
    added = pa.schema(FEED).names if options.feed else []
    spelled = renamed(schema, [*known.names, *added])
    of_table = [field for field in spelled.fields if field.name not in (*added, *SYSTEM_COLUMNS)]
    check_columns(version, address.uri, known, StructType(of_table))
    stream_schema(address, options, spelled)
    return made(address, spelled, options, machine_zone())
