"""The rows that a merge brings, in the columns and types of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ._native.merge import MergeSource
from .exceptions import InvalidArgumentError, SchemaMismatchError
from .rebase import rebased
from .staging import check_input_schema
from .types import BatchSource, ReaderLike, coerce_reader, conform

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_IN_MEMORY = 2**63


class MergeRows:
    """Rows for a merge: a subset of a table's columns, among them its key.

    Args:
        data_obj: The rows; see `esker.types`.
        schema: Their column types, where the data do not say.
        table: The table's columns.
        on: The key columns.
        insert: Whether rows may be inserted, so that columns which cannot be null must be there.

    Raises:
        SchemaMismatchError: A column of another type, one that the table does not have, or one that is missing.
    """

    def __init__(
        self, data_obj: ReaderLike, schema: pa.Schema | None, *, table: pa.Schema, on: Sequence[str], insert: bool
    ) -> None:
        source = coerce_reader(data_obj, schema)
        check_input_schema(source.schema)
        check_columns(source.schema, table, on=on, insert=insert)
        # What the source lacks keeps its value, or is null in new rows: only the columns that it has are compared.
        present = pa.schema([field for field in table if field.name in source.schema.names], metadata=table.metadata)
        self._source: BatchSource = conform(source, present)
        self._materialized = isinstance(data_obj, pa.Table | pa.RecordBatch | dict | list)

    @property
    def schema(self) -> pa.Schema:
        """The columns that there are, in the table's order."""
        return self._source.schema

    def keep(self, memory_limit: int) -> MergeSource:
        """Reads the rows to their end, so that they can be read any number of times.

        Args:
            memory_limit: Bytes above which a stream goes to disk. What is in memory anyway stays there.
        """
        try:
            limit = ALL_IN_MEMORY if self._materialized else memory_limit
            return MergeSource(rebased(self._source.reader()), memory_limit=limit)
        except Exception:
            if self._source.failure is not None:
                raise self._source.failure from None
            raise


def check_columns(source: pa.Schema, table: pa.Schema, *, on: Sequence[str], insert: bool) -> None:
    """Checks which columns a source has.

    Raises:
        InvalidArgumentError: A column comes twice.
        SchemaMismatchError: One that the table does not have, or one that is missing.
    """
    names = list(source.names)
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(
                f"duplicate column name {name!r} in the source, name each column once", column=name
            )
        if name not in table.names:
            raise SchemaMismatchError(
                f"column {name!r} is not in the table, expected one of {sorted(table.names)}; leave it out",
                column=name,
                found=str(source.field(name).type),
            )
    for name in on:
        if name not in names:
            raise SchemaMismatchError(
                f"key column {name!r} is missing in the source, expected it among {names}", column=name
            )
    for field in table:
        if insert and field.name not in names and not field.nullable:
            raise SchemaMismatchError(
                f"column {field.name!r} is missing in the source, expected {field.type} without nulls for the rows "
                "that are inserted; add it, or leave when_not_matched_insert_all out",
                column=field.name,
                expected=str(field.type),
            )
