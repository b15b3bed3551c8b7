"""A table as a list of rows: what the changes of rows and columns should make of one, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from tests.fuzzing.conditions import Row, Sql

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


class Refused(Exception):
    """The change must be refused, and must change nothing."""


@dataclass
class Clauses:
    """What a merge does; see `LanceDataset.merge_insert`."""

    on: list[str]
    matched: Literal["keep", "update", "delete", "fail"]
    condition: Sql | None
    insert: bool
    delete_unmatched: bool
    delete_filter: Sql | None

    def applied(self, builder: Any) -> Any:
        """The builder, ours or pylance's, with these clauses."""
        if self.matched == "update":
            builder = builder.when_matched_update_all(self.condition.text if self.condition else None)
        elif self.matched != "keep":
            builder = builder.when_matched_delete() if self.matched == "delete" else builder.when_matched_fail()
        if self.insert:
            builder = builder.when_not_matched_insert_all()
        if self.delete_unmatched:
            builder = builder.when_not_matched_by_source_delete(self.delete_filter.text if self.delete_filter else None)
        return builder


@dataclass
class PlainTable:
    """Rows and their schema. Rows are never changed in place."""

    schema: pa.Schema
    rows: list[Row] = field(default_factory=list)

    def copy(self) -> PlainTable:
        """The table as it is now."""
        return PlainTable(self.schema, list(self.rows))

    def append(self, rows: pa.Table) -> None:
        """Adds rows, with nulls in what they lack."""
        self.rows = [*self.rows, *(inserted(row, self.schema) for row in rows.to_pylist())]

    def delete(self, where: Sql) -> int:
        """Deletes rows; says how many."""
        kept = [row for row in self.rows if where.of(row) is not True]
        count = len(self.rows) - len(kept)
        self.rows = kept
        return count

    def update(self, values: dict[str, Sql], where: Sql | None) -> int:
        """Gives columns new values, all computed from the row as it was."""
        changed, rows = 0, []
        for row in self.rows:
            if where is not None and where.of(row) is not True:
                rows.append(row)
                continue
            changed += 1
            rows.append(checked({**row, **{name: value.of(row) for name, value in values.items()}}, self.schema))
        self.rows = rows
        return changed

    def merge(self, source: pa.Table, clauses: Clauses) -> dict[str, int]:
        """Merges rows by key."""
        given = source.to_pylist()
        by_key: dict[str, list[int]] = {}
        for number, row in enumerate(given):
            key = key_of(row, clauses.on)
            if key is not None:
                by_key.setdefault(key, []).append(number)
        matched: set[int] = set()
        kept: list[Row] = []
        updated = deleted = 0
        for row in self.rows:
            key = key_of(row, clauses.on)
            found = by_key.get(key, []) if key is not None else []
            matched.update(found)
            if not found:
                goes = clauses.delete_unmatched and (
                    clauses.delete_filter is None or clauses.delete_filter.of(row) is True
                )
                deleted += goes
                kept += [] if goes else [row]
                continue
            if clauses.matched == "fail":
                raise Refused("a row matches")
            if clauses.matched == "keep":
                kept.append(row)
                continue
            condition = clauses.condition
            chosen = [
                n for n in found if condition is None or condition.of({"source": given[n], "target": row}) is True
            ]
            if len(chosen) > 1:
                raise Refused("several rows for one")
            if not chosen:
                kept.append(row)
            elif clauses.matched == "delete":
                deleted += 1
            else:
                updated += 1
                kept.append(checked(overlaid(row, given[chosen[0]], source.schema, self.schema), self.schema))
        new = [inserted(row, self.schema) for n, row in enumerate(given) if n not in matched] if clauses.insert else []
        self.rows = [*kept, *new]
        return dict(zip(COUNTS, (len(new), updated, deleted), strict=True))

    def join(self, other: pa.Table, on: str) -> None:
        """Adds the columns of other rows by key; the last row of a key counts, and a null is one."""
        found = {repr(row[on]): row for row in other.to_pylist()}
        fields = [it.with_nullable(True) for it in other.schema if it.name != on]
        none = dict.fromkeys((it.name for it in fields), None)
        joined = [{**none, **found.get(repr(row[on]), {})} for row in self.rows]
        self.rows = [
            {**row, **{it.name: new[it.name] for it in fields}} for row, new in zip(self.rows, joined, strict=True)
        ]
        self.schema = pa.schema([*self.schema, *fields])

    def update_columns(self, other: pa.Table, on: str) -> None:
        """Gives rows the values of other rows by key, as `join` finds them."""
        found = {repr(row[on]): row for row in other.to_pylist()}
        self.rows = [checked({**row, **found.get(repr(row[on]), {})}, self.schema) for row in self.rows]

    def add(self, it: pa.Field, value: Sql) -> None:
        """Adds a column."""
        self.rows = [{**row, it.name: value.of(row)} for row in self.rows]
        self.schema = pa.schema([*self.schema, it])

    def drop(self, name: str) -> None:
        """Drops a column."""
        self.rows = [{other: value for other, value in row.items() if other != name} for row in self.rows]
        self.schema = pa.schema([it for it in self.schema if it.name != name])

    def rename(self, name: str, new: str) -> None:
        """Gives a column another name."""
        self.rows = [{new if other == name else other: value for other, value in row.items()} for row in self.rows]
        self.schema = pa.schema([it.with_name(new) if it.name == name else it for it in self.schema])

    def multiset(self) -> list[str]:
        """The rows whatever their order."""
        return as_multiset(self.rows, self.schema.names)


