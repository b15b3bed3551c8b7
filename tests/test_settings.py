"""Key-values of a table, its schema and its fields, and restores: by both libraries in turn."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CommitConflictError, InvalidArgumentError


@pytest.fixture(params=["esker", "lance"])
def dataset(request: pytest.FixtureRequest, uri: str) -> Any:
    """The same calls make the same table, whoever makes them."""
    table = pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}]})
    esker.write_dataset(table.replace_schema_metadata({"old": "0"}), uri)
    return esker.dataset(uri) if request.param == "esker" else lance.dataset(uri)


def test_maps_change_key_by_key_or_as_a_whole(dataset: Any, uri: str) -> None:
    assert dataset.update_config({"x": "1", "y": "2"}) == {"x": "1", "y": "2"}
    assert dataset.update_config({"x": None, "z": "3"}) == {"y": "2", "z": "3"}
    dataset.delete_config_keys(["y", "nope"])
    assert dataset.update_metadata({"about": "it"}) == {"about": "it"}
    assert dataset.update_metadata({"b": "c"}, replace=True) == {"b": "c"}
    assert dataset.update_schema_metadata({"new": "1"}) == {"old": "0", "new": "1"}
    dataset.replace_schema_metadata({"only": "1"})
    dataset.update_field_metadata({"a": {"k": "v"}, "s.x": {"q": "r"}})
    dataset.update_field_metadata({"a": {"k": None, "l": "m"}})
    dataset.replace_field_metadata("s", {"n": "o"})
    for found in (esker.dataset(uri), lance.dataset(uri), dataset):
        assert found.version == 11
        assert found.config() == {"z": "3"}
        assert found.metadata == {"b": "c"}
        assert found.schema.metadata == {b"only": b"1"}
        assert found.schema.field("a").metadata == {b"l": b"m"}
        assert found.schema.field("s").metadata == {b"n": b"o"}
        assert found.schema.field("s").type.field("x").metadata == {b"q": b"r"}


def test_a_stale_dataset_adds_to_what_others_set(dataset: Any, uri: str) -> None:
    esker.dataset(uri).update_config({"theirs": "1"})
    assert dataset.update_config({"ours": "2"}) == {"theirs": "1", "ours": "2"}


def test_two_changes_of_one_key_conflict(uri: str) -> None:
    esker.write_dataset(pa.table({"a": [1]}), uri)
    stale = esker.dataset(uri)
    lance.dataset(uri).update_config({"k": "theirs"})
    with pytest.raises(CommitConflictError) as caught:
        stale.update_config({"k": "ours"})
    error = caught.value
    assert (error.operation, error.other_operation) == ("UpdateConfig", "UpdateConfig")
    assert (error.version, error.other_version, error.retryable) == (1, 2, False)
    assert lance.dataset(uri).config() == {"k": "theirs"}


def test_wrong_calls_are_refused(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"a": [1]}), uri)
    with pytest.raises(InvalidArgumentError, match="'zz'"):
        dataset.update_field_metadata({"zz": {"k": "v"}})
    with pytest.raises(TypeError, match="key-values as str"):
        dataset.update_config({"k": 1})  # type: ignore[dict-item]
    assert esker.dataset(uri).version == 1


def test_a_restore_brings_contents_and_settings_back(dataset: Any, uri: str) -> None:
    dataset.update_config({"x": "1"})
    lance.dataset(uri).delete("a = 1")
    esker.dataset(uri).drop_columns(["s"])
    old = dataset.checkout_version(1)
    old.restore()
    for found in (old, esker.dataset(uri), lance.dataset(uri)):
        assert (found.version, found.count_rows(), found.config()) == (5, 2, {})
        assert found.schema.names == ["a", "s"]
    esker.write_dataset(pa.table({"a": [3], "s": [{"x": 3}]}), uri, mode="append")
    assert lance.dataset(uri).to_table()["a"].to_pylist() == [1, 2, 3]


def test_a_restored_table_gives_out_no_id_twice(uri: str) -> None:
    esker.write_dataset(pa.table({"a": [1]}), uri)
    esker.write_dataset(pa.table({"a": [2]}), uri, mode="append")
    esker.dataset(uri, version=1).restore()
    assert esker.write_dataset(pa.table({"a": [3]}), uri, mode="append").fragment_ids() == [0, 2]
