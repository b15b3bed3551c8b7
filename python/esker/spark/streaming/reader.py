"""The source of `readStream`: the rows that versions of a table add, or what happened to rows, as a stream.

```
initialOffset   all rows of the newest version, or a version to start at
latestOffset    start -> as many versions and files as the limits allow -> end
partitions      start, end -> slices of fragments, or files: each with all that a task needs
read            a task reads its slice or file
```

An offset holds the identity of a version's entry: a table that was replaced or reset under the stream is an error.
Where the entry was cleaned up, only what the running query has seen of that version can tell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from esker.cached import cached_property
from esker.exceptions import CommitConflictError, EskerError, InvalidArgumentError, NotFoundError
from esker.spark.packing import packed, target_bytes
from esker.spark.streaming.history import Piece, TableHistory, VersionPieces, cleaned_up, forgotten, replaced
from esker.spark.streaming.options import Limits, StreamReadOptions
from esker.spark.streaming.position import Position
from esker.spark.time_travel import first_version_since
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_task import MadeInWorkers
from esker.store.staging import has_moved, refresh

try:
    # Spark has had them since 4.2.
    from pyspark.sql.streaming import datasource as admission
except ImportError:
    admission = None  # type: ignore[assignment, unused-ignore]

__all__ = ["EskerStreamReader", "ReadablePartition", "RefusedStreamReader"]

_AvailableNow: Any = getattr(admission, "SupportsTriggerAvailableNow", object)


class ReadablePartition(Protocol):
    """A partition that holds all that a task needs to read it."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows."""


