"""`LanceOperation.DataReplacement`: new files for some columns of fragments, beside dropped, cast and moved columns."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import InvalidArgumentError, NotFoundError, SchemaMismatchError
from esker.file import LanceFileWriter
from esker.fragment import DataFile

VERSIONS = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
PEERS: dict[str, Any] = {"esker": esker, "pylance": lance}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def _table(uri: str, version: str, **options: Any) -> LanceDataset:
    columns = {
        "a": list(range(6)),
        "b": [f"b{n}" for n in range(6)],
        "s": [{"x": n, "y": -n} for n in range(6)],
        "c": [n / 2 for n in range(6)],
    }
    return esker.write_dataset(pa.table(columns), uri, data_storage_version=version, max_rows_per_file=3, **options)


def _replacement(dataset: LanceDataset, number: int, columns: dict[str, Any]) -> LanceOperation.DataReplacement:
    name = f"new-{number}-{'-'.join(columns)}.lance"
    with LanceFileWriter(f"{dataset.uri}/data/{name}", version=dataset.data_storage_version) as writer:
        writer.write_batch(pa.table(columns))
    group = LanceOperation.DataReplacementGroup(number, DataFile.create(dataset, name))
    return LanceOperation.DataReplacement([group])


def _replace(dataset: LanceDataset, number: int, columns: dict[str, Any]) -> LanceDataset:
    operation = _replacement(dataset, number, columns)
    return LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def _check(uri: str, **expected: list[Any]) -> None:
    for module in PEERS.values():
        dataset = module.dataset(uri)
        dataset.validate()
        found = dataset.to_table().to_pydict()
        assert {name: found[name] for name in expected} == expected


@VERSIONS
@pytest.mark.parametrize("ids", [False, True], ids=["addresses", "stable ids"])
def test_some_columns_of_a_file_get_another_one(uri: str, version: str, ids: bool) -> None:
    dataset = _table(uri, version, enable_stable_row_ids=ids)
    _replace(dataset, 1, {"b": ["n3", "n4", "n5"]})
    _check(uri, a=[0, 1, 2, 3, 4, 5], b=["b0", "b1", "b2", "n3", "n4", "n5"], c=[0, 0.5, 1, 1.5, 2, 2.5])
    # Columns of two files: the one of which nothing is left is named no more.
    dataset = esker.dataset(uri)
    _replace(dataset, 1, {"b": ["m3", "m4", "m5"], "c": [7.0, 8.0, 9.0]})
    assert len(esker.dataset(uri).get_fragments()[1].data_files()) == 2
    _check(uri, a=[0, 1, 2, 3, 4, 5], b=["b0", "b1", "b2", "m3", "m4", "m5"], c=[0, 0.5, 1, 7, 8, 9])


@VERSIONS
def test_a_struct_gets_another_file(uri: str, version: str) -> None:
    dataset = _table(uri, version)
    values = [{"x": 10, "y": 11}, {"x": 12, "y": 13}, {"x": 14, "y": 15} if version == "2.0" else None]
    _replace(dataset, 0, {"s": values})
    expected = [*values, *({"x": n, "y": -n} for n in (3, 4, 5))]
    _check(uri, a=[0, 1, 2, 3, 4, 5], s=expected)


@VERSIONS
@pytest.mark.parametrize("by", PEERS)
def test_a_file_whose_other_columns_were_dropped_or_cast_is_replaced(uri: str, version: str, by: str) -> None:
    _table(uri, version)
    PEERS[by].dataset(uri).drop_columns(["a", "s"])
    PEERS[by].dataset(uri).alter_columns({"path": "c", "data_type": pa.float32()})
    dataset = esker.dataset(uri)
    _replace(dataset, 0, {"b": ["x", "y", "z"]})
    fields = [file.fields for file in esker.dataset(uri).get_fragments()[0].data_files()]
    assert len(fields) == 2, "the file of which no column is left is named no more"
    _check(uri, b=["x", "y", "z", "b3", "b4", "b5"], c=[0, 0.5, 1, 1.5, 2, 2.5])


@pytest.mark.parametrize("order", ["replaced first", "dropped first"])
def test_a_column_is_dropped_beside_a_replacement_of_it_and_another(uri: str, order: str) -> None:
    dataset = _table(uri, "2.2")
    operation = _replacement(dataset, 0, {"b": ["x", "y", "z"], "c": [7.0, 8.0, 9.0]})
    if order == "replaced first":
        LanceDataset.commit(uri, operation, read_version=1)
        esker.dataset(uri).drop_columns(["c"])
    else:
        esker.dataset(uri).drop_columns(["c"])
        LanceDataset.commit(uri, operation, read_version=1)
    _check(uri, a=[0, 1, 2, 3, 4, 5], b=["x", "y", "z", "b3", "b4", "b5"])
    esker.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    _check(uri, a=[0, 1, 2, 3, 4, 5], b=["x", "y", "z", "b3", "b4", "b5"])


def test_replaced_columns_meet_deletes_branches_and_compaction(uri: str) -> None:
    dataset = _table(uri, "2.2", enable_stable_row_ids=True)
    dataset.delete("a = 1")
    esker.dataset(uri).create_branch("side")
    branch = esker.dataset(uri).checkout_version(("side", None))
    with LanceFileWriter(f"{uri}/tree/side/data/new.lance") as writer:
        writer.write_batch(pa.table({"b": ["x", "y", "z"]}))
    group = LanceOperation.DataReplacementGroup(0, DataFile.create(branch, "new.lance"))
    LanceDataset.commit(branch, LanceOperation.DataReplacement([group]), read_version=branch.version)
    branch = esker.dataset(uri).checkout_version(("side", None))
    assert branch.to_table()["b"].to_pylist() == ["x", "z", "b3", "b4", "b5"]
    branch.optimize.compact_files(target_rows_per_fragment=100)
    branch = esker.dataset(uri).checkout_version(("side", None))
    assert branch.to_table(with_row_id=True).select(["b", "_rowid"]).to_pydict() == {
        "b": ["x", "z", "b3", "b4", "b5"],
        "_rowid": [0, 2, 3, 4, 5],
    }
    assert esker.dataset(uri).to_table()["b"].to_pylist() == ["b0", "b2", "b3", "b4", "b5"]


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("detached", [False, True])
def test_a_file_with_other_rows_than_its_fragment_is_refused(uri: str, rows: int, detached: bool) -> None:
    dataset = _table(uri, "2.2")
    dataset.delete("a = 0")
    operation = _replacement(dataset, 0, {"b": ["x"] * rows})
    with pytest.raises(InvalidArgumentError, match=f"expected 3 rows as fragment 0 has, found {rows}"):
        LanceDataset.commit(uri, operation, read_version=2, detached=detached)
    assert esker.dataset(uri).version == 2
    assert len(esker.dataset(uri).to_table()) == 5


def test_a_file_that_is_not_there_is_refused(uri: str) -> None:
    dataset = _table(uri, "2.2")
    operation = _replacement(dataset, 0, {"b": ["x", "y", "z"]})
    Path(uri, "data", operation.replacements[0].new_file.path).unlink()
    with pytest.raises(NotFoundError):
        LanceDataset.commit(uri, operation, read_version=1)
    assert esker.dataset(uri).version == 1


def test_files_of_the_oldest_version_are_replaced_whole(uri: str) -> None:
    dataset = _table(uri, "0.1")
    other = esker.write_dataset(
        pa.table({"a": [7, 8, 9], "b": ["x", "y", "z"]}), f"{uri}-2", data_storage_version="0.1"
    )
    file = other.get_fragments()[0].metadata.files[0]
    Path(uri, "data", file.path).write_bytes(Path(other.uri, "data", file.path).read_bytes())
    group = LanceOperation.DataReplacementGroup(0, DataFile.create(dataset, file.path))
    with pytest.raises(InvalidArgumentError, match="all columns of"):
        LanceDataset.commit(uri, LanceOperation.DataReplacement([group]), read_version=1)
    esker.dataset(uri).drop_columns(["s", "c"])
    LanceDataset.commit(uri, LanceOperation.DataReplacement([group]), read_version=2)
    assert len(esker.dataset(uri).get_fragments()[0].data_files()) == 1
    for module in PEERS.values():
        found = module.dataset(uri).to_table().to_pydict()
        assert found == {"a": [7, 8, 9, 3, 4, 5], "b": ["x", "y", "z", "b3", "b4", "b5"]}


def test_a_file_of_the_oldest_version_has_the_tables_field_ids(uri: str) -> None:
    dataset = _table(uri, "0.1")
    with pytest.raises(SchemaMismatchError, match="field ids"):
        _replacement(dataset, 0, {"b": ["x", "y", "z"]})
