"""The columns that a caller asks for: those of a table, and fields within them, `s.x`, which are columns named `x`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import Snapshot
from ...exceptions import InvalidArgumentError
from .conform import plain
from .file_reader import check_read


class ChosenColumns:
    """What a caller asks for, over columns that are there.

    Args:
        asked: The names; all columns if None. A name with dots that no column has is a field within one.
        there: The columns.

    Raises:
        InvalidArgumentError: There is no such column, or field.
        TypeError: A name is no text.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.chosen_columns import ChosenColumns
        >>> there = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int8())]))])
        >>> chosen = ChosenColumns(["s.x"], there)
        >>> chosen.read, chosen.schema.names
        (['s'], ['x'])
    """

    def __init__(self, asked: Sequence[str] | None, there: pa.Schema) -> None:
        known = frozenset(there.names)
        self._paths = [_path(name, there, known) for name in (there.names if asked is None else asked)]
        self.read: list[str] = list(dict.fromkeys(path[0] for path in self._paths))
        """The columns to read for it."""
        self.schema: pa.Schema = pa.schema([_field(path, there) for path in self._paths])
        """Its columns."""

    @classmethod
    def of(cls, asked: Sequence[str] | None, snapshot: Snapshot) -> ChosenColumns:
        """Those of a version, all of which this release reads.

        Raises:
            UnsupportedError: A column has a type that this release does not read.
            InvalidArgumentError: There is no such column, or field.

        Example:
            `ChosenColumns.of(["id", "s.x"], snapshot)`
        """
        annotated = pa.schema(snapshot)
        found = cls(asked, pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in annotated]))
        check_read(annotated.field(name) for name in found.read)
        return found

    def pick(self, rows: Any) -> Any:
        """A batch, or table, of the columns that were asked for, from one of those that were read."""
        if self._paths == [[name] for name in self.read]:
            return rows
        columns = [_inner(rows.column(path[0]), path[1:]) for path in self._paths]
        return type(rows).from_arrays(columns, schema=self.schema)


def _path(name: str, there: pa.Schema, known: frozenset[str]) -> list[str]:
    if not isinstance(name, str):
        raise TypeError(f"expected names of columns, found {name!r}")
    if name in known:
        return [name]
    first, *inner = name.split(".")
    found: Any = there
    for part in [first, *inner]:
        names = _names(found)
        if part not in names:
            raise InvalidArgumentError(f"expected some of the columns {', '.join(names)}, found {name!r}", column=name)
        found = found.field(part).type
    return [first, *inner]


def _names(found: Any) -> list[str]:
    if isinstance(found, pa.Schema):
        return list(found.names)
    return [found.field(i).name for i in range(found.num_fields)] if pa.types.is_struct(found) else []


def _field(path: Sequence[str], there: pa.Schema) -> pa.Field:
    field = there.field(path[0])
    for part in path[1:]:
        inner = field.type.field(part)
        field = inner.with_nullable(field.nullable or inner.nullable)
    return field


def _inner(values: Any, path: Sequence[str]) -> Any:
    return pc.struct_field(values, list(path)) if path else values
