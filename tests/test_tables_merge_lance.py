"""`source-wins` over Lance tables that both sides changed: indices, columns, fragments, and versions from before."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.repo import Repository
from esker.repo.errors import TableConflictError
from tests.table_branches import FORMATS, Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, "lance")
    made.write(made.main, *range(50), mode="create")
    return made


def exported(lake: Lake, ref: str = "main", **options: Any) -> tuple[Any, dict[str, Any]]:
    """What pylance finds after an export."""
    with tempfile.TemporaryDirectory() as folder:
        lake.repo.ref(ref).export(folder)
        dataset = lance.dataset(f"{folder}/{lake.path}", **options)
        return dataset.to_table(filter="id >= 40"), {one["name"]: one for one in dataset.list_indices()}


def test_an_index_comes_with_the_version_that_has_it(lake: Lake) -> None:
    f = lake.fork()
    lake.by_peer(f, lambda place: lance.dataset(place).create_scalar_index("id", "BTREE"))
    lake.write(lake.main, 100)
    f.merge_into("main", strategy="source-wins")
    found, indices = exported(lake)
    assert sorted(found["id"].to_pylist()) == list(range(40, 50))
    assert list(indices) == ["id_idx"]
    assert any(path.startswith("_indices/") for path in lake.paths())
    lake.write(lake.main, 101)
    found, _ = exported(lake)
    assert sorted(found["id"].to_pylist()) == [*range(40, 50), 101]
    assert list(lake.repo.fsck(tables=True)) == []


def test_columns_get_ids_that_neither_side_has_used(lake: Lake) -> None:
    f = lake.fork()
    lake.change(f, lambda uri: esker.dataset(uri).add_columns({"theirs": "id * 2"}))
    lake.change(lake.main, lambda uri: esker.dataset(uri).add_columns({"ours": "id * 3", "more": "id * 4"}))
    lake.change(lake.main, lambda uri: esker.dataset(uri).drop_columns(["more"]))
    f.merge_into("main", strategy="source-wins")
    lake.change(lake.main, lambda uri: esker.dataset(uri).add_columns({"new": "id * 5"}))
    found, _ = exported(lake)
    assert found.schema.names == ["id", "v", "theirs", "new"]
    assert found["new"].to_pylist() == [5 * id for id in found["id"].to_pylist()]
    old, _ = exported(lake, version=2)
    assert old["ours"].to_pylist() == [3 * id for id in old["id"].to_pylist()]


def test_fragments_get_numbers_that_neither_side_has_used(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 60)
    for number in (70, 71, 72):
        lake.write(lake.main, number)
    f.merge_into("main", strategy="source-wins")
    lake.write(lake.main, 80)
    dataset = esker.dataset(lake.main.store_uri(lake.path))
    assert [one.fragment_id for one in dataset.get_fragments()] == [0, 1, 4]
    assert sorted(exported(lake)[0]["id"].to_pylist()) == [*range(40, 50), 60, 80]


def test_deletes_of_both_sides_do_not_unite(lake: Lake) -> None:
    f = lake.fork()
    lake.change(f, lambda uri: esker.dataset(uri).update({"v": "'theirs'"}, where="id = 45"))
    lake.change(lake.main, lambda uri: esker.dataset(uri).update({"v": "'ours'"}, where="id = 45"))
    with pytest.raises(TableConflictError):
        f.merge_into("main")
    f.merge_into("main", strategy="source-wins")
    found, _ = exported(lake)
    assert sorted(found["id"].to_pylist()) == list(range(40, 50))
    assert found.filter(pa.compute.equal(found["id"], 45))["v"].to_pylist() == ["theirs"]


@pytest.mark.parametrize("format", FORMATS)
def test_versions_from_before_a_restore_read_as_they_did(tmp_path: Path, format: Any) -> None:
    lake = Lake(tmp_path / "other", format)
    lake.write(lake.main, 1, mode="overwrite")
    f = lake.fork()
    lake.write(f, 2)
    lake.write(f, 3, mode="overwrite")
    lake.write(lake.main, 4)
    lake.write(lake.main, 5)
    f.merge_into("main", strategy="source-wins")
    uri = lake.main.store_uri(lake.path)
    read = esker.dataset if format == "lance" else esker.delta.DeltaTable
    expected = [[1], [1, 4], [1, 4, 5], [3]]
    for number, rows in enumerate(expected, lake.first):
        opened: Any = read(uri, version=number)
        table = opened.to_table() if format == "lance" else opened.to_pyarrow_table()
        assert sorted(table["id"].to_pylist()) == rows


def test_a_table_with_files_elsewhere_is_not_restored(lake: Lake, tmp_path: Path) -> None:
    f = lake.fork()
    (tmp_path / "elsewhere").mkdir()
    base = lance.DatasetBasePath(str(tmp_path / "elsewhere"), name="elsewhere")
    lake.by_peer(f, lambda place: lance.dataset(place).add_bases([base]))
    lake.write(lake.main, 60)
    with pytest.raises(TableConflictError, match="elsewhere") as caught:
        f.merge_into("main", strategy="source-wins")
    assert [one.kind for one in caught.value.tables] == ["unsupported"]
    f.merge_into("main", strategy="dest-wins")
    assert lake.read() == (2, [*range(50), 60])


def test_a_history_whose_contents_are_collected_tells_nothing(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 60)
    lake.change(f, lambda uri: esker.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True))
    lake.repo.change_settings(retention_days=0)
    # Younger than the grace period is nothing, however coarse the times of files are.
    lake.repo.gc(dry_run=False, grace_s=-3600, now=2**33)
    # Another handle, which remembers nothing of what was collected.
    with pytest.raises(TableConflictError) as caught:
        Repository(lake.repo.uri).ref("f").merge_into("main")
    assert [one.kind for one in caught.value.tables] == ["cleaned-up"]
    assert lake.read() == (1, list(range(50)))
