"""The first columns of files of version 0.1: readers find the values of all others by the field id of the first one.

A file whose first column lies in another file from now on could not be read any more, by pylance at least. So its other
columns go with the first one into the new file; where they cannot, the commit is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._native import table as native
from ..._native.schema import Field, Schema
from ...storage_version import version_of_numbers


def ids_of(fields: Sequence[Field]) -> Iterator[int]:
    """The ids of fields and of all fields within them."""
    for field in fields:
        yield field.id
        yield from ids_of(field.children)


def columns_along(schema: Schema, fragment: native.Fragment, columns: Sequence[str]) -> list[str]:
    """The columns that have to be written with some that get a new file in one fragment; none in later file versions.

    Args:
        schema: The table's columns.
        fragment: The fragment.
        columns: The columns with new values.
    """
    ids = {field.name: set(ids_of([field])) for field in schema.fields}
    chosen = {name for name in ids if name in columns}
    while True:
        taken = {id_ for name in chosen for id_ in ids[name]}
        files = [set(file.fields) for file in fragment.files if _loses_first(file, taken)]
        along = {name for name in ids if any(ids[name] & held for held in files)}
        if along <= chosen:
            return [name for name in ids if name in chosen and name not in columns]
        chosen |= along


def _loses_first(file: native.DataFile, taken: set[int]) -> bool:
    if version_of_numbers(file.file_major_version, file.file_minor_version) != "0.1":
        return False
    return any(first in taken for first in file.fields[:1])
