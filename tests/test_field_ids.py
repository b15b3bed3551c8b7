"""A field id means one column: rows that wait for their commit never come back under another column's name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import CommitConflictError, InvalidArgumentError, UnsupportedError
from esker.fragment import write_fragments

LIBRARIES = {"esker": esker, "pylance": lance}
EVERYONE = pytest.mark.parametrize("writer", LIBRARIES)
NEW_COLUMN = pytest.mark.parametrize("new", [{"bonus": "a * 0"}, {"bonus": "'text'"}, {"secret": "a * 2"}])
MARK = "esker.max_field_id"


def _table(uri: str, writer: str = "esker") -> None:
    """Version 1 has `a`, version 2 `secret` too, in a file of its own."""
    LIBRARIES[writer].write_dataset(pa.table({"a": [1]}), uri)
    LIBRARIES[writer].dataset(uri).add_columns({"secret": "a * 100"})


def _staged(uri: str) -> list[Any]:
    return write_fragments(pa.table({"a": [2], "secret": [777]}), uri)


def _swap(uri: str, writer: str, new: dict[str, str]) -> None:
    dataset = LIBRARIES[writer].dataset(uri)
    dataset.drop_columns(["secret"])
    LIBRARIES[writer].dataset(uri).add_columns(new)


def _ids(uri: str) -> dict[str, int]:
    return {field.name(): field.id() for field in esker.dataset(uri).lance_schema.fields()}


@EVERYONE
@NEW_COLUMN
def test_an_append_staged_before_a_column_was_replaced_is_refused(
    tmp_path: Path, writer: str, new: dict[str, str]
) -> None:
    uri = str(tmp_path / "t")
    _table(uri, writer)
    staged = _staged(uri)
    _swap(uri, writer, new)
    before = esker.dataset(uri).to_table()
    with pytest.raises(CommitConflictError) as conflict:
        LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=2)
    assert conflict.value.retryable
    assert esker.dataset(uri).to_table() == before


@NEW_COLUMN
def test_what_pylance_appends_does_not_come_back_in_a_column_of_ours(tmp_path: Path, new: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    staged = lance.fragment.write_fragments(pa.table({"a": [2], "secret": [777]}), uri, mode="append")
    _swap(uri, "esker", new)
    with suppress(OSError):
        lance.LanceDataset.commit(uri, lance.LanceOperation.Append(staged), read_version=2)
    (name,) = new
    for library in LIBRARIES.values():
        rows = library.dataset(uri).to_table().to_pylist()
        assert [row[name] for row in rows if row["a"] == 2] in ([], [None])


def test_an_append_that_says_it_read_the_newest_version_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    staged = _staged(uri)
    _swap(uri, "esker", {"bonus": "a * 0"})
    with pytest.raises(InvalidArgumentError, match="expected fields of the table's schema, found field 1"):
        LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=esker.dataset(uri).version)


def _drop(uri: str) -> None:
    esker.dataset(uri).drop_columns(["secret"])


def _drop_and_compact(uri: str) -> None:
    esker.write_dataset(pa.table({"a": [5], "secret": [6]}), uri, mode="append")
    lance.dataset(uri).drop_columns(["secret"])
    dataset = esker.dataset(uri)
    old = [fragment.metadata for fragment in dataset.get_fragments()]
    group = LanceOperation.RewriteGroup(old, write_fragments(dataset.to_table(), uri))
    LanceDataset.commit(uri, LanceOperation.Rewrite([group], []), read_version=dataset.version)


def _drop_and_delete(uri: str) -> None:
    lance.write_dataset(pa.table({"a": [5], "secret": [6]}), uri, mode="append")
    lance.dataset(uri).drop_columns(["secret"])
    esker.dataset(uri).delete("a = 5")


def _restore(uri: str) -> None:
    dataset = esker.dataset(uri, version=1)
    dataset.restore()


def _restore_by_pylance(uri: str) -> None:
    _drop(uri)
    lance.dataset(uri, version=2).restore()
    _drop(uri)


def _drop_and_replace_the_config(uri: str) -> None:
    _drop(uri)
    esker.dataset(uri).update_config({"k": "v"}, replace=True)


def _narrow(uri: str) -> None:
    dataset = esker.dataset(uri)
    dataset.alter_columns({"path": "secret", "data_type": pa.int32()})
    dataset.drop_columns(["secret"])


WAYS: dict[str, Callable[[str], None]] = {
    "dropped": _drop,
    "dropped by pylance, compacted": _drop_and_compact,
    "dropped by pylance, its fragment deleted": _drop_and_delete,
    "restored": _restore,
    "restored by pylance": _restore_by_pylance,
    "config replaced": _drop_and_replace_the_config,
    "another type": _narrow,
}


@pytest.mark.parametrize("way", WAYS)
def test_an_id_is_not_given_twice(tmp_path: Path, way: str) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    highest = 2 if way == "another type" else 1
    WAYS[way](uri)
    assert "secret" not in _ids(uri)
    esker.dataset(uri).add_columns({"bonus": "a * 0"})
    assert _ids(uri)["bonus"] == highest + 1
    # Nor after others wrote.
    lance.write_dataset(pa.table({"a": [9], "bonus": pa.array([9], pa.int64())}), uri, mode="append")
    esker.dataset(uri).drop_columns(["bonus"])
    esker.dataset(uri).add_columns(pa.field("nulls", pa.int8()))
    assert _ids(uri)["nulls"] == highest + 2
    assert esker.dataset(uri).max_field_id == highest + 2
    lance.dataset(uri).validate()
    assert lance.dataset(uri).to_table() == esker.dataset(uri).to_table()


def test_a_clone_and_a_branch_remember_the_ids(tmp_path: Path) -> None:
    uri, clone = str(tmp_path / "t"), str(tmp_path / "clone")
    _table(uri)
    _drop(uri)
    esker.dataset(uri).shallow_clone(clone, esker.dataset(uri).version)
    esker.dataset(clone).add_columns({"bonus": "a * 0"})
    assert _ids(clone)["bonus"] == 2


def test_the_note_stands_only_where_an_id_shows_no_more(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    esker.dataset(uri).drop_columns(["a"])
    assert MARK not in esker.dataset(uri)._manifest.config
    esker.dataset(uri).add_columns({"b": "secret"})
    esker.dataset(uri).drop_columns(["b"])
    assert esker.dataset(uri)._manifest.config[MARK] == "2"
    assert lance.dataset(uri).to_table() == esker.dataset(uri).to_table()


def test_a_table_whose_ids_are_used_up_says_so(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    esker.dataset(uri).update_config({MARK: str(2**31 - 1)})
    for new in ({"b": "a"}, pa.field("b", pa.int8())):
        with pytest.raises(UnsupportedError, match="used up all"):
            esker.dataset(uri).add_columns(new)
    for nonsense in ("x", "-7", str(2**40)):
        esker.dataset(uri).update_config({MARK: nonsense}, replace=True)
        assert esker.dataset(uri).max_field_id in (1, 2**31 - 1)


def test_an_append_keeps_its_values_under_a_new_name(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    staged = _staged(uri)
    lance.dataset(uri).alter_columns({"path": "secret", "name": "known"})
    LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=2)
    assert esker.dataset(uri).to_table().to_pylist() == [{"a": 1, "known": 100}, {"a": 2, "known": 777}]


def test_an_append_goes_without_values_of_a_column_that_was_dropped(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    staged = _staged(uri)
    lance.dataset(uri).drop_columns(["secret"])
    LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=2)
    lance.dataset(uri).add_columns({"bonus": "a * 0"})
    assert esker.dataset(uri).to_table().to_pylist() == [{"a": 1, "bonus": 0}, {"a": 2, "bonus": 0}]


def test_the_read_version_may_be_cleaned_up(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    staged = _staged(uri)
    lance.dataset(uri).add_columns({"more": "a"})
    (tmp_path / "t" / "_versions" / f"{2**64 - 1 - 2}.manifest").unlink()
    # Nobody knows what the ids meant then.
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=2)


def test_key_values_of_a_field_do_not_move_to_another_column(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    update = LanceOperation.UpdateConfig(field_metadata_updates={1: LanceOperation.UpdateMap({"unit": "m"})})
    _swap(uri, "pylance", {"bonus": "a * 0"})
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(uri, update, read_version=2)
    assert not esker.dataset(uri).schema.field("bonus").metadata


def test_a_replacing_file_of_a_dropped_column_stays_out(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    file = esker.dataset(uri).get_fragments()[0].metadata.files[1]
    replacement = LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, file)])
    lance.dataset(uri).drop_columns(["secret"])
    LanceDataset.commit(uri, replacement, read_version=2)
    assert len(esker.dataset(uri).get_fragments()[0].metadata.files) == 1
    with pytest.raises(InvalidArgumentError, match="expected fields of the table's schema"):
        LanceDataset.commit(uri, replacement, read_version=esker.dataset(uri).version)
