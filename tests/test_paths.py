"""Where tables may lie: names that URLs would mangle, relative paths, file URIs, folders that do not exist yet."""

from __future__ import annotations

import os
from pathlib import Path

import deltalake
import lance
import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from tests.samples import people

NAMES = [
    "a b",
    "per%20cent",
    "ü漢",
    "q?x=1",
    "hash#1",
    "plus+and&",
    ".hidden",
    "dots..x",
    "it's",
    "back\\slash",
    "[b]*",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / name)
    esker.write_dataset(people(3), uri)
    esker.write_dataset(people(2, start=3), uri, mode="append")
    assert os.listdir(tmp_path) == [name]
    assert esker.dataset(uri).count_rows() == lance.dataset(uri).count_rows() == 5


def test_one_table_has_many_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = esker.write_dataset(people(3), "deep/er/table.lance")
    assert written.uri == "deep/er/table.lance"
    for spelling in (
        "deep/er/table.lance/",
        "./deep/../deep/er/table.lance",
        Path("deep") / "er" / "table.lance",
        tmp_path / "deep" / "er" / "table.lance",
        f"file://{tmp_path}/deep/er/table.lance",
    ):
        assert esker.dataset(spelling).count_rows() == 3


def test_a_dataset_survives_a_change_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = esker.write_dataset(people(3), "table.lance")
    monkeypatch.chdir("/")
    assert dataset.to_table().num_rows == 3
    assert dataset.latest_version == 1
    dataset.insert(people(1, start=3))
    assert dataset.count_rows() == 4


def test_file_uris_are_percent_encoded_and_paths_are_not(tmp_path: Path) -> None:
    esker.write_dataset(people(3), f"file://{tmp_path}/with%20space")
    assert os.listdir(tmp_path) == ["with space"]
    assert (
        esker.dataset(tmp_path / "with space").count_rows()
        == lance.dataset(f"file://{tmp_path}/with%20space").count_rows()
    )


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    esker.write_dataset(people(3), "~/table.lance")
    assert os.listdir(tmp_path) == ["table.lance"]


@pytest.mark.parametrize("name", ["with space", "100%", "ünï", "plus+and&x=1"])
def test_a_delta_table_is_read_and_changed_by_the_uri_of_its_folder(name: str, tmp_path: Path) -> None:
    """A URI is percent-encoded, and the folder is not."""
    folder = tmp_path / name
    write_deltalake(folder.as_uri(), pa.table({"id": [1, 2, 3]}))
    table = DeltaTable(folder.as_uri())
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    table.delete("id = 2")
    assert {Path(uri).parent for uri in table.file_uris()} == {folder}
    theirs = deltalake.DeltaTable(folder.as_uri()).to_pyarrow_table()
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == sorted(theirs["id"].to_pylist()) == [1, 3]
