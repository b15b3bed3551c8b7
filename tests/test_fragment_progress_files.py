"""`FileSystemFragmentWriteProgress`: files that tell which fragments are written, as pylance writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import lance.progress
import pyarrow as pa
import pytest

import esker
from esker.progress import FileSystemFragmentWriteProgress


def test_a_write_leaves_one_file_a_fragment(tmp_path: Path) -> None:
    progress = FileSystemFragmentWriteProgress(str(tmp_path / "p"))
    esker.write_dataset(pa.table({"a": range(4)}), str(tmp_path / "t"), progress=progress)
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["fragment_0.json"]
    assert json.loads((tmp_path / "p" / "fragment_0.json").read_text())["physical_rows"] == 4


def test_the_files_have_the_names_and_the_notes_of_those_of_pylance(tmp_path: Path) -> None:
    fragment = esker.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t")).get_fragments()[0].metadata
    found = []
    for module in (esker.progress, lance.progress):
        folder = tmp_path / module.__name__
        progress: Any = module.FileSystemFragmentWriteProgress(str(folder), metadata={"machine": "7"})
        progress.begin(fragment)
        found.append({path.name: json.loads(path.read_text()) for path in folder.iterdir()})
        progress.complete(fragment)
        found.append({path.name: json.loads(path.read_text()) for path in folder.iterdir()})
    assert found[:2] == found[2:]


@pytest.mark.parametrize("as_uri", [False, True])
def test_an_open_fragment_has_a_second_file(tmp_path: Path, as_uri: bool) -> None:
    fragment = esker.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t")).get_fragments()[0].metadata
    folder = tmp_path / "deep" / "er"
    progress: Any = FileSystemFragmentWriteProgress(folder.as_uri() if as_uri else str(folder), {"machine": "7"})
    progress.begin(fragment)
    noted = json.loads((folder / f"fragment_0{progress.PROGRESS_EXT}").read_text())
    assert noted == {"fragment_id": 0, "metadata": {"machine": "7"}}
    progress.complete(fragment)
    assert [path.name for path in folder.iterdir()] == ["fragment_0.json"]
    assert json.loads((folder / "fragment_0.json").read_text()) == fragment.to_json()
