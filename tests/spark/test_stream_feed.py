"""The change feed as a stream: what happened to each row, by row ids in Lance tables, by its feed in Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest

import esker
import esker.delta
from esker.exceptions import NotFoundError, SchemaMismatchError, UnsupportedError
from tests.spark.jobs import read
from tests.spark.streams import Query, ids

FORMATS = ["lance", "delta"]


@pytest.fixture(params=FORMATS)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Five rows, of which some are deleted, updated and upserted, by the peers."""
    uri = str(tmp_path / "t")
    upserted = pa.table({"id": pa.array([0, 9], pa.int64()), "s": ["up", "in"]})
    if request.param == "lance":
        lance.write_dataset(ids(0, 5), uri, enable_stable_row_ids=True)
        lance.dataset(uri).delete("id = 1")
        lance.dataset(uri).update({"s": "'new'"}, where="id = 2")
        merge = lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(upserted)
        lance.dataset(uri).optimize.compact_files()
    else:
        deltalake.write_deltalake(uri, ids(0, 5), configuration={"delta.enableChangeDataFeed": "true"})
        deltalake.DeltaTable(uri).delete("id = 1")
        deltalake.DeltaTable(uri).update(updates={"s": "'new'"}, predicate="id = 2")
        table = deltalake.DeltaTable(uri)
        merge = table.merge(upserted, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        deltalake.DeltaTable(uri).optimize.compact()
    return uri


def _told(rows: list[dict[str, Any]], first: int) -> list[tuple[object, ...]]:
    return sorted((row["_commit_version"] - first, row["_change_type"], row["id"], row["s"]) for row in rows)


EXPECTED = [
    *((0, "insert", number, f"x{number}") for number in range(5)),
    (1, "delete", 1, "x1"),
    (2, "update_postimage", 2, "new"),
    (2, "update_preimage", 2, "x2"),
    (3, "insert", 9, "in"),
    (3, "update_postimage", 0, "up"),
    (3, "update_preimage", 0, "x0"),
]


def test_what_happened_to_each_row(uri: str) -> None:
    first = 1 if Path(uri, "_versions").exists() else 0
    rows = Query(uri, readChangeFeed="true", startingVersion=first).rows()
    assert _told(rows, first) == EXPECTED
    assert all(row["_commit_timestamp"].year >= 2024 for row in rows)
    one_by_one = Query(uri, changeFeed="true", startingVersion=first, maxVersionsPerTrigger=1)
    found = list(one_by_one.batches())
    assert [_told(rows, first) for rows in found if rows] == [
        [row for row in EXPECTED if row[0] == version] for version in range(4)
    ]
    few = Query(uri, readChangeFeed="true", startingVersion=first, maxRowsPerTrigger=1)
    assert _told(few.rows(), first) == EXPECTED


@pytest.mark.parametrize("limit", ["maxRowsPerTrigger", "maxBytesPerTrigger"])
@pytest.mark.parametrize(("kind", "vectors"), [("lance", False), ("delta", False), ("delta", True)])
def test_limits_count_rows_that_are_deleted_and_updated(tmp_path: Path, kind: str, vectors: bool, limit: str) -> None:
    uri, versions = str(tmp_path / "t"), 6
    table: Any
    if kind == "lance":
        table = esker.write_dataset(ids(0, 40), uri, enable_stable_row_ids=True)
    else:
        vector = {"delta.enableDeletionVectors": str(vectors).lower()}
        esker.delta.write_deltalake(uri, ids(0, 40), configuration={"delta.enableChangeDataFeed": "true", **vector})
        table = esker.delta.DeltaTable(uri)
    for number in range(versions // 2):
        table.delete(f"id = {number}")
    for number in range(10, 10 + versions // 2):
        condition = {"where" if kind == "lance" else "predicate": f"id = {number}"}
        table.update({"s": "'new'"}, **condition)
    query = Query(uri, readChangeFeed="true", startingVersion=2 if kind == "lance" else 1, **{limit: 1})
    assert [len({row["_commit_version"] for row in rows}) for rows in query.batches()] == [1] * versions


def test_a_feed_without_a_starting_point_begins_with_all_rows(uri: str) -> None:
    query = Query(uri, readChangeFeed="true")
    rows = query.rows()
    assert {(row["_change_type"], row["id"]) for row in rows} == {("insert", n) for n in (0, 2, 3, 4, 9)}
    assert len({row["_commit_version"] for row in rows}) == 1
    if Path(uri, "_versions").exists():
        esker.dataset(uri).delete("id = 9")
    else:
        deltalake.DeltaTable(uri).delete("id = 9")
    assert [(row["_change_type"], row["id"]) for row in query.rows()] == [("delete", 9)]


def test_filters_and_columns_of_a_feed(uri: str) -> None:
    options = {"filter": "s = 'x2' or id = 9", "columns": "_change_type,id", "startingVersion": 2}
    rows = Query(uri, readChangeFeed="true", **options).rows()
    assert sorted((row["_change_type"], row["id"]) for row in rows) == [("insert", 9), ("update_preimage", 2)]
    assert list(rows[0]) == ["_change_type", "id"]
    options |= {"filter": "S = 'x2' or ID = 9", "columns": "_Change_Type,ID"}
    assert Query(uri, readChangeFeed="true", **options).rows() == rows


def test_a_filter_of_a_feed_may_end_in_a_comment(uri: str) -> None:
    first = 1 if Path(uri, "_versions").exists() else 0
    query = Query(uri, readChangeFeed="true", startingVersion=first, filter="id = 2 -- the one that is updated")
    assert _told(query.rows(), first) == [row for row in EXPECTED if row[2] == 2]


def test_an_overwrite_deletes_and_inserts(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ids(0, 2), uri)
    esker.write_dataset(ids(5, 6), uri, mode="overwrite")
    rows = Query(uri, readChangeFeed="true", startingVersion=2).rows()
    assert _told(rows, 1) == [(1, "delete", 0, "x0"), (1, "delete", 1, "x1"), (1, "insert", 5, "x5")]


def test_a_lance_table_without_stable_row_ids_says_what_it_lacks(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ids(0, 2), uri)
    query = Query(uri, readChangeFeed="true", startingVersion=1)
    assert len(query.rows()) == 2
    esker.dataset(uri).delete("id = 1")
    with pytest.raises(UnsupportedError, match="enable_stable_row_ids"):
        query.batch()
    restored = esker.write_dataset(ids(0, 2), str(tmp_path / "u"), enable_stable_row_ids=True)
    esker.write_dataset(ids(2, 3), restored.uri, mode="append")
    esker.dataset(restored.uri, version=1).restore()
    query = Query(restored.uri, readChangeFeed="true", startingVersion=3)
    with pytest.raises(UnsupportedError, match="startingVersion=4"):
        query.batch()


def test_many_deleted_rows_are_read_by_several_tasks(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ids(0, 100), uri, enable_stable_row_ids=True)
    query = Query(uri, readChangeFeed="true", startingVersion="latest", rowsPerPartition=10)
    assert query.rows() == []
    start = query.offset
    esker.dataset(uri).delete("id % 3 != 0")
    assert sorted(row["id"] for row in query.rows()) == [n for n in range(100) if n % 3]
    assert len(query.reader.partitions(start, query.offset)) == 7


def test_a_feed_needs_the_version_before(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ids(0, 3), uri, enable_stable_row_ids=True)
    esker.write_dataset(ids(3, 4), uri, mode="append")
    esker.dataset(uri).delete("id = 0")
    query = Query(uri, readChangeFeed="true", startingVersion=3)
    query.start()
    for path in Path(uri, "_versions").glob("*.manifest"):
        if path.stem in (str(2**64 - 1 - 1), str(2**64 - 1 - 2)):
            path.unlink()
    with pytest.raises(NotFoundError, match="startingVersion=latest"):
        query.rows()


def test_a_column_of_the_table_must_not_have_the_name_of_one_of_the_feed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"_change_type": [1]}), uri)
    assert Query(uri).rows() == [{"_change_type": 1}]
    with pytest.raises(SchemaMismatchError, match="_change_type"):
        Query(uri, readChangeFeed="true").rows()
    deltalake.write_deltalake(f"{uri}d", pa.table({"_change_type": [1]}))
    with pytest.raises(SchemaMismatchError, match="_change_type"):
        Query(f"{uri}d", readChangeFeed="true").rows()
    with pytest.raises(SchemaMismatchError, match="_change_type"):
        read(f"{uri}d", readChangeFeed="true", startingVersion=0)


def test_json_is_text_in_streams_and_feeds_as_in_reads(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    texts = pa.array(['{"a":1}', None], pa.json_())
    esker.write_dataset(
        pa.table({"id": [1, 2], "j": texts}), uri, data_storage_version="2.2", enable_stable_row_ids=True
    )
    assert [row["j"] for row in Query(uri).rows()] == ['{"a":1}', None]
    assert [row["id"] for row in Query(uri, filter="json_get_int(j, 'a') = 1").rows()] == [1]
    esker.dataset(uri).update({"id": "5"}, where="id = 1")
    esker.dataset(uri).delete("id = 5")
    rows = Query(uri, readChangeFeed="true", startingVersion=1).rows()
    assert {row["j"] for row in rows if row["id"] in (1, 5)} == {'{"a":1}'}
    assert [row["_change_type"] for row in rows].count("delete") == 1
