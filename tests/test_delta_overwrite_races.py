"""Overwrites with a predicate that lose a race run again: survivors are computed anew, files of new rows stay.

The rows are then those of the other writer's change, with this one's after it. Two faults at once are in
`test_delta_verb_double_faults.py` and `test_delta_verb_doubt.py`, whose verb `replace` it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

from esker._native.store import Store
from esker.commit.orphans import StagedFiles
from esker.delta import CommitProperties, DeltaTable, Field, Transaction, write_deltalake
from esker.delta.log.commit import CommitRequest, DeltaCommit
from esker.delta.log.target import WriteTarget
from esker.delta.write.attempt import first_attempt
from esker.delta.write.plan import WriteRequest
from esker.exceptions import CommitConflictError, InvalidArgumentError
from tests.delta_rows import rows
from tests.simulation.delta_verbs import compact
from tests.test_delta_delete import entry, read_by_theirs
from tests.test_delta_verb_doubt import Interrupts, Race

Rows = list[tuple[int, int]]
LAYOUTS: dict[str, dict[str, str | None]] = {
    "copy": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
    "names": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)
START: Rows = [(n, n) for n in range(30)]
NEW: Rows = [(4, 400), (7, 700), (500, 5)]
WHERE = "id % 3 = 1 or id = 500"


def replaced(found: Rows) -> Rows:
    return sorted([row for row in found if row[0] % 3 != 1 and row[0] != 500] + NEW)


def batches(found: Rows) -> pa.RecordBatchReader:
    """A stream, which is there once."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])

    def each() -> Iterator[pa.RecordBatch]:
        for row in found:
            yield pa.record_batch([[row[0]], [row[1]]], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, each())


def write(path: Any, found: Rows, **kwargs: Any) -> None:
    write_deltalake(path, batches(found), **kwargs)


def state(path: Path) -> Rows:
    table = DeltaTable(path).to_pyarrow_table()
    if "columnMapping" not in str(DeltaTable(path).metadata().configuration):
        assert rows(read_by_theirs(path)) == rows(table)
    return sorted(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))


def prepare(path: Path, layout: str) -> None:
    for first in (0, 10, 20):
        write(path, START[first : first + 10], mode="append", configuration=LAYOUTS[layout])


def replace(table: Any, **kwargs: Any) -> None:
    write(table, NEW, mode="overwrite", predicate=WHERE, **kwargs)


OTHERS: dict[str, tuple[Callable[[Path], Any], Callable[[Rows], Rows]]] = {
    "optimize": (lambda path: compact(DeltaTable(path)), lambda found: found),
    "delete of rows it replaces": (
        lambda path: DeltaTable(path).delete("id in (1, 4)"),
        lambda found: [row for row in found if row[0] not in (1, 4)],
    ),
    "delete of rows that stay": (
        lambda path: DeltaTable(path).delete("id in (2, 12, 21)"),
        lambda found: [row for row in found if row[0] not in (2, 12, 21)],
    ),
    "delete of all": (lambda path: DeltaTable(path).delete(), lambda _: []),
    "update": (
        lambda path: DeltaTable(path).update({"n": "n + 1000"}, predicate="id < 12"),
        lambda found: [(key, n + 1000 if key < 12 else n) for key, n in found],
    ),
    "append of other rows": (
        lambda path: write(path, [(902, 1), (903, 1)], mode="append"),
        lambda found: [*found, (902, 1), (903, 1)],
    ),
    "append of such rows": (
        lambda path: write(path, [(901, 1), (902, 1)], mode="append"),
        lambda found: [*found, (901, 1), (902, 1)],
    ),
    "the same": (replace, replaced),
    "overwrite": (lambda path: write(path, [(1, 1), (2, 2)], mode="overwrite"), lambda _: [(1, 1), (2, 2)]),
    "feed turned on": (
        lambda path: DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
        lambda found: found,
    ),
    "constraint": (lambda path: DeltaTable(path).alter.add_constraint({"c": "n < 5000"}), lambda found: found),
}


def files(path: Path) -> set[str]:
    return {file.name for file in path.rglob("*") if file.suffix in (".parquet", ".bin")} - {
        file.name for file in (path / "_delta_log").glob("*.parquet")
    }


