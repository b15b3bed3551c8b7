"""Many processes, one table: every row is there once."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from tests.lineage import same_lineage
from tests.samples import people

WRITERS = 16

APPEND = """
import sys, time, pyarrow as pa, esker
uri, writer, gate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
table = pa.table({"id": pa.array(range(writer * 100, writer * 100 + 100), pa.int64()), "writer": [writer] * 100})
open(gate + f"/{writer}", "w").close()
import os
while len(os.listdir(gate)) < int(sys.argv[4]):
    time.sleep(0.005)
for part in range(2):
    esker.write_dataset(table.slice(part * 50, 50), uri, mode="append")
"""


@pytest.mark.parametrize("exists", [True, False], ids=["table", "no table yet"])
def test_sixteen_processes_append_and_every_row_is_there_once(exists: bool, tmp_path: Path) -> None:
    uri, gate = str(tmp_path / "table"), tmp_path / "gate"
    gate.mkdir()
    if exists:
        empty = pa.schema([("id", pa.int64()), ("writer", pa.int64())]).empty_table()
        esker.write_dataset(empty, uri)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, uri, str(number), str(gate), str(WRITERS)], stderr=subprocess.PIPE
        )
        for number in range(WRITERS)
    ]
    errors = [writer.communicate(timeout=120)[1].decode() for writer in writers]
    assert not any(writer.returncode for writer in writers), "\n".join(filter(None, errors))
    expected = list(range(WRITERS * 100))
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == expected
    dataset = esker.dataset(uri)
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    assert dataset.version == 2 * WRITERS + exists
    ids = list(dataset.fragment_ids())
    assert len(set(ids)) == len(ids) == 2 * WRITERS


def test_readers_see_whole_versions_while_writers_commit(uri: str) -> None:
    esker.write_dataset(people(100), uri)
    stop = threading.Event()
    seen: set[int] = set()

    def read() -> None:
        while not stop.is_set():
            ids = esker.dataset(uri).to_table(columns=["id"])["id"].to_pylist()
            assert ids == list(range(len(ids)))
            seen.add(len(ids))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 8):
        esker.write_dataset(people(100, start=number * 100), uri, mode="append")
    stop.set()
    reader.join()
    assert seen
    assert all(count % 100 == 0 for count in seen)


def test_one_dataset_serves_many_threads(uri: str) -> None:
    dataset = esker.write_dataset(people(20_000), uri, max_rows_per_file=3000)
    failures: list[object] = []

    def work(number: int) -> None:
        for step in range(5):
            row = (number * 977 + step * 31) % 20_000
            if dataset.take([row], columns=["id"])["id"].to_pylist() != [row]:
                failures.append(row)
            if dataset.count_rows(f"id >= {row}") != 20_000 - row:
                failures.append(row)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


CHANGE = """
import sys, time, os, datetime, esker
patience = {"conflict_retries": 500, "retry_timeout": datetime.timedelta(minutes=3)}
uri, writer, gate, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
open(gate + f"/{writer}", "w").close()
while len(os.listdir(gate)) < count:
    time.sleep(0.005)
for part in range(4):
    # A row that all want, rows of one's own, and a row of one's own that goes.
    where = f"id = 0 or (id % {count} = {writer} and id < {count * 20})"
    esker.dataset(uri).update({"n": "n + 1"}, where=where, **patience)
    gone = esker.dataset(uri).delete(f"id = {count * (20 + part) + writer}", **patience)
    assert gone == {"num_deleted_rows": 1}, gone
"""


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_processes_that_change_the_same_fragments_lose_nothing(stable: bool, tmp_path: Path) -> None:
    uri, gate, count = str(tmp_path / "table"), tmp_path / "gate", 6
    gate.mkdir()
    rows = pa.table({"id": range(count * 30), "n": [0] * (count * 30)})
    esker.write_dataset(rows, uri, max_rows_per_file=90, enable_stable_row_ids=stable)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", CHANGE, uri, str(number), str(gate), str(count)], stderr=subprocess.PIPE
        )
        for number in range(count)
    ]
    errors = [writer.communicate(timeout=240)[1].decode() for writer in writers]
    assert not any(writer.returncode for writer in writers), "\n".join(filter(None, errors))
    own = {n: 4 if n < count * 20 else 0 for n in range(count * 30) if not count * 20 <= n < count * 24}
    found = esker.dataset(uri).to_table(columns=["id", "n", "_rowid"]).to_pylist()
    assert {row["id"]: row["n"] for row in found} == own | {0: 4 * count}
    assert len(found) == len(own)
    assert not stable or all(row["_rowid"] == row["id"] for row in found)
    assert esker.dataset(uri).version == 1 + count * 8
    same_lineage(lance.dataset(uri), esker.dataset(uri))
