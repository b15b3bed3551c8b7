"""`RowChanges`: stages deletion files for the rows that a change removes, and new fragments for those that it writes.

Nothing here is visible before a commit refers to the staged files.

```
scan of one version ──> rows that change: addresses ─────────────────> deletion files ──┐
                                          values, with their row ids ─> new fragments ──┴─> Delete or Update ──> commit
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..._native import table as native
from ..._native.deletion import RowsToDelete
from ..._native.schema import Field
from ..._native.write import spill_row_lineage
from ...arrow.blob_arrays import marked_schema
from ...commit.orphans import StagedFiles
from ...exceptions import UnsupportedError
from ..fragment_metadata import FragmentMetadata
from ..log import LanceLog
from ..operation import LanceOperation
from ..scan.options import ScanOptions
from ..scan.predicate import Filter
from ..scan.scan import Scan
from ..system_columns import ROW_ADDRESS, ROW_ID
from ..version import TableVersion
from ..write.request import DEFAULT_MEMORY_LIMIT, WriteRequest
from ..write.staging import stage
from ..write.target import LanceTarget


class RowChanges:
    """The changes to the rows of one version, staged.

    Args:
        table: The base version.
        memory_limit: Bytes that writing new rows may buffer.
        log: The log whose store the files are staged in, the one that `commit_change` commits to. By default
            `table.writable_log(durable=True)`.
        staged: Gets the staged files.

    Raises:
        UnsupportedError: A column of the table is named `_rowid` or `_rowaddr`.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance.change.row_changes import RowChanges
        >>> from esker.lance.change.run import commit_change
        >>> from esker.lance.version import TableVersion
        >>> _ = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-row-changes")
        >>> table = TableVersion.open("memory://doc-row-changes")
        >>> def move_two(manifest):
        ...     changes = RowChanges(table.at(manifest))
        ...     changes.write(changes.take_out("id = 2"), changes.schema)
        ...     return changes.update_operation(["id"])
        >>> commit_change(table, move_two, merge_deletions=True).number
        2
        >>> esker.dataset("memory://doc-row-changes").to_table()["id"].to_pylist()
        [1, 3, 2]
    """

    def __init__(
        self,
        table: TableVersion,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        log: LanceLog | None = None,
        staged: StagedFiles | None = None,
    ) -> None:
        self.table = table
        for name in (ROW_ID, ROW_ADDRESS):
            if name in self.schema.names:
                raise UnsupportedError(
                    f"rows of a table with a column named {name!r} cannot be rewritten, rename the column", column=name
                )
        self._memory_limit = memory_limit
        self._log = log or table.writable_log(durable=True)
        self._staged = staged if staged is not None else StagedFiles()
        self._gone = RowsToDelete()
        self._all = False
        self._new: list[native.Fragment] = []

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.table.schema

    @property
    def num_deleted(self) -> int:
        """The number of rows that the change deletes so far."""
        return self.table.num_rows if self._all else len(self._gone)

    @property
    def num_written(self) -> int:
        """The number of rows in the new fragments so far."""
        return sum(fragment.physical_rows for fragment in self._new)

    def delete(self, addresses: pa.Array) -> int:
        """Deletes rows.

        Args:
            addresses: Their `_rowaddr`, uint64, from a scan of this version; in any order, ascending is fastest.

        Returns:
            How many of them this change had not deleted before: fewer than the addresses if some were given twice.
        """
        return self._gone.add(addresses)

    def delete_all(self) -> None:
        """Deletes all rows. Nothing is read."""
        self._all = True

    def delete_where(self, predicate: Filter) -> None:
        """Deletes the rows for which a predicate is true. Only the predicate's columns are read."""
        if isinstance(predicate, str) and predicate.strip().lower() == "true":
            self.delete_all()
            return
        options = ScanOptions(columns=[], filter=predicate, with_row_address=True, scan_in_order=False)
        for batch in Scan(self.table, options).to_batches():
            self.delete(batch[ROW_ADDRESS])

    def take_out(self, predicate: Filter | None = None) -> Iterator[pa.RecordBatch]:
        """Deletes the rows for which a predicate is true, all rows without one, and yields them as they are read.

        The batches can be passed to `write`: they have the table's columns, with blobs as bytes, and `_rowid` in a
        table with stable row ids. The predicate's columns are read for all rows, the others for the selected rows.
        """
        stable = self.table.has_stable_row_ids
        options = ScanOptions(filter=predicate, blobs="bytes", with_row_id=stable, with_row_address=True)
        scan = Scan(self.table, options)
        schema = marked_schema(scan.schema, self.schema)
        kept = [name for name in schema.names if name != ROW_ADDRESS]
        for batch in scan.to_batches():
            self.delete(batch[ROW_ADDRESS])
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema).select(kept)

    def write(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, data_storage_version: str | None = None
    ) -> None:
        """Writes rows to new fragments. Streams the batches, with bounded memory.

        Args:
            batches: Rows of `schema`, optionally with `_rowid` (uint64): in a table with stable row ids a row keeps
                the id in it, and a row with null gets a new one. Rows that keep their ids must come first. Without
                stable row ids the column is ignored.
            schema: Columns of the table, without `_rowid`; columns that it lacks are null in the new rows.
            data_storage_version: The file version; None keeps the table's.

        Raises:
            SchemaMismatchError: The columns are not those of the table.
        """
        ids: list[pa.Array] = []
        rows = self._without_ids(batches, schema, ids)
        request = WriteRequest(
            target=LanceTarget(self.table.uri, self._log, self.table.manifest),
            data=rows,
            schema=schema,
            data_storage_version=data_storage_version,
            memory_limit=self._memory_limit,
            external_blobs="reference",
        )
        staged = stage(request)
        staged.tell(self._staged)
        kept = pa.chunked_array(ids, pa.uint64())
        start = 0
        for fragment in staged.fragments:
            own = kept.slice(start, fragment.physical_rows).combine_chunks()
            start += fragment.physical_rows
            self._new.append(fragment.with_row_ids(own) if len(own) else fragment)

    def delete_operation(self, predicate: str) -> LanceOperation.Delete:
        """Stages the deletion files and returns the operation that commits them.

        Args:
            predicate: The condition of the rows, for people to read.
        """
        updated, removed = self._stage()
        return LanceOperation.Delete(updated, removed, predicate)

    def update_operation(self, columns: Iterable[str], *, inserted_rows: bytes = b"") -> LanceOperation.Update:
        """Stages the deletion files and returns the operation that commits them and the new fragments. Row lineage that
        the table's config wants in files of its own is staged too.

        Args:
            columns: The top-level columns whose values may have changed in rows that moved: in a table with stable row
                ids, indices on other columns still cover these rows.
            inserted_rows: The encoded filter over the keys of inserted rows.
        """
        updated, removed = self._stage()
        moved_from = {*removed, *(fragment.id for fragment in updated)}
        new, files = spill_row_lineage(self._log.store, self.table.manifest, self._new, moved_from)
        for path in files:
            self._staged.add(self._log.store, path)
        fields = {field.name: field for field in self.table.manifest.schema.fields}
        return LanceOperation.Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=[FragmentMetadata.from_native(fragment) for fragment in new],
            fields_for_preserving_frag_bitmap=[id for name in columns for id in _ids(fields[name])],
            update_mode="rewrite_rows",
            inserted_rows=inserted_rows,
        )

    def _stage(self) -> tuple[list[FragmentMetadata], list[int]]:
        if self._all:
            return [], [fragment.id for fragment in self.table.fragments]
        told: list[tuple[list[native.Fragment], list[int], int]] = []
        try:
            # Ctrl-C is raised as a call returns, in place of what it returns; nothing is between this one and the list.
            told.extend(map(self._gone.stage, [self._log.store], [self.table.manifest]))
        finally:
            for fragment in (fragment for updated, _, _ in told for fragment in updated):
                if fragment.deletion_file is not None:
                    self._staged.add(self._log.store, fragment.deletion_file)
        [(updated, removed, _)] = told
        return [FragmentMetadata.from_native(fragment) for fragment in updated], removed

    def _without_ids(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, ids: list[pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        """The batches without `_rowid`; the ids that rows keep are added to `ids`."""
        ended = False
        for batch in batches:
            if ROW_ID in batch.schema.names and ROW_ID not in schema.names:
                if self.table.has_stable_row_ids:
                    own = batch[ROW_ID].drop_null()
                    if (ended and len(own)) or batch[ROW_ID].slice(0, len(own)).null_count:
                        raise AssertionError("expected rows that keep their ids first, found one after a new row")
                    ended = len(own) < batch.num_rows
                    ids.append(own)
                batch = batch.select(schema.names)
            yield batch


def _ids(field: Field) -> list[int]:
    """The ids of a field and of all fields within it."""
    return [field.id, *(id for child in field.children for id in _ids(child))]
