"""Updates that copy the pages of the columns that stay: values, statistics and footers, beside the ordinary way."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker._native.delta import ColumnSplice
from esker._native.store import Store
from esker.delta import AddAction, DeltaTable, Field, Schema, WriterProperties, write_deltalake
from esker.delta.change.column_copies import ColumnCopies
from tests.delta_rows import rows
from tests.test_delta_delete import entry, read_by_theirs

ROWS = 5000


@cache
def data(start: int = 0) -> pa.Table:
    """Rows of many types, with nulls."""
    ids = list(range(start, start + ROWS))
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "small": pa.array([n % 100 for n in ids], pa.int8()),
            "text": pa.array([f"text {n % 700}" for n in ids]),
            "price": pa.array([Decimal(n) / 4 for n in ids], pa.decimal128(20, 2)),
            "at": pa.array([n * 1_000_001 for n in ids], pa.timestamp("us", "UTC")),
            "day": pa.array([n % 9999 for n in ids], pa.date32()),
            "x": pa.array([n / 7 for n in ids]),
            "ok": pa.array([n % 2 == 0 for n in ids]),
            "raw": pa.array([str(n).encode() for n in ids], pa.binary()),
            "list": pa.array([[n, None] for n in ids], pa.list_(pa.int32())),
            "deep": pa.array([{"a": n, "b": [{"c": str(n)}]} for n in ids]),
        }
    )
    thirds = [
        pa.array([None if n % 3 == 0 else value for n, value in enumerate(column.to_pylist())], column.type)
        for column in table.columns[1:]
    ]
    return pa.table([table.column(0), *thirds], schema=table.schema)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were copied so."""
    found: list[str] = []
    splice = ColumnCopies.splice

    def noted(self: ColumnCopies, file: Any) -> Any:
        made = splice(self, file)
        if made is not None:
            found.append(file.file.path)
        return made

    monkeypatch.setattr(ColumnCopies, "splice", noted)
    return found


UPDATES: list[tuple[dict[str, str], str | None]] = [
    ({"small": "small + 1"}, "id % 10 = 3"),
    ({"text": "concat(text, '!')", "x": "x * 2"}, "small > 50"),
    ({"price": "null"}, "id < 100"),
    ({"at": "cast('2024-05-06T07:08:09Z' as timestamp)"}, "ok"),
    ({"raw": "raw", "ok": "not ok"}, None),
    ({"id": "-id"}, "id >= 4000"),
    ({"day": "null", "text": "null"}, "id = 4999"),
    ({"deep": "null", "list": "null"}, "id % 7 = 1"),
    ({"deep": "deep", "list": "make_array(small)"}, "small > 1"),
]


PROPERTIES = {"groups": WriterProperties(max_row_group_size=999), "zstd": WriterProperties(compression="ZSTD")}


@pytest.mark.parametrize(("updates", "predicate"), UPDATES)
@pytest.mark.parametrize("writer", ["esker", "deltalake", "groups", "zstd"])
def test_columns_that_stay_are_what_they_were(
    tmp_path: Path, copies: list[str], writer: str, updates: dict[str, str], predicate: str | None
) -> None:
    path = tmp_path / "t"
    for start in (0, 50_000):
        if writer == "deltalake":
            deltalake.write_deltalake(path, data(start), mode="append")
        else:
            properties = PROPERTIES.get(writer)
            write_deltalake(path, data(start), mode="append", writer_properties=properties)
    write_deltalake(tmp_path / "plain", DeltaTable(path).to_pyarrow_table())
    table, plain = DeltaTable(path), DeltaTable(tmp_path / "plain")
    found = table.update(updates, predicate=predicate)
    # The ordinary way: properties of the writer are given.
    wanted = plain.update(updates, predicate=predicate, writer_properties=WriterProperties(compression="SNAPPY"))
    assert found["num_updated_rows"] == wanted["num_updated_rows"] > 0
    assert copies
    assert len(copies) == found["num_added_files"] == found["num_removed_files"]
    ours = table.to_pyarrow_table()
    assert ours.schema == plain.to_pyarrow_table().schema
    assert rows(ours) == rows(plain.to_pyarrow_table())
    assert rows(read_by_theirs(path)) == rows(ours)
    for place in table.file_uris():
        whole = pq.read_table(place)
        group = pq.ParquetFile(place).metadata.row_group(0)
        assert group.num_columns == len(pq.ParquetFile(place).schema)
        assert whole.num_rows == ROWS


