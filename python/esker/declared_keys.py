"""Keys that a schema declares in the metadata of its fields: the primary key, and the clustering key.

Nobody enforces them. A primary key is what upserts go by, and pylance opens no table that has one with nulls in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa

from .exceptions import InvalidArgumentError

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
"""The metadata key of fields of the primary key: true, 1 or yes. With `:position` behind it, their place in the key."""
CLUSTERING_KEY = "lance-schema:unenforced-clustering-key"
"""Likewise of the clustering key, which has places only."""
_PLACE = re.compile(r"\+?[0-9]+")


def place_in(key: str, metadata: Mapping[str, str]) -> int | None:
    """The place of a field in a key, None if its metadata tell none. 0 is behind all others.

    Example:
        >>> from esker.declared_keys import PRIMARY_KEY, place_in
        >>> place_in(PRIMARY_KEY, {"lance-schema:unenforced-primary-key:position": "2"})
        2
    """
    text = metadata.get(f"{key}:position", "")
    place = int(text) if _PLACE.fullmatch(text) else None
    return None if place is None or place >= 2**32 else place


def is_in_primary_key(metadata: Mapping[str, str]) -> bool:
    """Whether the metadata of a field say that it is part of the primary key."""
    return metadata.get(PRIMARY_KEY, "").lower() in ("true", "1", "yes") or place_in(PRIMARY_KEY, metadata) is not None


def names_key(key: str, names: Iterable[str]) -> bool:
    """Whether one of some metadata keys says something of a key."""
    return any(name in (key, f"{key}:position") for name in names)


def check_primary_key(schema: pa.Schema) -> None:
    """Refuses a primary key that has nulls, or is no plain value: pylance could not open the table.

    Args:
        schema: Columns, or new ones.

    Raises:
        InvalidArgumentError: A field of the key is nullable, holds fields, or lies in what is nullable, or in a list.

    Example:
        >>> import pyarrow as pa
        >>> from esker.declared_keys import PRIMARY_KEY, check_primary_key
        >>> check_primary_key(pa.schema([pa.field("id", pa.int64(), False, metadata={PRIMARY_KEY: "true"})]))
    """
    for field in schema:
        _check(field, field.name, nullable=False, in_list=False)


def _check(field: pa.Field, path: str, *, nullable: bool, in_list: bool) -> None:
    type_ = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    nullable = nullable or field.nullable
    children = _children(type_)
    if is_in_primary_key(_text(field)):
        for wrong, reason in (
            (children, "must be a leaf"),
            (nullable, "and all its ancestors must not be nullable"),
            (in_list, "must not be in a list type"),
        ):
            if wrong:
                raise InvalidArgumentError(
                    f"Primary key column {reason}, found {path!r} of type {field.type}"
                    f"{', nullable' if field.nullable else ''}; pylance could not open the table",
                    column=path,
                )
    in_list = in_list or not pa.types.is_struct(type_)
    for child in children:
        _check(child, f"{path}.{child.name}", nullable=nullable, in_list=in_list)


def _children(type_: pa.DataType) -> list[pa.Field]:
    """The fields that a type has in a table: none of vectors of plain values and of dictionaries."""
    types = pa.types
    if types.is_dictionary(type_) or (types.is_fixed_size_list(type_) and not types.is_nested(type_.value_type)):
        return []
    return [type_.field(index) for index in range(type_.num_fields)]


def _text(field: pa.Field) -> dict[str, str]:
    return {key.decode("utf-8", "replace"): it.decode("utf-8", "replace") for key, it in (field.metadata or {}).items()}
