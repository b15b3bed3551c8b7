"""`alter_columns` from text to JSON: pylance keeps the text, esker makes a JSON column that both read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import SchemaMismatchError

TEXTS = ['{"a": 1}', "[1]", "null", '{"a": "x"}']


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("type_", [pa.json_(), pa.json_(pa.large_utf8())], ids=["utf8", "large_utf8"])
def test_texts_become_json(tmp_path: Path, version: str, type_: pa.DataType) -> None:
    uri = str(tmp_path / "t")
    texts = TEXTS if version == "0.1" else [*TEXTS, None]
    dataset = esker.write_dataset(
        pa.table({"id": range(len(texts)), "s": pa.array(texts)}), uri, data_storage_version=version
    )
    dataset.delete("id = 1")
    dataset.alter_columns({"path": "s", "data_type": type_})
    expected = ['{"a":1}', "null", '{"a":"x"}', *texts[4:]]
    for library in (esker, lance):
        found = library.dataset(uri)
        assert found.schema.field("s").type == pa.json_()
        assert found.to_table()["s"].to_pylist() == expected
    assert dataset.count_rows("json_extract(s, '$.a') = '1'") == 1
    # JSON is JSON already, whatever holds its text.
    dataset.alter_columns({"path": "s", "data_type": pa.json_(pa.large_utf8())})
    assert dataset.to_table()["s"].to_pylist() == expected
    esker.write_dataset(dataset.to_table(), uri, mode="append")
    assert lance.dataset(uri).count_rows() == 2 * len(expected)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_texts_within_structs_and_lists_become_json(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t")
    rows: list[Any] = [{"x": '{"q": 2}', "l": [{"t": "[ ]"}, None]}, None, {"x": None, "l": []}]
    type_ = pa.struct([("x", pa.string()), ("l", pa.list_(pa.struct([("t", pa.string())])))])
    dataset = esker.write_dataset(pa.table({"n": pa.array(rows, type_)}), uri, data_storage_version=version)
    dataset.alter_columns({"path": "n.x", "data_type": pa.json_()}, {"path": "n.l.item.t", "data_type": pa.json_()})
    expected: list[Any] = [{"x": '{"q":2}', "l": [{"t": "[]"}, None]}, None, {"x": None, "l": []}]
    for library in (esker, lance):
        assert library.dataset(uri).to_table()["n"].to_pylist() == expected


def test_what_is_no_json_is_named_and_nothing_changes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(pa.table({"s": ["1", "{"]}), uri)
    with pytest.raises(SchemaMismatchError, match=r"'s'.*row 1: Failed to encode JSON"):
        dataset.alter_columns({"path": "s", "data_type": pa.json_()})
    found = esker.dataset(uri)
    assert found.version == 1
    assert found.to_table()["s"].to_pylist() == ["1", "{"]
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1
