"""What `alter` is asked for a second time, and what schemas are in JSON, beside deltalake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import deltalake.schema
import pyarrow as pa
import pytest

import esker.delta
import esker.delta.schema
from esker.delta import DeltaTable, Field, PrimitiveType, Schema
from esker.exceptions import InvalidArgumentError

COLUMNS: dict[str, Any] = {
    "the same": lambda lib, _: [lib.Field("id", "long")],
    "the same and a new one": lambda lib, _: [lib.Field("id", "long"), lib.Field("n", "string")],
    "not null": lambda lib, _: [lib.Field("id", "long", nullable=False)],
    "metadata": lambda lib, _: [lib.Field("id", "long", metadata={"comment": "a"})],
    "one field of a struct": lambda lib, types: [lib.Field("s", types.StructType([lib.Field("x", "long")]))],
    "a field more": lambda lib, types: [
        lib.Field("s", types.StructType([lib.Field("x", "long"), lib.Field("y", "string")]))
    ],
}
REFUSED: dict[str, Any] = {
    "another type": lambda lib, _: [lib.Field("id", "string")],
    "another case": lambda lib, _: [lib.Field("ID", "long")],
    "twice": lambda lib, _: [lib.Field("n", "long"), lib.Field("n", "long")],
    "another type in a struct": lambda lib, types: [lib.Field("s", types.StructType([lib.Field("x", "string")]))],
}
LIBRARIES: list[tuple[Any, Any]] = [(esker.delta, esker.delta.schema), (deltalake, deltalake.schema)]


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_that_are_there_may_be_given_again(tmp_path: Path, case: str) -> None:
    found = []
    for library, types in LIBRARIES:
        place = tmp_path / library.__name__
        library.write_deltalake(place, pa.table({"id": [1], "s": [{"x": 1}]}))
        table = library.DeltaTable(place)
        table.alter.add_columns(COLUMNS[case](library, types))
        assert table.version() == 1
        found.append((json.loads(table.schema().to_json()), DeltaTable(place).to_pyarrow_table().to_pylist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("case", REFUSED)
def test_other_columns_of_these_names_are_refused(tmp_path: Path, case: str) -> None:
    for library, types in LIBRARIES:
        place = tmp_path / library.__name__
        library.write_deltalake(place, pa.table({"id": [1], "s": [{"x": 1}]}))
        table = library.DeltaTable(place)
        with pytest.raises(InvalidArgumentError if library is esker.delta else Exception):
            table.alter.add_columns(REFUSED[case](library, types))
        assert DeltaTable(place).version() == 0


def test_a_constraint_may_be_added_again_as_it_is(tmp_path: Path) -> None:
    for library, _ in LIBRARIES:
        place = tmp_path / library.__name__
        library.write_deltalake(place, pa.table({"id": [1]}))
        table = library.DeltaTable(place)
        for _ in range(2):
            table.alter.add_constraint({"c": "id > 0"})
        assert table.version() == 2
        assert table.metadata().configuration == {"delta.constraints.c": "id > 0"}
        with pytest.raises(InvalidArgumentError if library is esker.delta else Exception):
            table.alter.add_constraint({"c": "id > -1"})
    with pytest.raises(InvalidArgumentError, match="found 'C' there: id > 0"):
        DeltaTable(tmp_path / "esker.delta").alter.add_constraint({"C": "id > 0"})


def test_json_of_schemas_is_that_of_deltalake() -> None:
    texts = []
    for library, types in LIBRARIES:
        struct = types.StructType([library.Field("e", "date", metadata={"k": "v"})])
        schema = library.Schema(
            [
                library.Field("a", types.PrimitiveType("decimal(10, 2)"), nullable=False),
                library.Field("b", types.ArrayType(struct, contains_null=False)),
                library.Field("c", types.MapType("string", "integer", value_contains_null=False)),
            ]
        )
        fields = schema.fields
        texts.append([schema.to_json(), *(field.to_json() for field in fields), *(f.type.to_json() for f in fields)])
        assert library.Schema.from_json(schema.to_json()) == schema
    assert texts[0] == texts[1]


def test_decimals_are_one_type_however_they_are_spelled() -> None:
    assert PrimitiveType("decimal(10, 2)") == PrimitiveType("decimal(10,2)")
    assert Field("a", "decimal( 10 , 2 )").type.type == "decimal(10,2)"


@pytest.mark.parametrize("text", ['{"type":"struct"}', "[]", "3", '{"type":"struct","fields":{}}', "{", "null"])
def test_json_that_is_no_schema_is_a_value_error(text: str) -> None:
    for library in (esker.delta, deltalake):
        with pytest.raises(ValueError):  # noqa: PT011
            library.Schema.from_json(text)
    with pytest.raises(InvalidArgumentError, match="expected a struct"):
        Schema.from_json("[]")


MADE: list[tuple[str, Callable[[Any, Any], object]]] = [
    ("a type that is none", lambda library, types: library.Field("a", None)),
    ("an Arrow type", lambda library, types: library.Field("a", pa.int64())),
    ("an element that is none", lambda library, types: types.ArrayType(1)),
    ("a name that is none", lambda library, types: types.PrimitiveType(None)),
    ("a field without a name", lambda library, types: library.Field(1, "long")),
    ("fields that are none", lambda library, types: types.StructType(None)),
    ("columns that are none", lambda library, types: library.Schema(1)),
    ("columns that are names", lambda library, types: library.Schema(["a"])),
    ("another kind in Arrow", lambda library, types: types.ArrayType.from_arrow(pa.int64())),
    ("another kind", lambda library, types: types.MapType.from_json('"long"')),
    ("no type in JSON", lambda library, types: types.ArrayType.from_json("{}")),
    ("a list in JSON", lambda library, types: types.ArrayType.from_json("[]")),
    ("nothing in JSON", lambda library, types: types.ArrayType.from_json("null")),
    ("no fields in JSON", lambda library, types: types.StructType.from_json('{"type":"struct"}')),
    ("an unknown type", lambda library, types: types.PrimitiveType.from_json('"int"')),
    ("an unknown kind", lambda library, types: types.StructType.from_json('{"type":"set"}')),
]


@pytest.mark.parametrize(("name", "make"), MADE, ids=[name for name, _ in MADE])
def test_what_is_no_schema_is_refused_by_deltalakes_errors(name: str, make: Callable[[Any, Any], object]) -> None:
    raised = []
    for library, types in LIBRARIES:
        with pytest.raises((TypeError, ValueError)) as caught:
            make(library, types)
        raised.append(caught.value)
    ours, theirs = raised
    assert isinstance(ours, TypeError if isinstance(theirs, TypeError) else ValueError), name
