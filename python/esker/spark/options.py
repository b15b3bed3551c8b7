"""Parses and checks the options of `.option(name, value)`: `ReadOptions`, `WriteOptions` and `TableAddress`.

`esker.spark.option_names` has their names, and where each one applies.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.lance.write.compression import Compression, checked_compression
from esker.spark.option_names import CATALOG, Given, checked_path
from esker.spark.spelling import spelled_as, spelled_sql
from esker.store.pickling import pickled_options
from esker.store.stores import absolute

__all__ = [
    "OF_STREAM_SINKS",
    "ChangeRange",
    "DeltaWriteOptions",
    "ReadOptions",
    "TableAddress",
    "WriteOptions",
    "checked_mapping",
    "columns_of",
    "pickled_source_options",
    "read_address",
    "table_address",
    "write_address",
]

OF_STREAM_SINKS = ("maxFilesPerCommit", "compactEvery")
"""Options of writes that have an effect on streams only."""

_OF_REPOSITORIES = re.compile(r"esker(-[a-z]+)?://", re.IGNORECASE)
_VECTOR = re.compile(r"^\s*(?P<column>.+?)\s*[=:]\s*(?P<size>\d+)\s*$")


@dataclass(frozen=True)
class TableAddress:
    """The URI of a table and the options of its store, valid in every process of a job."""

    uri: str
    # Not in the repr: the options may hold passwords, and plans and errors show it.
    storage_options: Mapping[str, str] = field(repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {"uri": self.uri, "storage_options": pickled_options(self.storage_options)}


@dataclass(frozen=True)
class ReadOptions:
    """What to read of a table.

    Args:
        columns: Columns in the order to return, None for all.
        filter: The text of an SQL WHERE clause over the table's columns; only rows for which it is true are read.
        version: The version, None for the newest.
        truncate: Whether times finer than microseconds are truncated; otherwise they are an error.
        rows_per_partition: The maximum number of rows per Spark partition.
        bytes_per_partition: Bytes of data files per Spark partition, as far as the table records their sizes.
        parallelism: How many tasks run at once, over which a small table is spread; None if nobody knows.
        output: "rows", or "partitions" for a description of each partition instead of its rows.
        changes: For a Delta table: read its change data feed instead of its rows.
        timestamp: For a Delta table, instead of a version: the version that was the newest at that time.
        timezone: The zone of times without one in texts, None for the zone of the session.
        partition_timezone: For a Delta table: the zone of timestamps without one in partition values.
        elsewhere: For each format the options that have no effect on it, each with what to do instead.
    """

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    version: int | None = None
    truncate: bool = False
    rows_per_partition: int = 16 * 1024 * 1024
    bytes_per_partition: int = 128 * 1024 * 1024
    parallelism: int | None = None
    output: str = "rows"
    timestamp: str | None = None
    timezone: str | None = None
    partition_timezone: str | None = None
    changes: ChangeRange | None = None
    elsewhere: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Reads the options of `spark.read`.

        Raises:
            InvalidArgumentError: A name is unknown, an option is for writes, or a value does not parse.
        """
        given = Given(options, "read")
        for name in given.properties:
            raise InvalidArgumentError(f"option {name}: a property of a table is set when it is written, not read")
        changes = ChangeRange.of(given)
        return cls(
            changes=changes,
            columns=columns_of(given, "columns"),
            filter=given.get("filter"),
            version=given.integer("version", 0),
            truncate=given.choice("nanoseconds", ("error", "truncate")) == "truncate",
            rows_per_partition=given.integer("rowsPerPartition", 1) or cls.rows_per_partition,
            bytes_per_partition=given.integer("bytesPerPartition", 1) or cls.bytes_per_partition,
            parallelism=given.integer("parallelism", 1),
            output=given.choice("output", ("rows", "partitions")),
            timestamp=given.get("timestampAsOf"),
            timezone=given.zone("timezone"),
            partition_timezone=given.zone("partitionTimezone"),
            # Of a Lance table a stream may say readChangeFeed=false, and Spark asks for its columns as for a read's.
            elsewhere={
                table: tuple(
                    told for told in given.elsewhere(table) if told[0] != given.shown("readChangeFeed") or changes
                )
                for table in ("lance", "delta")
            },
        )

    def check_format(self, table_format: str, uri: str) -> None:
        """Refuses options that have no effect on a table of this format.

        Raises:
            InvalidArgumentError: There is such an option; the message says what to do instead.
        """
        _check_format(self.elsewhere, table_format, uri)

    def spelled(self, known: Sequence[str], *, quotes_names: bool = False) -> ReadOptions:
        """The same with names of columns in the spelling of a table, which has these.

        Args:
            known: The names in the table.
            quotes_names: Whether double quotes in the filter name a column, as for Delta tables, rather than a text.

        Raises:
            InvalidArgumentError: A column is named twice, in spellings that differ by their case alone.

        Example:
            >>> from esker.spark.options import ReadOptions
            >>> ReadOptions(columns=("ID",), filter="Id > 3").spelled(["id"]).filter
            'id > 3'
        """
        columns = None if self.columns is None else tuple(spelled_as(self.columns, known))
        counts = Counter(name.lower() for name in columns or ())
        for name in columns or ():
            if counts[name.lower()] > 1 and name not in known:
                alike = ", ".join(repr(one) for one in columns or () if one.lower() == name.lower())
                raise InvalidArgumentError(
                    f"columns: expected names, each once, found {alike}, which case does not tell apart", column=name
                )
        filter = None if self.filter is None else spelled_sql(self.filter, known, quotes_names=quotes_names)
        return replace(self, columns=columns, filter=filter)


