"""What a stream asks of a table, whichever its format: its versions, and the rows that each of them adds.

The rows of a version are counted in units that never change, so that an offset in a checkpoint means the same after a
restart: physical rows of its new fragments for a Lance table, its new files for a Delta table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import ArrayType, MapType, StructType

from esker._native.store import Store
from esker.exceptions import (
    CommitConflictError,
    InvalidArgumentError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedError,
)
from esker.spark.matching import check_read
from esker.spark.options import TableAddress

__all__ = [
    "READ_AGAIN",
    "START_ANEW",
    "Piece",
    "TableHistory",
    "VersionPieces",
    "change_refused",
    "check_columns",
    "cleaned_up",
    "forgotten",
    "may_be_cleaned_up",
    "not_opened",
    "replaced",
]

START_ANEW = (
    "start a new query: with another checkpointLocation, and startingVersion=latest for what is new from now on, or no "
    "starting point for all rows"
)
"""What to do if a stream cannot go on."""

READ_AGAIN = (
    "load the stream again (readStream...load()) and start the query from its checkpoint, which reads the columns as "
    f"they are now, or {START_ANEW}"
)
"""What to do if columns of the table are not those any more with which a stream was loaded."""

_PLAN_ANEW = "start the query again from its checkpoint, which plans the batch at the last commit of the branch"

ChangeKind = Literal["delete", "change"]


@dataclass(frozen=True)
class Piece(ABC):
    """Some rows of a version that lie together.

    Args:
        length: How many units it has.
        rows: How many rows, about.
        size: How many bytes of data files.
    """

    length: int
    rows: int
    size: int

    @abstractmethod
    def partitions(self, first: int, last: int) -> list[InputPartition]:
        """What tasks read of its units [first, last)."""

    def rows_between(self, first: int, last: int) -> int:
        """How many rows its units [first, last) have, about."""
        return -(-self.rows * (last - first) // max(self.length, 1))

    def units_of(self, first: int, rows: int) -> int:
        """How many units from `first` on have so many rows, about, or fewer if these are all."""
        left = self.length - first
        there = self.rows_between(first, self.length)
        if rows >= there:
            return left
        # A file that is taken whole may have more rows than were left: then not even files without any fit.
        return left * rows // there if rows > 0 else 0


@dataclass(frozen=True)
class VersionPieces:
    """The rows that a version adds, or those that it changes.

    Args:
        version: The version.
        pieces: Its rows, always in the same order.
        divides: Whether a batch may end within the version.
    """

    version: int
    pieces: list[Piece]
    divides: bool


class TableHistory(ABC):
    """The versions of one table."""

    kind: Literal["lance", "delta"]
    uri: str
    first_version: int
    """The number of the version that makes a table."""

    @property
    @abstractmethod
    def store(self) -> Store:
        """The table's store. On a branch of a repository it stands at a commit, until it is told to look again."""

    @abstractmethod
    def newest(self) -> int:
        """The newest version."""

    @abstractmethod
    def oldest(self) -> int:
        """The oldest version that is there."""

    @abstractmethod
    def entry(self, version: int) -> str:
        """What tells the entry of a version from that of another table: it never changes.

        Raises:
            NotFoundError: There is no such version.
        """

    def begins(self, version: int) -> bool:
        """Whether a version made the table: none was before it."""
        return version <= self.first_version

    def continues(self, version: int, entry: str) -> bool:
        """Whether a version was the one before those that are there, though its own entry was cleaned up since.

        It is known if what this history has seen of it is, file by file, what the next one was made from.

        Args:
            version: A version whose entry is gone.
            entry: What told it from that of another table.
        """
        return False

    @abstractmethod
    def keep(self, version: int) -> None:
        """Keeps what this history has seen of the version up to which the stream has read, whatever it sees later."""

    @abstractmethod
    def remember(self, before: TableHistory) -> None:
        """Takes over what the history that this one replaces has seen of versions, for `continues`."""

    @abstractmethod
    def times(self) -> Mapping[int, int]:
        """When the versions were committed, in milliseconds since the epoch."""

    @abstractmethod
    def snapshot(self, version: int) -> VersionPieces:
        """All rows of a version."""

    @abstractmethod
    def changes(self, first: int, last: int) -> Iterator[VersionPieces]:
        """What the versions `first` to `last` add, or change.

        Raises:
            NotFoundError: One of them was cleaned up.
            InvalidArgumentError: One of them deletes or changes rows, and no option says what that means.
        """


def cleaned_up(version: int, uri: str) -> NotFoundError:
    """The error for a version that was cleaned up before the stream has read it.

    Example:
        >>> from esker.spark.streaming.history import cleaned_up
        >>> cleaned_up(3, "t.lance").message[:50]
        'version 3 of t.lance was cleaned up before the str'
    """
    return NotFoundError(
        f"version {version} of {uri} was cleaned up before the stream has read all of it; {START_ANEW}",
        uri=uri,
        version=version,
    )


def not_opened(version: int, address: TableAddress, error: NotFoundError) -> NotFoundError:
    """The error for a version that a task does not find: it was cleaned up, or the commit has expired that it reads.

    Args:
        version: The version.
        address: The table, that of a branch at the commit at which the batch was planned.
        error: What opening it has raised.

    Example:
        >>> from esker.exceptions import NotFoundError
        >>> from esker.spark.options import TableAddress
        >>> from esker.spark.streaming.history import not_opened
        >>> not_opened(3, TableAddress("t.lance", {}), NotFoundError("no version 3")).message[:50]
        'version 3 of t.lance was cleaned up before the str'
    """
    from esker.repo.branch_store import expired

    told = expired(address.uri, error, address.storage_options)
    if told is None:
        return cleaned_up(version, address.uri)
    return NotFoundError(f"{told.message}; {_PLAN_ANEW}", uri=address.uri, version=version)


