"""The files that an overwrite removes from a table, and the rows of them that survive.

An overwrite with a predicate (Spark's `replaceWhere`) removes files with matching rows, and rewrites their rows that do
not match. A dynamic partition overwrite, as in Spark, removes the files of the partitions that have new rows.

Spec: "Add File and Remove File", "Deletion Vectors".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import FileSelection, Snapshot
from ...cached import cached_property
from ..definition.partition_text import partition_text
from ..definition.table_state import TableState
from ..exceptions import AppendOnlyError
from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from ..read.added_file import may_match
from ..read.conform import physical_name
from ..read.filesystem import FileLocator
from ..read.scan import TableFile, TableScan
from .plan import DeltaWritePlan
from .row_predicate import RowPredicate


class Replacement:
    """The files of a version that an overwrite removes or rewrites.

    Args:
        target: The table, in that version.
        predicate: Which rows are removed; all if not given.

    Example:
        `removes = Replacement(target, request.row_predicate(schema)).removes()`
    """

    def __init__(self, target: WriteTarget, predicate: RowPredicate | None = None) -> None:
        store, snapshot = target.store, target.base
        files = FileLocator(store, snapshot.root, dict(target.storage_options or {}))
        self._snapshot = snapshot
        self._where = predicate
        predicates = self._where.predicates if self._where is not None else None
        self._selection = snapshot.select(store, predicates)
        self._scan = TableScan(store, snapshot, files, self._selection)
        # A predicate without columns, such as `true`, has a value for a partition, but none where there are none.
        partition_by = set(snapshot.partition_columns)
        self._by_partition = self._where is not None and bool(partition_by) and set(self._where.columns) <= partition_by
        self._taken: dict[str, dict[str, Any]] = {}
        self._partial: list[TableFile] = []
        self._whole: list[TableFile] = []

    def stage(self) -> None:
        """Selects the files to remove, and reads those that the predicate may match in part."""
        removed = remove_actions(self._snapshot, self._selection)
        for file, action in zip(self._scan.table_files(), removed, strict=True):
            if self._where is None or self._by_partition:
                matching, whole = self._matches(file), True
            else:
                matching, whole = self._count(file)
            if not matching:
                continue
            self._taken[file.path] = action
            (self._whole if whole else self._partial).append(file)

    def told(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Takes in the files of new rows, once they are written."""

    @property
    def rewrites(self) -> bool:
        """Whether removed files have surviving rows: adds and removes alone do not show the changed rows then."""
        return bool(self._partial)

    def removes(self) -> list[dict[str, Any]]:
        """The `remove` actions."""
        return list(self._taken.values())

    def survivors(self) -> Iterator[pa.RecordBatch]:
        """The surviving rows of files that the predicate matches in part."""
        names = self._scan.schema.names
        for file in self._partial:
            for batch in self._scan.read(file, names):
                kept = batch.filter(pc.invert(self._mask(batch)))
                if kept.num_rows:
                    yield kept

    def removed_rows(self) -> Iterator[pa.RecordBatch]:
        """The removed rows."""
        names = self._scan.schema.names
        for file in self._whole:
            yield from self._scan.read(file, names)
        for file in self._partial:
            for batch in self._scan.read(file, names):
                taken = batch.filter(self._mask(batch))
                if taken.num_rows:
                    yield taken

    def read_set(self) -> ReadSet:
        """The files and rows that a concurrent commit must not have changed."""
        if self._where is None:
            return ReadSet(whole_table=True)
        return ReadSet(files=frozenset(self._taken), matches=self._would_read)

    def _would_read(self, add: Mapping[str, Any]) -> bool:
        """Whether an added file may have matching rows."""
        if self._where is None:
            return True
        if not self._by_partition:
            return self._by_statistics(add)
        columns = list(self._parsed_partition(add).values())
        names = self._snapshot.partition_columns
        return bool(pc.any(self._mask(pa.record_batch(columns, names=names))).as_py())

    def _parsed_partition(self, add: Mapping[str, Any]) -> dict[str, pa.Array]:
        """The partition values of a file, by their names in the log, in the order of the partition columns."""
        given = add.get("partitionValues") or {}
        annotated = pa.schema(self._snapshot)
        found = {}
        for name in self._snapshot.partition_columns:
            physical = physical_name(annotated.field(name), self._mode)
            found[physical] = pa.array(self._snapshot.parse_partition_values(name, [given.get(physical)]))
        return found

    @cached_property
    def _by_statistics(self) -> Callable[[Mapping[str, Any]], bool]:
        partition = (pa.schema(self._snapshot).field(name).type for name in self._snapshot.partition_columns)
        if self._where is None or any(map(pa.types.is_timestamp, partition)):
            # Texts of partition values without a zone may be of any: nothing is ruled out by them.
            return lambda _: True
        return may_match(TableState.of(self._snapshot).actions_after(None), self._where.predicates)

    @property
    def _mode(self) -> Any:
        return self._snapshot.column_mapping

    def _matches(self, file: TableFile) -> bool:
        if self._where is None:
            return True
        batch = pa.record_batch([pa.repeat(value, 1) for value in file.partition.values()], names=[*file.partition])
        return bool(pc.any(self._mask(batch)).as_py())

    def _count(self, file: TableFile) -> tuple[bool, bool]:
        """Whether some rows of a file match, and whether all do."""
        where = self._where
        some, every = False, True
        for batch in self._scan.read(file, (where.columns if where is not None else None) or self._scan.schema.names):
            mask = self._mask(batch)
            some |= bool(pc.any(mask).as_py())
            every &= bool(pc.all(mask).as_py())
            if some and not every:
                break
        return some, every

    def _mask(self, batch: pa.RecordBatch) -> pa.Array:
        return self._where.mask(batch) if self._where is not None else pa.repeat(True, batch.num_rows)


