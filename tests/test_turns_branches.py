"""pylance and esker take turns on the branches and tags of one table: both see what a plain model holds.

A longer walk by hand: `ESKER_TURNS=500 ESKER_TURNS_SEED=7 pytest tests/test_turns_branches.py`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

TURNS = int(os.environ.get("ESKER_TURNS", "40"))
SEED = int(os.environ.get("ESKER_TURNS_SEED", "1"))
NAMES = ["feat", "feat/x", "feat/x/y", "team/a", "team/data", "b"]

Place = tuple[str | None, int]


class Walk:
    """The table, the model, and what was done."""

    def __init__(self, uri: str, seed: int, *, stable: bool, names: str) -> None:
        self.uri = uri
        self.random = random.Random(seed)
        self.next = 1
        self.history: list[str] = []
        self.versions: dict[str | None, dict[int, frozenset[int]]] = {None: {1: frozenset({0})}}
        self.parents: dict[str, Place] = {}
        self.tags: dict[str, Place] = {}
        rows = pa.table({"id": pa.array([0], pa.int64())})
        esker.write_dataset(rows, uri, enable_stable_row_ids=stable, enable_v2_manifest_paths=names == "V2")

    def folder(self, branch: str | None) -> str:
        return self.uri if branch is None else f"{self.uri}/tree/{branch}"

    def place(self) -> Place:
        branch = self.random.choice(list(self.versions))
        return branch, self.random.choice(list(self.versions[branch]))

    def reference(self, place: Place, library: Any) -> Any:
        """One of the ways in which a version can be named."""
        tags = [name for name, tagged in self.tags.items() if tagged == place]
        return self.random.choice([place, *tags])

    def handle(self, library: Any) -> Any:
        """The table, by any of its branches."""
        return library.dataset(self.folder(self.random.choice(list(self.versions))))

    def step(self) -> None:
        library = self.random.choice([esker, lance])
        verb = self.random.choice(
            ["write", "write", "write", "branch", "branch", "unbranch", "tag", "move", "untag", "clean", "clone"],
        )
        self.history.append(f"{library.__name__} {verb}")
        self.history[-1] += f": {getattr(self, verb)(library)}"
        self.check()

    def write(self, library: Any) -> str:
        branch = self.random.choice(list(self.versions))
        versions = self.versions[branch]
        latest = max(versions)
        rows, uri = set(versions[latest]), self.folder(branch)
        kind = self.random.choice(["append", "append", "delete", "overwrite", "restore"])
        if kind == "restore":
            number = self.random.choice(list(versions))
            library.dataset(uri, version=number).restore()
            rows = set(versions[number])
        elif kind == "delete":
            gone = {row for row in rows if row % 3 == 1}
            if not gone:
                return "nothing to delete"
            library.dataset(uri).delete("id % 3 = 1")
            rows -= gone
        else:
            new = [self.next, self.next + 1]
            self.next += 2
            library.write_dataset(pa.table({"id": pa.array(new, pa.int64())}), uri, mode=kind)
            rows = {*new} | (rows if kind == "append" else set())
        versions[latest + 1] = frozenset(rows)
        return f"{kind} on {branch}"

    def branch(self, library: Any) -> str:
        name, place = self.random.choice(NAMES), self.place()
        if name in self.versions:
            # pylance refuses as well, with an error about something inside it.
            with pytest.raises(OSError, match="already exists"):
                esker.dataset(self.uri).create_branch(name, place)
            return f"{name} is there"
        if list(Path(self.folder(name), "_versions").glob("*.manifest")):
            # What pylance left of a branch beside another one, it cannot take over itself.
            library = esker
        made = self.handle(library).create_branch(name, self.reference(place, library))
        assert (made.version, made.uri) == (place[1], self.folder(name))
        self.versions[name] = {place[1]: self.versions[place[0]][place[1]]}
        self.parents[name] = place
        return f"{name} from {place}"

    def unbranch(self, library: Any) -> str:
        if not self.parents:
            return "no branch"
        name = self.random.choice(list(self.parents))
        named = name in {parent for parent, _ in self.parents.values()} or name in {b for b, _ in self.tags.values()}
        if named:
            with pytest.raises(OSError, match=f"Branch {name} is referenced"):
                library.dataset(self.uri).branches.delete(name)
            return f"{name} is named"
        library.dataset(self.uri).branches.delete(name)
        del self.versions[name], self.parents[name]
        return name

    def tag(self, library: Any) -> str:
        name, place = f"t{self.random.randrange(6)}", self.place()
        if name in self.tags:
            with pytest.raises(ValueError, match="already exists"):
                library.dataset(self.uri).tags.create(name, place)
            return f"{name} is there"
        self.handle(library).tags.create(name, self.reference(place, library))
        self.tags[name] = place
        return f"{name} at {place}"

    def move(self, library: Any) -> str:
        if not self.tags:
            return "no tag"
        name, place = self.random.choice(list(self.tags)), self.place()
        self.handle(library).tags.update(name, self.reference(place, library))
        self.tags[name] = place
        return f"{name} to {place}"

    def untag(self, library: Any) -> str:
        if not self.tags:
            return "no tag"
        name = self.random.choice(list(self.tags))
        self.handle(library).tags.delete(name)
        del self.tags[name]
        return name

    def clean(self, library: Any) -> str:
        branch = self.random.choice(list(self.versions))
        # pylance's own clean-up of a table with branches is its own affair.
        dataset = esker.dataset(self.folder(branch))
        dataset.cleanup_old_versions(retain_versions=2, delete_unverified=True, error_if_tagged_old_versions=False)
        named = {number for there, number in [*self.tags.values(), *self.parents.values()] if there == branch}
        kept = {*sorted(self.versions[branch])[-2:], *named}
        self.versions[branch] = {number: rows for number, rows in self.versions[branch].items() if number in kept}
        return str(branch)

    def clone(self, library: Any) -> str:
        place = self.place()
        target = f"{self.uri}-clone{len(self.history)}"
        made = esker.dataset(self.uri).shallow_clone(target, self.reference(place, esker))
        assert set(made.to_table()["id"].to_pylist()) == self.versions[place[0]][place[1]]
        return str(place)

    def check(self) -> None:
        ours, theirs = esker.dataset(self.uri), lance.dataset(self.uri)
        assert ours.branches.list() == theirs.branches.list()
        assert {n: (b["parent_branch"], b["parent_version"]) for n, b in ours.branches.list().items()} == self.parents
        assert ours.tags.list() == theirs.tags.list()
        assert {name: (tag["branch"], tag["version"]) for name, tag in ours.tags.list().items()} == self.tags
        for branch, versions in self.versions.items():
            at = ours.checkout_version((branch, None))
            assert [version["version"] for version in at.versions()] == sorted(versions), branch
            for number in {max(versions), min(versions)}:
                for library in (ours, theirs):
                    rows = library.checkout_version((branch, number)).to_table()["id"].to_pylist()
                    assert set(rows) == versions[number], (branch, number)
                    assert len(rows) == len(versions[number])


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_both_libraries_take_turns_on_branches(uri: str, seed: int) -> None:
    walk = Walk(uri, seed, stable=seed % 2 == 0, names="V1" if seed % 4 == 3 else "V2")
    try:
        for _ in range(TURNS):
            walk.step()
    except BaseException:
        print("\n".join([f"seed {seed}", *walk.history]))
        raise
