"""The files that an overwrite takes out of a table, and the rows of them that stay.

An overwrite with a predicate (Spark's `replaceWhere`) takes out files of which all rows match; of files where only some
do, the others are written anew.

Spec: "Add File and Remove File", "Deletion Vectors".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import FileSelection, Snapshot
from ..._native.expr import Expression, Predicate
from ..._native.store import Store
from ...exceptions import InvalidArgumentError
from ..definition.partition_text import partition_text
from ..log.conflict import ReadSet
from ..read.conform import physical_name
from ..read.filesystem import DataFiles
from ..read.scan import DataFile, TableScan
from ..read.session_zone import in_zone


class RowPredicate:
    """Which rows an overwrite replaces: those that it takes out, and those that it brings.

    Args:
        sql: Its text.
        schema: The table's columns.
        session_timezone: What times without a zone mean in it; UTC if not given.

    Raises:
        InvalidArgumentError: It does not parse, or names no column.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.replacement import RowPredicate
        >>> RowPredicate("x > 1", pa.schema([("x", pa.int64())])).mask(pa.record_batch({"x": [1, 2, None]})).to_pylist()
        [False, True, False]
    """

    def __init__(self, sql: str, schema: pa.Schema, session_timezone: str | None = None) -> None:
        schema = in_zone(schema, session_timezone)
        predicate = Predicate.parse_sql(sql, schema)
        self.predicates = [predicate]
        self.columns = predicate.columns
        self._expression = Expression.parse_sql(sql, schema)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether each row is one of them: null is no yes."""
        found = pa.array(self._expression.evaluate(batch))
        return pc.fill_null(found.cast(pa.bool_()), False)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises if new rows are none of them.

        Raises:
            InvalidArgumentError: It names the first of them.
        """
        wrong = pc.invert(self.mask(batch))
        if pc.any(wrong).as_py():
            row = batch.filter(wrong).slice(0, 1).select(self.columns).to_pylist()
            raise InvalidArgumentError(
                f"expected rows for which the predicate is true, found {row[0]}; nothing was written"
            )


class Replacement:
    """What an overwrite does to the files of a version.

    Args:
        store: The table's.
        snapshot: The version.
        files: Where its data files are.
        predicate: Which rows are taken out, as SQL; all if not given.
        session_timezone: What times without a zone mean in it; UTC if not given.

    Example:
        `removes = Replacement(store, snapshot, files, "day = '2024-01-01'").removes()`
    """

    def __init__(
        self,
        store: Store,
        snapshot: Snapshot,
        files: DataFiles,
        predicate: str | None = None,
        session_timezone: str | None = None,
    ) -> None:
        self._snapshot = snapshot
        schema = TableScan.schema_of(snapshot)
        self._where = RowPredicate(predicate, schema, session_timezone) if predicate is not None else None
        predicates = self._where.predicates if self._where is not None else None
        self._selection = snapshot.select(store, predicates)
        self._scan = TableScan(store, snapshot, files, self._selection)
        self._by_partition = self._where is not None and set(self._where.columns) <= set(snapshot.partition_columns)
        self._taken: dict[str, dict[str, Any]] = {}
        self._partial: list[DataFile] = []
        self._whole: list[DataFile] = []

    def stage(self) -> None:
        """Finds out which files are taken out."""
        removed = remove_actions(self._snapshot, self._selection)
        for file, action in zip(self._scan.data_files(), removed, strict=True):
            if self._where is None or self._by_partition:
                matching, whole = self._matches(file), True
            else:
                matching, whole = self._count(file)
            if not matching:
                continue
            self._taken[file.path] = action
            (self._whole if whole else self._partial).append(file)

    @property
    def rewrites(self) -> bool:
        """Whether rows stay of files that are taken out: what changed cannot be told by the files alone then."""
        return bool(self._partial)

    def removes(self) -> list[dict[str, Any]]:
        """The `remove` actions."""
        return list(self._taken.values())

    def survivors(self) -> Iterator[pa.RecordBatch]:
        """The rows that stay, of the files of which others are taken out."""
        names = self._scan.schema.names
        for file in self._partial:
            for batch in self._scan.read(file, names):
                kept = batch.filter(pc.invert(self._mask(batch)))
                if kept.num_rows:
                    yield kept

    def removed_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows that are taken out."""
        names = self._scan.schema.names
        for file in self._whole:
            yield from self._scan.read(file, names)
        for file in self._partial:
            for batch in self._scan.read(file, names):
                taken = batch.filter(self._mask(batch))
                if taken.num_rows:
                    yield taken

    def read_set(self) -> ReadSet:
        """What a commit of others must not have changed."""
        if self._where is None:
            return ReadSet(whole_table=True)
        return ReadSet(files=frozenset(self._taken), matches=self._would_read)

    def _would_read(self, add: Mapping[str, Any]) -> bool:
        """Whether an added file may have matching rows."""
        if not self._by_partition or self._where is None:
            return True
        given = add.get("partitionValues") or {}
        columns, names = [], self._snapshot.partition_columns
        annotated = pa.schema(self._snapshot)
        for name in names:
            text = given.get(physical_name(annotated.field(name), self._mode))
            columns.append(pa.array(self._snapshot.parse_partition_values(name, [text])))
        return bool(pc.any(self._mask(pa.record_batch(columns, names=names))).as_py())

    @property
    def _mode(self) -> Any:
        return self._snapshot.column_mapping

    def _matches(self, file: DataFile) -> bool:
        if self._where is None:
            return True
        batch = pa.record_batch([pa.repeat(value, 1) for value in file.partition.values()], names=[*file.partition])
        return bool(pc.any(self._mask(batch)).as_py())

    def _count(self, file: DataFile) -> tuple[bool, bool]:
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
        # What the log has of them cannot be spelled again for sure: these fields may be left out.
        extended &= not pa.types.is_binary(field.type)
        values[physical_name(field, snapshot.column_mapping)] = partition.field(i)  # type: ignore[arg-type]
    actions = []
    rows = zip(
        # To the reference a file is what its path is spelled like.
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


def keeps_change_feed(configuration: Mapping[str, str]) -> bool:
    """Whether a table keeps a change data feed."""
    return configuration.get("delta.enableChangeDataFeed", "").lower() == "true"
