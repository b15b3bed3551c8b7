"""`SqlSource`: one version of a table as what DataFusion takes for a pyarrow dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from ..lance.scan.options import ScanOptions
from ..lance.scan.scan import Scan
from ..lance.version import TableVersion


class SqlSource:
    """A table to query. All its rows are one partition, which our scan reads in order, in parallel and ahead.

    Args:
        table: The version.
        options: The options of its scans.

    Attributes:
        schema: The columns.
        limit: The most rows that the query needs, None for all.
        failure: What a scan or a function of ours raised, of which DataFusion keeps only the text.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        self._table = table
        self._options = options
        self.schema: pa.Schema = Scan(table, options).schema
        self.limit: int | None = None
        self.failure: BaseException | None = None

    def failed(self, error: BaseException) -> None:
        """Keeps what was raised beneath DataFusion."""
        self.failure = error

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # DataFusion asks by isinstance; there is no C++ object that functions of pyarrow could use.
        return pyarrow.dataset.Dataset  # type: ignore[no-any-return]

    def get_fragments(self, filter: pc.Expression | None = None) -> list[SqlSource]:
        """The partitions with rows for which the filter may be true."""
        del filter
        return [self]

    def scanner(
        self,
        schema: pa.Schema | None = None,
        *,
        columns: list[str] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
    ) -> _SqlScanner:
        """A scan of these columns and rows. The batch size is DataFusion's own, which the query's options precede."""
        del schema
        options = self._options
        added = ("_rowid", options.with_row_id), ("_rowaddr", options.with_row_address)
        given = [name for name, wanted in added if wanted and columns is not None and name in columns]
        changed = replace(
            options,
            columns=columns,
            filter=filter,
            limit=self.limit,
            batch_size=options.batch_size or batch_size,
            with_row_id=options.with_row_id if columns is None else "_rowid" in given,
            with_row_address=options.with_row_address if columns is None else "_rowaddr" in given,
        )
        return _SqlScanner(self, Scan(self._table, changed))


class _SqlScanner:
    """A scan that keeps what it raises."""

    def __init__(self, source: SqlSource, scan: Scan) -> None:
        self._source = source
        self._scan = scan

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scan.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scan.to_batches()
        except GeneratorExit:
            raise
        except BaseException as error:
            self._source.failed(error)
            raise
