"""A repository against a plain model: branches are maps, commits are maps with parents, a merge is three maps."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from esker.repo import MergeConflictError, NoChangesError, Repository, repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs

Content = dict[str, str]
PATHS = st.sampled_from([f"{folder}{name}" for folder in ("", "a/", "b/") for name in "wxyz"])
# Few contents, so that the same stands at several paths.
TEXTS = st.sampled_from(["1", "2", "3"])
CHANGES = st.dictionaries(PATHS, st.none() | TEXTS, min_size=1, max_size=5)
BRANCHES = st.sampled_from(["main", "dev", "x/y"])
NUMBERS = itertools.count()


def merged(base: Content, source: Content, dest: Content, strategy: str | None) -> Content | None:
    result: Content = {}
    for path in {*base, *source, *dest}:
        b, s, d = base.get(path), source.get(path), dest.get(path)
        if s == d or d == b:
            taken = s
        elif s == b:
            taken = d
        elif strategy is None:
            return None
        else:
            taken = s if strategy == "source-wins" else d
        if taken is not None:
            result[path] = taken
    return result


class RepositoryMachine(RuleBasedStateMachine):
    """Every step is made in the repository and in the model; both must look the same after it."""

    @initialize()
    def create(self) -> None:
        self.repo = Repository.create(f"memory://model-{next(NUMBERS)}", committer="me")
        # Small ranges, so that there are many.
        self.repo.change_settings(max_range_size=900, raggedness=3)
        first = self.repo.ref("main").get_commit().id
        self.contents: dict[str, Content] = {first: {}}
        self.parents: dict[str, tuple[str, ...]] = {first: ()}
        self.heads = {"main": first}
        self.tags: dict[str, str] = {}

    def record(self, branch: str, content: Content) -> None:
        commit = self.repo.ref(branch).get_commit()
        assert commit.parents[0] == self.heads[branch]
        self.contents[commit.id] = content
        self.parents[commit.id] = commit.parents
        self.heads[branch] = commit.id

    @rule(
        branch=BRANCHES,
        changes=st.dictionaries(PATHS, st.none() | TEXTS, min_size=1, max_size=5),
        transact=st.booleans(),
    )
    def commit(self, branch: str, changes: dict[str, str | None], transact: bool) -> None:
        if branch not in self.heads:
            return
        before = self.contents[self.heads[branch]]
        after = {**before, **{path: text for path, text in changes.items() if text is not None}}
        after = {path: text for path, text in after.items() if changes.get(path, "") is not None}

        def change() -> None:
            if transact:
                with self.repo.branch(branch).transact("change", committer="me") as tx:
                    for path, text in changes.items():
                        tx.object(path).delete() if text is None else tx.object(path).upload(text)
                return
            for path, text in changes.items():
                target = self.repo.branch(branch).object(path)
                target.delete() if text is None else target.upload(text)
            self.repo.branch(branch).commit("change", committer="me")

        try:
            change()
        except NoChangesError:
            assert before == after
            self.repo.branch(branch).reset_changes()
        else:
            assert before != after
            self.record(branch, after)

    @rule(branch=BRANCHES, source=BRANCHES)
    def create_branch(self, branch: str, source: str) -> None:
        if branch in self.heads or source not in self.heads:
            return
        self.repo.branch(branch).create(source)
        self.heads[branch] = self.heads[source]

    @rule(branch=BRANCHES)
    def delete_branch(self, branch: str) -> None:
        if branch in self.heads and branch != "main":
            self.repo.branch(branch).delete()
            del self.heads[branch]

    @rule(branch=BRANCHES, name=st.sampled_from(["t1", "t2", "t3"]))
    def tag(self, branch: str, name: str) -> None:
        if branch in self.heads and name not in self.tags:
            self.repo.tag(name).create(branch)
            self.tags[name] = self.heads[branch]

    @rule(source=BRANCHES, dest=BRANCHES, strategy=st.sampled_from([None, "source-wins", "dest-wins"]))
    def merge(self, source: str, dest: str, strategy: str | None) -> None:
        if source not in self.heads or dest not in self.heads:
            return
        ours, theirs = self.heads[source], self.heads[dest]
        base = self.repo._core.commits.merge_base(theirs, ours)
        assert base is not None
        assert base.id in self.ancestors(ours) & self.ancestors(theirs)
        expected = merged(self.contents[base.id], self.contents[ours], self.contents[theirs], strategy)
        try:
            self.repo.branch(source).merge_into(dest, strategy=strategy, committer="me")
        except NoChangesError:
            assert base.id == ours
        except MergeConflictError:
            assert expected is None
        else:
            assert expected is not None
            self.record(dest, expected)

    def ancestors(self, id: str) -> set[str]:
        found, waiting = set(), [id]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self.parents[one])
        return found

    @rule(branch=BRANCHES, back=st.integers(0, 3))
    def revert(self, branch: str, back: int) -> None:
        if branch not in self.heads:
            return
        commit = self.heads[branch]
        for _ in range(back):
            commit = self.parents[commit][0] if self.parents[commit] else commit
        if len(self.parents[commit]) > 1:
            return
        before = self.contents[self.parents[commit][0]] if self.parents[commit] else {}
        head = self.contents[self.heads[branch]]
        expected = merged(self.contents[commit], before, head, None)
        try:
            self.repo.branch(branch).revert(commit, committer="me")
        except NoChangesError:
            assert expected == head
        except MergeConflictError:
            assert expected is None
        else:
            assert expected is not None
            self.record(branch, expected)

    @rule(branch=BRANCHES, back=st.integers(0, 3))
    def reset(self, branch: str, back: int) -> None:
        if branch not in self.heads:
            return
        commit = self.heads[branch]
        for _ in range(back):
            commit = self.parents[commit][0] if self.parents[commit] else commit
        self.repo.branch(branch).reset_to(commit)
        self.heads[branch] = commit

    @rule(branch=BRANCHES)
    def repack(self, branch: str) -> None:
        if branch not in self.heads:
            return
        try:
            self.repo.branch(branch).repack(committer="me")
        except NoChangesError:
            return
        self.record(branch, self.contents[self.heads[branch]])

    @rule(branch=BRANCHES)
    def maintain(self, branch: str) -> None:
        self.repo.pack_refs()
        if branch in self.heads:
            # As if all entries were old.
            self.repo._core.log(branch).compact(keep=2, younger_than_s=-3600)

    @precondition(lambda self: len(self.contents) > 3)
    @rule()
    def collect(self) -> None:
        # All is young: nothing that a commit leads to may go, whatever the grace period.
        self.repo.gc(dry_run=False, grace_s=-3600)

    @rule()
    def open_again(self) -> None:
        self.repo = repository(self.repo.uri)

    @invariant()
    def looks_the_same(self) -> None:
        assert [branch.id for branch in self.repo.branches()] == sorted(self.heads)
        for ref, commit in {**self.heads, **self.tags}.items():
            found = self.repo.ref(ref)
            assert found.get_commit().id == commit
            content = {entry.path: entry for entry in found.objects()}
            assert list(content) == sorted(self.contents[commit])

    def teardown(self) -> None:
        if not hasattr(self, "repo"):
            return
        assert list(repository(self.repo.uri).fsck()) == []
        for ref, commit in self.heads.items():
            found = self.repo.ref(ref)
            texts = {entry.path: found.object(entry.path).reader("r").read() for entry in found.objects()}
            assert texts == self.contents[commit]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits pack and join packs every now and then, so that a short history has some."""
    monkeypatch.setattr(ref_move, "PACK_COMMITS", 3)
    monkeypatch.setattr(ref_move, "UPKEEP_EVERY", 4)
    monkeypatch.setattr(commit_packs, "JOINED", 2)


TestRepository = RepositoryMachine.TestCase
TestRepository.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
