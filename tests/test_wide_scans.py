"""Scans of wide tables look at the columns that are named alone: what they give, and what they refuse, is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import esker
from esker.arrow import json_columns
from esker.exceptions import EskerError
from esker.lance.scan import named_columns
from tests.peaks import PEAK

ODD = ["s", "Upper", "a b", "x-y", "it's", 'q"q', "c1_", "ümlaut", "true", "_rowid2", "select"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 100 plain columns and of some whose names have to be quoted."""
    table: dict[str, Any] = {f"c{number}": pa.array([number, None, number + 2]) for number in range(100)}
    table |= {name: pa.array([f"{name}{row}" for row in range(3)]) for name in ODD}
    table["s"] = pa.array([{"x": row, "y.z": str(row)} for row in range(3)])
    table["j"] = pa.array(['{"k": 1}', None, "[2]"], pa.json_())
    path = tmp_path_factory.mktemp("wide") / "t.lance"
    esker.write_dataset(pa.table(table), path)
    return path


def outcome(path: Path, arguments: dict[str, Any]) -> Any:
    try:
        scanner = esker.dataset(path).scanner(**arguments)
        found = scanner.to_table()
        return scanner.projected_schema, found.schema, found.to_pydict(), scanner.count_rows()
    except (EskerError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": ["c7"]},
        {"columns": ["c12", "c1", "s.x"]},
        {"columns": ["s.`y.z`", "x-y"]},
        {"columns": ["_rowid", "c3"], "filter": "c4 > 3"},
        {"columns": [], "filter": "c5 IS NULL", "with_row_id": True},
        {"columns": ["j"], "filter": "j IS NOT NULL"},
        {"columns": {"twice": "c7 * 2", "u": "upper(`Upper`)", "b": '"a b"'}},
        {"columns": {"yes": "true", "no": "NULL", "shout": "C7"}},
        {"columns": ["c7"], "filter": "`x-y` = 'x-y1' OR `it's` IS NULL"},
        {"columns": ["c7"], "filter": '"q""q" = \'q"q1\''},
        {"columns": ["c7"], "filter": "C7 = 7"},
        {"columns": ["c7"], "filter": "upper = 'Upper0'"},
        {"columns": ["c7"], "filter": "`ÜMLAUT` IS NOT NULL"},
        {"columns": ["c7"], "filter": "s.x = 1 AND s['y.z'] = '1'"},
        {"columns": ["c7"], "filter": "_rowid = 1 AND _rowoffset < 3"},
        {"columns": ["C7"]},
        {"columns": ["nothing"]},
        {"columns": ["c7", "c7"]},
        {"columns": ["s.nothing"]},
        {"columns": ["c7"], "filter": "nothing = 1"},
        {"columns": ["c7"], "filter": "c7 ="},
        {"columns": ["c7"], "filter": "c7 = 'text'"},
        {"columns": {"x": "nothing + 1"}},
        {"columns": ["*"], "filter": "c7 = 7"},
        {"filter": "c7 = 7"},
        {"columns": [7]},
    ],
    ids=str,
)
def test_named_columns_are_found_as_among_all(
    wide: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    few = outcome(wide, arguments)
    monkeypatch.setattr(named_columns, "_WIDE", 10**9)
    assert few == outcome(wide, arguments)


def test_wide_tables_are_read_as_pylance_reads_them(wide: Path) -> None:
    asked: dict[str, Any] = {"columns": ["c7", "s.x", "Upper"], "filter": "c8 > 8 AND `a b` = 'a b2'"}
    assert esker.dataset(wide).to_table(**asked).to_pydict() == lance.dataset(wide).to_table(**asked).to_pydict()


def test_no_schema_is_made_of_columns_that_are_not_named(wide: Path) -> None:
    dataset = esker.dataset(wide)
    dataset.to_table(columns=["c7"], filter="c8 = 8")
    assert "described_schema" not in vars(dataset._table)


def test_expressions_of_a_wide_table_read_their_own_columns(wide: Path) -> None:
    columns = {f"x{number}": f"c{number} + c{number + 1}" for number in range(0, 90, 9)} | {"s": "s.x", "one": "1"}
    found, expected = (library.dataset(wide).to_table(columns=columns) for library in (esker, lance))
    assert found.to_pydict() == expected.to_pydict()
    assert esker.dataset(wide).take([2, 0], columns=columns).to_pydict() == found.take([2, 0]).to_pydict()


def test_filters_beside_many_columns_read_near_rows_together(tmp_path: Path) -> None:
    # Of rows that are far from one another all those between them would be read otherwise.
    rng = np.random.default_rng(0)
    rows = 70_000
    columns = {f"c{number}": rng.integers(-(2**62), 2**62, rows) for number in range(300)}
    keys = rng.integers(0, 200, rows).astype(np.int16)
    table = pa.table({"k": keys, **columns})
    esker.write_dataset(table, tmp_path)
    program = PEAK + (
        "import esker, sys; rows = sum(batch.num_rows for batch in "
        "esker.dataset(sys.argv[1]).scanner(filter=sys.argv[2] or None).to_batches()); "
        "print(rows, peak())"
    )
    found = {}
    for filter in ("", "k < 1", "k < 2", "k < 20"):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), filter], capture_output=True, text=True, check=True
        )
        found[filter] = tuple(map(int, done.stdout.split()))
    assert [rows for rows, _ in found.values()] == [rows, *(int((keys < most).sum()) for most in (1, 2, 20))]
    whole = found[""][1]
    assert all(peak < 1.3 * whole for _, peak in found.values()), found
    for filter, limit, offset in [("k < 2", 10, 0), ("k < 50", 1_000, 5_000), ("k >= 0", 100, 65_500)]:
        options: dict[str, Any] = {"filter": filter, "limit": limit, "offset": offset}
        kept = pa.compute.indices_nonzero(
            pa.array(keys < 2 if "2" in filter else keys < 50 if "50" in filter else keys >= 0)
        )
        expected = table.take(kept.slice(offset, limit))
        assert esker.dataset(tmp_path).to_table(**options) == expected


def test_columns_are_looked_at_once_however_many_batches_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.array([f"{row}" for row in range(300)], pa.json_())
    dataset = esker.write_dataset(pa.table({"id": range(300), "s": ["x"] * 300, "j": texts}), tmp_path / "t.lance")
    looked_at: list[str] = []
    has = json_columns._has

    def counted(field: pa.Field, name: str) -> bool:
        looked_at.append(field.name)
        return has(field, name)

    monkeypatch.setattr(json_columns, "_has", counted)
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["id", "s"], batch_size=1)) == 300
    assert len(looked_at) <= 10
    batches = list(dataset.to_batches(batch_size=100))
    assert [value for batch in batches for value in batch["j"].to_pylist()] == texts.to_pylist()
    assert {batch.schema.field("j").type for batch in batches} == {pa.json_()}