class RefusedStreamReader(DataSourceStreamReader):
    """Says what is wrong with a stream once Spark asks where to start: what is raised before, Spark's own error hides.

    Args:
        error: What is wrong.
    """

    def __init__(self, error: EskerError) -> None:
        self._error = error

    @in_words_of_spark()
    def initialOffset(self) -> dict[str, Any]:
        """Raises the error."""
        raise self._error

    @in_words_of_spark()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Raises the error."""
        raise self._error

    @in_words_of_spark()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Raises the error."""
        raise self._error

    @in_words_of_spark()
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the error."""
        raise self._error


class EskerStreamReader(MadeInWorkers, DataSourceStreamReader, _AvailableNow):  # type: ignore[misc, unused-ignore]
    """Reads a table as a stream.

    Args:
        open_history: Opens the table: once, for the driver alone.
        options: Where it starts, what it passes over, and how much a batch reads.
        names: The names of the columns, as the query spells them.
    """

    def __init__(
        self, open_history: Callable[[], TableHistory], options: StreamReadOptions, names: Sequence[str]
    ) -> None:
        self._open = open_history
        self._options = options
        self._names = list(names)
        self._target: int | None = None
        self._last: Position | None = None
        self._continued: set[Position] = set()

    def __getstate__(self) -> dict[str, object]:
        # Partitions hold all that a task needs.
        return {"_options": self._options, "_names": self._names}

    @cached_property
    def _history(self) -> TableHistory:
        return self._open()

    @in_words_of_spark()
    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts."""
        self._look_again()
        self._last = self._start()
        return self._last.encode()

    @in_words_of_spark()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """How far the next batch reads.

        Args:
            start: Where it starts; older releases of Spark do not say it.
            limit: Spark's limit; `ReadAllAvailable` lifts those of the options.
        """
        self._look_again()
        position = self._last if start is None else Position.decode(start)
        if position is None:
            return self._at(self._newest()).encode()
        self._check(position)
        unlimited = limit is not None and type(limit).__name__ == "ReadAllAvailable"
        limits = Limits() if unlimited else self._options.limits
        self._last = self._advanced(position, limits)
        self._history.keep(self._last.version)
        return self._last.encode()

    def getDefaultReadLimit(self) -> Any:
        """The limits of the options, in one of Spark's words: `latestOffset` goes by all of them."""
        limits = self._options.limits
        if admission is None or limits.is_none:
            return None if admission is None else admission.ReadAllAvailable()
        if limits.rows is not None:
            return admission.ReadMaxRows(limits.rows)
        if limits.size is not None:
            return admission.ReadMaxBytes(limits.size)
        return admission.ReadMaxFiles(limits.files if limits.files is not None else 2**31 - 1)

    @in_words_of_spark()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The newest version, for the progress of the query."""
        try:
            self._look_again()
            return self._at(self._history.newest()).encode()
        except (NotFoundError, OSError):
            return None

    @in_words_of_spark()
    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest version: what is committed later is for the next run."""
        self._look_again()
        self._target = self._history.newest()

    @in_words_of_spark()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """What the tasks of a batch read."""
        first, last = Position.decode(start), Position.decode(end)
        self._look_again()
        self._check(first, last)
        self._check(last)
        self._last = last
        if last.version < first.version:
            raise self._replaced(first, f"an end at version {last.version}")
        found: list[_Part] = []
        stretches = list(first.stretches(last))
        for stretch in [s for s in stretches if s.is_snapshot]:
            found += _cut(self._history.snapshot(stretch.version), stretch.first, stretch.last)
        ranges = [s for s in stretches if not s.is_snapshot]
        if ranges:
            pieces = self._history.changes(ranges[0].version, ranges[-1].version)
            for stretch, changed in zip(ranges, pieces, strict=True):
                found += _cut(changed, stretch.first, stretch.last)
        # What was planned is of this table only if it is still there: another one may have taken its place meanwhile.
        self._check(last)
        read = self._options.read
        most = target_bytes([part.size for part in found], max_bytes=read.bytes_per_partition)
        groups = packed(found, lambda part: (part.rows, part.size), max_rows=read.rows_per_partition, max_bytes=most)
        return [_together([part.partition for part in group]) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        with in_words_of_spark():
            if hasattr(partition, "batches"):
                for batch in partition.batches():
                    yield batch if batch.schema.names == self._names else batch.rename_columns(self._names)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: the checkpoint holds all that is to be known."""

    def stop(self) -> None:
        """Does nothing: nothing is held open."""

    def _look_again(self) -> None:
        """Goes to the last commit of a branch. A table that is another one there by now is opened anew."""
        before = self._history
        refresh(before.store)
        if has_moved(before.store):
            again = self._open()
            again.remember(before)
            # Only now: where the table cannot be opened, the next look knows what this one did.
            self._history = again

    def _newest(self) -> int:
        newest = self._history.newest()
        return newest if self._target is None else min(newest, self._target)

    def _at(self, version: int) -> Position:
        return Position(self._history.kind, version, self._history.entry(version))

    def _start(self) -> Position:
        history, options = self._history, self._options
        newest = self._newest()
        if options.from_latest:
            return self._at(newest)
        version = options.starting_version
        if options.starting_timestamp is not None:
            zone = options.read.timezone
            version = first_version_since(history.times(), newest, options.starting_timestamp, zone)
            if not (history.begins(version) or self._has(version - 1)):
                raise NotFoundError(
                    f"option startingTimestamp: version {version} is the first one since {options.starting_timestamp} "
                    f"of {history.uri} that is there, and nobody can tell whether those that were cleaned up before it "
                    f"are since then, too; startingVersion={version} reads what is there, no starting point all rows",
                    uri=history.uri,
                    version=version,
                )
        if version is None:
            return Position(history.kind, newest, history.entry(newest), 0, True)
        oldest = max(history.oldest(), history.first_version)
        if not oldest <= version <= newest + 1:
            raise InvalidArgumentError(
                f"option startingVersion: expected a version from {oldest}, the oldest that is there, to {newest + 1}, "
                f"the next one, found {version}",
                version=version,
            )
        try:
            return self._at(version - 1)
        except NotFoundError:
            return Position(history.kind, version - 1, "")

    def _check(self, position: Position, planned: Position | None = None) -> None:
        """Checks that the table is the one that the stream has read.

        Args:
            position: How far it has read.
            planned: The end of a batch from there: it was found in the table that had the position.
        """
        history = self._history
        if position.table != history.kind:
            raise self._replaced(position, f"a {history.kind.capitalize()} table")
        if not position.entry:
            return
        newest = history.newest()
        if newest < position.version:
            raise self._replaced(position, f"version {newest} as its newest one")
        try:
            found = history.entry(position.version)
        except NotFoundError:
            if position.index >= 0:
                raise cleaned_up(position.version, history.uri) from None
            if planned is not None and planned.version > position.version:
                return
            if position not in self._continued and not history.continues(position.version, position.entry):
                raise forgotten(position.version, history.uri, has_next=self._has(position.version + 1)) from None
            self._continued.add(position)
            return
        if found != position.entry:
            raise self._replaced(position, "another one of that number")

    def _has(self, version: int) -> bool:
        try:
            self._history.entry(version)
        except NotFoundError:
            return False
        return True

    def _replaced(self, position: Position, found: str) -> CommitConflictError:
        return replaced(self._history.uri, position.version, position.entry, found)

    def _advanced(self, start: Position, limits: Limits) -> Position:
        newest = self._newest()
        if limits.is_none:
            done = start.index < 0 and newest <= start.version
            return start if done else self._at(max(newest, start.version))
        budget = _Budget(limits)
        position = start
        if start.index >= 0:
            version = start.version
            if start.is_snapshot:
                pieces = self._history.snapshot(version)
            else:
                pieces = next(self._history.changes(version, version))
            position = self._taken(start, pieces, budget, start.is_snapshot)
        if position.index < 0 and not budget.is_spent:
            for pieces in self._until_refused(position.version + 1, newest, position != start):
                following = Position(start.table, pieces.version, self._history.entry(pieces.version), 0)
                taken = self._taken(following, pieces, budget, False)
                if taken.index == 0:
                    break
                position = taken
                if position.index > 0 or budget.is_spent:
                    break
        return position

    def _until_refused(self, first: int, last: int, may_stop: bool) -> Iterator[VersionPieces]:
        """The changes of versions. What comes before one that cannot be read makes a batch of its own."""
        changes = self._history.changes(first, last)
        while True:
            try:
                found = next(changes, None)
            except EskerError:
                if may_stop:
                    return
                raise
            if found is None:
                return
            yield found
            may_stop = True

    def _taken(self, start: Position, found: VersionPieces, budget: _Budget, is_snapshot: bool) -> Position:
        """How far the budget goes within a version, from a position in it."""
        index = start.index
        if not budget.takes_version():
            return start
        if not found.divides:
            whole = budget.takes(
                sum(piece.rows for piece in found.pieces),
                sum(piece.size for piece in found.pieces),
                len(found.pieces),
            )
            return Position(start.table, start.version, start.entry) if whole else start
        at = 0
        for piece in found.pieces:
            end = at + piece.length
            if end > index:
                units = budget.units(piece, max(index - at, 0))
                index = max(index, at) + units
                if index < end:
                    return Position(start.table, start.version, start.entry, index, is_snapshot)
            at = end
        return Position(start.table, start.version, start.entry)


@dataclass
class _Budget:
    """What a batch may still read. The first file, or the first version that does not divide, is always taken."""

    limits: Limits
    rows: int = 0
    size: int = 0
    files: int = 0
    versions: int = 0

    @property
    def is_spent(self) -> bool:
        limits = self.limits
        pairs = (
            (limits.rows, self.rows),
            (limits.size, self.size),
            (limits.files, self.files),
            (limits.versions, self.versions),
        )
        return any(limit is not None and used >= limit for limit, used in pairs)

    def takes_version(self) -> bool:
        if self.limits.versions is not None and self.versions >= self.limits.versions:
            return False
        self.versions += 1
        return True

    def takes(self, rows: int, size: int, files: int) -> bool:
        """Takes all of it or nothing; all of it if nothing was taken before."""
        limits = self.limits
        fits = all(
            limit is None or used + more <= limit
            for limit, used, more in (
                (limits.rows, self.rows, rows),
                (limits.size, self.size, size),
                (limits.files, self.files, files),
            )
        )
        if not fits and self.files > 0:
            return False
        self.rows, self.size, self.files = self.rows + rows, self.size + size, self.files + files
        return True

    def units(self, piece: Piece, first: int) -> int:
        """How many units of a piece it takes, from `first` on."""
        left = piece.length - first
        if left <= 0:
            return 0
        limits = self.limits
        if limits.files is not None and self.files >= limits.files:
            return 0
        taken = left
        if limits.rows is not None:
            taken = piece.units_of(first, limits.rows - self.rows)
        size = -(-piece.size * left // piece.length)
        if limits.size is not None and size:
            share = (limits.size - self.size) / size
            taken = min(taken, left if share >= 1.0 else int(left * max(share, 0.0)))
        if taken == 0 and self.files == 0:
            taken = 1
        if taken:
            if limits.rows is not None:
                self.rows += piece.rows_between(first, first + taken)
            self.size += -(-size * taken // left)
            self.files += 1
        return taken


@dataclass(frozen=True)
class _Part:
    """What a task may read, with about how many rows and bytes that are."""

    partition: InputPartition
    rows: int
    size: int


@dataclass(frozen=True)
class _Neighbours(InputPartition):  # type: ignore[misc, unused-ignore]
    """Small partitions that one task reads, one after the other."""

    parts: tuple[ReadablePartition, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of all of them."""
        for part in self.parts:
            yield from part.batches()


def _together(parts: Sequence[Any]) -> InputPartition:
    made: InputPartition = parts[0] if len(parts) == 1 else _Neighbours(tuple(parts))
    return made


def _cut(found: VersionPieces, first: int, last: int | None) -> Iterator[_Part]:
    at = 0
    for piece in found.pieces:
        low, high = max(first - at, 0), piece.length if last is None else min(last - at, piece.length)
        if low < high:
            parts = piece.partitions(low, high)
            share = (high - low) / piece.length
            # What was cut is as large as a task may be.
            rows = int(piece.rows * share) if len(parts) == 1 else sys.maxsize
            for part in parts:
                yield _Part(part, rows, int(piece.size * share) // len(parts))
        at += piece.length
