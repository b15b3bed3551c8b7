"""Processes that write to one table, some of which are killed, and the check of every version that they made.

Short here. By hand, 16 of them for three minutes: `ESKER_PROCESSES=16 ESKER_SECONDS=180 pytest` and this file.
"""

from __future__ import annotations

import collections
from pathlib import Path

import lance

import esker
from esker._native.store import Store
from tests.leftovers import check_leftovers, leftovers, named
from tests.servers import S3Server
from tests.simulation.history import TableHistory
from tests.simulation.many import KILL_EVERY_S, PROCESSES, SECONDS, write_with_many
from tests.simulation.process import read_journals
from tests.simulation.writer import table


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
    killed = write_with_many(uri, tmp_path, {})
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
    killed = write_with_many(uri, tmp_path, options)
    _check(uri, tmp_path, options)
    assert killed > 0 or SECONDS < 2 * KILL_EVERY_S
    store, dataset = Store(uri, storage_options=options), esker.dataset(uri, storage_options=options)
    assert named(dataset)[0] == leftovers(store)
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert leftovers(store) == set()
    assert esker.dataset(uri, storage_options=options).to_table().equals(dataset.to_table())