@pytest.mark.parametrize("mapped", [False, True])
def test_statistics_are_those_of_the_ordinary_way(tmp_path: Path, copies: list[str], mapped: bool) -> None:
    on: dict[str, str | None] = {"delta.columnMapping.mode": "name"} if mapped else {}
    for name, properties in (("ours", None), ("plain", WriterProperties(compression="SNAPPY"))):
        write_deltalake(tmp_path / name, data(), configuration=on)
        table = DeltaTable(tmp_path / name)
        table.update(
            {"small": "7", "price": "price + 1", "x": "null"},
            predicate=None if mapped else "id >= 0",
            writer_properties=properties,
        )
    assert len(copies) == 1
    logs = [[action for kind, action in entry(tmp_path / name, 1) if kind == "add"] for name in ("ours", "plain")]
    ours, plain = ([json.loads(add["stats"]) for add in adds] for adds in logs)
    if not mapped:
        assert ours == plain
    assert [stats["numRecords"] for stats in ours] == [ROWS]
    there = pa.table(DeltaTable(tmp_path / "ours").get_add_actions(flatten=True)).to_pylist()[0]
    assert (there["min.small"], there["max.small"], there["null_count.small"]) == (7, 7, 0)
    assert there["null_count.x"] == ROWS


def test_files_without_the_column_get_it(tmp_path: Path, copies: list[str]) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "a": ["x", "y"]}))
    write_deltalake(tmp_path, pa.table({"id": [3], "a": ["z"], "b": [1.5]}), mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    table.update({"b": "id * 10"}, predicate="id <> 3")
    assert len(copies) == 1
    assert read_by_theirs(tmp_path).sort_by("id").to_pydict() == {
        "id": [1, 2, 3], "a": ["x", "y", "z"], "b": [10.0, 20.0, 1.5]
    }  # fmt: skip


def test_no_column_comes_to_lie_beside_one_of_its_name_in_another_case(tmp_path: Path, copies: list[str]) -> None:
    table = DeltaTable.create(tmp_path, Schema([Field("id", "long"), Field("v", "string"), Field("n", "long")]))
    pq.write_table(pa.table({"id": range(100), "V": ["a"] * 100, "n": range(100)}), tmp_path / "theirs.parquet")
    size = (tmp_path / "theirs.parquet").stat().st_size
    theirs = AddAction("theirs.parquet", size, {}, 0, True, json.dumps({"numRecords": 100}))
    table.create_write_transaction([theirs], "append", table.schema())
    DeltaTable(tmp_path).update({"v": "'new'"}, predicate="id = 3")
    assert not copies
    (file,) = DeltaTable(tmp_path).file_uris()
    assert pq.read_schema(file).names == ["id", "v", "n"], "Spark reads no file with V and v"
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert found["v"].to_pylist() == deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")["v"].to_pylist()
    assert found["v"].to_pylist() == [None] * 3 + ["new"] + [None] * 96


def test_partitions_stay_and_rows_that_constraints_refuse_are_refused(tmp_path: Path, copies: list[str]) -> None:
    given = pa.table({"id": [1, 2, 3], "p": ["a/b", "c d", None], "v": [1, 2, 3], "w": ["x", "y", "z"]})
    write_deltalake(tmp_path, given, partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"small": "v + id < 100"})
    with pytest.raises(exceptions.InvalidArgumentError, match="constraint 'small'"):
        table.update({"v": "v + 1000"}, predicate="id > 1")
    before = set(tmp_path.rglob("*.parquet"))
    table.update({"v": "v + 10"}, predicate="id > 1")
    assert len(copies) > 2
    assert len(set(tmp_path.rglob("*.parquet")) - before) == 2
    assert read_by_theirs(tmp_path).sort_by("id").to_pydict() == {
        "id": [1, 2, 3], "p": ["a/b", "c d", None], "v": [1, 12, 13], "w": ["x", "y", "z"]
    }  # fmt: skip


