"""Statistics leave out only what no filter keeps: by every evaluator's rules for NaN, rounding and cut values.

The rows that a filter keeps are the ones that it keeps of the same rows in memory, whoever wrote the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker._native.expr import Expression
from esker.delta import DeltaTable, WriterProperties, write_deltalake
from tests.rounds import rounds

NAN = float("nan")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FLOATS = [5.0, -0.0, 0.0, NAN, 9.0, -NAN, 1.0, None, float("inf")]
DECIMALS = [Decimal(text) for text in ("12345678901234567.89", "10000000000000000.01", "0.01", "-99999999999999999.99")]
TEXTS = ["x" * 31, "x" * 32, "x" * 33, "x" * 40 + "\U0010ffff", "a", "", "\U0010ffff" * 40]
TIMES = [EPOCH + timedelta(microseconds=us) for us in (0, -1, -999, -1000, 1, 1001, 999_999)]


def _table() -> pa.Table:
    rows = range(28)
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "f": pa.array([FLOATS[i // 4] for i in rows], pa.float64()),
            "m": pa.array([FLOATS[i % 9] for i in rows], pa.float32()),
            "d": pa.array([DECIMALS[i // 7] for i in rows], pa.decimal128(20, 2)),
            "s": pa.array([TEXTS[i // 4] for i in rows]),
            "t": pa.array([TIMES[i // 4] for i in rows], pa.timestamp("us", "UTC")),
            "i": pa.array([None if 8 <= i < 12 else i // 4 for i in rows], pa.int64()),
            "st": pa.array([{"x": FLOATS[i // 4]} for i in rows], pa.struct([("x", pa.float64())])),
        }
    )


TABLE = _table()
GROUPS = WriterProperties(max_row_group_size=2)


def _by_esker(path: Path) -> None:
    for start in range(0, 28, 4):
        write_deltalake(path, TABLE.slice(start, 4), mode="append", writer_properties=GROUPS)


def _by_deltalake(path: Path) -> None:
    properties = deltalake.WriterProperties(max_row_group_size=2)
    for start in range(0, 28, 4):
        deltalake.write_deltalake(str(path), TABLE.slice(start, 4), mode="append", writer_properties=properties)


def _by_doubles(path: Path) -> None:
    """Bounds as a writer notes them that computes with doubles, and cuts times towards zero and texts at 32 letters."""
    _by_esker(path)
    for entry in (path / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in entry.read_text().split("\n") if line]
        for line in lines:
            if "add" not in line:
                continue
            data = pq.read_table(path / line["add"]["path"])
            stats = json.loads(line["add"]["stats"])
            for bound, pick in (("minValues", pc.min), ("maxValues", pc.max)):
                stats[bound]["d"] = float(pick(data["d"]).as_py())
                stats[bound]["s"] = pick(data["s"]).as_py()[:32]
                micros = pick(data["t"]).cast(pa.int64()).as_py()
                stats[bound]["t"] = _cut_time(micros)
                for name in ("f", "m"):
                    numbers = data[name].filter(pc.invert(pc.is_nan(data[name])))
                    if len(numbers) - numbers.null_count and pc.max(numbers).as_py() != float("inf"):
                        stats[bound][name] = pick(numbers).as_py()
            line["add"]["stats"] = json.dumps(stats)
        entry.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _cut_time(micros: int) -> str:
    kept = abs(micros) // 1000 * (1 if micros >= 0 else -1)
    return (EPOCH + timedelta(milliseconds=kept)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:23] + "Z"


WRITERS: list[Callable[[Path], None]] = [_by_esker, _by_deltalake, _by_doubles]


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__[1:])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Seven files of two row groups each."""
    path = tmp_path_factory.mktemp("statistics") / "t"
    request.param(path)
    return DeltaTable(path)


VALUES: dict[str, list[Any]] = {
    "f": [5.0, 3, 0.0, -0.0, NAN, 9.0, 1.0, -1.0],
    "m": [5.0, 3, 0.0, NAN, 9.0],
    "d": DECIMALS,
    "s": [*TEXTS, "x" * 33 + "y"],
    "t": TIMES,
    "i": [0, 2, 3, 6],
}
OPERATORS = ["<", "<=", ">", ">=", "==", "!="]


def _scalar(name: str, value: Any) -> pa.Scalar:
    return pa.scalar(value, TABLE.schema.field(name).type)


def _compared(name: str, operator: str, value: Any) -> pc.Expression:
    column, scalar = pc.field(name), _scalar(name, value)
    return {
        "<": column < scalar,
        "<=": column <= scalar,
        ">": column > scalar,
        ">=": column >= scalar,
        "==": column == scalar,
        "!=": column != scalar,
    }[operator]


COMPARED = st.sampled_from(list(VALUES)).flatmap(
    lambda name: st.builds(_compared, st.just(name), st.sampled_from(OPERATORS), st.sampled_from(VALUES[name]))
)
LISTED = st.builds(
    lambda name, few: pc.field(name).isin(pa.array(few, TABLE.schema.field(name).type)),
    st.just("i"),
    st.lists(st.sampled_from([None, 0, 2, 6]), min_size=1, max_size=3),
)
OTHERS = st.sampled_from(
    [
        pc.is_nan(pc.field("f")),
        pc.field("f").is_null(nan_is_null=True),
        pc.field("i").is_null(),
        pc.field("st", "x") > 3,
        pc.field("st", "x") != 5,
        pc.field("i") > 2.5,
        pc.is_finite(pc.field("f")),
    ]
)
FILTER = st.recursive(
    st.one_of(COMPARED, LISTED, OTHERS),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=rounds(50), deadline=None)
