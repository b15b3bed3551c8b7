"""One version of a table as a dataset that DuckDB scans: columns and filters reach the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from ...exceptions import EskerError
from ..write.conformed_values import fitted

if TYPE_CHECKING:
    from ..table import DeltaTable


class QueriedVersion(ds.Dataset):  # type: ignore[misc]
    """The version that a table has open; what happens to the table later does not change it.

    Args:
        table: The table.
        failures: Where errors of reading are put, which DuckDB reports as text alone.
    """

    def __init__(self, table: DeltaTable, failures: list[EskerError] | None = None) -> None:
        # Snapshots are never changed: a table goes on to another one. So a copy of the attributes stays here.
        self._table: DeltaTable = object.__new__(type(table))
        vars(self._table).update(vars(table))
        self._failures = failures if failures is not None else []

    def told_of(self, failures: list[EskerError]) -> QueriedVersion:
        """The same version for one query."""
        return QueriedVersion(self._table, failures)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._table.schema().to_plain_arrow()

    @property
    def annotated(self) -> pa.Schema:
        """The table's columns, with the metadata that it has of them."""
        return self._table.schema().to_arrow()

    def scanner(self, columns: list[str] | None = None, filter: Any | None = None, **options: Any) -> ds.Scanner:
        """The rows that a query asks for.

        Args:
            columns: Their names; all if not given.
            filter: An expression of pyarrow's.
            options: Accepted as pyarrow's dataset accepts them.
        """
        try:
            rows = self._table.scan(columns, filter)
        except EskerError as error:
            self._failures.append(error)
            raise
        schema = pa.schema([self.schema.field(name) for name in rows.schema.names])
        return ds.Scanner.from_batches(self._batches(rows, schema), schema=schema)

    def _batches(self, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows, those of extension types as what these are stored as, which is what DuckDB knows."""
        kinds = list(zip(schema.types, schema.names, strict=True))
        try:
            for batch in rows:
                columns = [fitted(found, *kind) for found, kind in zip(batch.columns, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch
        except EskerError as error:
            self._failures.append(error)
            raise
