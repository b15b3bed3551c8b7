"""Tags and branches on a store without put-if-absent: the user's lock decides who was first, as it does of versions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import esker
from esker._native.store import Store
from esker.exceptions import RefConflictError, UnsupportedError
from tests.tree_branches import ids_of, rows_of, three_versions
from tests.watched_stores import in_another_thread


class Lock:
    """A lock that lets others work before it is taken for the nth time."""

    def __init__(self, work: Callable[[Lock], object], nth: int) -> None:
        self.taken = 0
        self._held = threading.Lock()
        self._work, self._nth = work, nth

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        self.taken += 1
        if self.taken == self._nth:
            in_another_thread(lambda: self._work(self))
        with self._held:
            yield


@pytest.fixture
def three(uri: str, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuses(store: Store, path: str, data: bytes) -> bool:
        raise UnsupportedError("no conditional put")

    three_versions(uri)
    monkeypatch.setattr(Store, "put_if_absent", refuses)
    return uri


def test_of_two_who_create_a_tag_the_first_has_it(three: str) -> None:
    lock = Lock(lambda lock: esker.dataset(three, commit_lock=lock).tags.create("v", 1), 1)
    with pytest.raises(RefConflictError, match="tag v already exists"):
        esker.dataset(three, commit_lock=lock).tags.create("v", 2)
    assert lock.taken == 2
    assert esker.dataset(three).tags.list()["v"]["version"] == 1


def test_of_two_who_create_a_branch_the_first_has_it(three: str) -> None:
    def theirs(lock: Lock) -> None:
        esker.dataset(three, commit_lock=lock).create_branch("feat", 1).insert(rows_of(70))

    # Once for the first version of the branch, and once for its ref.
    lock = Lock(theirs, 2)
    with pytest.raises(RefConflictError, match="branch feat already exists"):
        esker.dataset(three, commit_lock=lock).create_branch("feat", 2)
    assert esker.dataset(three).branches.list()["feat"]["parent_version"] == 1
    assert ids_of(esker.dataset(three, version=("feat", None))) == [0, 70]