@dataclass(frozen=True)
class ChangeRange:
    """The range of versions of a change data feed, under delta-spark's names."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: str | None = None
    ending_timestamp: str | None = None

    @property
    def is_numbered(self) -> bool:
        """Whether neither end of the range is given by a time."""
        return self.starting_timestamp is None and self.ending_timestamp is None

    @classmethod
    def of(cls, given: Given) -> ChangeRange | None:
        """The range that the options set; None without `readChangeFeed`.

        Raises:
            InvalidArgumentError: A range is given without `readChangeFeed`, or `readChangeFeed` without one, or one end
                is given by both a version and a time.
        """
        if not given.switch("readChangeFeed"):
            for name in ("startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp"):
                if name in given:
                    raise InvalidArgumentError(
                        f"option {given.shown(name)}: expected readChangeFeed=true with it, found none"
                    )
            return None
        for end in ("starting", "ending"):
            if f"{end}Version" in given and f"{end}Timestamp" in given:
                raise InvalidArgumentError(f"expected the option {end}Version or {end}Timestamp, found both")
        if "startingVersion" not in given and "startingTimestamp" not in given:
            raise InvalidArgumentError("expected startingVersion or startingTimestamp with readChangeFeed, found none")
        for name in ("version", "timestampAsOf"):
            if name in given:
                raise InvalidArgumentError(
                    f"option {given.shown(name)}: expected endingVersion or endingTimestamp with readChangeFeed in its "
                    "place"
                )
        return cls(
            given.integer("startingVersion", 0),
            given.integer("endingVersion", 0),
            given.get("startingTimestamp"),
            given.get("endingTimestamp"),
        )


@dataclass(frozen=True)
class DeltaWriteOptions:
    """delta-spark's options for writes to Delta tables.

    Args:
        replace_where: With mode "overwrite": only rows for which this SQL is true are replaced.
        merge_schema: Whether columns that only the DataFrame has are added, and those that it lacks are nulls.
        txn_app_id: The id of an application that numbers its writes.
        txn_version: The number of this write: if the table has it already, or a higher one, nothing is written.
        user_metadata: A text for the log entry.
        partition_overwrite_mode: With mode "overwrite": "dynamic" replaces only partitions with new rows; None takes
            the mode from `spark.sql.sources.partitionOverwriteMode`.
        partition_columns: The partition columns of a new table, or of one whose schema is overwritten, empty for none;
            None for those that the table has.
        properties: The properties of a new table.
    """

    replace_where: str | None = None
    merge_schema: bool = False
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    partition_overwrite_mode: str | None = None
    partition_columns: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Given) -> DeltaWriteOptions:
        """The options for Delta tables among the given ones.

        Raises:
            InvalidArgumentError: A value does not parse, or only one of `txnAppId` and `txnVersion` is given.
        """
        if ("txnAppId" in given) != ("txnVersion" in given):
            raise InvalidArgumentError("expected the options txnAppId and txnVersion together, found one of them")
        mode = given.choice("partitionOverwriteMode", ("static", "dynamic"))
        where = given.get("replaceWhere")
        if where is not None and not where.strip():
            # Without a condition an overwrite takes all rows away.
            raise InvalidArgumentError(
                f"option {given.shown('replaceWhere')}: expected the text of an SQL WHERE clause, found none; leave it "
                "out to replace all rows"
            )
        return cls(
            replace_where=where,
            merge_schema=given.switch("mergeSchema"),
            txn_app_id=given.get("txnAppId"),
            txn_version=given.integer("txnVersion", -(2**63)),
            user_metadata=given.get("userMetadata"),
            partition_overwrite_mode=mode if "partitionOverwriteMode" in given else None,
            partition_columns=columns_of(given, "partitionColumns", may_be_none=True),
            properties=_spelled(given.properties),
        )


@dataclass(frozen=True)
class WriteOptions:
    """How to write a table.

    Args:
        save_mode: "append", or, from `esker.spark.write`, "error" or "ignore" if there is a table already.
        max_rows_per_file: The maximum number of rows per data file, None for the format's default.
        max_bytes_per_file: The approximate number of bytes per data file; None for the default of the format or table.
        max_files_per_commit: The maximum number of data files that a batch of a stream adds, unless each is full.
        compact_every: After how many batches of a stream the table is compacted; None for never.
        data_storage_version: The file version; None for that of the table.
        compression: How small the files are to be; None for what the table has.
        vectors: The length of each array column that becomes a fixed_size_list.
        overwrite_schema: Whether an overwrite takes all types from the DataFrame, and none from the old table.
        table_format: The format of a new table: "lance" or "delta"; None for that of an existing table, or "lance".
        timezone: The zone of times without one in texts, None for the zone of the session.
        delta: Options for Delta tables only.
        elsewhere: For each format the options that have no effect on it, each with what to do instead.
    """

    save_mode: str = "append"
    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    max_files_per_commit: int | None = None
    compact_every: int | None = None
    data_storage_version: str | None = None
    compression: Compression | None = None
    vectors: Mapping[str, int] | None = None
    overwrite_schema: bool = False
    table_format: str | None = None
    timezone: str | None = None
    delta: DeltaWriteOptions = field(default_factory=DeltaWriteOptions)
    elsewhere: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str], *, overwrite: bool = True, is_stream: bool = False) -> WriteOptions:
        """Reads the options of `df.write`.

        Args:
            options: The options from Spark.
            overwrite: Whether the mode is "overwrite": some options have no effect in other modes.
            is_stream: Whether it is a batch of a stream that is written.

        Raises:
            InvalidArgumentError: A name is unknown, an option is for reads, or a value does not parse.
        """
        given = Given(options, "write")
        for name in OF_STREAM_SINKS:
            if name in given and not is_stream:
                raise InvalidArgumentError(
                    f"option {given.shown(name)} is for streams, found it on a write of a DataFrame: coalesce its "
                    "partitions before, compact the table afterwards"
                )
        for name in ("replaceWhere", "overwriteSchema"):
            if not overwrite and name in given and given.get(name) != "false":
                raise InvalidArgumentError(
                    f'option {given.shown(name)}: expected mode("overwrite") with it, found an append; leave it out'
                )
        table_format = given.choice("tableFormat", ("lance", "delta")) if "tableFormat" in given else None
        return cls(
            save_mode=given.choice("saveMode", ("append", "error", "ignore")),
            max_rows_per_file=given.integer("maxRowsPerFile", 1),
            max_bytes_per_file=given.integer("maxBytesPerFile", 1),
            max_files_per_commit=given.integer("maxFilesPerCommit", 1),
            compact_every=given.integer("compactEvery", 1),
            data_storage_version=given.get("dataStorageVersion"),
            compression=checked_compression(given.get("compression")),
            vectors=_vectors(given.get("vectors")),
            overwrite_schema=given.switch("overwriteSchema"),
            table_format=table_format,
            timezone=given.zone("timezone"),
            delta=DeltaWriteOptions.of(given),
            elsewhere={
                "delta": given.elsewhere("delta"),
                # Only replaceWhere, an option for Delta tables, reads times.
                "lance": (*given.elsewhere("lance"), *((("timezone", "leave it out"),) if "timezone" in given else ())),
            },
        )

    def check_format(self, table_format: str, uri: str) -> None:
        """Refuses options that have no effect on a table of this format.

        Raises:
            InvalidArgumentError: There is such an option; the message says what to do instead.
        """
        _check_format(self.elsewhere, table_format, uri, writing=True)


def table_address(options: Mapping[str, str]) -> TableAddress:
    """The address of the table in the options.

    Raises:
        InvalidArgumentError: There is no path, or more than one, or a relative one on a server of Spark Connect.

    Example:
        >>> from esker.spark.options import table_address
        >>> table_address({"path": "file:/data/t.lance"}).uri
        'file:///data/t.lance'
    """
    given = Given(options)
    path = given.get("path")
    if not path:
        if options.get("paths"):
            raise InvalidArgumentError('expected one path, found several: give one to load("...") or save("...")')
        raise InvalidArgumentError(f'expected one path: give it to load("...") or save("..."); {CATALOG}')
    path = checked_path(path)
    uri = absolute(os.fspath(path))
    if uri != path and _is_in_folder_of_session(uri):
        raise InvalidArgumentError(
            f"expected a whole path or a URI, found {path!r}, which Spark Connect would look for in a folder that is "
            "removed with the session; esker.spark.read and esker.spark.write take a path of the client's folder"
        )
    storage, shown = given.get("storageOptions"), given.shown("storageOptions")
    try:
        parsed = json.loads(storage) if storage else {}
    except json.JSONDecodeError as error:
        # The value may hold a password: the message has only the position of the error.
        where = f"option {shown}: expected a JSON object, found something else at letter {error.pos}"
        raise InvalidArgumentError(where) from None
    if not isinstance(parsed, dict):
        raise InvalidArgumentError(f"option {shown}: expected a JSON object, found a {type(parsed).__name__}")
    return TableAddress(uri, {str(name): str(value) for name, value in parsed.items()})


def _is_in_folder_of_session(path: str) -> bool:
    """Whether Spark has started this process in the folder of a session's files, and a path lies there."""
    session = os.environ.get("SPARK_JOB_ARTIFACT_UUID", "default")
    if session == "default":
        return False
    here = os.getcwd()
    return os.path.basename(here) == session and path.startswith(f"{here}{os.sep}")