class PartitionReplacement(Replacement):
    """The files of the partitions that have new rows: no others are removed, and none is rewritten.

    Args:
        target: The table, in the version whose files are removed.

    Example:
        `replacement = PartitionReplacement(target)`, then `replacement.told(adds)`
    """

    def __init__(self, target: WriteTarget) -> None:
        super().__init__(target)
        self._partitions: set[tuple[tuple[str, str | None], ...]] = set()

    def stage(self) -> None:
        """Nothing is read: which partitions there are is known once the new rows are written."""

    def told(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Selects the files to remove."""
        self._partitions = {_key(add) for add in adds}
        removed = remove_actions(self._snapshot, self._selection)
        self._taken = {action["path"]: action for action in removed if _key(action) in self._partitions}

    def removed_rows(self) -> Iterator[pa.RecordBatch]:
        """None that no removed file shows."""
        return iter(())

    def read_set(self) -> ReadSet:
        """The files and partitions that a concurrent commit must not have changed."""
        return ReadSet(files=frozenset(self._taken), matches=lambda add: _key(self._respelled(add)) in self._partitions)

    def _respelled(self, add: Mapping[str, Any]) -> dict[str, Any]:
        """A file of another writer, with its partition values as they are spelled here: `1` is `1.0`."""
        values = self._parsed_partition(add)
        return {"partitionValues": {name: partition_text(value[0]) for name, value in values.items()}}


def replaced_files(plan: DeltaWritePlan, target: WriteTarget) -> Replacement | None:
    """The files that a write removes; None if it removes none.

    Raises:
        InvalidArgumentError: The table is append-only.

    Example:
        `replacement = replaced_files(plan, target)`
    """
    request = plan.request
    if request.mode != "overwrite" or target.snapshot is None:
        return None
    if plan.after.is_append_only and target.snapshot.num_files:
        raise AppendOnlyError(plan.uri, "an overwrite would remove rows")
    if request.replaces_partitions:
        return PartitionReplacement(target)
    found = Replacement(target, request.row_predicate(TableScan.schema_of(target.base)))
    found.stage()
    return found


def writes_changes(plan: DeltaWritePlan, replacement: Replacement | None) -> bool:
    """Whether a write needs change data files: the table keeps a feed, and data files do not show what changed."""
    return replacement is not None and replacement.rewrites and plan.after.keeps_change_feed


def remove_actions(snapshot: Snapshot, selection: FileSelection) -> list[dict[str, Any]]:
    """The `remove` actions for files of a version, in their order.

    Example:
        `remove_actions(snapshot, snapshot.select(store))`
    """
    batch = pa.record_batch(selection.describe())
    now = time.time_ns() // 1_000_000
    annotated = pa.schema(snapshot)
    partition = batch.column("partition")
    values: dict[str, pa.Array] = {}
    extended = True
    for i in range(partition.type.num_fields):
        field = annotated.field(partition.type.field(i).name)
        # The log's spelling of binary partition values cannot be restored for sure: the extended fields are left out.
        extended &= not pa.types.is_binary(field.type)
        values[physical_name(field, snapshot.column_mapping)] = partition.field(i)  # type: ignore[arg-type]
    actions = []
    rows = zip(
        # The reference compares paths as they are spelled in the log.
        selection.log_paths(),
        batch.column("size_bytes").to_pylist(),
        batch.column("deletion_vector").to_pylist(),
        strict=True,
    )
    for row, (path, size, vector) in enumerate(rows):
        action: dict[str, Any] = {"path": path, "deletionTimestamp": now, "dataChange": True}
        if extended:
            action["extendedFileMetadata"] = True
            action["partitionValues"] = {name: partition_text(column[row]) for name, column in values.items()}
            action["size"] = size
        if vector is not None:
            action["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
        actions.append(action)
    return actions


def _key(action: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """The partition of a file."""
    values = action.get("partitionValues") or {}
    return tuple(sorted((name, value or None) for name, value in values.items()))
