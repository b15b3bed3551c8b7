"""What merges and updates say and are given: comments and words of SQL, times and structs, rows that raise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esker.delta import DeltaTable, QueryBuilder, write_deltalake
from esker.exceptions import CorruptFileError, InvalidArgumentError, SchemaMismatchError
from tests.delta_rows import rows

NEW = pa.table({"id": [1, 9], "v": [5, 6]})


def upserted(path: Path, target: pa.Table, source: pa.Table, condition: str) -> dict[str, Any]:
    """A merge of rows into a new table."""
    write_deltalake(path, target)
    merger = DeltaTable(path).merge(source, condition, "s", "t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.parametrize(
    "condition",
    [
        "t.id = s.id -- and t.v = 20",
        "t.id = s.id -- the key\nand s.v > 0",
        "t.id = s.id /* and t.v = 20 */",
        "t.id /* a /* b */ = */ = s.id and t.v <> 1",
        "/* or */ t.id = s.id -- or",
    ],
)
def test_comments_are_no_conditions(tmp_path: Path, condition: str) -> None:
    upserted(tmp_path, pa.table({"id": [1, 2], "v": [10, 20]}), NEW, condition)
    expected = pa.table({"id": [1, 2, 9], "v": [5, 20, 6]})
    assert rows(DeltaTable(tmp_path).to_pyarrow_table()) == rows(expected)


@pytest.mark.parametrize("mark", ["--", "/*", "*/"])
def test_marks_of_comments_in_texts_and_names_are_none(tmp_path: Path, mark: str) -> None:
    target = pa.table({f"a{mark}b": [f"x{mark}y", "z"], "v": [1, 2]})
    source = pa.table({f"a{mark}b": [f"x{mark}y"], "v": [3]})
    column = f"`a{mark}b`"
    upserted(tmp_path, target, source, f"t.{column} = s.{column} and t.{column} = 'x{mark}y'")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist()) == [2, 3]


def test_deletes_and_updates_read_past_comments(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": [10, 20]}))
    table = DeltaTable(tmp_path)
    table.update({"v": "v + 1 -- + 1"}, predicate="id = 1 -- or id = 2")
    table.delete("/* none */ id = 2 -- and false")
    assert table.to_pyarrow_table().to_pydict() == {"id": [1], "v": [11]}


@pytest.mark.parametrize("name", ["and", "end", "case", "between", "in"])
def test_columns_may_be_called_as_words_of_sql_are(tmp_path: Path, name: str) -> None:
    target, source = pa.table({name: [1, 2], "v": [1, 2]}), pa.table({name: [1, 5], "v": [7, 8]})
    upserted(tmp_path, target, source, f"t.{name} = s.{name} and t.v = 1")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist()) == [2, 7, 8]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_key_with_nanoseconds_is_the_time_that_is_written_for_it(tmp_path: Path, zone: str | None) -> None:
    kind = pa.timestamp("ns", zone)
    source = pa.table({"at": pa.array([1704067200_000_000_123, 5_000], kind), "v": [1, 2]})
    far = pa.table({"at": pa.array([253370764800_000_000], pa.timestamp("us", zone)), "v": [0]})
    write_deltalake(tmp_path, far)
    for _ in range(2):
        merger = DeltaTable(tmp_path).merge(source, "t.at = s.at", "s", "t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist()) == [0, 1, 2]


def test_a_name_that_both_sides_have_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="both sides have a column 'id': write which") as caught:
        upserted(tmp_path, pa.table({"id": [1], "v": [1]}), NEW, "id = id")
    assert "esker" not in str(caught.value)


def test_bounds_of_booleans_decide_nothing(tmp_path: Path) -> None:
    """Old writers had wrong ones."""
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "gone": [False, True, False]}))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            statistics = json.loads(action["add"]["stats"])
            for bounds in ("minValues", "maxValues"):
                statistics[bounds]["gone"] = True
            action["add"]["stats"] = json.dumps(statistics)
    log.write_text("\n".join(map(json.dumps, actions)))
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table(filters="gone = false")["id"].to_pylist() == [1, 3]
    assert table.to_pyarrow_table(filters=[("gone", "=", False)])["id"].to_pylist() == [1, 3]
    assert table.to_pyarrow_dataset().to_table(filter=~pc.field("gone"))["id"].to_pylist() == [1, 3]
    query = QueryBuilder().register("t", table).execute("select id from t where not gone order by id")
    assert query.read_all()["id"].to_pylist() == [1, 3]
    assert table.delete("gone = false")["num_deleted_rows"] == 2


@pytest.mark.parametrize("strict", [True, False])
def test_values_within_columns_are_cast_as_columns_are(tmp_path: Path, strict: bool) -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": pa.array([None, {"a": 2, "b": ["x"]}], kind)}))
    found = pa.array([{"b": [7, None], "a": 1.5}, None], pa.struct([("b", pa.list_(pa.int32())), ("a", pa.float64())]))
    table = DeltaTable(tmp_path)
    merger = table.merge(pa.table({"id": [1, 2], "v": found}), "t.id = s.id", "s", "t", error_on_type_mismatch=strict)
    merger.when_matched_update_all().execute()
    expected = [{"id": 1, "v": {"a": 1, "b": ["7", None]}}, {"id": 2, "v": None}]
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == expected


def test_values_within_columns_that_cannot_be_cast_are_errors_or_nulls(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": [{"a": 1}, {"a": 2}]}))
    source = pa.table({"id": [1, 2], "v": [{"a": "x"}, {"a": "7"}]})
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="cannot be Int64"):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    merger = table.merge(source, "t.id = s.id", "s", "t", error_on_type_mismatch=False)
    merger.when_matched_update_all().execute()
    assert table.to_pyarrow_table().sort_by("id")["v"].to_pylist() == [{"a": None}, {"a": 7}]


@pytest.mark.parametrize(
    "sql",
    [
        "s.v",
        "s.w",
        "struct(9, 'z')",
        "named_struct('a', 9)",
        "named_struct('a', 9, 'b', 'z', 'c', 1)",
    ],
)
def test_structs_of_other_fields_are_refused_rather_than_lost(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "v": [{"a": 1, "b": "x"}], "l": [[{"a": 1}]]}))
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [1], "v": [{"A": 7, "B": "q"}], "w": [{"a": 7, "b": "q", "c": 1}], "l": [[{"z": 1}]]})
    for assignments in ({"v": sql}, {"l": "s.l"}):
        with pytest.raises(SchemaMismatchError, match="expected a struct of the fields a"):
            table.merge(source, "t.id = s.id", "s", "t").when_matched_update(assignments).execute()
    assert table.version() == 0


def test_with_merge_schema_missing_fields_are_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}))
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [1], "v": [{"a": 7, "c": 1}]})
    table.merge(source, "t.id = s.id", "s", "t", merge_schema=True).when_matched_update_all().execute()
    expected = [{"a": 7, "b": None, "c": 1}, {"a": 2, "b": "y", "c": None}]
    assert table.to_pyarrow_table().sort_by("id")["v"].to_pylist() == expected


def test_an_update_finds_fields_by_their_names(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "v": [{"a": 1, "b": "x"}]}))
    table = DeltaTable(tmp_path)
    for sql in ("named_struct('b', 5, 'c', 'z')", "struct(9, 'z')"):
        with pytest.raises(SchemaMismatchError, match="expected a struct of the fields a, b"):
            table.update({"v": sql})
    for sql, expected in (
        ("named_struct('b', 'z', 'a', 2.5)", {"a": 2, "b": "z"}),
        ("named_struct('b', 'y')", {"a": None, "b": "y"}),
    ):
        table.update({"v": sql})
        assert table.to_pyarrow_table()["v"].to_pylist() == [expected]


def test_what_a_source_raises_keeps_its_cause(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        try:
            raise KeyError("why")
        except KeyError as error:
            raise RuntimeError("what") from error

    source = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), rows())
    merger = DeltaTable(tmp_path / "t").merge
    with pytest.raises(RuntimeError, match="what") as caught:
        merger(source, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update_all().execute()
    assert isinstance(caught.value.__cause__, KeyError)
    assert DeltaTable(tmp_path / "t").version() == 0


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_what_a_source_raises_is_what_the_caller_sees(tmp_path: Path, raised: type[BaseException]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from NEW.to_batches()
        raise raised("from the source")

    write_deltalake(tmp_path, NEW)
    reader = pa.RecordBatchReader.from_batches(NEW.schema, batches())
    with pytest.raises(raised, match="from the source"):
        DeltaTable(tmp_path).merge(reader, "t.id = s.id", "s", "t")


@pytest.mark.parametrize("told", [10**12, 1])
def test_numbers_of_rows_that_the_log_tells_wrong_give_no_wrong_rows(
    tmp_path: Path, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("matches", "run", "changed_files"):
        monkeypatch.setattr(f"esker.delta.merge.{module}.RANGE_ROWS", 2)
    write_deltalake(tmp_path, pa.table({"id": range(9), "v": range(9)}))
    write_deltalake(tmp_path, pa.table({"id": range(10, 19), "v": range(9)}), mode="append")
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace('\\"numRecords\\":9', f'\\"numRecords\\":{told}'))
    assert f'numRecords\\":{told}' in log.read_text()
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [7, 8, 17, 18], "v": [70, 80, 170, 180]})
    merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all()
    if told == 1:
        with pytest.raises(CorruptFileError, match="numRecords"):
            merger.execute()
        assert table.version() == 1
        return
    assert merger.execute()["num_target_rows_updated"] == 4
    assert sorted(table.to_pyarrow_table()["v"].to_pylist())[-4:] == [70, 80, 170, 180]


@pytest.mark.parametrize("insert", [True, False])
@pytest.mark.parametrize("name", ["x.v", "x.nope", "source.v", '"x".v', "x.y.v"])
def test_an_alias_that_is_none_is_refused(tmp_path: Path, name: str, insert: bool) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "v": [1]}))
    words = "Table alias '(x|source)'.* unknown|Column must reference column in Delta table"
    for table in (DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)):
        for merge_schema in (False, True):
            merger = table.merge(NEW, "t.id = s.id", source_alias="s", target_alias="t", merge_schema=merge_schema)
            clause = merger.when_not_matched_insert if insert else merger.when_matched_update
            with pytest.raises((InvalidArgumentError, deltalake.exceptions.DeltaError), match=words):
                clause({name: "s.v"}).execute()
    assert DeltaTable(tmp_path).version() == 0
