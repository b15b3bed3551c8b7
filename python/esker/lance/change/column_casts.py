"""New types for columns and for fields within them: a new file per fragment with the values, under new field ids.

```
struct a: {b, c}, of which a.b is cast       ──> a file with a: {b} alone, whose structs are null where a is null
list l: [{x, y}], of which l.item.x is cast  ──> a file with l: [{x}] alone, whose lists are as long as those of l
```

From 2.1 on, a file names only fields that hold values. In 0.1 and 2.0 it names the structs and lists around them too,
which it takes over from the file that had them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from ..._native import table as native
from ..._native.schema import Field, Schema
from ...arrow.json_columns import has_json_text, has_jsonb, is_json_text, json_within, stored_batch, stored_schema
from ...arrow.nested import mask_of, offsets_of, struct_of, without_bitmap
from ...arrow.paths import names_along, path_of
from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..scan.options import ScanOptions
from ..scan.scan import Scan
from ..system_columns import ROW_ADDRESS
from ..version import TableVersion
from ..write.checking import check_new_columns
from .column_writer import ColumnWriter

EXTENSION_NAME = b"ARROW:extension:name"


def field_at(table: TableVersion, path: str) -> pa.Field:
    """The field at a dotted path, whose type may change: a column, or a field within structs and lists.

    Raises:
        InvalidArgumentError: The table has no such field.
        UnsupportedError: It lies within a fixed-size list, a map or an extension type; or, in files of 2.0, within a
            struct, whose fields no reader joins from two files.
    """
    schema = table.schema
    if table.manifest.schema.find(path) is None:
        raise InvalidArgumentError(
            f"expected a column of the table to alter, found {path!r}, which it does not have", column=path
        )
    head, *rest = names_along(path, schema.names)
    field = schema.field(head)
    version = table.manifest.storage_version_to_write
    for name in rest:
        if _is_list(field.type):
            field = field.type.value_field
        elif pa.types.is_struct(field.type):
            if version == "2.0":
                raise UnsupportedError(
                    f"a field within a struct gets a new type in tables of file version 2.1 and later, found {path!r} "
                    "in a table of version 2.0; write the table anew, or add a new column",
                    column=path,
                )
            field = field.type.field(name)
        else:
            raise UnsupportedError(
                f"expected a column, or a field of structs and lists, to change the type of, found {path!r} within "
                f"{field.type}; give the whole column a new type, or add a new column",
                column=path,
            )
    return field


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def is_of_type(column: pa.Field, type_: pa.DataType) -> bool:
    """Whether a column has a type already. An extension type and its storage type are different types."""
    given = pa.schema([column.with_type(type_).remove_metadata()])
    if has_jsonb(pa.schema([column])) or has_json_text(given):
        stored = stored_schema(given).field(0)
        return bool(column.type == stored.type) and json_within(column) == json_within(stored)
    if isinstance(column.type, pa.BaseExtensionType) or isinstance(type_, pa.BaseExtensionType):
        return bool(column.type == type_)
    return bool(column.type == type_) and EXTENSION_NAME not in (column.metadata or {})


def cast_fields(
    table: TableVersion, writer: ColumnWriter, schema: Schema, types: Mapping[str, pa.DataType]
) -> tuple[Schema, list[native.Fragment]]:
    """The schema with new fields in place of those whose type changes, and the fragments with their files.

    Args:
        table: The version whose values are read.
        writer: Writes the files.
        schema: Its schema.
        types: The new types, by dotted path; none lies within another one.

    Raises:
        InvalidArgumentError: A field is not there.
        SchemaMismatchError: A value does not fit, such as a text that is no JSON.
    """
    fields = []
    for path, type_ in types.items():
        old = schema.find(path)
        if old is None:
            raise InvalidArgumentError(f"expected a column of the table to cast, found {path!r}", column=path)
        if has_jsonb(pa.schema([field_at(table, path)])):
            raise UnsupportedError(
                f"column {path!r} is JSON or holds JSON, whose stored bytes are no values of type {type_}; add a "
                "column with what is wanted of it, such as json_get_string(...)",
                column=path,
                type=str(type_),
            )
        kept = {key: value for key, value in (old.metadata or {}).items() if not key.startswith("ARROW:extension:")}
        stored = stored_schema(pa.schema([pa.field(old.name, type_, old.nullable, metadata=kept or None)]))
        fields.append(stored.field(0))
    for field in fields:
        check_new_columns(pa.schema([field]))
    first_id = table.manifest.max_field_id + 1
    for path, field in zip(types, fields, strict=True):
        made = Schema.from_arrow(pa.schema([field]), first_id=first_id)
        first_id = made.max_field_id + 1
        schema = schema.replaced(path, made.fields[0])
    renewed = _only(schema, types)
    target = pa.schema(renewed)

    def values(at: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        ids = tuple(fragment.id for fragment in fragments)
        options = ScanOptions(columns=target.names, fragment_ids=ids, with_row_address=True)
        for batch in Scan(at, options).to_batches():
            columns = [_cast_at(batch[field.name], field.type, path_of([field.name]), types) for field in target]
            yield pa.RecordBatch.from_arrays([*columns, batch[ROW_ADDRESS]], names=[*target.names, ROW_ADDRESS])

    return schema, writer.write(table, renewed, values)


def refuse_overlap(paths: Iterable[str]) -> None:
    """Checks that no field among those whose types change lies within another one.

    Raises:
        InvalidArgumentError: One does.

    Example:
        `refuse_overlap(["a", "s.x"])`
    """
    for path in paths:
        for other in paths:
            if other.startswith(f"{path}."):
                raise InvalidArgumentError(
                    f"expected new types for fields apart from each other, found {path!r} and {other!r} within it",
                    column=other,
                )


def _only(schema: Schema, paths: Iterable[str]) -> Schema:
    """The schema with nothing but the fields at these paths and the structs and lists that they lie in."""
    wanted = set(paths)
    others = []

    def visit(fields: Iterable[Field], parent: str) -> None:
        for field in fields:
            path = f"{parent}{path_of([field.name])}"
            if path in wanted:
                continue
            if any(it.startswith(f"{path}.") for it in wanted):
                visit(field.children, f"{path}.")
            else:
                others.append(path)

    visit(schema.fields, "")
    return schema.without(others)


def _cast_at(values: pa.Array, type_: pa.DataType, path: str, types: Mapping[str, pa.DataType]) -> pa.Array:
    """The values as a type, of which only the fields in `types` are cast, and only what lies around them is kept."""
    if path not in types and _is_list(values.type):
        item = type_.value_field
        items = _cast_at(values.flatten(), item.type, f"{path}.{path_of([item.name])}", types)
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        offsets = without_bitmap(offsets_of(values).cast(pa.int32() if pa.types.is_list(type_) else pa.int64()))
        return kind.from_arrays(offsets, items, type=type_, mask=mask_of(values))
    if path not in types:
        # `field` leaves out the offset and the nulls of the struct, `flatten` does not.
        found = dict(
            zip((values.type.field(i).name for i in range(values.type.num_fields)), values.flatten(), strict=True)
        )
        parts = [
            _cast_at(found[field.name], field.type, f"{path}.{path_of([field.name])}", types)
            for field in (type_.field(i) for i in range(type_.num_fields))
        ]
        return struct_of(parts, type_, values)
    try:
        return _cast(values, types[path], path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidArgumentError) as error:
        told = f"column {path!r} cannot become {types[path]}: {error}"
        beyond = re.search(r"Integer value (\S+) not in range", str(error))
        if beyond is not None:
            # In pylance's words, which programs look for.
            told += f". Can't cast value {beyond[1]} to type {str(type_).capitalize()}"
        raise SchemaMismatchError(told, column=path) from error


def _cast(column: pa.Array, type_: pa.DataType, path: str) -> pa.Array:
    values = column.storage if isinstance(column, pa.ExtensionArray) else column
    if not isinstance(type_, pa.BaseExtensionType):
        # JSON within structs and lists: what was cast to it is text.
        return stored_batch(pa.record_batch([values.cast(type_)], names=[path])).column(0)
    if is_json_text(type_):
        texts = pa.ExtensionArray.from_storage(type_, values.cast(type_.storage_type))
        return stored_batch(pa.record_batch([texts], names=[path])).column(0)
    return pa.ExtensionArray.from_storage(type_, values.cast(type_.storage_type))
