"""Branches of one table while others make and delete them, and while stores fail: one wins, and none is half there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pytest

import esker
from esker.exceptions import (
    EskerError,
    NotFoundError,
    RefConflictError,
)
from esker.lance import LanceLog
from esker.lance.refs import creation
from tests.external import Killed
from tests.interrupts import Interrupt
from tests.tree_branches import Watch, agree, files_below, ids_of, meanwhile, rows_of, three_versions, watched_stores
from tests.watched_stores import in_another_thread


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


@pytest.fixture
def three(uri: str) -> str:
    return three_versions(uri)


@pytest.mark.parametrize("library", [esker, lance])
@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize(
    ("verb", "part"), [("put_if_absent", "_versions/"), ("put_if_absent", "_refs/"), ("list", "_versions/")]
)
def test_of_two_writers_of_one_branch_one_wins(
    three: str, watched: dict[str, Watch], verb: str, part: str, theirs: int, library: Any
) -> None:
    """Whoever is told that the branch is there finds the version that was asked for, and what was written since."""
    told: list[OSError] = []

    def other() -> None:
        try:
            made = library.dataset(three).create_branch("feat", theirs)
            library.write_dataset(rows_of(70), made, mode="append")
        except OSError as error:
            # pylance finds our manifest in the tree, which is no branch yet.
            told.append(error)

    watched["f"] = meanwhile(other, verb=verb, part=part if verb != "list" else "tree/feat/_versions/")
    if library is lance and part == "_refs/":
        esker.dataset(three).create_branch("feat", 2)
        assert told
        theirs, added = 2, []
    else:
        with pytest.raises(RefConflictError, match="already exists"):
            esker.dataset(three).create_branch("feat", 2)
        assert not told
        added = [70]
    watched.clear()
    assert esker.dataset(three).branches.list()["feat"]["parent_version"] == theirs
    agree(three, "feat", [*range(theirs), *added])
    numbers = [version["version"] for version in esker.dataset(three, version=("feat", None)).versions()]
    assert numbers == [theirs, theirs + 1][: 1 + len(added)]


@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize("at", range(20))
def test_of_two_writers_that_take_over_one_tree_one_wins(
    three: str, watched: dict[str, Watch], at: int, theirs: int
) -> None:
    """Another creation runs as a whole before the operation `at` of ours: both find the leftovers of a third one."""
    esker.dataset(three).create_branch("feat", 1).insert(rows_of(50))
    Path(three, "_refs/branches/feat.json").unlink()
    dataset = esker.dataset(three)
    outcomes: dict[str, bool] = {}

    def create(name: str, dataset: Any, version: int) -> None:
        try:
            dataset.create_branch("feat", version)
            outcomes[name] = True
        except RefConflictError:
            outcomes[name] = False

    seen = 0

    def other(verb: str, path: str) -> str | None:
        nonlocal seen
        seen += 1
        if seen == at + 1:
            in_another_thread(lambda: create("theirs", esker.dataset(three), theirs))
        return None

    watched["f"] = other
    create("ours", dataset, 2)
    watched.clear()
    assert sum(outcomes.values()) == 1
    parent = 2 if outcomes["ours"] else theirs
    found = esker.dataset(three)
    assert found.branches.list()["feat"]["parent_version"] == parent
    branch = found.checkout_version(("feat", None))
    assert [version["version"] for version in branch.versions()] == [parent]
    branch.insert(rows_of(70))
    agree(three, "feat", [*range(parent), 70])


@pytest.mark.parametrize("at", range(12))
def test_another_writer_that_dies_leaves_no_version_of_its_own_under_our_number(
    three: str, watched: dict[str, Watch], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before the operation `at` of ours another one takes over, from version 2 of another branch, and dies."""
    esker.dataset(three).create_branch("other", 1).insert(rows_of(60))
    died: list[str] = []

    def dies(log: LanceLog, path: str, data: bytes, **_: Any) -> bool:
        died.append(path)
        raise Killed

    def other() -> None:
        with monkeypatch.context() as patched, suppress(Killed, RefConflictError):
            patched.setattr(creation, "put_new", dies)
            esker.dataset(three).create_branch("feat", ("other", 2))

    seen = 0

    def ours(verb: str, path: str) -> str | None:
        nonlocal seen
        seen += 1
        if seen == at + 1:
            in_another_thread(other)
        return None

    dataset = esker.dataset(three)
    watched["f"] = ours
    dataset.create_branch("feat", 2)
    watched.clear()
    assert died or at > 4
    agree(three, "feat", [0, 1])


def test_a_branch_that_is_there_stays_as_it_is(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 1)
    for number in (10, 11):
        branch.insert(rows_of(number))
    branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    before = files_below(three)
    for parent in (1, 2, 3):
        with pytest.raises(RefConflictError, match="branch feat already exists"):
            esker.dataset(three).create_branch("feat", parent)
        assert files_below(three) == before


FAULTS = ["crash_before", "crash_after", "lose_reply", "fail"]


