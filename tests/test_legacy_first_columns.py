"""Columns of files of version 0.1 get new values in place: readers find all columns of a file by its first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import UnsupportedError
from esker.fragment import FragmentMetadata, write_fragments

NEW: dict[str, list[Any]] = {"a": [99], "b": ["new"], "s": [{"x": 7, "y": 8}], "d": [-1.5]}
PEERS: dict[str, Any] = {"esker": esker, "pylance": lance}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    columns = {
        "a": [1, 2, 3, 4],
        "b": ["x", "y", "z", "u"],
        "s": [{"x": n, "y": -n} for n in range(4)],
        "k": [10, 20, 30, 40],
    }
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table(columns), uri, data_storage_version="0.1")
    # A second file, of one column.
    esker.dataset(uri).add_columns({"d": "k / 4.0"})
    return uri


def _update(uri: str, columns: list[str]) -> None:
    dataset = esker.dataset(uri)
    new = pa.table({"k": [20], **{name: NEW[name] for name in columns}})
    fragment, fields = dataset.get_fragments()[0].update_columns(new, "k")
    ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
    assert {ids[name] for name in columns} <= set(fields)
    assert not {ids[name] for name in ids if name not in columns} & set(fields)
    operation = LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    LanceDataset.commit(uri, operation, read_version=dataset.version)


def _check(uri: str, expected: list[dict[str, Any]]) -> None:
    for module in PEERS.values():
        dataset = module.dataset(uri)
        dataset.validate()
        assert dataset.to_table().to_pylist() == expected
        for name in dataset.schema.names:
            assert dataset.to_table(columns=[name]).to_pylist() == [{name: row[name]} for row in expected]


@pytest.mark.parametrize(
    "turns",
    [[["a"]], [["b"]], [["s"]], [["d"]], [["a", "b"]], [["a", "d"]], [["b"], ["a"]], [["a"], ["b"], ["a", "s"]]],
)
@pytest.mark.parametrize("dropped", [None, "a", "b"])
@pytest.mark.parametrize("deleted", [False, True])
def test_columns_get_new_values_in_place(uri: str, turns: list[list[str]], dropped: str | None, deleted: bool) -> None:
    expected = lance.dataset(uri).to_table().to_pylist()
    if dropped:
        esker.dataset(uri).drop_columns([dropped])
        expected = [{name: value for name, value in row.items() if name != dropped} for row in expected]
    if deleted:
        esker.dataset(uri).delete("k IN (10, 40)")
        expected = expected[1:3]
    for turn in turns:
        columns = [name for name in turn if name != dropped]
        if columns:
            _update(uri, columns)
            expected[int(not deleted)].update({name: NEW[name][0] for name in columns})
    _check(uri, expected)
    esker.dataset(uri).add_columns({"e": "k + 1"})
    _check(uri, [{**row, "e": row["k"] + 1} for row in expected])
    esker.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0)
    _check(uri, [{**row, "e": row["k"] + 1} for row in expected])


def test_a_part_of_the_first_column_stays_where_it_is(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"s": [{"x": 1, "y": 2}], "t": [{"x": 1}]}), uri, data_storage_version="0.1")
    files = {path.name for path in Path(uri, "data").iterdir()}
    with pytest.raises(UnsupportedError, match=r"0\.1 find all columns"):
        esker.dataset(uri).alter_columns({"path": "s.x", "data_type": pa.int32()})
    assert {path.name for path in Path(uri, "data").iterdir()} == files
    _check(uri, [{"s": {"x": 1, "y": 2}, "t": {"x": 1}}])
    # Neither does another writer's change of that kind come in.
    fragment = lance.dataset(uri).get_fragments()[0]
    new = pa.table({"s": pa.array([{"x": 5, "y": 6}]), "k": pa.array([0], pa.uint64())})
    changed, fields = fragment.update_columns(new, left_on="_rowid", right_on="k")
    operation = LanceOperation.Update([], [FragmentMetadata.from_json(json.dumps(changed.to_json()))], [], fields)
    with pytest.raises(UnsupportedError, match=r"0\.1 find all columns"):
        LanceDataset.commit(uri, operation, read_version=1)
    # Elsewhere it moves, and as a whole the first one does, too.
    esker.dataset(uri).alter_columns({"path": "t.x", "data_type": pa.int32()})
    esker.dataset(uri).alter_columns({"path": "s", "data_type": pa.struct({"x": pa.int16(), "y": pa.int64()})})
    _check(uri, [{"s": {"x": 1, "y": 2}, "t": {"x": 1}}])


def test_fragments_that_wait_keep_their_first_column_when_it_was_dropped(uri: str) -> None:
    esker.dataset(uri).drop_columns(["d"])
    more = pa.table({"a": [5], "b": ["w"], "s": [{"x": 9, "y": 9}], "k": [50]})
    staged = write_fragments(more, uri, mode="append", schema=esker.dataset(uri).schema)
    esker.dataset(uri).drop_columns(["a", "s"])
    LanceDataset.commit(uri, LanceOperation.Append(staged), read_version=3)
    expected: list[dict[str, Any]] = [{"b": b, "k": k} for b, k in zip("xyzuw", (10, 20, 30, 40, 50), strict=True)]
    _check(uri, expected)
    esker.dataset(uri).add_columns({"a": "k * 2"})
    _check(uri, [{**row, "a": 2 * row["k"]} for row in expected])
