"""What a user says with `.option(name, value)`: read once, checked, and plain values from then on.

Spark hands over names in lower case and values as text. Underscores don't count, so `rowsPerPartition` and
`rows_per_partition` are the same name. A name that nobody knows is an error: a misspelt
`filter` must not read the table whole.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from esker.commit.pickling import pickled_options
from esker.commit.stores import absolute
from esker.delta.table_properties import PROPERTY, property_name
from esker.exceptions import InvalidArgumentError

__all__ = ["READ_OPTIONS", "WRITE_OPTIONS", "ReadOptions", "WriteOptions", "table_address"]

READ_OPTIONS = (
    "columns",
    "filter",
    "version",
    "nanoseconds",
    "rows_per_partition",
    "bytes_per_partition",
    "output",
    "timestamp_as_of",
    "timezone",
    "read_change_feed",
    "starting_version",
    "ending_version",
    "starting_timestamp",
    "ending_timestamp",
)
WRITE_OPTIONS = (
    "save_mode",
    "max_rows_per_file",
    "max_bytes_per_file",
    "data_storage_version",
    "vectors",
    "overwrite_schema",
    "replace_where",
    "merge_schema",
    "txn_app_id",
    "txn_version",
    "user_metadata",
    "partition_overwrite_mode",
    "table_format",
    "partition_columns",
)
_BOTH = ("path", "storage_options")
# Spark puts the name of a catalog's table and of a stream's query among the options.
_OF_SPARK = ("paths", "queryname", "checkpointlocation")
_ALIASES = {"versionasof": "version", "select": "columns", "where": "filter", "maxrecordsperfile": "maxrowsperfile"}
_ALIASES["readchangedata"] = "readchangefeed"
_KNOWN = {name.replace("_", ""): name for name in (*READ_OPTIONS, *WRITE_OPTIONS, *_BOTH)}
_VECTOR = re.compile(r"^\s*(?P<column>.+?)\s*[=:]\s*(?P<size>\d+)\s*$")


@dataclass(frozen=True)
class TableAddress:
    """Where a table lies, the same in every process of a job."""

    uri: str
    # They may hold passwords, which no plan and no error shall show.
    storage_options: Mapping[str, str] = field(repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {"uri": self.uri, "storage_options": pickled_options(self.storage_options)}


@dataclass(frozen=True)
class ReadOptions:
    """What to read of a table.

    Args:
        columns: Columns in the order wanted, None for all.
        filter: The text of an SQL WHERE clause over the table's columns, of which a row must be true.
        version: The version, None for the newest.
        truncate: Whether times finer than microseconds are cut; otherwise they are an error.
        rows_per_partition: Rows of one Spark partition at most.
        bytes_per_partition: Bytes in data files of one Spark partition, as far as the table knows them.
        output: "rows", or "slices" for a description of each partition in place of its rows.
        changes: Of a Delta table: its change data feed in place of its rows.
        timestamp: In place of a version, of a Delta table: the one that was the newest at that time.
        timezone: Of a Delta table: what timestamps without a zone mean as partition values.
    """

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    version: int | None = None
    truncate: bool = False
    rows_per_partition: int = 1024 * 1024
    bytes_per_partition: int = 128 * 1024 * 1024
    output: str = "rows"
    timestamp: str | None = None
    timezone: str | None = None
    changes: ChangeRange | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Reads the options of `spark.read`.

        Raises:
            InvalidArgumentError: An unknown name, or a value that does not parse.
        """
        given = _normalise(options)
        for name in given:
            if name.startswith(PROPERTY):
                raise InvalidArgumentError(f"option {name}: a property of a table is set when it is written, not read")
        return cls(
            changes=ChangeRange.of(given),
            columns=_columns(given.get("columns")),
            filter=given.get("filter"),
            version=_integer(given, "version", 0),
            truncate=_choice(given, "nanoseconds", ("error", "truncate")) == "truncate",
            rows_per_partition=_integer(given, "rows_per_partition", 1) or cls.rows_per_partition,
            bytes_per_partition=_integer(given, "bytes_per_partition", 1) or cls.bytes_per_partition,
            output=_choice(given, "output", ("rows", "slices")),
            timestamp=given.get("timestamp_as_of"),
            timezone=given.get("timezone"),
        )


