"""`LanceDataset.sql`: the rows of a dataset by SQL queries, which DataFusion's Python package runs over our scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..arrow.json_columns import as_json_text
from ..exceptions import EskerError, InvalidArgumentError, UnsupportedError
from ..lance.scan.options import ScanOptions, blobs_as, integer
from ..scanner.lance_scanner import ScannedDataset
from .sql_functions import json_functions
from .sql_source import SqlSource
from .sql_tokens import token_function

if TYPE_CHECKING:
    from datafusion import DataFrame

_MISSING = "ds.sql needs the package datafusion, found none: pip install 'esker[sql]'"


@dataclass(frozen=True)
class _Query:
    """A query and how it is run."""

    dataset: ScannedDataset
    text: str
    table_name: str = "dataset"
    options: ScanOptions = field(default_factory=ScanOptions)


class SqlQuery:
    """A query that can be run any number of times. Made by `SqlQueryBuilder.build`.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-sql-query")
        >>> query = dataset.sql("SELECT sum(id) AS total FROM dataset").build()
        >>> query.to_batch_records()[0].to_pylist()
        [{'total': 6}]
    """

    def __init__(self, query: _Query) -> None:
        self._query = query

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """The result, in memory. Batches without rows are left out.

        Raises:
            InvalidArgumentError: The query does not parse, is no query, or fails on a value.
            UnsupportedError: The package datafusion is not installed.
        """
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """The result as a reader. The query runs as the reader is read, and holds only what its operators need.

        Raises:
            InvalidArgumentError: The query does not parse, or is no query; the reader raises if it fails on a value.
            UnsupportedError: The package datafusion is not installed.
        """
        frame, source = _planned(self._query)
        schema = frame.schema()
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, column.type) for column in schema], schema=schema)
        batches = (as_json_text(_planned_batch(batch, schema)) for batch in _run(frame, source))
        return pa.RecordBatchReader.from_batches(as_json_text(empty).schema, batches)


class SqlQueryBuilder:
    """Collects the options of a query. Made by `LanceDataset.sql`; `build` makes the query.

    Example:
        `dataset.sql("SELECT id FROM t WHERE id > 3").table_name("t").build().to_stream_reader()`
    """

    def __init__(self, query: _Query) -> None:
        self._query = query

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """The name of the table in the query, "dataset" by default."""
        return SqlQueryBuilder(replace(self._query, table_name=table_name))

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Whether the table has the column `_rowid`."""
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Whether the table has the column `_rowaddr`."""
        return self._with(with_row_address=with_row_addr)

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """What blob columns are returned as: "all_binary" returns the bytes, "blobs_descriptions" (the default) or
        "all_descriptions" where the blobs are stored."""
        return self._with(blobs=blobs_as(blob_handling))

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """The maximum number of rows per batch."""
        return self._with(batch_size=integer("batch_size", batch_size, least=1))

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """The approximate maximum number of bytes per batch that is scanned."""
        return self._with(batch_size_bytes=integer("batch_size_bytes", batch_size_bytes, least=1))

    def build(self) -> SqlQuery:
        """The query. It is planned when it is run."""
        return SqlQuery(self._query)

    def _with(self, **changes: Any) -> SqlQueryBuilder:
        return SqlQueryBuilder(replace(self._query, options=replace(self._query.options, **changes)))


class SqlApi:
    """`LanceDataset.sql`."""

    def sql(self: ScannedDataset, sql: str) -> SqlQueryBuilder:
        """A SQL query over this version, in DataFusion's dialect.

        Columns, filters (comparisons, IN, IS NULL, AND, OR, NOT) and LIMIT reach the scan, which reads only what they
        need; everything else is computed as the rows arrive. All columns of the table can be named, whatever
        `default_scan_options` say. Statements that would write are refused.

        Args:
            sql: A SELECT, DESCRIBE or EXPLAIN statement; the table is called `dataset`.

        Raises:
            UnsupportedError: (when the query is run) The package datafusion is not installed:
                `pip install 'esker[sql]'`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [3, 1, 2]}), "memory://doc-sql")
            >>> query = dataset.sql("SELECT id, id * 2 AS twice FROM dataset WHERE id > 1 ORDER BY id").build()
            >>> query.to_stream_reader().read_all().to_pylist()
            [{'id': 2, 'twice': 4}, {'id': 3, 'twice': 6}]
        """
        if not isinstance(sql, str):
            raise TypeError(f"expected a query as str, found {type(sql).__name__}")
        # Pinned now: the dataset may have moved on when the query runs.
        return SqlQueryBuilder(_Query(self._at(self._table), sql))


def _planned(query: _Query) -> tuple[DataFrame, SqlSource]:
    try:
        from datafusion import SessionConfig, SessionContext, SQLOptions
    except ImportError as error:
        raise UnsupportedError(_MISSING, operation="sql") from error
    source = SqlSource(query.dataset._table, query.options)
    # Batches stay in the table's order unless the query orders or groups them.
    config = SessionConfig().set("datafusion.optimizer.enable_round_robin_repartition", "false")
    if query.options.batch_size is not None:
        config = config.with_batch_size(query.options.batch_size)
    context = SessionContext(config)
    for function in (*json_functions(source.failed), token_function()):
        context.register_udf(function)
    options = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        context.register_dataset(f'"{query.table_name.replace(chr(34), chr(34) * 2)}"', source)
        frame = context.sql_with_options(query.text, options)
        source.limit = _limit(frame)
    except EskerError:
        raise
    except Exception as error:
        # A function of constants is computed as the query is planned.
        if source.failure is not None:
            raise source.failure from None
        raise InvalidArgumentError(f"query {query.text!r}: {_told(error)}") from error
    return frame, source


def _limit(frame: DataFrame) -> int | None:
    """The rows that the query needs of its only scan, if the plan says so; None for all."""
    text = frame.logical_plan().display_indent()
    if text.startswith(("Explain", "Analyze")) or text.count("TableScan:") != 1:
        return None
    return _fetch(frame.optimized_logical_plan())


def _fetch(plan: Any) -> int | None:
    if plan.display_indent().count("TableScan:") != 1:
        return None
    step = plan.to_variant() if plan.display().startswith("TableScan:") else None
    if step is not None:
        fetch: int | None = step.fetch()
        return fetch
    inner = plan.inputs()
    return _fetch(inner[0]) if len(inner) == 1 else None


def _run(frame: DataFrame, source: SqlSource) -> Iterator[pa.RecordBatch]:
    try:
        yield from _streamed(frame)
    except GeneratorExit:
        raise
    except EskerError:
        raise
    except Exception as error:
        # DataFusion passes on only the text of what our scan or function raised.
        if source.failure is not None:
            raise source.failure from None
        raise InvalidArgumentError(f"the query failed: {_told(error)}") from error


def _planned_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under the schema of the plan: the engine says of constants that it computed that they are not null."""
    return batch if batch.schema == schema else pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _streamed(frame: DataFrame) -> Iterable[pa.RecordBatch]:
    """The batches of the result. A plan that only explains runs whole: DataFusion streams no such plans."""
    if frame.logical_plan().display().startswith(("Explain", "Analyze")):
        batches: list[pa.RecordBatch] = frame.collect()
        return batches
    return (batch.to_pyarrow() for batch in frame.execute_stream())


def _told(error: Exception) -> str:
    """The first lines of DataFusion's message, without its advice to report a bug."""
    return str(error).split("\nThis issue was likely caused by a bug")[0].rstrip()
