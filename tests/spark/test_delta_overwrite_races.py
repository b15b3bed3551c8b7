"""Overwrites of a part of a Delta table that lose a race at their commit run again, with the files of the tasks.

`replaceWhere` beside everything that `tests/test_delta_overwrite_races.py` has, and the same with dynamic partitions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError, EskerError, InvalidArgumentError
from tests.simulation.delta_verbs import compact
from tests.spark.jobs import planned, staged
from tests.test_delta_overwrite_races import (
    NEW,
    OTHERS,
    START,
    WHERE,
    files,
    layouts,
    named,
    prepare,
    replaced,
    state,
    told_by_feed,
    write,
)
from tests.test_delta_verb_doubt import Interrupts, Race

SCHEMA = T.StructType([T.StructField("id", T.LongType()), T.StructField("n", T.LongType())])
BATCH = pa.record_batch([pa.array(column, pa.int64()) for column in zip(*NEW, strict=True)], names=["id", "n"])
PARTS = T.StructType([T.StructField("id", T.LongType()), T.StructField("p", T.StringType())])
Parts = list[tuple[int, str]]
ROWS: Parts = [(n, "abcd"[n % 4]) for n in range(12)]


def staged_overwrite(path: Path, **options: object) -> tuple[Any, list[Any]]:
    writer = planned(str(path), SCHEMA, overwrite=True, replaceWhere=WHERE, **options)
    return writer, staged(writer, [[BATCH.slice(0, 2)], [], [BATCH.slice(2)]])


@layouts
@pytest.mark.parametrize("other", OTHERS)
def test_rows_are_replaced_on_top_of_what_others_did(other: str, layout: str, tmp_path: Path) -> None:
    prepare(tmp_path, layout)
    had = files(tmp_path)
    writer, messages = staged_overwrite(tmp_path)
    OTHERS[other][0](tmp_path)
    writer.commit(messages)
    want = replaced(OTHERS[other][1](START))
    assert state(tmp_path) == want
    assert files(tmp_path) - had == named(tmp_path) - had
    if layout in ("feed", "names"):
        assert told_by_feed(tmp_path, DeltaTable(tmp_path).version()) == want


def test_files_of_tasks_stay_as_they_are(tmp_path: Path) -> None:
    prepare(tmp_path, "feed")
    writer, messages = staged_overwrite(tmp_path, maxRowsPerFile=1)
    staged_files = {file for file in files(tmp_path) if file.startswith("part-")} - named(tmp_path)
    assert len(staged_files) == 3
    compact(DeltaTable(tmp_path))
    writer.commit(messages)
    assert staged_files <= named(tmp_path)
    # Survivors are below the task's bound, too: 20 rows that stay, one a file.
    assert len(DeltaTable(tmp_path).file_uris()) == 23


def test_a_batch_that_another_run_has_committed_meanwhile_is_there_once(tmp_path: Path) -> None:
    prepare(tmp_path, "copy")
    job = {"txnAppId": "job", "txnVersion": 1}
    first, stale = staged_overwrite(tmp_path, **job), staged_overwrite(tmp_path, **job)
    first[0].commit(first[1])
    DeltaTable(tmp_path).delete("id = 500")
    stale[0].commit(stale[1])
    assert state(tmp_path) == [row for row in replaced(START) if row[0] != 500]
    assert files(tmp_path) == named(tmp_path)


def test_another_table_in_its_place_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, "copy")
    writer, messages = staged_overwrite(tmp_path)
    for file in (tmp_path / "_delta_log").iterdir():
        file.unlink()
    for first in range(5):
        write(tmp_path, START[first : first + 1], mode="append")
    with pytest.raises(CommitConflictError, match="replaced"):
        writer.commit(messages)
    assert state(tmp_path) == START[:5]


def test_what_the_table_forbids_by_now_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    prepare(tmp_path, "feed")
    had = files(tmp_path)
    writer, messages = staged_overwrite(tmp_path)
    DeltaTable(tmp_path).alter.add_constraint({"c": "n < 600"})
    with pytest.raises(InvalidArgumentError, match="n < 600"):
        writer.commit(messages)
    assert files(tmp_path) == had
    assert state(tmp_path) == START


def parts(path: Path) -> Parts:
    table = DeltaTable(path).to_pyarrow_table()
    return sorted(zip(table["id"].to_pylist(), table["p"].to_pylist(), strict=True))


def part_table(found: Parts) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    return pa.Table.from_pylist([{"id": key, "p": part} for key, part in found], schema=schema)


PART_OTHERS: dict[str, tuple[Callable[[Path], Any], Callable[[Parts], Parts]]] = {
    "optimize": (lambda path: compact(DeltaTable(path)), lambda found: found),
    "append to its partition": (
        lambda path: write_deltalake(path, part_table([(90, "a"), (91, "c")]), mode="append"),
        lambda found: [*found, (90, "a"), (91, "c")],
    ),
    "append to another": (
        lambda path: write_deltalake(path, part_table([(91, "c")]), mode="append"),
        lambda found: [*found, (91, "c")],
    ),
    "delete": (lambda path: DeltaTable(path).delete("id < 3"), lambda found: [row for row in found if row[0] >= 3]),
    "update": (
        lambda path: DeltaTable(path).update({"id": "id + 100"}, predicate="id < 6"),
        lambda found: [(key + 100 if key < 6 else key, part) for key, part in found],
    ),
    "move": (
        lambda path: DeltaTable(path).update({"p": "'a'"}, predicate="p = 'c'"),
        lambda found: [(key, "a" if part == "c" else part) for key, part in found],
    ),
    "overwrite": (
        lambda path: write_deltalake(path, part_table([(1, "a"), (2, "c")]), mode="overwrite"),
        lambda _: [(1, "a"), (2, "c")],
    ),
    "constraint": (lambda path: DeltaTable(path).alter.add_constraint({"c": "id < 5000"}), lambda found: found),
    "feed turned on": (
        lambda path: DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
        lambda found: found,
    ),
}


@pytest.mark.parametrize("layout", ["copy", "vectors", "feed"])
@pytest.mark.parametrize("other", PART_OTHERS)
def test_partitions_are_replaced_on_top_of_what_others_did(other: str, layout: str, tmp_path: Path) -> None:
    properties: dict[str, dict[str, str | None]] = {
        "copy": {},
        "vectors": {"delta.enableDeletionVectors": "true"},
        "feed": {"delta.enableChangeDataFeed": "true"},
    }
    write_deltalake(tmp_path, part_table(ROWS), partition_by="p", configuration=properties[layout])
    write_deltalake(tmp_path, part_table([(50, "a"), (51, "b")]), mode="append")
    start = sorted([*ROWS, (50, "a"), (51, "b")])
    had = files(tmp_path)
    writer = planned(str(tmp_path), PARTS, overwrite=True, partitionOverwriteMode="dynamic")
    new: Parts = [(200, "a"), (201, "e")]
    messages = staged(writer, [part_table(new).to_batches()])
    PART_OTHERS[other][0](tmp_path)
    writer.commit(messages)
    want = sorted([row for row in PART_OTHERS[other][1](start) if row[1] not in ("a", "e")] + new)
    assert parts(tmp_path) == want
    assert files(tmp_path) - had == named(tmp_path) - had
    if layout == "feed":
        told = pa.table(DeltaTable(tmp_path).load_cdf(0)).to_pylist()
        found: Parts = []
        for row in sorted(told, key=lambda row: (row["_commit_version"], row["_change_type"] != "delete")):
            key = (row["id"], row["p"])
            if row["_change_type"] in ("delete", "update_preimage"):
                found.remove(key)
            else:
                found.append(key)
        assert sorted(found) == want


@pytest.mark.parametrize("then", ["append", "other partitions"])
def test_an_overwrite_of_all_rows_does_not_take_away_what_it_has_not_seen(then: str, tmp_path: Path) -> None:
    """A dynamic overwrite replaces all rows of a table that has no partitions, or has none by its commit."""
    is_partitioned = then == "other partitions"
    write_deltalake(tmp_path, part_table(ROWS), partition_by="p" if is_partitioned else None)
    writer = planned(str(tmp_path), PARTS, overwrite=True, partitionOverwriteMode="dynamic")
    messages = staged(writer, [part_table([(200, "a")]).to_batches()])
    if is_partitioned:
        other = part_table([(7, "a"), (8, "b")])
        write_deltalake(tmp_path, other, mode="overwrite", schema_mode="overwrite", partition_by=[])
    else:
        write_deltalake(tmp_path, part_table([(90, "a")]), mode="append")
    had, there = files(tmp_path), parts(tmp_path)
    with pytest.raises(CommitConflictError):
        writer.commit(messages)
    assert parts(tmp_path) == there
    assert files(tmp_path) < had
    assert named(tmp_path) == files(tmp_path)


@pytest.mark.parametrize("layout", ["feed", "vectors"])
def test_ctrl_c_may_come_at_any_operation_of_a_commit_that_loses_a_race(layout: str, tmp_path: Path) -> None:
    """The rows are those of before or of after, on top of what the other writer did; what was told as done is there."""
    template = tmp_path / "template"
    template.mkdir()
    prepare(template, layout)
    others = OTHERS["update"][1](START)
    count, number = 1, 0
    while number <= count:
        for is_after in (False, True) if number else (False,):
            path = tmp_path / f"{number}-{is_after}"
            shutil.copytree(template, path)
            writer, messages = staged_overwrite(path)
            told: BaseException | None = None
            with pytest.MonkeyPatch.context() as patch:
                race = Race(patch, lambda path=path: OTHERS["update"][0](path))  # type: ignore[misc]
                found = Interrupts(patch, number, after=is_after)
                try:
                    writer.commit(messages)
                except (KeyboardInterrupt, EskerError) as error:
                    told = error
            if told is not None:
                # Spark asks for it in any case: it must not take away what may be committed.
                writer.abort(messages)
            if number == 0:
                assert told is None
                count = found.count
                assert count > 12
            rows = state(path)
            where = f"operation {number} of {count}, after: {is_after}"
            if race.raced and rows != sorted(START):
                assert rows in (sorted(others), replaced(others)), where
            else:
                assert rows in (sorted(START), replaced(START)), where
            if told is None:
                assert rows in (replaced(START), replaced(others)), where
            assert named(path) <= files(path), where
            shutil.rmtree(path)
        number += 1