def named(path: Path) -> set[str]:
    """The files that some entry of the log names."""
    found = set()
    for version in range(DeltaTable(path).version() + 1):
        for kind in ("add", "cdc"):
            for fields in (action for name, action in entry(path, version) if name == kind):
                found.add(unquote(fields["path"]).rpartition("/")[2])
    return found


def told_by_feed(path: Path, version: int) -> Rows:
    """What a feed from the beginning makes of the rows."""
    found: list[tuple[int, int]] = []
    changes = sorted(
        pa.table(DeltaTable(path).load_cdf(0, version)).to_pylist(), key=lambda row: row["_commit_version"]
    )
    for number in range(version + 1):
        of = [row for row in changes if row["_commit_version"] == number]
        for row in of:
            if row["_change_type"] in ("delete", "update_preimage"):
                found.remove((row["id"], row["n"]))
        found += [(row["id"], row["n"]) for row in of if row["_change_type"] in ("insert", "update_postimage")]
    return sorted(found)


@layouts
@pytest.mark.parametrize("other", OTHERS)
def test_it_goes_on_top_of_what_others_did(other: str, layout: str, tmp_path: Path) -> None:
    prepare(tmp_path, layout)
    stale = DeltaTable(tmp_path)
    OTHERS[other][0](tmp_path)
    had = files(tmp_path)
    replace(stale)
    want = replaced(OTHERS[other][1](START))
    assert state(tmp_path) == want
    assert stale.version() == DeltaTable(tmp_path).version()
    # Files of the first attempt that no entry names are gone.
    assert files(tmp_path) - had == named(tmp_path) - had
    if "feed" in layout or "names" in layout:
        assert told_by_feed(tmp_path, stale.version()) == want


def test_it_runs_again_with_the_files_of_its_new_rows(tmp_path: Path) -> None:
    prepare(tmp_path, "feed")
    stale = DeltaTable(tmp_path)
    compact(DeltaTable(tmp_path))
    put: list[str] = []
    whole = Store.put

    def noted(store: Store, path: str, data: bytes) -> object:
        put.append(path)
        return whole(store, path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "put", noted)
        replace(stale)
    parts = [path for path in put if path.startswith("part-")]
    # The new rows once, survivors of three small files in one, then those of the large file.
    assert len(parts) == 3
    assert parts[0] in {action["path"] for name, action in entry(tmp_path, 4) if name == "add"}
    assert parts[1] not in files(tmp_path)


@pytest.mark.parametrize("mode", [None, "name"])
@pytest.mark.parametrize("value", [datetime(2024, 1, 1, tzinfo=UTC), 1.0, 1e20, None, "a b"], ids=str)
def test_partitions_that_others_spell_in_another_way_are_replaced(value: Any, mode: str | None, tmp_path: Path) -> None:
    kind = pa.string() if value is None else pa.array([value]).type

    def of(n: int) -> pa.Table:
        return pa.table({"p": pa.array([value], kind), "n": pa.array([n], pa.int64())})

    write_deltalake(tmp_path, of(1), partition_by="p", configuration={"delta.columnMapping.mode": mode})
    target = WriteTarget.of(tmp_path, None)
    request = WriteRequest(mode="overwrite", replaces_partitions=True)
    with StagedFiles() as staged:
        first = first_attempt(target, of(3).to_reader(), request, staged)
        if mode is None:
            deltalake.write_deltalake(tmp_path, of(2), mode="append")
        else:
            write_deltalake(tmp_path, of(2), mode="append")

        def again(version: int) -> DeltaCommit:
            made = first.again(target.later(version), staged)
            staged.discard(keep=made.paths)
            return made.commit(CommitRequest())

        first.commit(CommitRequest()).run(staged, rerun=again, runs_again=True)
    assert DeltaTable(tmp_path).to_pyarrow_table()["n"].to_pylist() == [3]


