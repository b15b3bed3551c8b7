"""Adds, alters and drops columns: in the schema alone if no value changes, else with new data files per fragment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from ..._native import table as native
from ..._native.expr import Expression
from ..._native.schema import Schema
from ...arrow.incoming import ReaderLike, coerce_reader
from ...arrow.json_columns import stored_schema
from ...arrow.paths import names_along, path_of, quoted
from ...arrow.plain_types import plain_type
from ...declared_keys import check_primary_key
from ...exceptions import InvalidArgumentError, InvalidChangeError, InvalidTypeError
from ...schema import LanceSchema
from ...udf import BatchUDF
from ..fragment_metadata import FragmentMetadata
from ..operation import LanceOperation
from ..scan.options import ScanOptions
from ..scan.scan import Scan
from ..version import TableVersion
from ..write.checking import check_input_schema
from .column_casts import cast_fields, field_at, is_of_type, refuse_overlap
from .column_values import ColumnSource, ExpressionValues, FunctionValues, StreamValues
from .column_writer import ColumnWriter
from .run import commit_change


class _AlterColumnPath(TypedDict):
    path: str


class AlterColumn(_AlterColumnPath, total=False):
    """One alteration for `LanceDataset.alter_columns`: the column's `path`, and its new name, nullability or type."""

    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


NewColumns: TypeAlias = (
    "Mapping[str, str] | BatchUDF | Callable[[pa.RecordBatch], pa.RecordBatch] | pa.Field | Sequence[pa.Field] | "
    "pa.Schema | ReaderLike"
)


def drop_columns(table: TableVersion, columns: list[str]) -> TableVersion:
    """Drops columns and returns the new version; see `LanceDataset.drop_columns`."""

    def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
        schema = manifest.schema.without(columns)
        if not schema.fields:
            raise InvalidArgumentError("cannot drop all columns, expected at least one to remain")
        return LanceOperation.Project(LanceSchema(schema), preserves_nullability=True)

    return commit_change(table, make)


def alter_columns(table: TableVersion, alterations: Sequence[AlterColumn]) -> TableVersion:
    """Changes names, types or nullability of columns and returns the new version; see `LanceDataset.alter_columns`."""
    for alteration in alterations:
        _check_types(alteration)
        unknown = set(alteration) - {"path", "name", "nullable", "data_type"}
        if "path" not in alteration or unknown:
            raise InvalidArgumentError(
                f"expected path and any of name, nullable, data_type, found {sorted(alteration)}"
            )
        if all(value is None for key, value in alteration.items() if key != "path"):
            raise InvalidArgumentError(
                f"at least one of name, nullable, or data_type must be specified, found none: {sorted(alteration)}",
                column=alteration["path"],
            )
    casts = {
        path_of(names_along(it["path"], table.schema.names)): plain_type(type_)
        for it in alterations
        if (type_ := it.get("data_type")) is not None
    }
    refuse_overlap(casts)
    writer = ColumnWriter(table.store)

    def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
        at = table.at(manifest)
        schema = manifest.schema
        required = False
        for alteration in alterations:
            required |= _forbids_nulls(at, alteration)
        replaced = {path: type_ for path, type_ in casts.items() if not is_of_type(field_at(at, path), type_)}
        fragments: list[native.Fragment] | None = None
        if replaced:
            schema, fragments = cast_fields(at, writer, schema, replaced)
        schema = schema.altered([(it["path"], it.get("name"), it.get("nullable")) for it in alterations])
        if any(it.get("nullable") for it in alterations):
            check_primary_key(pa.schema(schema))
        if fragments is None:
            return LanceOperation.Project(LanceSchema(schema), preserves_nullability=not required)
        metadata = [FragmentMetadata.from_native(fragment) for fragment in fragments]
        return LanceOperation.Merge(metadata, LanceSchema(schema), preserves_nullability=not required)

    with writer:
        return commit_change(table, make, staged=writer.staged)


def _check_types(alteration: Any) -> None:
    """Checks that an alteration is a dict whose `data_type`, if it has any, is a type of Arrow.

    Raises:
        InvalidTypeError: It is not.
    """
    if not isinstance(alteration, Mapping):
        raise InvalidTypeError(f"expected an alteration as a dict, found {type(alteration).__name__}")
    type_ = alteration.get("data_type")
    if not isinstance(type_, pa.DataType | None):
        raise InvalidTypeError(f"expected data_type as a pyarrow.DataType, found {type(type_).__name__}")


