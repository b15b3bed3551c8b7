"""Repositories in other processes, by pickles and by URIs, and with the options of their stores where these count."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import esker
from esker._native.store import Store
from esker.commit import pickle_storage_options
from esker.exceptions import NotFoundError, UnsupportedError
from esker.repo import Repository, repositories, repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.store import stores

SECRET = {"aws_secret_access_key": "hush", "region": "north"}


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository.create(tmp_path / "repo", committer="me")
    with repo.branch("main").transact("a table") as tx:
        esker.write_dataset(pa.table({"n": [1, 2, 3]}), tx.store_uri("t"))
        tx.object("a").upload("a")
    return repo


def other_process(*command: str) -> str:
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_the_uri_of_a_ref_opens_in_any_process(repo: Repository, tmp_path: Path) -> None:
    uri = repo.ref("main").store_uri("t")
    assert esker.dataset(uri).count_rows() == 3
    count = f"import esker; print(esker.dataset({uri!r}).count_rows())"
    assert other_process(sys.executable, "-c", count) == "3"
    assert other_process(sys.executable, "-m", "esker.cli", "count", uri) == "3"
    (tmp_path / "pickled").write_bytes(pickle.dumps(esker.dataset(uri)))
    load = f"import pickle; print(pickle.load(open({str(tmp_path / 'pickled')!r}, 'rb')).count_rows())"
    assert other_process(sys.executable, "-c", load) == "3"
    # What is read under one URI never changes.
    with repo.branch("main").transact("more") as tx:
        esker.write_dataset(pa.table({"n": [4]}), tx.store_uri("t"), mode="append")
        of_transaction = tx.store_uri("t")
    assert other_process(sys.executable, "-c", count) == "3"
    # That of a transaction is of its own process, and says so in others.
    with pytest.raises(AssertionError, match="expected a transaction of this process"):
        other_process(sys.executable, "-c", f"import esker; esker.dataset({of_transaction!r})")


PICKLED: dict[str, Callable[[Repository], Any]] = {
    "repository": lambda repo: repo,
    "branch": lambda repo: repo.branch("main"),
    "ref": lambda repo: repo.ref("main~0"),
    "tag": lambda repo: repo.tag("v1").create("main"),
    "object": lambda repo: repo.ref("main").object("a"),
    "object of a branch": lambda repo: repo.branch("main").object("a"),
    "what is known of an object": lambda repo: repo.ref("main").object("a").stat(),
    "commit": lambda repo: repo.ref("main").get_commit(),
    "settings": lambda repo: repo.settings,
    "change": lambda repo: next(repo.ref("main~1").diff("main")),
    "file system": lambda repo: RepositoryFileSystem(repo),
}


@pytest.mark.parametrize("made", PICKLED.values(), ids=PICKLED)
@pytest.mark.parametrize("again", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy, copy.deepcopy])
def test_handles_pickle(made: Callable[[Repository], Any], again: Callable[[Any], Any], repo: Repository) -> None:
    first = made(repo)
    second = again(first)
    assert type(second) is type(first)
    if isinstance(second, RepositoryFileSystem):
        assert (second.fsid, second.cat("main/a")) == (first.fsid, b"a")
        return
    assert repr(second) == repr(first)
    if hasattr(second, "reader"):
        assert second.reader().read() == b"a"
    if hasattr(second, "get_commit"):
        assert second.get_commit() == first.get_commit()
    if isinstance(second, Repository):
        assert [branch.id for branch in second.branches()] == ["main"]
        second.branch("main").object("b").upload("b")
        second.branch("main").commit("by a copy")


def test_what_is_staged_stays_in_its_process_and_transactions_do_not_pickle(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("staged").upload("x")
    assert list(pickle.loads(pickle.dumps(main)).uncommitted()) == []
    one, two = pickle.loads(pickle.dumps((repo, main)))
    two.object("y").upload("y")
    # What was pickled together stages together.
    assert [change.path for change in one.branch("main").uncommitted()] == ["y"]
    with main.transact("t") as tx, pytest.raises(UnsupportedError, match="stays in its process"):
        pickle.dumps(tx)


class Locked:
    """Stores behind `locked://`, to which options are the key."""

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        if options != SECRET:
            raise NotFoundError(f"no way in with {options}")
        return Store(uri.removeprefix("locked://"), durable=False)


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(stores._factories, "locked", cast(Any, Locked()))
    return f"locked://{tmp_path}"


def test_pickles_carry_options_and_leave_secrets_out_where_that_is_asked_for(locked: str) -> None:
    repo = Repository.create(f"{locked}/repo", storage_options=SECRET)
    assert pickle.loads(pickle.dumps(repo.branch("main"))).get_commit() == repo.ref("main").get_commit()
    with pickle_storage_options(False):
        for handle in (repo, repo.branch("main"), repo.ref("main"), repo.branch("main").object("x")):
            pickled = pickle.dumps(handle)
            assert b"hush" not in pickled
            assert b"north" in pickled
            with pytest.raises(NotFoundError, match=r"no way in with \{'region': 'north'\}"):
                pickle.loads(pickled)


def test_what_is_elsewhere_is_reached_with_the_repositorys_options(locked: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/log").write_text("one line")
    repo = Repository.create(f"{locked}/repo", storage_options=SECRET)
    main = repo.branch("main")
    main.import_data().prefix(f"{locked}/outside/", "logs/").object(f"{locked}/outside/log", "one").run()
    found = Repository(f"{locked}/repo", storage_options=SECRET).ref("main")
    assert found.object("one").reader().read() == b"one line"
    assert found.object("logs/log").read_range(0, 3) == b"one"
    assert list(repo.fsck(imports=True)) == []
    main.object("own").upload("own")
    assert main.export(f"{locked}/out") == 3
    assert (tmp_path / "out/logs/log").read_text() == "one line"
    assert found.export(f"{locked}/out2", storage_options=SECRET) == 2
    with pytest.raises(NotFoundError, match="no way in"):
        found.export(f"{locked}/out3", storage_options={})
    # The same for a store over a ref.
    with main.transact("table") as tx:
        esker.write_dataset(pa.table({"n": [1]}), tx.store_uri("t"))
    assert esker.dataset(repo.ref("main").store_uri("t"), storage_options=SECRET).count_rows() == 1
    assert [one.uri for one in repositories(locked, storage_options=SECRET)] == [f"{locked}/repo"]


def test_a_repository_in_memory_is_created_by_one_call() -> None:
    first, second = Repository.create("memory://"), Repository.create("memory://")
    assert first.uri != second.uri
    first.branch("main").object("a").upload("a")
    first.branch("main").commit("first")
    assert [entry.path for entry in repository(first.uri).ref("main").objects()] == ["a"]
    assert list(second.ref("main").objects()) == []
    assert pickle.loads(pickle.dumps(first)).ref("main").object("a").exists()
