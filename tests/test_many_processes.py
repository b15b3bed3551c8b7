"""Processes that write to one table, some of which are killed, and the check of every version that they made.

Short here. By hand, 16 of them for three minutes: `ESKER_PROCESSES=16 ESKER_SECONDS=180 pytest` and this file.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import lance

import esker
from esker._native.store import Store
from tests.leftovers import check_leftovers, leftovers, named
from tests.servers import S3Server
from tests.simulation.history import TableHistory
from tests.simulation.process import read_journals
from tests.simulation.writer import table

PROCESSES = int(os.environ.get("ESKER_PROCESSES", "4"))
SECONDS = float(os.environ.get("ESKER_SECONDS", "3"))
KILL_EVERY_S = 2.0


def _start(uri: str, number: int, journal: Path, seconds: float, options: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.simulation.process", uri, str(number), str(seconds), str(journal)]
    environment = {**os.environ, **{f"ESKER_OPTION_{key.upper()}": value for key, value in options.items()}}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def _write_with_many(uri: str, folder: Path, options: dict[str, str]) -> int:
    """Lets processes write, and kills one now and then. How many were killed."""
    random_ = random.Random(0)
    until = time.monotonic() + SECONDS
    journals = (folder / f"{number}.journal" for number in range(10_000))
    running = {number: _start(uri, number, next(journals), SECONDS, options) for number in range(PROCESSES)}
    killed = 0
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, KILL_EVERY_S))
        number = random_.randrange(PROCESSES)
        if until - time.monotonic() > 1 and running[number].poll() is None:
            running[number].send_signal(signal.SIGKILL)
            running[number].communicate()
            killed += 1
            running[number] = _start(uri, number, next(journals), until - time.monotonic(), options)
    for process in running.values():
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0, errors
    return killed


def _check(uri: str, folder: Path, options: dict[str, str]) -> None:
    changes, seen = read_journals(folder)
    history = TableHistory(uri, storage_options=options)
    history.read()
    history.check(changes, seen)
    outcomes = collections.Counter(change.outcome for change in changes)
    assert outcomes["done"] > PROCESSES
    assert history.latest > PROCESSES
    for change in changes:
        if change.detached is not None:
            assert history.state(change.detached[0]).rows == change.detached[1], str(change)
    print(f"{history.latest} versions, {len(seen)} reads, changes: {dict(outcomes)}")


def test_many_processes_on_local_files_lose_nothing(uri: str, tmp_path: Path) -> None:
    esker.write_dataset(table({key: key * 10 for key in range(6)}), uri, max_rows_per_file=3)
    killed = _write_with_many(uri, tmp_path, {})
    _check(uri, tmp_path, {})
    assert killed > 0 or SECONDS < 2 * KILL_EVERY_S
    ours = esker.dataset(uri)
    assert ours.to_table().equals(lance.dataset(uri).to_table())
    # What the killed left is told, and removed.
    check_leftovers(uri)
    assert esker.dataset(uri).to_table().equals(ours.to_table())


def test_many_processes_on_an_s3_server_lose_nothing(s3: S3Server, tmp_path: Path) -> None:
    uri, options = f"s3://{s3.bucket()}/table", s3.storage_options
    rows = table({key: key * 10 for key in range(6)})
    esker.write_dataset(rows, uri, max_rows_per_file=3, storage_options=options)
    killed = _write_with_many(uri, tmp_path, options)
    _check(uri, tmp_path, options)
    assert killed > 0 or SECONDS < 2 * KILL_EVERY_S
    store, dataset = Store(uri, storage_options=options), esker.dataset(uri, storage_options=options)
    assert named(dataset)[0] == leftovers(store)
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert leftovers(store) == set()
    assert esker.dataset(uri, storage_options=options).to_table().equals(dataset.to_table())
