"""Reverts and cherry-picks of tables on bad days: a store that fails at any operation, collections in between."""

from __future__ import annotations

import multiprocessing
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError, EskerError
from esker.repo import HookEvent, Repository
from tests.branch_tables import FORMATS, Format, append, check_rows, delete, ids_at, rows
from tests.faulty import Faulty
from tests.servers import S3Server

FAULTS = ["crash_before", "crash_after", "lose_reply", "fail"]


def made(place: Path, format: Format) -> Repository:
    """`main` has 1, 2, 3 and 9; on `dev` 3 is deleted, in a commit that `main` can take."""
    repo = Repository.create(place, committer="me")
    append(repo.branch("main"), format, 1, 2, 3)
    repo.branch("dev").create("main")
    append(repo.branch("main"), format, 9)
    delete(repo.branch("dev"), format, 3)
    return repo


def pick(repo: Repository) -> None:
    repo.branch("main").cherry_pick("dev")


def revert(repo: Repository) -> None:
    repo.branch("main").revert("main")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("work", [pick, revert], ids=lambda work: work.__name__)
@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_as_before_or_has_all_of_it(
    format: Format, work: Callable[[Repository], None], fault: str, faulty: Faulty, tmp_path: Path
) -> None:
    pristine = tmp_path / "pristine"
    made(pristine, format)
    shutil.copytree(pristine, tmp_path / "whole")
    work(Repository(f"fault://{tmp_path}/whole", storage_options={"plan": ""}))
    before, after = (ids_at(Repository(tmp_path / place), "main", format) for place in ("pristine", "whole"))
    assert before != after
    outcomes = set()
    for number in range(len(faulty.made[-1].operations)):
        place = tmp_path / str(number)
        shutil.copytree(pristine, place)
        with suppress(EskerError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(Repository(f"fault://{place}", storage_options={"plan": f"{fault}@{number}"}))
        repo = Repository(place)
        found = ids_at(repo, "main", format)
        assert found in (before, after), f"{fault}@{number}"
        assert list(repo.fsck()) == [], f"{fault}@{number}"
        append(repo.branch("main"), format, 100)
        assert ids_at(repo, "main", format) == sorted([*found, 100]), f"{fault}@{number}"
        outcomes.add(tuple(found))
        shutil.rmtree(place)
    # Before its last operation nothing is there.
    assert outcomes == {tuple(before)} if fault == "crash_before" else tuple(after) in outcomes


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("expires", [False, True])
def test_a_collection_between_reading_and_committing_leaves_it_whole_or_refused(
    expires: bool, format: Format, tmp_path: Path
) -> None:
    repo = made(tmp_path / "repo", format)
    before = ids_at(repo, "main", format)
    collected: list[HookEvent] = []

    def collect(event: HookEvent) -> None:
        if not collected:
            collected.append(event)
            other = Repository(repo.uri)
            if expires:
                other.branch("dev").delete()
            other.gc(dry_run=False, grace_s=-3600)

    repo.add_hook("pre-commit", collect)
    with suppress(EskerError):
        pick(repo)
    assert collected
    repo = Repository(repo.uri)
    found = ids_at(repo, "main", format)
    assert found in (before, [1, 2, 9])
    check_rows(repo, format, tmp_path / "out", *found)
    if not expires:
        # What the collection took of it is written anew by another attempt.
        with suppress(EskerError):
            pick(repo)
        assert ids_at(repo, "main", format) == [1, 2, 9]


def _pick_one(uri: str, options: dict[str, str], commit: str) -> None:
    Repository(uri, storage_options=options).branch("main").cherry_pick(commit)


@pytest.mark.parametrize("format", FORMATS)
def test_several_processes_pick_onto_one_branch(format: Format, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", format)
    dev = repo.branch("more").create("main")
    commits = [append(dev, format, n).id for n in range(200, 206)]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(3, spawn) as pool:
        list(pool.map(_pick_one, [repo.uri] * 6, [{}] * 6, commits))
    check_rows(repo, format, tmp_path / "out", 1, 2, 3, 9, *range(200, 206))
    for commit in commits[::2]:
        repo.branch("more").revert(commit)
    assert ids_at(repo, "more", format) == [1, 2, 3, 9, 201, 203, 205]


@pytest.mark.parametrize("format", FORMATS)
def test_on_s3(format: Format, s3: S3Server, tmp_path: Path) -> None:
    uri, options = f"s3://{s3.bucket()}/lake", s3.storage_options
    repo = Repository.create(uri, committer="me", storage_options=options)
    main = repo.branch("main")
    append(main, format, 1, 2, 3)
    dev = repo.branch("dev").create("main")
    commits = [append(main, format, 9), delete(dev, format, 3), append(dev, format, 4)]
    for commit in commits[1:]:
        _pick_one(uri, options, commit.id)
    main.revert(commits[0].id)
    check_rows(repo, format, tmp_path / "out", 1, 2, 4)


def test_a_handle_from_before_a_revert_deletes_none_of_the_rows_that_came_back(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo", committer="me")
    main = repo.branch("main")
    append(main, "lance", 1, 2, 3)
    gone = delete(main, "lance", 2)
    append(main, "lance", 4)
    before = esker.dataset(main.store_uri("lake/t"))
    assert before.count_rows() == 3
    main.revert(gone.id)
    # It knew the fragment with a larger deletion file.
    before.delete("id = 1")
    check_rows(repo, "lance", tmp_path / "out", 2, 3, 4)


@pytest.mark.parametrize("format", FORMATS)
def test_a_handle_from_before_a_revert_goes_on_behind_it(format: Format, tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo", committer="me")
    main = repo.branch("main")
    append(main, format, 1)
    added = append(main, format, 2)
    uri = main.store_uri("lake/t")
    if format == "lance":
        dataset = esker.dataset(uri)
        main.revert(added.id)
        with pytest.raises(CommitConflictError):
            dataset.insert(rows(3))
        esker.dataset(uri).insert(rows(3))
    else:
        table = DeltaTable(uri)
        main.revert(added.id)
        write_deltalake(table, rows(3), mode="append")
    check_rows(repo, format, tmp_path / "out", 1, 3)
