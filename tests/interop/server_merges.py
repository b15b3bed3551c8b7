"""Merges beside a real lakeFS server, over random histories in which merges cross. Part of `make interop`.

Each merge is compared with a plain one, path by path over what the server says is the base, and with esker's. They may
differ in what docs/repositories.md tells of and in nothing else: another base where several would do or where the
server's search ends early, and the two defects of the server's merge, which take a path's neighbour for the path.
`ESKER_INTEROP_HISTORIES` is how many histories there are.
"""

from __future__ import annotations

import bisect
import itertools
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from esker.repo import Repository
from esker.repo.refs.commits import Commit

from .lakefs_server import LakeFS
from .told import move_in, our_diff, our_merge, ours, their_diff, their_merge, theirs

HISTORIES = int(os.environ.get("ESKER_INTEROP_HISTORIES", "8"))
BRANCHES = ["main", "one", "two", "three"]
PATHS = [f"{folder}/{name}" for folder in "abc" for name in "uvwxyz"]
Content = dict[str, str]
"""Checksums by path: what two objects of this test must share to be the same."""


def history(folder: Path, numbers: random.Random, commits: int, texts: int) -> Repository:
    """Commits and merges between four branches, with `texts` different contents; dates are often the same."""
    repository = Repository.create(str(folder))
    repository.change_settings(raggedness=3)
    for name in BRANCHES[1:]:
        repository.branch(name).create("main")
    made, merges = 0, numbers.choice([0.4, 0.6, 0.8])
    while made < commits:
        branch = repository.branch(numbers.choice(BRANCHES))
        if numbers.random() < merges:
            source = numbers.choice([name for name in BRANCHES if name != branch.id])
            strategy = numbers.choice(["source-wins", "dest-wins"])
            if our_merge(repository, source, branch.id, strategy=strategy) == "merged":
                made += 1
                continue
        for path in numbers.sample(PATHS, numbers.randrange(1, 5)):
            if branch.object(path).exists() and numbers.random() < 0.4:
                branch.object(path).delete()
            else:
                branch.object(path).upload(str(numbers.randrange(texts)))
        date = numbers.choice([None, 1_700_000_000, 1_700_000_000 + numbers.randrange(3)])
        branch.commit(f"commit {made}", date=date, allow_empty=True)
        made += 1
    return repository


def plain_merge(base: Content, source: Content, dest: Content) -> tuple[Content, set[str]]:
    """What path by path comes of a merge, and the paths in conflict, of which it has the source's side."""
    merged: Content = {}
    conflicts = set()
    for path in {*base, *source, *dest}:
        was, mine, other = base.get(path), source.get(path), dest.get(path)
        if mine != other and was not in (mine, other):
            conflicts.add(path)
        kept = other if mine == was else mine
        if kept is not None:
            merged[path] = kept
    return merged, conflicts


def mistaken(path: str, base: Content, source: Content, dest: Content) -> bool:
    """Whether the server takes the base's next path for this one, which the base has not."""
    ordered = sorted(base)
    at = bisect.bisect_left(ordered, path)
    if path in base or at == len(ordered):
        return False
    return base[ordered[at]] in (source.get(path), dest.get(path))


