"""Columns of nothing but nulls, times in arguments and folders, ranges of a feed: what stood apart from deltalake."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import esker.delta
from esker.delta import DeltaTable, Schema, convert_to_deltalake, write_deltalake
from esker.exceptions import SchemaMismatchError

_WANTED = [
    pa.string(),
    pa.int64(),
    pa.list_(pa.int32()),
    pa.struct([("x", pa.int64())]),
    pa.map_(pa.string(), pa.int64()),
    pa.timestamp("us", "UTC"),
    pa.decimal128(5, 2),
]


def _values(kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return pa.array([[("k", 1)]], kind)
    samples: dict[str, Any] = {"list": [1, 2], "struct": {"x": 1}, "string": "t", "int64": 3}
    known = next((value for name, value in samples.items() if str(kind).startswith(name)), None)
    return (
        pa.array([known], kind)
        if known is not None
        else pa.array([1])
        .cast(pa.int64())
        .cast(kind if pa.types.is_timestamp(kind) else pa.decimal128(19, 0))
        .cast(kind)
    )


@pytest.mark.parametrize("verb", ["append", "merge"])
@pytest.mark.parametrize("kind", _WANTED, ids=str)
def test_a_column_of_nulls_becomes_what_comes(tmp_path: Path, kind: pa.DataType, verb: str) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": [1], "n": pa.nulls(1)}))
    data = pa.table({"id": [2], "n": _values(kind)})
    if verb == "append":
        write_deltalake(uri, data, mode="append", schema_mode="merge")
    else:
        merge = DeltaTable(uri).merge(data, "t.id = s.id", source_alias="s", target_alias="t", merge_schema=True)
        merge.when_not_matched_insert_all().execute()
    for library in (deltalake, None):
        table = DeltaTable(uri) if library is None else deltalake.DeltaTable(uri)
        found = table.to_pyarrow_table()
        assert found.filter(pa.compute.equal(found["id"], 2))["n"].to_pylist() == data["n"].to_pylist()
        assert found.filter(pa.compute.equal(found["id"], 1))["n"].to_pylist() == [None]
    assert DeltaTable(uri).to_pyarrow_table().schema.field("n").type == kind


@pytest.mark.parametrize("kind", _WANTED, ids=str)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_nulls_go_into_columns_of_any_kind(tmp_path: Path, kind: pa.DataType, mode: str) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": [1], "n": _values(kind)}))
    nulls = pa.table({"id": [2], "n": pa.nulls(1)})
    write_deltalake(uri, nulls, mode=mode, schema_mode="merge")  # type: ignore[arg-type]
    found = DeltaTable(uri).to_pyarrow_table()
    assert found.schema.field("n").type == kind
    assert found.filter(pa.compute.equal(found["id"], 2))["n"].to_pylist() == [None]
    merge = DeltaTable(uri).merge(
        pa.table({"id": [3], "n": pa.nulls(1)}), "t.id = s.id", source_alias="s", target_alias="t", merge_schema=True
    )
    merge.when_not_matched_insert_all().execute()
    assert DeltaTable(uri).to_pyarrow_table().num_rows == len(found) + 1


@pytest.mark.parametrize("kind", _WANTED, ids=str)
def test_a_column_that_is_overwritten_with_nulls_keeps_its_type(tmp_path: Path, kind: pa.DataType) -> None:
    before = pa.table({"n": _values(kind), "gone": [1]}, pa.schema([pa.field("n", kind, False), ("gone", pa.int64())]))
    nulls = pa.table({"n": pa.nulls(2), "other": pa.nulls(2), "new": [1, 2]})
    tables = []
    for library in (esker.delta, deltalake):
        uri = str(tmp_path / library.__name__)
        library.write_deltalake(uri, before)
        library.write_deltalake(uri, nulls, mode="overwrite", schema_mode="overwrite")
        tables.append(DeltaTable(uri))
        rows = tables[-1].to_pyarrow_table()
        assert rows.column_names == ["n", "other", "new"]
        assert (rows["n"].type, rows["n"].to_pylist(), rows["other"].type) == (kind, [None, None], pa.null())
    assert tables[0].schema() == tables[1].schema()
    write_deltalake(tables[0], pa.table({"n": _values(kind), "other": pa.nulls(1), "new": [3]}), mode="append")
    assert tables[0].to_pyarrow_table().sort_by("new")["n"].to_pylist() == [None, None, *before["n"].to_pylist()]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Asia/Tokyo"])
def test_times_as_new_values_are_exact(tmp_path: Path, zone: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    kind = pa.timestamp("us") if zone is None else pa.timestamp("us", "UTC")
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": [1], "t": pa.array([0]).cast(kind)}))
    times = [dt.datetime(1960, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 7, 1, 12), dt.datetime(2190, 1, 1, 1, 1, 1, 999999)]
    for plain in times:
        time = plain if zone is None else plain.replace(tzinfo=ZoneInfo(zone))
        DeltaTable(uri).update(new_values={"t": time})
        assert DeltaTable(uri).to_pyarrow_table()["t"].to_pylist() == [time]


def test_a_time_becomes_the_day_that_it_is_in_utc(tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2024, 1, 2, 1, 5, tzinfo=dt.UTC)], pa.timestamp("us", "America/New_York"))
    for library, uri in (
        (deltalake.write_deltalake, str(tmp_path / "theirs")),
        (write_deltalake, str(tmp_path / "ours")),
    ):
        library(uri, pa.table({"d": pa.array([dt.date(2024, 1, 1)])}))
        library(uri, pa.table({"d": times}), mode="append")
        found = DeltaTable(uri).to_pyarrow_table()["d"].to_pylist()
        assert sorted(found) == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]


@pytest.mark.parametrize("folder", ["2024-01-01 10:00:00", "2024-01-01 10%3A00%3A00", "2024-01-01T10:00:00Z"])
@pytest.mark.parametrize("form", ["delta", "arrow"])
def test_folders_of_times_are_of_utc(tmp_path: Path, folder: str, form: str) -> None:
    place = tmp_path / f"p={folder}"
    place.mkdir()
    pq.write_table(pa.table({"id": [1]}), place / "a.parquet")
    schema = pa.schema([("p", pa.timestamp("us", "UTC"))])
    given = schema if form == "arrow" else Schema.from_arrow(schema)
    convert_to_deltalake(str(tmp_path), partition_by=given, partition_strategy="hive")
    expected = [dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)]
    assert DeltaTable(str(tmp_path)).to_pyarrow_table()["p"].to_pylist() == expected


@pytest.mark.parametrize("microseconds", [-62_135_596_800_000_001, 253_402_300_800_000_000])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_partition_of_a_year_without_text_is_refused(tmp_path: Path, microseconds: int, zone: str | None) -> None:
    rows = pa.table({"id": [1], "at": pa.array([microseconds], pa.timestamp("us", zone))})
    with pytest.raises(esker.exceptions.InvalidArgumentError, match="years 1 to 9999"):
        write_deltalake(tmp_path, rows, partition_by="at")
    assert list(tmp_path.rglob("*.*")) == []
    write_deltalake(tmp_path, rows)
    assert DeltaTable(tmp_path).to_pyarrow_table()["at"].cast(pa.int64()).to_pylist() == [microseconds]


def test_a_feed_behind_its_end_is_empty_where_that_is_allowed(tmp_path: Path) -> None:
    uri = str(tmp_path)
    for number in range(3):
        write_deltalake(
            uri, pa.table({"id": [number]}), mode="append", configuration={"delta.enableChangeDataFeed": "true"}
        )
    table = DeltaTable(uri)
    for start, end in ((3, 2), (2, 1), (9, 2), (3, None)):
        found = table.load_cdf(starting_version=start, ending_version=end, allow_out_of_range=True).read_all()
        assert found.num_rows == 0
        assert "_change_type" in found.column_names
    assert table.load_cdf(starting_version=2, ending_version=2, allow_out_of_range=True).read_all().num_rows == 1
    with pytest.raises(ValueError, match="starts before it ends"):
        table.load_cdf(starting_version=2, ending_version=1)


LESS: list[tuple[pa.DataType, pa.Array, Any]] = [
    (pa.date32(), pa.array([dt.datetime(1969, 12, 31, 5, tzinfo=dt.UTC)]), dt.date(1969, 12, 31)),
    (pa.float32(), pa.array([0.1]), 0.10000000149011612),
    (pa.decimal128(5, 2), pa.array([1.555]), Decimal("1.56")),
    (pa.timestamp("us"), pa.array([1999], pa.timestamp("ns")), dt.datetime(1970, 1, 1, microsecond=1)),
]


@pytest.mark.parametrize(("kind", "values", "expected"), LESS, ids=lambda part: str(getattr(part, "type", part)))
def test_what_is_kept_less_precisely_is_what_deltalake_keeps(
    tmp_path: Path, kind: pa.DataType, values: pa.Array, expected: Any
) -> None:
    for library in (deltalake.write_deltalake, write_deltalake):
        uri = str(tmp_path / library.__module__)
        library(uri, pa.table({"x": pa.array([], kind)}))
        library(uri, pa.table({"x": values}), mode="append")
        assert DeltaTable(uri).to_pyarrow_table()["x"].to_pylist() == [expected]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("first", [0, 300_000])
def test_nanoseconds_in_files_are_cut_by_every_reader(first: int, zone: str | None, tmp_path: Path) -> None:
    kind = pa.timestamp("ns", zone)
    whole = {"t": pa.array([n * 1000 for n in range(first)], pa.timestamp("ns", zone)), "k": range(first)}
    pq.write_table(pa.table(whole).cast(pa.schema([("t", kind), ("k", "int64")])), tmp_path / "a.parquet")
    rows = pa.table({"t": pa.array([1500, None, 10**18 + 1], kind), "k": [-1, -2, -3]})
    pq.write_table(rows, tmp_path / "b.parquet", row_group_size=1)
    convert_to_deltalake(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    table = DeltaTable(tmp_path)
    cut = [dt.datetime(1970, 1, 1, microsecond=1), None, dt.datetime(2001, 9, 9, 1, 46, 40)]
    want = [time and time.replace(tzinfo=dt.UTC) if zone else time for time in cut]
    ends = {
        "table": table.to_pyarrow_table(),
        "scan": table.scan().read_all(),
        "feed": pa.table(table.load_cdf()),
        "query": esker.delta.QueryBuilder().register("x", table).execute("select * from x").read_all(),
    }
    for name, found in ends.items():
        assert found.num_rows == first + 3, name
        assert sorted(found["k"].to_pylist()) == [-3, -2, -1, *range(first)], name
        few = {row["k"]: row["t"] for row in found.filter(pc.field("k") < 0).to_pylist()}
        assert [few[k] for k in (-1, -2, -3)] == want, name
    where = f"t = timestamp '1970-01-01 00:00:00.000001{'Z' if zone else ''}'"
    meant = table.to_pyarrow_table(filters=where)["k"].to_pylist()
    assert meant == ([1, -1] if first else [-1])
    assert table.delete(where)["num_deleted_rows"] == len(meant)


def test_files_of_a_folder_agree_where_one_has_only_nulls_or_may_have_them(tmp_path: Path) -> None:
    needed = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.null())])
    parts = [
        pa.table([[1], [None]], schema=needed),
        pa.table({"k": pa.array([None, 2], pa.int64()), "v": ["x", "y"]}),
        pa.table([[3], [None]], schema=needed),
    ]
    found = []
    for library in (deltalake, esker.delta):
        folder = tmp_path / library.__name__
        folder.mkdir()
        for number, part in enumerate(parts):
            pq.write_table(part, folder / f"{number}.parquet")
        library.convert_to_deltalake(folder)
        assert DeltaTable(folder).to_pyarrow_table().num_rows == 4
        found.append((DeltaTable(folder).schema(), sorted(map(repr, DeltaTable(folder).scan().read_all().to_pylist()))))
    assert found[0] == found[1]


def test_a_column_that_one_file_of_a_folder_lacks_may_be_null_whichever_is_first(tmp_path: Path) -> None:
    needed = pa.table([[1], [2]], schema=pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())]))
    for first in (needed, needed.select(["v"])):
        folder = tmp_path / str(first.num_columns)
        folder.mkdir()
        pq.write_table(first, folder / "a.parquet")
        pq.write_table(needed.select(["v"]) if first is needed else needed, folder / "b.parquet")
        convert_to_deltalake(folder)
        rows = DeltaTable(folder).to_pyarrow_table(columns=["k", "v"]).sort_by("k").to_pylist()
        assert rows == [{"k": 1, "v": 2}, {"k": None, "v": 2}]


def test_values_for_a_column_without_a_type_are_refused_with_what_gives_it_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"k": [1], "v": pa.nulls(1)}))
    more = pa.table({"k": [2], "v": [1.5]})
    with pytest.raises(SchemaMismatchError, match=r"column 'v': .* schema_mode=\"merge\" .*Float64 to"):
        write_deltalake(tmp_path, more, mode="append")
    write_deltalake(tmp_path, more, mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).to_pyarrow_table().sort_by("k")["v"].to_pylist() == [None, 1.5]
