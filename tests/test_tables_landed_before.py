"""Commits of tables whose reply was lost, done again: they are on the branch once, and the caller is told so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitStateUnknownError
from esker.repo import NoChangesError, Repository, TableConflictError
from esker.repo.transaction import TransactionBranch
from esker.store import stores

TWO = pa.table({"id": [1, 2]})


class Lossy:
    """A handle whose next commit lands without its knowing."""

    def __init__(self, uri: str) -> None:
        self.is_armed = False
        self._lost: list[str] = []
        stores.register("lost", self._opened)
        self.repo = Repository("lost://" + uri)
        self.main = self.repo.branch("main")

    def _opened(self, uri: str, options: object, durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("lost://"), durable=False), "", watch=self._lose).store

    def _lose(self, verb: str, path: str) -> str | None:
        if not self.is_armed:
            return None
        if verb == "put_if_absent" and "refs/heads" in path and not self._lost:
            self._lost.append(path)
            return "lose_reply"
        return "fail" if self._lost and verb in ("get", "list", "head") else None

    def lands_unknown(self, tx: TransactionBranch) -> None:
        self.is_armed = True
        with pytest.raises(CommitStateUnknownError):
            tx.commit("unknown")
        self.is_armed = False
        assert self._lost


@pytest.fixture
def lossy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lossy:
    monkeypatch.setattr("esker.commit.loop.Backoff.pause", lambda *_: 0.0)
    Repository.create(tmp_path / "repo")
    return Lossy(str(tmp_path / "repo"))


def write(format: str, uri: str, rows: pa.Table = TWO) -> None:
    if format == "lance":
        esker.write_dataset(rows, uri, mode="append")
    else:
        write_deltalake(uri, rows, mode="append")


def ids(repo: Repository, format: str) -> list[int]:
    uri = Repository(repo.uri.removeprefix("lost://")).branch("main").store_uri("t")
    found = esker.dataset(uri).to_table() if format == "lance" else DeltaTable(uri).to_pyarrow_table()
    return sorted(found.column("id").to_pylist())


def others(lossy: Lossy, what: str, format: str) -> str:
    """What others commit before the commit is done again; the branch's last commit."""
    main = Repository(lossy.repo.uri.removeprefix("lost://")).branch("main")
    if what == "an object":
        main.object("theirs").upload("1")
        main.commit("theirs")
    elif what == "rows":
        write(format, main.store_uri("t"), pa.table({"id": [9]}))
    return main.get_commit().id


def append(tx: TransactionBranch, format: str) -> None:
    write(format, tx.store_uri("t"))


def write_anew(tx: TransactionBranch, format: str) -> None:
    tx.delete_objects([found.path for found in tx.objects(prefix="t/")])
    write(format, tx.store_uri("t"))


def append_and_tag(tx: TransactionBranch, format: str) -> None:
    append(tx, format)
    if format == "lance":
        esker.dataset(tx.store_uri("t")).tags.create("x", 2)


def append_and_clean_up(tx: TransactionBranch, format: str) -> None:
    append(tx, format)
    if format == "lance":
        esker.dataset(tx.store_uri("t")).cleanup_old_versions(timedelta(0))


Does = Callable[[TransactionBranch, str], None]