class History:
    """One history, with us and at the server."""

    def __init__(self, lakefs: LakeFS, repository: Repository, name: str) -> None:
        self.lakefs, self.repository, self.name = lakefs, repository, name
        self.commits: dict[str, Commit] = {}
        for branch in BRANCHES:
            self.commits |= {commit.id: commit for commit in repository.ref(branch).log()}
        self.found: Counter[str] = Counter()
        self.scratch = itertools.count()

    def ancestors(self, id: str) -> set[str]:
        """A commit and all that it comes from."""
        found: set[str] = set()
        waiting = [id]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self.commits[one].parents)
        return found

    def content(self, id: str) -> Content:
        """What a commit holds."""
        return {path: checksum for path, _, _, checksum in ours(self.repository.ref(id))}

    def bases(self, source: str, dest: str) -> tuple[str, str]:
        """The server's base and ours, each of which must be what the docs say that it is."""
        # This answers as if the one were the other, and where several bases would do, that counts.
        said = self.lakefs.call("GET", "repositories", self.name, "refs", dest, "merge", source)
        assert (said["source_commit_id"], said["destination_commit_id"]) == (source, dest)
        their = said["base_commit_id"]
        common = self.ancestors(source) & self.ancestors(dest)
        best = [id for id in common if not any(id in self.ancestors(other) - {other} for other in common)]
        ranked = sorted(best, key=lambda id: (-self.commits[id].generation, -self.commits[id].creation_date, id))
        found = self.repository._core.commits.merge_base(source, dest)
        assert found is not None
        assert found.id == ranked[0]
        assert their in common
        if their != found.id:
            self.found["bases: one of several" if their in best else "bases: an older one"] += 1
        return their, found.id

    def merged(self, source: str, dest: str, strategy: str | None) -> tuple[str, str]:
        """What becomes of a merge at the server and with us, and the branches that it went into."""
        name = f"scratch-{next(self.scratch)}"
        body = {"name": name, "source": dest}
        self.lakefs.call("POST", "repositories", self.name, "branches", body=body)
        self.repository.branch(name).create(dest)
        options = {"strategy": strategy} if strategy else {}
        their = their_merge(self.lakefs, self.name, source, name, **options)
        our = our_merge(self.repository, source, name, strategy=strategy)
        self.their_result = {path: checksum for path, _, _, checksum in theirs(self.lakefs, self.name, name)}
        self.our_result = self.content(name)
        return their, our

    def compare(self, source: str, dest: str) -> None:
        """Merges one commit into another, by both and plainly."""
        their_base, our_base = self.bases(source, dest)
        sides = self.content(source), self.content(dest)
        expected, conflicts = plain_merge(self.content(our_base), *sides)
        their_expected, their_conflicts = plain_merge(self.content(their_base), *sides)
        odd = {path for path in {*sides[0], *sides[1]} if mistaken(path, self.content(their_base), *sides)}
        for strategy in (None, "source-wins", "dest-wins"):
            their, our = self.merged(source, dest, strategy)
            self.found["merges"] += 1
            if self.commits[our_base].meta_range_id == self.commits[source].meta_range_id:
                assert our == "nothing"
            elif conflicts and strategy is None:
                assert our == "conflict"
            else:
                assert our == "merged"
                wins = sides[0] if strategy != "dest-wins" else sides[1]
                assert self.our_result == with_sides(expected, conflicts, wins)
            if their == "nothing":
                assert self.content(their_base) == sides[0]
                self.found["nothing to merge"] += 1
            elif their == "conflict":
                assert strategy is None
                assert their_conflicts
            else:
                seen = their_conflicts if strategy else their_conflicts - odd
                assert not seen or strategy
                wins = sides[0] if strategy != "dest-wins" else sides[1]
                wanted = with_sides(their_expected, their_conflicts, wins)
                assert without(self.their_result, odd) == without(wanted, odd)
                self.found["paths the server mistook"] += self.their_result != wanted
            same = (their, self.their_result) == (our, self.our_result)
            self.found["the same"] += same
            assert same or odd or their_base != our_base, (source, dest, strategy)
        if their_base == our_base:
            diffs = [their_diff(self.lakefs, self.name, dest, source, "three_dot")]
            diffs.append(our_diff(self.repository, dest, source, "three_dot"))
            assert diffs[0] == diffs[1], (source, dest)
        assert their_diff(self.lakefs, self.name, dest, source) == our_diff(self.repository, dest, source)


def with_sides(merged: Content, conflicts: set[str], wins: Content) -> Content:
    """A merge in which one side has decided the conflicts."""
    return without(merged, conflicts) | {path: wins[path] for path in conflicts if path in wins}


def without(content: Content, paths: set[str]) -> Content:
    """A content without some paths."""
    return {path: checksum for path, checksum in content.items() if path not in paths}


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_merges_differ_in_what_the_docs_tell_alone(lakefs: LakeFS, tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    # Where contents repeat, so do identities, and the server mistakes one path for another.
    texts = 10**9 if seed % 3 else 4
    repository = history(tmp_path / "lake", numbers, 25, texts)
    name = f"history-{seed}"
    move_in(lakefs, repository, name)
    both = History(lakefs, repository, name)
    heads = [repository.ref(branch).get_commit().id for branch in BRANCHES]
    pairs = list(itertools.permutations(heads, 2))
    pairs += [(first, second) for first, second in (numbers.sample(sorted(both.commits), 2) for _ in range(12))]
    for source, dest in dict.fromkeys(pairs):
        if source != dest:
            both.compare(source, dest)
    print(f"history {seed}: {len(both.commits)} commits, {dict(both.found)}")
    assert both.found["the same"] > both.found["merges"] / 2


def test_a_branch_that_went_into_both_sides_is_the_servers_base_and_not_ours(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))

    def write(branch: str, **texts: str | None) -> None:
        for path, text in texts.items():
            if text is None:
                repository.branch(branch).object(path).delete()
            else:
                repository.branch(branch).object(path).upload(text)
        repository.branch(branch).commit("change")

    write("main", f="1")
    repository.branch("tools").create("main")
    write("tools", t="2")
    for n in range(3):
        write("main", g=f"g{n}")
    repository.branch("side").create("main")
    write("side", s="3")
    write("main", g=None)
    for dest in ("main", "side"):
        repository.ref("tools").merge_into(dest)
    repository.branch("one").create("main")
    repository.branch("two").create("side")
    repository.branch("three").create("tools")
    move_in(lakefs, repository, "both-sides")
    both = History(lakefs, repository, "both-sides")
    side, main = (repository.ref(name).get_commit().id for name in ("side", "main"))
    both.compare(side, main)
    both.compare(main, side)
    assert both.found["bases: one of several"] == 2
    assert both.merged(side, main, None) == ("merged", "merged")
    # What main has deleted comes back at the server.
    assert sorted(both.their_result) == ["f", "g", "s", "t"]
    assert sorted(both.our_result) == ["f", "s", "t"]
