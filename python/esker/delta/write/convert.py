"""`convert_to_deltalake`: makes a Delta table of a folder of Parquet files, which stay where they are.

Spec: "Add File and Remove File".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.store import Store
from ...exceptions import AlreadyExistsError, CorruptFileError, InvalidArgumentError, NotFoundError, SchemaMismatchError
from ...store.branch_places import check_no_branch_belongs
from ...store.stores import absolute
from ..definition.constraints import Constraints
from ..definition.partition_text import NULL_DIRECTORY, encode_path, partition_text
from ..definition.schema_merge import SchemaMerge, is_void
from ..definition.statistics_columns import statistics_columns
from ..definition.table_state import MODE, TableState
from ..log.commit import CommitRequest, DeltaCommit, LogEntry
from ..log.entries import NO_TABLE, newest_version
from ..log.store import resolve_for_writing
from ..log.store_file import StoreFile
from ..log.target import WriteTarget
from ..positional import with_positional
from ..properties import CommitProperties, PostCommitHookProperties
from ..schema import Field, Schema
from ..table_properties import check_properties
from .conformed import conformed
from .file_statistics import FileStatistics

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BATCH_ROWS = 64 * 1024


@with_positional()
def convert_to_deltalake(
    uri: str | os.PathLike[str],
    mode: Literal["error", "ignore"] = "error",
    partition_by: Schema | pa.Schema | None = None,
    partition_strategy: Literal["hive", "directory"] | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: dict[str, str] | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Makes a Delta table of the Parquet files below a place. Hidden ones (`_x`, `.x`) are left out.

    Args:
        uri: Where they are.
        mode: `error` if there is a Delta table, or `ignore` to do nothing then.
        partition_by: The partition columns, in the order of the directories.
        partition_strategy: `hive` for `year=2020/a.parquet`, `directory` for `2020/a.parquet`.
        name: Of the table, for people.
        description: Of the table.
        configuration: Properties of the table.
        storage_options: Options of the store.
        collect_stats: Whether files are read for their statistics.
        commit_properties: What goes into the log entry.
        post_commithook_properties: What is done after the commit.

    Raises:
        AlreadyExistsError: There is a Delta table.
        NotFoundError: There are no Parquet files; or a branch of a Lance table belongs there.
        SchemaMismatchError: A column has one type in one file and another in another.

    Example:
        `convert_to_deltalake("t", partition_by=Schema([Field("year", "integer")]), partition_strategy="hive")`
    """
    check_properties(configuration or {}, strict=True)
    if mode not in ("error", "ignore"):
        raise InvalidArgumentError(f"expected mode as error or ignore, found {mode!r}")
    if partition_by is not None and partition_strategy is None:
        raise InvalidArgumentError("expected a partition_strategy with partition_by, found none")
    if partition_strategy not in (None, "hive", "directory"):
        raise InvalidArgumentError(f"expected partition_strategy as hive or directory, found {partition_strategy!r}")
    if (configuration or {}).get(MODE, "none") not in (None, "none"):
        raise InvalidArgumentError(f"expected no {MODE}: files that are there have no physical names")
    where = absolute(uri)
    store = resolve_for_writing(where, storage_options)
    if newest_version(store) != NO_TABLE:
        if mode == "ignore":
            return
        raise AlreadyExistsError(f"a Delta table at {where} exists already", uri=where)
    check_no_branch_belongs(where, storage_options=storage_options)
    metas = [meta for meta in store.list() if _is_data(meta.path)]
    if not metas:
        raise NotFoundError(f"no Parquet files below {where}", uri=where)
    given = Schema.from_arrow(partition_by) if isinstance(partition_by, pa.Schema) else partition_by
    partitions = given or Schema([])
    schema: Schema | None = None
    for meta in metas:
        found = Schema.from_arrow(_open(store, meta.path).schema_arrow)
        schema = found if schema is None else _joined(schema, found, meta.path)
    columns = [field for field in (schema.fields if schema else []) if field.name not in {p.name for p in partitions}]
    whole = Schema([*columns, *partitions.fields])
    names = [field.name for field in partitions]
    after = TableState.new(whole, names, name=name, description=description, configuration=configuration)
    constraints = Constraints(after.schema, after.configuration, after.protocol, is_new=True)
    adds = []
    for meta in metas:
        values = _values(meta.path, partitions, partition_strategy)
        add: dict[str, Any] = {
            "path": encode_path(meta.path),
            "partitionValues": values,
            "size": meta.size,
            "modificationTime": (meta.last_modified_us or 0) // 1000,
            "dataChange": True,
        }
        checked = any(key.startswith("delta.constraints.") for key in after.configuration)
        checked |= any(not field.nullable for field in after.schema.fields)
        if collect_stats or checked:
            add["stats"] = _statistics(store, meta.path, columns, after, constraints if checked else None, values)
        adds.append(add)
    entry = LogEntry(
        "CONVERT",
        {"numFiles": len(adds), "partitionedBy": str(names), "collectStats": str(collect_stats).lower()},
        [*after.actions_after(None), *(("add", add) for add in adds)],
        metrics={"numConvertedFiles": str(len(adds))},
    )
    commit = DeltaCommit(
        WriteTarget(where, store, None, storage_options),
        entry,
        CommitRequest(commit_properties, post_commithook_properties),
    )
    try:
        commit.run()
    except AlreadyExistsError:
        # Another writer created the table meanwhile.
        if mode == "error":
            raise


