"""Merge bases in histories of any shape, those in which merges cross among them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from esker._native.store import Store
from esker.repo import MergeConflictError, Repository
from esker.repo.refs.commits import Commit, CommitStore

NUMBERS = itertools.count()


def ancestors(parents: dict[str, tuple[str, ...]], id: str) -> set[str]:
    found: set[str] = set()
    waiting = [id]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(parents[one])
    return found


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_common_ancestor_comes_from_the_base(data: st.DataObject) -> None:
    commits: list[Commit] = []
    store = CommitStore(Store("memory://merge-bases"))
    for n in range(data.draw(st.integers(1, 14))):
        parents = data.draw(st.lists(st.sampled_from(commits), max_size=2, unique_by=lambda c: c.id)) if commits else []
        date = data.draw(st.integers(0, 2))
        commit = Commit.make(
            committer="me", message=str(n), meta_range_id="", creation_date=date, parents=tuple(parents)
        )
        commits.append(commit)
        store.remember(commit)
    graph = {commit.id: commit.parents for commit in commits}
    for left, right in itertools.product(commits, commits):
        common = ancestors(graph, left.id) & ancestors(graph, right.id)
        base = store.merge_base(left.id, right.id)
        assert (base is None) == (not common)
        if base is not None:
            assert base.id in common
            assert not any(base.id in ancestors(graph, other) - {other} for other in common)
            assert store.merge_base(right.id, left.id) == base


# Commits with their parents, two heads, and what lakeFS's own tests accept as the base.
SHAPES = [
    ("o; a<o; b<o; c<a; d<b", "c d", "o"),
    ("o; a<o; b<a; c<b; d<b", "c d", "b"),
    ("o; a<o; b<o; c<a+b; d<a+b; e<c; f<d", "e f", "a b"),
    ("o; a<o; b<a", "b a", "a"),
    ("o; a<o; p; q<p", "a q", ""),
    ("o; b<o; a<o+b; c<a; d<b", "c d", "b"),
    ("a; b<a; c<b; d<c; x<d+a; y<b", "x y", "b"),
    ("e; d<e; f<e; c<d; b<c; a<b; g<b+e; h<a+f", "g h", "b"),
    ("o; a<o; b<o", "b b", "b"),
    ("o; a<o; b<o; c<a+b; d<b; l<c+d; r<o", "l r", "o"),
    ("o; a<o; b<o; x<a+b; l<o+x; m<x+l; n<l+m; r<o+x; s<x+r; t<r+s", "n t", "x"),
]


@pytest.mark.parametrize(("history", "heads", "expected"), SHAPES)
def test_bases_are_those_of_lakefs(history: str, heads: str, expected: str) -> None:
    store = CommitStore(Store("memory://merge-bases"))
    made: dict[str, Commit] = {}
    for said in history.split("; "):
        name, _, parents = said.partition("<")
        found = tuple(made[parent] for parent in parents.split("+") if parent)
        made[name] = Commit.make(committer="me", message=name, meta_range_id="", creation_date=0, parents=found)
        store.remember(made[name])
    for left, right in (heads.split(), heads.split()[::-1]):
        base = store.merge_base(made[left].id, made[right].id)
        assert (base.message if base else "") in (expected.split() or [""])


def repo_with(paths: dict[str, str]) -> Repository:
    repo = Repository.create(f"memory://base-{next(NUMBERS)}", committer="me")
    write(repo, "main", paths)
    return repo


def write(repo: Repository, branch: str, paths: Mapping[str, str | None]) -> None:
    with repo.branch(branch).transact("change") as tx:
        for path, text in paths.items():
            if text is None:
                tx.object(path).delete()
            else:
                tx.object(path).upload(text)


def read(repo: Repository, ref: str) -> dict[str, str]:
    found = repo.ref(ref)
    return {entry.path: found.object(entry.path).reader("r").read() for entry in found.objects()}


@pytest.mark.parametrize("younger", ["main", "dev"])
def test_merges_that_cross_have_one_base_the_younger_of_two(younger: str) -> None:
    repo = repo_with({"a": "0", "b": "0"})
    repo.branch("dev").create("main")
    heads = {}
    for branch, path in (("main", "a"), ("dev", "b")):
        repo.branch(branch).object(path).upload(branch)
        heads[branch] = repo.branch(branch).commit(branch, date=2 if branch == younger else 1).id
    repo.ref(heads["dev"]).merge_into("main")
    repo.ref(heads["main"]).merge_into("dev")
    base = repo._core.commits.merge_base(*(repo.ref(ref).get_commit().id for ref in ("main", "dev")))
    assert base is not None
    assert base.id == heads[younger]
    # Both have both. What one does next is compared with a base that has one of the two changes: where that is not its
    # own, the other side seems to have changed it as well. So it is with lakeFS.
    write(repo, "main", {"a": None, "c": "1"})
    write(repo, "dev", {"d": "1"})
    if younger == "main":
        repo.ref("dev").merge_into("main")
        assert read(repo, "main") == {"b": "dev", "c": "1", "d": "1"}
    else:
        with pytest.raises(MergeConflictError) as caught:
            repo.ref("dev").merge_into("main")
        assert [conflict.path for conflict in caught.value.conflicts] == ["a"]
        repo.ref("dev").merge_into("main", strategy="dest-wins")
        assert read(repo, "main") == {"b": "dev", "c": "1", "d": "1"}


def test_a_branch_that_was_merged_into_both_sides_is_not_their_base() -> None:
    # A search that ends at the first commit found from both sides takes the head of `tools` for the base, in which `g`
    # was not there: main's deletion of it would count for nothing.
    repo = repo_with({"f": "1"})
    repo.branch("tools").create("main")
    write(repo, "tools", {"t": "1"})
    for n in range(3):
        write(repo, "main", {"g": str(n)})
    repo.branch("side").create("main")
    write(repo, "side", {"s": "1"})
    write(repo, "main", {"g": None})
    repo.ref("tools").merge_into("main")
    repo.ref("tools").merge_into("side")
    repo.ref("side").merge_into("main")
    assert read(repo, "main") == {"f": "1", "s": "1", "t": "1"}