@dataclass(frozen=True)
class ChangeRange:
    """Which versions of a change data feed to read, under delta-spark's names."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: str | None = None
    ending_timestamp: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ChangeRange | None:
        """Out of options by their plain names; None if rows are asked for.

        Raises:
            InvalidArgumentError: A range without `readChangeFeed`, none with it, or a version and a time for one end.
        """
        names = ("starting_version", "ending_version", "starting_timestamp", "ending_timestamp")
        if _choice(given, "read_change_feed", ("false", "true")) == "false":
            for name in names:
                if name in given:
                    raise InvalidArgumentError(f"option {name}: expected readChangeFeed=true with it, found none")
            return None
        for end in ("starting", "ending"):
            if f"{end}_version" in given and f"{end}_timestamp" in given:
                raise InvalidArgumentError(f"expected the option {end}Version or {end}Timestamp, found both")
        if "starting_version" not in given and "starting_timestamp" not in given:
            raise InvalidArgumentError("expected startingVersion or startingTimestamp with readChangeFeed, found none")
        return cls(
            _integer(given, "starting_version", 0),
            _integer(given, "ending_version", 0),
            given.get("starting_timestamp"),
            given.get("ending_timestamp"),
        )


@dataclass(frozen=True)
class DeltaWriteOptions:
    """delta-spark's options for writes to Delta tables.

    Args:
        replace_where: With mode "overwrite": only rows for which this SQL is true are replaced.
        merge_schema: Whether columns that only the DataFrame has are added, and those that it lacks are nulls.
        txn_app_id: An application that numbers its writes.
        txn_version: Its number of this one: if the table has it already, or a later one, nothing is written.
        user_metadata: A text for the log entry.
        partition_overwrite_mode: With mode "overwrite": "dynamic" if only partitions with new rows are replaced.
        partition_columns: Of a new table.
        properties: Of a new table.
    """

    replace_where: str | None = None
    merge_schema: bool = False
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    partition_overwrite_mode: str = "static"
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> DeltaWriteOptions:
        """Out of options by their plain names.

        Raises:
            InvalidArgumentError: A value that does not parse, or one of `txnAppId` and `txnVersion` alone.
        """
        if ("txn_app_id" in given) != ("txn_version" in given):
            raise InvalidArgumentError("expected the options txnAppId and txnVersion together, found one of them")
        return cls(
            replace_where=given.get("replace_where"),
            merge_schema=_choice(given, "merge_schema", ("false", "true")) == "true",
            txn_app_id=given.get("txn_app_id"),
            txn_version=_integer(given, "txn_version", -(2**63)),
            user_metadata=given.get("user_metadata"),
            partition_overwrite_mode=_choice(given, "partition_overwrite_mode", ("static", "dynamic")),
            partition_columns=_columns(given.get("partition_columns"), "partition_columns") or (),
            properties={property_name(name): value for name, value in given.items() if name.startswith(PROPERTY)},
        )


@dataclass(frozen=True)
class WriteOptions:
    """How to write a table.

    Args:
        save_mode: "append", or, from `esker.spark.write`, "error" or "ignore" if there is a table already.
        max_rows_per_file: Rows of one data file at most.
        max_bytes_per_file: Bytes of one data file, about.
        data_storage_version: The version of the files; None for that of the table.
        vectors: Length of each array column that becomes a fixed_size_list.
        overwrite_schema: Whether an overwrite takes all types from the DataFrame, none from the table before.
        table_format: What a new table is: "lance" or "delta". A table that is there is what it is.
        delta: For Delta tables only.
    """

    save_mode: str = "append"
    max_rows_per_file: int = 1024 * 1024
    max_bytes_per_file: int = 90 * 1024**3
    data_storage_version: str | None = None
    vectors: Mapping[str, int] | None = None
    overwrite_schema: bool = False
    table_format: str = "lance"
    delta: DeltaWriteOptions = field(default_factory=DeltaWriteOptions)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Reads the options of `df.write`.

        Raises:
            InvalidArgumentError: An unknown name, or a value that does not parse.
        """
        given = _normalise(options)
        return cls(
            save_mode=_choice(given, "save_mode", ("append", "error", "ignore")),
            max_rows_per_file=_integer(given, "max_rows_per_file", 1) or cls.max_rows_per_file,
            max_bytes_per_file=_integer(given, "max_bytes_per_file", 1) or cls.max_bytes_per_file,
            data_storage_version=given.get("data_storage_version"),
            vectors=_vectors(given.get("vectors")),
            overwrite_schema=_choice(given, "overwrite_schema", ("false", "true")) == "true",
            table_format=_choice(given, "table_format", ("lance", "delta")),
            delta=DeltaWriteOptions.of(given),
        )


