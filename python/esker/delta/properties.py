"""Options of writes, commits and post-commit hooks, under deltalake's names."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError

Compression = Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"]
Statistics = Literal["NONE", "CHUNK", "PAGE"]
_GENERATED = ("timestamp", "operation", "engineInfo", "txnId", "inCommitTimestamp")
_LEVELS = {"GZIP": (0, 10), "BROTLI": (0, 11), "ZSTD": (1, 22)}
_DEFAULT_LEVELS = {"GZIP": 6, "BROTLI": 1, "ZSTD": 1}
"""The levels of deltalake, which tells them as part of the codec's name."""
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_ISOLATION = ("Serializable", "WriteSerializable", "SnapshotIsolation")
_STATISTICS = ("NONE", "CHUNK", "PAGE")
_ENCODINGS = ("PLAIN", "RLE", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")


@dataclass(frozen=True)
class Transaction:
    """The last commit that an application made, by its own count (the action `txn`).

    Args:
        app_id: The application.
        version: Its own number of the commit.
        last_updated: Milliseconds since the epoch.

    Raises:
        InvalidTypeError: The application is no text, or a number is none.
        InvalidArgumentError: A number is none of 64 bits.

    Example:
        >>> from esker.delta import Transaction
        >>> Transaction("nightly", 12).version
        12
    """

    app_id: str
    version: int
    last_updated: int | None = None

    def __post_init__(self) -> None:
        # What is something else in the log makes the table one that nobody opens.
        if not isinstance(self.app_id, str):
            raise InvalidTypeError(f"expected app_id as a text, found {self.app_id!r}")
        object.__setattr__(self, "version", _whole("version", self.version))
        if self.last_updated is not None:
            object.__setattr__(self, "last_updated", _whole("last_updated", self.last_updated))


def _whole(name: str, value: Any) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"expected {name} as an integer, found {value!r}") from None
    if not -(2**63) <= found < 2**63:
        raise InvalidArgumentError(f"expected {name} as an integer of 64 bits, found {found}")
    return found