def test_partitions_are_replaced_beside_a_compaction_without_new_files(tmp_path: Path) -> None:
    data = pa.table({"id": range(6), "p": list("aabbcc")})
    write_deltalake(tmp_path, data, partition_by="p")
    write_deltalake(tmp_path, data, mode="append")
    stale = DeltaTable(tmp_path)
    deltalake.DeltaTable(tmp_path).optimize.compact()
    had = files(tmp_path)
    new = pa.table({"id": [9], "p": ["a"]})
    write_deltalake(stale, new, mode="overwrite", predicate="p = 'a'")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [2, 2, 3, 3, 4, 4, 5, 5, 9]
    assert len(files(tmp_path) - had) == 1


@layouts
def test_it_loses_several_races(layout: str, tmp_path: Path) -> None:
    prepare(tmp_path, layout)
    left = ["optimize", "update", "append of such rows", "delete of rows that stay"]
    want = START
    entry_bytes = DeltaCommit.next_bytes

    def after_others(commit: DeltaCommit, version: int) -> bytes:
        nonlocal want
        if left:
            with pytest.MonkeyPatch.context() as alone:
                alone.setattr(DeltaCommit, "next_bytes", entry_bytes)
                change, model = OTHERS[left.pop(0)]
                change(tmp_path)
                want = model(want)
        return entry_bytes(commit, version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaCommit, "next_bytes", after_others)
        replace(tmp_path)
    assert not left
    assert state(tmp_path) == replaced(want)
    assert files(tmp_path) == named(tmp_path)


def test_another_column_is_kept_and_filled(tmp_path: Path) -> None:
    prepare(tmp_path, "feed")
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).alter.add_columns(Field("more", "string"))
    DeltaTable(tmp_path).update({"more": "'x'"}, predicate="id < 6")
    replace(stale, schema_mode="merge")
    found = {row["id"]: row["more"] for row in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()}
    assert {key for key, more in found.items() if more == "x"} == {0, 2, 3, 5}
    assert state(tmp_path) == replaced(START)
    assert files(tmp_path) == named(tmp_path)


TYPES = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "f": pa.array([0.0, -0.0, float("nan"), float("inf"), None, 1.5]),
        "s": pa.array(["a", "a/b", "O'Neil", None, "ü😀", " a"]),
        "b": pa.array([b"\x00\xff", b"", b"abc", None, b"a", b"b"]),
        "d": pa.array([Decimal("1.10"), Decimal("-0.01"), Decimal("0.00"), None, None, None], pa.decimal128(10, 2)),
        "t": pa.array([0, 1, -1, None, 10**15, 253402300799999999], pa.timestamp("us", "UTC")),
        "tn": pa.array([0, 1, -1, None, 10**15, 253402300799999999], pa.timestamp("us")),
        "st": pa.array([{"x": 1}, {"x": None}, None, {"x": 2}, {"x": 1}, None], pa.struct([("x", pa.int32())])),
        "l": pa.array([[1, 2], [], None, [None], [3], [1]], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1)], [], None, [("k", None)], [], [("z", 9)]], pa.map_(pa.string(), pa.int64())),
    }
)
CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "column": lambda table: table.alter.add_columns(Field("more", "long")),
    "names": lambda table: table.alter.set_table_properties({"delta.columnMapping.mode": "name"}),
    "feed": lambda table: table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
    "times": lambda table: table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"}),
    "rows": lambda table: table.update({"s": "s"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("partition_by", [None, ["s"], ["t"], ["tn", "d"], ["f"]])
@pytest.mark.parametrize("layout", ["copy", "feed", "times"])
def test_rows_of_every_type_are_written_anew_where_the_table_has_changed(
    change: str, partition_by: list[str] | None, layout: str, tmp_path: Path
) -> None:
    properties = LAYOUTS.get(layout, {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"})
    write_deltalake(tmp_path, TYPES, partition_by=partition_by, configuration=properties)
    stale = DeltaTable(tmp_path)
    CHANGES[change](DeltaTable(tmp_path))
    new = TYPES.slice(1, 3)
    where = "id between 1 and 4"
    write_deltalake(stale, new.to_reader(1), mode="overwrite", predicate=where, schema_mode="merge")
    found = DeltaTable(tmp_path).to_pyarrow_table().select(TYPES.schema.names)
    want = pa.concat_tables([new, TYPES.slice(0, 1), TYPES.slice(5)])
    assert rows(found) == rows(want.cast(found.schema))
    assert files(tmp_path) == named(tmp_path) | {file.name for file in tmp_path.rglob("*.bin")}
    if "delta.enableChangeDataFeed" in DeltaTable(tmp_path).metadata().configuration:
        told = pa.table(DeltaTable(tmp_path).load_cdf(2, 2))
        changes = sorted(zip(told["_change_type"].to_pylist(), told["id"].to_pylist(), strict=True))
        assert changes == [("delete", n) for n in (1, 2, 3, 4)] + [("insert", n) for n in (1, 2, 3)]


MADE_OTHERS: dict[str, tuple[pa.Array, pa.Array]] = {
    "float": (pa.array([0.5], pa.float32()), pa.array([1.1])),
    "decimal": (pa.array([1], pa.decimal128(5, 1)), pa.array([1.25])),
    "day": (pa.array([1], pa.date32()), pa.array([86_400_000_005], pa.timestamp("us", "UTC"))),
    "number": (pa.array([1]), pa.array(["007"])),
    "struct": (pa.array([{"x": 0.5}], pa.struct([("x", pa.float32())])), pa.array([{"x": 1.1}])),
    "list": (pa.array([[0.5]], pa.list_(pa.float32())), pa.array([[1.1]])),
}


@pytest.mark.parametrize("case", MADE_OTHERS)
def test_values_that_the_column_made_others_are_not_given_to_one_that_holds_them(case: str, tmp_path: Path) -> None:
    there, given = MADE_OTHERS[case]
    write_deltalake(tmp_path, pa.table({"id": [1], "x": there}))
    stale = DeltaTable(tmp_path)
    new = pa.table({"id": [1], "x": given})
    write_deltalake(tmp_path, new, mode="overwrite", schema_mode="overwrite")
    before = files(tmp_path)
    with pytest.raises(CommitConflictError, match="change of column 'x'.* run it again"):
        write_deltalake(stale, new, mode="overwrite", predicate="id = 1")
    assert files(tmp_path) == before
    write_deltalake(tmp_path, new, mode="overwrite", predicate="id = 1")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == new.to_pylist()


def test_integers_that_a_narrower_column_held_go_into_a_wider_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "n": pa.array([1], pa.int8())}))
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [2], "n": [2]}), mode="overwrite", schema_mode="overwrite")
    write_deltalake(stale, pa.table({"id": [1], "n": [7]}), mode="overwrite", predicate="id = 1")
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert found == [{"id": 1, "n": 7}, {"id": 2, "n": 2}]


