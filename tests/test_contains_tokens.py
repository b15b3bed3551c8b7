"""`contains_tokens` in filters, beside pylance's: all words of a query are in a text, in any order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import esker

LETTERS = st.text(st.sampled_from("aAbB1 ,-_'ßé中٣½\n"), max_size=8)


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()], ids=str)
def test_words_in_filters(tmp_path: Path, type_: pa.DataType) -> None:
    texts = pa.array(["a-b", "b, a", "ab", "A b", "", None, "a a", "ß b a"], type_)
    table = pa.table({"id": range(len(texts)), "s": texts})
    found = []
    for library in (lance, esker):
        peer: Any = library
        dataset = peer.write_dataset(table, str(tmp_path / library.__name__))
        queries = ["b a", "a", "", "-", "A", "a b a", "ß"]
        found.append(
            [dataset.to_table(filter=f"contains_tokens(s, '{query}')")["id"].to_pylist() for query in queries]
            + [dataset.to_table(filter="NOT contains_tokens(s, 'a') OR id = 2")["id"].to_pylist()]
        )
    assert found[0] == found[1]
    assert found[1][0] == [0, 1, 7]
    ours = esker.dataset(str(tmp_path / "esker"))
    assert ours.delete("contains_tokens(s, 'b')")["num_deleted_rows"] == 4
    assert ours.to_table(columns={"x": "contains_tokens(s, s)"})["x"].to_pylist() == [True, True, None, True]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(LETTERS, min_size=1, max_size=30), query=LETTERS)
def test_words_are_found_as_by_pylance(tmp_path: Path, texts: list[str], query: str) -> None:
    table = pa.table({"s": texts})
    sql = "contains_tokens(s, '{}')".format(query.replace("'", "''"))
    kept = []
    for library in (lance, esker):
        peer: Any = library
        dataset = peer.write_dataset(table, str(tmp_path / library.__name__), mode="overwrite")
        kept.append(dataset.to_table(filter=sql)["s"].to_pylist())
    assert kept[0] == kept[1]
