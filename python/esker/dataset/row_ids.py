"""The methods of `LanceDataset` that take rows by id, and that compare versions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..exceptions import of_files
from ..lance.handle import DatasetHandle
from ..lance.history.version_delta import DatasetDelta
from ..lance.scan.options import Columns
from ..lance.scan.take import take_row_ids
from ..missing import refuse_options


class RowIdsApi(DatasetHandle):
    """The methods of `LanceDataset` that take rows by id, and that compare versions."""

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether the table has stable row ids: rows keep their ids when they are updated and when files are
        compacted."""
        return self._table.has_stable_row_ids

    @of_files()
    def take_rows(self, row_ids: Any, columns: Columns | None = None) -> pa.Table:
        """Takes rows by `_rowid`, in the order of `row_ids`, duplicates included.

        Args:
            row_ids: Row ids, as in `_rowid` of a scan: a list, a range, a numpy or an Arrow array. In a table without
                stable row ids they are row addresses, which change when rows move.
            columns: As in `take`.

        Returns:
            The rows. Ids that no row of this version has are left out.

        Raises:
            InvalidArgumentError: An id is negative, null or not an integer, or a column does not exist.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"k": [10, 11, 12]}), "memory://doc-take-rows")
            >>> ids = dataset.to_table(columns=["_rowid"], filter="k > 10")["_rowid"]
            >>> dataset.take_rows(ids[::-1])["k"].to_pylist()
            [12, 11]
        """
        table = self._table
        return take_row_ids(table.store, table.manifest, table.described_schema, row_ids, columns, in_structs=True)

    def _take_rows(
        self, row_ids: Any, columns: Columns | None = None, *, ignore_deletions: bool = False, **options: Any
    ) -> pa.Table:
        """`take_rows` under pylance's name. Never returns deleted rows, whatever `ignore_deletions` says."""
        del ignore_deletions
        refuse_options(**options)
        return self.take_rows(row_ids, columns)

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """What changed between two versions: inserted, updated and deleted rows, and the transactions.

        Args:
            compared_against: The other version: the changes from it to this one, or from this one to it if it is newer.
            begin_version: The version to compare with; its own changes are not in the result. Needs `end_version`.
            end_version: The last version whose changes are in the result.

        Raises:
            InvalidArgumentError: Neither one version nor a range is given, or both.

        Example:
            >>> import esker, pyarrow as pa
            >>> uri = "memory://doc-delta"
            >>> _ = esker.write_dataset(pa.table({"k": [1, 2]}), uri, enable_stable_row_ids=True)
            >>> dataset = esker.write_dataset(pa.table({"k": [3]}), uri, mode="append")
            >>> dataset.delta(compared_against=1).get_inserted_rows().read_all()["k"].to_pylist()
            [3]
        """
        return DatasetDelta.between(self._table, compared_against, begin_version, end_version)