def as_multiset(rows: list[Row], names: list[str]) -> list[str]:
    """Rows as sorted text: NaN equals itself, and 0.0 is not -0.0."""
    return sorted(repr([row[name] for name in names]) for row in rows)


def key_of(row: Row, on: list[str]) -> str | None:
    """A key as text; None if one of its columns is null."""
    values = [row[name] for name in on]
    return None if any(value is None for value in values) else repr(values)


def checked(row: Row, schema: pa.Schema) -> Row:
    """The row, if it has no null where there may be none."""
    for it in schema:
        if _breaks(row[it.name], it):
            raise Refused(f"a null in {it.name}")
    return row


def _breaks(value: Any, it: pa.Field) -> bool:
    if value is None:
        return not it.nullable
    if pa.types.is_struct(it.type):
        return any(_breaks(value[child.name], child) for child in it.type)
    if pa.types.is_list(it.type):
        return any(_breaks(item, it.type.value_field) for item in value)
    return False


def inserted(row: Row, schema: pa.Schema) -> Row:
    """A new row, with nulls in what it lacks at any level."""
    return checked({it.name: _whole(row.get(it.name), it.type) for it in schema}, schema)


def _whole(value: Any, type_: pa.DataType) -> Any:
    if value is None or not pa.types.is_struct(type_):
        return value
    return {child.name: _whole(value.get(child.name), child.type) for child in type_}


def overlaid(old: Row, new: Row, given: pa.Schema, schema: pa.Schema) -> Row:
    """A row of the table with what a row of the source has."""
    return {
        it.name: _over(old[it.name], new[it.name], given.field(it.name).type, it.type)
        if it.name in given.names
        else old[it.name]
        for it in schema
    }


def is_partial(given: pa.DataType, type_: pa.DataType) -> bool:
    """Whether a struct of the source lacks fields of the table's."""
    if not (pa.types.is_struct(given) and pa.types.is_struct(type_)):
        return False
    own = {child.name: child.type for child in given}
    return any(child.name not in own or is_partial(own[child.name], child.type) for child in type_)


def _over(old: Any, new: Any, given: pa.DataType, type_: pa.DataType) -> Any:
    if not is_partial(given, type_):
        return _whole(new, type_)
    if old is None and new is None:
        return None
    own = {child.name: child.type for child in given}
    return {
        child.name: _over((old or {}).get(child.name), (new or {}).get(child.name), own[child.name], child.type)
        if child.name in own
        else (old or {}).get(child.name)
        for child in type_
    }
