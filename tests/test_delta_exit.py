"""A process that has scanned a Delta table ends in order: pyarrow's threads have put away what is Python's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from esker._native.store import Store
from esker.arrow import exit_wait
from esker.delta import DeltaTable, write_deltalake
from esker.delta.log.store_file import StoreFile
from esker.delta.read.filesystem import StoreFileSystem

SCRIPT = """
import atexit, threading, weakref

# What is registered first is called last.
atexit.register(lambda: print("held" if watched() else "put away"))

from esker._native.store import Store
from esker.delta.log.store_file import StoreFile

store = Store("memory://exit")
store.put("a", b"abc")
held = [StoreFile(store, "a")]
watched = weakref.ref(held[0])
thread = threading.Timer(0.1, held.clear)
thread.daemon = True
atexit.register(thread.start)
"""


class Thread:
    """A thread that holds something, and lets it go when it has been waited for some times."""

    def __init__(self, held: Any, lets_go_after: int) -> None:
        self.held = [held]
        self.slept: list[float] = []
        self._lets_go_after = lets_go_after

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self._lets_go_after:
            self.held.clear()

    def clock(self) -> float:
        return sum(self.slept)


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have left open is not waited for."""
    monkeypatch.setattr(exit_wait, "_files", type(exit_wait._files)())
    monkeypatch.setattr(exit_wait, "_file_systems", type(exit_wait._file_systems)())


def test_the_end_waits_for_files_that_threads_hold() -> None:
    store = Store("memory://exit-file")
    store.put("a", b"abc")
    thread = Thread(StoreFile(store, "a"), 7)
    exit_wait.wait(thread.sleep, thread.clock)
    # And once more, for the thread to give back the interpreter.
    assert (thread.held, len(thread.slept)) == ([], 8)


def test_the_end_waits_for_file_systems_for_a_moment_only() -> None:
    thread = Thread(StoreFileSystem(Store("memory://exit-file-system")), 1_000_000)
    exit_wait.wait(thread.sleep, thread.clock)
    assert thread.held
    assert sum(thread.slept) < 0.2


def test_the_end_waits_for_nothing_where_nothing_was_scanned() -> None:
    thread = Thread(None, 0)
    exit_wait.wait(thread.sleep, thread.clock)
    assert thread.slept == []


def test_scans_of_a_table_in_a_store_are_watched() -> None:
    uri = "memory://exit-scan/t"
    write_deltalake(uri, pa.table({"n": [1, 2]}))
    dataset = DeltaTable(uri).to_pyarrow_dataset()
    assert len(exit_wait._file_systems) > 0
    batches = dataset.to_batches()
    next(batches)
    del batches, dataset
    exit_wait.wait()
    assert len(exit_wait._files) == 0


def test_a_process_ends_when_its_files_are_put_away() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", SCRIPT]
    assert subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout == "put away\n"