@pytest.mark.parametrize("leftover", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_a_branch_is_there_or_can_be_created(
    three: str, watched: dict[str, Watch], fault: str, leftover: bool
) -> None:
    for at in range(60):
        if leftover:
            esker.dataset(three).create_branch("feat", 1).insert(rows_of(50))
            Path(three, "_refs/branches/feat.json").unlink()
        dataset, seen = esker.dataset(three), 0

        def strike(verb: str, path: str, at: int = at) -> str | None:
            nonlocal seen
            seen += 1
            return fault if seen == at + 1 else None

        watched["f"] = strike
        reported = True
        try:
            dataset.create_branch("feat", 2)
        except EskerError:
            reported = False
        watched.clear()
        there = "feat" in esker.dataset(three).branches.list()
        assert there or not reported
        if not there:
            esker.dataset(three).create_branch("feat", 2)
        branch = esker.dataset(three, version=("feat", None))
        assert ([version["version"] for version in branch.versions()], ids_of(branch)) == ([2], [0, 1])
        branch.insert(rows_of(9))
        assert ids_of(esker.dataset(three, version=("feat", None))) == [0, 1, 9]
        esker.dataset(three).branches.delete("feat")
        if seen <= at:
            assert reported
            return
    raise AssertionError("expected fewer operations")


@pytest.mark.parametrize("kind", ["create", "take over", "delete", "tag"])
def test_ctrl_c_at_any_moment_leaves_a_branch_or_none(three: str, kind: str) -> None:
    def prepare() -> Any:
        dataset = esker.dataset(three)
        if kind in ("take over", "delete"):
            dataset.create_branch("feat", 1).insert(rows_of(50))
        if kind == "take over":
            Path(three, "_refs/branches/feat.json").unlink()
        return dataset

    def work(dataset: Any) -> None:
        if kind == "tag":
            dataset.tags.create("t", 2)
        elif kind == "delete":
            dataset.branches.delete("feat")
        else:
            dataset.create_branch("feat", 2)

    def clear() -> None:
        dataset = esker.dataset(three)
        if "feat" not in dataset.branches.list():
            assert ids_of(dataset.create_branch("feat", 2)) == [0, 1]
        branch = dataset.checkout_version(("feat", None))
        branch.validate()
        assert ids_of(branch) in ([0, 1], [0, 50])
        dataset.branches.delete("feat")
        for tag in dataset.tags.list():
            assert dataset.checkout_version(tag).count_rows() == 2
            dataset.tags.delete(tag)

    dataset = prepare()
    with Interrupt() as counted:
        work(dataset)
    clear()
    for number in range(len(counted.events)):
        dataset = prepare()
        with pytest.raises(KeyboardInterrupt), Interrupt(number):
            work(dataset)
        clear()


@pytest.mark.parametrize("kind", ["tag", "branch", "take over"])
def test_of_many_writers_at_once_one_wins(three: str, kind: str) -> None:
    if kind == "take over":
        esker.dataset(three).create_branch("feat", 1).insert(rows_of(50))
        Path(three, "_refs/branches/feat.json").unlink()
    start = threading.Barrier(6)

    def create(number: int) -> int | None:
        dataset = esker.dataset(three)
        start.wait()
        try:
            if kind == "tag":
                dataset.tags.create("feat", number)
            else:
                dataset.create_branch("feat", number)
        except RefConflictError:
            return None
        return number

    with ThreadPoolExecutor(6) as threads:
        won = [number for number in threads.map(create, [1, 2, 3, 1, 2, 3]) if number is not None]
    assert len(won) == 1
    dataset = esker.dataset(three)
    if kind == "tag":
        assert dataset.tags.get_version("feat") == won[0]
    else:
        assert dataset.branches.list()["feat"]["parent_version"] == won[0]
        branch = dataset.checkout_version(("feat", None))
        assert [version["version"] for version in branch.versions()] == won
        agree(three, "feat", [*range(won[0])])


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_a_deleted_branch_can_be_created_again(
    three: str, watched: dict[str, Watch], fault: str
) -> None:
    for at in range(60):
        esker.dataset(three).create_branch("feat", 1).insert(rows_of(50))
        dataset, seen = esker.dataset(three), 0

        def strike(verb: str, path: str, at: int = at) -> str | None:
            nonlocal seen
            seen += 1
            return fault if seen == at + 1 else None

        watched["f"] = strike
        reported = True
        try:
            dataset.branches.delete("feat")
        except EskerError:
            reported = False
        watched.clear()
        there = "feat" in esker.dataset(three).branches.list()
        assert not (there and reported)
        if there:
            agree(three, "feat", [0, 50])
            esker.dataset(three).branches.delete("feat")
        branch = esker.dataset(three).create_branch("feat", 2)
        assert ids_of(branch) == [0, 1]
        agree(three, "feat", [0, 1])
        esker.dataset(three).branches.delete("feat")
        if seen <= at:
            assert reported
            return
    raise AssertionError("expected fewer operations")


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("verb", ["delete", "list", "get"])
@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_branch_that_is_named_while_it_is_deleted_stays_or_the_name_is_refused(
    three: str, watched: dict[str, Watch], kind: str, verb: str, nth: int
) -> None:
    esker.dataset(three).create_branch("feat", 1).insert(rows_of(50))
    told: list[EskerError] = []
    named: list[bool] = []

    def name() -> None:
        dataset = esker.dataset(three)
        named.append(True)
        try:
            if kind == "tag":
                dataset.tags.create("t", ("feat", 2))
            else:
                dataset.create_branch("child", ("feat", 2))
        except NotFoundError as error:
            told.append(error)

    watched["f"] = meanwhile(name, verb=verb, part="", nth=nth)
    try:
        esker.dataset(three).branches.delete("feat")
        stays = False
    except RefConflictError:
        stays = True
    watched.clear()
    found = esker.dataset(three)
    assert not named or stays != bool(told)
    assert ("feat" in found.branches.list()) == stays
    assert set(found.tags.list()) == ({"t"} if stays and kind == "tag" else set())
    if stays:
        agree(three, "feat", [0, 50])
        assert ids_of(found.checkout_version("t" if kind == "tag" else ("child", None))) == [0, 50]
    else:
        assert not any(path.startswith("tree/") for path in files_below(three))
