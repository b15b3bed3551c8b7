"""Writing Delta tables: modes, partitions, statistics, schemas; deltalake reads what is written."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    convert_to_deltalake,
    write_deltalake,
)
from esker.delta.write.file_statistics import cut_maximum, cut_minimum


def actions(table: Path, version: int) -> list[dict[str, Any]]:
    text = (table / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def named(table: Path, version: int, name: str) -> list[dict[str, Any]]:
    return [action[name] for action in actions(table, version) if name in action]


def rows_of(table: Path) -> list[dict[str, Any]]:
    """The rows as both read them: they must be the same."""
    ours, theirs = DeltaTable(table).to_pyarrow_table(), deltalake.DeltaTable(table).to_pyarrow_table()
    key = ours.schema.names[0]
    found = ours.sort_by(key).to_pylist()
    assert found == theirs.sort_by(key).to_pylist()
    return found


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


TYPES = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "i8": pa.array([-1, None, 3], pa.int8()),
        "i16": pa.array([1, None, -3], pa.int16()),
        "i32": pa.array([1, None, 3], pa.int32()),
        "f32": pa.array([1.5, None, -2.5], pa.float32()),
        "f64": pa.array([1.5, None, -2.5], pa.float64()),
        "b": pa.array([True, None, False]),
        "s": pa.array(["a", None, "x" * 50]),
        "bin": pa.array([b"\x00\xff", None, b""]),
        "d": pa.array([date(2024, 1, 2), None, date(1960, 1, 1)]),
        "ts": pa.array([datetime(2024, 1, 2, 3, 4, 5, 678901, UTC), None, datetime(1960, 1, 1, tzinfo=UTC)]),
        "dec": pa.array([Decimal("-1.50"), None, Decimal("99.99")], pa.decimal128(10, 2)),
        "st": pa.array([{"x": 1, "in": {"y": "q"}}, None, {"x": None, "in": None}]),
        "l": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


def test_every_type_comes_back_from_both_readers(tmp_path: Path) -> None:
    write_deltalake(tmp_path, TYPES)
    found = rows_of(tmp_path)
    assert found == TYPES.to_pylist()
    stats = json.loads(named(tmp_path, 0, "add")[0]["stats"])
    assert stats["numRecords"] == 3
    assert stats["minValues"]["ts"] == "1960-01-01T00:00:00.000Z"
    assert stats["maxValues"]["ts"] == "2024-01-02T03:04:05.679Z"
    assert stats["minValues"]["dec"] == -1.5
    assert stats["minValues"]["st"] == {"x": 1, "in": {"y": "q"}}
    assert stats["nullCount"]["st"] == {"x": 2, "in": {"y": 2}}
    assert not {"b", "bin", "l", "m"} & stats["minValues"].keys()
    assert stats["nullCount"]["bin"] == stats["nullCount"]["l"] == 1
    assert stats["maxValues"]["s"] == "x" * 31 + "y"


def test_modes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1))
    with pytest.raises(exceptions.AlreadyExistsError):
        write_deltalake(tmp_path, ids(2))
    write_deltalake(tmp_path, ids(3), mode="ignore")
    assert rows_of(tmp_path) == [{"id": 1}]
    write_deltalake(tmp_path, ids(4), mode="append")
    assert rows_of(tmp_path) == [{"id": 1}, {"id": 4}]
    write_deltalake(tmp_path, ids(5), mode="overwrite")
    assert rows_of(tmp_path) == [{"id": 5}]
    assert len(named(tmp_path, 2, "remove")) == 2
    assert DeltaTable(tmp_path, 1).to_pyarrow_table().num_rows == 2
    with pytest.raises(exceptions.InvalidArgumentError, match="mode"):
        write_deltalake(tmp_path, ids(5), mode="merge")  # type: ignore[arg-type]


def test_an_open_table_goes_to_the_new_version(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]))
    write_deltalake(table, ids(1), mode="append")
    assert (table.version(), table.to_pyarrow_table()["id"].to_pylist()) == (1, [1])


def test_what_the_commit_says_of_itself(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1))
    properties = CommitProperties({"userMetadata": "nightly"}, app_transactions=[Transaction("job", 7, 5)])
    write_deltalake(tmp_path, ids(2), mode="append", commit_properties=properties)
    write_deltalake(tmp_path, ids(3), mode="overwrite")
    first, append, overwrite = (named(tmp_path, version, "commitInfo")[0] for version in range(3))
    assert (append["operation"], append["operationParameters"]) == ("WRITE", {"mode": "Append", "partitionBy": "[]"})
    assert (append["readVersion"], append["isolationLevel"], append["isBlindAppend"]) == (0, "Serializable", True)
    assert append["operationMetrics"]["numOutputRows"] == "1"
    assert append["userMetadata"] == "nightly"
    assert "readVersion" not in first
    assert first["txnId"] != append["txnId"]
    assert overwrite["isBlindAppend"] is False
    assert named(tmp_path, 1, "txn") == [{"appId": "job", "version": 7, "lastUpdated": 5}]
    assert deltalake.DeltaTable(tmp_path).transaction_version("job") == 7


def test_a_write_with_its_number_happens_once(tmp_path: Path) -> None:
    for _ in range(2):
        write_deltalake(tmp_path, ids(1), mode="append", txn_app_id="job", txn_version=1)
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, ids(2), mode="append", txn_app_id="job", txn_version=2)
    # A handle from before knows nothing of it: the commit finds out.
    write_deltalake(stale, ids(2), mode="append", txn_app_id="job", txn_version=2)
    write_deltalake(tmp_path, ids(1), mode="append", txn_app_id="job", txn_version=1)
    assert rows_of(tmp_path) == [{"id": 1}, {"id": 2}]
    assert DeltaTable(tmp_path).version() == 1
    with pytest.raises(exceptions.InvalidArgumentError, match="together"):
        write_deltalake(tmp_path, ids(2), mode="append", txn_app_id="job")


PARTITIONS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (
        pa.string(),
        ["a b/c", "é:%", "", None, "=", "x" * 300, ".", "\x01", "a\\b", "__HIVE_DEFAULT_PARTITION__"],
    ),
    "long": (pa.int64(), [-(2**63), 0, None]),
    "double": (pa.float64(), [-1.5, math.inf, -math.inf, 1e300, 1e-7, None]),
    "float": (pa.float32(), [0.1, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("-0.05"), Decimal("0.00"), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), None]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2024, 1, 2, 3, 4, 5, 6, UTC), None]),
    "boolean": (pa.bool_(), [True, False, None]),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_partition_values_come_back(tmp_path: Path, name: str) -> None:
    kind, values = PARTITIONS[name]
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": pa.array(values, kind)})
    write_deltalake(tmp_path, data, partition_by="p")
    want = [None if value == "" else value for value in data["p"].to_pylist()]
    # deltalake 1.6.6 fails on any negative decimal that has a fraction.
    found = (
        DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist() if name == "decimal" else rows_of(tmp_path)
    )
    assert [row["p"] for row in found] == want
    for value in want:
        if value is not None:
            alone = DeltaTable(tmp_path).to_pyarrow_table(filters=[("p", "=", value)])
            assert alone["p"].to_pylist() == [value]
    # What is there, under the name that the log has of it; no hidden folder.
    for add in named(tmp_path, 0, "add"):
        assert not add["path"].startswith(("_", "."))
    assert sum(1 for _ in tmp_path.rglob("*.parquet")) == len({repr(value) for value in want})


def test_nan_is_one_partition(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "p": [math.nan, math.nan]}), partition_by=["p"])
    assert [add["partitionValues"] for add in named(tmp_path, 0, "add")] == [{"p": "NaN"}]


def test_partitions_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(exceptions.UnsupportedError, match="binary"):
        write_deltalake(tmp_path, pa.table({"id": [1], "p": [b"x"]}), partition_by=["p"])
    with pytest.raises(exceptions.InvalidArgumentError, match="beside"):
        write_deltalake(tmp_path, pa.table({"p": ["x"]}), partition_by=["p"])
    with pytest.raises(exceptions.InvalidArgumentError, match="'q'"):
        write_deltalake(tmp_path, pa.table({"p": ["x"]}), partition_by=["q"])
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["x"]}), partition_by=["p"])
    with pytest.raises(exceptions.InvalidArgumentError, match="partition columns"):
        write_deltalake(tmp_path, pa.table({"id": [1], "p": ["x"]}), partition_by=["id"], mode="append")


def test_a_column_with_an_underscore_makes_no_hidden_folder(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "_p": ["x"]}), partition_by=["_p"])
    assert rows_of(tmp_path) == [{"id": 1, "_p": "x"}]
    assert "/" not in named(tmp_path, 0, "add")[0]["path"]


def test_files_are_bounded_and_their_names_differ(tmp_path: Path) -> None:
    data = pa.table({"id": range(200_000), "s": [str(i * 7919) for i in range(200_000)]})
    write_deltalake(
        tmp_path, data, target_file_size=300_000, writer_properties=WriterProperties(max_row_group_size=20_000)
    )
    sizes = [add["size"] for add in named(tmp_path, 0, "add")]
    assert len(sizes) > 3
    assert max(sizes) < 700_000
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 200_000
    assert sum(json.loads(add["stats"])["numRecords"] for add in named(tmp_path, 0, "add")) == 200_000


def test_writer_properties_reach_parquet(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1), writer_properties=WriterProperties(compression="ZSTD", compression_level=2))
    (file,) = tmp_path.glob("*.parquet")
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


@given(st.text(max_size=80))
def test_cut_bounds_hold(text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    assert len(cut_minimum(text)) <= 32
    assert cut_minimum(text).encode("utf-8", "surrogatepass") <= encoded
    high = cut_maximum(text)
    assert high is None or (len(high) <= 32 and high.encode("utf-8", "surrogatepass") >= encoded)
    assert high is not None or text.startswith("\U0010ffff" * 32)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=6))
def test_bounds_of_floats_hide_no_row(tmp_path_factory: pytest.TempPathFactory, values: list[float | None]) -> None:
    table = tmp_path_factory.mktemp("floats")
    write_deltalake(table, pa.table({"id": range(len(values)), "x": pa.array(values, pa.float64())}))
    stats = json.loads(named(table, 0, "add")[0]["stats"])
    if any(value is not None and math.isnan(value) for value in values):
        assert "x" not in stats["minValues"]
        assert "x" not in stats["maxValues"]
    for value in values:
        if value is not None and not math.isnan(value):
            assert DeltaTable(table).to_pyarrow_table(filters=[("x", "=", value)]).num_rows >= 1


def test_which_columns_have_statistics(tmp_path: Path) -> None:
    wide = pa.table({f"c{i}": [i] for i in range(40)})
    write_deltalake(tmp_path / "a", wide)
    write_deltalake(tmp_path / "b", wide, configuration={"delta.dataSkippingNumIndexedCols": "2"})
    write_deltalake(tmp_path / "c", wide, configuration={"delta.dataSkippingStatsColumns": "c39,`c1`"})
    write_deltalake(tmp_path / "d", wide, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    kept = [json.loads(named(tmp_path / name, 0, "add")[0]["stats"]) for name in "abcd"]
    assert [list(stats.get("minValues", {})) for stats in kept] == [
        [f"c{i}" for i in range(32)],
        ["c0", "c1"],
        ["c1", "c39"],
        [],
    ]


def test_schemas_must_fit_unless_they_are_merged(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "s": ["a"]}))
    for wrong in (
        pa.table({"id": [2]}),
        pa.table({"id": [2], "s": ["b"], "t": [1]}),
        pa.table({"id": ["x"], "s": ["b"]}),
    ):
        with pytest.raises(exceptions.SchemaMismatchError):
            write_deltalake(tmp_path, wrong, mode="append")
    assert sum(1 for _ in tmp_path.glob("*.parquet")) == 1, "nothing is left of what was refused"
    write_deltalake(tmp_path, pa.table({"id": [2], "t": [1.5]}), mode="append", schema_mode="merge")
    assert rows_of(tmp_path) == [{"id": 1, "s": "a", "t": None}, {"id": 2, "s": None, "t": 1.5}]
    write_deltalake(tmp_path, pa.table({"x": [b"y"]}), mode="overwrite", schema_mode="overwrite")
    assert rows_of(tmp_path) == [{"x": b"y"}]
    with pytest.raises(exceptions.InvalidArgumentError, match="schema_mode"):
        write_deltalake(tmp_path, pa.table({"x": [b"y"]}), mode="append", schema_mode="overwrite")


def test_times_without_a_zone_raise_the_protocol(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1))
    data = pa.table({"id": [2], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
    write_deltalake(tmp_path, data, mode="append", schema_mode="merge")
    protocol = named(tmp_path, 1, "protocol")[0]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["timestampNtz"]
    assert {"timestampNtz", "appendOnly", "invariants"} <= set(protocol["writerFeatures"])
    assert rows_of(tmp_path)[1]["t"] == datetime(2024, 1, 1)


def test_replace_where(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3, 4], "p": ["a", "a", "b", None]})
    write_deltalake(tmp_path, data, partition_by=["p"])
    write_deltalake(tmp_path, pa.table({"id": [9], "p": ["a"]}), mode="overwrite", predicate="p = 'a'")
    assert [row["id"] for row in rows_of(tmp_path)] == [3, 4, 9]
    assert len(named(tmp_path, 1, "add")) == len(named(tmp_path, 1, "remove")) == 1
    # Rows of a file that do not match stay, those for which the predicate is null among them.
    write_deltalake(tmp_path, pa.table({"id": [7], "p": ["z"]}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [8], "p": ["z"]}), mode="overwrite", predicate="id > 3 AND id < 9")
    assert [row["id"] for row in rows_of(tmp_path)] == [3, 8, 9]
    with pytest.raises(exceptions.InvalidArgumentError, match="predicate"):
        write_deltalake(tmp_path, pa.table({"id": [3], "p": ["z"]}), mode="overwrite", predicate="id > 3")
    with pytest.raises(exceptions.InvalidArgumentError, match="overwrite"):
        write_deltalake(tmp_path, pa.table({"id": [3], "p": ["z"]}), mode="append", predicate="id > 3")


def test_replace_where_keeps_the_other_rows_of_a_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, None], "s": ["a", "b", "c"]}))
    write_deltalake(tmp_path, pa.table({"id": [5], "s": ["n"]}), mode="overwrite", predicate="id >= 2")
    assert sorted(row["s"] for row in rows_of(tmp_path)) == ["a", "c", "n"]
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path / "feed", pa.table({"id": [1, 2], "s": ["a", "b"]}), configuration=feed)
    write_deltalake(tmp_path / "feed", pa.table({"id": [3], "s": ["n"]}), mode="overwrite")
    changes = deltalake.DeltaTable(tmp_path / "feed").load_cdf(1, 1)
    assert pa.table(changes).num_rows == 3


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_have_physical_names(tmp_path: Path, mode: str) -> None:
    data = pa.table({"id": [1, 2], "p": ["a", "b"], "s": [{"x": 1, "l": [{"y": 2}]}, None]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration={"delta.columnMapping.mode": mode})
    write_deltalake(tmp_path, data.append_column("n", [[3, 4]]), mode="append", schema_mode="merge")
    assert deltalake.DeltaTable(tmp_path).protocol().min_writer_version == 5
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert found.drop_columns("n").to_pylist() == [row for row in data.to_pylist() for _ in range(2)]
    (file, *_) = tmp_path.rglob("*.parquet")
    assert all(name.startswith("col-") for name in pq.read_schema(file).names)
    assert b"PARQUET:field_id" in pq.read_schema(file).field(0).metadata
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    theirs = pa.table(query.execute("select id, p, s['x'] as x from t order by id"))
    assert theirs.column("p").to_pylist() == ["a", "a", "b", "b"]
    assert theirs.column("x").to_pylist() == [1, 1, None, None]
    assert found.num_rows == DeltaTable(tmp_path).to_pyarrow_table(filters="id > 0").num_rows


def test_in_commit_timestamps_only_go_up(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1), configuration={"delta.enableInCommitTimestamps": "true"})
    entry = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = actions(tmp_path, 0)
    lines[0]["commitInfo"]["inCommitTimestamp"] = future = 4_000_000_000_000
    entry.write_text("\n".join(json.dumps(line) for line in lines))
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, ids(2), mode="append")
    write_deltalake(table, ids(3), mode="append")
    times = [actions(tmp_path, version)[0]["commitInfo"]["inCommitTimestamp"] for version in range(3)]
    assert times == [future, future + 1, future + 2]


def test_a_vector_is_named_when_its_file_goes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ids(1, 2, 3), configuration={"delta.enableDeletionVectors": "true"})
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    entry = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = actions(tmp_path, 0)
    lines[-1]["add"]["deletionVector"] = vector
    entry.write_text("\n".join(json.dumps(line) for line in lines))
    write_deltalake(tmp_path, ids(9), mode="overwrite")
    assert named(tmp_path, 1, "remove")[0]["deletionVector"] == vector
    assert json.loads(named(tmp_path, 1, "add")[0]["stats"])["tightBounds"] is True


@pytest.mark.parametrize("mode", ["error", "append", "ignore", "overwrite"])
def test_create(tmp_path: Path, mode: Any) -> None:
    schema = Schema([Field("id", "long", False), Field("p", "date", metadata={"comment": "the day"})])
    made = DeltaTable.create(
        tmp_path, schema, mode, partition_by="p", name="n", description="d", configuration={"a": "b"}
    )
    theirs = deltalake.DeltaTable(tmp_path)
    assert theirs.metadata().name == "n"
    assert theirs.metadata().partition_columns == ["p"]
    assert json.loads(theirs.schema().to_json()) == schema.json()
    assert (made.version(), made.metadata().configuration) == (0, {"a": "b"})
    if mode in ("error", "append"):
        with pytest.raises(exceptions.AlreadyExistsError):
            DeltaTable.create(tmp_path, schema, mode)
    else:
        again = DeltaTable.create(tmp_path, pa.schema([("x", pa.int64())]), mode)
        assert again.version() == (1 if mode == "overwrite" else 0)
        assert again.metadata().id == made.metadata().id
    with pytest.raises(exceptions.InvalidArgumentError, match=r"delta\.appendOnyl"):
        DeltaTable.create(tmp_path / "x", schema, configuration={"delta.appendOnyl": "true"})


def test_sources_of_every_kind(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    sources = [
        batch,
        [batch, batch],
        pa.RecordBatchReader.from_batches(batch.schema, [batch]),
        pl.DataFrame({"id": [1]}),
    ]
    for source in [*sources, pd.DataFrame({"id": [1]})]:
        write_deltalake(tmp_path, source, mode="append")
    assert DeltaTable(tmp_path).count() == 6
    with pytest.raises(TypeError, match="PyCapsule"):
        write_deltalake(tmp_path, 3, mode="append")


def test_post_commit_hooks_can_be_turned_off(tmp_path: Path) -> None:
    off = PostCommitHookProperties(create_checkpoint=False)
    for number in range(12):
        write_deltalake(tmp_path, ids(number), mode="append", post_commithook_properties=off)
    assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


@pytest.mark.parametrize("strategy", ["hive", "directory"])
def test_convert(tmp_path: Path, strategy: Any) -> None:
    for year in ("2023", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / (f"year={year}" if strategy == "hive" else year)
        folder.mkdir()
        pq.write_table(pa.table({"id": [len(year)], "s": [year]}), folder / "a.parquet")
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "_hidden" / "x.parquet").write_bytes(b"junk")
    convert_to_deltalake(tmp_path, partition_by=Schema([Field("year", "integer")]), partition_strategy=strategy)
    assert [(row["id"], row["year"]) for row in rows_of(tmp_path)] == [(4, 2023), (26, None)]
    assert json.loads(named(tmp_path, 0, "add")[0]["stats"])["numRecords"] == 1
    with pytest.raises(exceptions.AlreadyExistsError):
        convert_to_deltalake(tmp_path)
    convert_to_deltalake(tmp_path, mode="ignore")
    write_deltalake(tmp_path, pa.table({"id": [5], "s": ["n"], "year": pa.array([2024], pa.int32())}), mode="append")
    assert len(rows_of(tmp_path)) == 3
    with pytest.raises(exceptions.NotFoundError):
        convert_to_deltalake(tmp_path / "nothing")


def test_an_empty_text_is_no_value_of_a_required_partition(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, Schema([Field("id", "long"), Field("p", "string", False)]), partition_by="p")
    with pytest.raises(exceptions.InvalidArgumentError, match="empty text"):
        write_deltalake(tmp_path, pa.table({"id": [1], "p": [""]}), mode="append")
    assert DeltaTable(tmp_path).count() == 0


def test_memory_is_bounded_however_many_partitions_are_open(tmp_path: Path) -> None:
    from esker._native.store import Store
    from esker.delta.write.data_files import DataFileWriter

    schema = Schema([Field("id", "long"), Field("p", "long")])
    writer = DataFileWriter(Store(str(tmp_path)), schema, ["p"], {}, memory_limit=100_000)
    before = pa.total_allocated_bytes()
    for start in range(0, 400_000, 20_000):
        ids = range(start, start + 20_000)
        # One large partition, and many small ones.
        parts = pa.array([i % 100 if i % 10 == 0 else -1 for i in ids], pa.int64())
        writer.write(pa.record_batch([pa.array(ids, pa.int64()), parts], names=["id", "p"]))
        assert pa.total_allocated_bytes() - before < 1_500_000
    assert sum(json.loads(add["stats"])["numRecords"] for add in writer.close()) == 400_000