def read_address(options: Mapping[str, str]) -> TableAddress:
    """The address of the table that is read. That of a ref of a repository becomes that of the commit that it means
    now: every process of the job reads the same.

    Raises:
        InvalidArgumentError: There is no path, or more than one.
        UnsupportedError: It is a place that only this process knows.
    """
    address = table_address(options)
    found = _OF_REPOSITORIES.match(address.uri)
    if found is None:
        return address
    if found[1] in ("-tx", "-hook"):
        raise UnsupportedError(
            f"{address.uri}: expected a branch, a tag or a commit, found what only this process can read; commit it, "
            "and read the branch"
        )
    from esker.repo.branch_store import pinned

    return replace(address, uri=pinned(address.uri, address.storage_options))


def write_address(options: Mapping[str, str], *, is_stream: bool = False) -> TableAddress:
    """The address of the table that is written to. One in a repository is on a branch.

    Args:
        options: The options.
        is_stream: Whether it is a stream that writes.

    Raises:
        InvalidArgumentError: There is no path, or more than one.
        UnsupportedError: It is in a repository, and not on a branch.
        ProtectedBranchError: The repository's settings protect the branch.
    """
    address = table_address(options)
    found = _OF_REPOSITORIES.match(address.uri)
    if found is None:
        return address
    from esker.repo.branch_store import check_unprotected, is_of_branch
    from esker.repo.table_address import parsed

    if found[1] in ("-tx", "-hook"):
        outlived, instead = (
            ("which a stream outlasts", "where each batch is a commit")
            if is_stream
            else ("which this process alone can write to", "or write frame.toArrow() there without Spark")
        )
        raise UnsupportedError(
            f"{address.uri}: expected a table on a branch, found one of a transaction, {outlived}; give "
            f'branch.store_uri("..."), {instead}'
        )
    if found[1] is None:
        # What has no ref is told what a URI of a branch looks like.
        parsed(address.uri)
    if not is_of_branch(address.uri, address.storage_options):
        raise UnsupportedError(
            f"{address.uri}: expected a table on a branch that is there, found a ref that is only read; give "
            f'repository.branch("...").store_uri("..."), where each {"batch" if is_stream else "write"} is a commit'
        )
    check_unprotected(address.uri, address.storage_options)
    return address