@dataclass
class CommitProperties:
    """What goes into the log entry beside the change, and how often a lost race is run again.

    Args:
        custom_metadata: Keys of `commitInfo`. `timestamp`, `operation`, `engineInfo` and `txnId` are the writer's; to
            `operationParameters` only others than the writer's are added.
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
        if self.custom_metadata is not None and not isinstance(self.custom_metadata, Mapping):
            raise InvalidArgumentError(
                f"expected custom_metadata as a mapping, found {type(self.custom_metadata).__name__}"
            )
        for key, value in (self.custom_metadata or {}).items():
            _check_metadata(key, value)
        names = [transaction.app_id for transaction in self.app_transactions or []]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"expected one transaction for each application, found {', '.join(names)}")


def _check_metadata(key: object, value: Any) -> None:
    """Raises for what may not stand in a `commitInfo`, or what readers of the reference could not make sense of."""
    if not isinstance(key, str):
        raise InvalidArgumentError(f"custom_metadata keys must be strings, found {key!r}")
    if key in _GENERATED:
        raise InvalidArgumentError(f"expected keys of commitInfo that the writer does not set itself, found {key!r}")
    expected = None
    if key == "operationParameters" and not isinstance(value, Mapping):
        expected = "a mapping"
    elif key == "readVersion" and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        expected = "a version from 0 on"
    elif key == "isolationLevel" and value not in _ISOLATION:
        expected = f"one of {', '.join(_ISOLATION)}"
    elif key in ("userName", "userId", "userMetadata") and not isinstance(value, str):
        expected = "a text"
    if expected is not None:
        raise InvalidArgumentError(f"custom_metadata {key}: expected {expected}, found {value!r}")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"custom_metadata {key}: expected what JSON can hold, found {value!r}") from error


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
    """Bloom filters of a column's row groups. They need pyarrow 24 or newer.

    Args:
        set_bloom_filter_enabled: Whether there are any.
        fpp: How likely a false yes is, between 0 and 1; 0.05 if not given.
        ndv: How many distinct values a row group has, about; 1,000,000 if not given.

    Raises:
        InvalidArgumentError: `fpp` is not between 0 and 1.
    """

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise InvalidArgumentError(f"expected fpp between 0 and 1, both exclusive, found {self.fpp}")


@dataclass
class ColumnProperties:
    """How a column is written in Parquet.

    Raises:
        InvalidArgumentError: An encoding or statistics that Parquet does not have, or an encoding beside a dictionary.
    """

    dictionary_enabled: bool | None = None
    statistics_enabled: Statistics | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.statistics_enabled is not None:
            found = str(self.statistics_enabled).upper()
            if found not in _STATISTICS:
                raise InvalidArgumentError(
                    f"expected statistics_enabled as one of {', '.join(_STATISTICS)}, found {self.statistics_enabled!r}"
                )
            self.statistics_enabled = cast("Statistics", found)
        if self.encoding is None:
            return
        if self.dictionary_enabled:
            raise InvalidArgumentError("expected dictionary_enabled=True or an encoding, found both")
        if self.encoding.upper() not in _ENCODINGS:
            raise InvalidArgumentError(f"expected an encoding of {', '.join(_ENCODINGS)}, found {self.encoding!r}")
        self.encoding = self.encoding.upper()


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
        InvalidArgumentError: A codec that is none, or a level that it does not have; row groups without rows.
        InvalidTypeError: Properties of columns that are no `ColumnProperties`.

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
            if column is not None and not isinstance(column, ColumnProperties):
                raise InvalidTypeError(f"expected properties of columns as ColumnProperties, found {column!r}")
        if self.max_row_group_size is not None and self.max_row_group_size < 1:
            raise InvalidArgumentError(f"expected max_row_group_size from 1 on, found {self.max_row_group_size}")
        if self.compression is None:
            if self.compression_level is not None:
                raise InvalidArgumentError("expected a compression with compression_level, found none")
            return
        # A level may be told within the name, as it is told of one that has it by default.
        codec, _, within = self.compression.upper().removesuffix(")").partition("(")
        if codec not in _CODECS or (within and (codec not in _LEVELS or not within.isdecimal())):
            raise InvalidArgumentError(f"expected a compression of {', '.join(_CODECS)}, found {self.compression!r}")
        if self.compression_level is None and not within:
            within = str(_DEFAULT_LEVELS.get(codec, ""))
        level = self.compression_level if self.compression_level is not None else int(within) if within else None
        self.compression = cast("Compression", f"{codec}({within})" if within else codec)
        if level is None:
            return
        low, high = _LEVELS.get(codec, (0, -1))
        if not low <= level <= high:
            there = f"a level from {low} to {high}" if high >= 0 else "no level"
            raise InvalidArgumentError(f"expected {there} with {codec}, found {level}")

    def arguments(self, columns: list[str]) -> dict[str, Any]:
        """The arguments of `pyarrow.parquet.ParquetWriter` for a file with these columns."""
        name, _, level = (self.compression or "SNAPPY").rstrip(")").partition("(")
        codec = name.lower()
        codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)
        found: dict[str, Any] = {"compression": codec, "version": "2.6"}
        if self.compression_level is not None or level:
            found["compression_level"] = int(level) if level else self.compression_level
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
        filters = {
            name: {"ndv": bloom.ndv or 1_000_000, "fpp": bloom.fpp or 0.05}
            for name, column in chosen.items()
            if (bloom := column.bloom_filter_properties) is not None and bloom.set_bloom_filter_enabled
        }
        if filters:
            from inspect import signature

            from pyarrow.parquet import ParquetWriter

            if "bloom_filter_options" not in signature(ParquetWriter).parameters:
                raise UnsupportedError(
                    "this release of pyarrow writes no bloom filters; upgrade pyarrow to 24 or newer"
                )
            found["bloom_filter_options"] = filters
        return found

    def _of(self, column: str) -> ColumnProperties:
        return (self.column_properties or {}).get(column) or self.default_column_properties or ColumnProperties()
