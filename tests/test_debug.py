"""`esker.debug`: metadata as text, in the shape that pylance prints."""

from __future__ import annotations

import re
from pathlib import Path

import lance
import lance.debug
import pyarrow as pa
import pytest

import esker
from esker.debug import format_fragment, format_manifest, format_schema, list_transactions


def pairs(text: str) -> list[str]:
    """The lines of a text that name a value on the same line, without indentation."""
    return [line.strip() for line in text.splitlines() if re.search(r"^\s*\w+: \S+,$", line)]


@pytest.fixture
def theirs(tmp_path: Path) -> lance.LanceDataset:
    """A table of pylance's with a struct, a column added and rows deleted."""
    dataset = lance.write_dataset(pa.table({"x": range(9), "s": [{"a": 1, "b": "t"}] * 9}), tmp_path / "t")
    dataset.add_columns({"y": "x + 1"})
    dataset.delete("x = 3")
    return dataset


def test_what_is_printed_is_what_pylance_prints(theirs: lance.LanceDataset) -> None:
    ours = esker.dataset(theirs.uri)
    for mine, peer in [
        (format_schema(ours), lance.debug.format_schema(theirs)),
        (
            format_fragment(ours.get_fragments()[0], ours),
            lance.debug.format_fragment(theirs.get_fragments()[0].metadata, theirs),
        ),
        (format_manifest(ours), lance.debug.format_manifest(theirs)),
    ]:
        assert mine.splitlines()[0] == peer.splitlines()[0]
        known = (*pairs(peer), 'file_type: "array",', "num_deleted_rows: 1,")
        missing = [line for line in pairs(mine) if line not in known]
        assert not missing, missing
    assert pairs(format_schema(ours))[:3] == ['name: "x",', "id: 0,", "parent_id: -1,"]


def test_transactions_are_listed_newest_first(theirs: lance.LanceDataset) -> None:
    ours = esker.dataset(theirs.uri)
    found = list_transactions(ours)
    peer = lance.debug.list_transactions(theirs)
    named = [re.search(r"operation: (\w+) {", text) for text in found]
    assert [match and match[1] for match in named] == ["Delete", "Merge", "Overwrite"]
    assert [re.findall(r'uuid: "(.*)"', text) for text in found] == [re.findall(r'uuid: "(.*)"', text) for text in peer]
    assert list_transactions(ours, max_transactions=2) == found[:2]
    assert list_transactions(esker.dataset(theirs.uri, version=1)) == found[2:]
