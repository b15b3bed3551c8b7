"""A process that is killed during a write leaves a table at its last commit, and the next writer goes on from there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from tests.samples import people, same

ENDLESS = """
import sys, pyarrow as pa, esker
def batches():
    yield batch
    print("started", flush=True)
    while True:
        yield batch
batch = pa.RecordBatch.from_pydict({"id": list(range(1000)), "text": ["x" * 100] * 1000})
esker.write_dataset(batches(), sys.argv[1], mode=sys.argv[2], schema=batch.schema, memory_limit=1 << 20)
"""

COMMITS = """
import sys, pyarrow as pa, esker
number = 0
while True:
    table = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
    esker.write_dataset(table, sys.argv[1], mode="append")
    number += 1
    print(number, flush=True)
"""


def _start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_killed_while_data_files_are_written(mode: str, uri: str) -> None:
    first = pa.table({"id": [1], "text": ["x"]})
    esker.write_dataset(first, uri)
    writer = _start(ENDLESS, uri, mode)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "started\n"
    time.sleep(0.2)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    same(first, esker.dataset(uri).to_table())
    same(first, lance.dataset(uri).to_table())
    assert esker.write_dataset(first, uri, mode="append").version == 2


def test_killed_before_the_first_commit_leaves_no_table(uri: str) -> None:
    writer = _start(ENDLESS, uri, "create")
    assert writer.stdout is not None
    assert writer.stdout.readline() == "started\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    with pytest.raises(esker.exceptions.NotFoundError):
        esker.dataset(uri)
    same(people(3), esker.write_dataset(people(3), uri).to_table())


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.023, 0.05, 0.09])
def test_killed_between_commits_keeps_every_commit_that_was_reported(delay: float, tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    writer = _start(COMMITS, uri)
    assert writer.stdout is not None
    for _ in range(3):
        writer.stdout.readline()
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    reported = 3 + len(writer.stdout.read().splitlines())
    writer.wait()
    dataset = esker.dataset(uri)
    # The last one may have landed without a word of it.
    assert dataset.version in (reported, reported + 1)
    assert dataset.to_table()["id"].to_pylist() == list(range(dataset.version * 10))
    assert lance.dataset(uri).count_rows() == dataset.version * 10
    same(dataset.to_table(), lance.dataset(uri).to_table())
    assert esker.write_dataset(dataset.head(1), uri, mode="append").version == dataset.version + 1