def forgotten(version: int, uri: str, *, has_next: bool) -> NotFoundError:
    """The error for a version that the stream has read wholly, and whose entry is gone since.

    Args:
        version: The version.
        uri: The table.
        has_next: Whether the version after it is there.

    Example:
        >>> from esker.spark.streaming.history import forgotten
        >>> "startingVersion=4 " in forgotten(3, "t.lance", has_next=True).message
        True
    """
    rest = (
        f"if it is the same, start a new query with startingVersion={version + 1} and another checkpointLocation, "
        f"which reads exactly the rest; if not, {START_ANEW}"
    )
    return NotFoundError(
        f"the stream has read {uri} up to version {version}, which is not there any more: it was cleaned up, or the "
        f"table was replaced, and nobody can tell whether this is the same table; {rest if has_next else START_ANEW}",
        uri=uri,
        version=version,
    )


def replaced(uri: str, version: int, entry: str, found: str) -> CommitConflictError:
    """The error for a table in whose place another one is by now.

    Args:
        uri: The table.
        version: The version that the stream has read, or reads.
        entry: What told it from that of another table.
        found: What is there instead.

    Example:
        >>> from esker.spark.streaming.history import replaced
        >>> replaced("t.lance", 3, "a", "version 1 as its newest one").message[:51]
        'the stream has read t.lance up to version 3 (a), fo'
    """
    return CommitConflictError(
        f"the stream has read {uri} up to version {version} ({entry}), found {found}: the table was replaced, reset or "
        f"restored from a copy under the stream; {START_ANEW}",
        uri=uri,
        version=version,
        retryable=False,
    )


@contextmanager
def may_be_cleaned_up(version: int, uri: str) -> Iterator[None]:
    """Files of a version that are gone are those of one that was cleaned up, or of a table whose files it shares.

    Args:
        version: The version that is read.
        uri: The table.

    Raises:
        NotFoundError: A file is gone.

    Example:
        >>> from esker.exceptions import NotFoundError
        >>> from esker.spark.streaming.history import may_be_cleaned_up
        >>> try:
        ...     with may_be_cleaned_up(3, "t.lance"):
        ...         raise NotFoundError("no file f")
        ... except NotFoundError as error:
        ...     print(error.message[:42])
        files of version 3 of t.lance are not ther
    """
    try:
        yield
    except NotFoundError as error:
        if START_ANEW in error.message or _PLAN_ANEW in error.message:
            raise
        raise NotFoundError(
            f"files of version {version} of {uri} are not there any more, before the stream has read them: it was "
            f"cleaned up, or they are those of a table of which this one is a clone, which is gone; {START_ANEW}",
            uri=uri,
            version=version,
            path=error.path,
        ) from error


def check_columns(version: int, uri: str, there: pa.Schema, wanted: StructType) -> None:
    """Checks that a version still has the columns that a stream reads.

    Args:
        version: The version.
        uri: The table.
        there: The version's columns.
        wanted: Columns of the table that the stream reads, as it was loaded.

    Raises:
        SchemaMismatchError: A column was dropped or renamed, or has a type of another kind.

    Example:
        >>> import pyarrow as pa
        >>> from pyspark.sql.types import LongType, StructType
        >>> from esker.spark.streaming.history import check_columns
        >>> check_columns(3, "t.lance", pa.schema({"id": pa.int32()}), StructType().add("id", LongType()))
    """
    missing = [name for name in wanted.names if name not in there.names]
    if missing:
        raise SchemaMismatchError(
            f"version {version} of {uri} has no column {missing[0]!r}, with which the stream was loaded; if it is not "
            f"there any more, {READ_AGAIN}; if it never was, leave it out of readStream.schema(...)",
            column=missing[0],
        )
    for field in wanted.fields:
        found = there.field(field.name).type
        if pa.types.is_nested(found) and isinstance(field.dataType, (ArrayType, MapType, StructType)):
            # Fields may have been added within; of what does not fit the cast tells.
            continue
        try:
            check_read(there, StructType([field]))
        except (SchemaMismatchError, UnsupportedError):
            raise SchemaMismatchError(
                f"column {field.name!r} of {uri} has the type {found} in version {version}, expected "
                f"{field.dataType.simpleString()}, as the stream was loaded; {READ_AGAIN}",
                column=field.name,
                expected=field.dataType.simpleString(),
                found=str(found),
            ) from None


def change_refused(version: int, uri: str, operation: str, kind: ChangeKind) -> InvalidArgumentError:
    """The error for a version that deletes or changes rows.

    Example:
        >>> from esker.spark.streaming.history import change_refused
        >>> "ignoreDeletes" in change_refused(3, "t.lance", "Delete", "delete").message
        True
    """
    said = "deletes rows" if kind == "delete" else "changes rows that the stream may have read"
    options = "skipChangeCommits=true passes over such versions"
    if kind == "delete":
        options = f"ignoreDeletes=true passes over versions that only delete, {options} and over those that change rows"
    return InvalidArgumentError(
        f"version {version} of {uri} ({operation}) {said}, expected versions that only add some: {options}, "
        "readChangeFeed=true reads what happened to each row",
        uri=uri,
        version=version,
    )
