"""Merges of tables over random histories, in races, and with faults, against a plain model of logs."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import deltalake
import pytest

import esker
from esker.delta import DeltaTable
from esker.exceptions import EskerError
from esker.repo import HookEvent, Repository
from esker.repo.errors import NoChangesError, TableConflictError
from tests.table_branches import FORMATS, Format, Lake

Log: TypeAlias = tuple[tuple[int, frozenset[int]], ...]
"""A table's log as the model has it: the version's id, and what it holds."""


class Model:
    """Branches with one table each, and what merges make of them."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {"main": ()}
        self.at: dict[str, Log] = {}
        self.count = 0

    def rows(self, branch: str) -> list[int]:
        return sorted(self.logs[branch][-1][1])

    def write(self, branch: str, rows: frozenset[int]) -> None:
        self.count += 1
        self.logs[branch] = (*self.logs[branch], (self.count, rows))

    def merge(self, source: str, dest: str, base: str, strategy: str | None) -> bool:
        """Whether it merges. The base is a commit."""
        theirs, ours = self.logs[source], self.logs[dest]
        common = min(len(theirs), len(ours))
        if theirs == self.at[base]:
            return True
        if theirs[:common] == ours[:common]:
            self.logs[dest] = max(theirs, ours, key=lambda log: len(log))
            return True
        if strategy == "source-wins":
            self.write(dest, theirs[-1][1])
        return strategy is not None


def clean(lake: Lake, branch: Any) -> None:
    if lake.format == "lance":
        lake.change(branch, lambda uri: esker.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True))
    else:
        lake.change(branch, lambda uri: esker.delta.DeltaTable(uri).create_checkpoint())


