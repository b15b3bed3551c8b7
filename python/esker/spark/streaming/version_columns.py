"""The columns of a stream in another version of a Lance table, which may have other names for them.

Ids of fields tell which column is which from one version to the next; over several they do not, as an id may be given
again after a column was dropped, and an overwrite numbers all columns anew. So columns are followed step by step; over
a restore by way of the version that it restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from esker._native.schema import Field, Schema
from esker.cached import cached_property
from esker.lance.system_columns import SYSTEM_COLUMNS

__all__ = ["Followed", "VersionColumns", "back", "earlier", "first_renamed", "followed", "through"]


@dataclass(frozen=True)
class Followed:
    """A field, and what another version calls it.

    Args:
        name: Its name when the query was started.
        there: Its name in the other version.
        place: Its place among its siblings there.
        within: The fields within it that the other version has.
        of: How many fields it has there, known or not.
    """

    name: str
    there: str
    place: int
    within: tuple[Followed, ...]
    of: int

    @property
    def is_as_known(self) -> bool:
        """Whether it has its name there, and all within it theirs."""
        return self.there == self.name and all(part.is_as_known for part in self.within)


@dataclass(frozen=True)
class VersionColumns:
    """The columns of a stream in a version.

    Args:
        names: What the version calls its columns.
        found: The columns of the stream that it has; None if each has its name.
    """

    names: tuple[str, ...]
    found: tuple[Followed, ...] | None = None

    @cached_property
    def _by_name(self) -> dict[str, Followed]:
        return {found.name: found for found in self.found or ()}

    def has(self, name: str) -> bool:
        """Whether the version has a column of the stream."""
        if name in SYSTEM_COLUMNS:
            return True
        return name in (self.names if self.found is None else self._by_name)

    def is_as_known(self, name: str) -> bool:
        """Whether the version has a column under the same name, and its fields under theirs."""
        found = self._by_name.get(name)
        return self.has(name) if found is None else found.is_as_known

    def there(self, wanted: Sequence[str]) -> list[str]:
        """What the version calls columns that it has."""
        found = [(name, self._by_name.get(name)) for name in wanted]
        return [name if each is None else each.there for name, each in found]

    def shown(self, batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
        """The columns of a batch of the version that are wanted, under the names of the stream."""
        arrays = []
        for name, there in zip(wanted, self.there(wanted), strict=True):
            array, found = batch.column(there), self._by_name.get(name)
            arrays.append(array if found is None else _as(array, _renamed(array.type, found)))
        return pa.RecordBatch.from_arrays(arrays, names=list(wanted)) if arrays else batch.select([])


def followed(fields: Sequence[Field]) -> tuple[Followed, ...]:
    """The fields of the version with which a query was started, followed nowhere yet.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import followed
        >>> [found.there for found in followed(Schema.from_arrow(pa.schema({"b": pa.int8()})).fields)]
        ['b']
    """
    return tuple(
        Followed(field.name, field.name, place, followed(field.children), len(field.children))
        for place, field in enumerate(fields)
    )


def earlier(
    found: Sequence[Followed], after: Sequence[Field], before: Sequence[Field], *, by_ids: bool
) -> tuple[Followed, ...]:
    """Follows fields from a version to the one before it; without those that it lacks.

    Args:
        found: What `after` calls them.
        after: The fields of a version.
        before: Those of the version before it.
        by_ids: Whether ids tell which field is which: not where all rows were replaced.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import earlier, followed
        >>> before = Schema.from_arrow(pa.schema({"a": pa.int8()}))
        >>> after = before.altered([("a", "b", None)])
        >>> steps = earlier(followed(after.fields), after.fields, before.fields, by_ids=True)
        >>> [(found.name, found.there) for found in steps]
        [('b', 'a')]
    """
    origins = _origins(after, before, by_ids=by_ids)
    made = []
    for each in found:
        place = origins.get(each.place)
        if place is not None:
            field = before[place]
            within = earlier(each.within, after[each.place].children, field.children, by_ids=by_ids)
            made.append(Followed(each.name, field.name, place, within, len(field.children)))
    return tuple(made)


def _origins(after: Sequence[Field], before: Sequence[Field], *, by_ids: bool) -> dict[int, int]:
    """Where the fields of a version were in the one before it, by their places."""
    places = {field.name: place for place, field in enumerate(before)}
    if not by_ids:
        return {place: places[field.name] for place, field in enumerate(after) if field.name in places}
    ids = {field.id: place for place, field in enumerate(before)}
    kept = {field.id for field in after}
    found = {place: ids[field.id] for place, field in enumerate(after) if field.id in ids}
    for place, field in enumerate(after):
        if place in found:
            continue
        # A cast gives another id, and may rename: then nothing is added or dropped in the same step.
        same = places.get(field.name)
        if (same is None or before[same].id in kept) and len(after) == len(before):
            same = place
        if same is not None and before[same].id not in kept and same not in found.values():
            found[place] = same
    return found


def through(found: Sequence[Followed], step: Sequence[Followed]) -> tuple[Followed, ...]:
    """Follows fields one step more.

    Args:
        found: What a version calls them.
        step: What another version calls all fields of that one that it has.

    Returns:
        What the other version calls them; without those that it lacks.

    Example:
        >>> from esker.spark.streaming.version_columns import Followed, through
        >>> through([Followed("c", "b", 0, (), 0)], [Followed("b", "a", 2, (), 0)])
        (Followed(name='c', there='a', place=2, within=(), of=0),)
    """
    steps = {each.name: each for each in step}
    known = ((each, steps.get(each.there)) for each in found)
    return tuple(
        Followed(each.name, further.there, further.place, through(each.within, further.within), further.of)
        for each, further in known
        if further is not None
    )


def back(step: Sequence[Followed], fields: Sequence[Field]) -> tuple[Followed, ...]:
    """A step in the other direction.

    Args:
        step: What another version calls fields of a version.
        fields: All fields of the version.

    Returns:
        What the version calls those of the other one.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import Followed, back
        >>> fields = Schema.from_arrow(pa.schema({"a": pa.int8(), "b": pa.int8()})).fields
        >>> back([Followed("b", "c", 0, (), 0)], fields)
        (Followed(name='c', there='b', place=1, within=(), of=0),)
    """
    places = {field.name: place for place, field in enumerate(fields)}
    made = []
    for each in step:
        place = places[each.name]
        children = fields[place].children
        made.append(Followed(each.there, each.name, place, back(each.within, children), len(children)))
    return tuple(made)


def first_renamed(names: Sequence[str], before: Schema, step: Sequence[Followed]) -> tuple[str, str | None] | None:
    """The path of the first column of a version, or field in one, that the next one calls otherwise; and that name.

    Args:
        names: The columns that are asked for.
        before: The version.
        step: What it calls the fields of the next one.

    Returns:
        The name is None for a column that is gone. None if all have their names.

    Example:
        >>> import pyarrow as pa
        >>> from esker._native.schema import Schema
        >>> from esker.spark.streaming.version_columns import earlier, first_renamed, followed
        >>> known = Schema.from_arrow(pa.schema({"s": pa.struct({"p": pa.int8()})}))
        >>> after = known.altered([("s.p", "q", None)]).fields
        >>> first_renamed(["s"], known, earlier(followed(after), after, known.fields, by_ids=True))
        ('s.p', 'q')
    """
    there = [field.name for field in before.fields]
    for name in names:
        if name not in there:
            continue
        now = next((each for each in step if each.there == name), None)
        if now is None or now.name != name:
            return name, None if now is None else now.name
        within = _first_renamed(now)
        if within is not None:
            return f"{name}.{within[0]}", within[1]
    return None


def _first_renamed(found: Followed) -> tuple[str, str] | None:
    for part in found.within:
        if part.name != part.there:
            return part.there, part.name
        within = _first_renamed(part)
        if within is not None:
            return f"{part.there}.{within[0]}", within[1]
    return None


def _renamed(kind: Any, found: Followed) -> Any:
    """A type of the version with the names of the stream; fields that the stream does not know have names of nobody."""
    if found.is_as_known and len(found.within) == found.of:
        return kind
    if isinstance(kind, pa.BaseExtensionType) or kind.num_fields != found.of:
        return kind
    if pa.types.is_struct(kind):
        known = {part.place: part for part in found.within}
        parts = []
        for place in range(found.of):
            field = kind.field(place)
            part = known.get(place)
            if part is None:
                parts.append(field.with_name(f"\0{place}"))
            else:
                parts.append(field.with_name(part.name).with_type(_renamed(field.type, part)))
        return pa.struct(parts)
    if not found.within:
        return kind
    item = found.within[0]
    if pa.types.is_map(kind):
        entries = _renamed(pa.struct([kind.key_field, kind.item_field]), item)
        return pa.map_(entries.field(0), entries.field(1), keys_sorted=kind.keys_sorted)
    value = kind.value_field.with_type(_renamed(kind.value_type, item))
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
