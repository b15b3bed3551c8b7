"""Reverts and cherry-picks of tables on bad days: a store that fails at any operation, collections in between."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from esker.exceptions import EskerError
from esker.repo import Repository
from esker.repo.hooks import HookEvent
from tests.branch_tables import FORMATS, Format, append, check_rows, delete, ids_at
from tests.faulty import Faulty

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
