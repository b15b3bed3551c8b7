"""`QueryBuilder`: SQL over versions of Delta tables, with deltalake's name and methods. DuckDB runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..exceptions import AlreadyExistsError, EskerError, InvalidArgumentError, UnsupportedError
from .read.queried_version import QueriedVersion
from .read.query_fields import table_fields
from .read.query_types import as_returned, returned_schema
from .table import DeltaTable

if TYPE_CHECKING:
    import duckdb

__all__ = ["QueryBuilder"]

_BATCH_SIZE = "datafusion.execution.batch_size"
_BATCH_ROWS = 1 << 16
_DATABASE = {
    # A name that is not registered is an error, not a variable of the caller's that happens to be called so.
    "python_enable_replacements": False,
    # A query loads nothing from the network.
    "autoinstall_known_extensions": False,
    # Numbers and orders come out as DataFusion's: `7 / 2` is 3, and nulls are the greatest values.
    "integer_division": True,
    "default_null_order": "postgres",
}


class QueryBuilder:
    """SQL over tables that are registered by name.

    DuckDB runs it, in its dialect: names of columns are found in whatever case. As in deltalake, integers are divided
    to integers, nulls are last in an order and first in a descending one, texts come as `string_view` and bytes as
    `binary_view`, sums of integers as `int64`, and times are those of UTC. Columns and filters reach the files.

    Args:
        session_config: `datafusion.execution.batch_size` is how many rows a batch has at most; there are no others.

    Raises:
        UnsupportedError: DuckDB is not installed; another key of DataFusion's.

    Example:
        `QueryBuilder().register("events", DeltaTable("s3://lake/events")).execute("select count(*) from events")`
    """

    def __init__(self, session_config: Mapping[str, str] | None = None) -> None:
        self._batch_rows = _batch_rows(session_config or {})
        self._database = _connect()
        self._tables: dict[str, QueriedVersion] = {}

    def register(self, table_name: str, delta_table: DeltaTable) -> QueryBuilder:
        """Gives the version that a table has open a name in queries.

        Args:
            table_name: The name.
            delta_table: The table. To query another version of it, make another `QueryBuilder`.

        Raises:
            AlreadyExistsError: There is a table of that name.
        """
        if not isinstance(delta_table, DeltaTable):
            raise TypeError(f"expected a DeltaTable, found {type(delta_table).__name__}; open it with DeltaTable(uri)")
        if table_name.casefold() in self._tables:
            raise AlreadyExistsError(f"the table {table_name} already exists; register this one under another name")
        self._tables[table_name.casefold()] = QueriedVersion(delta_table)
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """The result of one statement, as a stream: `read_all()` is all of it.

        Args:
            sql: The statement.

        Raises:
            InvalidArgumentError: It is no statement of DuckDB's SQL, names what is not there, or fails on a value.

        Example:
            >>> from esker.delta import QueryBuilder
            >>> QueryBuilder().execute("select 1 + 1 as two").read_all().to_pydict()
            {'two': [2]}
        """
        # A connection has one open result; a cursor is another connection to the same database.
        connection = self._database.cursor()
        failures: list[EskerError] = []
        with _told(failures):
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                count = len(statements) or "no SQL statements"
                raise InvalidArgumentError(f"expected a single SQL statement, found {count}; execute one by one")
            for name, version in self._tables.items():
                connection.register(name, version.told_of(failures))
            found = connection.sql(sql)
            if found is None or _changes_only(statements[0]):
                return pa.RecordBatchReader.from_batches(pa.schema([]), [])
        with _told(failures):
            reader = _open(found, self._batch_rows)
        sums = [str(kind) == "HUGEINT" for kind in found.types]
        schema = returned_schema(reader.schema, sums, self._fields(connection, sql, reader.schema.names))
        return pa.RecordBatchReader.from_batches(schema, _batches(reader, schema, failures, connection))

    def _fields(self, connection: Any, sql: str, names: list[str]) -> list[pa.Field | None]:
        """The columns of the result that are a table's own."""
        try:
            (tree,) = connection.cursor().execute("select json_serialize_sql(?)", [sql]).fetchone()
        except Exception:
            # A DuckDB without JSON: nothing is known of the columns but their types.
            return [None] * len(names)
        return table_fields(tree, names, {name: version.annotated for name, version in self._tables.items()})


def _connect() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UnsupportedError("expected the package duckdb, found none: pip install 'esker[duckdb]'") from error
    connection = duckdb.connect(":memory:", config=_DATABASE)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def _changes_only(statement: Any) -> bool:
    """Whether DuckDB answers a statement by how much it changed, where deltalake answers nothing."""
    return "CREATE" in str(statement.type)


def _open(found: Any, batch_rows: int) -> pa.RecordBatchReader:
    """A result as a stream; releases of DuckDB before 1.5 have another name for it."""
    opened: Callable[[int], Any] = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
    return opened(batch_rows)


def _batches(
    reader: pa.RecordBatchReader, schema: pa.Schema, failures: list[EskerError], connection: Any
) -> Iterator[pa.RecordBatch]:
    # The connection lives as long as its result.
    try:
        with _told(failures):
            for batch in reader:
                yield as_returned(batch, schema)
    finally:
        reader.close()
        connection.close()


class _told:
    """Errors of DuckDB under our names; what reading a table raised within it comes out as it was."""

    def __init__(self, failures: list[EskerError]) -> None:
        self._failures = failures

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, EskerError | GeneratorExit):
            return
        if self._failures:
            raise self._failures[0] from None
        import duckdb

        if isinstance(error, duckdb.Error | pa.ArrowException):
            raise InvalidArgumentError(f"DuckDB does not run the query; change it: {error}") from error


def _batch_rows(config: Mapping[str, str]) -> int:
    for key in config:
        if key.partition(".")[0] != "datafusion":
            raise InvalidArgumentError(
                f'could not find config namespace for key "{key}"; the only one here is {_BATCH_SIZE}'
            )
        if key != _BATCH_SIZE:
            raise UnsupportedError(f"{key} is not supported, as DuckDB runs the queries; leave it out", operation=key)
    given = config.get(_BATCH_SIZE, str(_BATCH_ROWS))
    if not given.isdecimal() or int(given) < 1:
        raise InvalidArgumentError(f"expected a number of rows from 1 on as {_BATCH_SIZE}, found {given!r}")
    return int(given)
