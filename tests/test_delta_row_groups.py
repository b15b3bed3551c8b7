"""Row groups that a filter rules out are not read: their bytes may be anything."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker._native.expr import Expression
from esker.delta import DeltaTable, WriterProperties, write_deltalake
from esker.delta.read.implied_terms import all_of, implied_terms

ROWS = 100
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a b", pa.int32()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("day", pa.date32()),
        ("d", pa.decimal128(9, 2)),
        ("p", pa.string()),
    ]
)


def table_at(path: Path, **properties: str) -> Path:
    data = {
        "id": range(ROWS),
        "a b": range(ROWS),
        "s": [f"{number:03}" for number in range(ROWS)],
        "x": [float(number) for number in range(ROWS)],
        "day": [date.fromordinal(738_000 + number) for number in range(ROWS)],
        "d": pa.array(list(range(ROWS))).cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
        "p": ["only"] * ROWS,
    }
    groups = WriterProperties(max_row_group_size=10)
    write_deltalake(
        path, pa.table(data, SCHEMA), partition_by=["p"], configuration=properties, writer_properties=groups
    )
    (file,) = path.rglob("*.parquet")
    footer = pq.ParquetFile(file).metadata
    spoilt = bytearray(file.read_bytes())
    for group in [*range(7), 8, 9]:
        for column in range(footer.num_columns):
            chunk = footer.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            spoilt[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(spoilt)
    return path


KINDS: list[dict[str, str]] = [{}, {"delta.columnMapping.mode": "name"}, {"delta.columnMapping.mode": "id"}]
FILTERS: list[Any] = [
    "id >= 70 AND id < 80",
    "id BETWEEN 72 AND 75 AND abs(x) > 0",
    "(\"a b\" > 71 and (`a b` <= 79)) and s LIKE '07%'",
    "s = '075'",
    "73 = id",
    "id IN (71, 79)",
    "day = '2021-10-12' OR day = '2021-10-13'",
    "d = 75.00 and p = 'only'",
    [("id", ">", 69), ("id", "<=", 79)],
    [("s", "=", "075"), ("p", "=", "only")],
]


@pytest.mark.parametrize("kind", KINDS, ids=["plain", "name", "id"])
@pytest.mark.parametrize("where", [where for where in FILTERS if "OR" not in where], ids=str)
def test_row_groups_are_not_read(tmp_path: Path, kind: dict[str, str], where: Any) -> None:
    table = DeltaTable(table_at(tmp_path, **kind))
    found = table.to_pyarrow_table(filters=where, columns=["id", "s"])
    assert 1 <= found.num_rows <= 10
    assert all(70 <= number < 80 for number in found["id"].to_pylist())
    assert table.scan(predicate=where).read_all()["id"].to_pylist() == found["id"].to_pylist()
    with pytest.raises((OSError, ValueError)):
        table.to_pyarrow_table()


COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
LITERALS = st.sampled_from(["3", "-1", "'x'", "''", "2.5", "'it''s'", "0"])
ATOMS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from("ac"), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), LITERALS),
    st.builds("b {} {}".format, st.sampled_from(["<", ">=", "=", "!="]), LITERALS),
    st.builds("{} < a".format, LITERALS),
    st.builds("a between {} and {}".format, LITERALS, LITERALS),
    st.builds("{} in ({}, {})".format, st.sampled_from("ab"), LITERALS, LITERALS),
    st.builds("{} is {} null".format, st.sampled_from("abc"), st.sampled_from(["", "not"])),
    st.sampled_from(
        ["a + 1 > 3", "-a > 0", "abs(a) = 3", "b like 'x%'", "a = 3.5", "case when a > 1 then true else false end"]
    ),
)
FILTER = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({}) and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        st.builds("not ({})".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=5,
)
VALUES = pa.table(
    {
        "a": [None, -1, 0, 1, 2, 3, 4] * 4,
        "b": ["x", "", None, "it's"] * 7,
        "c": pa.array([2.5, float("nan"), None, -1.0, 3.0, 0.0, 9.0, float("inf")][:7] * 4),
    },
    COLUMNS,
)


@settings(max_examples=300, deadline=None)
@given(FILTER)
def test_no_row_that_a_filter_keeps_is_lost(where: str) -> None:
    try:
        kept = pa.array(Expression.parse_sql(where, COLUMNS).evaluate(VALUES.combine_chunks().to_batches()[0]))
    except (ValueError, NotImplementedError):
        return
    implied = all_of(implied_terms(where, COLUMNS), {name: name for name in COLUMNS.names})
    if implied is None:
        return
    rows = VALUES.append_column("row", pa.array(range(len(VALUES))))
    wanted = set(rows.filter(pc.fill_null(kept.cast(pa.bool_()), False))["row"].to_pylist())
    assert wanted <= set(rows.filter(implied)["row"].to_pylist())
