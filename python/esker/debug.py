"""What a table's metadata holds, as text: pylance's `lance.debug`.

The text has the shape of pylance's, for people; programs read `LanceDataset.lance_schema`, `FragmentMetadata`,
`LanceDataset.read_transaction` and their siblings instead.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ._native.table import DataFile, Fragment
from .fragment import FragmentMetadata, LanceFragment
from .lance.handle import DatasetHandle
from .schema import LanceField, LanceSchema

__all__ = ["format_fragment", "format_manifest", "format_schema", "list_transactions"]

_INDENT = "    "


class _Word(str):
    """A text that stands without quotes."""


@dataclasses.dataclass(frozen=True)
class _Named:
    """A name with values by name, or with one value alone."""

    name: str
    values: Any


def format_schema(dataset: DatasetHandle) -> str:
    """The columns of a table with their field ids.

    Args:
        dataset: The table.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.debug import format_schema
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-debug-schema")
        >>> format_schema(dataset).splitlines()[0]
        'Schema {'
    """
    return _text(_schema(LanceSchema(dataset._table.manifest.schema)))


def format_manifest(dataset: DatasetHandle) -> str:
    """All of a version's manifest.

    Args:
        dataset: The table at the version.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.debug import format_manifest
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-debug-manifest")
        >>> format_manifest(dataset).startswith("Manifest {")
        True
    """
    manifest = dataset._table.manifest
    writer = manifest.writer_version
    version = _Word("V" + manifest.data_storage_version.replace(".", "_"))
    values = {
        "schema": _schema(LanceSchema(manifest.schema)),
        "version": manifest.version,
        "branch": _optional(manifest.branch),
        "writer_version": _optional(writer and _Named("WriterVersion", {"library": writer[0], "version": writer[1]})),
        "fragments": [_fragment(fragment) for fragment in manifest.fragments()],
        "timestamp_nanos": manifest.timestamp_ns,
        "reader_feature_flags": manifest.reader_feature_flags,
        "writer_feature_flags": manifest.writer_feature_flags,
        "max_fragment_id": _optional(manifest.max_fragment_id),
        "transaction_file": _optional(manifest.transaction_file),
        "data_storage_format": _Named("DataStorageFormat", {"file_format": "lance", "version": version}),
        "config": dict(manifest.config),
        "table_metadata": dict(manifest.table_metadata),
    }
    return _text(_Named("Manifest", values))


def format_fragment(fragment: LanceFragment | FragmentMetadata, dataset: DatasetHandle) -> str:
    """A fragment with the columns that each of its files holds.

    Args:
        fragment: The fragment, or its metadata.
        dataset: Its table.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.debug import format_fragment
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-debug-fragment")
        >>> format_fragment(dataset.get_fragments()[0], dataset).splitlines()[1]
        '    id: 0,'
    """
    metadata = fragment.metadata if isinstance(fragment, LanceFragment) else fragment
    fields = LanceSchema(dataset._table.manifest.schema).fields()
    files = [
        _Named(
            "PrettyPrintableDataFile",
            {
                "path": file.path,
                "fields": file.fields,
                "column_indices": file.column_indices,
                "schema": _fields(_held(fields, set(file.fields))),
                "major_version": file.file_major_version,
                "minor_version": file.file_minor_version,
            },
        )
        for file in metadata.files
    ]
    deletion = metadata.deletion_file
    values = {
        "id": metadata.id,
        "files": files,
        "deletion_file": _optional(deletion and _Named("DeletionFile", deletion.asdict())),
        "physical_rows": _optional(metadata.physical_rows),
    }
    return _text(_Named("PrettyPrintableFragment", values))


def list_transactions(dataset: DatasetHandle, max_transactions: int = 10) -> list[str]:
    """The transactions of the newest versions up to this one, newest first; versions without one are left out.

    Args:
        dataset: The table.
        max_transactions: How many versions at most.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.debug import list_transactions
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-debug-transactions")
        >>> len(list_transactions(dataset))
        1
    """
    found = []
    log = dataset._table.log
    listing = log.listing()
    numbers = [number for number in listing.versions if number <= dataset._table.number]
    for number in numbers[::-1][:max_transactions]:
        transaction = log.transaction(log.manifest(number, listing.scheme))
        if transaction is None:
            continue
        operation = transaction.decoded().fields()
        values = {
            "read_version": transaction.read_version,
            "uuid": transaction.uuid,
            "operation": _Named(transaction.operation, {name: _value(value) for name, value in operation.items()}),
            "transaction_properties": dict(transaction.properties),
        }
        found.append(_text(_Named("Transaction", values)))
    return found


def _held(fields: Iterable[LanceField], ids: set[int]) -> list[LanceField]:
    """The columns of which a file holds a field."""

    def holds(field: LanceField) -> bool:
        return field.id() in ids or any(map(holds, field.children()))

    return [field for field in fields if holds(field)]


def _schema(schema: LanceSchema) -> _Named:
    return _fields(schema.fields(), schema.to_pyarrow().metadata)


def _fields(fields: Iterable[LanceField], metadata: Mapping[bytes, bytes] | None = None) -> _Named:
    decoded = {key.decode(): value.decode("utf-8", "replace") for key, value in (metadata or {}).items()}
    return _Named("Schema", {"fields": [_field(field, -1) for field in fields], "metadata": decoded})


def _field(field: LanceField, parent: int) -> _Named:
    values = {
        "name": field.name(),
        "id": field.id(),
        "parent_id": parent,
        "logical_type": _Named("LogicalType", field.logical_type()),
        "metadata": field.metadata,
        "nullable": field.nullable(),
        "children": [_field(child, field.id()) for child in field.children()],
    }
    return _Named("Field", values)


def _fragment(fragment: Fragment) -> _Named:
    values = {
        "id": fragment.id,
        "files": [_file(file) for file in fragment.files],
        "deletion_file": _optional(fragment.deletion_file),
        "physical_rows": _optional(fragment.physical_rows),
    }
    return _Named("Fragment", values)


def _file(file: DataFile) -> _Named:
    values = {
        "path": file.path,
        "fields": file.fields,
        "column_indices": file.column_indices,
        "file_major_version": file.file_major_version,
        "file_minor_version": file.file_minor_version,
        "file_size_bytes": _optional(file.file_size_bytes),
        "base_id": _optional(file.base_id),
    }
    return _Named("DataFile", values)


def _optional(value: Any) -> Any:
    return None if value is None else _Named("Some", value)


def _value(value: Any) -> Any:
    """A value of an operation, with fragments and files spelled out."""
    if isinstance(value, Fragment):
        return _fragment(value)
    if isinstance(value, DataFile):
        return _file(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _value(item) for key, item in value.items()}
    return value


def _text(value: Any, depth: int = 0) -> str:
    """A value as indented text: a line for each value by name and each item."""
    inner, outer = _INDENT * (depth + 1), _INDENT * depth
    if isinstance(value, _Named):
        if isinstance(value.values, dict):
            lines = [f"{inner}{name}: {_text(held, depth + 1)},\n" for name, held in value.values.items()]
            return f"{value.name} {{\n{''.join(lines)}{outer}}}"
        return f"{value.name}(\n{inner}{_text(value.values, depth + 1)},\n{outer})"
    if isinstance(value, list):
        items = [f"{inner}{_text(item, depth + 1)},\n" for item in value]
        return f"[\n{''.join(items)}{outer}]" if items else "[]"
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {_text(held, depth + 1)},\n" for key, held in value.items()]
        return f"{{\n{''.join(items)}{outer}}}" if items else "{}"
    if isinstance(value, bool):
        return str(value).lower()
    is_quoted = isinstance(value, str) and not isinstance(value, _Word)
    return json.dumps(value, ensure_ascii=False) if is_quoted else str(value)
