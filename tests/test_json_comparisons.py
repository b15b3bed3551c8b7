"""JSON columns compared with texts: refused, as by pylance, for JSONB equals no text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker.exceptions import InvalidArgumentError

JSON = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", '"x"', "5", None]))
ROWS = pa.table({"id": [1, 2, 3, 4], "j": JSON, "s": pa.StructArray.from_arrays([JSON], ["j"])})
REFUSED = ["j = '{}'", "j IN ('{}')", "j <> '{}'", "'{}' = j", "s.j = '{}'", "j BETWEEN 'a' AND 'z'", "j > '1'"]
ANSWERED = {
    "j IS NULL": [4],
    "j IS NOT NULL": [1, 2, 3],
    "s.j IS NULL": [4],
    "json_extract(j, '$') = '5'": [3],
    "json_extract(s.j, '$') = '{}'": [1],
    "j = j": [1, 2, 3],
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_comparison_with_a_text_is_refused(tmp_path: Path, sql: str) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(ROWS, uri)
    calls: list[Any] = [
        lambda: dataset.to_table(filter=sql),
        lambda: dataset.count_rows(sql),
        lambda: dataset.delete(sql),
        lambda: dataset.update({"id": "0"}, where=sql),
        lambda: dataset.to_table(columns={"x": sql}),
    ]
    for call in calls:
        with pytest.raises(InvalidArgumentError, match="json_extract"):
            call()
    assert esker.dataset(uri).version == 1
    with pytest.raises(ValueError, match="could not convert"):
        lance.dataset(uri).to_table(filter=sql)


def test_an_arrow_expression_is_refused(tmp_path: Path) -> None:
    dataset = esker.write_dataset(ROWS, str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match="json_extract"):
        dataset.to_table(filter=pc.field("j") == "{}")


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_has_an_answer_is_answered(tmp_path: Path, sql: str) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ROWS, uri)
    for library in (esker, lance):
        assert library.dataset(uri).to_table(columns=["id"], filter=sql)["id"].to_pylist() == ANSWERED[sql]
