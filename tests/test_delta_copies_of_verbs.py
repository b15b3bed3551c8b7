"""Deletes, updates and merges that copy files column by column, beside the ordinary way: rows, statistics, metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import DeltaTable, WriterProperties, write_deltalake
from esker.delta.change import column_copies
from esker.delta.change.column_copies import ColumnCopies
from tests.delta_rows import rows
from tests.test_delta_column_copies import ROWS, copies, data  # noqa: F401
from tests.test_delta_delete import entry, read_by_theirs

pytestmark = pytest.mark.usefixtures("at_any_size")
ORDINARY = WriterProperties(compression="SNAPPY")
"""Given to a verb they keep it from copying columns."""


@pytest.fixture(scope="module")
def at_any_size() -> Iterator[None]:
    """Has small files copied on their own, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_copies, "LEAST_COPIED", 0)
        yield


def both(root: Path, **how: Any) -> tuple[DeltaTable, DeltaTable]:
    """Two equal tables of two files of several row groups."""
    for name in ("ours", "plain"):
        for start in (0, ROWS):
            groups = WriterProperties(max_row_group_size=999)
            write_deltalake(root / name, data(start), mode="append", writer_properties=groups, **how)
    return DeltaTable(root / "ours"), DeltaTable(root / "plain")


def told(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics without times, and without the number of files, which are written together the ordinary way."""
    return {key: value for key, value in metrics.items() if not key.endswith(("_ms", "files_added", "added_files"))}


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Values by the paths of their fields."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{above}{name}.") if isinstance(value, dict) else {above + name: value}
    return found


def united(found: list[Any]) -> Any:
    """The statistics of several files in one."""
    whole: dict[str, Any] = {"numRecords": sum(each["numRecords"] for each in found)}
    for part, join in (("minValues", min), ("maxValues", max), ("nullCount", lambda *counts: sum(counts))):
        whole[part] = {}
        for each in found:
            for name, value in flat(each[part]).items():
                whole[part][name] = join(whole[part][name], value) if name in whole[part] else value
    return whole


def statistics(root: Path, version: int) -> list[Any]:
    """The statistics of the files that a version added."""
    return [json.loads(action["stats"]) for kind, action in entry(root, version) if kind == "add"]


DELETES = ["id % 10 = 3", "small > 5", "id >= 1500 and id < 4500", "text is null", "id = 0", "id > 998 and id <> 5000"]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("predicate", DELETES)
def test_a_delete_copies_what_stays(tmp_path: Path, copies: list[str], predicate: str, mapped: bool) -> None:  # noqa: F811
    on: dict[str, str | None] = {"delta.columnMapping.mode": "name"} if mapped else {}
    ours, plain = both(tmp_path, configuration=on)
    found = ours.delete(predicate)
    assert copies
    assert told(found) == told(plain.delete(predicate, writer_properties=ORDINARY))
    assert rows(ours.to_pyarrow_table()) == rows(plain.to_pyarrow_table())
    assert ours.to_pyarrow_table().schema == plain.to_pyarrow_table().schema
    if not mapped:
        assert rows(read_by_theirs(tmp_path / "ours")) == rows(ours.to_pyarrow_table())
        assert united(statistics(tmp_path / "ours", 2)) == united(statistics(tmp_path / "plain", 2))


def merged(table: DeltaTable, source: pa.Table, clauses: list[tuple[str, dict[str, Any]]], **more: Any) -> Any:
    """A merge with these clauses."""
    merger = table.merge(source, "t.id = s.id", "s", "t", **more)
    for name, arguments in clauses:
        merger = getattr(merger, name)(**arguments)
    return merger.execute()


CLAUSES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "upsert": [("when_matched_update_all", {}), ("when_not_matched_insert_all", {})],
    "update": [("when_matched_update", {"updates": {"x": "s.x + t.x", "text": "s.text"}})],
    "nested": [("when_matched_update", {"updates": {"list": "s.list", "deep": "s.deep"}, "predicate": "t.ok"})],
    "delete": [("when_matched_delete", {"predicate": "s.small > 50"}), ("when_matched_update_all", {})],
    "by source": [
        ("when_matched_update", {"updates": {"small": "7"}}),
        ("when_not_matched_by_source_update", {"updates": {"text": "'gone'"}, "predicate": "t.id % 3 = 0"}),
    ],
    "by source delete": [
        ("when_matched_update", {"updates": {"small": "7"}, "predicate": "t.id % 2 = 0"}),
        ("when_not_matched_by_source_delete", {"predicate": "t.id % 50 <> 0"}),
    ],
    "key": [("when_matched_update", {"updates": {"id": "s.id + 100000"}})],
}


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("clauses", CLAUSES.values(), ids=CLAUSES)
def test_a_merge_copies_what_stays(
    tmp_path: Path,
    copies: list[str],  # noqa: F811
    clauses: list[tuple[str, dict[str, Any]]],
    share: float,
) -> None:
    ours, plain = both(tmp_path)
    ids = np.random.default_rng(3).choice(2 * ROWS + 50, int(share * 2 * ROWS), replace=False)
    source = pa.concat_tables([data(0), data(ROWS)]).slice(0, len(ids))
    source = source.set_column(0, "id", pa.array(ids)).set_column(6, "x", pa.array(ids / 3))
    found = merged(ours, source, clauses)
    assert copies
    wanted = merged(plain, source, clauses, writer_properties=ORDINARY)
    assert told(found) == told(wanted)
    assert rows(ours.to_pyarrow_table()) == rows(plain.to_pyarrow_table())
    assert rows(read_by_theirs(tmp_path / "ours")) == rows(ours.to_pyarrow_table())
    assert ours.count() == ours.to_pyarrow_table().num_rows


def test_a_key_that_stays_is_not_encoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = both(tmp_path)
    made: list[str] = []
    part = ColumnCopies._part

    def noted(self: ColumnCopies, *arguments: Any) -> bytes:
        made.append(arguments[3])
        return part(self, *arguments)

    monkeypatch.setattr(ColumnCopies, "_part", noted)
    source = data(10).slice(0, 5).select(["id", "text", "small"])
    merged(table, source, [("when_matched_update_all", {})])
    assert set(made) == {"text", "small"}
    made.clear()
    merged(table, source, [("when_matched_update", {"updates": {"id": "s.id", "small": "s.small"}})])
    assert set(made) == {"small"}
    made.clear()
    # Equal numbers of two types, and what is computed of a key, are written.
    other = source.set_column(0, "id", source["id"].cast(pa.int32()))
    merged(table, other, [("when_matched_update_all", {})])
    assert set(made) == {"id", "text", "small"}


def test_columns_that_a_merge_adds_are_in_copies(tmp_path: Path, copies: list[str]) -> None:  # noqa: F811
    table, _ = both(tmp_path)
    source = pa.table({"id": [3, 5], "more": ["a", "b"]})
    merged(table, source, [("when_matched_update_all", {})], merge_schema=True)
    assert len(copies) == 1
    found = read_by_theirs(tmp_path / "ours")
    assert found.num_rows == 2 * ROWS
    found = found.select(["id", "more"]).cast(pa.schema([("id", pa.int64()), ("more", pa.string())]))
    kept = found.filter(found["more"].is_valid()).sort_by("id")
    assert kept.to_pydict() == {"id": [3, 5], "more": ["a", "b"]}


def test_rows_that_two_of_the_source_match_leave_nothing(tmp_path: Path) -> None:
    table, _ = both(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    source = pa.concat_tables([data(10).slice(0, 3), data(10).slice(0, 1)])
    with pytest.raises(exceptions.InvalidArgumentError, match="duplicate relevant"):
        merged(table, source, [("when_matched_update_all", {})])
    assert sorted(tmp_path.rglob("*")) == before


VERBS: dict[str, Callable[[DeltaTable], Any]] = {
    "delete": lambda table: table.delete("id % 2 = 0"),
    "update": lambda table: table.update({"x": "x + 1"}, predicate="id % 2 = 0"),
    "merge": lambda table: merged(table, data(0).slice(0, 4000), [("when_matched_update_all", {})]),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_what_fails_in_the_middle_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Callable[[DeltaTable], Any]
) -> None:
    table, _ = both(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    part, calls = ColumnCopies._part, []

    def failing(self: ColumnCopies, *arguments: Any) -> bytes:
        calls.append(1)
        if len(calls) == 7:
            raise OSError("the disk is full")
        return part(self, *arguments)

    monkeypatch.setattr(ColumnCopies, "_part", failing)
    with pytest.raises(OSError, match="the disk is full"):
        verb(table)
    assert sorted(tmp_path.rglob("*")) == before
    assert table.version() == DeltaTable(tmp_path / "ours").version() == 1


def test_row_groups_that_go_whole_are_left_out(tmp_path: Path, copies: list[str]) -> None:  # noqa: F811
    table, _ = both(tmp_path)
    table.delete("id >= 999 and id < 2997")
    assert len(copies) == 1
    (added,) = [action for kind, action in entry(tmp_path / "ours", 2) if kind == "add"]
    metadata = pq.read_metadata(tmp_path / "ours" / added["path"])
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [999, 999, 999, 5]


ROW = st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(-3, 3)), st.sampled_from(["x", "yy", "", None]))


@settings(max_examples=25, deadline=None)
@given(
    target=st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=2),
    group=st.integers(1, 5),
    verb=st.sampled_from(["delete", "update", "all"]),
    predicate=st.sampled_from(["v > 0", "id % 2 = 0", "s = 'x'", "v is null", "id < 5 or s is null", "true"]),
)
def test_any_rows_and_row_groups(
    tmp_path_factory: pytest.TempPathFactory, target: list[list[Any]], group: int, verb: str, predicate: str
) -> None:
    path = tmp_path_factory.mktemp("copies")
    schema = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.string())])
    tables = []
    for name in ("ours", "plain"):
        for part in target:
            table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in part], schema)
            properties = WriterProperties(max_row_group_size=group)
            write_deltalake(path / name, table, mode="append", writer_properties=properties)
        tables.append(DeltaTable(path / name))
    found = []
    for table, given_ in zip(tables, (None, ORDINARY), strict=True):
        if verb == "delete":
            found.append(told(table.delete(predicate, writer_properties=given_)))
        else:
            updates = {"v": "v + 1"} if verb == "update" else {"v": "id", "s": "concat(s, '!')"}
            found.append(told(table.update(updates, predicate=predicate, writer_properties=given_)))
    assert found[0] == found[1]
    ours, plain = tables
    assert ours.version() == plain.version()
    assert rows(ours.to_pyarrow_table()) == rows(plain.to_pyarrow_table())
    assert rows(read_by_theirs(path / "ours")) == rows(ours.to_pyarrow_table())
    if ours.version() == len(target):
        ours_, plain_ = (united(statistics(path / name, len(target))) for name in ("ours", "plain"))
        assert ours_ == plain_
