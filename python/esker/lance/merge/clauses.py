"""`MergeClauses`: what a merge does with rows that match and rows that do not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from ..._native.expr import Predicate
from ...exceptions import InvalidArgumentError
from ..scan.predicate import Filter, to_predicate
from ..system_columns import ROW_ADDRESS, ROW_ID
from ..version import TableVersion
from .condition_names import with_sides

WhenMatched: TypeAlias = Literal["keep", "update", "delete", "fail"]
Condition: TypeAlias = tuple[Predicate, list[str], list[str]]

_SHOWN = {"keep": "DoNothing", "update": "UpdateAll", "delete": "Delete", "fail": "Fail"}


@dataclass
class MergeClauses:
    """The clauses of a merge.

    Attributes:
        when_matched: What happens to a row of the table that a row of the source matches.
        condition: With "update": SQL; only rows for which it is true are updated.
        insert: Whether rows of the source that match no row of the table are inserted.
        delete_unmatched: Whether rows of the table that match no row of the source are deleted.
        delete_filter: Only such rows for which this is true are deleted.
    """

    when_matched: WhenMatched = "keep"
    condition: str | None = None
    insert: bool = False
    delete_unmatched: bool = False
    delete_filter: Filter | None = None

    def check(self) -> None:
        """Refuses a merge that would change nothing.

        Raises:
            InvalidArgumentError: There is no clause.
        """
        if self == MergeClauses():
            raise InvalidArgumentError(
                "expected a clause that changes rows, found none: call when_matched_update_all, "
                "when_not_matched_insert_all or another one first"
            )

    @property
    def updates(self) -> bool:
        """Whether rows of the table may be updated."""
        return self.when_matched == "update"

    def update_condition(self, source: pa.Schema, table: TableVersion) -> Condition | None:
        """The condition on rows that match, with the columns of the source and of the table that it reads.

        Raises:
            InvalidArgumentError: It does not parse, or has a column that does not exist.
        """
        if self.condition is None:
            return None
        columns = _with_system_columns(table.described_schema)
        condition, everything = _with_sides(self.condition, source, columns)
        read: dict[str, list[str]] = {"source": [], "target": []}
        for side, name in everything.paths:
            schema = source if side == "source" else columns
            read[side].extend(schema.names if name is None else [name])
        left = [name for name in source.names if name in read["source"]]
        right = [name for name in columns.names if name in read["target"]]
        # Bound to these columns only, so that no other column is read.
        try:
            return _parse(condition, _only(source, left), _only(columns, right)), left, right
        except InvalidArgumentError:
            # The parser folded a column away, such as `k` in `k > 1 AND k < 0`: bind all columns named in the text.
            text = condition.casefold()
            left, right = ([name for name in side.names if name.casefold() in text] for side in (source, columns))
        return _parse(condition, _only(source, left), _only(columns, right)), left, right

    def delete_predicate(self, table: TableVersion) -> Predicate | None:
        """The condition on rows of the table that match no row of the source.

        Raises:
            InvalidArgumentError: It does not parse, or has a column that does not exist.
        """
        return None if self.delete_filter is None else to_predicate(self.delete_filter, table.described_schema)

    def __str__(self) -> str:
        """The clauses as in pylance's plans."""
        matched = _SHOWN[self.when_matched] if self.condition is None else f"UpdateIf({self.condition})"
        unmatched = "Keep" if not self.delete_unmatched else "Delete" if self.delete_filter is None else "DeleteIf"
        insert = "InsertAll" if self.insert else "DoNothing"
        return f"when_matched={matched}, when_not_matched={insert}, when_not_matched_by_source={unmatched}"


def _with_system_columns(table: pa.Schema) -> pa.Schema:
    """The columns of the table that a condition may read: its own, and the ids and addresses of its rows."""
    own = {ROW_ID, ROW_ADDRESS}.difference(table.names)
    return pa.schema([*table, *(pa.field(name, pa.uint64()) for name in sorted(own))])


def _with_sides(condition: str, source: pa.Schema, table: pa.Schema) -> tuple[str, Predicate]:
    """The condition with a side before each of its columns."""
    try:
        return condition, _parse(condition, source, table)
    except InvalidArgumentError:
        qualified = with_sides(condition, source.names, table.names)
        if qualified != condition:
            with suppress(InvalidArgumentError):
                return qualified, _parse(qualified, source, table)
        raise


def _parse(condition: str, source: pa.Schema, table: pa.Schema) -> Predicate:
    sides = [pa.field("source", pa.struct(list(source))), pa.field("target", pa.struct(list(table)))]
    return Predicate.parse_sql(condition, pa.schema(sides))


def _only(schema: pa.Schema, names: list[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])
