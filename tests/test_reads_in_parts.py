"""Chunks whose values turn out to be far longer than those before them are read in parts, with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker

SHORT, LONG, SIZE = 9_000, 700, 60_000
ROWS = 2 * SHORT + LONG


def _table() -> pa.Table:
    """Columns of 40 MB each, in a few rows in their middle."""

    def text(row: int) -> str | None:
        if row % 97 == 0:
            return None
        is_long = SHORT <= row < SHORT + LONG
        return f"{row % 13:0{SIZE}d}" if is_long else f"text {row % 1000}"

    texts = pa.array([text(row) for row in range(ROWS)], pa.large_utf8())
    lists = [None if row % 89 == 0 else [text(row)] * (row % 3) for row in range(ROWS)]
    few = pa.array([f"{row % 2:0{SIZE if SHORT <= row < SHORT + LONG else 4}d}" for row in range(ROWS)])
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "t": texts,
            "l": pa.array(lists, pa.list_(pa.utf8())),
            "s": pa.StructArray.from_arrays([texts.cast(pa.large_binary()), few], ["b", "few"]),
            "few": few,
            "k": few.dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return _table()


@pytest.fixture(scope="module", params=["lance 2.1", "lance 2.2", "esker 2.2", "esker 2.0"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Any:
    writer, version = request.param.split()
    uri = tmp_path_factory.mktemp("parts") / "t"
    if writer == "lance":
        lance.write_dataset(table, uri, data_storage_version=version)
    else:
        esker.write_dataset(table, uri, data_storage_version=version, durable=False)
    found = esker.dataset(uri)
    found.delete("id % 11 = 3")
    return found


def _expected(table: pa.Table, mask: pa.ChunkedArray | None = None) -> pa.Table:
    live = pc.not_equal(pc.subtract(table["id"], pc.multiply(pc.divide(table["id"], 11), 11)), 3)
    return table.filter(live if mask is None else pc.and_kleene(live, mask))


def _mask(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    identity = table["id"]
    return {
        "": lambda: None,
        "id % 2 = 0": lambda: pc.equal(pc.bit_wise_and(identity, 1), 0),
        "length(t) > 6": lambda: pc.greater(pc.utf8_length(table["t"]), 6),
        "few like '%1' and id > 8000": lambda: pc.and_(pc.ends_with(table["few"], "1"), pc.greater(identity, 8000)),
        "t is null or s.few like '%0'": lambda: pc.or_(
            pc.is_null(table["t"]), pc.ends_with(pc.struct_field(table["s"], [1]), "0")
        ),
    }[name]()


def _plain(table: pa.Table) -> pa.Table:
    """Keys count the values of each read's own dictionary."""
    if "k" not in table.column_names:
        return table
    return table.set_column(table.column_names.index("k"), "k", table["k"].cast(pa.utf8()))


FILTERS = ["", "id % 2 = 0", "length(t) > 6", "few like '%1' and id > 8000", "t is null or s.few like '%0'"]


@pytest.mark.parametrize("columns", [["id", "t", "l", "s", "few", "k"], ["t"], ["id"], ["few", "id"]], ids="-".join)
@pytest.mark.parametrize("condition", FILTERS)
@pytest.mark.parametrize("batch_size", [None, 100, 3_000])
def test_rows_read_in_parts_are_those_of_the_table(
    dataset: Any, table: pa.Table, columns: list[str], condition: str, batch_size: int | None
) -> None:
    expected = _expected(table, _mask(table, condition)).select(columns)
    options = {"filter": condition or None, "batch_size": batch_size}
    batches = list(dataset.scanner(columns=columns, **options).to_batches())
    found = pa.Table.from_batches(batches, expected.schema)
    assert _plain(found).equals(_plain(expected))
    if batch_size is not None:
        assert max(batch.num_rows for batch in batches) <= batch_size
        if not condition:
            assert {batch.num_rows for batch in batches[:-1]} == {batch_size}


@pytest.mark.parametrize("condition", FILTERS)
def test_parts_keep_offsets_limits_ids_and_counts(dataset: Any, table: pa.Table, condition: str) -> None:
    whole = _expected(table, _mask(table, condition))
    assert dataset.count_rows(condition or None) == whole.num_rows
    options = {"filter": condition or None, "columns": ["id", "t"]}
    for offset, limit in [(100, 300), (4_000, 1_000), (2_000, None)]:
        found = dataset.to_table(offset=offset, limit=limit, with_row_id=True, **options)
        assert found.select(["id", "t"]).equals(whole.select(["id", "t"]).slice(offset, limit))
        assert found["_rowid"].cast(pa.int64()).equals(found["id"])
    strict = list(dataset.scanner(batch_size=250, strict_batch_size=True, **options).to_batches())
    assert {batch.num_rows for batch in strict[:-1]} <= {250}
    assert pa.Table.from_batches(strict).equals(whole.select(["id", "t"]))
    unordered = dataset.scanner(scan_in_order=False, **options).to_table().sort_by("id")
    assert unordered.equals(whole.select(["id", "t"]))


def test_one_long_value_leaves_the_chunks_behind_it_as_they_are(tmp_path: Path) -> None:
    rows = 100_000
    texts = pa.array(["x" * 25_000_000 if row == 50 else f"text {row} of some length" for row in range(rows)])
    esker.write_dataset(pa.table({"id": range(rows), "t": texts}), tmp_path / "t", durable=False)
    dataset = esker.dataset(tmp_path / "t")
    for condition in (None, "id % 2 = 0", "length(t) > 5"):
        batches = list(dataset.scanner(filter=condition).to_batches())
        assert sum(batch.num_rows for batch in batches) == (rows // 2 if condition == "id % 2 = 0" else rows)
        # There were one for almost every row.
        assert len(batches) < 200


@pytest.mark.parametrize("condition", ["length(t) > 5", "t like '%3'"])
def test_a_filter_asked_before_chunks_holds_little_of_few_long_texts(tmp_path: Path, condition: str) -> None:
    # As values they take more than 32-bit offsets can count. Beside large columns, many rows are asked at once.
    rows, size = 40_000, 60_000
    few = pa.array([f"{number:0{size}d}" for number in range(10)])
    rng = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("t", pa.utf8()), ("wide", pa.binary())])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, 4_000):
            ids = pa.array(range(start, start + 4_000))
            wide = pa.array([rng.bytes(1_500) for _ in range(4_000)])
            texts = few.take(pa.array([row % 10 for row in range(4_000)]))
            yield pa.record_batch([ids, texts, wide], schema=schema)

    esker.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path / "t", durable=False)
    found = esker.dataset(tmp_path / "t").scanner(filter=condition).to_batches()
    assert sum(batch.num_rows for batch in found) == (rows if condition.startswith("length") else rows // 10)


def test_pages_of_one_text_are_read_in_parts(tmp_path: Path) -> None:
    short = pa.table({"t": [f"text {row}" for row in range(9_000)]})
    long = pa.table({"t": pa.array(["y" * 20_000]).take(pa.array([0] * 4_000))})
    lance.write_dataset(short, tmp_path / "t", data_storage_version="2.2")
    lance.write_dataset(long, tmp_path / "t", mode="append")
    batches = list(esker.dataset(tmp_path / "t").scanner().to_batches())
    assert pa.Table.from_batches(batches).equals(pa.concat_tables([short, long]))
    assert max(batch.nbytes for batch in batches) < 24 << 20