def table_address(options: Mapping[str, str]) -> TableAddress:
    """The table that the options name.

    Raises:
        InvalidArgumentError: No path, or several.

    Example:
        >>> from esker.spark.options import table_address
        >>> table_address({"path": "file:/data/t.lance"}).uri
        'file:///data/t.lance'
    """
    given = _normalise(options)
    path = given.get("path")
    if not path:
        several = ", found several" if options.get("paths") else ""
        raise InvalidArgumentError(f'expected one path{several}: give it to load("...") or save("...")')
    if path.startswith("file:/") and not path.startswith("file://"):
        # Hadoop's way to write it.
        path = "file://" + path.removeprefix("file:")
    storage = given.get("storage_options")
    try:
        parsed = json.loads(storage) if storage else {}
    except json.JSONDecodeError as error:
        # What was found may hold a password: only where it stops being JSON is told.
        where = f"option storage_options: expected a JSON object, found something else at letter {error.pos}"
        raise InvalidArgumentError(where) from None
    if not isinstance(parsed, dict):
        raise InvalidArgumentError(f"option storage_options: expected a JSON object, found a {type(parsed).__name__}")
    return TableAddress(absolute(os.fspath(path)), {str(name): str(value) for name, value in parsed.items()})


def _normalise(options: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in options.items():
        plain = name.lower().replace("_", "")
        plain = _ALIASES.get(plain, plain)
        if plain.startswith(PROPERTY):
            given[name.lower()] = value
            continue
        if plain in _OF_SPARK:
            continue
        known = _KNOWN.get(plain)
        if known is None:
            raise InvalidArgumentError(f"unknown option {name!r}, expected one of {', '.join(sorted(_KNOWN.values()))}")
        given[known] = value
    return given


def _columns(value: str | None, option: str = "columns") -> tuple[str, ...] | None:
    if value is None:
        return None
    if value.lstrip().startswith("["):
        try:
            names = json.loads(value)
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"option {option}: expected a JSON list of names, found {value!r}") from error
    else:
        names = [name.strip() for name in value.split(",")]
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise InvalidArgumentError(f"option {option}: expected names, each once, found {value!r}")
    return tuple(names)


def _integer(given: Mapping[str, str], name: str, least: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidArgumentError(f"option {name}: expected a whole number from {least}, found {value!r}")
    return number


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise InvalidArgumentError(f"option {name}: expected one of {', '.join(choices)}, found {value!r}")
    return value


def _vectors(value: str | None) -> dict[str, int] | None:
    if value is None:
        return None
    sizes: dict[str, int] = {}
    for part in value.split(","):
        match = _VECTOR.match(part)
        if match is None or int(match["size"]) < 1:
            raise InvalidArgumentError(f"option vectors: expected column=length, found {part!r}")
        sizes[match["column"]] = int(match["size"])
    return sizes
