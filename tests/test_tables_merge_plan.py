"""What a merge of tables costs, what its plan says, and how the terminal shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.cli import main as cli
from esker.delta import write_deltalake
from esker.repo import MergePlan, ObjectInfo, Repository
from esker.repo.core import repository_core
from tests.table_branches import FORMATS, Format, Lake, rows_of


@pytest.fixture(params=FORMATS)
def lake(request: Any, tmp_path: Path) -> Lake:
    made = Lake(tmp_path, request.param)
    made.write(made.main, 1, mode="overwrite")
    made.write(made.main, 2)
    return made


def state(lake: Lake) -> list[tuple[str, int]]:
    """All files of the repository."""
    root = Path(lake.repo.uri)
    return sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file())


def planned(lake: Lake, strategy: str | None = None) -> MergePlan:
    before = state(lake)
    plan = lake.repo.ref("f").merge_plan("main", strategy=strategy)
    assert state(lake) == before
    return plan


def test_a_plan_says_what_a_merge_then_does(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    lake.write(f, 4)
    f.object("a").upload("a")
    f.commit("a")
    plan = planned(lake)
    (table,) = plan.tables
    assert (table.path, table.format, table.outcome) == (lake.path, lake.format, "take-source")
    assert (table.version_before, table.version_after, table.new_versions) == (lake.first + 1, lake.first + 3, 2)
    assert (plan.paths.added, plan.paths.removed, plan.paths.changed) == (1, 0, 0)
    assert [(one.type, one.path) for one in plan.paths.first] == [("added", "a")]
    assert plan.merges
    assert not plan.is_empty
    assert (plan.source, plan.destination) == (f.get_commit().id, lake.main.get_commit().id)
    f.merge_into("main")
    assert lake.read()[0] == table.version_after
    assert planned(lake).is_empty


def test_a_plan_of_sides_that_both_went_on(lake: Lake) -> None:
    f = lake.fork()
    for branch, number in ((f, 3), (lake.main, 4)):
        lake.write(branch, number)
        branch.object("a").upload(str(number))
        branch.commit("a")
    version = lake.first + 2
    plan = planned(lake)
    assert [table.outcome for table in plan.tables] == ["conflict"]
    assert [(one.kind, one.path, one.format, one.version) for one in plan.conflicts] == [
        ("diverged", lake.path, lake.format, version),
        ("path", "a", None, None),
    ]
    assert all(one.explanation and one.advice for one in plan.conflicts)
    assert (plan.conflict_count, plan.merges, plan.paths.count) == (2, False, 0)
    kept = planned(lake, "dest-wins")
    assert [(table.outcome, table.version_after) for table in kept.tables] == [("keep", version)]
    assert (kept.merges, kept.paths.count) == (True, 0)
    restored = planned(lake, "source-wins")
    (table,) = restored.tables
    assert (table.outcome, table.new_versions, table.version_after) == ("restore-source", 1, version + 1)
    assert (restored.merges, restored.paths.changed) == (True, 1)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (version + 1, [1, 2, 3])


def test_a_plan_of_a_drop(lake: Lake) -> None:
    f = lake.fork()
    lake.drop(f)
    (table,) = planned(lake).tables
    assert (table.outcome, table.version_before, table.version_after) == ("drop", lake.first + 1, None)


def test_the_terminal_shows_a_plan(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    f = lake.fork()
    lake.write(f, 3)
    f.object("a").upload("a")
    f.commit("a")
    assert cli(["repo", "merge", lake.repo.uri, "f", "main", "--plan"]) == 0
    shown = capsys.readouterr().out
    assert lake.path in shown
    assert "take-source" in shown
    assert "1 added" in shown
    lake.write(lake.main, 4)
    assert cli(["repo", "merge", lake.repo.uri, "f", "main", "--plan", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert not said["merges"]
    assert [one["kind"] for one in said["conflicts"]] == ["diverged"]
    assert cli(["repo", "merge", lake.repo.uri, "f", "main", "--json"]) == 1
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)["tables"]] == ["diverged"]
    assert cli(["repo", "merge", lake.repo.uri, "f", "main"]) == 1
    assert "diverged" in capsys.readouterr().out
    assert cli(["repo", "merge", lake.repo.uri, "f", "main", "--strategy", "source-wins", "--json"]) == 0
    assert lake.read()[1] == [1, 2, 3]


@pytest.mark.parametrize("strategy", [None, "source-wins", "dest-wins"])
def test_a_merge_reads_no_data_file(lake: Lake, strategy: str | None) -> None:
    f = lake.fork()
    lake.write(f, 3)
    if strategy is not None:
        lake.write(lake.main, 4)
    ends = (".lance", ".parquet")
    named = [
        one.physical_address
        for ref in (f, lake.main)
        for one in ref.objects(prefix=lake.path)
        if isinstance(one, ObjectInfo) and one.path.endswith(ends)
    ]
    assert len(set(named)) >= 3
    for address in set(named):
        (Path(lake.repo.uri) / address).unlink()
    f.merge_into("main", strategy=strategy)
    assert len(lake.history()) == (3 if strategy is None else 4 if strategy == "source-wins" else 3)


def made_of(place: Path, format: Format, files: int) -> Lake:
    lake = Lake(place / str(files), format)
    with lake.main.transact("made") as tx:
        uri = tx.store_uri(lake.path)
        if format == "lance":
            esker.write_dataset(rows_of(*range(files)), uri, max_rows_per_file=1)
        else:
            table = pa.table({"id": range(files), "day": [f"{n:05}" for n in range(files)]})
            write_deltalake(uri, table, partition_by=["day"])
    f = lake.fork()
    with f.transact("more") as tx:
        uri = tx.store_uri(lake.path)
        if format == "lance":
            esker.write_dataset(rows_of(9), uri, mode="append")
        else:
            write_deltalake(uri, pa.table({"id": [9], "day": ["x"]}), mode="append")
    lake.main.object("x").upload("x")
    lake.main.commit("x")
    return lake


@pytest.mark.parametrize("format", FORMATS)
def test_to_take_a_side_whole_costs_the_same_whatever_the_size_of_the_table(
    tmp_path: Path, format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine under load they would be read again.
    monkeypatch.setattr(repository_core, "SETTINGS_SECONDS", 3600.0)
    costs = []
    for files in (3, 300):
        lake = made_of(tmp_path, format, files)
        cold = Repository(lake.repo.uri)
        store = cold._core.store
        store.io_stats()
        cold.ref("f").merge_into("main")
        said = store.io_stats()
        costs.append((said.read_iops, said.write_iops))
        assert len(lake.read_here(lake.main)[1]) == files + 1
    # Files have random names: which blocks of a range hold those of interest differs by one now and then.
    assert abs(costs[0][0] - costs[1][0]) <= 1
    assert costs[0][1] == costs[1][1]
