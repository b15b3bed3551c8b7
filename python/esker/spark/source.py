"""`EskerSource`: the data source of the format `esker`, Spark's entry point for reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from esker.exceptions import InvalidArgumentError
from esker.spark.options import (
    ReadOptions,
    TableAddress,
    WriteOptions,
    pickled_source_options,
    read_address,
    table_address,
    write_address,
)
from esker.spark.partitions import PARTITION_SCHEMA
from esker.spark.reader import EskerReader, lance_version, read_schema
from esker.spark.streaming.batch_identity import checkpoint_of
from esker.spark.streaming.options import (
    StreamReadOptions,
    check_arrow_streams,
    of_reads_alone,
    stream_write_options,
)
from esker.spark.streaming.reader import EskerStreamReader, RefusedStreamReader
from esker.spark.streaming.sink import EskerStreamWriter
from esker.spark.streaming.tables import stream_schema, table_history
from esker.spark.table import PinnedTable
from esker.spark.table_format import is_delta, writes_delta
from esker.spark.width import warn_of_width
from esker.spark.wording import in_words_of_spark
from esker.spark.writer import EskerWriter

if TYPE_CHECKING:
    from esker.spark.delta_reader import DeltaReader
    from esker.spark.delta_writer import DeltaWriter

__all__ = ["EskerSource"]


class EskerSource(DataSource):
    """The Python data source of the format `esker`.

    Spark creates one for each `load()` or `save()`, and pickles it right after calling `schema()`: every query on that
    DataFrame reads the version that `schema()` pinned.

    Example:
        `spark.dataSource.register(EskerSource)`, which `esker.spark.register(spark)` does.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._version: int | None = None
        self._entry: str | None = None
        self._delta: bool | None = None
        self._address: TableAddress | None = None
        self._is_copy = False

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "esker"

    @in_words_of_spark()
    def schema(self) -> StructType:
        """The schema of what will be read; pins the version."""
        try:
            options = ReadOptions.parse(self.options)
        except InvalidArgumentError as error:
            # Spark does not say whether it is for a read or a stream.
            return self._stream_schema(error)
        address = self._address = read_address(self.options)
        self._delta = is_delta(address)
        if not self._delta and options.changes is not None:
            return self._stream_schema(None)
        if self._delta:
            from esker.spark.delta_reader import delta_schema, open_delta

            options.check_format("delta", address.uri)
            table = open_delta(address, options)
            self._version, self._entry = table.version(), table.metadata().id
            schema = delta_schema(table, options)
            if options.output == "partitions":
                return PARTITION_SCHEMA
            warn_of_width(address.uri, schema, options)
            return schema
        options.check_format("lance", address.uri)
        snapshot = PinnedTable(address, lance_version(options))
        self._version, self._entry = snapshot.version, snapshot.entry
        schema = read_schema(snapshot, options)
        if options.output == "partitions":
            return PARTITION_SCHEMA
        warn_of_width(address.uri, schema, options, snapshot.bytes_per_row)
        return schema

    def _stream_schema(self, error: InvalidArgumentError | None) -> StructType:
        try:
            options = StreamReadOptions.parse(self.options)
        except InvalidArgumentError as other:
            raise (error if error is not None and of_reads_alone(self.options) else other) from None
        return stream_schema(read_address(self.options), options)

    @in_words_of_spark()
    def streamReader(self, schema: StructType) -> EskerStreamReader | RefusedStreamReader:
        """The reader of the table as a stream, with rows of the given schema."""
        try:
            options = StreamReadOptions.parse(self.options)
        except InvalidArgumentError as error:
            return RefusedStreamReader(error)
        # Each batch looks at the newest version: that of a branch, not that of the commit that it was at first.
        history = partial(table_history, table_address(self.options), schema, options)
        return EskerStreamReader(history, options, schema.names)

    @in_words_of_spark()
    def reader(self, schema: StructType) -> EskerReader | DeltaReader:
        """The reader of the table, with rows of the given schema."""
        options = ReadOptions.parse(self.options)
        address = self._address or read_address(self.options)
        if self._delta is None:
            self._delta = is_delta(address)
        if self._delta:
            from esker.spark.delta_reader import DeltaReader

            return DeltaReader(address, self._version, schema, options, self._entry)
        options.check_format("lance", address.uri)
        version = lance_version(options) if self._version is None else self._version
        return EskerReader(address, version, schema, options, self._entry)

    @in_words_of_spark()
    def writer(self, schema: StructType, overwrite: bool) -> EskerWriter | DeltaWriter:
        """The writer of DataFrames of the given schema to the table."""
        address = write_address(self.options)
        options = WriteOptions.parse(self.options, overwrite=overwrite)
        return batch_writer(address, schema, overwrite, options)

    @in_words_of_spark()
    def streamWriter(self, schema: StructType, overwrite: bool) -> EskerStreamWriter:
        """The writer of the batches of a stream, in output mode append, or complete if `overwrite`."""
        check_arrow_streams()
        address = write_address(self.options, is_stream=True)
        options = stream_write_options(self.options, overwrite=overwrite)
        plan = partial(batch_writer, address, schema, overwrite, options, is_stream=True)
        # Spark plans a batch with a source of its own, and commits it with one that it has pickled.
        return EskerStreamWriter(plan, is_planning=not self._is_copy, checkpoint=checkpoint_of(self.options))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "options": pickled_source_options(self.options), "_is_copy": True}


def batch_writer(
    address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions, *, is_stream: bool = False
) -> EskerWriter | DeltaWriter:
    """The writer of a DataFrame of the given schema to a table.

    Example:
        `batch_writer(address, frame.schema, False, WriteOptions.parse({}))`
    """
    if writes_delta(address, options):
        from esker.spark.delta_writer import DeltaWriter

        return DeltaWriter(address, schema, overwrite, options, is_stream=is_stream)
    return EskerWriter(address, schema, overwrite, options)
