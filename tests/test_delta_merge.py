"""`DeltaTable.merge`: sources of every kind, sources larger than memory, types, rules, races, column mapping."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from esker.delta.change.budget import Budget
from tests.delta_rows import rows
from tests.test_delta_delete import entry, read_by_theirs

DATA = pa.table({"id": [1, 2, 3, 4], "v": [10, 20, 30, 40], "p": ["a", "a", "b", "b"]})
NEW = pa.table({"id": [2, 4, 9], "v": [21, 41, 91], "p": ["a", "b", "c"]})
UPSERTED = [(1, 10), (2, 21), (3, 30), (4, 41), (9, 91)]
ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
both = pytest.mark.parametrize("properties", [{}, ON], ids=["copy", "vectors"])


def upsert(table: DeltaTable, rows_: Any = NEW, on: str = "t.id = s.id", **more: Any) -> dict[str, Any]:
    return table.merge(rows_, on, "s", "t", **more).when_matched_update_all().when_not_matched_insert_all().execute()


def pairs(table: DeltaTable) -> list[tuple[int, int]]:
    found = table.to_pyarrow_table()
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def _polars() -> Any:
    import polars

    return polars.from_arrow(NEW)


def _duckdb() -> Any:
    import duckdb

    return duckdb.connect().from_arrow(NEW)


SOURCES = {
    "table": lambda: NEW,
    "batch": lambda: NEW.to_batches()[0],
    "batches": NEW.to_batches,
    "reader": NEW.to_reader,
    "dataset": lambda: ds.dataset(NEW),
    "scanner": lambda: ds.dataset(NEW).scanner(),
    "pandas": NEW.to_pandas,
    "polars": _polars,
    "duckdb": _duckdb,
    "views": lambda: NEW.cast(pa.schema([("id", "int64"), ("v", "int64"), ("p", pa.string_view())])),
    "dictionaries": lambda: NEW.set_column(2, "p", NEW["p"].dictionary_encode()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_is_whatever_holds_rows(tmp_path: Path, kind: str) -> None:
    for module in {"polars", "duckdb", "pandas"} & {kind}:
        pytest.importorskip(module)
    write_deltalake(tmp_path, DATA)
    told = upsert(DeltaTable(tmp_path), SOURCES[kind]())
    assert (told["num_source_rows"], told["num_target_rows_inserted"], told["num_target_rows_updated"]) == (3, 1, 2)
    assert pairs(DeltaTable(tmp_path)) == UPSERTED
    assert rows(read_by_theirs(tmp_path)) == rows(DeltaTable(tmp_path).to_pyarrow_table())


def test_what_is_no_source_is_a_type_error(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    with pytest.raises(TypeError, match="PyCapsule"):
        DeltaTable(tmp_path).merge(7, "t.id = s.id", "s", "t")


@both
@pytest.mark.parametrize("on", ["t.id = s.id", "t.id >= s.id and t.id <= s.id"], ids=["keys", "no keys"])
def test_a_source_larger_than_memory_is_joined_part_by_part(
    tmp_path: Path, properties: dict[str, str | None], on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "source", property(lambda _: 4000))
    write_deltalake(tmp_path, pa.table({"id": range(900), "v": [0] * 900, "p": ["x"] * 900}), configuration=properties)
    ids = [*range(0, 1200, 2)]
    batch = pa.table({"id": ids, "v": ids, "p": ["y" * 20] * 600})
    table = DeltaTable(tmp_path)
    merger = table.merge(batch.to_reader(50), on, "s", "t", max_spill_size=1000)
    merger = (
        merger.when_matched_delete("s.v % 4 = 0").when_matched_update_all().when_not_matched_insert_all("s.v < 1100")
    )
    told = merger.when_not_matched_by_source_update({"v": "-1"}, "t.id < 10").execute()
    done = [told[f"num_target_rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
    assert done == [100, 225 + 5, 225]
    expected = [(n, -1 if n < 10 else 0) for n in range(1, 900, 2)]
    expected += [(n, n) for n in range(2, 900, 4)] + [(n, n) for n in range(900, 1100, 2)]
    assert pairs(table) == sorted(expected)
    # Two rows of the source for one of the table are found in whatever parts they are.
    with pytest.raises(exceptions.InvalidArgumentError, match="duplicate relevant"):
        upsert(table, pa.concat_tables([batch, batch.slice(1, 1)]), on)
    assert table.version() == 1


def test_temporary_files_have_a_limit(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    with pytest.raises(exceptions.InvalidArgumentError, match="max_temp_directory_size"):
        DeltaTable(tmp_path).merge(NEW, "t.id = s.id", "s", "t", max_spill_size=0, max_temp_directory_size=10)


@both
def test_files_that_hold_no_key_are_left_out(tmp_path: Path, properties: dict[str, str | None]) -> None:
    for start in (0, 1000, 2000):
        data = pa.table({"id": range(start, start + 100), "v": range(100)})
        write_deltalake(tmp_path, data, mode="append", configuration=properties)
    told = upsert(DeltaTable(tmp_path), pa.table({"id": [1005, 1500], "v": [-1, -2]}))
    assert (told["num_target_files_scanned"], told["num_target_files_skipped_during_scan"]) == (1, 2)
    assert (told["num_target_rows_inserted"], told["num_target_rows_updated"]) == (1, 1)
    told = upsert(DeltaTable(tmp_path), pa.table({"id": [5], "v": [1]}), "t.id = s.id and t.id > 1000")
    assert (told["num_target_files_scanned"], told["num_target_rows_inserted"]) == (0, 1)


TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.timestamp("us", "UTC"), [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
    (pa.timestamp("us"), [datetime(2024, 1, day) for day in (1, 2, 3)]),
    (pa.date32(), [date(2024, 1, day) for day in (1, 2, 3)]),
    (pa.decimal128(12, 3), [Decimal("1.500"), Decimal("-2.250"), Decimal("99.999")]),
    (pa.float64(), [0.0, float("nan"), 1.5]),
    (pa.binary(), [b"", b"\xff", b"a"]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a b", "é"]),
]


@both
@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind) for kind, _ in TYPES])
def test_keys_are_of_any_type(
    tmp_path: Path, kind: pa.DataType, values: list[Any], properties: dict[str, str | None]
) -> None:
    nested = [{"a": [n, None], "m": [("k", n)]} for n in range(3)]
    shape = pa.struct([("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int64()))])
    made = pa.table({"id": pa.array(values, kind), "v": [1, 2, 3], "n": pa.array(nested, shape)})
    write_deltalake(tmp_path, made, configuration=properties)
    source = made.slice(1).set_column(1, "v", pa.array([20, 30]))
    told = upsert(DeltaTable(tmp_path), source)
    missing = values.count(None)
    assert (told["num_target_rows_updated"], told["num_target_rows_inserted"]) == (2 - missing, missing)
    expected = pa.concat_tables([made.slice(0, 1), source, *([made.slice(2)] * missing)])
    assert rows(DeltaTable(tmp_path).to_pyarrow_table()) == rows(expected)


def test_zeros_of_both_signs_are_one_key(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [-0.0, 1.0], "v": [1, 2]}))
    assert upsert(DeltaTable(tmp_path), pa.table({"id": [0.0], "v": [7]}))["num_target_rows_updated"] == 1


@both
def test_partition_columns_are_keys_and_change(tmp_path: Path, properties: dict[str, str | None]) -> None:
    write_deltalake(tmp_path, DATA, partition_by=["p"], configuration=properties)
    table = DeltaTable(tmp_path)
    merger = table.merge(NEW, "t.p = s.p and t.id = s.id and t.p = 'b'", "s", "t")
    told = merger.when_matched_update({"p": "'moved'", "v": "s.v"}).execute()
    assert (told["num_target_files_scanned"], told["num_target_rows_updated"]) == (1, 1)
    found = table.to_pyarrow_table().sort_by("id")
    assert found["p"].to_pylist() == ["a", "a", "b", "moved"]
    assert rows(read_by_theirs(tmp_path)) == rows(found)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_by_their_names(tmp_path: Path, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path, DATA, partition_by=["p"], configuration=properties)
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [2, 9], "v": [21, 91], "p": ["a", "c"], "new one": ["x", "y"]})
    upsert(table, source, merge_schema=True)
    found = table.to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["v"] for row in found] == [10, 21, 30, 40, 91]
    assert [row["new one"] for row in found] == [None, "x", None, None, "y"]


def test_names_are_found_in_any_case_and_in_quotes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"Id": [1, 2], "My Col": ["a", "b"]}))
    table = DeltaTable(tmp_path)
    source = pa.table({"ID": [2, 3], "my col": ["x", "y"]})
    upsert(table, source, 'T.id = S."ID"')
    assert table.to_pyarrow_table().sort_by("Id").to_pydict() == {"Id": [1, 2, 3], "My Col": ["a", "x", "y"]}
    table.merge(source, "t.Id = s.id", "s", "t").when_matched_update({"T.`my col`": "'z'"}).execute()
    assert table.to_pyarrow_table().sort_by("Id")["My Col"].to_pylist() == ["a", "z", "z"]


def test_without_aliases_names_stand_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": [1, 2]}))
    table = DeltaTable(tmp_path)
    table.merge(pa.table({"key": [2], "w": [5]}), "id = key").when_matched_update({"v": "w + v"}).execute()
    assert pairs(table) == [(1, 1), (2, 7)]
    with pytest.raises(exceptions.InvalidArgumentError, match="id"):
        table.merge(pa.table({"id": [2]}), "id = id").when_matched_delete().execute()
    with pytest.raises(exceptions.InvalidArgumentError, match="different aliases"):
        table.merge(pa.table({"id": [2]}), "t.id = 1", "t", "T").when_matched_delete().execute()


REFUSED: list[tuple[str, dict[str, str], str]] = [
    ("t.nope = s.id", {"v": "1"}, "nope"),
    ("t.id = ", {"v": "1"}, "cannot parse"),
    ("t.id + s.id", {"v": "1"}, "condition"),
    ("t.id = s.id", {"v": "s.nope"}, "nope"),
    ("t.id = s.id", {"s.v": "1"}, "a column of the source"),
    ("t.id = s.id", {"v": "1", "t.v": "2"}, "twice"),
    ("t.id = s.id", {"v": "'abc'"}, "Cannot cast string 'abc' to value of Int64 type"),
]


@pytest.mark.parametrize(("on", "updates", "message"), REFUSED)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    tmp_path: Path, on: str, updates: dict[str, str], message: str
) -> None:
    write_deltalake(tmp_path, DATA)
    with pytest.raises(exceptions.InvalidArgumentError, match=message):
        DeltaTable(tmp_path).merge(NEW, on, "s", "t").when_matched_update(updates).execute()
    assert DeltaTable(tmp_path).version() == 0
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_failed_casts_become_null_where_the_caller_says_so(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [1, 2, 9], "v": ["x", "77", "2147483648999999999999"], "p": ["q", "q", "q"]})
    upsert(table, source, error_on_type_mismatch=False)
    found = dict(zip(*(table.to_pyarrow_table()[name].to_pylist() for name in ("id", "v")), strict=True))
    assert found == {1: None, 2: 77, 3: 30, 4: 40, 9: None}


@both
def test_constraints_and_generated_columns_hold(tmp_path: Path, properties: dict[str, str]) -> None:
    generated = Field("twice", "long", metadata={"delta.generationExpression": "v * 2"})
    schema = Schema([Field("id", "long", nullable=False), Field("v", "long"), generated])
    table = DeltaTable.create(tmp_path, schema, configuration={**properties, "delta.constraints.small": "v < 100"})
    write_deltalake(table, pa.table({"id": [1, 2], "v": [1, 2]}), mode="append")
    upsert(table, pa.table({"id": [2, 3], "v": [20, 30]}))
    assert sorted(table.to_pyarrow_table()["twice"].to_pylist()) == [2, 40, 60]
    for wrong in ({"id": [2], "v": [200]}, {"id": pa.array([None], pa.int64()), "v": [5]}):
        with pytest.raises(exceptions.InvalidArgumentError, match="Invalid data found:"):
            upsert(table, pa.table(wrong))
    assert table.version() == 2


def test_a_generated_column_of_the_source_is_not_added_as_a_plain_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    table = DeltaTable(tmp_path)
    generated = pa.field("twice", pa.int64(), metadata={"delta.generationExpression": "id * 2"})
    source = pa.table([[2, 3], [4, 6]], schema=pa.schema([pa.field("id", pa.int64()), generated]))
    merger = table.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    with pytest.raises(exceptions.SchemaMismatchError, match="cannot have generated expressions"):
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.version() == 0
    merger = table.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_not_matched_insert({"id": "s.id"}).execute()
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]


@both
def test_a_merge_that_changes_nothing_writes_no_version(tmp_path: Path, properties: dict[str, str | None]) -> None:
    write_deltalake(tmp_path, DATA, configuration=properties)
    table = DeltaTable(tmp_path)
    for source in (NEW.slice(0, 0), NEW):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all("s.v > 1000").execute()
    table.merge(NEW, "t.id = s.id", "s", "t").execute()
    assert (table.version(), len(list(tmp_path.glob("*.parquet")))) == (0, 1)


@both
def test_a_file_whose_rows_all_go_is_removed(tmp_path: Path, properties: dict[str, str | None]) -> None:
    write_deltalake(tmp_path, DATA, configuration=properties)
    write_deltalake(tmp_path, pa.table({"id": [7], "v": [70], "p": ["z"]}), mode="append")
    DeltaTable(tmp_path).delete("id = 1")
    table = DeltaTable(tmp_path)
    told = table.merge(DATA, "t.id = s.id", "s", "t").when_matched_delete().execute()
    assert (told["num_target_rows_deleted"], told["num_target_files_removed"]) == (3, 1)
    assert told["num_target_files_added"] == told["num_target_rows_copied"] == 0
    assert pairs(table) == [(7, 70)]
    assert [name for name, _ in entry(tmp_path, 3)] == ["commitInfo", "remove"]


def test_an_append_only_table_takes_inserts_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, configuration={"delta.appendOnly": "true"})
    table = DeltaTable(tmp_path)
    table.merge(NEW, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute()
    assert len(pairs(table)) == 5
    with pytest.raises(exceptions.InvalidArgumentError, match="append-only"):
        upsert(table)


@both
def test_a_lost_race_is_run_again_with_the_same_reader(tmp_path: Path, properties: dict[str, str | None]) -> None:
    write_deltalake(tmp_path, DATA, configuration=properties)
    stale = DeltaTable(tmp_path)
    merger = stale.merge(NEW.to_reader(), "t.id = s.id", "s", "t")
    deltalake.DeltaTable(tmp_path).delete("id = 4") if not properties else DeltaTable(tmp_path).delete("id = 4")
    told = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (told["num_target_rows_updated"], told["num_target_rows_inserted"]) == (1, 2)
    assert pairs(stale) == UPSERTED
    assert entry(tmp_path, 2)[0][1]["readVersion"] == 1


@both
def test_two_upserts_of_one_new_key_insert_it_once(tmp_path: Path, properties: dict[str, str | None]) -> None:
    write_deltalake(tmp_path, DATA, configuration=properties)
    stale = DeltaTable(tmp_path)
    upsert(DeltaTable(tmp_path))
    upsert(stale)
    assert pairs(stale) == UPSERTED
    # Other keys leave room: the same files, a later version.
    stale = DeltaTable(tmp_path)
    upsert(DeltaTable(tmp_path), pa.table({"id": [100], "v": [1], "p": ["a"]}))
    upsert(stale, pa.table({"id": [200], "v": [2], "p": ["a"]}))
    assert pairs(stale) == [*UPSERTED, (100, 1), (200, 2)]
    assert entry(tmp_path, 4)[0][1]["readVersion"] == 2


def test_arguments_by_position_are_deprecated(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    given = [NEW, "t.id = s.id", "s", "t", False, True, None, True, None, None, None]
    with pytest.warns(DeprecationWarning, match="Passing commit arguments positionally to merge"):
        merger = DeltaTable(tmp_path).merge(*given, CommitProperties(custom_metadata={"user": "ann"}))
    merger.when_matched_delete().execute()
    assert DeltaTable(tmp_path).history(1)[0]["user"] == "ann"


GROWTH = """
import sys
import numpy as np, pyarrow as pa, pyarrow.dataset, pyarrow.parquet
from esker.delta import DeltaTable
table, rows = DeltaTable(sys.argv[1]), int(sys.argv[2])
def status(key):
    return int(open("/proc/self/status").read().split(key)[1].split()[0]) // 1024
def batches():
    for start in range(0, rows, 100_000):
        ids = np.arange(start, start + 100_000) * 3
        yield pa.record_batch({"id": ids, "v": ids, "t": pa.array(np.char.add("text of the row ", ids.astype(str)))})
first = next(batches())
before = status("VmRSS:")
reader = pa.RecordBatchReader.from_batches(first.schema, batches())
merger = table.merge(reader, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
told = merger.execute()
print(told["num_target_rows_updated"], told["num_target_rows_inserted"], status("VmHWM:") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_merge_of_more_rows_than_its_memory_grows_by_less_than_its_budget(tmp_path: Path) -> None:
    ids = pa.array(range(0, 600_000, 2))
    write_deltalake(tmp_path, pa.table({"id": ids, "v": ids, "t": ["x"] * len(ids)}), configuration=ON)
    command = [sys.executable, "-c", GROWTH, str(tmp_path), "4000000"]
    updated, inserted, growth = map(int, subprocess.check_output(command, text=True).split())
    assert (updated, inserted) == (100_000, 3_900_000)
    assert growth < 512
