"""The options of streams, beside those that they share with reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import datasource

from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.spark.option_names import Given
from esker.spark.options import ReadOptions, WriteOptions, columns_of

__all__ = ["Limits", "StreamReadOptions", "check_arrow_streams", "of_reads_alone", "stream_write_options"]

_NOT_STREAMED = {
    "txnAppId": "leave it out: a stream numbers its batches by its checkpoint",
    "txnVersion": "leave it out: a stream numbers its batches by its checkpoint",
    "saveMode": 'leave it out: say outputMode("append") or outputMode("complete")',
    "replaceWhere": "leave it out: a batch in output mode complete replaces all rows",
    "partitionOverwriteMode": "leave it out: a batch in output mode complete replaces all rows",
}
_OF_STREAMS_ALONE = (
    "skipChangeCommits",
    "ignoreDeletes",
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "maxFilesPerTrigger",
    "maxVersionsPerTrigger",
)
_OF_BOTH_FORMATS = ("readchangefeed", "startingversion", "startingtimestamp")
"""Options that are for Delta tables in a read, and for both formats in a stream."""


@dataclass(frozen=True)
class Limits:
    """How much one batch reads: at most this, but one file, or one version of a change feed, at least.

    Args:
        rows: The maximum number of rows.
        size: The maximum number of bytes of data files.
        files: The maximum number of data files.
        versions: The maximum number of versions.
    """

    rows: int | None = None
    size: int | None = None
    files: int | None = None
    versions: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether there is no limit."""
        return self.rows is None and self.size is None and self.files is None and self.versions is None


@dataclass(frozen=True)
class StreamReadOptions:
    """What a stream reads of a table.

    Args:
        read: What it shares with reads: columns, filter, zones.
        starting_version: The first version whose changes are read; None with no starting point: all rows first.
        starting_timestamp: Instead of a version: the first one that was committed at that time or later.
        from_latest: Whether only changes after the newest version are read.
        feed: Whether rows are read with what happened to them, also those that were deleted or updated.
        skips_changes: Whether versions that delete or change rows are passed over.
        skips_deletes: Whether versions that only delete rows are passed over.
        limits: How much one batch reads.
        elsewhere: For each format the options that have no effect on it, each with what to do instead.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    starting_version: int | None = None
    starting_timestamp: str | None = None
    from_latest: bool = False
    feed: bool = False
    skips_changes: bool = False
    skips_deletes: bool = False
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamReadOptions:
        """Reads the options of `spark.readStream`.

        Raises:
            InvalidArgumentError: A name is unknown, an option is for reads or writes of DataFrames, a value does not
                parse, or two options do not go together.

        Example:
            >>> from esker.spark.streaming.options import StreamReadOptions
            >>> StreamReadOptions.parse({"startingVersion": "latest", "maxRowsPerTrigger": "10"}).from_latest
            True
        """
        given = Given(options, "read stream")
        for name in given.properties:
            raise InvalidArgumentError(f"option {name}: a property of a table is set when it is written, not read")
        if "startingVersion" in given and "startingTimestamp" in given:
            raise InvalidArgumentError("expected the option startingVersion or startingTimestamp, found both")
        feed = given.switch("readChangeFeed")
        for name in ("skipChangeCommits", "ignoreDeletes"):
            if feed and given.switch(name):
                raise InvalidArgumentError(
                    f"option {given.shown(name)}: expected it without readChangeFeed, which reads all changes; leave "
                    "one out"
                )
        latest = (given.get("startingVersion") or "").lower() == "latest"
        kept = {
            table: tuple(
                (name, instead)
                for name, instead in given.elsewhere(table)
                if name.lower().replace("_", "") not in _OF_BOTH_FORMATS
            )
            for table in ("lance", "delta")
        }
        defaults = ReadOptions()
        read = ReadOptions(
            columns=columns_of(given, "columns"),
            filter=given.get("filter"),
            truncate=given.choice("nanoseconds", ("error", "truncate")) == "truncate",
            rows_per_partition=given.integer("rowsPerPartition", 1) or defaults.rows_per_partition,
            bytes_per_partition=given.integer("bytesPerPartition", 1) or defaults.bytes_per_partition,
            timezone=given.zone("timezone"),
            partition_timezone=given.zone("partitionTimezone"),
            elsewhere=kept,
        )
        return cls(
            read=read,
            starting_version=None if latest else given.integer("startingVersion", 0),
            starting_timestamp=given.get("startingTimestamp"),
            from_latest=latest,
            feed=feed,
            skips_changes=given.switch("skipChangeCommits"),
            skips_deletes=given.switch("ignoreDeletes"),
            limits=Limits(
                given.integer("maxRowsPerTrigger", 1),
                given.integer("maxBytesPerTrigger", 1),
                given.integer("maxFilesPerTrigger", 1),
                given.integer("maxVersionsPerTrigger", 1),
            ),
        )


def of_reads_alone(options: Mapping[str, str]) -> bool:
    """Whether an option among them is for reads of DataFrames and not for streams, and none the other way round.

    Example:
        >>> from esker.spark.streaming.options import of_reads_alone
        >>> of_reads_alone({"versionAsOf": "3"})
        True
    """
    try:
        given = Given(options)
    except InvalidArgumentError:
        return True
    if any(name in given for name in _OF_STREAMS_ALONE):
        return False
    of_reads = ("version", "timestampAsOf", "endingVersion", "endingTimestamp", "output", "parallelism")
    return any(name in given for name in of_reads)


def check_arrow_streams() -> None:
    """Refuses releases of Spark whose streams hand no Arrow batches to a Python sink.

    Raises:
        UnsupportedError: Spark is older than 4.1.

    Example:
        `check_arrow_streams()`
    """
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise UnsupportedError("expected Spark 4.1 or newer for a stream sink, found an older one")


def stream_write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """The options of `writeStream`.

    Args:
        options: The options from Spark.
        overwrite: Whether the output mode is complete.

    Raises:
        InvalidArgumentError: A name is unknown, an option is for reads or for writes of a DataFrame, or a value does
            not parse.

    Example:
        >>> from esker.spark.streaming.options import stream_write_options
        >>> stream_write_options({"maxRowsPerFile": "10"}, overwrite=False).max_rows_per_file
        10
    """
    given = Given(options, "write")
    for name, instead in _NOT_STREAMED.items():
        if name in given:
            raise InvalidArgumentError(
                f"option {given.shown(name)} is for writes of a DataFrame, found it on a stream: {instead}"
            )
    parsed = WriteOptions.parse(options, overwrite=overwrite, is_stream=True)
    # What the session says of overwritten partitions is for DataFrames.
    return replace(parsed, delta=replace(parsed.delta, partition_overwrite_mode="static"))
