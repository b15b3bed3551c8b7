"""Joined rows: a row of the table beside one of the source, under the names that SQL has for them.

An alias is a struct of its side's columns; a name that only one side has stands alone as well. A side that is not
there (a row that nothing matched) is nulls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ..._native.expr import Expression, Predicate
from ...exceptions import InvalidArgumentError
from ..read.session_zone import clock_in_zone, in_zone
from ..read.sql_names import columns_in_backticks, in_own_words
from .sql_parts import names_column

_SOURCE = "esker.source"
"""What the source is called where the caller gives it no alias."""
_WORD = re.compile(r"\w+")
_UNKNOWN = re.compile(r"expected a column, found (.+?): there are")
_LENGTH = pa.field("esker.length", pa.int8())
"""A column that is always there, so that a batch has a length where no column is read."""


@dataclass(frozen=True)
class JoinedExpression:
    """An expression over joined rows.

    Args:
        expression: Bound to `schema`.
        schema: The columns that it reads.
        target: The table's columns among them.
        source: The source's.
        names: For each column of `schema` its side, and the column that it is; None for a struct of all that are read.
    """

    expression: Expression
    schema: pa.Schema
    target: tuple[str, ...]
    source: tuple[str, ...]
    names: tuple[tuple[str, str | None], ...]

    @property
    def type(self) -> pa.DataType:
        """The type of its values."""
        return pa.field(self.expression).type

    def is_column(self, sql: str) -> str | None:
        """The one column that it reads, if it is that column as it is; `sql` is its text, with names in backticks."""
        read = (*self.target, *self.source)
        if len(read) != 1 or not names_column(sql, read[0]):
            return None
        kinds = []
        for field, (side, name) in zip(self.schema, self.names, strict=True):
            if side != "length":
                kinds.append(field.type if name is not None else field.type.field(read[0]).type)
        # `a.a` may be a field of a column.
        return read[0] if kinds == [self.type] else None

    def evaluate(
        self,
        rows: int,
        target: pa.RecordBatch | None = None,
        source: pa.RecordBatch | None = None,
        kind: pa.DataType | None = None,
    ) -> pa.Array:
        """Its values.

        Args:
            rows: How many.
            target: The table's columns that it reads; nulls if not given.
            source: The source's; nulls if not given.
            kind: What the values are cast to.

        Raises:
            InvalidArgumentError: A value that cannot be computed or cast.
        """
        arrays = []
        for field, (side, name) in zip(self.schema, self.names, strict=True):
            batch = target if side == "target" else source
            if side == "length":
                arrays.append(pa.nulls(rows, field.type))
            elif name is not None:
                arrays.append(_as(batch.column(name), field.type) if batch is not None else pa.nulls(rows, field.type))
            else:
                arrays.append(_struct(batch, field.type, rows))
        made = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return pa.array(self.expression.evaluate(made, data_type=kind))


def _struct(batch: pa.RecordBatch | None, kind: pa.DataType, rows: int) -> pa.Array:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    if batch is None:
        # Fields that are null, rather than a null struct: an expression reads fields.
        return pa.StructArray.from_arrays([pa.nulls(rows, field.type) for field in fields], fields=fields)
    columns = [_as(batch.column(field.name), field.type) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


class JoinedColumns:
    """The names of joined rows.

    Args:
        target: The table's columns.
        source: The source's.
        target_alias: What the table is called; None if nothing is.
        source_alias: What the source is called.
        session_timezone: What times without a zone mean; UTC if not given.

    Raises:
        InvalidArgumentError: Both have one alias.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.merge.joined import JoinedColumns
        >>> columns = JoinedColumns(pa.schema([("x", "int64")]), pa.schema([("x", "int64"), ("y", "int64")]), "t", "s")
        >>> columns.parse("t.x + y").source
        ('y',)
    """

    def __init__(
        self,
        target: pa.Schema,
        source: pa.Schema,
        target_alias: str | None,
        source_alias: str | None,
        session_timezone: str | None = None,
    ) -> None:
        self.target_alias, self.source_alias = target_alias, source_alias
        self._session_timezone = session_timezone
        if target_alias is not None and source_alias is not None and target_alias.lower() == source_alias.lower():
            raise InvalidArgumentError(
                f"expected different aliases of the source and of the table, found {source_alias!r} for both"
            )
        self._sides = {
            "target": in_zone(_loose(target), session_timezone),
            "source": in_zone(_loose(source), session_timezone),
        }
        self._source = source_alias or _SOURCE
        self._aliases = {self._source: "source"} | ({target_alias: "target"} if target_alias is not None else {})
        taken = {alias.lower() for alias in self._aliases}
        seen: dict[str, int] = {}
        for side in self._sides.values():
            for name in {name.lower() for name in side.names}:
                seen[name] = seen.get(name, 0) + 1
        self._alone = {
            field.name: side
            for side, schema in self._sides.items()
            for field in schema
            if seen[field.name.lower()] == 1 and field.name.lower() not in taken
        }
        self._names = {side: schema.names for side, schema in self._sides.items()}
        self._spelt = {side: _Spelt(names) for side, names in self._names.items()}
        self._whole = self._schema(self._names, list(self._alone))
        self._all_names = self._whole.names

    def _schema(self, wanted: dict[str, list[str]], alone: Sequence[str]) -> pa.Schema:
        fields = []
        for alias, side in self._aliases.items():
            if wanted[side]:
                fields.append(pa.field(alias, pa.struct([self._sides[side].field(name) for name in wanted[side]])))
        fields += [self._sides[self._alone[name]].field(name) for name in alone]
        return pa.schema([*fields, _LENGTH])

    def parse(self, sql: str) -> JoinedExpression:
        """An expression over joined rows.

        Raises:
            InvalidArgumentError: It does not parse, names no column, or one that both sides have.
        """
        prepared = clock_in_zone(columns_in_backticks(sql), self._all_names, self._session_timezone)
        with in_own_words(sql, prepared), self._in_own_names():
            return self._parsed(prepared, self._near(prepared)) or self._parsed_among_all(prepared)

    def _near(self, sql: str) -> pa.Schema:
        """The columns that it may read: to parse it among all of many takes long."""
        wanted = {side: spelt.within(sql) for side, spelt in self._spelt.items()}
        return self._schema(wanted, [name for names in wanted.values() for name in names if name in self._alone])

    def _parsed(self, sql: str, near: pa.Schema) -> JoinedExpression | None:
        """The expression, if it is one of some of the columns of these alone."""
        try:
            whole = Expression.parse_sql(sql, near, True)
        except InvalidArgumentError:
            return None
        paths = _paths(sql, near)
        # All of a side is more than what is near.
        if paths is None or any(top in self._aliases and inner is None for top, inner in paths):
            return None
        return self._bound(sql, paths, whole)

    def _parsed_among_all(self, sql: str) -> JoinedExpression:
        whole = Expression.parse_sql(sql, self._whole, True)
        paths = _paths(sql, self._whole)
        found = self._bound(sql, paths, whole) if paths is not None else None
        return found or self._bound(sql, self._all(whole), whole) or self._unread(whole)

    @contextmanager
    def _in_own_names(self) -> Iterator[None]:
        """Errors of a name that is not found say which ones there are."""
        try:
            yield
        except InvalidArgumentError as error:
            unknown = _UNKNOWN.search(error.message)
            if unknown is None:
                raise
            told = error.message.replace(f", {_LENGTH.name}", "").replace(_SOURCE, "the source")
            both = [name for schema in self._sides.values() for name in schema.names].count(unknown[1]) > 1
            if both:
                told += f"; both sides have a column {unknown[1]!r}: write which one is meant, with its alias"
            raise InvalidArgumentError(told, **error.facts) from error

    def _all(self, expression: Expression) -> list[tuple[str, str | None]]:
        return [(name, None) for name in expression.columns]

    def _bound(self, sql: str, paths: list[tuple[str, str | None]], whole: Expression) -> JoinedExpression | None:
        """The expression over the columns of these paths alone; None if it needs others."""
        wanted: dict[str, list[str]] = {"target": [], "source": []}
        alone = []
        for top, inner in paths:
            side = self._aliases.get(top)
            if side is None:
                alone.append(top)
            else:
                names = self._sides[side].names if inner is None else [inner]
                wanted[side] += [name for name in names if name not in wanted[side]]
        alone = [name for name in alone if name in self._alone]
        schema = self._schema(wanted, alone)
        try:
            expression = Expression.parse_sql(sql, schema, True)
        except InvalidArgumentError:
            return None
        if pa.field(expression).type != pa.field(whole).type:
            return None
        read = {side: [*wanted[side], *(name for name in alone if self._alone[name] == side)] for side in self._sides}
        sides: list[tuple[str, str | None]] = []
        for field in schema:
            if field.name == _LENGTH.name:
                sides.append(("length", None))
            elif field.name in self._aliases:
                sides.append((self._aliases[field.name], None))
            else:
                sides.append((self._alone[field.name], field.name))
        return JoinedExpression(
            expression,
            schema,
            tuple(dict.fromkeys(read["target"])),
            tuple(dict.fromkeys(read["source"])),
            tuple(sides),
        )

    def _unread(self, expression: Expression) -> JoinedExpression:
        if not expression.columns:
            # `t.id = null`: it names columns, and is the same whatever they are.
            return JoinedExpression(expression, self._whole, (), (), tuple(("length", None) for _ in self._whole))
        raise InvalidArgumentError(f"expected an expression over columns of both sides, found {expression}")

    def source_column(self, name: str) -> JoinedExpression:
        """A column of the source."""
        quoted = [part.replace("`", "``") for part in (self._source, name)]
        return self.parse(".".join(f"`{part}`" for part in quoted))

    def condition(self, sql: str, what: str) -> JoinedExpression:
        """A condition over joined rows.

        Raises:
            InvalidArgumentError: It is none.
        """
        found = self.parse(sql)
        if not (pa.types.is_boolean(found.type) or pa.types.is_null(found.type)):
            raise InvalidArgumentError(f"{what}: expected a condition, which is true or false, found {sql!r}")
        return found


class _Spelt:
    """Names of columns, by the words that SQL spells them with."""

    def __init__(self, names: Sequence[str]) -> None:
        self._words: dict[str, list[str]] = {}
        self._others = []
        for name in names:
            if _WORD.fullmatch(name):
                self._words.setdefault(name.lower(), []).append(name)
            else:
                self._others.append(name)

    def within(self, sql: str) -> list[str]:
        """Those that SQL may name, in whatever case."""
        lower = sql.lower()
        found = [name for word in dict.fromkeys(_WORD.findall(lower)) for name in self._words.get(word, ())]
        return found + [name for name in self._others if name.lower().replace("`", "``") in lower]


def _paths(sql: str, schema: pa.Schema) -> list[tuple[str, str | None]] | None:
    """The columns, and fields of them, that SQL reads; None if that is not known."""
    try:
        return Predicate.parse_sql(f"({sql}) IS NULL", schema, True).paths
    except InvalidArgumentError:
        return None


def _loose(schema: pa.Schema) -> pa.Schema:
    # Nothing is known not to be null: rows without a partner are nulls.
    return pa.schema([pa.field(field.name, field.type) for field in schema])