def test_an_empty_text_of_a_partition_is_not_null_in_a_table_that_has_none_by_now(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "s": ["a"]}), partition_by=["s"])
    stale = DeltaTable(tmp_path)
    new = pa.table({"id": [1, 1], "s": ["", None]})
    write_deltalake(
        tmp_path, pa.table({"id": [1], "s": ["b"]}), mode="overwrite", schema_mode="overwrite", partition_by=[]
    )
    with pytest.raises(CommitConflictError, match="change of column 's'"):
        write_deltalake(stale, new, mode="overwrite", predicate="id = 1")
    write_deltalake(tmp_path, new, mode="overwrite", predicate="id = 1")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == new.to_pylist()


def test_what_the_table_forbids_by_now_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    prepare(tmp_path, "feed")
    for forbid in (
        lambda table: table.alter.add_constraint({"c": "n < 600"}),
        lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
    ):
        stale = DeltaTable(tmp_path)
        forbid(DeltaTable(tmp_path))
        had = files(tmp_path)
        with pytest.raises(InvalidArgumentError):
            replace(stale)
        assert files(tmp_path) == had
        assert state(tmp_path) == sorted(START)


def test_without_retries_it_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, "copy")
    stale = DeltaTable(tmp_path)
    compact(DeltaTable(tmp_path))
    had = files(tmp_path)
    with pytest.raises(CommitConflictError, match="files were removed that ours had read") as told:
        replace(stale, commit_properties=CommitProperties(max_commit_retries=0))
    assert told.value.facts["retryable"] is True
    assert files(tmp_path) == had


