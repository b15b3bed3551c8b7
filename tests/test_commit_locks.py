"""The user's own `commit_lock`: what a lock that fails, or is none, does to a commit."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import lance
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitStateUnknownError, InvalidArgumentError
from esker.store import stores
from tests.test_commit_outcomes import _rows, _seed


def test_a_lock_that_cannot_be_taken_commits_nothing_and_says_so(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)

    def busy(version: int) -> nullcontext[None]:
        raise TimeoutError("somebody holds it")

    files = len(list(Path(uri, "data").iterdir()))
    with pytest.raises(TimeoutError, match="somebody holds it"):
        esker.write_dataset(_rows(50, 1), uri, mode="append", commit_lock=busy)
    assert esker.dataset(uri).version == 2
    assert len(list(Path(uri, "data").iterdir())) == files


def test_a_lock_that_is_no_context_manager_commits_nothing_and_says_so(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)

    def lock(version: int) -> Any:
        """Takes some lock, and gives nothing back that would release it."""

    with pytest.raises(InvalidArgumentError, match="commit_lock to return a context manager.*found NoneType"):
        esker.write_dataset(_rows(50, 1), uri, mode="append", commit_lock=lock)
    assert esker.dataset(uri).version == 2


def test_a_lock_that_fails_after_the_put_does_not_undo_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        raise TimeoutError("lost it")

    with pytest.raises(CommitStateUnknownError, match=r"version 3 .* was put.*lost it.*find_transaction") as raised:
        esker.write_dataset(_rows(50, 1), uri, mode="append", commit_lock=lock)
    assert isinstance(raised.value.__cause__, TimeoutError)
    assert esker.dataset(uri).version == 3
    assert esker.dataset(uri).count_rows() == 13
    with pytest.raises(OSError, match="lost it"):
        lance.write_dataset(_rows(50, 1), uri, mode="append", commit_lock=lock)


def test_a_lock_that_fails_after_a_lost_race_is_told_of(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    calls = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        calls.append(version)
        if len(calls) == 1:
            esker.write_dataset(_rows(60, 1), uri, mode="append")
        yield
        if len(calls) == 1:
            raise TimeoutError("lost it")

    with pytest.warns(UserWarning, match="lock of version 3.*lost it"):
        assert esker.write_dataset(_rows(50, 1), uri, mode="append", commit_lock=lock).version == 4
    assert calls == [3, 4]


Lock = Callable[[int], AbstractContextManager[None]]


def _granted_once() -> Lock:
    calls: list[int] = []

    def lock(version: int) -> nullcontext[None]:
        calls.append(version)
        if len(calls) > 1:
            raise TimeoutError("somebody holds it")
        return nullcontext()

    return lock


@contextmanager
def _stays(version: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PermissionError(errno.EACCES, "the lock's file stays") from error


@pytest.mark.parametrize("lock", [_granted_once(), _stays], ids=["not granted again", "not released"])
def test_a_lock_that_fails_beside_a_lost_put_does_not_decide_its_outcome(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put without a reply may arrive when its writer has given up: the files that it names stay."""
    uri = str(tmp_path / "t")
    _seed(uri)
    monkeypatch.setitem(stores._factories, "fault", lambda *_: FaultStore(Store(uri), "", watch=watch).store)
    sent: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if verb.startswith("put") and path.startswith("_versions/"):
            sent.append(path)
            return "fail"
        return None

    table = esker.dataset(f"fault://{uri}")
    files = len(list(Path(uri, "data").iterdir()))
    with pytest.raises(CommitStateUnknownError, match="find_transaction"):
        esker.write_dataset(_rows(50, 1), table, mode="append", commit_lock=lock)
    assert sent
    assert len(list(Path(uri, "data").iterdir())) == files + 1