@pytest.mark.parametrize("why", ["vector", "feed", "legacy", "partition", "no statistics"])
def test_files_that_cannot_be_copied_so_are_written_anew(tmp_path: Path, copies: list[str], why: str) -> None:
    on: dict[str, str | None] = {}
    if why == "feed":
        on = {"delta.enableChangeDataFeed": "true"}
    if why == "vector":
        on = {"delta.enableDeletionVectors": "true"}
    by = ["small"] if why == "partition" else None
    start = data().slice(0, 50).select(["id", "small", "text", "deep"])
    write_deltalake(tmp_path, start, configuration=on, partition_by=by)
    table = DeltaTable(tmp_path)
    if why == "vector":
        table.delete("id = 3")
        table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    if why == "legacy":
        (place,) = table.file_uris()
        whole = pq.read_table(place).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
        pq.write_table(whole, place)
        log = tmp_path / "_delta_log" / f"{0:020}.json"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"]["size"] = Path(place).stat().st_size
        log.write_text("\n".join(map(json.dumps, lines)))
        table = DeltaTable(tmp_path)
    if why == "no statistics":
        log = tmp_path / "_delta_log" / f"{0:020}.json"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        log.write_text("\n".join(map(json.dumps, lines)))
        table = DeltaTable(tmp_path)
    column = "small" if why == "partition" else "text"
    table.update({column: "null"}, predicate="id > 10")
    assert not copies
    found = table.to_pyarrow_table()
    nulls = found.filter(pc.field("id") > 10).column(column)
    assert nulls.null_count == len(nulls) == 39
    assert rows(read_by_theirs(tmp_path)) == rows(found)


def test_a_splice_refuses_what_does_not_fit(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), tmp_path / "old.parquet", row_group_size=2)

    def part(values: list[int], rows: int = 100) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": pa.array(values, pa.int64())}), sink, row_group_size=rows)
        return bytes(memoryview(sink.getvalue()))

    def begun() -> ColumnSplice:
        splice = ColumnSplice(store, "old.parquet")
        splice.begin(store, "new.parquet", part([]))
        return splice

    texts = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": ["x", "y"]}), texts)
    for wrong, words in [
        (part([1]), "2 rows, found 1"),
        (part([1, 2], 1), "one row group of new values, found 2"),
        (bytes(memoryview(texts.getvalue())), "values of column"),
        (b"PAR1", "Parquet"),
        (part([1, 2])[:-9] + b"\0" * 9, "Parquet"),
    ]:
        with pytest.raises(exceptions.EskerError, match=words):
            begun().append(2, partial(lambda found, _: found, wrong))
    with pytest.raises(ZeroDivisionError):
        begun().append(2, lambda _: bytes([1 // 0]))
    with pytest.raises(TypeError):
        begun().append(2, lambda _: "no bytes")  # type: ignore[arg-type, return-value]
    with pytest.raises(exceptions.InvalidArgumentError, match="3 rows, found 2"):
        begun().append(3, lambda _: part([1, 2]))
    splice = ColumnSplice(store, "old.parquet")
    assert splice.row_groups == [2, 1]
    with pytest.raises(exceptions.InvalidArgumentError, match="has begun"):
        splice.append(2, lambda _: part([1, 2]))
    splice = begun()
    with pytest.raises(exceptions.InvalidArgumentError, match="expected 2 row groups"):
        splice.finish()
    asked = []

    def told(column: str) -> bytes:
        asked.append(column)
        return part([7, 8] if len(asked) == 1 else [9])

    splice.append(2, told)
    with pytest.raises(exceptions.InvalidArgumentError, match="expected 2 row groups"):
        splice.finish()
    splice.append(1, told)
    with pytest.raises(exceptions.InvalidArgumentError, match="found a further one"):
        splice.append(1, told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.parquet"]
    assert splice.finish() == (tmp_path / "new.parquet").stat().st_size
    assert asked == ["a", "a"]
    assert pq.read_table(tmp_path / "new.parquet").to_pydict() == {"a": [7, 8, 9], "b": ["x", "y", "z"]}
    # Rows may go where all columns are replaced, row groups as well.
    splice = ColumnSplice(store, "old.parquet")
    splice.begin(store, "less.parquet", part([]), only=True)
    splice.append(0, told)
    splice.append(1, told)
    splice.finish()
    assert pq.read_table(tmp_path / "less.parquet").to_pydict() == {"a": [9]}
    splice = begun()
    splice.append(2, lambda _: part([1, 2]))
    splice.abort()
    with pytest.raises(exceptions.InvalidArgumentError):
        splice.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["less.parquet", "new.parquet", "old.parquet"]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(exceptions.CorruptFileError, match=r"bad\.parquet"):
        ColumnSplice(store, "bad.parquet")


def test_a_file_cut_anywhere_is_an_error_and_no_wrong_row(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": list(range(50)), "b": [str(n) for n in range(50)]}))
    table = DeltaTable(tmp_path)
    (place,) = table.file_uris()
    whole = Path(place).read_bytes()
    for cut in range(0, len(whole), 97):
        Path(place).write_bytes(whole[:cut])
        with pytest.raises((exceptions.EskerError, pa.ArrowInvalid, OSError)):
            DeltaTable(tmp_path).update({"a": "a + 1"}, predicate="a >= 0")
    Path(place).write_bytes(whole)
    assert DeltaTable(tmp_path).version() == 0
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 50
