"""Hooks look at what is about to be committed, and refuse it: write, audit, publish."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError, NotCommittedError, NotFoundError, UnsupportedError
from esker.repo import HookEvent, HookRefusedError, Repository
from esker.store.stores import resolve


def rows(*amounts: int) -> pa.Table:
    return pa.table({"amount": pa.array(amounts, pa.int64())})


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "repo", committer="me")
    with made.branch("main").transact("tables") as tx:
        esker.write_dataset(rows(1), tx.store_uri("lake/lance"))
        write_deltalake(tx.store_uri("lake/delta"), rows(1))
        tx.object("notes/a.txt").upload("note")
    return made


def append(repo: Repository, branch: str, *amounts: int) -> None:
    with repo.branch(branch).transact(f"append {amounts}") as tx:
        esker.write_dataset(rows(*amounts), tx.store_uri("lake/lance"), mode="append")
        write_deltalake(tx.store_uri("lake/delta"), rows(*amounts), mode="append")


def test_a_hook_reads_what_no_ref_leads_to_yet_and_may_not_change_it(repo: Repository) -> None:
    seen = []

    def look(event: HookEvent) -> None:
        with pytest.raises(NotFoundError):
            repo.ref(event.commit.id).get_commit()
        dataset = esker.dataset(event.ref.store_uri("lake/lance"))
        table = DeltaTable(event.ref.store_uri("/lake/delta/"))
        paths = [found.path for found in event.ref.objects(prefix="notes/")]
        note = event.ref.object("notes/a.txt").reader("r").read()
        assert event.ref.id == event.ref.get_commit().id == event.commit.id
        assert event.before == repo.branch("main").get_commit()
        for write in (
            lambda: dataset.delete("true"),
            lambda: write_deltalake(event.ref.store_uri("lake/delta"), rows(7), mode="append"),
            lambda: resolve(event.ref.store_uri()).put("x", b""),
        ):
            with pytest.raises(UnsupportedError):
                write()
        with pytest.raises(UnsupportedError, match="process"):
            pickle.dumps(event.ref.object("notes/a.txt"))
        seen.append((event.type, event.tables, dataset.count_rows(), table.to_pyarrow_table().num_rows, paths, note))
        kept.append((event.ref.store_uri("lake/lance"), dataset))

    kept: list[tuple[str, esker.LanceDataset]] = []
    repo.add_hook("pre-commit", look)
    append(repo, "main", 2)
    assert seen == [("pre-commit", ["lake/delta", "lake/lance"], 2, 2, ["notes/a.txt"], "note")]
    ((uri, dataset),) = kept
    assert dataset.count_rows() == dataset.to_table().num_rows == 2
    assert pickle.loads(pickle.dumps(dataset)).to_table() == dataset.to_table()
    with pytest.raises(NotFoundError, match="while it runs"):
        esker.dataset(uri)
    repo.branch("main").object("notes/b.txt").upload("b")
    repo.branch("main").commit("no table")
    assert seen[-1][1] == []


def test_after_a_commit_its_ref_is_the_commit_in_any_process(repo: Repository) -> None:
    told: list[HookEvent] = []
    repo.add_hook("post-commit", told.append)
    append(repo, "main", 2)
    (event,) = told
    assert event.ref.store_uri("lake/lance") == repo.ref(event.commit.id).store_uri("lake/lance")
    assert esker.dataset(event.ref.store_uri("lake/lance")).count_rows() == 2
    assert event.tables == ["lake/delta", "lake/lance"]


def audit(event: HookEvent) -> None:
    """Refuses tables with negative amounts."""
    for table in event.tables:
        uri = event.ref.store_uri(table)
        found = DeltaTable(uri) if DeltaTable.is_deltatable(uri) else esker.dataset(uri)
        bad = [amount for amount in pa.table(found)["amount"].to_pylist() if amount < 0]
        if bad:
            raise HookRefusedError(f"{table}: expected amounts from 0 on, found {bad}")


def test_write_audit_publish(repo: Repository) -> None:
    repo.add_hook("pre-merge", audit)
    repo.branch("january").create("main")
    append(repo, "january", 3, -4)
    before = repo.branch("main").get_commit()
    with pytest.raises(HookRefusedError, match=r"lake/delta: expected amounts from 0 on, found \[-4\]") as refused:
        repo.branch("january").merge_into("main")
    assert isinstance(refused.value, NotCommittedError)
    assert repo.branch("main").get_commit() == before
    with repo.branch("january").transact("repair") as tx:
        esker.dataset(tx.store_uri("lake/lance")).delete("amount < 0")
        write_deltalake(tx.store_uri("lake/delta"), rows(1, 3), mode="overwrite")
    repo.branch("january").merge_into("main")
    main = repo.ref("main")
    assert sorted(esker.dataset(main.store_uri("lake/lance")).to_table()["amount"].to_pylist()) == [1, 3]
    assert sorted(DeltaTable(main.store_uri("lake/delta")).to_pyarrow_table()["amount"].to_pylist()) == [1, 3]
    assert list(repo.fsck()) == []


def test_an_audit_sees_the_merged_content_and_not_the_branch_alone(repo: Repository) -> None:
    """Each side is good, both together are not; and where a race is lost, the hook runs again on what came of it."""
    seen: list[list[str]] = []

    def at_most_two(event: HookEvent) -> None:
        paths = [found.path for found in event.ref.objects(prefix="notes/")]
        seen.append(paths)
        if len(seen) == 1:
            other = Repository(repo.uri)
            other.branch("main").object("notes/c.txt").upload("c")
            other.branch("main").commit("meanwhile")
        if len(paths) > 2:
            raise HookRefusedError(f"expected two notes at most, found {paths}")

    repo.branch("side").create("main")
    repo.branch("side").object("notes/b.txt").upload("b")
    repo.branch("side").commit("b")
    repo.add_hook("pre-merge", at_most_two)
    with pytest.raises(HookRefusedError, match="two notes"):
        repo.branch("side").merge_into("main")
    assert seen == [["notes/a.txt", "notes/b.txt"], ["notes/a.txt", "notes/b.txt", "notes/c.txt"]]
    assert [found.path for found in repo.ref("main").objects(prefix="notes/")] == ["notes/a.txt", "notes/c.txt"]


def test_whatever_a_hook_raises_reaches_the_caller(repo: Repository) -> None:
    def fail(event: HookEvent) -> None:
        raise KeyError("a mistake in the hook")

    repo.add_hook("pre-commit", fail)
    before = repo.branch("main").get_commit()
    with pytest.raises(KeyError, match="a mistake in the hook"):
        append(repo, "main", 2)
    assert repo.branch("main").get_commit() == before


def test_the_metadata_of_a_commit_cannot_be_changed_under_its_id(repo: Repository) -> None:
    main = repo.branch("main")

    def note(event: HookEvent) -> None:
        event.commit.metadata["approved"] = "me"  # type: ignore[index]

    repo.add_hook("pre-commit", note)
    main.object("notes/b.txt").upload("another")
    with pytest.raises(UnsupportedError, match=r"dict\(commit.metadata\)"):
        main.commit("noted", {"job": "17"})
    assert [change.path for change in main.uncommitted()] == ["notes/b.txt"]
    other = Repository(repo.uri).branch("main")
    other.object("notes/c.txt").upload("a third")
    made = other.commit("by another handle", {"job": "18"}).get_commit()
    for commit in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made), next(main.log()), main.get_commit()):
        assert commit == made
        assert commit.metadata == {"job": "18"} == dict(commit.metadata)
        for change in (
            lambda found: found.update(x="y"),
            lambda found: found.pop("job"),
            lambda found: found.clear(),
            lambda found: found.setdefault("x", "y"),
        ):
            with pytest.raises(UnsupportedError):
                change(commit.metadata)
    assert asdict(made)["metadata"] == {"job": "18"}
    assert list(Repository(repo.uri).fsck()) == []


@pytest.mark.parametrize("hook", [None, "pre-commit", 5])
def test_what_cannot_be_called_is_no_hook(hook: Any, repo: Repository) -> None:
    with pytest.raises(InvalidArgumentError, match="can be called"):
        repo.add_hook("pre-commit", hook)
