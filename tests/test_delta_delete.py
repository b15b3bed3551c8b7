"""`DeltaTable.delete` beside deltalake: rows, metrics, log entries, feeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties, write_deltalake
from tests.delta_rows import rows

DATA = pa.table(
    {
        "id": [1, 2, 3, 4, 5, None],
        "v": ["a", "b", None, "d", "10", "f"],
        "p": ["x", "x", "y", "y", None, "z"],
        "x": [1.5, float("nan"), None, -0.0, 2.0, 7.0],
    }
)
PREDICATES = [
    "id = 1",
    "id > 100",
    "id is null",
    "v = 'a' or id < 3",
    "p = 'x'",
    "p is null",
    "p = 'nobody'",
    "p in ('x', 'y')",
    "p = 'x' and id = 1",
    "id between 1 and 2 and v is not null",
    "id > 0",
    "v > 5",
    "\"v\" = 'd'",
    "x > 1",
    "not (id = 1)",
    "true",
    None,
]
LAYOUTS: list[dict[str, Any]] = [{}, {"partition_by": ["p"]}, {"configuration": {"delta.enableChangeDataFeed": "true"}}]


def entry(path: Path, version: int) -> list[tuple[str, dict[str, Any]]]:
    """The actions of a log entry."""
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [next(iter(json.loads(line).items())) for line in lines]


def read_by_theirs(path: Path) -> pa.Table:
    """The rows as deltalake reads them."""
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select * from t")
    table = pa.table(found)
    kinds = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return table.cast(pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in table.schema]))


def without_times(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics apart from what differs from run to run."""
    return {name: value for name, value in metrics.items() if not name.endswith("_ms")}


@pytest.mark.parametrize("layout", LAYOUTS, ids=["plain", "partitioned", "feed"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_delete_does_and_says_what_deltalakes_does(
    tmp_path: Path, predicate: str | None, layout: dict[str, Any]
) -> None:
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, DATA, **layout)
        deltalake.write_deltalake(tmp_path / name, DATA.slice(2, 3), mode="append")
    ours, theirs = DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")
    found, expected = ours.delete(predicate), theirs.delete(predicate)
    has_feed = "configuration" in layout and predicate is not None
    if has_feed and not found["num_copied_rows"]:
        # Files that go as a whole tell the feed by themselves; deltalake writes files of changes.
        expected["num_added_files"] = found["num_added_files"]
    assert without_times(found) == without_times(expected)
    assert list(found) == list(expected)
    assert ours.version() == theirs.version()
    assert rows(ours.to_pyarrow_table()) == rows(theirs.to_pyarrow_table()) == rows(read_by_theirs(tmp_path / "ours"))
    if ours.version() == 2:
        info = entry(tmp_path / "ours", 2)[0][1]
        assert info["operation"] == "DELETE"
        assert info["operationMetrics"] == found
        assert info["operationParameters"] == ({} if predicate is None else {"predicate": predicate})
    if "configuration" in layout and ours.version() == 2:
        columns = [*DATA.column_names, "_change_type", "_commit_version"]
        feeds = [pa.table(table.load_cdf(2, 2)).select(columns) for table in (ours, theirs)]
        feeds[1] = feeds[1].cast(feeds[0].schema)
        assert rows(feeds[0]) == rows(feeds[1])
        assert rows(pa.table(deltalake.DeltaTable(tmp_path / "ours").load_cdf(2, 2)).select(columns)) == rows(feeds[1])


def test_a_delete_that_finds_nothing_writes_nothing(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert DeltaTable(tmp_path).delete("id = 77")["num_deleted_rows"] == 0
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, configuration={"delta.appendOnly": "true"})
    for predicate in (None, "id = 1", "id = 77"):
        with pytest.raises(exceptions.InvalidArgumentError, match=r"delta\.appendOnly"):
            DeltaTable(tmp_path).delete(predicate)


def test_a_predicate_over_partitions_opens_no_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, partition_by="p")
    for path in tmp_path.glob("p=x/*.parquet"):
        path.write_bytes(b"no Parquet")
    table = DeltaTable(tmp_path)
    assert table.delete("p = 'x' or length(p) > 1")["num_deleted_rows"] == 2
    assert sorted(set(table.to_pyarrow_table()["p"].to_pylist()), key=str) == [None, "y", "z"]


