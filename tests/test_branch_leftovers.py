"""What a deletion of a branch leaves that was broken off: no branch, and the next deletion removes it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import lance
import pytest

import esker
from esker.exceptions import NotFoundError, RefConflictError
from tests.tree_branches import Watch, agree, files_below, meanwhile, rows_of, three_versions, watched_stores


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


@pytest.fixture
def three(uri: str) -> str:
    return three_versions(uri)


def _branch(uri: str, name: str) -> None:
    branch = esker.dataset(uri).create_branch(name, 2)
    branch.insert(rows_of(10))
    branch.delete("id = 0")


def _tree(uri: str, branch: str = "") -> set[str]:
    return {path for path in files_below(uri) if path.startswith(f"tree/{branch}")}


@pytest.mark.parametrize("nth", range(10))
@pytest.mark.parametrize("fault", ["fail", "lose_reply"])
def test_a_deletion_that_was_broken_off_anywhere_is_finished_by_the_next(
    three: str, watched: dict[str, Watch], fault: str, nth: int
) -> None:
    _branch(three, "feat")
    dataset = esker.dataset(three)
    dataset.create_branch("other")
    seen: list[str] = []

    def strike(verb: str, path: str) -> str | None:
        if verb.startswith("delete"):
            seen.append(path)
            return fault if len(seen) == nth + 1 else None
        return None

    watched["f"] = strike
    with suppress(OSError):
        dataset.branches.delete("feat")
    watched.clear()
    assert seen[0].endswith("_refs/branches/feat.json")
    if "feat" not in dataset.branches.list():
        for reference in (("feat", None), ("feat", 3)):
            with pytest.raises(NotFoundError, match="branch feat of .* does not exist"):
                esker.dataset(three, version=reference)
            with pytest.raises(NotFoundError, match="branch feat of .* does not exist"):
                esker.dataset(f"{three}/tree/other", version=reference)
    if _tree(three, "feat"):
        dataset.branches.delete("feat")
    assert ([*dataset.branches.list()], _tree(three, "feat")) == (["other"], set())
    with pytest.raises(NotFoundError, match="Branch feat does not exist"):
        dataset.branches.delete("feat")


def test_leftovers_of_pylance_go_and_its_branch_below_stays(three: str) -> None:
    _branch(three, "feat")
    esker.dataset(three).create_branch("feat/x", 1).insert(rows_of(20))
    lance.dataset(three).branches.delete("feat")
    assert any(path.startswith("tree/feat/_versions") for path in _tree(three))
    esker.dataset(three).branches.delete("feat")
    assert _tree(three) == {path for path in _tree(three) if path.startswith("tree/feat/x/")}
    agree(three, "feat/x", [0, 20])


def test_leftovers_that_something_refers_to_stay(three: str) -> None:
    _branch(three, "feat")
    ref = Path(three, "_refs/branches/feat.json")
    kept = ref.read_bytes()
    esker.dataset(three, version=("feat", None)).tags.create("kept")
    ref.unlink()
    before = _tree(three)
    with pytest.raises(RefConflictError, match="referenced by tags"):
        esker.dataset(three).branches.delete("feat")
    assert _tree(three) == before
    ref.write_bytes(kept)
    agree(three, "feat", [1, 10])


def test_a_table_that_is_no_branch_is_not_deleted_as_one(three: str) -> None:
    lance.write_dataset(rows_of(5), f"{three}/tree/feat")
    with pytest.raises(NotFoundError, match="Branch feat does not exist"):
        esker.dataset(three).branches.delete("feat")
    assert esker.dataset(f"{three}/tree/feat").count_rows() == 1


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("verb", ["delete", "delete_all", "list", "get", "head"])
def test_a_branch_that_is_made_while_its_leftovers_go_is_whole(
    three: str, watched: dict[str, Watch], verb: str, nth: int
) -> None:
    _branch(three, "feat")
    Path(three, "_refs/branches/feat.json").unlink()
    dataset = esker.dataset(three)
    watched["f"] = meanwhile(lambda: esker.dataset(three).create_branch("feat", 1), verb=verb, part="", nth=nth)
    with suppress(RefConflictError, NotFoundError):
        dataset.branches.delete("feat")
    watched.clear()
    if dataset.branches.list():
        esker.dataset(three, version=("feat", None)).insert(rows_of(30))
        agree(three, "feat", [0, 30])


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("verb", ["put", "put_if_absent", "list", "get", "head"])
def test_a_deletion_while_a_branch_is_made_leaves_it_whole(
    three: str, watched: dict[str, Watch], verb: str, nth: int
) -> None:
    dataset = esker.dataset(three)

    def delete() -> None:
        with suppress(RefConflictError, NotFoundError):
            esker.dataset(three).branches.delete("feat")

    watched["f"] = meanwhile(delete, verb=verb, part="", nth=nth)
    dataset.create_branch("feat", 2)
    watched.clear()
    if dataset.branches.list():
        agree(three, "feat", [0, 1])


@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize(("verb", "nth"), [("list", 2), ("head", 1), ("list_unfinished", 1), ("list_unfinished", 5)])
def test_a_branch_that_is_made_anew_while_it_is_deleted_keeps_what_is_committed_to_it(
    three: str, watched: dict[str, Watch], verb: str, nth: int, theirs: int
) -> None:
    """The deletion has found the old branch's versions, which have the same numbers."""
    esker.dataset(three).create_branch("feat", 2).insert(rows_of(50))
    dataset = esker.dataset(three)

    def make_anew() -> None:
        esker.dataset(three).create_branch("feat", theirs).insert(rows_of(70))

    part = {"list": "_refs/branches/", "head": "feat.json"}.get(verb, "tree/feat/")
    watched["f"] = meanwhile(make_anew, verb=verb, part=part, nth=nth)
    dataset.branches.delete("feat")
    watched.clear()
    agree(three, "feat", [*range(theirs), 70])


