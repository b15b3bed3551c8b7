"""Delta tables that deltalake wrote, read in every way: the rows are those that deltalake reads."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import inspect
import json
import math
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import DeltaTable, write_deltalake
from tests.delta_logs import PROTOCOL, add, commit, metadata
from tests.delta_rows import rows

UTC = datetime.UTC
DAY = datetime.date(2024, 2, 3)


def _table() -> pa.Table:
    return pa.table(
        {
            "p": pa.array(["a b", "c/d", "e%f", None, "a b", "x=y"]),
            "i": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
            "f": pa.array([1.5, math.nan, -math.inf, None, 0.0, 2.0]),
            "s": pa.array(["", "é", None, "zz", "a" * 100, "q"]),
            "d": pa.array([DAY, None, DAY, DAY, DAY, DAY]),
            "t": pa.array([datetime.datetime(2024, 1, 1, 0, 0, 0, 123456, UTC)] * 6, pa.timestamp("us", "UTC")),
            "n": pa.array([decimal.Decimal("-1.50"), None, *[decimal.Decimal("12.25")] * 4], pa.decimal128(9, 2)),
            "b": pa.array([b"\x00\xff", None, b"", b"x", b"y", b"z"]),
            "l": pa.array([[1, None], [], None, [2], [3], [4]], pa.list_(pa.int64())),
            "m": pa.array([[("k", 1)], [], None, [("a", None)], [], []], pa.map_(pa.string(), pa.int64())),
            "r": pa.array([{"x": 1, "y": "u"}, None, {"x": None, "y": "v"}, *[{"x": 3, "y": None}] * 3]),
        }
    )


@pytest.fixture
def written(tmp_path: Path) -> Path:
    deltalake.write_deltalake(tmp_path / "t", _table(), partition_by=["p"])
    return tmp_path / "t"


def test_every_way_gives_the_rows_that_the_peer_wrote(written: Path) -> None:
    expected = rows(_table())
    table = DeltaTable(written)
    assert rows(table.to_pyarrow_table()) == expected
    assert rows(table.to_pyarrow_dataset().to_table()) == expected
    assert rows(pa.table(table)) == expected
    assert rows(table.scan().read_all()) == expected
    assert len(table.to_pandas()) == 6
    assert table.count() == 6
    assert rows(table.to_pyarrow_dataset(as_large_types=True).to_table()) == expected


def test_duckdb_and_polars_read_a_table(written: Path) -> None:
    table_ = DeltaTable(written)
    for _ in range(2):
        # As often as one likes: each query scans anew.
        assert duckdb.sql("select count(*), sum(i) from table_").fetchall() == [(6, 16)]
    dataset = table_.to_pyarrow_dataset()
    assert dataset.schema.names == _table().column_names
    assert duckdb.sql("select s from dataset where i = 4").fetchall() == [("zz",)]
    assert polars.DataFrame(table_).height == 6
    assert polars.DataFrame(table_.scan(columns=["i"]))["i"].sum() == 16
    lazy = polars.scan_pyarrow_dataset(table_.to_pyarrow_dataset(as_large_types=True))
    assert lazy.filter(polars.col("i") == 4).select("s").collect().rows() == [("zz",)]


@pytest.mark.parametrize(
    "where",
    [
        [("p", "=", "a b")],
        [("p", "!=", "a b")],
        [("p", "in", ["c/d", "x=y"])],
        [("p", "not in", ["c/d"])],
        [("p", "=", "")],
        [("p", "!=", "")],
        [[("p", "=", "a b")], [("p", "=", "c/d")]],
        [("p", ">", "b")],
    ],
)
def test_tuples_leave_the_files_that_the_peer_leaves(written: Path, where: Any) -> None:
    ours = DeltaTable(written).file_uris(file_pruning_predicate=where)
    theirs = deltalake.DeltaTable(written).file_uris(file_pruning_predicate=where)
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        ("i >= 3", pc.field("i") >= 3),
        ("i = 3 or i = 6", (pc.field("i") == 3) | (pc.field("i") == 6)),
        ("i is null", pc.field("i").is_null()),
        ("f > 1.0", pc.field("f") > 1.0),
        ("s = 'zz'", pc.field("s") == "zz"),
        ("d = date '2024-02-03' and p = 'e%f'", (pc.field("d") == DAY) & (pc.field("p") == "e%f")),
        ("r.x = 3", pc.field("r", "x") == 3),
        ("n < 0", pc.field("n") < pa.scalar(decimal.Decimal("0.00"), pa.decimal128(9, 2))),
        ("p is null and i = 4", pc.field("p").is_null() & (pc.field("i") == 4)),
    ],
)
def test_filters_keep_the_rows_that_pyarrow_keeps(written: Path, where: str, expression: pc.Expression) -> None:
    table = DeltaTable(written)
    expected = rows(_table().filter(expression))
    assert rows(table.to_pyarrow_table(filters=expression)) == expected
    if "f >" in where:
        # In SQL, as in Spark, NaN is greater than all numbers.
        expected = rows(_table().filter(expression | pc.field("f").is_nan()))
    assert rows(table.to_pyarrow_table(filters=where)) == expected
    assert rows(table.scan(predicate=where).read_all()) == expected
    assert len(table.file_uris(file_pruning_predicate=where)) < 5


def test_columns_are_those_asked_for(written: Path) -> None:
    table = DeltaTable(written)
    assert table.to_pyarrow_table(columns=["l", "p"]).column_names == ["l", "p"]
    found = table.scan(columns=["s"], predicate="i = 4").read_all()
    assert (found.column_names, found["s"].to_pylist()) == (["s"], ["zz"])
    with pytest.raises(exceptions.InvalidArgumentError, match="'zz'"):
        table.to_pyarrow_table(columns=["zz"])


def test_what_is_known_of_a_table_is_what_the_peer_knows(written: Path) -> None:
    ours, theirs = DeltaTable(written), deltalake.DeltaTable(written)
    assert sorted(ours.file_uris()) == sorted(theirs.file_uris())
    assert sorted(map(str, ours.partitions())) == sorted(map(str, theirs.partitions()))
    assert ours.version() == theirs.version()
    assert tuple(ours.protocol()) == tuple(theirs.protocol())
    assert str(ours.metadata()) == str(theirs.metadata())
    assert repr(ours.schema()) == repr(theirs.schema())
    assert json.loads(ours.schema().to_json()) == json.loads(theirs.schema().to_json())
    assert ours.schema().to_arrow() == pa.schema(theirs.schema().to_arrow())
    assert ours.history() == theirs.history()
    assert ours.history(limit=0) == []


@pytest.mark.parametrize("flatten", [False, True])
def test_add_actions_are_those_of_the_peer(written: Path, flatten: bool) -> None:
    ours = DeltaTable(written).get_add_actions(flatten=flatten)
    theirs = pa.table(deltalake.DeltaTable(written).get_add_actions(flatten=flatten))
    by_path = sorted(ours.to_pylist(), key=lambda row: row["path"])
    expected = sorted(theirs.to_pylist(), key=lambda row: row["path"])
    assert ours.column_names[:4] == theirs.column_names[:4]
    for mine, other in zip(by_path, expected, strict=True):
        for name in set(mine) & set(other):
            assert repr(mine[name]) == repr(other[name]) or name in ("min", "max", "null_count"), name
    common = [name for name in ours.column_names if name.startswith(("min.", "max.", "null_count."))]
    for name in set(common) & set(theirs.column_names):
        assert sorted(map(str, ours[name].to_pylist())) == sorted(map(str, theirs[name].to_pylist())), name


@pytest.mark.parametrize("checkpoint", [False, True])
def test_nulls_of_lists_and_maps_are_counted_as_by_the_peer(tmp_path: Path, checkpoint: bool) -> None:
    lists, maps = pa.array([[1, None], None, [2]]), pa.array([None, None, [("k", 1)]], pa.map_(pa.string(), pa.int64()))
    data = pa.table({"id": [1, None, 3], "l": lists, "s": pa.StructArray.from_arrays([maps, lists], ["m", "l"])})
    write_deltalake(tmp_path, data)
    write_deltalake(tmp_path, data.slice(0, 1), mode="append")
    table = DeltaTable(tmp_path)
    if checkpoint:
        table.create_checkpoint()
        table = DeltaTable(tmp_path)
    found = table.get_add_actions(flatten=True)
    theirs = pa.table(deltalake.DeltaTable(tmp_path).get_add_actions(flatten=True))
    counts = [name for name in theirs.column_names if name.startswith("null_count.")]
    assert set(counts) == {"null_count.id", "null_count.l", "null_count.s.m", "null_count.s.l"}
    for name in counts:
        assert sorted(found[name].to_pylist()) == sorted(theirs[name].to_pylist()), name
    assert not [name for name in found.column_names if name.startswith(("min.", "max.")) and name[4:] != "id"]
    nested = {tuple(row["null_count"]["s"].values()) for row in table.get_add_actions().to_pylist()}
    assert nested == {(2, 1), (1, 0)}
    assert table.to_pyarrow_dataset().to_table(filter=pc.field("l").is_null()).num_rows == 1
    assert table.to_pyarrow_dataset().to_table(filter=pc.field("l").is_valid()).num_rows == 3


def test_signatures_are_those_of_the_peer() -> None:
    for name in dir(DeltaTable):
        ours, theirs = getattr(DeltaTable, name), getattr(deltalake.DeltaTable, name, None)
        if name.startswith("_") or not callable(ours) or theirs is None:
            continue
        wanted = [p for p in inspect.signature(theirs).parameters if p != "args"]
        found = [p for p in inspect.signature(ours).parameters if p != "args"]
        assert found[: len(wanted)] == wanted, name


def test_versions_by_number_and_time(tmp_path: Path) -> None:
    for value in range(4):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [value]}), mode="append")
    times = [1_600_000_000 + 100 * version for version in range(4)]
    for version, time in enumerate(times):
        import os

        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (time, time))
    table = DeltaTable(tmp_path, version=2)
    assert sorted(table.to_pyarrow_table()["x"].to_pylist()) == [0, 1, 2]
    table.load_as_version(0)
    assert table.to_pyarrow_table()["x"].to_pylist() == [0]
    moment = datetime.datetime.fromtimestamp(times[1] + 50, UTC)
    for form in (moment, moment.replace(tzinfo=None), moment.isoformat(), moment.isoformat().replace("+00:00", "Z")):
        table.load_as_version(form)
        assert table.version() == 1, form
    table.load_as_version("2100-01-01T00:00:00Z")
    assert table.version() == 3
    with pytest.raises(exceptions.NotFoundError, match="as old as"):
        table.load_as_version("1999-01-01")
    with pytest.raises(exceptions.NotFoundError, match="no version 9"):
        table.load_as_version(9)
    with pytest.raises(exceptions.InvalidArgumentError):
        table.load_as_version(-1)
    with pytest.raises(TypeError):
        table.load_as_version(1.5)  # type: ignore[arg-type]


def test_in_commit_timestamps_are_the_times_of_versions(tmp_path: Path) -> None:
    settings_ = {"delta.enableInCommitTimestamps": "true"}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}
    for version, time in enumerate([1000, 5000]):
        info = {"commitInfo": {"inCommitTimestamp": time}}
        commit(tmp_path, version, [info, *([protocol, metadata(configuration=settings_)] if version == 0 else [])])
    table = DeltaTable(tmp_path)
    assert table._snapshot.in_commit_timestamp == 5000
    table.load_as_version("1970-01-01T00:00:04Z")
    assert table.version() == 0


def test_a_table_pickles(written: Path) -> None:
    table = pickle.loads(pickle.dumps(DeltaTable(written)))
    assert (table.version(), table.count()) == (0, 6)


def test_a_pickle_of_a_table_that_was_made_anew_is_no_other_table(tmp_path: Path) -> None:
    for n in (1, 2):
        write_deltalake(tmp_path / "t", pa.table({"id": [n]}), mode="append")
    sent = pickle.dumps(DeltaTable(tmp_path / "t"))
    shutil.rmtree(tmp_path / "t")
    for n in (1, 2, 3):
        write_deltalake(tmp_path / "t", pa.table({"id": [n * 100]}), mode="append")
    with pytest.raises(exceptions.NotFoundError, match="version 1 .* another one made there"):
        pickle.loads(sent)


def test_there_is_no_table_where_there_is_none(tmp_path: Path, written: Path) -> None:
    assert DeltaTable.is_deltatable(written)
    assert not DeltaTable.is_deltatable(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no Delta table"):
        DeltaTable(tmp_path / "none")


def test_a_missing_data_file_is_named(written: Path) -> None:
    table = DeltaTable(written)
    Path(table.file_uris()[0]).unlink()
    with pytest.raises(FileNotFoundError, match="part-"):
        table.to_pyarrow_table()


def test_columns_that_files_lack_are_null(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"x": [1], "r": [{"a": 1}]}))
    wide = pa.table({"x": [2], "r": [{"a": 1, "b": "n"}], "new": ["y"]})
    deltalake.write_deltalake(tmp_path, wide, mode="append", schema_mode="merge")
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("x").to_pylist()
    assert found == [
        {"x": 1, "r": {"a": 1, "b": None}, "new": None},
        {"x": 2, "r": {"a": 1, "b": "n"}, "new": "y"},
    ]


def _changes(table: pa.Table) -> list[str]:
    wanted = table.drop_columns(["_commit_timestamp"])
    return sorted(repr(sorted((name, str(value)) for name, value in row.items())) for row in wanted.to_pylist())


def test_the_change_feed_is_that_of_the_peer(tmp_path: Path) -> None:
    on = {"delta.enableChangeDataFeed": "true"}
    data = pa.table({"p": ["a", "b"], "x": [1, 2]})
    deltalake.write_deltalake(tmp_path, data, partition_by=["p"], configuration=on)
    deltalake.write_deltalake(tmp_path, pa.table({"p": ["a", "b"], "x": [3, 4]}), mode="append")
    peer = deltalake.DeltaTable(tmp_path)
    peer.update({"x": "x + 10"}, predicate="x = 1")
    peer.delete("p = 'b'")
    ours = DeltaTable(tmp_path)
    for start, end in [(0, None), (1, 2), (3, 3), (2, None)]:
        found = pa.table(ours.load_cdf(starting_version=start, ending_version=end))
        expected = pa.table(peer.load_cdf(starting_version=start, ending_version=end))
        assert _changes(found) == _changes(expected)
    assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    filtered = ours.load_cdf(columns=["x"], predicate="_change_type = 'update_postimage'").read_all()
    assert filtered.to_pylist() == [{"x": 11}]
    with pytest.raises(exceptions.InvalidArgumentError, match="allow_out_of_range"):
        ours.load_cdf(starting_version=9)
    assert ours.load_cdf(starting_version=9, allow_out_of_range=True).read_all().num_rows == 0
    with pytest.raises(exceptions.InvalidArgumentError, match="starts before"):
        ours.load_cdf(starting_version=2, ending_version=1)


def test_a_change_feed_that_was_off_is_an_error(written: Path) -> None:
    with pytest.raises(exceptions.UnsupportedError, match="enableChangeDataFeed"):
        DeltaTable(written).load_cdf().read_all()


def _parquet(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def _log(path: Path, fields: list[Any], adds: list[Any], **changes: Any) -> None:
    schema = json.dumps({"type": "struct", "fields": fields})
    commit(path, 0, [changes.pop("protocol", PROTOCOL), metadata(schemaString=schema, **changes), *adds])


def _field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def test_widened_types_are_read_from_old_files(tmp_path: Path) -> None:
    old = pa.table({"a": pa.array([1], pa.int8()), "f": pa.array([1.5], pa.float32()), "d": [DAY]})
    _parquet(tmp_path / "old.parquet", old.append_column("n", pa.array([7], pa.int32())))
    changes = {"delta.typeChanges": [{"fromType": "byte", "toType": "long"}]}
    fields = [
        _field("a", "long", **changes),
        _field("f", "double"),
        _field("d", "timestamp_ntz"),
        _field("n", "decimal(12,2)"),
    ]
    features = ["typeWidening", "timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    _log(tmp_path, fields, [add("old.parquet")], protocol={"protocol": protocol})
    expected = {"a": 1, "f": 1.5, "d": datetime.datetime(2024, 2, 3), "n": decimal.Decimal("7.00")}
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [expected]


def test_bounds_of_floats_hold_after_they_were_widened(tmp_path: Path) -> None:
    """The statistics of a float say `3.4`; as a double it is 3.4000000953674316."""
    values = pa.array([3.4, -0.1], pa.float32())
    _parquet(tmp_path / "old.parquet", pa.table({"f": values}))
    statistics = {"numRecords": 2, "minValues": {"f": -0.1}, "maxValues": {"f": 3.4}, "nullCount": {"f": 0}}
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    features = ["typeWidening"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    entry = [add("old.parquet", stats=json.dumps(statistics))]
    _log(tmp_path, [_field("f", "double", **changes)], entry, protocol={"protocol": protocol})
    for value in values.cast(pa.float64()).to_pylist():
        assert DeltaTable(tmp_path).to_pyarrow_table(filters=[("f", "=", value)]).to_pylist() == [{"f": value}]
        assert DeltaTable(tmp_path).to_pyarrow_table(filters=f"f = {value!r}").num_rows == 1


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_read_by_their_physical_names(tmp_path: Path, mode: str) -> None:
    inner = pa.field("c-3", pa.int64(), metadata={"PARQUET:field_id": "3"})
    fields = [
        pa.field("c-1" if mode == "name" else "other", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("c-2", pa.struct([inner]), metadata={"PARQUET:field_id": "2"}),
    ]
    file = pa.Table.from_arrays([pa.array([1]), pa.array([{"c-3": 5}], fields[1].type)], schema=pa.schema(fields))
    _parquet(tmp_path / "f.parquet", file)

    def mapped(name: str, type_: Any, number: int) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c-{number}"}
        return _field(name, type_, **ids)

    schema = [
        mapped("a", "long", 1),
        mapped("r", {"type": "struct", "fields": [mapped("x", "long", 3)]}, 2),
        mapped("p", "string", 4),
        mapped("gone", "string", 5),
    ]
    statistics = {"numRecords": 1, "minValues": {"c-1": 1}, "maxValues": {"c-1": 1}, "nullCount": {"c-1": 0}}
    _log(
        tmp_path,
        schema,
        [add("f.parquet", partitionValues={"c-4": "v"}, stats=json.dumps(statistics))],
        partitionColumns=["p"],
        configuration={"delta.columnMapping.mode": mode},
        protocol={"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
    )
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table().to_pylist() == [{"a": 1, "r": {"x": 5}, "p": "v", "gone": None}]
    assert table.to_pyarrow_table(filters="p = 'v' and a = 1").num_rows == 1
    assert table.file_uris(file_pruning_predicate="a = 2") == []
    assert table.file_uris(file_pruning_predicate="p = 'w'") == []


STATISTICS = [
    None,
    "",
    "{",
    "[]",
    "null",
    '{"numRecords":"x"}',
    '{"numRecords":1,"minValues":{"id":"a"},"maxValues":{"id":[1]}}',
    '{"numRecords":1,"minValues":[],"maxValues":3,"nullCount":{"id":"y"}}',
    '{"numRecords":1,"minValues":{"id":1e400},"maxValues":{"id":1.5}}',
    '{"numRecords":1,"minValues":{"p":5},"maxValues":{"p":6}}',
    {"numRecords": 1},
]


@pytest.mark.parametrize("statistics", STATISTICS, ids=str)
def test_statistics_that_say_nothing_rule_nothing_out(tmp_path: Path, statistics: Any) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("a", stats=statistics)])
    table = DeltaTable(tmp_path)
    assert len(table.file_uris(file_pruning_predicate="id = 7 and p = 'x'")) == 1
    assert table.get_add_actions(flatten=True).num_rows == 1


def test_bounds_are_no_values(tmp_path: Path) -> None:
    statistics = {
        "numRecords": 2,
        "minValues": {"t": "2024-01-01T00:00:00.123Z", "s": "abc"},
        "maxValues": {"t": "2024-01-01T00:00:00.123Z", "s": "abd"},
        "nullCount": {"t": 0, "s": 0},
    }
    _log(tmp_path, [_field("t", "timestamp"), _field("s", "string")], [add("a", stats=json.dumps(statistics))])
    table = DeltaTable(tmp_path)
    assert len(table.file_uris(file_pruning_predicate="t = timestamp '2024-01-01T00:00:00.123456Z'")) == 1
    assert len(table.file_uris(file_pruning_predicate="t > timestamp '2024-01-01T00:00:00.125Z'")) == 0
    assert len(table.file_uris(file_pruning_predicate="s = 'abcdef'")) == 1
    assert len(table.file_uris(file_pruning_predicate="s = 'b'")) == 0


@pytest.mark.parametrize(
    ("type_", "spelled", "value"),
    [
        ("decimal(9,2)", "-1.50", decimal.Decimal("-1.50")),
        ("decimal(9,2)", "-1.-50", decimal.Decimal("-1.50")),
        ("decimal(9,2)", "-1.-5", decimal.Decimal("-1.05")),
        ("decimal(9,3)", "0.0-1", decimal.Decimal("-0.001")),
        ("decimal(9,0)", "1E+2", decimal.Decimal("100")),
        ("double", "-Infinity", -math.inf),
        ("double", "inf", math.inf),
        ("boolean", "TRUE", True),
        ("timestamp", "2024-01-01T01:00:00.5+01:00", datetime.datetime(2024, 1, 1, 0, 0, 0, 500000, UTC)),
        ("timestamp_ntz", "2024-01-01 01:00:00", datetime.datetime(2024, 1, 1, 1)),
        ("string", "", None),
        ("long", "", None),
        ("binary", "\\u0001\\u00FF", b"\x01\xff"),
    ],
)
def test_partition_values_are_read_as_every_writer_spells_them(
    tmp_path: Path, type_: str, spelled: str, value: Any
) -> None:
    _parquet(tmp_path / "f.parquet", pa.table({"x": [1]}))
    _log(
        tmp_path,
        [_field("x", "long"), _field("p", type_)],
        [add("f.parquet", partitionValues={"p": spelled})],
        partitionColumns=["p"],
        protocol={"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"]}},
    )
    assert DeltaTable(tmp_path).to_pyarrow_table()["p"].to_pylist() == [value]


def test_a_partition_value_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    _log(
        tmp_path,
        [_field("x", "long"), _field("p", "date")],
        [add("f.parquet", partitionValues={"p": "soon"})],
        partitionColumns=["p"],
    )
    with pytest.raises(exceptions.CorruptFileError, match="column p: expected .*'soon', for file f.parquet"):
        DeltaTable(tmp_path).to_pyarrow_table()


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "s": st.text(max_size=5),
    "f": st.floats(),
    "d": st.dates(datetime.date(1, 1, 2)),
    "n": st.decimals(-10000, 10000, places=2),
}
_TYPES = {"i": pa.int32(), "s": pa.string(), "f": pa.float64(), "d": pa.date32(), "n": pa.decimal128(9, 2)}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_peer_writes_is_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("t")
    size = data.draw(st.integers(1, 8))
    # The peer spells negative decimals so that it cannot read them again, and an empty text as null.
    partition = data.draw(st.sampled_from([[], ["i"], ["d"]]))
    columns = {
        name: pa.array(data.draw(st.lists(st.none() | values, min_size=size, max_size=size)), _TYPES[name])
        for name, values in _VALUES.items()
    }
    table = pa.table(columns)
    for part in range(data.draw(st.integers(1, 3))):
        mode = "append" if part else "error"
        deltalake.write_deltalake(path, table, partition_by=partition, mode=mode)
        if data.draw(st.booleans()):
            deltalake.DeltaTable(path).create_checkpoint()
    ours, theirs = DeltaTable(path), deltalake.DeltaTable(path)
    assert rows(ours.to_pyarrow_table()) == rows(theirs.to_pyarrow_table())
    name = data.draw(st.sampled_from(["i", "s", "n", "d"]))
    value = data.draw(st.sampled_from(table[name].to_pylist()))
    if value is not None:
        operator = data.draw(st.sampled_from(["=", "<", ">="]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            where = [(name, operator, value)]
            if value != "":
                expected = rows(theirs.to_pyarrow_table(filters=where))
                assert rows(ours.to_pyarrow_table(filters=where)) == expected


def test_files_that_are_gone_or_broken_are_named_with_their_version(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    deltalake.write_deltalake(uri, pa.table({"x": [1, 2, 3]}))
    (file,) = DeltaTable(uri).file_uris()
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[: len(data) // 2])
    for read in (lambda: DeltaTable(uri).to_pyarrow_table(), lambda: DeltaTable(uri).to_pyarrow_table(filters="x > 1")):
        with pytest.raises(exceptions.CorruptFileError, match="version 0.*Parquet") as found:
            read()
        assert Path(file).name in str(found.value)
    Path(file).unlink()
    with pytest.raises(exceptions.NotFoundError, match="version 0 has a file, which is not there") as missing:
        DeltaTable(uri).to_pyarrow_table()
    assert Path(file).name in str(missing.value)


def test_of_several_files_the_broken_one_is_named(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for start in range(0, 3000, 1000):
        deltalake.write_deltalake(uri, pa.table({"x": range(start, start + 1000), "y": [1] * 1000}), mode="append")
    file = Path(DeltaTable(uri).file_uris()[1])
    pages = pq.ParquetFile(file).metadata.row_group(0).column(0)
    start = pages.dictionary_page_offset or pages.data_page_offset
    data = bytearray(file.read_bytes())
    data[start : start + 30] = b"\xff" * 30
    file.write_bytes(data)
    table = DeltaTable(uri)
    for read in (
        table.to_pyarrow_table,
        lambda: table.to_pyarrow_table(columns=["x"], filters="x >= 0"),
        lambda: pa.table(table.scan()),
    ):
        with pytest.raises((exceptions.CorruptFileError, pa.ArrowInvalid), match=file.name):
            read()
    assert table.to_pyarrow_table(columns=["y"]).num_rows == 3000


def test_an_empty_text_is_null_in_partitions_alone(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"part": ["a", "a", None], "text": ["", "b", None]})
    deltalake.write_deltalake(uri, rows, partition_by=["part"])
    table = DeltaTable(uri)
    assert table.to_pyarrow_table(filters=[("text", "=", "")])["text"].to_pylist() == [""]
    assert table.to_pyarrow_table(filters=[("text", "in", ["", "b"])]).num_rows == 2
    assert table.to_pyarrow_table(filters=[("text", ">", "")])["text"].to_pylist() == ["b"]
    assert table.to_pyarrow_table(filters=[("part", "=", "")])["part"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("scale", "values"),
    [
        (2, ["-0.01", "-0.10", "-0.50", "-1.05", "-1.50", "-1.00", "-12.34", "-999.99", "0.00", "0.05"]),
        (3, ["-0.001", "-0.010", "-0.100", "-1.001", "-1.050", "-5.000", "7.001"]),
        (0, ["-1", "-12"]),
        (10, ["-0.0000000001", "-1.5", "-0.1", "-0.0000012345"]),
    ],
)
def test_negative_decimals_are_read_as_deltalake_writes_them(tmp_path: Path, scale: int, values: list[str]) -> None:
    for number, text in enumerate(values):
        value = decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))
        rows = pa.table({"p": pa.array([value], pa.decimal128(20, scale)), "x": [1]})
        # It cannot open what it has committed.
        with contextlib.suppress(deltalake.exceptions.DeltaError):
            deltalake.write_deltalake(tmp_path / str(number), rows, partition_by=["p"])
        assert DeltaTable(tmp_path / str(number)).to_pyarrow_table()["p"].to_pylist() == [value]
