"""Keys that a schema declares: refused where pylance refuses them, since it opens no table that has a bad one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.schema
import pyarrow as pa
import pytest

import esker
import esker.schema
from esker.exceptions import InvalidArgumentError

PRIMARY = "lance-schema:unenforced-primary-key"
CLUSTERING = "lance-schema:unenforced-clustering-key"
INT = pa.int64()
KEY = pa.field("a", INT, False, metadata={PRIMARY: "true"})
FIELDS = {
    "true": pa.field("k", INT, False, metadata={PRIMARY: "true"}),
    "yes": pa.field("k", INT, False, metadata={PRIMARY: "Yes"}),
    "a place": pa.field("k", INT, False, metadata={f"{PRIMARY}:position": "2"}),
    "the first place of all": pa.field("k", INT, False, metadata={f"{PRIMARY}:position": "0"}),
    "a place and false": pa.field("k", INT, False, metadata={PRIMARY: "false", f"{PRIMARY}:position": "1"}),
    "no place": pa.field("k", INT, metadata={f"{PRIMARY}:position": "x"}),
    "a place too far": pa.field("k", INT, metadata={f"{PRIMARY}:position": "99999999999"}),
    "false": pa.field("k", INT, metadata={PRIMARY: "false"}),
    "clustering": pa.field("k", INT, metadata={f"{CLUSTERING}:position": "1"}),
    "clustering of lists": pa.field("k", pa.list_(INT), metadata={f"{CLUSTERING}:position": "0"}),
    "nullable": pa.field("k", INT, metadata={PRIMARY: "true"}),
    "nullable at a place": pa.field("k", INT, metadata={f"{PRIMARY}:position": "0"}),
    "list": pa.field("k", pa.list_(INT), False, metadata={PRIMARY: "1"}),
    "struct": pa.field("k", pa.struct([pa.field("a", INT, False)]), False, metadata={PRIMARY: "1"}),
    "vector": pa.field("k", pa.list_(pa.float32(), 2), False, metadata={PRIMARY: "1"}),
    "dictionary": pa.field("k", pa.dictionary(pa.int8(), pa.string()), False, metadata={PRIMARY: "1"}),
    "in a struct": pa.field("k", pa.struct([KEY]), False),
    "in a nullable struct": pa.field("k", pa.struct([KEY])),
    "in a list": pa.field("k", pa.list_(KEY.with_name("item")), False),
    "in a struct in a list": pa.field("k", pa.list_(pa.field("item", pa.struct([KEY]), False)), False),
}


def _outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except (OSError, ValueError):
        return "refused"


def _told(schema: Any) -> list[Any]:
    fields = [
        (
            field.name(),
            field.is_unenforced_primary_key(),
            field.unenforced_primary_key_position(),
            field.is_unenforced_clustering_key(),
            field.unenforced_clustering_key_position(),
        )
        for field in schema.fields()
    ]
    keys = (schema.unenforced_primary_key(), schema.unenforced_clustering_key())
    return [fields, *([field.name() for field in key] for key in keys)]


def _told_of(module: Any, schema: pa.Schema) -> list[Any]:
    return _told(module.LanceSchema.from_pyarrow(schema))


@pytest.mark.parametrize("name", FIELDS)
def test_a_schema_tells_of_keys_and_a_table_has_them_where_pylance_lets_it(name: str, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("z", INT), FIELDS[name]])
    theirs, ours = (_outcome(_told_of, at, schema) for at in (lance.schema, esker.schema))
    assert ours == theirs
    made = {}
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        dataset = _outcome(library.write_dataset, schema.empty_table(), uri)
        made[library] = dataset if dataset == "refused" else _told(lance.dataset(uri).lance_schema)
        assert made[library] == "refused" or lance.dataset(uri).schema == schema
    assert made[esker] == made[lance]


def test_a_key_has_the_order_of_its_places() -> None:
    places = {"a": "2", "b": None, "c": "1", "d": "0", "e": "10"}
    schema = pa.schema(
        [
            pa.field(name, INT, False, metadata={PRIMARY: "true"} if at is None else {f"{PRIMARY}:position": at})
            for name, at in places.items()
        ]
    )
    assert _told(esker.schema.LanceSchema.from_pyarrow(schema)) == _told(lance.schema.LanceSchema.from_pyarrow(schema))


Change = Callable[[Any, Any], Any]
COLUMNS = [pa.field("k", INT, False), pa.field("j", INT, False), pa.field("n", INT)]
CHANGES: dict[str, Change] = {
    "removed": lambda m, ds: ds.update_field_metadata({"k": {PRIMARY: None}}),
    "its place removed": lambda m, ds: ds.update_field_metadata({"k": {f"{PRIMARY}:position": None}}),
    "false": lambda m, ds: ds.update_field_metadata({"k": {PRIMARY: "false"}}),
    "set again": lambda m, ds: ds.update_field_metadata({"k": {PRIMARY: "true"}}),
    "another column": lambda m, ds: ds.update_field_metadata({"j": {f"{PRIMARY}:position": "2"}}),
    "a nullable column": lambda m, ds: ds.update_field_metadata({"n": {PRIMARY: "true"}}),
    "all else removed": lambda m, ds: ds.update_field_metadata({"k": {"a": "b"}}, replace=True),
    "all else of another column removed": lambda m, ds: ds.update_field_metadata({"j": {"a": "b"}}, replace=True),
    "other metadata": lambda m, ds: ds.update_field_metadata({"k": {"a": "b"}}),
    "clustering": lambda m, ds: ds.update_field_metadata({"j": {f"{CLUSTERING}:position": "1"}}),
    "no clustering": lambda m, ds: ds.update_field_metadata({"j": {f"{CLUSTERING}:position": "x"}}),
    "replaced": lambda m, ds: ds.replace_field_metadata("k", {"a": "b"}),
    "nullable": lambda m, ds: ds.alter_columns({"path": "k", "nullable": True}),
    "renamed": lambda m, ds: ds.alter_columns({"path": "k", "name": "q"}),
    "dropped": lambda m, ds: ds.drop_columns(["k"]),
    "a new column of nulls": lambda m, ds: ds.add_columns(pa.field("q", INT, metadata={PRIMARY: "true"})),
    "a new column": lambda m, ds: ds.add_columns(pa.table([[1]], schema=pa.schema([KEY]))),
    "a new nullable column": lambda m, ds: ds.add_columns(pa.table([[1]], schema=pa.schema([KEY.with_nullable(True)]))),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("declared", [None, {PRIMARY: "true"}, {f"{PRIMARY}:position": "1"}], ids=str)
def test_a_declared_key_changes_where_pylance_lets_it(
    declared: dict[str, str] | None, change: str, tmp_path: Path
) -> None:
    first, *others = COLUMNS
    rows = pa.table([[1], [2], [3]], schema=pa.schema([first.with_metadata(declared), *others]))
    found = []
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(rows, uri)
        outcome = _outcome(CHANGES[change], library, dataset)
        read = lance.dataset(uri)
        found.append((outcome, read.schema, read.version, _told(read.lance_schema)))
    assert found[0] == found[1]


def test_a_commit_by_hand_makes_no_table_with_a_bad_key(uri: str) -> None:
    esker.write_dataset(pa.table({"a": [1]}), uri)
    schema = pa.schema([pa.field("q", INT, metadata={PRIMARY: "true"})])
    with pytest.raises(InvalidArgumentError, match="must not be nullable"):
        esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(schema, []), read_version=1)
    assert lance.dataset(uri).version == 1


def test_a_commit_by_hand_takes_no_key_away(uri: str) -> None:
    schema = pa.schema([pa.field("k", INT, False, metadata={f"{PRIMARY}:position": "1"}), pa.field("n", INT)])
    esker.write_dataset(schema.empty_table(), uri)
    changes: list[dict[str, str | None]] = [
        {f"{PRIMARY}:position": "2"},
        {f"{PRIMARY}:position": None},
        {PRIMARY: "true"},
    ]
    for metadata in changes:
        update = esker.LanceOperation.UpdateMap(metadata)
        operation = esker.LanceOperation.UpdateConfig(field_metadata_updates={0: update})
        if metadata == {PRIMARY: "true"}:
            esker.LanceDataset.commit(uri, operation, read_version=1)
        else:
            with pytest.raises(InvalidArgumentError, match="cannot be changed once set"):
                esker.LanceDataset.commit(uri, operation, read_version=1)
    assert [field.name() for field in lance.dataset(uri).lance_schema.unenforced_primary_key()] == ["k"]


def test_an_upsert_goes_by_the_places_of_the_declared_key(tmp_path: Path) -> None:
    fields = [pa.field(name, INT, False, metadata={f"{PRIMARY}:position": at}) for name, at in (("a", "2"), ("b", "1"))]
    schema = pa.schema([*fields, pa.field("v", INT)])
    found = []
    for library in (lance, esker):
        dataset = library.write_dataset(pa.table([[1, 2], [1, 2], [0, 0]], schema=schema), tmp_path / library.__name__)
        merge = dataset.merge_insert().when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.table([[1, 2], [1, 3], [7, 8]], schema=schema))
        found.append(sorted(dataset.to_table().to_pylist(), key=lambda row: (row["a"], row["b"])))
    assert found[0] == found[1]
