"""Datasets of pyarrow over Delta tables: the log leaves out fragments, as in deltalake."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esker.delta import DeltaTable, write_deltalake
from tests.delta_rows import rows

_FIELD = pc.field
_LAST = datetime(2024, 1, 2, 0, 0, 0, 999_998, UTC)


@pytest.fixture(params=["esker", "deltalake"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    write = write_deltalake if request.param == "esker" else deltalake.write_deltalake
    for number in range(4):
        day = datetime(2024, 1, 1 + number, 0, 0, 0, 999_999, UTC)
        data = pa.table(
            {
                "i": [10 * number, 10 * number + 5, None],
                "s": [f"a{number}", "z" * 40, None],
                "f": [1.0 * number, float("nan"), 2.0],
                "t": pa.array([day] * 3, pa.timestamp("us", "UTC")),
                "n": pa.array([None] * 3, pa.int64()),
                "d": [date(2024, 1, 1 + number)] * 3,
                "p": [number % 2] * 3,
            }
        )
        write(tmp_path, data, mode="append", partition_by=["p"])
    return tmp_path


@pytest.mark.parametrize(
    "term",
    [
        _FIELD("i") > 20,
        _FIELD("i") < 0,
        _FIELD("i").is_null(),
        _FIELD("n") == 1,
        _FIELD("n").is_null(),
        _FIELD("t").is_null(),
        _FIELD("t") > pa.scalar(_LAST, pa.timestamp("us", "UTC")),
        _FIELD("d") > date(2024, 1, 3),
        _FIELD("s") > "zz",
        (_FIELD("p") == 1) & (_FIELD("i") > 20),
    ],
    ids=str,
)
def test_fragments_are_left_out_as_in_deltalake(table: Path, term: pc.Expression) -> None:
    ours = DeltaTable(table).to_pyarrow_dataset()
    theirs = deltalake.DeltaTable(table).to_pyarrow_dataset()
    assert len(list(ours.get_fragments(filter=term))) == len(list(theirs.get_fragments(filter=term)))
    assert rows(ours.to_table(filter=term)) == rows(theirs.to_table(filter=term))


def test_bounds_of_floats_leave_no_fragment_out(table: Path) -> None:
    # NaN is not `<= 5`, and no bound tells of it.
    dataset = DeltaTable(table).to_pyarrow_dataset()
    assert len(list(dataset.get_fragments(filter=~(_FIELD("f") <= 5)))) == 4


def test_a_text_that_was_cut_rules_nothing_out(tmp_path: Path) -> None:
    for text in ["x" * 31 + "\U0010ffff" * 9, "x" * 31 + "yy"]:
        write_deltalake(tmp_path, pa.table({"s": [text]}), mode="append")
        found = DeltaTable(tmp_path).to_pyarrow_dataset().to_table(filter=_FIELD("s") >= text)
        assert text in found["s"].to_pylist()


@pytest.mark.parametrize(
    "properties", [{}, {"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}]
)
def test_a_schema_may_have_other_columns_whatever_reads_the_files(properties: dict[str, str], tmp_path: Path) -> None:
    data = pa.table({"k": [1, 2, 3], "v": ["a", "b", None], "p": ["q", "r", "q"]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=properties)
    table = DeltaTable(tmp_path)
    table.delete("k = 1")
    cases: list[tuple[list[tuple[str, pa.DataType]], list[dict[str, Any]]]] = [
        ([("v", pa.large_string()), ("k", pa.float64())], [{"v": None, "k": 3.0}, {"v": "b", "k": 2.0}]),
        ([("new", pa.int64()), ("p", pa.string())], [{"new": None, "p": "q"}, {"new": None, "p": "r"}]),
        ([("new", pa.int64())], [{"new": None}, {"new": None}]),
    ]
    for fields, want in cases:
        schema = pa.schema(fields)
        found = table.to_pyarrow_dataset(schema=schema).to_table()
        assert found.schema == schema
        assert sorted(found.to_pylist(), key=repr) == sorted(want, key=repr)
