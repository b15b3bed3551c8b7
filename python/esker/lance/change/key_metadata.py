"""Checks changes of field metadata: a declared key is set once, to what pylance can open."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..._native.schema import Schema
from ...arrow.paths import names_along
from ...declared_keys import (
    CLUSTERING_KEY,
    PRIMARY_KEY,
    check_primary_key,
    is_in_primary_key,
    names_key,
    place_in,
)
from ...exceptions import InvalidArgumentError
from ...schema import LanceSchema


def check_key_metadata(schema: Schema, path: str, values: Mapping[str, str | None], *, replace: bool) -> None:
    """Refuses a change of a field's metadata that changes the declared primary or clustering key, or makes a bad one.

    Args:
        schema: The table's columns.
        path: The dotted path of the field.
        values: What is set, and removed where it is None.
        replace: Whether all else is removed.

    Raises:
        InvalidArgumentError: There is such a key already, or the new one would be invalid.

    Example:
        `check_key_metadata(manifest.schema, "id", {"lance-schema:unenforced-primary-key": "true"}, replace=False)`
    """
    columns = LanceSchema(schema)
    for key, word in ((PRIMARY_KEY, "primary"), (CLUSTERING_KEY, "clustering")):
        declared = _fields_of(key, columns)
        field = columns.field(path)
        touched = names_key(key, values) or (replace and field is not None and field.id() in declared)
        if touched and declared:
            raise InvalidArgumentError(
                f"the unenforced {word} key is a reserved key and cannot be changed once set, found it in the metadata "
                f"of {path!r}; overwrite the table with another schema",
                column=path,
            )
        if touched and not _declares(key, {name: value for name, value in values.items() if value is not None}):
            raise InvalidArgumentError(
                f"the unenforced {word} key is a reserved key and cannot be set to an invalid value, found "
                f"{dict(values)} for {path!r}",
                column=path,
            )
    arrow = pa.schema(schema)
    if names_key(PRIMARY_KEY, values):
        first, *rest = names_along(path, arrow.names)
        check_primary_key(pa.schema([_declared(arrow.field(first), rest)]))


def _fields_of(key: str, columns: LanceSchema) -> set[int]:
    """The ids of the fields of a declared key."""
    fields = columns.unenforced_primary_key() if key == PRIMARY_KEY else columns.unenforced_clustering_key()
    return {field.id() for field in fields}


def _declares(key: str, metadata: Mapping[str, str]) -> bool:
    """Whether the metadata of a field make it a part of a key."""
    return is_in_primary_key(metadata) if key == PRIMARY_KEY else place_in(key, metadata) is not None


def _declared(field: pa.Field, parts: list[str]) -> pa.Field:
    """A field with nothing in it but the one at a path, which is declared to be the primary key."""
    if not parts:
        return field.with_metadata({PRIMARY_KEY: "true"})
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct([_declared(field.type.field(parts[0]), parts[1:])]))
    return field.with_type(pa.list_(_declared(field.type.field(0), parts[1:])))
