"""Writes to a transaction's store that are under way when it commits or ends: in the commit, or refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from esker.commit import resolve
from esker.exceptions import UnsupportedError
from esker.repo import Repository


def test_a_file_that_is_finished_after_the_commit_is_refused(tmp_path: Path) -> None:
    main = Repository.create(str(tmp_path / "lake")).branch("main")
    with main.transact("change") as tx:
        store = resolve(tx.store_uri("t"))
        early, late = store.writer("early"), store.writer("late")
        for writer in (early, late):
            writer.write(b"x" * 100)
        assert early.finish() == 100
        tx.commit("halfway")
        with pytest.raises(UnsupportedError, match="t/late: expected a transaction at work, found one that has ended"):
            late.finish()
        resolve(tx.store_uri("t")).put("anew", b"1")
    assert [found.path for found in main.objects()] == ["t/anew", "t/early"]


def test_what_a_thread_puts_is_committed_or_refused(tmp_path: Path) -> None:
    main = Repository.create(str(tmp_path / "lake")).branch("main")
    for turn in range(10):
        put: list[str] = []
        begun = threading.Event()

        def work(store: object, turn: int = turn, put: list[str] = put, begun: threading.Event = begun) -> None:
            for number in range(10_000):
                try:
                    store.put(f"{turn}/{number}", b"x" * 100_000)  # type: ignore[attr-defined]
                except UnsupportedError:
                    return
                put.append(f"t/{turn}/{number}")
                begun.set()

        with main.transact("change") as tx:
            thread = threading.Thread(target=work, args=(resolve(tx.store_uri("t")),))
            thread.start()
            assert begun.wait(60)
        thread.join()
        assert {found.path for found in main.objects(prefix=f"t/{turn}/")} == set(put)
