"""The columns of a stream in one version of a Lance table: found by their field ids, as a version may have other names.

A column that has another id, but its name, is the same one after a cast, unless there was a version without it between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from esker._native.schema import Field, Schema
from esker.lance.system_columns import SYSTEM_COLUMNS

__all__ = ["VersionColumns", "first_renamed", "matched"]


@dataclass(frozen=True)
class VersionColumns:
    """The columns with which a query was started, in a version.

    Args:
        known: The columns with which it was started.
        there: Those of the version.
        apart: Columns of the version that were dropped since; others were added under their names.
    """

    known: Schema
    there: Schema
    apart: frozenset[str] = frozenset()

    @cached_property
    def _found(self) -> dict[str, Field]:
        return matched(self.known.fields, self.there.fields, self.apart)

    @cached_property
    def _fields(self) -> dict[str, Field]:
        return {field.name: field for field in self.known.fields}

    def has(self, name: str) -> bool:
        """Whether the version has a column of the stream."""
        return name in self._found or name in SYSTEM_COLUMNS

    def is_as_known(self, name: str) -> bool:
        """Whether the version has a column under the same name, and its fields under theirs."""
        found = self._found.get(name)
        if found is None:
            return name in SYSTEM_COLUMNS
        return found.name == name and first_renamed([self._fields[name]], [found]) is None

    def renamed(self, name: str) -> tuple[str, str | None]:
        """The path of what has another name within a column, or of the column; and that name, None if it is gone."""
        found = self._found.get(name)
        within = None if found is None else first_renamed([self._fields[name]], [found])
        return (name, None) if within is None else within

    def names(self, wanted: Sequence[str]) -> list[str]:
        """What the version calls columns that it has."""
        return [self._found[name].name if name in self._found else name for name in wanted]

    def shown(self, batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
        """The columns of a batch of the version that are wanted, under the names of the stream."""
        arrays = []
        for name, there in zip(wanted, self.names(wanted), strict=True):
            array = batch.column(there)
            if name in self._found:
                array = _as(array, _renamed(array.type, self._found[name], self._fields[name]))
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, names=list(wanted)) if arrays else batch.select([])


def matched(known: Sequence[Field], there: Sequence[Field], apart: Collection[str] = ()) -> dict[str, Field]:
    """The field of `there` for each of `known`, by its name: by the id, or by the name if the id was given anew.

    Args:
        known: Fields of one level.
        there: Those of another version of it.
        apart: Names that stand for other fields there.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import matched
        >>> known = Schema.from_arrow(pa.schema({"b": pa.int8()}))
        >>> there = known.altered([("b", "a", None)])
        >>> {name: field.name for name, field in matched(known.fields, there.fields).items()}
        {'b': 'a'}
    """
    by_id = {field.id: field for field in there}
    by_name = {field.name: field for field in there}
    ids = {field.id for field in known}
    found: dict[str, Field] = {}
    for field in known:
        same = by_id.get(field.id)
        if same is None and field.name not in apart:
            same = by_name.get(field.name)
            same = None if same is None or same.id in ids else same
        if same is not None:
            found[field.name] = same
    return found


def first_renamed(known: Sequence[Field], there: Sequence[Field]) -> tuple[str, str] | None:
    """The path of the first field that has another name there, and that name; None if all have theirs.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import first_renamed
        >>> known = Schema.from_arrow(pa.schema({"s": pa.struct({"p": pa.int8()})}))
        >>> first_renamed(known.fields, known.altered([("s.p", "q", None)]).fields)
        ('s.p', 'q')
    """
    fields = {field.name: field for field in known}
    for name, found in matched(known, there).items():
        if found.name != name:
            return name, found.name
        within = first_renamed(fields[name].children, found.children)
        if within is not None:
            return f"{name}.{within[0]}", within[1]
    return None


def _renamed(kind: Any, there: Field, known: Field) -> Any:
    """A type of the version with the names of the stream; fields that the stream does not know have names of nobody."""
    if isinstance(kind, pa.BaseExtensionType) or kind.num_fields != len(there.children):
        return kind
    if pa.types.is_struct(kind):
        names = {field.id: name for name, field in matched(known.children, there.children).items()}
        fields = {field.name: field for field in known.children}
        parts = []
        for index, child in enumerate(there.children):
            part = kind.field(index)
            name = names.get(child.id)
            if name is None:
                parts.append(part.with_name(f"\0{child.id}"))
            else:
                parts.append(part.with_name(name).with_type(_renamed(part.type, child, fields[name])))
        return pa.struct(parts)
    if len(known.children) != 1:
        return kind
    item, known_item = there.children[0], known.children[0]
    if pa.types.is_map(kind):
        entries = _renamed(pa.struct([kind.key_field, kind.item_field]), item, known_item)
        return pa.map_(entries.field(0), entries.field(1), keys_sorted=kind.keys_sorted)
    value = kind.value_field.with_type(_renamed(kind.value_type, item, known_item))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(value, kind.list_size)
    return pa.large_list(value) if pa.types.is_large_list(kind) else pa.list_(value)


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array under a type that differs in names only."""
    if array.type.equals(kind) and str(array.type) == str(kind):
        return array
    return pa.array(_Named(array, kind))


@dataclass(frozen=True)
class _Named:
    """An array as others see it through Arrow's C data interface: its memory under another type."""

    array: pa.Array
    kind: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.kind.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]
