"""Our writer's bytes are pinned, version by version; old ones stay readable, for us and for pylance."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pytest

from esker.file import LanceFileReader
from tests.compat.golden.writer.generate import FOLDER, TABLES, VERSIONS, write
from tests.samples import same

FILES = [(name, version) for name in TABLES for version in VERSIONS]


@pytest.mark.parametrize(("name", "version"), FILES)
def test_the_writer_writes_the_golden_bytes(name: str, version: str, tmp_path: Path) -> None:
    golden = (FOLDER / f"{name}.{version}.lance").read_bytes()
    write(name, version, tmp_path / "now.lance")
    found = (tmp_path / "now.lance").read_bytes()
    first = next((at for at, (a, b) in enumerate(zip(golden, found, strict=False)) if a != b), None)
    assert found == golden, f"{len(golden)} bytes became {len(found)}, the first other one at {first}; see generate.py"


@pytest.mark.parametrize(("name", "version"), FILES)
def test_golden_files_are_read_by_both(name: str, version: str) -> None:
    path = FOLDER / f"{name}.{version}.lance"
    expected = TABLES[name][0]().replace_schema_metadata({"golden": name})
    for reader in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
        same(expected, reader.read_all().to_table())
        assert bytes(reader.read_global_buffer(1)) == b"golden"


def test_every_golden_file_is_in_the_catalogue() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.lance")) == sorted(f"{n}.{v}.lance" for n, v in FILES)
    catalogue = (FOLDER / "README.md").read_text()
    assert [name for name in TABLES if f"`{name}`" not in catalogue] == []
