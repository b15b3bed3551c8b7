"""Filters over narrow columns of rows with vectors, long texts, bytes and lists: the rows are those of plain Arrow.

Where a row's other columns are large beside those of the filter, the filter is asked of many rows before any of the
others is read, and what it keeps is read run by run. How far the kept rows lie from one another decides how they are
read, so the conditions here leave gaps from one row to thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from tests.rounds import rounds

Mask = Callable[[dict[str, np.ndarray]], np.ndarray]

VERSIONS = ["2.0", "2.1", "2.2"]
WIDE = ["vector", "text", "bytes", "list", "struct"]
BYTES = 8_000_000
OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"AND": np.logical_and, "OR": np.logical_or}


@dataclass
class Case:
    """A table that was written, and what is known of it without a reader."""

    dataset: esker.LanceDataset
    rows: pa.Table
    """All of them, with deleted ones."""
    live: np.ndarray
    per_file: int

    @property
    def addresses(self) -> np.ndarray:
        numbers = np.arange(self.rows.num_rows)
        return ((numbers // self.per_file) << 32 | numbers % self.per_file).astype(np.uint64)

    def values(self) -> dict[str, np.ndarray]:
        """What conditions read: numbers, with -1 for null."""
        narrow = {name: pc.fill_null(self.rows[name], -1).to_numpy() for name in ("id", "k")}
        return {**narrow, "n": pc.struct_field(self.rows["st"], "n").to_numpy()}


def wide(kind: str, rows: int, width: int, rng: np.random.Generator) -> pa.Array:
    """A column of about `width` bytes in a row, some of them null."""
    nulls = pa.array(rng.random(rows) < 0.1)
    if kind == "vector":
        items = pa.array(rng.random(rows * (width // 4), dtype=np.float32))
        return pa.FixedSizeListArray.from_arrays(items, width // 4, mask=nulls)
    if kind == "struct":
        return pa.StructArray.from_arrays(
            [wide("vector", rows, width // 2, rng), wide("text", rows, width // 2, rng)], ["v", "t"]
        )
    if kind == "list":
        lengths = rng.integers(0, width // 10, rows)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        words = pa.array([f"word {number}" for number in range(997)])
        return pa.ListArray.from_arrays(offsets, words.take(pa.array(rng.integers(0, 997, int(lengths.sum())))))
    pool = rng.integers(32, 120, 3 * width).astype(np.uint8).tobytes()
    starts, lengths = rng.integers(0, width, rows), rng.integers(0, 2 * width, rows)
    parts = [pool[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    values = pa.array(parts, pa.large_binary()) if kind == "bytes" else pa.array([part.decode() for part in parts])
    return pc.if_else(nulls, pa.scalar(None, values.type), values)


def written(place: Path, random: Random) -> Case:
    """A table of some shape, from which rows may be gone."""
    rng = np.random.default_rng(random.randrange(1 << 32))
    width = random.choice([64, 256, 1024, 8192])
    rows = random.randint(1, BYTES // width)
    small = pa.array(rng.integers(0, 40, rows).astype(np.int32))
    columns = {
        "id": pa.array(np.arange(rows)),
        "k": pc.if_else(pa.array(rng.random(rows) < 0.05), pa.scalar(None, small.type), small),
        "s": pa.array([f"key {number:05d}" for number in range(50)]).take(small),
        "st": pa.StructArray.from_arrays([pa.array(rng.integers(0, 100, rows))], ["n"]),
    }
    columns |= {f"w{place}": wide(kind, rows, width, rng) for place, kind in enumerate(random.sample(WIDE, 2))}
    table = pa.table(columns)
    per_file = -(-rows // random.choice([1, 1, 2, 5]))
    version = random.choice(VERSIONS)
    dataset = esker.write_dataset(table, place, max_rows_per_file=per_file, data_storage_version=version, durable=False)
    case = Case(dataset, table, np.ones(rows, bool), per_file)
    if random.random() < 0.5:
        text, mask = condition(random, rows)
        gone = mask(case.values())
        if not gone.all():
            dataset.delete(text)
            case.live = ~gone
    return case


def condition(random: Random, rows: int) -> tuple[str, Mask]:
    """A condition in SQL and in numpy, which keeps rows near one another or far from one another."""
    step = random.choice([2, 3, 7, 33, 97, 700, 2999])
    first = random.randrange(rows)
    some = sorted(random.sample(range(rows), min(rows, random.randint(1, 30))))
    least = random.randint(0, 100)
    found: list[tuple[str, Mask]] = [
        (f"id % {step} = 0", lambda row: row["id"] % step == 0),
        (f"id % {step * 10} < {step}", lambda row: row["id"] % (step * 10) < step),
        (f"id >= {first}", lambda row: row["id"] >= first),
        (f"NOT id BETWEEN {first // 2} AND {first}", lambda row: (row["id"] < first // 2) | (row["id"] > first)),
        (f"id IN ({', '.join(map(str, some))})", lambda row: np.isin(row["id"], some)),
        (f"k > {least}", lambda row: row["k"] > least),
        ("k IS NULL", lambda row: row["k"] < 0),
        (f"st.n < {least}", lambda row: row["n"] < least),
        # It may fail as far as anybody knows, so that it is asked last.
        (f"100 / (st.n + 1) > {least}", lambda row: 100 // (row["n"] + 1) > least),
    ]
    return random.choice(found)


def conditions(random: Random, rows: int) -> tuple[str, Mask]:
    """Some of them together."""
    text, mask = condition(random, rows)
    for _ in range(random.randint(0, 2)):
        name = random.choice(["AND", "AND", "OR"])
        (other, its_mask), before, operator = condition(random, rows), mask, OPERATORS[name]
        text = f"({text}) {name} ({other})"

        def mask(
            row: dict[str, np.ndarray], before: Mask = before, its: Mask = its_mask, operator: Any = operator
        ) -> np.ndarray:
            return np.asarray(operator(before(row), its(row)))

    return text, mask


def check(case: Case, random: Random) -> None:
    """One scan, beside plain Arrow and the peer."""
    text, mask = conditions(random, case.rows.num_rows)
    kept = np.nonzero(mask(case.values()) & case.live)[0]
    assert case.dataset.count_rows(filter=text) == len(kept), text
    columns = random.choice([None, ["w0"], ["w1", "id"], ["s", "k", "w0", "w1"], ["st", "w1"]])
    options: dict[str, Any] = {"columns": columns, "filter": text, "with_row_address": True}
    if random.random() < 0.3:
        first, most = random.randint(0, len(kept)), random.randint(0, len(kept))
        options |= {"offset": first, "limit": most}
        kept = kept[first : first + most]
    found = case.dataset.to_table(**options)
    expected = case.rows.select(columns or case.rows.column_names).take(pa.array(kept))
    assert found.drop_columns("_rowaddr").equals(expected), options
    assert np.array_equal(found["_rowaddr"].to_numpy(), case.addresses[kept]), options
    if "offset" not in options:
        reader = case.dataset.scanner(**options, scan_in_order=False).to_reader()
        assert sorted(row for batch in reader for row in batch["_rowaddr"].to_pylist()) == case.addresses[kept].tolist()
        theirs = lance.dataset(case.dataset.uri).to_table(columns=["id"], filter=text)
        assert np.array_equal(theirs["id"].to_numpy(), kept), text
    # A reader that is dropped in the middle stops, and the next one finds all.
    next(iter(case.dataset.to_batches(**options)), None)


@pytest.mark.parametrize("seed", range(rounds(24)))
def test_filters_keep_the_rows_of_plain_arrow(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    case = written(tmp_path / "t", random)
    for _ in range(6):
        check(case, random)
