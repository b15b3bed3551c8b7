"""The names of options: their spelling, where each one applies, and the error for one that does not apply.

Spark passes names in lower case and values as text. Underscores are ignored: `rowsPerPartition` and
`rows_per_partition` are the same name. An unknown name is an error, and so is an option that has no effect where it is
given: a misspelt `filter` must not read the whole table, and a misspelt `replaceWhere` must not append.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from esker.delta.read.session_zone import zone_name
from esker.exceptions import InvalidArgumentError
from esker.store.stores import OBJECT_STORES

__all__ = ["CATALOG", "Given", "Option", "checked_path"]

_EVERY = ("lance", "delta")
_PROPERTY = "delta."
"""How names of properties of Delta tables start."""
_MOST = 2**63 - 1
"""The largest number of 64 bits."""


@dataclass(frozen=True)
class Option:
    """An option: its name as Spark's users write it, where it applies, and what to do instead where it does not."""

    name: str
    sides: tuple[str, ...]
    formats: tuple[str, ...] = _EVERY
    other_side: str = "leave it out"
    other_format: str = "leave it out"
    in_stream: str | None = None
    """What to do instead in a stream that is read, if that is something else."""


def _options() -> dict[str, Option]:
    once, write, both = ("read",), ("write",), ("read", "read stream", "write")
    read, stream = ("read", "read stream"), ("read stream",)
    lance, delta = ("lance",), ("delta",)
    out = "leave it out"
    known = [
        Option("path", both),
        Option("storageOptions", both),
        Option("timezone", both),
        Option("columns", read, other_side="select the DataFrame's columns before the write"),
        Option("filter", read, other_side="filter the DataFrame, or say replaceWhere for the rows to replace"),
        Option(
            "version",
            once,
            other_side="leave it out: a write goes on top of the newest version",
            in_stream="say startingVersion for the first version whose changes are read",
        ),
        Option("nanoseconds", read, lance, out, f"{out}: its times have microseconds"),
        Option("rowsPerPartition", read, lance, "say maxRowsPerFile", "say bytesPerPartition"),
        Option("bytesPerPartition", read, other_side="say maxBytesPerFile"),
        Option("parallelism", once),
        Option("output", once),
        Option("timestampAsOf", once, delta, in_stream="say startingTimestamp", other_format="say version"),
        Option("partitionTimezone", read, delta),
        Option("readChangeFeed", read, delta),
        Option("startingVersion", read, delta),
        Option("endingVersion", once, delta),
        Option("startingTimestamp", read, delta),
        Option("endingTimestamp", once, delta),
        Option("skipChangeCommits", stream),
        Option("ignoreDeletes", stream),
        Option("maxRowsPerTrigger", stream, other_side="say rowsPerPartition for the size of a task"),
        Option("maxBytesPerTrigger", stream, other_side="say bytesPerPartition for the size of a task"),
        Option("maxFilesPerTrigger", stream),
        Option("maxVersionsPerTrigger", stream),
        Option("saveMode", write),
        Option("maxRowsPerFile", write, other_side="say rowsPerPartition"),
        Option("maxBytesPerFile", write, other_side="say bytesPerPartition"),
        Option("compression", write, lance, out, f"{out}: its files are Parquet"),
        Option("dataStorageVersion", write, lance, out, f"{out}: its files are Parquet"),
        Option("vectors", write, lance, out, f"{out}: its columns are arrays"),
        Option("maxFilesPerCommit", write, other_side="say maxFilesPerTrigger"),
        Option(
            "compactEvery", write, lance, out, f"{out}: OPTIMIZE of Spark's Delta and deltalake compact Delta tables"
        ),
        Option("overwriteSchema", write),
        Option("tableFormat", write, other_side=f"{out}: a table is read as what it is"),
        Option("replaceWhere", write, delta, "say filter for the rows to read"),
        Option("mergeSchema", write, delta, f"{out}: all rows have the columns of the table"),
        Option("txnAppId", write, delta),
        Option("txnVersion", write, delta),
        Option("userMetadata", write, delta),
        Option("partitionOverwriteMode", write, delta),
        Option("partitionColumns", write, delta),
    ]
    return {option.name.lower(): option for option in known}