def test_statistics_keep_files_from_being_opened(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    first = next(tmp_path.glob("*.parquet"))
    write_deltalake(tmp_path, pa.table({"id": [10, 20]}), mode="append")
    first.write_bytes(b"no Parquet")
    assert DeltaTable(tmp_path).delete("id = 10")["num_deleted_rows"] == 1
    with pytest.raises(exceptions.CorruptFileError):
        DeltaTable(tmp_path).delete("id = 1")


def test_rows_are_not_counted_where_the_log_does_not_tell(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, partition_by="p")
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert "num_deleted_rows" not in DeltaTable(tmp_path).delete("p = 'x'")
    assert DeltaTable(tmp_path).delete("id = 3")["num_deleted_rows"] == 1


def test_what_the_caller_says_of_the_commit_is_in_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    table.delete("id = 1", WriterProperties(compression="ZSTD"), commit_properties=CommitProperties({"user": "ann"}))
    assert table.history(1)[0]["user"] == "ann"
    assert "zstd" in table.file_uris()[0]
    with pytest.warns(DeprecationWarning, match=r"positionally to delete\(\)"):
        table.delete("id = 2", None, PostCommitHookProperties(), CommitProperties({"user": "bob"}))
    assert table.history(1)[0]["user"] == "bob"
    with pytest.raises(TypeError, match="at most 2 positional"):
        table.delete("id = 2", None, None, None, None)  # type: ignore[call-arg,unused-ignore]
    assert table.version() == 2


@pytest.mark.parametrize(
    ("sql", "words"), [("id +", "cannot parse"), ("nobody = 1", "nobody"), ("id + 1", "true or false")]
)
def test_what_is_no_predicate_is_an_error(tmp_path: Path, sql: str, words: str) -> None:
    write_deltalake(tmp_path, DATA)
    with pytest.raises(exceptions.InvalidArgumentError, match=words):
        DeltaTable(tmp_path).delete(sql)
    assert DeltaTable(tmp_path).version() == 0


def test_mapped_columns_and_rows_of_other_kinds_survive(tmp_path: Path) -> None:
    properties: dict[str, str | None] = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    data = pa.table(
        {
            "id": [1, 2, 3],
            "s": pa.array([{"a": 1, "b": [1, None]}, None, {"a": None, "b": None}]),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "p": ["x", "x", None],
        }
    )
    write_deltalake(tmp_path, data, configuration=properties, partition_by="p")
    table = DeltaTable(tmp_path)
    assert table.delete("id = 2 or s.a = 7")["num_copied_rows"] == 1
    assert rows(table.to_pyarrow_table()) == rows(data.take([0, 2]))
    feed = pa.table(table.load_cdf(1, 1))
    assert (feed["id"].to_pylist(), feed["_change_type"].to_pylist()) == ([2], ["delete"])


def test_an_open_table_deletes_from_the_version_that_it_has_and_others_stay(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    deltalake.write_deltalake(
        tmp_path, pa.table({**dict(zip(DATA.column_names, DATA.columns, strict=True))}), mode="append"
    )
    table.delete("id = 1")
    assert table.version() == 2
    # Serializable: rows that were appended meanwhile are seen, too.
    assert table.to_pyarrow_table()["id"].to_pylist().count(1) == 0


def test_metrics_in_the_log_are_texts_for_spark_and_numbers_as_deltalakes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    DeltaTable(tmp_path).delete("id = 1")
    written, deleted = (entry(tmp_path, version)[0][1]["operationMetrics"] for version in (0, 1))
    assert written["numOutputRows"] == "6"
    assert (deleted["num_deleted_rows"], deleted["num_copied_rows"]) == (1, 5)


def test_a_handle_that_is_not_of_the_newest_version_and_finds_nothing_does_what_deltalakes_does(tmp_path: Path) -> None:
    for name, opened in (("ours", DeltaTable), ("theirs", deltalake.DeltaTable)):
        write_deltalake(tmp_path / name, pa.table({"id": [1, 2]}))
        stale = opened(tmp_path / name)
        write_deltalake(tmp_path / name, pa.table({"id": [5]}), mode="append")
        assert stale.delete("id = 5")["num_deleted_rows"] == 0
        assert stale.update({"id": "6"}, predicate="id = 5")["num_updated_rows"] == 0
        assert (stale.version(), DeltaTable(tmp_path / name).version()) == (0, 1)
        assert stale.delete("id = 1")["num_deleted_rows"] == 1
        assert stale.version() == DeltaTable(tmp_path / name).version() == 2
        assert sorted(DeltaTable(tmp_path / name).to_pyarrow_table()["id"].to_pylist()) == [2, 5]
