"""Any history of appends and deletes: each commit is reverted or picked with just its rows, or refused by name."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.repo import Branch, Commit, Repository
from esker.repo.errors import NoChangesError, TableConflictError
from tests.branch_tables import FORMATS, Format, append, delete, entries, ids_at, ids_of_peers, update, without
from tests.rounds import rounds

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(["main", "dev"]), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.sampled_from(["main", "dev"]), st.sets(st.integers(0, 9), min_size=1)),
        st.tuples(st.just("update"), st.sampled_from(["main", "dev"]), st.integers(0, 9)),
        st.tuples(st.just("revert"), st.sampled_from(["main", "dev"]), st.integers(0, 9)),
        st.tuples(st.just("pick"), st.sampled_from(["main", "dev"]), st.integers(0, 9)),
    ),
    min_size=3,
    max_size=9,
)


class Model:
    """A repository of one table on two branches, and what each commit did to its rows."""

    def __init__(self, place: Path, format: Format, **options: Any) -> None:
        self.repo = Repository.create(place, committer="me")
        self.format = format
        self.next_id = 0
        self.commits: list[tuple[Commit, list[int], list[int]]] = []
        self.rows: dict[str, list[int]] = {"main": []}
        self.append("main", 3, **options)
        self.commits.clear()
        self.repo.branch("dev").create("main")
        self.rows["dev"] = list(self.rows["main"])

    def append(self, name: str, count: int, **options: Any) -> None:
        ids = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        made = append(self.repo.branch(name), self.format, *ids, **options)
        self.commits.append((made, ids, []))
        self.rows[name] += ids

    def delete(self, name: str, numbers: set[int]) -> None:
        rows = self.rows[name]
        ids = sorted({rows[number % len(rows)] for number in numbers}) if rows else []
        if ids:
            made = delete(self.repo.branch(name), self.format, *ids)
            gone = [id for id in rows if id in ids]
            self.commits.append((made, [], gone))
            self.rows[name] = without(rows, gone)

    def update(self, name: str, number: int) -> None:
        rows = self.rows[name]
        if rows:
            old, new, self.next_id = rows[number % len(rows)], self.next_id, self.next_id + 1
            made = update(self.repo.branch(name), self.format, old, new)
            self.commits.append((made, [new], [old]))
            self.rows[name] = [*without(rows, [old]), new]

    def transplant(self, name: str, number: int, *, is_revert: bool) -> None:
        if not self.commits:
            return
        commit, came, gone = self.commits[number % len(self.commits)]
        if is_revert:
            came, gone = gone, came
        branch = self.repo.branch(name)
        before, log = branch.get_commit(), entries(self.repo, name, self.format)
        try:
            made = self.act(branch, commit, is_revert=is_revert)
        except (TableConflictError, NoChangesError) as error:
            assert branch.get_commit() == before
            if isinstance(error, NoChangesError):
                # All of it is there already.
                assert set(came) <= set(self.rows[name])
                assert not set(gone) & set(self.rows[name])
            return
        rows = self.rows[name]
        assert not without(gone, rows), "rows went that were not there"
        assert not set(came) & set(rows), "rows came twice"
        self.rows[name] = sorted([*without(rows, gone), *came])
        self.commits.append((made, came, gone))
        after = entries(self.repo, name, self.format)
        assert {number: after[number] for number in log} == log

    def act(self, branch: Branch, commit: Commit, *, is_revert: bool) -> Commit:
        return branch.revert(commit.id) if is_revert else branch.cherry_pick(commit.id)

    def check(self) -> None:
        for name, rows in self.rows.items():
            assert ids_at(self.repo, name, self.format) == sorted(rows)

    def check_row_ids(self) -> None:
        for name in self.rows:
            found = esker.dataset(self.repo.ref(name).store_uri("lake/t"))
            ids = found.to_table(with_row_id=True)
            assert len(set(ids["_rowid"].to_pylist())) == len(ids)
            assert found.take_rows(ids["_rowid"].to_pylist())["id"] == ids["id"]


@pytest.mark.parametrize("kind", [*FORMATS, "stable"])
@settings(max_examples=rounds(10))
@given(steps=STEPS)
def test_a_revert_or_pick_has_just_the_rows_of_its_commit(kind: str, steps: list[tuple[str, str, object]]) -> None:
    format: Format = "delta" if kind == "delta" else "lance"
    options: dict[str, Any] = {"enable_stable_row_ids": True} if kind == "stable" else {}
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder) / "repo", format, **options)
        for verb, name, argument in steps:
            if verb == "append":
                assert isinstance(argument, int)
                model.append(name, argument)
            elif verb == "delete":
                assert isinstance(argument, set)
                model.delete(name, argument)
            elif verb == "update":
                assert isinstance(argument, int)
                model.update(name, argument)
            else:
                assert isinstance(argument, int)
                model.transplant(name, argument, is_revert=verb == "revert")
            model.check()
            if kind == "stable":
                model.check_row_ids()
        for name, rows in model.rows.items():
            assert ids_of_peers(model.repo, name, format, Path(folder) / name) == sorted(rows)
        assert list(model.repo.fsck()) == []
