"""Processes that change one Delta table by every verb, some of which are killed, and the check of every version.

Short here. By hand, 16 of them for a minute: `ESKER_PROCESSES=16 ESKER_SECONDS=60 pytest` and this file.
"""

from __future__ import annotations

import collections
from pathlib import Path

import deltalake
import pytest

from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from tests.delta_rows import rows
from tests.servers import S3Server
from tests.simulation.delta_history import DeltaHistory
from tests.simulation.many import KILL_EVERY_S, PROCESSES, SECONDS, write_with_many
from tests.simulation.process import read_journals
from tests.simulation.writer import table
from tests.test_delta_delete import read_by_theirs

VERBS = ("delete", "update", "merge", "rewrite", "append")
LAYOUTS: dict[str, dict[str, str | None]] = {
    "copy": {"delta.enableChangeDataFeed": "true"},
    "vectors": {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "7"},
}


def _check(uri: str, folder: Path, options: dict[str, str]) -> None:
    changes, seen = read_journals(folder)
    history = DeltaHistory(uri, Store(uri, storage_options=options, durable=False), options)
    history.read()
    history.check(changes, seen, history.rows())
    outcomes = collections.Counter(f"{change.kind} {change.outcome}" for change in changes)
    print(f"{history.latest} versions, {len(seen)} reads, changes: {dict(outcomes)}")
    assert history.latest > PROCESSES
    done = [verb for verb in VERBS if outcomes[f"{verb} done"]]
    assert len(done) > 1, outcomes
    assert SECONDS < 20 or len(done) == len(VERBS), outcomes


@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_processes_change_a_table_as_one_after_the_other(tmp_path: Path, layout: str) -> None:
    path, folder = tmp_path / "table", tmp_path / "journals"
    folder.mkdir()
    write_deltalake(path, table({key: key * 10 for key in range(5)}), configuration=LAYOUTS[layout])
    killed = write_with_many(str(path), folder, {}, "delta_process")
    _check(str(path), folder, {})
    assert killed > 0 or SECONDS < 2 * KILL_EVERY_S
    assert rows(read_by_theirs(path)) == rows(DeltaTable(path).to_pyarrow_table())
    assert deltalake.DeltaTable(path).version() == DeltaTable(path).version()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_processes_on_an_s3_server_change_a_table_as_one_after_the_other(
    s3: S3Server, tmp_path: Path, layout: str
) -> None:
    uri, options = f"s3://{s3.bucket()}/table", s3.storage_options
    start = table({key: key * 10 for key in range(5)})
    write_deltalake(uri, start, configuration=LAYOUTS[layout], storage_options=options)
    killed = write_with_many(uri, tmp_path, options, "delta_process")
    _check(uri, tmp_path, options)
    assert killed > 0 or SECONDS < 2 * KILL_EVERY_S