@pytest.mark.parametrize("meanwhile", ["nothing", "an object", "rows"])
@pytest.mark.parametrize("on_lost", ["replay", "error"])
@pytest.mark.parametrize("does", ["create", append, write_anew, append_and_tag, append_and_clean_up])
@pytest.mark.parametrize("format", ["lance", "delta"])
def test_what_has_landed_is_told_to_be_there(
    format: str, does: Does | str, on_lost: str, meanwhile: str, lossy: Lossy
) -> None:
    if does != "create":
        write(format, lossy.main.store_uri("t"))
    before = [] if does in ("create", write_anew) else [1, 2]
    with lossy.main.transact("end", on_lost=on_lost) as tx:
        (append if isinstance(does, str) else does)(tx, format)
        lossy.lands_unknown(tx)
        last = others(lossy, meanwhile, format)
        with pytest.raises(NoChangesError, match=f"has all that is staged already, by the commit {last}"):
            tx.commit("again")
        assert list(tx.uncommitted()) == []
    expected = [*before, 1, 2, *([9] if meanwhile == "rows" else [])]
    assert ids(lossy.repo, format) == sorted(expected)
    assert list(Repository(lossy.repo.uri.removeprefix("lost://")).fsck(tables=True)) == []


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("on_lost", ["replay", "error"])
@pytest.mark.parametrize("format", ["lance", "delta"])
def test_what_is_staged_since_goes_on_from_what_has_landed(
    format: str, on_lost: str, is_new: bool, lossy: Lossy
) -> None:
    if not is_new:
        write(format, lossy.main.store_uri("t"), pa.table({"id": [0]}))
    with lossy.main.transact("end", on_lost=on_lost) as tx:
        append(tx, format)
        lossy.lands_unknown(tx)
        write(format, tx.store_uri("t"), pa.table({"id": [3]}))
        others(lossy, "an object", format)
        tx.commit("the rest")
    assert ids(lossy.repo, format) == [*([] if is_new else [0]), 1, 2, 3]
    assert [commit.message for commit in lossy.main.log()][:3] == ["the rest", "theirs", "unknown"]


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_conflict_says_what_has_landed(format: str, is_new: bool, lossy: Lossy) -> None:
    if not is_new:
        write(format, lossy.main.store_uri("t"), pa.table({"id": [0]}))

    def run() -> None:
        with lossy.main.transact("end", on_lost="error") as tx:
            append(tx, format)
            lossy.lands_unknown(tx)
            write(format, tx.store_uri("t"), pa.table({"id": [3]}))
            others(lossy, "rows", format)

    with pytest.raises(TableConflictError, match=r"version \d of what is staged is on the branch already") as caught:
        run()
    assert not caught.value.retryable
    assert "run it again" not in str(caught.value)
    assert ids(lossy.repo, format) == [*([] if is_new else [0]), 1, 2, 9]


def test_what_was_expected_to_stay_has_not_been_changed_by_the_commit_itself(lossy: Lossy) -> None:
    lossy.main.object("n").upload("0")
    lossy.main.commit("zero")
    with lossy.main.transact("end") as tx:
        tx.expect_unchanged("n")
        tx.object("n").upload("1")
        lossy.lands_unknown(tx)
        tx.object("more").upload("1")
    assert [commit.message for commit in lossy.main.log()][:2] == ["end", "unknown"]


def test_the_same_bytes_of_another_are_a_change_of_what_was_expected_to_stay(lossy: Lossy) -> None:
    lossy.main.object("n").upload("0")
    lossy.main.commit("zero")

    def run() -> None:
        with lossy.main.transact("end") as tx:
            tx.expect_unchanged("n")
            tx.object("n").upload("1")
            lossy.main.object("n").upload("1")
            lossy.main.commit("another")

    with pytest.raises(TableConflictError, match="expected to stay"):
        run()


def test_rows_whose_version_a_clean_up_of_others_has_taken_are_not_put_again(lossy: Lossy) -> None:
    write("lance", lossy.main.store_uri("t"), pa.table({"id": [0]}))
    esker.dataset(lossy.main.store_uri("t")).tags.create("first", 1)

    def run() -> None:
        with lossy.main.transact("end") as tx:
            append(tx, "lance")
            lossy.lands_unknown(tx)
            others(lossy, "rows", "lance")
            uri = Repository(lossy.repo.uri.removeprefix("lost://")).branch("main").store_uri("t")
            esker.dataset(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)

    with pytest.raises(TableConflictError, match="not known whether an earlier commit of what is staged has") as caught:
        run()
    assert not caught.value.retryable
    assert "run it again" not in str(caught.value)
    assert ids(lossy.repo, "lance") == [0, 1, 2, 9]