def _is_data(path: str) -> bool:
    parts = [part for part in path.split("/") if part != NULL_DIRECTORY]
    hidden = any(part[0] in "_." and "=" not in part for part in parts)
    return path.endswith(".parquet") and not hidden


def _open(store: Store, path: str) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.PythonFile(StoreFile(store, path), mode="r"))
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"corrupt {path}: expected Parquet, found: {error}", path=path) from error


def _joined(table: Schema, found: Schema, path: str) -> Schema:
    types = {field.name: field.type for field in table}
    for field in found:
        known = types.get(field.name, field.type)
        if known != field.type and not is_void(known) and not is_void(field.type):
            raise SchemaMismatchError(
                f"column {field.name!r}: expected {known!r} in every file, found {field.type!r} in {path}",
                column=field.name,
                path=path,
            )
    # A column may be null if it may be in one of the files, or is not there.
    needed = {field.name for field in found if not field.nullable}
    fields = SchemaMerge().schema(table, found).fields
    return Schema([Field(f.name, f.type, f.nullable or f.name not in needed, f.metadata) for f in fields])


def _values(path: str, partitions: Schema, strategy: str | None) -> dict[str, str | None]:
    folders = path.split("/")[:-1]
    fields = partitions.fields
    if strategy is None:
        if any("=" in folder for folder in folders):
            raise InvalidArgumentError(
                f"expected partition_by for files in partitions, found none, but {path}; give it (Generic error: The "
                "schema of partition columns must be provided to convert a Parquet table to a Delta table)",
                path=path,
            )
        return {}
    if len(folders) != len(fields):
        raise InvalidArgumentError(
            f"expected a directory for each of {len(fields)} partition columns, found {path}", path=path
        )
    found: dict[str, str | None] = {}
    for folder, field in zip(folders, fields, strict=True):
        text = folder
        if strategy == "hive":
            column, _, text = folder.partition("=")
            if unquote(column) != field.name:
                raise InvalidArgumentError(f"expected a directory {field.name}=..., found {folder!r}", path=path)
        text = unquote(text)
        if text in (NULL_DIRECTORY, ""):
            found[field.name] = None
            continue
        kind = field.type.to_arrow()
        try:
            found[field.name] = partition_text(_parsed(text, kind))
        except pa.ArrowException as error:
            raise InvalidArgumentError(
                f"column {field.name!r}: expected a directory with a value of {kind}, found {text!r} in {path}",
                column=field.name,
                path=path,
            ) from error
    return found


def _parsed(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value that a folder's name spells; a time without a zone is of UTC, as Spark writes it."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        with suppress(pa.ArrowInvalid):
            return pc.assume_timezone(pa.scalar(text).cast(pa.timestamp(kind.unit)), "UTC").cast(kind)
    return pa.scalar(text).cast(kind)


def _statistics(
    store: Store,
    path: str,
    columns: list[Any],
    state: TableState,
    constraints: Constraints | None,
    values: Mapping[str, str | None],
) -> str:
    parquet = _open(store, path)
    schema = Schema(columns)
    statistics = FileStatistics(statistics_columns(schema.to_plain_arrow(), state.configuration))
    batches = parquet.iter_batches(batch_size=_BATCH_ROWS)
    reader = pa.RecordBatchReader.from_batches(parquet.schema_arrow, batches)
    for batch in conformed(reader, schema):
        statistics.add(batch)
        if constraints is not None:
            whole = batch
            for name, text in values.items():
                kind = state.schema.to_plain_arrow().field(name).type
                value = pa.scalar(text, pa.string()).cast(kind)
                whole = whole.append_column(name, pa.repeat(value, batch.num_rows))
            constraints.enforce(whole)
    return statistics.json()