def add_columns(table: TableVersion, source: ColumnSource) -> TableVersion:
    """Adds columns whose values are computed per fragment, and returns the new version."""
    writer = ColumnWriter(table.store)

    def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
        at = table.at(manifest)
        schema, fragments = writer.add(at, source)
        known = frozenset(at.schema.names)
        nullable = all(field.nullable for field in pa.schema(schema) if field.name not in known)
        metadata = [FragmentMetadata.from_native(fragment) for fragment in fragments]
        return LanceOperation.Merge(metadata, LanceSchema(schema), preserves_nullability=nullable)

    with writer:
        return commit_change(table, make, again=source.again, staged=writer.staged)


def add_transformed(
    table: TableVersion,
    transforms: NewColumns,
    read_columns: list[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
) -> TableVersion:
    """Adds columns and returns the new version; see `LanceDataset.add_columns`."""
    if batch_size is not None and batch_size < 1:
        raise InvalidArgumentError(f"batch_size must be greater than zero, found {batch_size}")
    nulls = _null_columns(transforms, table)
    if nulls is not None:
        return commit_change(table, lambda manifest: _add_nulls(manifest, nulls))
    added = add_columns(table, column_source(transforms, read_columns, reader_schema, batch_size))
    if isinstance(transforms, BatchUDF):
        transforms.forget()
    return added


def column_source(
    transforms: NewColumns, read_columns: list[str] | None, reader_schema: pa.Schema | None, batch_size: int | None
) -> ColumnSource:
    """The values of new columns, for the arguments of `LanceDataset.add_columns`."""
    if isinstance(transforms, Mapping) and all(isinstance(value, str) for value in transforms.values()):
        return ExpressionValues({str(name): str(value) for name, value in transforms.items()}, batch_size)
    if isinstance(transforms, BatchUDF) or callable(transforms):
        function = transforms if isinstance(transforms, BatchUDF) else BatchUDF(transforms)
        return FunctionValues(function, read_columns, batch_size)
    return StreamValues(coerce_reader(transforms, reader_schema))


def _null_columns(transforms: Any, table: TableVersion) -> pa.Schema | None:
    """The new columns, if they are null in all rows, whatever the table holds."""
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    if isinstance(transforms, Sequence) and transforms and all(isinstance(it, pa.Field) for it in transforms):
        return pa.schema(list(transforms))
    if isinstance(transforms, Mapping) and all(isinstance(it, str) for it in transforms.values()):
        schema = table.described_schema
        expressions = {name: Expression.parse_sql(sql, schema) for name, sql in transforms.items()}
        if all(_is_null(expression) for expression in expressions.values()):
            return pa.schema([pa.field(name, pa.field(it).type) for name, it in expressions.items()])
    return None


def _is_null(expression: Expression) -> bool:
    if expression.columns or pa.field(expression).type == pa.null():
        return False
    value = pa.array(expression.evaluate(pa.record_batch([pa.array([True])], ["row"])))
    return bool(value.null_count == 1)


def _add_nulls(manifest: native.Manifest, nulls: pa.Schema) -> LanceOperation.BaseOperation:
    for field in nulls:
        if not field.nullable:
            raise InvalidArgumentError(
                f"expected nullable fields for columns of nulls, found {field.name!r} not null", column=field.name
            )
    nulls = stored_schema(nulls)
    check_input_schema(nulls)
    check_primary_key(nulls)
    new = Schema.from_arrow(nulls, first_id=manifest.max_field_id + 1)
    fragments = [FragmentMetadata.from_native(fragment) for fragment in manifest.fragments()]
    return LanceOperation.Merge(fragments, LanceSchema(manifest.schema.extended(new)), preserves_nullability=True)


def _forbids_nulls(table: TableVersion, alteration: AlterColumn) -> bool:
    """Whether the column becomes non-nullable; refused if it holds nulls."""
    field = table.manifest.schema.find(alteration["path"])
    if alteration.get("nullable") is not False or field is None or not field.nullable:
        return False
    path = ".".join(quoted(part) for part in names_along(alteration["path"], table.schema.names))
    if Scan(table, ScanOptions(filter=f"{path} IS NULL")).count_rows():
        raise InvalidChangeError(
            f"expected no nulls in column {alteration['path']!r} to make it not nullable, found some; fill them first",
            column=alteration["path"],
        )
    return True
