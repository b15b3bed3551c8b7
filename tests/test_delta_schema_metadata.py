"""Metadata of a table's columns in Arrow, beside deltalake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import esker.delta
from esker.delta import DeltaTable, write_deltalake

COMMENTED = (
    '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"comment":"x","n":3,"b":true,'
    '"none":null,"l":[1,"2"],"o":{"k":1.5}}},{"name":"s","type":{"type":"struct","fields":[{"name":"i","type":"string",'
    '"nullable":false,"metadata":{"comment":"in"}}]},"nullable":true,"metadata":{}},{"name":"l","type":{"type":"array",'
    '"elementType":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[{"name":"j","type":"integer",'
    '"nullable":true,"metadata":{"c":"d"}}]},"valueContainsNull":false},"containsNull":true},"nullable":true,'
    '"metadata":{}}]}'
)


@pytest.mark.parametrize("large", [False, True])
def test_a_schema_in_arrow_has_the_metadata_of_its_fields_at_every_level(large: bool) -> None:
    ours, theirs = (
        pa.schema(module.Schema.from_json(COMMENTED).to_arrow(as_large_types=large))
        for module in (esker.delta, deltalake)
    )
    assert _told(ours) == _told(theirs)


def test_a_schema_crosses_into_arrow_with_its_metadata() -> None:
    ours, theirs = (pa.schema(module.Schema.from_json(COMMENTED)) for module in (esker.delta, deltalake))
    assert _told(ours) == _told(theirs)


def _told(schema: pa.Schema) -> list[Any]:
    def told(field: pa.Field) -> Any:
        inner = [told(field.type.field(i)) for i in range(field.type.num_fields)]
        return field.name, field.nullable, field.metadata or {}, inner

    return [told(field) for field in schema]


def test_a_table_that_is_made_of_such_a_schema_has_the_metadata_and_its_files_do_not(tmp_path: Path) -> None:
    schema = esker.delta.Schema.from_json(COMMENTED)
    rows = pa.table({"a": [1], "s": [{"i": "x"}], "l": [[[("k", {"j": 2})]]]}, schema=schema.to_arrow())
    for name, write in (("ours", write_deltalake), ("theirs", deltalake.write_deltalake)):
        write(tmp_path / name, rows)
    found = [json.loads(deltalake.DeltaTable(tmp_path / name).schema().to_json()) for name in ("ours", "theirs")]
    assert found[0] == found[1]
    (file,) = (tmp_path / "ours").glob("*.parquet")
    assert b"comment" not in (pq.read_schema(file).metadata or {}).get(b"ARROW:schema", b"")


def test_numbers_of_identity_columns_stay_numbers() -> None:
    metadata = {"delta.identity.start": 5, "delta.identity.allowExplicitInsert": False, "comment": "7"}
    field = esker.delta.Field("id", "long", metadata=metadata)
    assert esker.delta.Field.from_arrow(field.to_arrow()) == field


def test_a_table_tells_the_comments_of_its_columns(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, esker.delta.Schema.from_json(COMMENTED))
    assert DeltaTable(tmp_path).schema().to_arrow().field("a").metadata[b"comment"] == b"x"
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 0
