"""`Projection`: the columns that a scan or a take reads, and the columns and expressions that it returns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ...arrow.paths import parts_of, quoted
from ...cached import cached_property
from ...exceptions import EskerError, InvalidArgumentError
from ..system_columns import ROW_ADDRESS, ROW_ID, SYSTEM_COLUMNS
from .names import Names

if TYPE_CHECKING:
    from ..._native.expr import Expression

_PLAIN_NAME = re.compile(r"^(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|`[^`]+`)$")
_FEW = 16


@dataclass(frozen=True)
class Projection:
    """The columns to read, and how the result is made from them.

    `columns` are the columns that the Rust core reads (None: all). `output` has the columns of the result in order, as
    pairs of the new name and the name in the table; None leaves batches as they are. `expressions` are computed from
    the columns that were read.
    """

    columns: list[str] | None
    output: tuple[tuple[str, str], ...] | None = None
    expressions: dict[str, Expression] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: list[str] | dict[str, str] | None, schema: pa.Schema) -> Projection:
        """The projection for the argument `columns` of a scan.

        Raises:
            TypeError: The columns are a text, or nothing that has names.
            InvalidArgumentError: A name is given twice that is not `_rowid` or another of the system's, a column does
                not exist, or an expression does not parse.
        """
        if columns is None:
            return cls(None)
        require_names(columns)
        if not isinstance(columns, dict) and "*" in columns and "*" not in schema.names:
            columns = [name for it in columns for name in (schema.names if it == "*" else [it])]
        wanted = dict(columns) if isinstance(columns, dict) else {name: name for name in columns}
        counts = Counter(iter(columns))
        repeated = [name for name in columns if counts[name] > 1]
        twice = next((name for name in repeated if name not in SYSTEM_COLUMNS), None)
        if twice is not None:
            raise InvalidArgumentError(f"duplicate column name {twice!r}, name each column once", column=twice)
        expressions: dict[str, Expression] = {}
        read: dict[str, None] = {}
        parser = _Parser(schema)
        for name, source in wanted.items():
            if not isinstance(source, str):
                raise TypeError(f"expected the names of columns as str, found {type(source).__name__}")
            path = source.strip("`") if isinstance(columns, dict) and _PLAIN_NAME.match(source) else source
            if isinstance(columns, dict) and (not _PLAIN_NAME.match(source) or parser.is_value(source)):
                expressions[name] = parser.parse(source)
                read.update(dict.fromkeys(expressions[name].columns))
                continue
            wanted[name] = path
            if path not in SYSTEM_COLUMNS:
                # What backticks quote in SQL is one name, and no path.
                require_column(path if path == source else quoted(path), schema)
            read[path] = None
        names = list(read)
        if repeated:
            return cls(names, tuple((name, name) for name in columns))
        if not expressions and list(wanted.items()) == [(name, name) for name in names]:
            return cls(names)
        return cls(names, tuple(wanted.items()), expressions)

    @property
    def is_plain(self) -> bool:
        """Whether batches are returned as they are read."""
        return self.output is None

    @property
    def names(self) -> list[str]:
        """The columns of the result that are asked for by name."""
        return list(self.columns or ()) if self.output is None else [name for name, _ in self.output]

    def source_of(self, name: str) -> str:
        """The column that output column `name` is read from."""
        return dict(self.output or ()).get(name, name)

    @cached_property
    def _computed(self) -> dict[str, pa.Field]:
        return {name: pa.field(expression).with_name(name) for name, expression in self.expressions.items()}

    def apply(self, batch: pa.RecordBatch, extra: list[str]) -> pa.RecordBatch:
        """The output columns of a batch that was read, with the columns `extra` behind them."""
        present = batch.schema
        if self.output is None:
            if self.columns is None:
                return batch
            keep = [*self.columns, *extra]
            return batch if present.names == keep else batch.select(keep)
        there = {name for name, _ in self.output}
        output = [*self.output, *((name, name) for name in extra if name not in there)]
        arrays, fields = [], []
        for name, source in output:
            if name in self.expressions:
                arrays.append(pa.array(self.expressions[name].evaluate(_read_by(self.expressions[name], batch))))
                fields.append(self._computed[name])
            else:
                index = present.get_field_index(source)
                arrays.append(batch.column(index))
                fields.append(present.field(index).with_name(name))
        schema = pa.schema(fields, metadata=present.metadata)
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def describe(self) -> list[str]:
        """The output columns as text: "name = expression"."""
        return [
            f"{name} = {self.expressions[name]}" if name in self.expressions else name for name, _ in self.output or ()
        ]


def require_names(columns: object) -> None:
    """Checks that columns are a list or a dict: a text would be one column for each of its letters.

    Raises:
        TypeError: They are not.

    Example:
        >>> from esker.lance.scan.projection import require_names
        >>> require_names(["id"])
    """
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise TypeError(
            f"columns must be a list or dict[name, expression], found {type(columns).__name__}; put one name in a list"
        )


def _read_by(expression: Expression, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a batch that an expression reads: each of them takes time to hand over. All of few."""
    columns = expression.columns
    return batch if batch.num_columns <= _FEW or not columns else batch.select(columns)


class _Parser:
    """Parses expressions over the columns of a table, of many those that a text names, and its system columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    @cached_property
    def _all(self) -> pa.Schema:
        missing = [pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS) if name not in self._schema.names]
        return pa.schema([*self._schema, *missing])

    @cached_property
    def _names(self) -> Names:
        return Names(self._all.names)

    def parse(self, sql: str) -> Expression:
        """The expression, or the error that tells of all columns."""
        from ..._native.expr import Expression

        if len(self._schema) > _FEW:
            named = [self._all.field(name) for name in self._names.named_in(sql)]
            with suppress(EskerError):
                return Expression.parse_column(sql, pa.schema(named))
        return Expression.parse_column(sql, self._all)

    def is_value(self, name: str) -> bool:
        """Whether a name that is not a column is an SQL expression: `true`, `NULL`, a column in another case."""
        if not name.isidentifier() or name in SYSTEM_COLUMNS or self._schema.get_field_index(name) >= 0:
            return False
        try:
            self.parse(name)
        except EskerError:
            return False
        return True


def require_column(path: str, schema: pa.Schema) -> None:
    """Checks that a dotted path is that of a column or of a field within one.

    Raises:
        InvalidArgumentError: It is not.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.scan.projection import require_column
        >>> require_column("a.b", pa.schema([("a", pa.struct([("b", pa.int8())]))]))
    """
    if schema.get_field_index(path) >= 0:
        return
    head, *rest = parts_of(path)
    index = schema.get_field_index(head)
    type_ = schema.field(index).type if index >= 0 else None
    for name in rest:
        child = type_.get_field_index(name) if type_ is not None and pa.types.is_struct(type_) else -1
        type_ = type_.field(child).type if child >= 0 and type_ is not None else None
    if type_ is None:
        raise InvalidArgumentError(
            f"column {path!r} does not exist, expected one of {schema.names}", column=path, expected=schema.names
        )