_KNOWN = _options()
_ALIASES = {
    "versionasof": "version",
    "select": "columns",
    "where": "filter",
    "maxrecordsperfile": "maxrowsperfile",
    "readchangedata": "readchangefeed",
    "changefeed": "readchangefeed",
}
_OF_STREAMS = ("paths", "queryname", "checkpointlocation")
_OF_CATALOGS = ("owner", "provider", "external", "location")

CATALOG = (
    "tables of a catalog (CREATE TABLE, saveAsTable, writeTo) are not there, since Spark tells a Python data source "
    'neither their path nor their options: write with df.write.format("esker").save("..."), and for SQL make a view: '
    "CREATE TEMPORARY VIEW ... USING esker OPTIONS (path '...')"
)
"""The error message for tables of a catalog."""


class Given:
    """The given options, by their names in lower case without underscores.

    Args:
        options: The options from Spark.
        side: "read", "write" or "read stream"; None accepts options of all of them.

    Raises:
        InvalidArgumentError: A name is unknown, or an option has no effect on this side.

    Example:
        >>> from esker.spark.option_names import Given
        >>> given = Given({"maxrecordsperfile": "10"}, "write")
        >>> given.get("maxRowsPerFile"), given.shown("maxRowsPerFile")
        ('10', 'maxRowsPerFile')
    """

    def __init__(self, options: Mapping[str, str], side: str | None = None) -> None:
        self._values: dict[str, str] = {}
        self._spelled: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        """Properties of Delta tables, by their names in lower case."""
        for name, value in options.items():
            plain = name.lower().replace("_", "")
            if plain.startswith(_PROPERTY):
                self.properties[name.lower()] = value
                continue
            if plain in _OF_CATALOGS:
                raise InvalidArgumentError(CATALOG)
            if plain in _OF_STREAMS:
                continue
            known = _ALIASES.get(plain, plain)
            if known not in _KNOWN:
                raise InvalidArgumentError(_unknown(name, plain, side))
            option = _KNOWN[known]
            # Spark has lowered `maxRowsPerFile`; a name with underscores is shown as it was typed.
            self._spelled[known] = name.lower() if "_" in name else option.name
            if side is not None and side not in option.sides:
                doing = {"read": "reads", "write": "writes", "read stream": "streams that are read"}
                instead = option.in_stream if side == "read stream" and option.in_stream else option.other_side
                # Spark does not say whether it loads a DataFrame or a stream: an option of writes is for neither.
                found = "read" if option.sides == ("write",) else side
                raise InvalidArgumentError(
                    f"option {self._spelled[known]} is for {doing[option.sides[0]]}, found it on a {found}: {instead}"
                )
            self._values[known] = value

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def get(self, name: str) -> str | None:
        """The value of an option, None if it was not given."""
        return self._values.get(name.lower())

    def shown(self, name: str) -> str:
        """The option's name as the user spelled it, as far as that is known."""
        return self._spelled.get(name.lower(), _KNOWN[name.lower()].name)

    def elsewhere(self, table_format: str) -> tuple[tuple[str, str], ...]:
        """The options that have no effect on tables of a format, each with what to do instead."""
        found = [
            (self.shown(name), _KNOWN[name].other_format)
            for name in self._values
            if table_format not in _KNOWN[name].formats
        ]
        if table_format == "lance":
            found += [(name, "leave it out") for name in self.properties]
        return tuple(found)

    def integer(self, name: str, least: int) -> int | None:
        """The value of an option as a whole number.

        Raises:
            InvalidArgumentError: It is not a whole number, less than `least`, or not one of 64 bits.
        """
        value = self.get(name)
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number > _MOST:
            # A log with such a number can be read by nobody.
            raise InvalidArgumentError(
                f"option {self.shown(name)}: expected a whole number up to {_MOST}, found {value!r}"
            )
        if number < least:
            raise InvalidArgumentError(
                f"option {self.shown(name)}: expected a whole number from {least}, found {value!r}"
            )
        return number

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """The value of an option among some, the first if it was not given.

        Raises:
            InvalidArgumentError: It is none of them.
        """
        value = self.get(name)
        chosen = choices[0] if value is None else value.lower()
        if chosen not in choices:
            raise InvalidArgumentError(
                f"option {self.shown(name)}: expected one of {', '.join(choices)}, found {value!r}"
            )
        return chosen

    def zone(self, name: str) -> str | None:
        """The value of an option as a time zone, as Arrow spells it.

        Raises:
            InvalidArgumentError: There is no such zone.
        """
        value = self.get(name)
        try:
            return None if value is None else zone_name(value)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"option {self.shown(name)}: {error}") from None

    def switch(self, name: str) -> bool:
        """The value of an option that is true or false, false if it was not given."""
        return self.choice(name, ("false", "true")) == "true"


