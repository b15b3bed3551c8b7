"""The worked examples of docs/format.md are the bytes that the writer writes."""

from __future__ import annotations

import re
from pathlib import Path

import lance.file
import pytest

from esker.file import LanceFileReader, LanceFileWriter
from tests.annotate import EXAMPLES, annotate

PAGE = (Path(__file__).parent.parent / "docs" / "format.md").read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_writer_writes(name: str, tmp_path: Path) -> None:
    version, table = EXAMPLES[name]
    path = tmp_path / "example.lance"
    with LanceFileWriter(path, version=version) as writer:
        writer.write_batch(table)
    section = PAGE[PAGE.index(f"### {name}\n") :]
    shown = re.search(r"```text\n(.*?)\n```", section, re.DOTALL)
    assert shown is not None
    # Renewed by `python -m tests.annotate --page`.
    assert shown[1] == annotate(path)
    assert (
        LanceFileReader(path).read_all().to_table()
        == table
        == lance.file.LanceFileReader(str(path)).read_all().to_table()
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_lines_of_an_example_hold_every_byte_in_order(name: str, tmp_path: Path) -> None:
    version, table = EXAMPLES[name]
    path = tmp_path / "example.lance"
    with LanceFileWriter(path, version=version) as writer:
        writer.write_batch(table)
    lines = [re.match(r" *(\d+)  ((?:[0-9a-f]{2} ?)+)(?: |$)", line) for line in annotate(path).splitlines()]
    found = b""
    for line in lines:
        if line:
            assert int(line[1]) == len(found)
            found += bytes.fromhex(line[2])
    assert found == path.read_bytes()
