"""Deletes, updates and merges with odd input: names, types, nulls, predicates; beside deltalake where it takes it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, Field, Schema, write_deltalake
from esker.exceptions import EskerError, InvalidArgumentError
from tests.delta_rows import rows
from tests.test_delta_delete import read_by_theirs

Change = Callable[[Any], Any]
ON: dict[str, Any] = {"configuration": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}}
NAMES = pa.table({"Id": [1, 2, 3], "n": pa.array([1, None, 3], pa.int32()), "s": ["a", "b", None]})
WORDS = pa.table(
    {
        "select": [1, 2, 3],
        "order": ["a", "b", "c"],
        "end": [1.5, None, 2.0],
        "a b": [1, 2, 3],
        "x.y": [1, 2, 3],
        "case": [True, False, None],
    }
)
DECIMALS = pa.table({"k": pa.array(["1.50", "-0.05", "99.99", None]).cast(pa.decimal128(10, 2)), "v": [1, 2, 3, 4]})
MOMENTS = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, 3, 4, 5, 678901), None]
TIMES = pa.table(
    {
        "t": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "z": pa.array(MOMENTS, pa.timestamp("us")),
        "d": [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None],
        "v": [1, 2, 3],
    }
)
FLOATS = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "x": [math.nan, 1.0, -0.0, None, math.inf],
        "y": pa.array([math.nan, 1.0, 0.0, None, -math.inf], pa.float32()),
    }
)
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.int64())]))])
NESTED = pa.table(
    {
        "id": [1, 2, 3, 4],
        "v": pa.array([None, {"a": None}, {"a": 1, "b": "x", "c": {"d": None}}, {"a": 2, "c": {"d": 5}}], STRUCT),
        "l": pa.array([None, [], [None], [1, None]], pa.list_(pa.int64())),
        "m": pa.array([None, [], [("k", None)], [("k", 1), ("j", 2)]], pa.map_(pa.string(), pa.int64())),
    }
)
MORE = pa.table(
    {
        "id": [2, 3, 7],
        "v": pa.array([None, {"a": None}, {"a": 9, "b": "n", "c": {"d": 9}}], STRUCT),
        "l": pa.array([[None], None, [7]], pa.list_(pa.int64())),
        "m": pa.array([[("z", None)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


def deleted(*predicates: str) -> list[Change]:
    return [lambda table, sql=sql: table.delete(sql) for sql in predicates]  # type: ignore[misc]


def updated(*changes: tuple[dict[str, str], str | None]) -> list[Change]:
    return [lambda table, c=c: table.update(c[0], predicate=c[1]) for c in changes]  # type: ignore[misc]


def merged(source: pa.Table, *conditions: str) -> list[Change]:
    def change(table: Any, sql: str) -> Any:
        merger = table.merge(source, sql, source_alias="s", target_alias="t")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    return [lambda table, sql=sql: change(table, sql) for sql in conditions]  # type: ignore[misc]


def gone(condition: str, **keys: pa.Array) -> Change:
    """A merge that deletes what matches."""
    source = pa.table(keys)

    def change(table: Any) -> Any:
        return table.merge(source, condition, source_alias="s", target_alias="t").when_matched_delete().execute()

    return change


def _cases() -> Iterator[tuple[str, pa.Table, list[Change]]]:
    yield (
        "names",
        NAMES,
        [
            *deleted('"Id" = 1', "`Id` = 1", "Id = '1'", "n = '3'", "s = 1", "Id = 1.0", "Id > '1'"),
            gone("t.Id = s.id", id=pa.array([1, 9])),
            gone("t.Id = s.k", k=pa.array(["1", "9"])),
            gone("t.Id = s.k", k=pa.array([1.0, 2.5])),
            gone("t.Id = s.k", k=pa.array([1, 2], pa.uint64())),
            gone("t.Id = s.k", k=pa.array(["1.0", "2.5"]).cast(pa.decimal128(5, 1))),
            gone("t.Id = s.k", k=pa.array([None, None], pa.int64())),
            gone("t.s = s.k", k=pa.array(["a", None, "a"]).dictionary_encode()),
        ],
    )
    yield (
        "no columns",
        NAMES,
        [
            *deleted("1 = 1", "false", "true", "null", "1 = 2 or Id = 1", "true or Id = 1", "null and Id = 1"),
            *updated(({"n": "1"}, "1 = 1"), ({"n": "null"}, "null"), ({"n": "null"}, "null or Id = 1")),
            gone("true", k=pa.array([1])),
            gone("null", k=pa.array([1])),
            gone("1 = 2", k=pa.array([1])),
        ],
    )
    yield (
        "words",
        WORDS,
        [
            *deleted("`select` = 1", "`order` = 'a' and `end` is not null", '"select" = 1', "`a b` = 2", "`x.y` = 2"),
            *deleted("`case`"),
            *updated(({"select": "`select` + 1", "`order`": "'z'"}, "`end` > 1"), ({"a b": "5"}, None)),
            *updated(
                ({"`x.y`": "7"}, None),
            ),
            *merged(WORDS.slice(0, 2), "t.`select` = s.`select` and t.`x.y` = s.`x.y`", "t.select = s.select"),
        ],
    )
    yield (
        "decimals",
        DECIMALS,
        [
            *deleted("k = 1.5", "k < 0", "k > 99.98", "k = '1.50'"),
            *updated(({"k": "k * 2"}, "v < 4"), ({"k": "k / 3"}, None), ({"k": "1e2"}, None)),
            gone("t.k = s.k", k=pa.array(["1.5000", "7.0001"]).cast(pa.decimal128(12, 4))),
            gone("t.k = s.k", k=pa.array(["1.5", "7.1"]).cast(pa.decimal128(5, 1))),
            gone("t.k = s.k", k=pa.array(["1.5", "100000000000"]).cast(pa.decimal128(38, 10))),
            gone("t.k = s.k", k=pa.array([1.5, 7.25])),
            gone("t.k = s.k", k=pa.array(["1.5", "7.25"])),
            gone("t.k = s.k", k=pa.array([None, None], pa.decimal128(10, 2))),
        ],
    )
    yield (
        "times",
        TIMES,
        [
            *deleted("t = '2024-01-01'", "t > '2024-01-02T03:04:05.678Z'", "z = '2024-01-01'", "d = '2024-01-01'"),
            *deleted("z >= '2024-01-02 03:04:05.678901'", "d > t", "t = z", "d = date '2024-01-02'"),
            *updated(({"t": "'2025-01-01'"}, None), ({"z": "t"}, None), ({"d": "t"}, None), ({"t": "d"}, None)),
            *updated(
                ({"d": "d + interval '1 day'"}, None),
            ),
            *merged(TIMES.slice(0, 2), "t.t = s.t"),
            gone("t.t = s.k", k=pa.array(MOMENTS[:1], pa.timestamp("ns"))),
            gone("t.t = s.k", k=pa.array(MOMENTS[:1], pa.timestamp("ms", "Europe/Berlin"))),
            gone("t.z = s.k", k=pa.array(MOMENTS[:1], pa.timestamp("s"))),
            gone("t.d = s.k", k=pa.array(["2024-01-01"])),
            gone("t.d = s.k", k=pa.array(MOMENTS[:1], pa.timestamp("us"))),
            gone("t.d = s.k", k=pa.array([dt.date(2024, 1, 1)], pa.date64())),
        ],
    )
    yield (
        "floats",
        FLOATS,
        [
            *deleted("x > 5", "x >= 1.0", "x <> 1.0", "x = 0.0", "x < 0.5", "x <= 0", "isnan(x)", "x in (0.0, 1.0)"),
            *deleted("y > 0.5", "x = y", "not (x < 2)", "x between 0 and 2"),
            *updated(({"x": "y"}, None), ({"y": "x / 0"}, None)),
            gone("t.x = s.k", k=pa.array([math.nan, 0.0, None])),
            gone("t.x = s.k", k=pa.array([math.nan, -0.0, 1.0], pa.float32())),
            gone("t.x = s.k", k=pa.array([1, 0])),
            gone("t.x = s.k", k=pa.array(["NaN", "1.0"])),
            gone("t.y < s.k", k=pa.array([math.nan, 0.1])),
        ],
    )
    yield (
        "nested",
        NESTED,
        [
            *deleted("v['a'] is null", "v['c']['d'] = 5", "array_length(l) = 2", "id = 1"),
            *updated(({"v": "null"}, "id > 1"), ({"l": "null", "m": "null"}, "id = 3"), ({"id": "id + 1"}, "id > 1")),
            *updated(
                ({"v": "named_struct('a', 5, 'b', 'q', 'c', named_struct('d', 1))"}, "id < 3"),
            ),
            *merged(MORE, "t.id = s.id"),
            gone("t.v['a'] = s.v['a']", v=pa.array([{"a": 1}, {"a": None}, None], STRUCT)),
            gone("t.v['c']['d'] = s.k + 1", k=pa.array([4])),
            gone("t.l = s.k", k=pa.array([[None], [1, None]], pa.list_(pa.int64()))),
        ],
    )


CASES = [
    pytest.param(data, change, id=f"{name} {number}")
    for name, data, changes in _cases()
    for number, change in enumerate(changes)
]


@pytest.mark.parametrize(("data", "change"), CASES)
def test_a_verb_does_to_odd_rows_what_deltalake_does(tmp_path: Path, data: pa.Table, change: Change) -> None:
    for name in ("ours", "vectors"):
        write_deltalake(tmp_path / name, data, **(ON if name == "vectors" else {}))
        change(DeltaTable(tmp_path / name))
    deltalake.write_deltalake(tmp_path / "theirs", data)
    change(deltalake.DeltaTable(tmp_path / "theirs"))
    expected = rows(read_by_theirs(tmp_path / "theirs"))
    for name in ("ours", "vectors"):
        assert rows(DeltaTable(tmp_path / name).to_pyarrow_table()) == expected, name
        assert rows(read_by_theirs(tmp_path / name)) == expected, name


@pytest.mark.parametrize("sql", ["v.c['d'] = 5", "v['c'].d = 5", "`v`.C['d'] = 5", "(v).c.d = 5", "v.c.d = 5"])
def test_fields_are_named_by_dots_and_brackets(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, NESTED)
    assert DeltaTable(tmp_path).to_pyarrow_table(filters=sql)["id"].to_pylist() == [4]
    merger = DeltaTable(tmp_path).merge(
        pa.table({"id": [4, 5]}), f"t.id = s.id and t.{sql.lstrip('(')}".replace("v).", "v."), "s", "t"
    )
    assert merger.when_matched_delete().execute()["num_target_rows_deleted"] == 1


def test_a_field_of_a_null_is_null(tmp_path: Path) -> None:
    # To deltalake it is what lies beneath the null.
    write_deltalake(tmp_path, NESTED)
    merger = DeltaTable(tmp_path).merge(MORE, "t.id = s.id and s.v['a'] is null", "s", "t")
    told = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (told["num_target_rows_updated"], told["num_target_rows_inserted"]) == (2, 1)


@pytest.mark.parametrize("sql", ["v.nope['d'] = 1", "id['x'] = 1", "v['a'].x = 1", "nope.c['d'] = 1"])
def test_fields_that_are_not_there_are_refused(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, NESTED)
    with pytest.raises(InvalidArgumentError):
        DeltaTable(tmp_path).delete(sql)
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("layout", [{}, ON], ids=["copy", "vectors"])
def test_lists_of_many_values_and_names_of_another_case(tmp_path: Path, layout: dict[str, Any]) -> None:
    write_deltalake(tmp_path, pa.table({"Id": range(30_000), "S": [f"s{n}" for n in range(30_000)]}), **layout)
    table = DeltaTable(tmp_path)
    listed = ", ".join(map(str, range(0, 40_000, 2)))
    assert table.delete(f"ID in ({listed})")["num_deleted_rows"] == 15_000
    texts = ", ".join(f"'s{n}'" for n in range(1, 9_000, 4))
    assert table.update({"S": "'x'"}, predicate=f"s not in ({texts})")["num_updated_rows"] == 15_000 - 2_250
    merger = table.merge(pa.table({"ID": range(1, 10_000), "s": ["m"] * 9_999}), "t.id = s.Id", "s", "t")
    told = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (told["num_target_rows_updated"], told["num_target_rows_inserted"]) == (5_000, 4_999)


class BrokenOff(Exception):
    """What the caller's rows raise."""


