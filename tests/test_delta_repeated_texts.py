"""Texts that repeat are copied as numbers of their dictionary: whatever pages have them, beside a model of the rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker.delta import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from esker.delta.change import column_copies
from esker.delta.change.changed_table import ChangedTable
from esker.delta.change.column_copies import OpenFile
from tests.rounds import rounds
from tests.test_delta_delete import entry


@pytest.fixture(scope="module", autouse=True)
def at_any_size() -> Iterator[None]:
    """Has small files copied on their own, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_copies, "LEAST_COPIED", 0)
        yield


@pytest.fixture(scope="module")
def taken() -> Iterator[list[bool]]:
    """For each row group of texts that was copied whether they were numbers of a dictionary."""
    found: list[bool] = []
    repeated = OpenFile.repeated

    def noted(self: OpenFile, group: int, name: str) -> Any:
        made = repeated(self, group, name)
        found.append(made is not None)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenFile, "repeated", noted)
        yield found


def texts_of(count: int, few: int, tail: int, nulls: float, seed: int) -> list[str | None]:
    """A few texts that repeat, and behind them others, which a small dictionary page has no room for."""
    chance = random.Random(seed)
    texts = [f"é{chance.randrange(few)}" for _ in range(count - tail)] + [f"z{n}" for n in range(tail)]
    return [None if chance.random() < nulls else text for text in texts]


@settings(deadline=None, max_examples=rounds(15))
@given(
    count=st.sampled_from([1, 900, 20_000]),
    few=st.sampled_from([1, 3, 60]),
    tail=st.sampled_from([0, 0.02, 0.15]),
    nulls=st.sampled_from([0, 0.3, 1]),
    group=st.sampled_from([333, 9_000, 1 << 20]),
    limit=st.sampled_from([40, 1 << 20]),
    modulus=st.sampled_from([2, 7, 500]),
    seed=st.integers(0, 99),
)
def test_texts_that_stay_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    taken: list[bool],
    count: int,
    few: int,
    tail: float,
    nulls: float,
    group: int,
    limit: int,
    modulus: int,
    seed: int,
) -> None:
    path = tmp_path_factory.mktemp("texts")
    texts = texts_of(count, few, int(count * tail), nulls, seed)
    made = pa.table({"id": pa.array(range(count), pa.int64()), "t": pa.array(texts, pa.string())})
    properties = WriterProperties(max_row_group_size=group, dictionary_page_size_limit=limit)
    write_deltalake(path, made, writer_properties=properties)
    table = DeltaTable(path)
    before = len(taken)
    gone = seed % modulus
    table.delete(f"id % {modulus} = {gone}")
    kept = [(n, text) for n, text in enumerate(texts) if n % modulus != gone]
    found = table.to_pyarrow_table().sort_by("id")
    assert list(zip(found["id"].to_pylist(), found["t"].to_pylist(), strict=True)) == kept
    adds = [action for kind, action in entry(path, table.version()) if kind == "add"]
    if len(kept) == count or not kept:
        return
    (add,) = adds
    assert len(taken) > before, "the file was copied, and its texts asked for"
    told = json.loads(add["stats"])
    valid = [text for _, text in kept if text is not None]
    assert (told["numRecords"], told["nullCount"]["t"]) == (len(kept), len(kept) - len(valid))
    bounds = (told["minValues"].get("t"), told["maxValues"].get("t"))
    assert bounds == ((min(valid), max(valid)) if valid else (None, None))
    footer = pq.read_metadata(path / add["path"])
    for number in range(footer.num_row_groups):
        column = footer.row_group(number).column(1)
        assert (
            column.statistics.null_count
            == column.num_values - pc.count(pq.ParquetFile(path / add["path"]).read_row_group(number)["t"]).as_py()
        )


def test_texts_were_taken_by_their_numbers(taken: list[bool], tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(5000), "t": [f"t{n % 9}" for n in range(5000)]}))
    table = DeltaTable(tmp_path)
    taken.clear()
    table.delete("id % 10 = 3")
    assert taken == [True]
    (name,) = (action["path"] for kind, action in entry(tmp_path, 1) if kind == "add")
    column = pq.read_metadata(tmp_path / name).row_group(0).column(1)
    assert column.has_dictionary_page
    assert column.total_uncompressed_size < 3 * column.num_values
    assert table.to_pyarrow_table()["t"].unique().to_pylist() == [f"t{n}" for n in range(9) if n != 3] + ["t3"]


def opened(path: Path) -> OpenFile:
    table = ChangedTable(DeltaTable(path)._write_target(), None)
    (file,) = table.candidates()
    return OpenFile(table, file)


def test_dictionaries_of_several_batches_are_read_as_the_texts(tmp_path: Path) -> None:
    texts = texts_of(30_000, 4, 3_000, 0.1, 1)
    write_deltalake(tmp_path, pa.table({"t": texts}), writer_properties=WriterProperties(dictionary_page_size_limit=40))
    found = opened(tmp_path).repeated(0, "t")
    assert found is not None
    parts = list(found)
    assert len(parts) > 1
    assert all(pa.types.is_dictionary(part.type) for part in parts)
    assert [text for part in parts for text in part.to_pylist()] == texts
    assert len({tuple(part.dictionary.to_pylist()) for part in parts}) > 1, "the later ones have other dictionaries"


@pytest.mark.parametrize(
    ("why", "column"),
    [
        ("numbers", pa.array([n % 3 for n in range(3000)])),
        ("bytes", pa.array([b"x", b"y", b"z"] * 1000)),
        ("structs", pa.array([{"t": "x"}] * 3000)),
        ("each is another", pa.array([f"text {n}" for n in range(3000)])),
        ("no dictionary", pa.array(["x", "y", "z"] * 1000)),
        ("another column", pa.array(["x", "y", "z"] * 1000)),
    ],
)
def test_what_is_no_text_that_repeats_is_read_as_it_is(tmp_path: Path, why: str, column: pa.Array) -> None:
    plain = WriterProperties(default_column_properties=ColumnProperties(dictionary_enabled=False))
    write_deltalake(tmp_path, pa.table({"t": column}), writer_properties=plain if why == "no dictionary" else None)
    file = opened(tmp_path)
    names = {"structs": "t.t", "another column": "u"}
    assert file.repeated(0, names.get(why, "t")) is None
    assert pa.concat_arrays([part.column(0) for part in file.read(0, ["t"])]).equals(column)
