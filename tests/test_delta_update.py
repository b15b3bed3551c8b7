"""`DeltaTable.update` beside deltalake: rows, metrics, feeds, types, constraints; by copy and with vectors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker
from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from esker.delta.change.budget import Budget
from tests.delta_rows import rows
from tests.test_delta_delete import entry, read_by_theirs, without_times

DATA = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "v": ["a", "b", None, "d", "10"],
        "p": ["x", "x", "y", "y", None],
        "x": [1.5, 2.5, None, -0.0, 2.0],
        "b": [True, False, None, True, False],
    }
)
FEED: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true", **FEED}
UPDATES: list[tuple[dict[str, str], str | None]] = [
    ({"v": "'q'"}, "id = 2"),
    ({"v": "'q'"}, None),
    ({"v": "'q'"}, "id > 100"),
    ({"v": "concat(v, '_1')", "id": "id + 1"}, "p = 'x'"),
    ({"id": "x * 10"}, "id < 3"),
    ({"id": "'7'"}, None),
    ({"v": "5"}, "id >= 4"),
    ({"v": "id", "x": "id"}, "id <> 3"),
    ({"p": "v"}, "id < 3"),
    ({"p": "null", "b": "not b"}, "b"),
    ({"x": "case when x > 2 then x * 2 else 0 end"}, "x is not null"),
    ({"b": "True"}, "v > 5"),
    ({"v": "'z'", "nobody": "1"}, "id = 1"),
]


@pytest.mark.filterwarnings("ignore:the table has no column")
@pytest.mark.parametrize(("updates", "predicate"), UPDATES)
@pytest.mark.parametrize("partitioned", [False, True])
def test_an_update_does_and_says_what_deltalakes_does(
    tmp_path: Path, updates: dict[str, str], predicate: str | None, partitioned: bool
) -> None:
    by = ["p"] if partitioned else None
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, DATA, configuration=FEED, partition_by=by)
    write_deltalake(tmp_path / "vectors", DATA, configuration=ON, partition_by=by)
    ours, theirs = DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")
    found, expected = ours.update(updates, predicate=predicate), theirs.update(updates, predicate=predicate)
    assert without_times(found) == without_times(expected)
    assert list(found) == list(expected)
    assert ours.version() == theirs.version()
    assert rows(ours.to_pyarrow_table()) == rows(theirs.to_pyarrow_table()) == rows(read_by_theirs(tmp_path / "ours"))
    vectors = DeltaTable(tmp_path / "vectors")
    assert vectors.update(updates, predicate=predicate)["num_updated_rows"] == expected["num_updated_rows"]
    assert rows(vectors.to_pyarrow_table()) == rows(theirs.to_pyarrow_table())
    assert rows(read_by_theirs(tmp_path / "vectors")) == rows(theirs.to_pyarrow_table())
    if not ours.version():
        return
    info = entry(tmp_path / "ours", 1)[0][1]
    assert (info["operation"], info["operationMetrics"]) == ("UPDATE", found)
    assert info["operationParameters"] == {"predicate": predicate or "true"}
    columns = [*DATA.column_names, "_change_type", "_commit_version"]
    expected_feed = pa.table(theirs.load_cdf(1, 1)).select(columns)
    for table in (ours, vectors, deltalake.DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "vectors")):
        feed = pa.table(table.load_cdf(1, 1)).select(columns)
        # deltalake leaves out pairs that are the same: such rows did change here.
        assert set(rows(expected_feed)) <= set(rows(feed.cast(expected_feed.schema)))
        changed = [kind for kind in feed["_change_type"].to_pylist() if kind == "update_postimage"]
        assert len(changed) == expected["num_updated_rows"]


def test_rows_keep_their_order(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    DeltaTable(tmp_path).update({"v": "'q'"}, predicate="id in (2, 4)")
    assert DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist() == [1, 2, 3, 4, 5]


def test_with_vectors_only_updated_rows_are_written(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(1000), "n": range(1000)}), configuration=ON)
    table = DeltaTable(tmp_path)
    found = table.update({"n": "-n"}, predicate="id % 100 = 7")
    assert (found["num_updated_rows"], found["num_copied_rows"], found["num_removed_files"]) == (10, 0, 0)
    assert (found["num_added_files"], found["num_deletion_vectors_added"]) == (1, 1)
    assert len(table.file_uris()) == 2
    expected = [-n if n % 100 == 7 else n for n in range(1000)]
    read = table.to_pyarrow_table().sort_by("id")
    assert read["n"].to_pylist() == expected
    assert read_by_theirs(tmp_path).sort_by("id")["n"].to_pylist() == expected
    # A second update meets both files.
    table.update({"n": "0"}, predicate="id in (7, 8)")
    expected[7] = expected[8] = 0
    assert read_by_theirs(tmp_path).sort_by("id")["n"].to_pylist() == expected


@pytest.mark.parametrize("properties", [FEED, ON], ids=["copy", "vectors"])
def test_constraints_and_nullability_are_checked_on_new_rows(tmp_path: Path, properties: dict[str, str | None]) -> None:
    schema = Schema([Field("id", "long", nullable=False), Field("n", "long"), Field("s", "string")])
    DeltaTable.create(tmp_path, schema, configuration=properties)
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": [1, 2], "s": ["a", "b"]}), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"small": "n < 100"})
    version = table.version()
    before = sorted(path.name for path in tmp_path.rglob("*.parquet"))
    for updates, words in [({"n": "n + 99"}, "small"), ({"id": "null"}, "NOT NULL"), ({"n": "null"}, "small")]:
        with pytest.raises(exceptions.InvalidArgumentError, match=words):
            table.update(updates, predicate="id = 1 or id = 2")
    assert DeltaTable(tmp_path).version() == version
    assert sorted(path.name for path in tmp_path.rglob("*.parquet")) == before
    table.update({"n": "n + 97"})
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [98, 99]


def test_generated_columns_are_computed_anew_unless_they_are_given(tmp_path: Path) -> None:
    generated = Field("g", "long", metadata={"delta.generationExpression": "n * 2"})
    DeltaTable.create(tmp_path, Schema([Field("id", "long"), Field("n", "long"), generated]))
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": [1, 2]}), mode="append")
    table = DeltaTable(tmp_path)
    table.update({"n": "10"}, predicate="id = 1")
    assert sorted(table.to_pyarrow_table()["g"].to_pylist()) == [4, 20]
    table.update({"n": "5", "g": "10"}, predicate="id = 2")
    with pytest.raises(exceptions.InvalidArgumentError, match="generated column 'g'"):
        table.update({"g": "1"}, predicate="id = 2")
    assert sorted(table.to_pyarrow_table()["g"].to_pylist()) == [10, 20]


@pytest.mark.parametrize(
    "updates", [{"id": "v"}, {"id": "'hello'"}, {"b": "v"}, {"x": "concat(v, 'e')"}, {"id": "x * 1e30"}]
)
def test_values_that_do_not_fit_are_errors_or_nulls(tmp_path: Path, updates: dict[str, str]) -> None:
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, DATA)
    ours, theirs = DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")
    with pytest.raises(exceptions.InvalidArgumentError):
        ours.update(updates)
    with pytest.raises(Exception, match=r".*"):
        theirs.update(updates)
    assert DeltaTable(tmp_path / "ours").version() == 0
    ours.update(updates, error_on_type_mismatch=False)
    theirs.update(updates, error_on_type_mismatch=False)
    assert rows(ours.to_pyarrow_table()) == rows(theirs.to_pyarrow_table())


def test_values_of_python(tmp_path: Path) -> None:
    when = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("l", pa.list_(pa.string())),
            ("t", pa.timestamp("us", "UTC")),
            ("b", pa.bool_()),
        ]
    )
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, pa.Table.from_pylist([{"id": 1}, {"id": 2}], schema=schema))
    new: dict[str, Any] = {"s": "new", "f": 2.5, "l": ["a", "b"], "t": when, "b": True}
    DeltaTable(tmp_path / "ours").update(new_values=new, predicate="id = 1")
    deltalake.DeltaTable(tmp_path / "theirs").update(new_values=new, predicate="id = 1")
    ours, theirs = (DeltaTable(tmp_path / name).to_pyarrow_table() for name in ("ours", "theirs"))
    assert rows(ours) == rows(theirs)
    DeltaTable(tmp_path / "ours").update(new_values={"s": "O'Neill", "f": float("-inf")}, predicate="id = 2")
    read = DeltaTable(tmp_path / "ours").to_pyarrow_table(filters="id = 2").to_pylist()[0]
    assert (read["s"], read["f"]) == ("O'Neill", float("-inf"))


def test_arguments_that_do_not_go_together(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    theirs = deltalake.DeltaTable(tmp_path)
    calls: list[dict[str, Any]] = [
        {},
        {"updates": {}, "new_values": {}},
        {"new_values": {"id": {}}},
        {"updates": {"id": 1}},
    ]
    for arguments in calls:
        with pytest.raises((TypeError, ValueError)) as ours:
            table.update(**arguments)
        with pytest.raises((TypeError, ValueError)) as expected:
            theirs.update(**arguments)
        assert str(ours.value) == str(expected.value)
    with pytest.warns(DeprecationWarning, match=r"positionally to update\(\)"):
        table.update({"id": "9"}, None, "id = 1", None, True, None, CommitProperties({"user": "ann"}))
    assert table.history(1)[0]["user"] == "ann"


def test_a_column_that_is_none_is_left_out_with_a_warning_and_a_field_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "s": [{"a": 1}]}))
    table = DeltaTable(tmp_path)
    with pytest.warns(UserWarning, match="no column 'nobody'"):
        assert table.update({"nobody": "1"})["num_updated_rows"] == 0
    assert table.version() == 0
    for spelled in ("s.a", "`s`.`a`", '"s".a', "s['a']", "s .a"):
        with pytest.raises(exceptions.InvalidArgumentError, match="field within column 's'"):
            table.update({spelled: "2"})
    with pytest.warns(UserWarning, match=r"no column '`s\.a`'"):
        table.update({"`s.a`": "2"})
    table.update({"`s`": "named_struct('a', s.a + 1)"})
    assert table.to_pyarrow_table()["s"].to_pylist() == [{"a": 2}]


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, configuration={"delta.appendOnly": "true"})
    with pytest.raises(exceptions.InvalidArgumentError, match=r"delta\.appendOnly"):
        DeltaTable(tmp_path).update({"id": "1"}, predicate="id = 77")


def test_mapped_and_nested_columns_are_kept(tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": [1, 2, 3],
            "s": pa.array([{"a": 1, "b": [1, None]}, None, {"a": None, "b": None}]),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        }
    )
    write_deltalake(tmp_path, data, configuration={**ON, "delta.columnMapping.mode": "name"})
    table = DeltaTable(tmp_path)
    table.update({"id": "id + 10"}, predicate="id <> 2")
    expected = data.set_column(0, "id", pa.array([11, 2, 13]))
    assert rows(table.to_pyarrow_table()) == rows(expected)
    feed = pa.table(table.load_cdf(1, 1))
    assert sorted(zip(feed["id"].to_pylist(), feed["_change_type"].to_pylist(), strict=True)) == [
        (1, "update_preimage"),
        (3, "update_preimage"),
        (11, "update_postimage"),
        (13, "update_postimage"),
    ]


@pytest.mark.parametrize("allowed", [0, 40_000, 1 << 20])
@pytest.mark.parametrize("predicate", ["id % 97 = 5", "id % 97 = 5 and v like 'row 1%'", "id % 3 = 1", "id < 40"])
def test_an_update_is_the_same_whether_the_values_that_the_predicate_read_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int, predicate: str
) -> None:
    monkeypatch.setattr(Budget, "ahead", property(lambda _: 4 * allowed))
    expected: dict[int, dict[str, Any]] = {}
    for number in range(3):
        ids = range(number * 20_000, (number + 1) * 20_000)
        part = pa.table({"id": pa.array(ids), "v": [f"row {n}" for n in ids], "x": [n / 2 for n in ids]})
        write_deltalake(tmp_path, part, mode="append", configuration=ON)
        expected |= {row["id"]: row for row in part.to_pylist()}
    table = DeltaTable(tmp_path)
    # Rows that went before are not among those whose values were kept.
    table.delete("id % 5 = 0")
    left = [row for number, row in sorted(expected.items()) if number % 5]
    for asked in (predicate, "x >= 20000"):
        table.update({"x": "x + 1"}, predicate=asked)
        left = [{**row, "x": row["x"] + _holds(asked, row)} for row in left]
        assert table.to_pyarrow_table().sort_by("id").to_pylist() == left
    assert sorted(read_by_theirs(tmp_path).to_pylist(), key=lambda row: row["id"]) == left


def _holds(predicate: str, row: dict[str, Any]) -> bool:
    return {
        "id % 97 = 5": row["id"] % 97 == 5,
        "id % 97 = 5 and v like 'row 1%'": row["id"] % 97 == 5 and row["v"].startswith("row 1"),
        "id % 3 = 1": row["id"] % 3 == 1,
        "id < 40": row["id"] < 40,
        "x >= 20000": row["x"] >= 20000,
    }[predicate]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("1", [1, 1]),
        ("2024", [2024, 2024]),
        ("null", [None, None]),
        ("a-b", [6, 6]),
        ("-1", [-1, -1]),
        ("abs(a)", [7, 8]),
        ("a", [7, 8]),
        ("end", [555, 666]),
        ("a b", [555, 666]),
    ],
)
def test_what_is_sql_and_the_name_of_a_column_is_sql(tmp_path: Path, sql: str, values: list[int | None]) -> None:
    """Tables out of pandas have columns such as `1`; a word is a column, as is what is no SQL."""
    more = {} if sql == "a" else {sql: [555, 666]}
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": [10, 20], "a": [7, 8], "b": [1, 2], **more}))
    DeltaTable(tmp_path).update({"n": sql})
    assert DeltaTable(tmp_path).to_pyarrow_table()["n"].to_pylist() == values
    made = esker.write_dataset(
        pa.table({"id": [1, 2], "n": [10, 20], "a": [7, 8], "b": [1, 2], **more}), tmp_path / "l"
    )
    made.update({"n": sql})
    assert made.to_table()["n"].to_pylist() == values