def test_a_branch_that_is_deleted_while_its_metadata_are_replaced_stays_deleted(
    three: str, watched: dict[str, Watch]
) -> None:
    _branch(three, "feat")
    dataset = esker.dataset(three)
    watched["f"] = meanwhile(lambda: esker.dataset(three).branches.delete("feat"), verb="put", part="feat.json")
    with pytest.raises(NotFoundError, match="Branch feat does not exist"):
        dataset.branches.replace_metadata("feat", {"a": "b"})
    watched.clear()
    assert not dataset.branches.list()
    dataset.create_branch("feat", 1)
    agree(three, "feat", [0])


@pytest.mark.parametrize("has_ref", [True, False])
@pytest.mark.parametrize("theirs", [1, 2, 3])
def test_a_branch_that_is_made_between_the_look_and_the_removal_has_its_own_rows(
    three: str, watched: dict[str, Watch], theirs: int, has_ref: bool
) -> None:
    """Not those of the branch that was deleted, whose versions have the same numbers."""
    old = esker.dataset(three).create_branch("feat", 1)
    old.insert(rows_of(50))
    old.insert(rows_of(51))
    dataset = esker.dataset(three)
    if not has_ref:
        Path(three, "_refs/branches/feat.json").unlink()
    watched["f"] = meanwhile(
        lambda: esker.dataset(three).create_branch("feat", theirs), verb="delete", part="tree/feat/_versions/"
    )
    with suppress(RefConflictError):
        dataset.branches.delete("feat")
    watched.clear()
    agree(three, "feat", [*range(theirs)])


def test_a_tag_whose_deletion_got_no_reply_is_deleted(three: str, watched: dict[str, Watch]) -> None:
    dataset = esker.dataset(three)
    dataset.tags.create("first", 1)
    watched["f"] = lambda verb, path: "lose_reply" if verb == "delete" else None
    dataset.tags.delete("first")
    watched["f"] = lambda verb, path: "fail" if verb == "delete" else None
    dataset.tags.create("second", 1)
    with pytest.raises(OSError, match="injected"):
        dataset.tags.delete("second")
    watched.clear()
    assert [*dataset.tags.list()] == ["second"]


def test_a_branch_is_opened_by_its_ref_alone(three: str, watched: dict[str, Watch]) -> None:
    """One request for the ref, and none for the main line."""
    _branch(three, "feat")
    asked: list[str] = []
    watched["f"] = lambda verb, path: asked.append(f"{verb} {path.removeprefix(three)}")
    assert esker.dataset(three, version=("feat", None)).version == 4
    watched.clear()
    assert [one.split("/_")[0] for one in asked] == ["head ", "list /tree/feat", "get /tree/feat"]


def test_branches_open_by_the_address_of_another(three: str) -> None:
    _branch(three, "feat")
    esker.dataset(three).create_branch("other", 1)
    for name, version in {"feat": 4, "other": 1, "main": 3}.items():
        assert esker.dataset(f"{three}/tree/other", version=(name, None)).version == version
    shutil.rmtree(f"{three}/tree/feat")
    with pytest.raises(NotFoundError, match="no table"):
        esker.dataset(three, version=("feat", None))