@pytest.mark.parametrize("layout", [{}, ON], ids=["copy", "vectors"])
def test_a_source_that_breaks_off_changes_nothing(tmp_path: Path, layout: dict[str, Any]) -> None:
    write_deltalake(tmp_path, NAMES, **layout)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    def batches() -> Iterator[pa.RecordBatch]:
        yield NAMES.to_batches()[0]
        raise BrokenOff

    reader = pa.RecordBatchReader.from_batches(NAMES.schema, batches())
    with pytest.raises(BrokenOff):
        DeltaTable(tmp_path).merge(reader, "t.Id = s.Id", "s", "t").when_matched_update_all().execute()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("layout", [{}, ON], ids=["copy", "vectors"])
def test_a_source_without_rows_or_with_null_keys_alone(tmp_path: Path, layout: dict[str, Any]) -> None:
    write_deltalake(tmp_path, NAMES, **layout)

    def merge(source: pa.Table) -> dict[str, Any]:
        merger = DeltaTable(tmp_path).merge(source, "t.Id = s.Id", "s", "t").when_matched_update_all()
        return merger.when_not_matched_insert_all().execute()

    assert merge(NAMES.slice(0, 0))["num_output_rows"] == 0
    assert DeltaTable(tmp_path).version() == 0
    empty = NAMES.schema.empty_table()
    merger = DeltaTable(tmp_path).merge(empty, "t.Id = s.Id", "s", "t").when_not_matched_by_source_delete("t.n = 3")
    assert merger.execute()["num_target_rows_deleted"] == 1
    nulls = pa.table({"Id": pa.array([None, None], pa.int64()), "n": pa.array([8, 8], pa.int32()), "s": ["x", "x"]})
    assert merge(nulls)["num_target_rows_inserted"] == 2
    # A null is equal to none, not even to itself.
    assert merge(nulls)["num_target_rows_inserted"] == 2
    assert len(DeltaTable(tmp_path).to_pyarrow_table()) == 6


@pytest.mark.parametrize("value", ["NaN", "infinity"])
def test_generated_columns_of_odd_numbers_are_written_and_changed(tmp_path: Path, value: str) -> None:
    twice = Field("y", "double", metadata={"delta.generationExpression": "x * 2"})
    DeltaTable.create(tmp_path, Schema([Field("id", "long"), Field("x", "double"), twice]))
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "x": [float(value), 1.0]}), mode="append")
    table = DeltaTable(tmp_path)
    table.update({"x": f"cast('{value}' as double)"}, predicate="id = 2")
    merger = table.merge(pa.table({"id": [3], "x": [float(value)]}), "t.id = s.id", "s", "t")
    merger.when_not_matched_insert_all().execute()
    assert len(set(map(str, table.to_pyarrow_table()["y"].to_pylist()))) == 1
    with pytest.raises(EskerError, match="generated column 'y'"):
        table.update({"y": "1.0"}, predicate="id = 3")