def test_an_overwrite_of_all_does_not_take_away_what_it_has_not_seen(tmp_path: Path) -> None:
    prepare(tmp_path, "copy")
    stale = DeltaTable(tmp_path)
    write(tmp_path, [(99, 99)], mode="append")
    with pytest.raises(CommitConflictError, match="files were added"):
        write(stale, NEW, mode="overwrite")
    assert state(tmp_path) == [*START, (99, 99)]


def test_a_job_that_another_run_has_done_meanwhile_is_done_once(tmp_path: Path) -> None:
    prepare(tmp_path, "copy")
    stale = DeltaTable(tmp_path)
    replace(tmp_path, txn_app_id="job", txn_version=1)
    DeltaTable(tmp_path).delete("id = 500")
    had = files(tmp_path)
    replace(stale, txn_app_id="job", txn_version=1)
    assert DeltaTable(tmp_path).version() == 4
    assert state(tmp_path) == [row for row in replaced(START) if row[0] != 500]
    assert files(tmp_path) == had


@pytest.mark.parametrize("verb", ["update", "merge", "replace"])
def test_a_number_that_the_application_has_committed_meanwhile_is_refused(verb: str, tmp_path: Path) -> None:
    """A verb with `app_transactions` would be done twice, if the other one was another run of the same job."""
    prepare(tmp_path, "copy")
    job = CommitProperties(app_transactions=[Transaction("job", 1)])
    verbs: dict[str, Callable[[DeltaTable], Any]] = {
        "update": lambda table: table.update({"n": "n + 1"}, predicate="id < 5", commit_properties=job),
        "merge": lambda table: (
            table.merge(pa.table({"id": [3, 77]}), "t.id = s.id", "s", "t", commit_properties=job)
            .when_matched_update({"n": "t.n + 1"})
            .when_not_matched_insert({"id": "s.id", "n": "0"})
            .execute()
        ),
        "replace": lambda table: replace(table, commit_properties=job),
    }
    stale = DeltaTable(tmp_path)
    verbs[verb](DeltaTable(tmp_path))
    found, had = state(tmp_path), files(tmp_path)
    with pytest.raises(CommitConflictError, match="the same application committed") as told:
        verbs[verb](stale)
    assert told.value.facts["retryable"] is False
    assert (state(tmp_path), files(tmp_path)) == (found, had)


def _create(path: Path) -> None:
    """With another column, so that rows of a table that was not to be are written anew."""
    write_deltalake(path, pa.table({"id": [8], "n": [8], "more": ["x"]}), configuration=LAYOUTS["copy"])


CTRL_C: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any], Callable[[Path], Any]]] = {
    # What is there before, what ours does, and what another writer does meanwhile.
    "replace and optimize": (lambda path: prepare(path, "feed"), replace, OTHERS["optimize"][0]),
    "replace and column": (
        lambda path: prepare(path, "feed"),
        lambda path: replace(path, schema_mode="merge"),
        lambda path: DeltaTable(path).alter.add_columns(Field("more", "string")),
    ),
    "append and create": (
        lambda path: path.mkdir(),
        lambda path: write(path, [(1, 1), (2, 2)], mode="append", schema_mode="merge"),
        _create,
    ),
}


@pytest.mark.parametrize("case", CTRL_C)
def test_ctrl_c_at_any_operation_leaves_no_file_of_the_first_attempt(case: str, tmp_path: Path) -> None:
    """Once the second attempt has landed; before that, nothing but a clean-up may know."""
    before, ours, other = CTRL_C[case]
    landed = interrupted = 0
    for number in range(400):
        for is_after in (False, True) if number else (False,):
            path = tmp_path / f"{number}-{is_after}"
            before(path)
            told = False
            with pytest.MonkeyPatch.context() as patch:
                race = Race(patch, lambda path=path: other(path))  # type: ignore[misc]
                found = Interrupts(patch, number, after=is_after)
                try:
                    ours(path)
                except KeyboardInterrupt:
                    told = True
            assert race.raced or told
            entries = sorted((path / "_delta_log").glob("*.json"))
            if race.raced and entries and '"operation":"WRITE"' in entries[-1].read_text() and len(entries) > 1:
                landed, interrupted = landed + 1, interrupted + told
                assert files(path) == named(path), (number, is_after)
            shutil.rmtree(path)
        if number and number >= found.count + 1:
            break
    assert landed > 1
    assert interrupted
