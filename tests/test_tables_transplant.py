"""Reverts, cherry-picks and resets of commits that touched tables: what is the same for both formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError
from esker.repo import Branch, Commit, HookEvent, Repository
from esker.repo.errors import MergeConflictError, NoChangesError, TableConflictError
from esker.repo.objects.object_info import ObjectInfo
from tests.branch_tables import FORMATS, Format, append, check_rows, delete, drop, entries, ids_at, rows

PLACE = "lake/t"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


@pytest.fixture
def main(repo: Repository) -> Branch:
    return repo.branch("main")


def forked(repo: Repository, format: Format, *ids: int) -> Branch:
    """A branch from `main`, on which there is a table of some rows."""
    append(repo.branch("main"), format, *ids)
    return repo.branch("dev").create("main")


def refused(repo: Repository, kind: str, act: object, commit: Commit) -> TableConflictError:
    """Has a revert or pick refused, with nothing changed."""
    before = repo.ref("main").get_commit()
    with pytest.raises(TableConflictError) as caught:
        act(commit.id)  # type: ignore[operator]
    error = caught.value
    assert [(found.table, found.kind) for found in error.tables] == [(PLACE, kind)]
    assert PLACE in str(error)
    assert error.tables[0].advice in str(error)
    assert repo.ref("main").get_commit() == before
    return error


@pytest.mark.parametrize("format", FORMATS)
def test_an_append_is_reverted_after_others_have_appended(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    commits = [append(main, format, n) for n in (1, 2, 3, 4)]
    before = entries(repo, "main", format)
    main.revert(commits[2].id)
    check_rows(repo, format, tmp_path / "out", 1, 2, 4)
    after = entries(repo, "main", format)
    assert {number: after[number] for number in before} == before
    assert len(after) == len(before) + 1
    append(main, format, 5)
    assert ids_at(repo, "main", format) == [1, 2, 4, 5]
    # And it is picked again: the revert took its rows away.
    main.cherry_pick(commits[2].id)
    check_rows(repo, format, tmp_path / "again", 1, 2, 3, 4, 5)
    with pytest.raises(NoChangesError):
        main.cherry_pick(commits[2].id)


@pytest.mark.parametrize("format", FORMATS)
def test_the_second_of_two_appends_is_picked_alone(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    append(dev, format, 2)
    picked = append(dev, format, 3)
    made = main.cherry_pick(picked.id)
    assert made.message == picked.message
    assert made.metadata["cherry-pick-origin"] == picked.id
    check_rows(repo, format, tmp_path / "out", 1, 3)
    append(main, format, 4)
    main.revert(made.id)
    check_rows(repo, format, tmp_path / "again", 1, 4)


@pytest.mark.parametrize("format", FORMATS)
def test_a_pick_onto_the_table_as_it_was_takes_the_versions_themselves(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    with dev.transact("two versions") as tx:
        for n in (2, 3):
            if format == "lance":
                esker.write_dataset(rows(n), tx.store_uri(PLACE), mode="append")
            else:
                write_deltalake(tx.store_uri(PLACE), rows(n), mode="append")
    main.object("other").upload(b"goes its own way")
    main.commit("beside the table")
    main.cherry_pick("dev")
    assert entries(repo, "main", format) == entries(repo, "dev", format)
    check_rows(repo, format, tmp_path / "out", 1, 2, 3)
    # Both versions of the one commit are taken back together, by one new one.
    count = len(entries(repo, "main", format))
    main.revert("main")
    assert len(entries(repo, "main", format)) == count + 1
    check_rows(repo, format, tmp_path / "again", 1)


@pytest.mark.parametrize("format", FORMATS)
def test_a_delete_is_reverted_and_picked(format: Format, repo: Repository, main: Branch, tmp_path: Path) -> None:
    dev = forked(repo, format, 1, 2, 3)
    gone = delete(dev, format, 2)
    append(main, format, 9)
    main.cherry_pick(gone.id)
    check_rows(repo, format, tmp_path / "picked", 1, 3, 9)
    append(main, format, 10)
    main.revert("main~1")
    check_rows(repo, format, tmp_path / "back", 1, 2, 3, 9, 10)
    delete(main, format, 3)
    assert ids_at(repo, "main", format) == [1, 2, 9, 10]


@pytest.mark.parametrize("format", FORMATS)
def test_a_delete_of_whole_files_is_reverted_and_picked(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1, 2)
    append(main, format, 5)
    append(dev, format, 3)
    gone = delete(dev, format, 1, 2)
    main.cherry_pick(gone.id)
    check_rows(repo, format, tmp_path / "picked", 5)
    append(main, format, 6)
    main.revert("main~1")
    check_rows(repo, format, tmp_path / "back", 1, 2, 5, 6)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("later", [False, True])
def test_an_overwrite_is_reverted_where_nothing_came_after_or_only_appends(
    later: bool, format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, format, 1, 2)
    with main.transact("overwrite") as tx:
        if format == "lance":
            esker.write_dataset(rows(7), tx.store_uri(PLACE), mode="overwrite")
        else:
            write_deltalake(tx.store_uri(PLACE), rows(7), mode="overwrite")
    overwrite = main.get_commit()
    if later:
        append(main, format, 8)
    main.revert(overwrite.id)
    check_rows(repo, format, tmp_path / "out", 1, 2, *([8] if later else []))


@pytest.mark.parametrize("format", FORMATS)
def test_a_schema_change_is_reverted_whole_or_not_at_all(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, format, 1)
    with main.transact("a column more") as tx:
        wider = rows(2).append_column("w", [[True]])
        if format == "lance":
            esker.write_dataset(wider, tx.store_uri(PLACE), mode="overwrite")
        else:
            write_deltalake(tx.store_uri(PLACE), wider, mode="append", schema_mode="merge")
    change = main.get_commit()
    main.revert(change.id)
    check_rows(repo, format, tmp_path / "out", 1)
    # The log went on by the restore, and the table is what it was before.
    main.cherry_pick(change.id)
    assert ids_at(repo, "main", format) == ([1, 2] if format == "delta" else [2])
    with main.transact("more") as tx:
        more = rows(3).append_column("w", [[False]])
        if format == "lance":
            esker.write_dataset(more, tx.store_uri(PLACE), mode="append")
        else:
            write_deltalake(tx.store_uri(PLACE), more, mode="append")
    refused(repo, "unsupported", main.revert, change)
    with pytest.raises(NoChangesError):
        repo.branch("dev").create(change.id).cherry_pick(change.id)


@pytest.mark.parametrize("format", FORMATS)
def test_what_came_after_is_in_the_way_where_it_touched_the_same_files(
    format: Format, repo: Repository, main: Branch
) -> None:
    append(main, format, 1)
    added = append(main, format, 2, 3)
    delete(main, format, 2)
    refused(repo, "changed", main.revert, added)
    dev = repo.branch("dev").create("main~1")
    gone = delete(dev, format, 3)
    refused(repo, "changed", main.cherry_pick, gone)


@pytest.mark.parametrize("format", FORMATS)
def test_a_commit_that_made_a_table_is_reverted_and_picked(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    main.object("lake/readme").upload(b"no table")
    main.commit("first")
    empty = repo.branch("empty").create("main")
    made = append(main, format, 1)
    empty.cherry_pick(made.id)
    assert entries(repo, "empty", format) == entries(repo, "main", format)
    with pytest.raises(NoChangesError):
        main.cherry_pick(made.id)
    append(main, format, 2)
    refused(repo, "changed", main.revert, made)
    main.reset_to(made.id)
    main.revert(made.id)
    assert [found.path for found in main.objects()] == ["lake/readme"]
    with pytest.raises(NoChangesError):
        main.revert(made.id)
    append(main, format, 3)
    refused(repo, "replaced", main.revert, made)
    refused(repo, "both-created", main.cherry_pick, made)


@pytest.mark.parametrize("format", FORMATS)
def test_a_commit_that_dropped_a_table_is_reverted_and_picked(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    before = entries(repo, "main", format)
    dropped = drop(dev)
    main.cherry_pick(dropped.id)
    assert list(main.objects()) == []
    main.revert("main")
    assert entries(repo, "main", format) == before
    check_rows(repo, format, tmp_path / "out", 1)
    with pytest.raises(NoChangesError):
        main.revert(dropped.id)
    append(main, format, 2)
    refused(repo, "dropped", main.cherry_pick, dropped)
    drop(main)
    append(main, format, 3)
    refused(repo, "replaced", main.revert, dropped)
    refused(repo, "replaced", main.cherry_pick, dropped)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_comes_back_finds_its_folder_as_it_was(format: Format, repo: Repository, main: Branch) -> None:
    append(main, format, 1)
    dropped = drop(main)
    main.object(f"{PLACE}/note").upload(b"mine")
    main.commit("a file where the table was")
    refused(repo, "changed", main.revert, dropped)


@pytest.mark.parametrize("format", FORMATS)
def test_what_else_lies_in_the_folder_of_a_table_that_is_dropped_stays(
    format: Format, repo: Repository, main: Branch
) -> None:
    main.object(f"{PLACE}/old").upload(b"before the table")
    main.commit("first")
    made = append(main, format, 1)
    main.object(f"{PLACE}/old").delete()
    main.object(f"{PLACE}/note").upload(b"mine")
    main.commit("beside the table")
    main.revert(made.id)
    assert [found.path for found in main.objects()] == [f"{PLACE}/note"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_came_with_a_table_and_was_changed_since_is_in_the_way_of_dropping_it(
    format: Format, repo: Repository, main: Branch
) -> None:
    append(main, format, 1)
    main.object(f"{PLACE}/note").upload(b"theirs")
    main.commit("a note")
    dev = repo.branch("dev").create("main")
    dropped = drop(dev)
    main.object(f"{PLACE}/note").upload(b"mine")
    main.commit("changed")
    refused(repo, "dropped", main.cherry_pick, dropped)


def test_tags_made_since_are_in_the_way_of_dropping_a_table(repo: Repository, main: Branch) -> None:
    made = append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    dropped = drop(dev)
    tags = esker.dataset(main.store_uri(PLACE)).tags
    tags.create("kept", 1)
    refused(repo, "changed", main.revert, made)
    refused(repo, "dropped", main.cherry_pick, dropped)
    tags.delete("kept")
    main.cherry_pick(dropped.id)
    assert list(main.objects()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_pick_needs_the_same_table(format: Format, repo: Repository, main: Branch) -> None:
    dev = forked(repo, format, 1)
    picked = append(dev, format, 2)
    drop(main)
    refused(repo, "dropped", main.cherry_pick, picked)
    append(main, format, 1)
    append(main, format, 5)
    refused(repo, "replaced", main.cherry_pick, picked)


def test_a_pick_needs_a_table_of_the_same_format(repo: Repository, main: Branch) -> None:
    dev = forked(repo, "lance", 1)
    picked = append(dev, "lance", 2)
    drop(main)
    append(main, "delta", 1)
    before = main.get_commit()
    with pytest.raises(TableConflictError) as caught:
        main.cherry_pick(picked.id)
    assert [found.kind for found in caught.value.tables] == ["unsupported"]
    assert main.get_commit() == before


@pytest.mark.parametrize("format", FORMATS)
def test_tables_and_paths_of_a_commit_go_together_or_not_at_all(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    append(main, format, 1, path="other")
    with dev.transact("both") as tx:
        tx.object("note").upload(b"of the commit")
        if format == "lance":
            esker.write_dataset(rows(2), tx.store_uri(PLACE), mode="append")
        else:
            write_deltalake(tx.store_uri(PLACE), rows(2), mode="append")
    append(main, format, 9)
    made = main.cherry_pick("dev")
    assert main.object("note").reader().read() == b"of the commit"
    check_rows(repo, format, tmp_path / "out", 1, 2, 9)
    main.object("note").upload(b"another")
    main.commit("changed")
    with pytest.raises(MergeConflictError) as caught:
        main.revert(made.id)
    assert not isinstance(caught.value, TableConflictError)
    assert ids_at(repo, "main", format) == [1, 2, 9]
    drop(main)
    error = refused(repo, "dropped", main.revert, made)
    assert [found.path for found in error.conflicts] == ["note"]
    assert error.count == 2


@pytest.mark.parametrize("format", FORMATS)
def test_another_writer_may_be_faster(format: Format, repo: Repository, main: Branch, tmp_path: Path) -> None:
    dev = forked(repo, format, 1)
    picked = append(dev, format, 2)
    races = 0

    def another(event: HookEvent) -> None:
        nonlocal races
        if event.branch == "main" and event.commit.message == picked.message and races < 2:
            races += 1
            append(Repository(repo.uri).branch("main"), format, 100 + races)

    repo.add_hook("pre-commit", another)
    main.cherry_pick(picked.id)
    assert races == 2
    check_rows(repo, format, tmp_path / "out", 1, 2, 101, 102)


@pytest.mark.parametrize("format", FORMATS)
def test_another_writer_may_leave_no_room(format: Format, repo: Repository, main: Branch) -> None:
    dev = forked(repo, format, 1)
    picked = append(dev, format, 2)
    done: list[int] = []

    def another(event: HookEvent) -> None:
        if not done and event.commit.message == picked.message:
            done.append(1)
            drop(Repository(repo.uri).branch("main"))

    repo.add_hook("pre-commit", another)
    with pytest.raises(TableConflictError, match="no table"):
        main.cherry_pick(picked.id)
    assert list(main.objects()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_merge_is_reverted_by_the_side_that_counts(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    append(dev, format, 2)
    main.object("beside").upload(b"x")
    main.commit("beside the table")
    dev.merge_into("main")
    merge = main.get_commit()
    append(main, format, 3)
    with pytest.raises(InvalidArgumentError, match="parent_number"):
        main.revert(merge.id)
    main.revert(merge.id, parent_number=1)
    check_rows(repo, format, tmp_path / "out", 1, 3)
    main.cherry_pick(merge.id, parent_number=1)
    check_rows(repo, format, tmp_path / "again", 1, 2, 3)


@pytest.mark.parametrize("format", FORMATS)
def test_what_changes_nothing_is_committed_on_request_alone(format: Format, repo: Repository, main: Branch) -> None:
    commit = append(main, format, 1)
    before = main.get_commit()
    with pytest.raises(NoChangesError):
        main.cherry_pick(commit.id)
    assert main.cherry_pick(commit.id, allow_empty=True).meta_range_id == before.meta_range_id


@pytest.mark.parametrize("format", FORMATS)
def test_a_clean_up_by_hand_is_not_picked(format: Format, repo: Repository, main: Branch) -> None:
    dev = forked(repo, format, 1)
    append(dev, format, 2)
    append(main, format, 3)
    with dev.transact("take the first entry away") as tx:
        first = entries(repo, "dev", format)[1 if format == "lance" else 0]
        tx.object(first.path).delete()
    refused(repo, "unsupported", main.cherry_pick, dev.get_commit())
    before = dev.get_commit()
    with pytest.raises(TableConflictError):
        dev.revert(before.id)
    assert dev.get_commit() == before


@pytest.mark.parametrize("format", FORMATS)
def test_a_reset_moves_a_ref_and_touches_no_log(format: Format, repo: Repository, main: Branch) -> None:
    commits = [append(main, format, n) for n in (1, 2, 3)]
    logs = [entries(repo, commit.id, format) for commit in commits]
    count = len(list(repo._core.store.list_paths("data/")))
    for number in (0, 2, 1):
        main.reset_to(commits[number].id)
        assert main.get_commit() == commits[number]
        assert entries(repo, "main", format) == logs[number]
        assert ids_at(repo, "main", format) == list(range(1, number + 2))
    assert len(list(repo._core.store.list_paths("data/"))) == count


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_that_a_pick_needs_is_copied(format: Format, repo: Repository, main: Branch) -> None:
    dev = forked(repo, format, 1)
    picked = append(dev, format, *range(2, 50))
    append(main, format, 99)
    main.cherry_pick(picked.id)

    def files(ref: str) -> set[str]:
        found = [one for one in repo.ref(ref).objects() if isinstance(one, ObjectInfo)]
        return {one.physical_address for one in found if one.path.endswith((".lance", ".parquet"))}

    assert files("dev") < files("main")


@pytest.mark.parametrize("format", FORMATS)
def test_the_first_commit_of_a_repository_is_reverted(format: Format, repo: Repository, main: Branch) -> None:
    made = append(main, format, 1)
    main.revert(made.id)
    assert list(main.objects()) == []
    main.cherry_pick(made.id)
    assert ids_at(repo, "main", format) == [1]


@pytest.mark.parametrize("format", FORMATS)
def test_tables_within_tables_are_told_apart(format: Format, repo: Repository, main: Branch, tmp_path: Path) -> None:
    places = ("", "inner", "inner/most")
    for number, place in enumerate(places):
        append(main, format, number, path=place)
    dev = repo.branch("dev").create("main")
    for number, place in enumerate(places):
        append(main, format, 10 + number, path=place)
        append(dev, format, 20 + number, path=place)
    main.cherry_pick("dev~1")
    assert [ids_at(repo, "main", format, place) for place in places] == [[0, 10], [1, 11, 21], [2, 12]]
    main.cherry_pick("dev~2")
    main.revert("main~2")
    assert [ids_at(repo, "main", format, place) for place in places] == [[0, 10, 20], [1, 11, 21], [2]]
    dropped = [found.path for found in main.objects(prefix="inner/") if not found.path.startswith("inner/most/")]
    with main.transact("drop the one in between") as tx:
        for path in dropped:
            tx.object(path).delete()
    main.revert("main")
    assert [ids_at(repo, "main", format, place) for place in places] == [[0, 10, 20], [1, 11, 21], [2]]
    assert list(repo.fsck()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_versions_of_a_commit_that_also_cleaned_up_are_picked(
    format: Format, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    dev = forked(repo, format, 1)
    old = [found.path for found in main.objects(prefix=f"{PLACE}/") if found.path.endswith((".lance", ".parquet"))]
    with dev.transact("overwrite, append, clean up") as tx:
        for number, mode in ((2, "overwrite"), (3, "append")):
            if format == "lance":
                esker.write_dataset(rows(number), tx.store_uri(PLACE), mode=mode)
            else:
                write_deltalake(tx.store_uri(PLACE), rows(number), mode=mode)  # type: ignore[arg-type]
        for path in old:
            tx.object(path).delete()
    main.cherry_pick("dev")
    check_rows(repo, format, tmp_path / "out", 2, 3)
    # The branch's own files are still there.
    assert all(main.object(path).exists() for path in old)
    main.revert("main")
    check_rows(repo, format, tmp_path / "back", 1)
    dev.revert("dev")
    assert ids_at(repo, "dev", format) == [1]


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_of_applications_stay_those_of_the_branch(format: Format, repo: Repository, main: Branch) -> None:
    def number(ref: str) -> int | None:
        uri = repo.ref(ref).store_uri(PLACE)
        if format == "delta":
            return DeltaTable(uri).transaction_version("job")
        found = esker.dataset(uri)._table.manifest.config.get("esker.application.job")
        return None if found is None else int(found)

    def numbered(n: int) -> dict[str, Any]:
        return {"application": ("job", n)} if format == "lance" else {"txn_app_id": "job", "txn_version": n}

    append(main, format, 1, **numbered(1))
    dev = repo.branch("dev").create("main")
    same = repo.branch("same").create("main")
    picked = append(dev, format, 2, **numbered(2))
    append(main, format, 3)
    main.cherry_pick(picked.id)
    assert (number("main"), ids_at(repo, "main", format)) == (1, [1, 2, 3])
    same.cherry_pick(picked.id)
    assert number("same") == 2
    dev.revert("dev")
    assert (number("dev"), ids_at(repo, "dev", format)) == (2, [1])
    append(dev, format, 2, **numbered(2))
    assert ids_at(repo, "dev", format) == [1]


@pytest.mark.parametrize("format", FORMATS)
def test_rows_come_back_only_to_a_branch_that_lost_them(format: Format, repo: Repository, main: Branch) -> None:
    dev = forked(repo, format, 1, 2, 3)
    delete(dev, format, 1)
    gone = delete(dev, format, 2, 3)
    assert ids_at(repo, "dev", format) == []
    # The rows are on the branch, in the file that the first delete would have rewritten.
    refused(repo, "changed", main.revert, gone)
    append(dev, format, 4)
    back = dev.revert(gone.id)
    assert ids_at(repo, "dev", format) == [2, 3, 4]
    append(main, format, 5)
    refused(repo, "changed", main.cherry_pick, back)
    again = dev.revert(back.id)
    assert ids_at(repo, "dev", format) == [4]
    append(dev, format, 6)
    dev.revert(again.id)
    assert ids_at(repo, "dev", format) == [2, 3, 4, 6]


@pytest.mark.parametrize("format", FORMATS)
def test_a_branch_whose_versions_a_clean_up_took_takes_what_is_told_by_files(
    format: Format, repo: Repository, main: Branch
) -> None:
    dev = forked(repo, format, 1, 2)
    added = append(dev, format, 3)
    gone = delete(dev, format, 2)
    append(main, format, 4)
    append(main, format, 5)
    if format == "delta":
        with main.transact("checkpoint") as tx:
            DeltaTable(tx.store_uri(PLACE)).create_checkpoint()
    with main.transact("clean up") as tx:
        log = entries(repo, "main", format)
        for number in sorted(log)[:-1]:
            tx.object(log[number].path).delete()
    # Its rows may have come and gone in the versions that nobody knows any more.
    refused(repo, "cleaned-up", main.cherry_pick, added)
    main.cherry_pick(gone.id)
    assert ids_at(repo, "main", format) == [1, 4, 5]