def pickled_source_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that a pickle of a data source carries: with credentials or without, see `pickle_storage_options`.

    Example:
        >>> from esker.commit import pickle_storage_options
        >>> from esker.spark.options import pickled_source_options
        >>> with pickle_storage_options(False):
        ...     pickled_source_options({"storage_options": '{"region": "x", "token": "hush"}'})
        {'storage_options': '{"region": "x"}'}
    """
    carried = dict(options)
    for name, value in options.items():
        if name.lower().replace("_", "") == "storageoptions" and value:
            try:
                carried[name] = json.dumps(pickled_options(json.loads(value)))
            except (ValueError, AttributeError):
                # Not JSON: `table_address` refuses it later; the original text may hold a password.
                carried[name] = "not a JSON object"
    return carried


def _check_format(
    elsewhere: Mapping[str, tuple[tuple[str, str], ...]], table_format: str, uri: str, *, writing: bool = False
) -> None:
    for name, instead in elsewhere.get(table_format, ()):
        if table_format == "delta":
            raise InvalidArgumentError(f"option {name} is for Lance tables, found a Delta table at {uri}; {instead}")
        made = ", or make a Delta table with the option tableFormat=delta" if writing else ""
        raise InvalidArgumentError(f"option {name} is for Delta tables, found none at {uri}; {instead}{made}")


def columns_of(given: Given, option: str, *, may_be_none: bool = False) -> tuple[str, ...] | None:
    """The names in an option, with commas between them or as a JSON list; None if it was not given.

    Args:
        given: The options.
        option: The name of the one.
        may_be_none: Whether the list may be empty.

    Raises:
        InvalidArgumentError: They are not names, or one is there twice.

    Example:
        >>> from esker.spark.option_names import Given
        >>> from esker.spark.options import columns_of
        >>> columns_of(Given({"columns": "id, month"}), "columns")
        ('id', 'month')
    """
    value = given.get(option)
    if value is None:
        return None
    shown = given.shown(option)
    if value.lstrip().startswith("["):
        try:
            names = json.loads(value)
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"option {shown}: expected a JSON list of names, found {value!r}") from error
    else:
        names = [name.strip() for name in value.split(",")]
    are_names = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not are_names or len(set(names)) != len(names) or not (names or may_be_none):
        raise InvalidArgumentError(f"option {shown}: expected names, each once, found {value!r}")
    return tuple(names)


def checked_mapping(argument: str, value: object, example: str) -> dict[str, Any]:
    """The dict that is given for an argument, or an empty one for None.

    Raises:
        InvalidArgumentError: It is something else, such as the text that an option of Spark takes.

    Example:
        >>> from esker.spark.options import checked_mapping
        >>> checked_mapping("vectors", {"embedding": 2}, '{"embedding": 256}')
        {'embedding': 2}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{argument}: expected a dict such as {example}, found {value!r}")
    return dict(value)


def _spelled(properties: Mapping[str, str]) -> dict[str, str]:
    if not properties:
        return {}
    from esker.delta.table_properties import property_name

    return {property_name(name): value for name, value in properties.items()}


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
