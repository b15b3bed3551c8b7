"""Changes of wide tables look up each column once: names of schemas are made anew whenever they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from esker._native.expr import Expression
from esker.arrow.blob_arrays import marked_schema
from esker.blob import blob_field
from esker.delta.merge import joined
from esker.delta.merge.joined import JoinedColumns
from esker.delta.read.chosen_columns import ChosenColumns
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.lance.merge.source import check_columns

COLUMNS = 100


class Watched:
    """A schema that counts how often all of its names are asked for."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.asked = 0

    @property
    def names(self) -> list[str]:
        self.asked += 1
        return self._schema.names

    @property
    def metadata(self) -> Any:
        return self._schema.metadata

    def field(self, name: str) -> pa.Field:
        return self._schema.field(name)

    def __iter__(self) -> Iterator[pa.Field]:
        return iter(self._schema)


def test_blobs_of_a_wide_table_are_marked_in_a_pass_over_its_columns() -> None:
    schema = pa.schema([*(pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)), blob_field("b")])
    found = pa.schema([*(field for field in schema if field.name != "b"), ("b", pa.large_binary()), ("x", pa.int8())])
    table: Any = Watched(schema)
    marked = marked_schema(found, table)
    assert table.asked == 1
    assert marked.names == found.names
    assert marked.field("b").metadata[b"lance-encoding:blob"] == b"true"
    assert marked.field("c7").metadata is None
    assert marked.field("x").metadata is None


def test_columns_of_a_wide_source_are_checked_in_a_pass_over_them() -> None:
    schema = pa.schema([pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)])
    source: Any = Watched(schema)
    table: Any = Watched(schema)
    check_columns(source, table, on=["c7"], insert=True, update=True)
    assert (source.asked, table.asked) == (1, 1)
    for wrong, expected in (
        (pa.schema([*schema, schema.field(7)]), InvalidArgumentError),
        (schema.append(pa.field("other", pa.int8())), SchemaMismatchError),
        (schema.remove(7), SchemaMismatchError),
    ):
        with pytest.raises(expected):
            check_columns(wrong, schema, on=["c7"], insert=True, update=True)


def test_columns_of_a_wide_delta_table_are_chosen_in_a_pass_over_them() -> None:
    schema = pa.schema(
        [*(pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)), ("s", pa.struct([("x", "int8")]))]
    )
    there: Any = Watched(schema)
    assert ChosenColumns([f"c{number}" for number in range(COLUMNS)], there).read == schema.names[:-1]
    assert there.asked == 1
    assert ChosenColumns(["s.x", "c7"], schema).schema.names == ["x", "c7"]


class Parser:
    """Counts the columns among which expressions are parsed."""

    def __init__(self) -> None:
        self.most = 0

    def parse_sql(self, sql: str, schema: pa.Schema, *rest: Any) -> Any:
        sizes = [field.type.num_fields if pa.types.is_struct(field.type) else 1 for field in schema]
        self.most = max(self.most, sum(sizes))
        return Expression.parse_sql(sql, schema, *rest)


WIDE = pa.schema([*(pa.field(f"c{number}", pa.int64()) for number in range(COLUMNS)), ("Odd `one`", pa.int64())])


@pytest.mark.parametrize(
    ("sql", "target", "source"),
    [
        ("s.c7", (), ("c7",)),
        ("s.C7 + t.c8", ("c8",), ("c7",)),
        ("`s`.`Odd ``one``` * 2", (), ("Odd `one`",)),
        ("case when t.c1 > s.c2 then alone else 'c3' end", ("c1",), ("c2", "alone")),
        ("1 + 1", (), ()),
    ],
)
def test_a_clause_is_parsed_among_the_columns_that_it_names(
    sql: str, target: tuple[str, ...], source: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = JoinedColumns(WIDE, WIDE.append(pa.field("alone", pa.string())), "t", "s")
    parser = Parser()
    monkeypatch.setattr(joined, "Expression", parser)
    found = columns.parse(sql)
    assert (found.target, found.source) == (target, source)
    assert parser.most < 12


def test_a_name_that_is_not_there_is_told_with_all_that_are() -> None:
    columns = JoinedColumns(WIDE, WIDE, "t", "s")
    with pytest.raises(InvalidArgumentError, match="c19 and 81 more"):
        columns.parse("s.c7 + s.nope")
    with pytest.raises(InvalidArgumentError):
        columns.parse("c7")
