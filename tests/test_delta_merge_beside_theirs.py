"""`DeltaTable.merge` beside deltalake's on copies of one table: any source, condition and clauses, at random.

`ESKER_MERGES=2000` runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from esker.delta import DeltaTable, WriterProperties, write_deltalake
from tests.delta_rows import rows
from tests.test_delta_delete import read_by_theirs

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32()), ("s", pa.string())])
FEED: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true", **FEED}
SMALL_GROUPS = WriterProperties(max_row_group_size=3)
LAYOUTS: list[dict[str, Any]] = [{"configuration": FEED}, {"configuration": FEED, "partition_by": ["p"]}]
TOLD = (
    "num_source_rows",
    "num_target_rows_inserted",
    "num_target_rows_updated",
    "num_target_rows_deleted",
    "num_target_rows_copied",
    "num_output_rows",
)
ROW = st.tuples(
    st.one_of(st.none(), st.integers(0, 9)),
    st.sampled_from(["a", "b c", None]),
    st.one_of(st.none(), st.integers(-3, 3)),
    st.sampled_from(["x", "é", "", None]),
)
CONDITIONS = [
    "t.id = s.id",
    "s.id = t.id",
    "t.id = s.id and t.p = s.p",
    "t.id = s.id and t.v > s.v",
    "t.p = s.p and s.id > 4",
    "t.id = s.id + 1",
    "t.id = s.id and t.p = 'a'",
    "t.id = s.id and (t.v is null or s.v = 1)",
    "t.id > s.id and t.id < s.id + 2",
    "(t.id = s.id) and ((t.s = s.s))",
    "t.id = s.id or t.v = s.v",
    "false",
]
ON_BOTH = ["s.v > 0", "t.v > 0", "t.v < s.v", "t.s = 'x'", "s.p = t.p", "s.s is null"]
MATCHED = st.one_of(
    st.tuples(st.just("delete"), st.sampled_from([None, *ON_BOTH])),
    st.tuples(
        st.sampled_from(["all", "but", "v", "swap", "p"]),
        st.sampled_from([None, *ON_BOTH]),
    ),
)
INSERTS = st.tuples(st.sampled_from(["all", "but", "some"]), st.sampled_from([None, "s.v > 0", "s.p = 'a'"]))
BY_SOURCE = st.tuples(
    st.sampled_from(["delete", "v", "p"]), st.sampled_from([None, "t.v > 0", "t.p = 'a'", "t.s is not null"])
)
UPDATES = {
    "v": {"v": "t.v + s.v"},
    "swap": {"s": "s.p", "t.v": "cast(s.id as int)", "id": "t.id"},
    "p": {"`p`": "s.p"},
}


def merged(table: Any, source: pa.Table, condition: str, clauses: Any, **more: Any) -> dict[str, Any]:
    """A merge by either library."""
    merger = table.merge(source, condition, "s", "t", **more)
    for kind, predicate in clauses[0]:
        if kind == "delete":
            merger = merger.when_matched_delete(predicate)
        elif kind in ("all", "but"):
            merger = merger.when_matched_update_all(predicate, ["v"] if kind == "but" else None)
        else:
            merger = merger.when_matched_update(UPDATES[kind], predicate)
    for kind, predicate in clauses[1]:
        if kind == "some":
            merger = merger.when_not_matched_insert({"id": "s.id * 10", "t.p": "s.p", "s": "'new'"}, predicate)
        else:
            merger = merger.when_not_matched_insert_all(predicate, ["v"] if kind == "but" else None)
    for kind, predicate in clauses[2]:
        if kind == "delete":
            merger = merger.when_not_matched_by_source_delete(predicate)
        else:
            values = {"v": "t.v + 1"} if kind == "v" else {"p": "'z'", "s": "t.p"}
            merger = merger.when_not_matched_by_source_update(values, predicate)
    found: dict[str, Any] = merger.execute()
    return found


def changes(feed: Any) -> list[str]:
    """The changes of a feed, in a form that can be compared."""
    table = pa.table(feed)
    kept = table.select([*SCHEMA.names, "_change_type"])
    return rows(kept.cast(pa.schema([*SCHEMA, pa.field("_change_type", pa.string())])))


def matches_twice(target: list[list[Any]], source: list[Any], condition: str) -> bool:
    """Whether several rows of the source match one of the target."""
    known = [row for part in target for row in part]
    t, s = (
        pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in it], SCHEMA)
        for it in (known, source)
    )
    t = t.append_column("n", pa.array(range(len(known)), pa.int64()))
    with duckdb.connect() as connection:
        connection.register("t", t)
        connection.register("s", s)
        sql = f"SELECT t.n FROM t JOIN s ON {condition} GROUP BY t.n HAVING count(*) > 1"
        return bool(connection.execute(sql).fetchall())


@settings(max_examples=int(os.environ.get("ESKER_MERGES", "15")), deadline=None)
@given(
    target=st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=3),
    source=st.lists(ROW, max_size=8),
    condition=st.sampled_from(CONDITIONS),
    clauses=st.tuples(
        st.lists(MATCHED, max_size=2), st.lists(INSERTS, max_size=2), st.lists(BY_SOURCE, max_size=2)
    ).filter(any),
    layout=st.sampled_from(LAYOUTS),
    streamed=st.booleans(),
)
def test_a_merge_does_and_says_what_deltalakes_does(
    tmp_path_factory: pytest.TempPathFactory,
    target: list[list[Any]],
    source: list[Any],
    condition: str,
    clauses: Any,
    layout: dict[str, Any],
    streamed: bool,
) -> None:
    # See the test of rows that match twice below.
    assume(clauses[0] or not clauses[2] or not matches_twice(target, source, condition))
    path = tmp_path_factory.mktemp("merge")
    for name in ("ours", "theirs", "vectors", "copies"):
        for part in target:
            data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in part], SCHEMA)
            write = write_deltalake if name == "vectors" else deltalake.write_deltalake
            given = {**layout, "configuration": ON} if name == "vectors" else layout
            if name == "copies":
                # Without a feed files are copied column by column.
                write, given = write_deltalake, {**layout, "configuration": {}, "writer_properties": SMALL_GROUPS}
            write(path / name, data, mode="append", **given)
    data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in source], SCHEMA)
    try:
        theirs = merged(deltalake.DeltaTable(path / "theirs"), data, condition, clauses, streamed_exec=streamed)
    except deltalake.exceptions.DeltaError as error:
        if "duplicate relevant" not in str(error):
            raise
        for name in ("ours", "vectors", "copies"):
            with pytest.raises(ValueError, match="duplicate relevant WHEN MATCHED"):
                merged(DeltaTable(path / name), data, condition, clauses)
            assert DeltaTable(path / name).version() == len(target) - 1
            assert not list(path.glob(f"{name}/_change_data/*.parquet"))
        return
    expected = rows(read_by_theirs(path / "theirs").select(SCHEMA.names))
    first = len(target)
    for name in ("ours", "vectors", "copies"):
        table = DeltaTable(path / name)
        ours = merged(table, data, condition, clauses)
        assert rows(table.to_pyarrow_table()) == expected
        assert rows(read_by_theirs(path / name).select(SCHEMA.names)) == expected
        same = [key for key in TOLD if name != "vectors" or key not in ("num_target_rows_copied", "num_output_rows")]
        assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
        written = deltalake.DeltaTable(path / "theirs").version() >= first
        assert table.version() == (first if written else first - 1)
        if written and name != "copies":
            # Theirs does not find its own files of changes in folders with a space.
            assert changes(table.load_cdf(first)) == changes(DeltaTable(path / "theirs").load_cdf(first))


@pytest.mark.parametrize("name", ["ours", "vectors", "copies"])
def test_a_row_that_matches_twice_and_is_not_changed_stays_once(name: str, tmp_path: Path) -> None:
    data, source = pa.table({"id": [1, 2, 3]}), pa.table({"id": [3, 3, 1]})
    configuration: dict[str, str | None] = {"vectors": ON, "copies": {}, "ours": FEED}[name]
    write_deltalake(tmp_path / name, data, configuration=configuration)
    deltalake.write_deltalake(tmp_path / "theirs", data)
    for table in (DeltaTable(tmp_path / name), deltalake.DeltaTable(tmp_path / "theirs")):
        merger: Any = table.merge(source, "t.id = s.id", "s", "t")
        merger.when_not_matched_by_source_delete().execute()
    assert sorted(DeltaTable(tmp_path / name).to_pyarrow_table()["id"].to_pylist()) == [1, 3]
    # deltalake keeps it once for each source row that matches it.
    assert sorted(pa.table(deltalake.DeltaTable(tmp_path / "theirs").to_pyarrow_table())["id"].to_pylist()) == [1, 3, 3]


def test_the_told_keys_are_deltalakes(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "v": [1, 2]})
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, data)
    told = []
    for table in (DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")):
        merger: Any = table.merge(pa.table({"id": [2, 3], "v": [5, 6]}), "t.id = s.id", "s", "t")
        told.append(merger.when_matched_update_all().when_not_matched_insert_all().execute())
    ours, theirs = told
    assert list(ours) == list(theirs)
    assert {key: type(value) for key, value in ours.items()} == {key: type(value) for key, value in theirs.items()}
    for key in theirs:
        if not key.endswith("_ms"):
            # Theirs writes inserted rows and copied ones to one file or two, as its plan is.
            assert ours[key] == theirs[key] or key == "num_target_files_added"
    entries = [DeltaTable(tmp_path / name).history(1)[0] for name in ("ours", "theirs")]
    assert entries[0]["operation"] == entries[1]["operation"] == "MERGE"
    assert entries[0]["operationParameters"].keys() == entries[1]["operationParameters"].keys()