def delete(lake: Lake, branch: Any, row: int) -> None:
    if lake.format == "lance":
        lake.change(branch, lambda uri: esker.dataset(uri).delete(f"id = {row}"))
    else:
        lake.by_peer(branch, lambda place: deltalake.DeltaTable(place).delete(f"id = {row}"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("format", FORMATS)
def test_random_histories_end_as_the_model_says(tmp_path: Path, format: Format, seed: int) -> None:
    chance = random.Random(f"{format} {seed}")
    lake, model = Lake(tmp_path, format), Model()
    lake.write(lake.main, 0, mode="overwrite")
    model.write("main", frozenset([0]))
    names = ["main", "f", "g"]
    for name in names[1:]:
        lake.fork(name)
        model.logs[name] = model.logs["main"]
    model.at[lake.main.get_commit().id] = model.logs["main"]
    for step in range(1, 25):
        name = chance.choice(names)
        branch, rows = lake.repo.branch(name), model.rows(name)
        what = chance.choice(["append", "append", "overwrite", "delete", "clean", "merge", "merge", "merge"])
        if what == "append":
            lake.write(branch, step)
            model.write(name, frozenset([*rows, step]))
        elif what == "overwrite":
            lake.write(branch, step, mode="overwrite")
            model.write(name, frozenset([step]))
        elif what == "delete" and len(rows) > 1:
            row = chance.choice(rows)
            delete(lake, branch, row)
            model.write(name, frozenset(rows) - {row})
        elif what == "clean":
            with suppress(NoChangesError):
                clean(lake, branch)
        elif what == "merge":
            source = chance.choice([other for other in names if other != name])
            strategy = chance.choice([None, None, "source-wins", "dest-wins"])
            options = {"strategy": strategy, "squash_merge": chance.random() < 0.3}
            plan = lake.repo.ref(source).merge_plan(name, strategy=strategy)
            base = lake.repo.ref(source).merge_base(name)
            assert base is not None
            before = model.logs[name]
            expected = model.merge(source, name, base.id, strategy)
            try:
                lake.repo.ref(source).merge_into(name, allow_empty=True, **options)  # type: ignore[arg-type]
                merged = True
            except TableConflictError:
                merged = False
            assert merged == plan.merges
            assert merged == expected, (step, source, name, strategy, before)
        for every in names:
            version, found = lake.read_here(lake.repo.ref(every))
            assert (version - lake.first + 1, found) == (len(model.logs[every]), model.rows(every))
            model.at[lake.repo.ref(every).get_commit().id] = model.logs[every]
    for every in names:
        lake.read(every)
    assert list(lake.repo.fsck(tables=True)) == []


@pytest.fixture(params=FORMATS)
def lake(request: Any, tmp_path: Path) -> Lake:
    made = Lake(tmp_path, request.param)
    made.write(made.main, 1, mode="overwrite")
    return made


def overtaken_by(lake: Lake, *ids: int) -> None:
    """Lets another process append before a merge lands, for each id once more."""
    left = list(ids)

    def append(event: HookEvent) -> None:
        if left:
            lake.write(Repository(lake.repo.uri).branch("main"), left.pop(0))

    lake.repo.add_hook("pre-merge", append)


def test_a_merge_that_lost_the_race_decides_again(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 2)
    overtaken_by(lake, 3)
    with pytest.raises(TableConflictError) as caught:
        f.merge_into("main")
    assert [one.kind for one in caught.value.tables] == ["diverged"]
    assert lake.read() == (lake.first + 1, [1, 3])


def test_a_restore_that_lost_races_comes_after_what_won(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 2)
    lake.write(lake.main, 3)
    overtaken_by(lake, 4, 5)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (lake.first + 4, [1, 2])
    log = lake.history()
    assert len(log) == 5
    lake.repo.branch("f").delete()
    lake.repo.gc(dry_run=False, grace_s=-3600)
    assert lake.read() == (lake.first + 4, [1, 2])
    assert list(lake.repo.fsck(tables=True)) == []


def test_a_merge_that_ends_in_an_error_leaves_the_branch_as_it_was(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 2)
    lake.write(lake.main, 3)
    before = lake.main.get_commit().id

    def refuse(event: HookEvent) -> None:
        raise RuntimeError("no")

    lake.repo.add_hook("pre-merge", refuse)
    with pytest.raises(Exception, match="no"):
        f.merge_into("main", strategy="source-wins")
    assert lake.main.get_commit().id == before
    assert lake.read() == (lake.first + 1, [1, 3])
    # What the restore had written is garbage.
    again = Repository(lake.repo.uri)
    again.gc(dry_run=False, grace_s=-3600)
    again.ref("f").merge_into("main", strategy="source-wins")
    assert lake.read() == (lake.first + 2, [1, 2])


def test_a_squash_merge_can_be_followed_by_clean_ups_on_both_sides(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "lance")
    lake.write(lake.main, 1, mode="create")
    lake.write(lake.main, 2)
    f = lake.fork()
    lake.write(f, 3)
    clean(lake, f)
    f.merge_into("main", squash_merge=True)
    assert lake.read() == (3, [1, 2, 3])
    lake.write(f, 4)
    clean(lake, f)
    clean(lake, lake.main)
    f.merge_into("main")
    assert lake.read() == (4, [1, 2, 3, 4])


@pytest.mark.parametrize("format", FORMATS)
def test_a_merge_after_a_clean_up_of_the_source_keeps_every_version_of_the_destination(
    tmp_path: Path, format: Format
) -> None:
    lake, first = Lake(tmp_path, format), int(format == "lance")
    kept: dict[str, Any] = {"configuration": {"delta.logRetentionDuration": "interval 0 days"}}
    lake.write(lake.main, 1, mode="create" if first else "error", **({} if first else kept))
    lake.write(lake.main, 2)
    f = lake.fork()
    lake.write(f, 3)
    lake.write(f, 4)
    clean(lake, f)
    if not first:
        lake.change(f, lambda uri: DeltaTable(uri).cleanup_metadata())
    assert len([path for path in lake.history("f") if path.endswith((".json", ".manifest"))]) == 1
    f.merge_into("main")
    lake.repo.gc(dry_run=False, grace_s=-3600)
    uri = lake.main.store_uri(lake.path)

    def rows(version: int) -> list[int]:
        if first:
            found = esker.dataset(uri, version=version).to_table()
        else:
            found = DeltaTable(uri, version=version).to_pyarrow_table()
        return sorted(found["id"].to_pylist())

    assert [rows(first + n) for n in (0, 1, 3)] == [[1], [1, 2], [1, 2, 3, 4]]
    # The version between was never on the destination, and is nowhere now.
    with pytest.raises(EskerError):
        rows(first + 2)
    assert lake.read() == (first + 3, [1, 2, 3, 4])
    assert list(lake.repo.fsck(tables=True)) == []
