"""`FragmentSession`: repeated takes of the same columns of one fragment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..lance.scan.options import Columns, ScanOptions
from ..lance.scan.projection import require_names
from ..lance.scan.scan import Scan
from ..lance.system_columns import ROW_ADDRESS
from ..lance.version import TableVersion


class FragmentSession:
    """Takes rows of the same columns of a fragment; see `LanceFragment.open_session`."""

    def __init__(
        self,
        table: TableVersion,
        fragment_id: int,
        take: Callable[[Any, Columns | None], pa.Table],
        columns: Columns | None,
        with_row_address: bool | None,
    ) -> None:
        if columns is not None:
            require_names(columns)
        self._table = table
        self._fragment_id = fragment_id
        self._take = take
        self._columns = columns
        self._with_row_address = bool(with_row_address)
        self._addresses: pa.ChunkedArray | None = None

    def take(self, indices: Any) -> pa.Table:
        """Takes rows by their number within the fragment, in the order of `indices`. See `LanceDataset.take`."""
        rows = self._take(indices, self._columns)
        if not self._with_row_address:
            return rows
        if self._addresses is None:
            options = ScanOptions(columns=[], with_row_address=True, fragment_ids=(self._fragment_id,))
            self._addresses = Scan(self._table, options).to_table()[ROW_ADDRESS]
        return rows.append_column(ROW_ADDRESS, self._addresses.take(pa.array(indices, pa.int64())))
