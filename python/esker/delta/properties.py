"""What a write is told beside its rows, under deltalake's names: of the commit, of Parquet, of what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..exceptions import InvalidArgumentError, UnsupportedError

Compression = Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"]
_GENERATED = ("timestamp", "operation", "engineInfo", "txnId", "inCommitTimestamp")


@dataclass(frozen=True)
class Transaction:
    """The last commit that an application made, by its own count (the action `txn`).

    Args:
        app_id: The application.
        version: Its own number of the commit.
        last_updated: Milliseconds since the epoch.

    Example:
        >>> from esker.delta import Transaction
        >>> Transaction("nightly", 12).version
        12
    """

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass
class CommitProperties:
    """What goes into the log entry beside the change, and how often a lost race is run again.

    Args:
        custom_metadata: Keys of `commitInfo`. `timestamp`, `operation`, `engineInfo` and `txnId` are the writer's.
        max_commit_retries: Attempts after the first; 15 if not given.
        app_transactions: Written as they are given, whatever the table has of them.

    Example:
        >>> from esker.delta import CommitProperties
        >>> CommitProperties(custom_metadata={"userMetadata": "nightly"}).max_commit_retries is None
        True
    """

    custom_metadata: dict[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: list[Transaction] | None = None

    def __post_init__(self) -> None:
        for key in self.custom_metadata or {}:
            if key in _GENERATED:
                raise InvalidArgumentError(
                    f"expected keys of commitInfo that the writer does not set itself, found {key!r}"
                )
        names = [transaction.app_id for transaction in self.app_transactions or []]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"expected one transaction for each application, found {', '.join(names)}")


@dataclass
class PostCommitHookProperties:
    """What is done after a commit.

    Args:
        create_checkpoint: Whether a checkpoint is written where `delta.checkpointInterval` says so.
        cleanup_expired_logs: Whether log files older than `delta.logRetentionDuration` are deleted then; as
            `delta.enableExpiredLogCleanup` says if not given.
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None


@dataclass
class BloomFilterProperties:
    """Bloom filters of Parquet. They are refused where they are turned on: pyarrow does not write them."""

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None


@dataclass
class ColumnProperties:
    """How a column is written in Parquet."""

    dictionary_enabled: bool | None = None
    statistics_enabled: Literal["NONE", "CHUNK", "PAGE"] | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None


@dataclass
class WriterProperties:
    """How Parquet files are written.

    Args:
        data_page_size_limit: Bytes of a data page, about.
        dictionary_page_size_limit: Bytes of a dictionary page, about.
        data_page_row_count_limit: Rows of a data page at most.
        write_batch_size: Values that are encoded at a time.
        max_row_group_size: Rows of a row group at most.
        compression: The codec; `SNAPPY` if not given.
        compression_level: For GZIP, BROTLI and ZSTD.
        statistics_truncate_length: Accepted as deltalake accepts it; pyarrow cuts no bounds of row groups.
        default_column_properties: For all columns that have none of their own.
        column_properties: For single columns.

    Raises:
        UnsupportedError: A bloom filter is asked for.

    Example:
        >>> from esker.delta import WriterProperties
        >>> WriterProperties(compression="ZSTD", compression_level=3).arguments(["x"])["compression"]
        'zstd'
    """

    data_page_size_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    write_batch_size: int | None = None
    max_row_group_size: int | None = None
    compression: Compression | None = None
    compression_level: int | None = None
    statistics_truncate_length: int | None = None
    default_column_properties: ColumnProperties | None = None
    column_properties: dict[str, ColumnProperties] | None = None

    def __post_init__(self) -> None:
        for column in [self.default_column_properties, *(self.column_properties or {}).values()]:
            bloom = column.bloom_filter_properties if column is not None else None
            if bloom is not None and bloom.set_bloom_filter_enabled is not False:
                raise UnsupportedError(
                    "bloom filters are not written by this release; leave bloom_filter_properties out"
                )

    def arguments(self, columns: list[str]) -> dict[str, Any]:
        """The arguments of `pyarrow.parquet.ParquetWriter` for a file with these columns."""
        codec = (self.compression or "SNAPPY").lower()
        codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)
        found: dict[str, Any] = {"compression": codec, "version": "2.6"}
        if self.compression_level is not None:
            found["compression_level"] = self.compression_level
        for name, value in [
            ("data_page_size", self.data_page_size_limit),
            ("dictionary_pagesize_limit", self.dictionary_page_size_limit),
            ("max_rows_per_page", self.data_page_row_count_limit),
            ("write_batch_size", self.write_batch_size),
        ]:
            if value is not None:
                found[name] = value
        chosen = {name: self._of(name) for name in columns}
        encodings = {name: column.encoding for name, column in chosen.items() if column.encoding is not None}
        found["use_dictionary"] = [
            name for name, column in chosen.items() if column.dictionary_enabled is not False and name not in encodings
        ]
        found["write_statistics"] = [name for name, column in chosen.items() if column.statistics_enabled != "NONE"]
        if encodings:
            found["column_encoding"] = encodings
        return found

    def _of(self, column: str) -> ColumnProperties:
        return (self.column_properties or {}).get(column) or self.default_column_properties or ColumnProperties()
