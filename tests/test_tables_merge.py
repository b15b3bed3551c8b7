"""Merges of tables, cell by cell of the table of decisions, in both formats, read by esker and by the peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.repo import MergeConflictError
from esker.repo.errors import TableConflictError
from tests.table_branches import FORMATS, Lake


@pytest.fixture(params=FORMATS)
def lake(request: Any, tmp_path: Path) -> Lake:
    made = Lake(tmp_path, request.param)
    made.write(made.main, 1, mode="overwrite")
    made.write(made.main, 2)
    return made


def refused(lake: Lake, source: str = "f", dest: str = "main", **options: Any) -> TableConflictError:
    """The conflict of a merge, which has changed nothing."""
    before = lake.repo.ref(dest).get_commit().id
    with pytest.raises(TableConflictError) as caught:
        lake.repo.ref(source).merge_into(dest, **options)
    assert lake.repo.ref(dest).get_commit().id == before
    error = caught.value
    assert not error.retryable
    assert error.count == len(error.tables) + len(error.conflicts)
    assert all(one.table and one.explanation and one.advice for one in error.tables)
    with pytest.raises(TableConflictError):
        lake.repo.ref(source).merge_into(dest, dry_run=True, **options)
    return error


def kinds(error: TableConflictError) -> list[tuple[str, str, int | None]]:
    return [(one.table, one.kind, one.version) for one in error.tables]


def test_a_side_that_went_on_alone_is_taken_whole(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    lake.write(f, 4)
    assert f.merge_into("main", dry_run=True) == lake.main.get_commit().id
    f.merge_into("main")
    assert lake.read() == (lake.first + 3, [1, 2, 3, 4])
    assert lake.history() == lake.history("f")


def test_it_is_taken_whole_beside_other_changes(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    f.object("other/a").upload("a")
    f.commit("a")
    lake.main.object("other/b").upload("b")
    lake.main.commit("b")
    f.merge_into("main")
    assert lake.read() == (lake.first + 2, [1, 2, 3])
    assert [one.path for one in lake.repo.ref("main").objects(prefix="other/")] == ["other/a", "other/b"]


def test_a_side_that_is_behind_changes_nothing(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    f.merge_into("main", squash_merge=True)
    lake.write(lake.main, 4)
    f.merge_into("main")
    assert lake.read() == (lake.first + 3, [1, 2, 3, 4])


def test_a_squash_merge_can_be_followed_by_another(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    f.merge_into("main", squash_merge=True)
    lake.write(f, 4)
    f.merge_into("main", squash_merge=True)
    f.merge_into("main")
    assert lake.read() == (lake.first + 3, [1, 2, 3, 4])


def test_sides_that_both_went_on_are_a_conflict(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    lake.write(lake.main, 4)
    lake.write(lake.main, 5)
    assert kinds(refused(lake)) == [(lake.path, "diverged", lake.first + 2)]
    assert lake.read() == (lake.first + 3, [1, 2, 4, 5])


@pytest.mark.parametrize(("theirs", "ours"), [(1, 2), (3, 1), (1, 1)])
def test_a_strategy_decides_a_whole_table(lake: Lake, theirs: int, ours: int) -> None:
    f = lake.fork()
    for number in range(theirs):
        lake.write(f, 100 + number)
    for number in range(ours):
        lake.write(lake.main, 200 + number)
    before, version = lake.history(), lake.first + 1 + ours
    f.merge_into("main", strategy="dest-wins")
    assert lake.read() == (version, [1, 2, *range(200, 200 + ours)])
    assert lake.history() == before
    lake.write(f, 50)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (version + 1, [1, 2, 50, *range(100, 100 + theirs)])
    assert before.items() <= lake.history().items()
    # It goes on from there.
    lake.write(lake.main, 60)
    assert lake.read() == (version + 2, [1, 2, 50, 60, *range(100, 100 + theirs)])
    assert list(lake.repo.fsck(tables=True)) == []


def test_tables_that_both_sides_created_are_a_conflict(lake: Lake) -> None:
    f = lake.fork()
    for branch in (f, lake.main):
        lake.write(branch, 1, mode="overwrite", path="lake/new")
    error = refused(lake)
    assert kinds(error) == [("lake/new", "both-created", lake.first)]
    refused(lake, strategy="source-wins")
    f.merge_into("main", strategy="dest-wins")


def test_a_table_that_one_side_created_is_taken_whole(lake: Lake) -> None:
    lake.path = "lake/new"
    f = lake.fork()
    lake.write(f, 7, mode="overwrite")
    lake.main.object("x").upload("x")
    lake.main.commit("x")
    f.merge_into("main")
    assert lake.read() == (lake.first, [7])


def test_a_drop_is_taken_where_nothing_changed_since(lake: Lake) -> None:
    f = lake.fork()
    lake.drop(f)
    lake.main.object("x").upload("x")
    lake.main.commit("x")
    f.merge_into("main")
    assert lake.paths() == []


def test_a_table_dropped_on_both_sides_stays_dropped(lake: Lake) -> None:
    f = lake.fork()
    lake.drop(f)
    f.object("x").upload("x")
    f.commit("x")
    lake.drop(lake.main)
    f.merge_into("main")
    assert [one.path for one in lake.repo.ref("main").objects()] == ["x"]


def test_a_drop_against_an_append_is_a_conflict_either_way_round(lake: Lake) -> None:
    f = lake.fork()
    lake.drop(f)
    lake.write(lake.main, 3)
    version = lake.first + 2
    assert kinds(refused(lake)) == [(lake.path, "dropped", version)]
    assert kinds(refused(lake, strategy="source-wins")) == [(lake.path, "dropped", version)]
    assert kinds(refused(lake, "main", "f")) == [(lake.path, "dropped", version)]
    lake.repo.ref("f").merge_into("main", strategy="dest-wins")
    assert lake.read() == (version, [1, 2, 3])


def test_what_the_destination_dropped_comes_back_whole_if_the_source_wins(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    lake.drop(lake.main)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (lake.first + 2, [1, 2, 3])
    assert lake.paths() == lake.paths("f")


def test_what_the_destination_dropped_stays_dropped_if_it_wins(lake: Lake) -> None:
    f = lake.fork()
    lake.write(f, 3)
    lake.drop(lake.main)
    f.merge_into("main", strategy="dest-wins")
    assert lake.paths() == []


def test_another_table_at_the_same_path_is_a_conflict(lake: Lake) -> None:
    f = lake.fork()
    lake.drop(f)
    lake.write(f, 9, mode="overwrite")
    lake.write(f, 10)
    for strategy in (None, "source-wins"):
        assert kinds(refused(lake, strategy=strategy)) == [(lake.path, "replaced", lake.first)]
    assert lake.read() == (lake.first + 1, [1, 2])
    # As the advice says.
    lake.drop(lake.main)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (lake.first + 1, [9, 10])


def test_conflicts_of_tables_and_of_paths_come_together(lake: Lake) -> None:
    f = lake.fork()
    for branch, text in ((f, "1"), (lake.main, "2")):
        lake.write(branch, int(text))
        branch.object("a").upload(text)
        branch.commit(text)
    error = refused(lake)
    assert [one.path for one in error.conflicts] == ["a"]
    assert error.count == 2
    conflict = f.conflicts_with("main")
    assert isinstance(conflict, TableConflictError)
    # The strategy decides both.
    f.merge_into("main", strategy="source-wins")
    assert lake.read()[1] == [1, 1, 2]
    assert lake.repo.ref("main").object("a").reader().read() == b"1"


def test_one_table_of_two_in_conflict_holds_up_the_other(lake: Lake) -> None:
    lake.write(lake.main, 1, mode="overwrite", path="lake/second")
    f = lake.fork()
    lake.write(f, 3)
    for branch in (f, lake.main):
        lake.write(branch, 4, path="lake/second")
    assert kinds(refused(lake)) == [("lake/second", "diverged", lake.first + 1)]
    assert lake.read() == (lake.first + 1, [1, 2])
    f.merge_into("main", strategy="dest-wins")
    assert lake.read() == (lake.first + 2, [1, 2, 3])


def test_paths_alone_conflict_as_ever(lake: Lake) -> None:
    f = lake.fork()
    for branch, text in ((f, "1"), (lake.main, "2")):
        branch.object("a").upload(text)
        branch.commit(text)
    with pytest.raises(MergeConflictError) as caught:
        f.merge_into("main")
    assert not isinstance(caught.value, TableConflictError)
