"""Requests that fail after the put which makes a clone, a branch or a tag: no error says that it was not made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.exceptions import CommitStateUnknownError, IOFailedError, NotFoundError
from tests.tree_branches import Watch, ids_of, three_versions, watched_stores

VERBS: dict[str, Callable[[Any, str], object]] = {
    "shallow clone": lambda dataset, there: dataset.shallow_clone(there, 2),
    "deep clone": lambda dataset, there: dataset.deep_clone(there, 2),
    "branch": lambda dataset, _: dataset.create_branch("x", 2),
    "tag": lambda dataset, _: dataset.tags.create("x", 2),
}


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


def _failing(fault: str, nth: int, seen: list[str]) -> Watch:
    """A watch that has the nth operation fail, and notes them all."""

    def watch(verb: str, _path: str) -> str | None:
        seen.append(verb)
        return fault if len(seen) == nth else None

    return watch


def _is_made(verb: str, uri: str, there: str) -> bool:
    if "clone" not in verb:
        return bool((Path(uri) / "_refs").exists() and [*(Path(uri) / "_refs").rglob("x.json")])
    try:
        return ids_of(esker.dataset(there)) == [0, 1]
    except NotFoundError:
        return False


@pytest.mark.parametrize("fault", ["fail", "lose_reply"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_failing_request_is_told_as_what_it_is(
    verb: str, fault: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    outcomes: set[tuple[str, bool]] = set()
    for nth in range(1, 60):
        uri, there = three_versions(str(tmp_path / f"t{nth}")), str(tmp_path / f"c{nth}")
        dataset, seen = esker.dataset(uri), list[str]()
        watched["f"] = _failing(fault, nth, seen)
        outcome = "done"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                VERBS[verb](dataset, there)
        except CommitStateUnknownError:
            outcome = "unknown"
        except IOFailedError:
            outcome = "failed"
        watched.clear()
        outcomes.add((outcome, _is_made(verb, uri, there)))
        if len(seen) < nth:
            break
    assert outcomes >= {("done", True), ("failed", False), ("unknown", True)}
    assert ("failed", True) not in outcomes
    assert ("done", False) not in outcomes


def test_the_error_says_that_the_clone_is_there(watched: dict[str, Watch], tmp_path: Path) -> None:
    dataset, there = esker.dataset(three_versions(str(tmp_path / "t"))), str(tmp_path / "c")
    put: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent":
            put.append(path)
        return "fail" if put and verb != "put_if_absent" else None

    watched["f"] = watch
    with pytest.raises(CommitStateUnknownError, match="is there, but could not be opened.*do not clone again"):
        dataset.shallow_clone(there, 2)
    watched.clear()
    assert ids_of(esker.dataset(there)) == [0, 1]


CHANGES: dict[str, Callable[[Any], object]] = {
    "tag moves": lambda dataset: dataset.tags.update("x", 3),
    "tag's metadata": lambda dataset: dataset.tags.replace_metadata("x", {"a": "b"}),
    "branch's metadata": lambda dataset: dataset.branches.replace_metadata("x", {"a": "b"}),
}


def _named(dataset: Any) -> Any:
    return dataset.tags.list()["x"], dataset.branches.list()["x"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_tag_or_branch_whose_reply_is_lost_is_looked_up(
    change: str, watched: dict[str, Watch], uri: str
) -> None:
    dataset = esker.dataset(three_versions(uri))
    dataset.tags.create("x", 2)
    dataset.create_branch("x", 2)
    before, put = _named(dataset), list[str]()

    def watch(verb: str, path: str) -> str | None:
        if verb == "put":
            put.append(path)
        return fault if verb == "put" or (is_blind and put) else None

    fault, is_blind = "fail", False
    watched["f"] = watch
    with pytest.raises(IOFailedError) as refused:
        CHANGES[change](dataset)
    assert not isinstance(refused.value, CommitStateUnknownError)
    watched.clear()
    assert _named(dataset) == before
    fault, is_blind = "lose_reply", True
    put.clear()
    watched["f"] = watch
    with pytest.raises(CommitStateUnknownError, match=r"x\.json of .* was changed is not known"):
        CHANGES[change](dataset)
    is_blind = False
    CHANGES[change](dataset)
    watched.clear()
    assert _named(dataset) != before


def test_a_branch_whose_ref_is_gone_is_told_to_be_so(watched: dict[str, Watch], uri: str) -> None:
    dataset = esker.dataset(three_versions(uri))
    dataset.create_branch("x", 2)
    deleted: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if verb == "delete":
            deleted.append(path)
        return "fail" if deleted and verb.startswith("list") else None

    watched["f"] = watch
    with pytest.raises(IOFailedError, match="branch x of .* is gone already, but files .* delete it again"):
        dataset.branches.delete("x")
    watched.clear()
    assert dataset.branches.list() == {}
    dataset.branches.delete("x")
    assert not [*Path(uri).glob("tree/**/*.manifest")]


@pytest.mark.parametrize("name", ["tags", "branches"])
def test_a_deletion_whose_reply_is_lost_and_that_nobody_can_look_up_is_in_doubt(
    name: str, watched: dict[str, Watch], uri: str
) -> None:
    dataset = esker.dataset(three_versions(uri))
    dataset.tags.create("x", 2)
    dataset.create_branch("x", 2)
    deleted: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if verb == "delete":
            deleted.append(path)
            return "lose_reply"
        return "fail" if deleted else None

    watched["f"] = watch
    with pytest.raises(CommitStateUnknownError, match=rf"whether _refs/{name}/x\.json of .* was deleted is not known"):
        getattr(dataset, name).delete("x")
    watched.clear()
    assert getattr(dataset, name).list() == {}
