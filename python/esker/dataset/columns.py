"""Columns that come, go and change: as metadata where no value changes, as files beside the old where one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

import pyarrow as pa

from .._native import table as native
from .._native.expr import Expression
from ..arrow.incoming import ReaderLike, coerce_reader
from ..arrow.plain_types import plain_type
from ..exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..fragment import FragmentMetadata
from ..lance.change.new_columns import (
    ColumnSource,
    ColumnWriter,
    ExpressionValues,
    FunctionValues,
    JoinedValues,
    StreamValues,
)
from ..lance.change.run import commit_change
from ..lance.operation import LanceOperation
from ..lance.write.staging import check_input_schema
from ..schema import LanceSchema
from ..udf import BatchUDF

if TYPE_CHECKING:
    from . import LanceDataset


EXTENSION_NAME = b"ARROW:extension:name"


class _AlterColumnPath(TypedDict):
    path: str


class AlterColumn(_AlterColumnPath, total=False):
    """What `LanceDataset.alter_columns` changes of one column: `path`, and what it shall be."""

    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


NewColumns: TypeAlias = (
    "Mapping[str, str] | BatchUDF | Callable[[pa.RecordBatch], pa.RecordBatch] | pa.Field | Sequence[pa.Field] | "
    "pa.Schema | ReaderLike"
)


class ColumnsApi:
    """What `LanceDataset` knows of changes to its columns."""

    def drop_columns(self, columns: list[str]) -> None:
        """Drops columns. Their values stay in the files, and in older versions.

        Args:
            columns: Dotted paths.

        Raises:
            InvalidArgumentError: One that the table does not have, or all of them.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1], "old": [2]}), "memory://doc-drop")
            >>> dataset.drop_columns(["old"])
            >>> dataset.schema.names
            ['id']
        """

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            schema = manifest.schema.without(columns)
            if not schema.fields:
                raise InvalidArgumentError("cannot drop all columns, expected one at least to stay")
            return LanceOperation.Project(LanceSchema(schema), preserves_nullability=True)

        if columns:
            commit_change(self._dataset, make)

    def alter_columns(self, *alterations: AlterColumn) -> None:
        """Renames columns, lets them be null or not, and changes their types.

        A new type makes new files of the column, and drops the indices on it; names and nullability change no file.

        Args:
            *alterations: Dicts of a column's dotted `path`, and of `name`, `nullable`, `data_type` what changes.

        Raises:
            InvalidArgumentError: A column that the table does not have, a name that is taken, nulls in a column that
                shall have none.
            SchemaMismatchError: A value that the new type cannot hold.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-alter")
            >>> dataset.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
            >>> dataset.schema
            key: int32
        """
        for alteration in alterations:
            unknown = set(alteration) - {"path", "name", "nullable", "data_type"}
            if "path" not in alteration or unknown:
                raise InvalidArgumentError(
                    f"expected path and any of name, nullable, data_type, found {sorted(alteration)}"
                )
        casts = {it["path"]: plain_type(type_) for it in alterations if (type_ := it.get("data_type")) is not None}
        writer = ColumnWriter(self._dataset._store)

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            dataset = self._dataset._with_manifest(manifest)
            schema = manifest.schema
            required = False
            for alteration in alterations:
                required |= _forbids_nulls(dataset, alteration)
            replaced = {
                path: type_ for path, type_ in casts.items() if not _is_of_type(_column_at(dataset, path), type_)
            }
            fragments: list[native.Fragment] | None = None
            if replaced:
                schema, fragments = _cast_columns(dataset, writer, schema, replaced)
            for alteration in alterations:
                schema = schema.altered(
                    alteration["path"], name=alteration.get("name"), nullable=alteration.get("nullable")
                )
            if fragments is None:
                return LanceOperation.Project(LanceSchema(schema), preserves_nullability=not required)
            metadata = [FragmentMetadata.from_native(fragment) for fragment in fragments]
            return LanceOperation.Merge(metadata, LanceSchema(schema), preserves_nullability=not required)

        with writer:
            commit_change(self._dataset, make, staged=writer.staged)

    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Adds columns behind those of the table; existing files stay as they are.

        Args:
            transforms: SQL expressions by name; a function from batches to batches of as many rows (see
                `esker.batch_udf`); a field, fields or a schema of columns that are null throughout, which writes no
                file; or the values themselves, in the order of the table's rows.
            read_columns: The columns that the function gets, all by default.
            reader_schema: Column types, where the values do not say.
            batch_size: Rows per batch that the function gets, at most.

        Raises:
            InvalidArgumentError: A column that is there already, an expression that does not parse, or values that are
                fewer or more than the table's rows.
            CommitConflictError: Another writer added rows meanwhile, and the values cannot be read a second time.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-add")
            >>> dataset.add_columns({"twice": "id * 2"})
            >>> dataset.to_table().to_pylist()
            [{'id': 1, 'twice': 2}, {'id': 2, 'twice': 4}]
        """
        nulls = _null_columns(transforms, self._dataset)
        if nulls is not None:
            commit_change(self._dataset, lambda manifest: _add_nulls(manifest, nulls))
            return
        if isinstance(transforms, Mapping) and not transforms:
            return
        self._add(column_source(transforms, read_columns, reader_schema, batch_size))
        if isinstance(transforms, BatchUDF):
            transforms.forget()

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Adds the columns of other data, row by row where the keys are equal; null where there is no such key.

        The other data are held in memory. Of several rows under one key the last one counts. Keys of different types
        match where their values are equal.

        Args:
            data_obj: The other data: whatever a write takes.
            left_on: The key's column in the table; `_rowid` and `_rowaddr` may be.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, where the data do not say.

        Raises:
            InvalidArgumentError: A column that is there already, or no such key.
            SchemaMismatchError: Keys that cannot be compared, such as text and numbers.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-merge")
            >>> dataset.merge(pa.table({"id": [2], "name": ["b"]}), "id")
            >>> dataset.to_table()["name"].to_pylist()
            [None, 'b']
        """
        other = coerce_reader(data_obj, schema).reader().read_all()
        self._add(JoinedValues(other, left_on, right_on or left_on))

    def _add(self, source: ColumnSource) -> None:
        writer = ColumnWriter(self._dataset._store)

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            dataset = self._dataset._with_manifest(manifest)
            schema, fragments = writer.add(dataset, source)
            nullable = all(
                field.nullable for field in pa.schema(schema) if field.name not in dataset._table_schema.names
            )
            metadata = [FragmentMetadata.from_native(fragment) for fragment in fragments]
            return LanceOperation.Merge(metadata, LanceSchema(schema), preserves_nullability=nullable)

        with writer:
            commit_change(self._dataset, make, again=source.again, staged=writer.staged)

    @property
    def _dataset(self) -> LanceDataset:
        return cast("LanceDataset", self)


def column_source(
    transforms: NewColumns, read_columns: list[str] | None, reader_schema: pa.Schema | None, batch_size: int | None
) -> ColumnSource:
    """Where the values of new columns come from. See `ColumnsApi.add_columns` for the arguments."""
    if isinstance(transforms, Mapping) and all(isinstance(value, str) for value in transforms.values()):
        return ExpressionValues({str(name): str(value) for name, value in transforms.items()}, batch_size)
    if isinstance(transforms, BatchUDF) or callable(transforms):
        function = transforms if isinstance(transforms, BatchUDF) else BatchUDF(transforms)
        return FunctionValues(function, read_columns, batch_size)
    return StreamValues(coerce_reader(transforms, reader_schema))


def _null_columns(transforms: Any, dataset: LanceDataset) -> pa.Schema | None:
    """The new columns, if they are null throughout whatever the table holds."""
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    if isinstance(transforms, Sequence) and transforms and all(isinstance(it, pa.Field) for it in transforms):
        return pa.schema(list(transforms))
    if isinstance(transforms, Mapping) and transforms and all(isinstance(it, str) for it in transforms.values()):
        table = dataset._described_schema
        expressions = {name: Expression.parse_sql(sql, table) for name, sql in transforms.items()}
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
    check_input_schema(nulls)
    new = native.Schema.from_arrow(nulls, first_id=manifest.max_field_id + 1)
    fragments = [FragmentMetadata.from_native(fragment) for fragment in manifest.fragments()]
    return LanceOperation.Merge(fragments, LanceSchema(manifest.schema.extended(new)), preserves_nullability=True)


def _forbids_nulls(dataset: LanceDataset, alteration: AlterColumn) -> bool:
    """Whether the column becomes required; refused if it holds nulls."""
    field = dataset._manifest.schema.find(alteration["path"])
    if alteration.get("nullable") is not False or field is None or not field.nullable:
        return False
    path = ".".join(f"`{part}`" for part in alteration["path"].split("."))
    if dataset._scan(filter=f"{path} IS NULL").count_rows():
        raise InvalidArgumentError(
            f"expected no nulls in column {alteration['path']!r} to make it not nullable, found some; fill them first",
            column=alteration["path"],
        )
    return True


def _column_at(dataset: LanceDataset, path: str) -> pa.Field:
    if path in dataset._table_schema.names:
        return dataset._table_schema.field(path)
    if dataset._manifest.schema.find(path) is None:
        raise InvalidArgumentError(
            f"expected a column of the table, found {path!r}, which it does not have", column=path
        )
    raise UnsupportedError(
        f"expected a column of its own to change the type of, found {path!r} within another one; add a new column",
        column=path,
    )


def _is_of_type(column: pa.Field, type_: pa.DataType) -> bool:
    """Whether a column has a type already. The storage type of an extension is another one, known or not."""
    if isinstance(column.type, pa.BaseExtensionType) or isinstance(type_, pa.BaseExtensionType):
        return bool(column.type == type_)
    return bool(column.type == type_) and EXTENSION_NAME not in (column.metadata or {})


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    values = column.storage if isinstance(column, pa.ExtensionArray) else column
    if not isinstance(type_, pa.BaseExtensionType):
        return values.cast(type_)
    return pa.ExtensionArray.from_storage(type_, values.cast(type_.storage_type))


def _cast_columns(
    dataset: LanceDataset, writer: ColumnWriter, schema: native.Schema, types: dict[str, pa.DataType]
) -> tuple[native.Schema, list[native.Fragment]]:
    """The schema with new fields in place of those whose type changes, and the fragments with their files."""
    fields = []
    for path, type_ in types.items():
        old = schema.find(path)
        if old is None:
            raise InvalidArgumentError(f"expected a column of the table, found {path!r}", column=path)
        kept = {key: value for key, value in (old.metadata or {}).items() if not key.startswith("ARROW:extension:")}
        fields.append(pa.field(old.name, type_, old.nullable, metadata=kept or None))
    check_input_schema(pa.schema(fields))

    def values(fragment_of: LanceDataset, fragment: Any) -> Iterator[pa.RecordBatch]:
        for batch in fragment.to_batches(columns=list(types), with_row_address=True):
            columns = []
            for field in fields:
                try:
                    columns.append(_cast(batch[field.name], field.type))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise SchemaMismatchError(
                        f"column {field.name!r} cannot become {field.type}: {error}", column=field.name
                    ) from error
            yield pa.RecordBatch.from_arrays([*columns, batch["_rowaddr"]], names=[*types, "_rowaddr"])

    new = native.Schema.from_arrow(pa.schema(fields), first_id=dataset._manifest.max_field_id + 1)
    fragments = writer.write(dataset, new, values)
    for path, field in zip(types, new.fields, strict=True):
        schema = schema.replaced(path, field)
    return schema, fragments