_OF_DELTALAKE = {
    "schemamode": "mergeSchema=true or overwriteSchema=true",
    "partitionby": "partitionColumns",
    "predicate": "replaceWhere",
    "targetfilesize": "maxBytesPerFile",
    "ignorechanges": "skipChangeCommits=true, or readChangeFeed=true for what an update has changed",
}
# Options that only `esker.spark.read` and `esker.spark.write` set.
_INTERNAL = ("savemode", "output")


def _unknown(name: str, plain: str, side: str | None) -> str:
    if plain in _OF_DELTALAKE:
        return f"unknown option {name!r}, did you mean {_OF_DELTALAKE[plain]}?"
    told = [known for known in _KNOWN if known not in _INTERNAL]
    names = [known for known in told if side is None or side in _KNOWN[known].sides] + list(_ALIASES)
    near = difflib.get_close_matches(plain, names, 1) or difflib.get_close_matches(plain, told, 1)
    if near:
        return f"unknown option {name!r}, did you mean {_KNOWN[_ALIASES.get(near[0], near[0])].name}?"
    shown = sorted(_KNOWN[known].name for known in told if side is None or side in _KNOWN[known].sides)
    return f"unknown option {name!r}, expected one of {', '.join(shown)}"


_SCHEME = re.compile(r"^(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]+):(?P<slashes>/*)(?P<rest>.*)$", re.DOTALL)
_OTHER_SCHEMES = ("hdfs", "viewfs", "dbfs", "wasb", "wasbs", "oss", "http", "https", "s3n", "gcs", "memory")


def checked_path(path: str) -> str:
    """Normalises a path as Hadoop's users write it: `file:/x` becomes `file:///x`.

    Args:
        path: A path or a URI. A URI with one slash, such as `s3:/x`, would otherwise be taken for a local folder.

    Raises:
        InvalidArgumentError: A scheme other than `file:` is not followed by two slashes.

    Example:
        >>> from esker.spark.option_names import checked_path
        >>> checked_path("file:/data/t.lance")
        'file:///data/t.lance'
    """
    match = _SCHEME.match(path)
    if match is None or len(match["slashes"]) >= 2:
        return path
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == "file" and match["slashes"]:
        return f"file:///{rest}"
    if scheme == "file":
        raise InvalidArgumentError(f"expected file:///... with the whole path, found {path!r}")
    if scheme == "dbfs":
        raise InvalidArgumentError(
            f"expected a path of this machine or a store's URI, found {path!r}: say /dbfs/{rest}"
        )
    if match["slashes"] or scheme in (*OBJECT_STORES, *_OTHER_SCHEMES):
        raise InvalidArgumentError(f"expected two slashes after a scheme ({scheme}://{rest}), found {path!r}")
    return path