@given(where=FILTER)
def test_a_pyarrow_filter_keeps_what_it_keeps_in_memory(table: DeltaTable, where: pc.Expression) -> None:
    wanted = TABLE.filter(where)["row"].to_pylist()
    assert sorted(table.to_pyarrow_table(filters=where)["row"].to_pylist()) == wanted
    assert sorted(table.to_pyarrow_table(filters=where, columns=["row"])["row"].to_pylist()) == wanted
    assert sorted(table.scan(["row"], where).read_all()["row"].to_pylist()) == wanted
    files = {row // 4 for row in wanted}
    assert len(table.file_uris(file_pruning_predicate=where)) >= len(files)


@settings(max_examples=rounds(30), deadline=None)
@given(
    where=st.lists(
        st.sampled_from(["f", "d", "s", "t", "i"]).flatmap(
            lambda name: st.tuples(
                st.just(name),
                st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
                st.sampled_from([value for value in VALUES[name] if value != ""]),
            )
        ),
        min_size=1,
        max_size=2,
    )
)
def test_tuples_keep_what_they_keep_in_memory(table: DeltaTable, where: list[tuple[str, str, Any]]) -> None:
    expression = pc.scalar(True)
    for name, operator, value in where:
        expression = expression & _compared(name, {"=": "=="}.get(operator, operator), value)
    wanted = TABLE.filter(expression)["row"].to_pylist()
    assert sorted(table.to_pyarrow_table(filters=where)["row"].to_pylist()) == wanted


SQL = [
    "f > 3",
    "f < 3",
    "NOT (f > 3 OR f < 1)",
    "f <> 5",
    "f = 5 OR m > 8",
    "f BETWEEN 0 AND 5",
    "d = 12345678901234567.89",
    "d > 10000000000000000.00 AND d < 10000000000000000.02",
    "d <= -99999999999999999.99",
    f"s = '{'x' * 33}'",
    f"s > '{'x' * 32}'",
    "s LIKE 'x%'",
    "t < timestamp '1970-01-01T00:00:00Z'",
    "t = timestamp '1969-12-31T23:59:59.999001Z'",
    "i NOT IN (1, 2)",
    "NOT (i IN (1, 2)) AND f = f",
    "i > 3 -- and f = 5",
    "i > 3 /* and f = 5 */ AND m IS NOT NULL",
]


@pytest.mark.parametrize("where", SQL)
def test_sql_keeps_what_it_keeps_in_memory(table: DeltaTable, where: str) -> None:
    batch = TABLE.combine_chunks().to_batches()[0]
    kept = pc.fill_null(pa.array(Expression.parse_sql(where, TABLE.schema).evaluate(batch)), False)
    wanted = batch.filter(kept)["row"].to_pylist()
    assert sorted(table.to_pyarrow_table(filters=where)["row"].to_pylist()) == wanted


@pytest.mark.parametrize("sql", ["a > 0\n-- and b = 5", "a > 0 /* was: x and b = 5 and y */", "a > 0 -- and b = 5\n"])
def test_what_stands_in_a_comment_is_no_condition(sql: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, 2], "b": [5, 6]}))
    assert DeltaTable(tmp_path).to_pyarrow_table(filters=sql).num_rows == 2
    assert DeltaTable(tmp_path).scan(predicate=sql).read_all().num_rows == 2


def test_files_are_still_left_out(table: DeltaTable) -> None:
    """Bounds that are certain are used."""
    for where, most in [
        (pc.field("i") == 3, 2),
        (pc.field("s") == "a", 3),
        (pc.field("t") == _scalar("t", TIMES[6]), 3),
        (pc.field("f") == 5.0, 4),
        ("i BETWEEN 3 AND 3", 2),
        ("d < 0", 2),
        ([("i", "=", 3)], 2),
    ]:
        assert 1 <= len(table.file_uris(file_pruning_predicate=where)) <= most, where


def test_a_filter_that_no_file_is_left_out_by_filters_rows(tmp_path: Path) -> None:
    """Some expressions have no form in Substrait."""
    write_deltalake(tmp_path, pa.table({"x": [1, 2, 3], "d": pa.array([Decimal("1.5")] * 3, pa.decimal128(5, 2))}))
    table = DeltaTable(tmp_path)
    for where, rows in [(pc.field("x") > 1.5, 2), (pc.field("d") == 1.5, 3), (pc.xor(pc.field("x") > 1, True), 1)]:
        assert table.to_pyarrow_table(filters=where).num_rows == rows
        assert len(table.file_uris(file_pruning_predicate=where)) == 1
    with pytest.raises(ValueError, match="nowhere"):
        table.to_pyarrow_table(filters=pc.field("nowhere") > 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_beyond_64_bits_are_found_though_their_bounds_have_64(tmp_path: Path, sign: int) -> None:
    far = sign * Decimal(25) * 10**18
    rows = pa.table({"d": pa.array([far, Decimal(1)], pa.decimal128(38, 0)), "n": [1, 2]})
    deltalake.write_deltalake(tmp_path, rows)
    entry = json.loads((tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()[-1])["add"]
    bounds = json.loads(entry["stats"])
    assert abs(bounds["maxValues" if sign > 0 else "minValues"]["d"]) < abs(far)
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table(filters=[("d", "=", far)])["n"].to_pylist() == [1]
    beyond = f"d {'>' if sign > 0 else '<'} cast('{far // 2}' as decimal(38, 0))"
    assert len(table.file_uris(file_pruning_predicate=beyond)) == 1
    merge = table.merge(rows.slice(0, 1), "t.d = s.d", "s", "t")
    numbers = merge.when_matched_update({"n": "5"}).when_not_matched_insert_all().execute()
    assert (numbers["num_target_rows_updated"], numbers["num_target_rows_inserted"]) == (1, 0)
    assert DeltaTable(tmp_path).delete(beyond)["num_deleted_rows"] == 1
