"""The plan of a write, fixed before its first row: the request, and the table's state before and after it.

A plan is plain data that pickles, so that several processes may stage files by it and one of them commits them all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ...exceptions import InvalidArgumentError, InvalidTypeError
from ...store.pickling import pickled_options
from ..definition.constraints import Constraints
from ..definition.protocol import check_defaults, check_has_fields
from ..definition.schema_merge import keeping_types
from ..definition.table_state import TableState
from ..log.target import WriteTarget
from ..properties import WriterProperties
from ..schema import Schema
from .incoming import check_names
from .row_predicate import RowPredicate

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
SchemaMode: TypeAlias = Literal["merge", "overwrite"]
MODES = {"error": "ErrorIfExists", "append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
"""The modes of a write, and what a log entry calls them."""


def check_mode(mode: str) -> None:
    """Raises for a mode that no write has."""
    if not isinstance(mode, str):
        raise InvalidTypeError(f"expected mode as a text, found {mode!r}")
    if mode not in MODES:
        raise InvalidArgumentError(f"expected mode as one of {', '.join(MODES)}, found {mode!r}")


def check_file_size(size: int | None) -> None:
    """Raises for a `target_file_size` that no file has, in bytes; None is one."""
    if size is None:
        return
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise InvalidTypeError(f"expected target_file_size as a number of bytes, found {size!r}")
    if size < 1:
        raise InvalidArgumentError(
            f"expected target_file_size from 1 on, found {size} (target_file_size must be greater than 0)"
        )


@dataclass(frozen=True)
class WriteRequest:
    """The arguments of a write, apart from its rows and its target.

    Args:
        mode: What becomes of the rows that are there.
        schema_mode: Whether the table's columns change.
        predicate: Which rows are replaced, in mode `overwrite`: SQL, names in backticks.
        given_predicate: The predicate as the caller wrote it, for messages.
        partition_by: Columns to partition a new table by.
        name: Of a new table.
        description: Of a new table.
        configuration: Properties of a new table.
        target_file_size: Bytes of a file, about.
        max_rows_per_file: Rows of one file at most.
        parquet: How Parquet is written.
        session_timezone: What times without a zone mean in the predicate; UTC if not given.
        replaces_partitions: Whether an overwrite replaces the partitions that have new rows, and no others.
        clock: What `now()` and today's day are in the predicate, however long the write takes.

    Example:
        >>> from esker.delta.write.plan import WriteRequest
        >>> WriteRequest(mode="append").predicate is None
        True
    """

    mode: Mode
    schema_mode: SchemaMode | None = None
    predicate: str | None = None
    given_predicate: str | None = None
    partition_by: list[str] | str | None = None
    name: str | None = None
    description: str | None = None
    configuration: Mapping[str, str | None] | None = None
    target_file_size: int | None = None
    max_rows_per_file: int | None = None
    parquet: WriterProperties | None = None
    session_timezone: str | None = None
    replaces_partitions: bool = False
    clock: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def partition_columns(self) -> list[str] | None:
        """The columns to partition by, None if the caller names none."""
        return [self.partition_by] if isinstance(self.partition_by, str) else self.partition_by

    def row_predicate(self, schema: pa.Schema) -> RowPredicate | None:
        """The predicate over a table's columns, None if there is none.

        Raises:
            InvalidArgumentError: It does not parse, or names no column.
        """
        if self.predicate is None:
            return None
        # Spark, whose SQL comes as it is, makes numbers of texts.
        is_deltalakes = self.given_predicate is not None
        return RowPredicate(
            self.predicate, schema, self.session_timezone, numbers_as_text=is_deltalakes, clock=self.clock
        )

    def check(self) -> None:
        """Raises for arguments that do not go together.

        Raises:
            InvalidArgumentError: It names them.
        """
        check_mode(self.mode)
        if self.schema_mode not in (None, "merge", "overwrite"):
            raise InvalidArgumentError(f"expected schema_mode as merge or overwrite, found {self.schema_mode!r}")
        if self.schema_mode == "overwrite" and self.mode != "overwrite":
            raise InvalidArgumentError(
                f'expected mode="overwrite" with schema_mode="overwrite", found mode={self.mode!r}'
            )
        if self.predicate is not None and self.mode != "overwrite":
            raise InvalidArgumentError(f'expected mode="overwrite" with a predicate, found mode={self.mode!r}')


@dataclass(frozen=True)
class DeltaWritePlan:
    """One write into one table.

    Args:
        uri: The table's place.
        read_version: The base version, -1 if there is no table.
        before: What the table is.
        after: What it will be.
        missing: The table's columns that the rows do not have.
        request: The arguments of the write.
        storage_options: Options of the store. They may hold passwords.

    Example:
        `plan = plan_write(target, Schema.from_arrow(data.schema), WriteRequest(mode="append"))`
    """

    uri: str
    read_version: int
    before: TableState | None
    after: TableState
    missing: frozenset[str]
    request: WriteRequest
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "storage_options": pickled_options(self.storage_options)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def replacing_partitions(self) -> DeltaWritePlan:
        """The same overwrite, of the partitions that have new rows."""
        return replace(self, request=replace(self.request, replaces_partitions=True))

    def in_zone(self, session_timezone: str | None) -> DeltaWritePlan:
        """The same write with another meaning of times without a zone."""
        return replace(self, request=replace(self.request, session_timezone=session_timezone))


def plan_write(target: WriteTarget, incoming: Schema, request: WriteRequest) -> DeltaWritePlan:
    """Fixes a write, and refuses there what could only fail later.

    Args:
        target: Where it goes.
        incoming: The columns of the rows.
        request: Its arguments.

    Raises:
        SchemaMismatchError: The rows do not have the table's columns.
        InvalidArgumentError: Arguments that do not go together.
        UnsupportedError: The table asks its writers for what this release does not have; a struct without fields.

    Example:
        `plan_write(target, Schema.from_arrow(data.schema), WriteRequest(mode="append"))`
    """
    request.check()
    before = TableState.of(target.snapshot) if target.snapshot is not None else None
    if before is not None:
        before.check_writable()
    after = _after(before, incoming, request)
    constraints = Constraints(after.schema, after.configuration, after.protocol, is_new=before is None)
    missing = check_names(
        after.schema, incoming.to_plain_arrow(), constraints.generated, merging=request.schema_mode is not None
    )
    check_defaults(after.schema, missing)
    check_has_fields(after.schema)
    return DeltaWritePlan(
        target.uri, target.read_version, before, after, frozenset(missing), request, target.storage_options
    )


def _after(before: TableState | None, incoming: Schema, request: WriteRequest) -> TableState:
    """The state of the table after the write."""
    columns = request.partition_columns
    if before is None:
        return TableState.new(
            incoming,
            list(columns or []),
            name=request.name,
            description=request.description,
            configuration=request.configuration,
        )
    if request.schema_mode == "overwrite" and request.predicate is None:
        # A frame of which all texts are missing has a column without a type: those that come later are texts again.
        return TableState.new(
            keeping_types(before.schema, incoming),
            list(before.partition_by if columns is None else columns),
            name=before.metadata.get("name"),
            description=before.metadata.get("description"),
            configuration=before.configuration,
            replaced=before,
        )
    if columns is not None and list(columns) != before.partition_by:
        raise InvalidArgumentError(
            f"expected the table's partition columns {before.partition_by}, found {list(columns)}; "
            'leave partition_by out, or give mode="overwrite" and schema_mode="overwrite" (Generic error: Specified '
            "table partitioning does not match table partitioning: "
            f"expected: {json.dumps(before.partition_by)}, got: {json.dumps(list(columns))})"
        )
    if request.schema_mode is None:
        return before
    merged = before.merged_with(incoming)
    return merged if merged.schema != before.schema else before
