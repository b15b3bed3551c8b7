"""The version that a change of rows is computed from: its state, its files, and which rows a predicate means."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import decode_deletion_vector, encode_deletion_vector
from ..definition.protocol import features_of
from ..definition.table_state import TableState
from ..exceptions import AppendOnlyError
from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from ..read.added_file import may_match as added_file_may_match
from ..read.ahead import read_ahead, threads_for
from ..read.filesystem import FileLocator
from ..read.filters import BoundFilter
from ..read.repeatable import check_repeatable
from ..read.scan import TableFile, TableScan
from ..read.selection import bind_to
from ..write.replacement import remove_actions
from .budget import Budget


@dataclass(frozen=True)
class MatchedFile:
    """A file of which some rows are meant.

    Args:
        file: The file.
        remove: The action that removes it.
        modification_time: When it was written, in milliseconds since the epoch.
        statistics: Its statistics in the log, as JSON.
        is_whole: Whether all of its rows are meant.
        encoded: The numbers of the rows that are meant, as the bytes of a deletion vector; None if they are not known:
            the predicate tells.
        matched: How many rows are meant; None if that is not known.
        held: How many rows it holds, deleted ones among them; None if it was not asked.
        values: What was read already of the rows that are meant, in their order: the columns that tell which ones they
            are; None if that was too much to keep.
    """

    file: TableFile
    remove: dict[str, Any]
    modification_time: int
    statistics: str | None
    is_whole: bool
    encoded: bytes | None = None
    matched: int | None = None
    held: int | None = None
    values: pa.Table | None = None

    def rows(self) -> pa.Array:
        """The numbers of the rows that are meant, ascending."""
        return pa.array(decode_deletion_vector(self.encoded or b""))


class ChangedTable:
    """One version of a table, whose rows are about to change.

    Args:
        target: The table, in that version.
        predicate: Which rows are meant, as SQL; all if not given.
        bound: In its place: a filter, bound to the version.
        removes_rows: Whether rows may be removed from it.
        budget: What the change may take.

    Raises:
        InvalidArgumentError: The table is append-only; the predicate does not parse, names no column, or is of chance.
        UnsupportedError: The table asks its writers for what this release does not have.

    Example:
        `ChangedTable(target, "day = '2024-01-01'").matched()`
    """

    def __init__(
        self,
        target: WriteTarget,
        predicate: str | None,
        *,
        bound: BoundFilter | None = None,
        removes_rows: bool = True,
        budget: Budget | None = None,
    ) -> None:
        if predicate is not None:
            check_repeatable(predicate)
        self.target = target
        self.budget = budget or Budget()
        self.snapshot = target.base
        self.state = TableState.of(self.snapshot)
        self.state.check_writable()
        if self.state.is_append_only and removes_rows:
            raise AppendOnlyError(target.uri, "no row of it may be changed or removed")
        self.where = bound or bind_to(self.snapshot, predicate, target.session_timezone)
        self._selection = self.snapshot.select(target.store, self.where.predicates if self.where is not None else None)
        self._kept = _Allowance(self.budget.ahead // 4)
        files = FileLocator(target.store, self.snapshot.root, dict(target.storage_options or {}))
        self.scan = TableScan(target.store, self.snapshot, files, self._selection)

    @property
    def names(self) -> list[str]:
        """The table's columns."""
        return list(self.scan.schema.names)

    @property
    def writes_vectors(self) -> bool:
        """Whether rows are removed by deletion vectors rather than by new files."""
        is_on = self.state.configuration.get("delta.enableDeletionVectors", "").lower() == "true"
        return is_on and "deletionVectors" in features_of(self.state.protocol)

    def candidates(self, *, has_statistics: bool = False) -> list[MatchedFile]:
        """The files that may have rows that are meant, none of which was opened; with their statistics if asked for."""
        files = self.scan.table_files()
        removes = remove_actions(self.snapshot, self._selection)
        texts: list[str | None] = [None] * len(files)
        if self.writes_vectors or has_statistics:
            texts = self._selection.statistics_texts(self.target.store)
        parts = zip(files, removes, self._times(), texts, strict=True)
        return [MatchedFile(*known, False) for known in parts]

    def matched(self, *, finds_whole: bool, has_statistics: bool = False) -> list[MatchedFile]:
        """The files that have rows that are meant.

        Where the table has vectors, the rows are known, and the files' statistics; else some of them were seen.

        Args:
            finds_whole: Whether files are looked for of which all rows are meant.
            has_statistics: Whether the statistics of files are asked for where the table has no vectors, too.
        """
        found = self.candidates(has_statistics=has_statistics)
        if self.where is None or set(self.where.columns or [""]) <= set(self.snapshot.partition_columns):
            counts = self._live_by_statistics()
            mask = self._partitions_meant(self.where)
            parts = zip(found, counts, mask, strict=True)
            return [replace(file, is_whole=True, matched=count) for file, count, meant in parts if meant]
        with ThreadPoolExecutor(threads_for(self.target.store.uri), thread_name_prefix="esker-delta-match") as pool:
            try:
                look = self._match if self.writes_vectors else partial(self._look, finds_whole)
                return [file for file in pool.map(look, found) if file is not None]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _times(self) -> list[int]:
        times = pa.record_batch(self._selection.describe()).column("modification_time")
        found: list[int] = times.cast(pa.int64()).to_pylist()
        return found

    @property
    def asked(self) -> list[str]:
        """The columns that tell which rows are meant."""
        return (self.where.columns if self.where is not None else None) or self.names

    def _look(self, finds_whole: bool, found: MatchedFile) -> MatchedFile | None:
        """Looks for a row that is meant, and for one that is not."""
        file = found.file
        if next(self.scan.read(file, self.asked, self.where), None) is None:
            return None
        is_whole = finds_whole and all(pc.all(self.mask(batch)).as_py() for batch in self.scan.read(file, self.asked))
        return replace(found, is_whole=is_whole, matched=self.live(file) if is_whole else None)

    def live(self, file: TableFile) -> int:
        """How many rows a file has, deleted ones not counted."""
        return self.scan.count(file) - _gone(file)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Which rows of a batch are meant: null is no yes."""
        if self.where is None or self.where.sql is None:
            return pa.repeat(True, batch.num_rows)
        return pc.fill_null(pa.array(self.where.sql.evaluate(batch)).cast(pa.bool_()), False)

    def _match(self, found: MatchedFile) -> MatchedFile | None:
        file = found.file
        numbers: list[pa.Array] = []
        values: list[pa.RecordBatch] | None = []
        for batch in self.scan.read(file, self.asked, self.where, numbered=True):
            numbers.append(batch.column(-1))
            part = batch.select(self.asked)
            if values is not None and self._kept.take(part.nbytes):
                values.append(part)
            else:
                values = None
        matched = sum(map(len, numbers))
        if not matched:
            return None
        encoded, _ = encode_deletion_vector(numbers)
        held = self.scan.count(file)
        is_whole = matched == held - _gone(file)
        kept = pa.Table.from_batches(values) if values is not None and not is_whole else None
        return replace(found, is_whole=is_whole, encoded=encoded, matched=matched, held=held, values=kept)

    def rows_by_statistics(self) -> list[int | None]:
        """How many rows each file holds, deleted ones among them, None where the log does not say."""
        batch = pa.record_batch(self._selection.statistics(self.target.store, bounds=False)[1])
        found: list[int | None] = batch.column(0).to_pylist()
        return found

    def _live_by_statistics(self) -> list[int | None]:
        """How many rows each file has, None where the log does not say."""
        batch = pa.record_batch(self._selection.statistics(self.target.store, bounds=False)[1])
        gone = pa.record_batch(self._selection.describe()).column("deletion_vector").field("cardinality")
        found: list[int | None] = pc.subtract(batch.column(0), pc.fill_null(gone, 0)).to_pylist()
        return found

    def _partitions_meant(self, where: BoundFilter | None) -> list[bool]:
        """For each file whether its partition values are meant, by a predicate that reads no other columns."""
        described = pa.record_batch(self._selection.describe())
        if where is None or where.sql is None:
            return [True] * described.num_rows
        partition = described.column("partition")
        names = [partition.type.field(i).name for i in range(partition.type.num_fields)]
        # The paths give the batch its length where it reads no column at all.
        columns = [*(partition.field(i) for i in range(len(names))), described.column("path")]
        batch = pa.record_batch(columns, names=[*names, "esker.path"])
        found: list[bool] = self.mask(batch).to_pylist()
        return found

    def read_set(self, matched: list[MatchedFile]) -> ReadSet:
        """The files and rows that a concurrent commit must not have changed."""
        if self.where is None:
            return ReadSet(whole_table=True)
        partition = (self.scan.schema.field(name).type for name in self.snapshot.partition_columns)
        # Texts of partition values without a zone may be of any: nothing is ruled out by them.
        may_match = (lambda _: True) if any(map(pa.types.is_timestamp, partition)) else self._would_read()
        return ReadSet(files=frozenset(found.file.path for found in matched), matches=may_match)

    def _would_read(self) -> Callable[[Mapping[str, Any]], bool]:
        """Whether an added file may have rows that are meant, by its partition values and its statistics."""
        predicates = self.where.predicates if self.where is not None else []
        return added_file_may_match(self.state.actions_after(None), predicates)

    def rows(self, matched: Sequence[MatchedFile]) -> Generator[tuple[pa.RecordBatch, pa.Array | None], None, None]:
        """The rows of files, each batch with a mask of those that are meant; None if all are.

        Where the table has vectors only rows that are meant are read, files ahead, by threads: close it.
        """
        if not self.writes_vectors:
            return (part for found in matched for part in self.split(found, self.names))
        reads = [partial(self._meant, found) for found in matched]
        return read_ahead(reads, lambda part: int(part[0].nbytes), limit=self.budget.ahead)

    def _meant(self, found: MatchedFile) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        for batch in self.meant(found):
            yield batch, None

    def split(self, found: MatchedFile, columns: list[str]) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        """The rows of a file, each batch with a mask of those that are meant; None if all are.

        Args:
            found: The file.
            columns: Those to read: what the predicate reads is among them.
        """
        for batch in self.scan.read(found.file, columns):
            yield batch, None if found.is_whole else self.mask(batch)

    def meant(self, found: MatchedFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are meant."""
        if found.is_whole:
            yield from self.scan.read(found.file, self.names)
            return
        if found.values is None:
            yield from self.scan.read(found.file, self.names, only=found.rows())
            return
        first, others = 0, [name for name in self.names if name not in self.asked]
        if not others:
            yield from found.values.select(self.names).to_batches()
            return
        for batch in self.scan.read(found.file, others, only=found.rows()):
            yield self._joined(found.values.slice(first, batch.num_rows), batch)
            first += batch.num_rows

    def _joined(self, values: pa.Table, rest: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch with columns of theirs that were read before."""
        fields = {field.name: field for field in (*values.schema, *rest.schema)}
        columns = [
            rest.column(name) if name in rest.schema.names else values.column(name).combine_chunks()
            for name in self.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema([fields[name] for name in self.names]))


def _gone(file: TableFile) -> int:
    """How many rows of a file are deleted."""
    return int((file.deletion_vector or {}).get("cardinality") or 0)


class _Allowance:
    """Bytes that threads may take together.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = Lock()

    def take(self, size: int) -> bool:
        """Takes some of them, if they are there."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True
