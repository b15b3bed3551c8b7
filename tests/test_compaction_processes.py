"""Compaction by many processes: workers of one plan, compactors that know nothing of each other, writers beside them,
and some that are killed.

Short here. By hand, 200 groups: `ESKER_COMPACTION_GROUPS=200 pytest` and this file.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker._native.store import Store
from esker.optimize import Compaction
from tests.leftovers import check_leftovers, leftovers

GROUPS = int(os.environ.get("ESKER_COMPACTION_GROUPS", "40"))
KILLS = int(os.environ.get("ESKER_COMPACTION_KILLS", "6"))
WORKERS = 4
TARGET = 20


def _table(uri: str, groups: int) -> list[int]:
    rows = pa.table({"id": pa.array(range(groups * TARGET), pa.int64())})
    return esker.write_dataset(rows, uri, max_rows_per_file=TARGET // 2, durable=False).to_table()["id"].to_pylist()


def _start(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


EXECUTES = """
import pickle, sys, esker
from esker.optimize import Compaction
tasks = pickle.load(sys.stdin.buffer)
dataset = esker.dataset(sys.argv[1])
results = [task.execute(dataset) for task in tasks]
if sys.argv[2] == "each":
    results = [Compaction.commit(dataset, [result]) for result in results]
    assert not any(metrics.lost for metrics in results)
sys.stdout.buffer.write(pickle.dumps(results))
"""


@pytest.mark.parametrize("who", ["driver", "each"])
def test_workers_of_one_plan_waste_nothing(who: str, uri: str) -> None:
    groups = min(GROUPS, 40)
    expected = _table(uri, groups)
    dataset = esker.dataset(uri)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": TARGET})
    assert plan.num_tasks() == groups
    workers = [_start(EXECUTES, uri, who) for _ in range(WORKERS)]
    outputs = []
    for number, worker in enumerate(workers):
        assert worker.stdin is not None
        worker.stdin.write(pickle.dumps(plan.tasks[number::WORKERS]))
        worker.stdin.close()
        worker.stdin = None
    # Others write meanwhile.
    esker.write_dataset(pa.table({"id": pa.array([10**6], pa.int64())}), uri, mode="append")
    for worker in workers:
        output, _ = worker.communicate(timeout=300)
        assert worker.returncode == 0
        outputs += pickle.loads(output)
    if who == "driver":
        metrics = Compaction.commit(dataset, outputs)
        assert (metrics.fragments_removed, metrics.lost) == (2 * groups, ())
    dataset = esker.dataset(uri)
    assert len(dataset.get_fragments()) == groups + 1
    assert sorted(dataset.to_table()["id"].to_pylist()) == [*expected, 10**6]
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [*expected, 10**6]
    files = {meta.path for meta in Store(uri).list("data/")}
    needed = {f"data/{file.path}" for version in (1, dataset.version) for file in _files(uri, version)}
    assert files == needed, "a file was written for nothing"


def _files(uri: str, version: int) -> list[Any]:
    found = esker.dataset(uri, version=version).get_fragments()
    return [file for fragment in found for file in fragment.metadata.files]


COMPACTS = """
import sys, time, esker
import esker.lance.compaction.run as run
written, rewrite = [], run.rewrite_group
def counted(*arguments):
    result = rewrite(*arguments)
    written.append(result)
    time.sleep(float(sys.argv[3]))
    return result
run.rewrite_group = counted
while time.time() < float(sys.argv[2]):
    time.sleep(0.001)
metrics = esker.dataset(sys.argv[1]).optimize.compact_files(target_rows_per_fragment=20)
assert not metrics.lost
print(len(written), metrics.fragments_removed // 2)
"""


def test_compactors_that_know_nothing_of_each_other_lose_little(uri: str) -> None:
    expected = _table(uri, GROUPS)
    start = time.time() + 2.0
    running = [_start(COMPACTS, uri, str(start), "0.02") for _ in range(WORKERS)]
    written = landed = 0
    for process in running:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        done, kept = map(int, output.split())
        written, landed = written + done, landed + kept
    dataset = esker.dataset(uri)
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    assert len(dataset.get_fragments()) == landed == GROUPS
    print(f"{written - landed} of {GROUPS} groups were written for nothing")
    # Towards the end few groups are left to choose from: that costs some, however many there were.
    assert written - landed <= (GROUPS // 10 if GROUPS >= 200 else GROUPS // 2)
    assert not {path for path in leftovers(Store(uri)) if path.startswith("data/")}


WRITES = """
import random, sys, time, esker, pyarrow as pa
number = int(sys.argv[2])
chance, until = random.Random(number), time.time() + float(sys.argv[3])
base, gone, added = 10**6 * (number + 1), [], []
while time.time() < until:
    match chance.randrange(3):
        case 0:
            ids = [base + len(added) + i for i in range(3)]
            esker.write_dataset(pa.table({"id": pa.array(ids, pa.int64())}), sys.argv[1], mode="append")
            added += ids
        case 1 if added:
            one = chance.choice(added)
            esker.dataset(sys.argv[1]).delete(f"id = {one}", conflict_retries=100)
            gone.append(one)
        case _:
            # There are as many compactors as groups: one may lose each of its own to the others, which is no error.
            esker.dataset(sys.argv[1]).optimize.compact_files(target_rows_per_fragment=30)
print(sorted(set(added) - set(gone)))
"""


def test_writers_that_compact_now_and_then_lose_no_row(uri: str) -> None:
    expected = _table(uri, 3)
    running = [_start(WRITES, uri, str(number), "3") for number in range(WORKERS)]
    for process in running:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        expected += [int(one) for one in output.decode().strip("[]\n ").split(",") if one.strip()]
    dataset = esker.dataset(uri)
    assert sorted(dataset.to_table()["id"].to_pylist()) == sorted(expected)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == sorted(expected)
    for version in dataset.versions():
        esker.dataset(uri, version=version["version"]).count_rows("id >= 0")


KILLED = """
import sys, esker
dataset = esker.dataset(sys.argv[1])
print("ready", flush=True)
sys.stdin.buffer.readline()
dataset.optimize.compact_files(target_rows_per_fragment=int(sys.argv[2]), memory_limit=8 << 20)
"""


def test_a_compactor_that_is_killed_at_any_time_leaves_all_rows(uri: str) -> None:
    rng = np.random.default_rng(0)
    for number in range(12):
        ids = pa.array(range(number * 20_000, (number + 1) * 20_000), pa.int64())
        rows = pa.table({"id": ids, "text": pc.cast(ids, pa.string()), "noise": rng.random(20_000)})
        esker.write_dataset(rows, uri, mode="append", durable=False)
    esker.dataset(uri).delete("id % 7 = 3")
    expected = esker.dataset(uri).to_table().sort_by("id")
    took, landed = 0.5, 0
    # The next version reserves the ids of new fragments.
    start = esker.dataset(uri).version + 1
    for round in range(KILLS):
        copy = f"{uri}-{round}"
        shutil.copytree(uri, copy)
        process = _start(KILLED, copy, "60000")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        began = time.monotonic()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        if round:
            # The first one at once, the last one as soon as a group has landed.
            time.sleep(took * (round - 1) / KILLS if round < KILLS - 1 else 0)
            while round == KILLS - 1 and esker.dataset(copy).version <= start and process.poll() is None:
                time.sleep(0.001)
            process.kill()
        process.communicate()
        if not round:
            assert process.returncode == 0
            took = time.monotonic() - began
        dataset = esker.dataset(copy)
        landed += dataset.version > start
        for found in (dataset.to_table(), lance.dataset(copy).to_table()):
            assert found.sort_by("id").equals(expected)
        # The next one finishes what was left, and a clean-up finds what the dead one had written for nothing.
        dataset.optimize.compact_files(target_rows_per_fragment=60_000)
        assert len(esker.dataset(copy).get_fragments()) == 3
        check_leftovers(copy)
        assert esker.dataset(copy).to_table().sort_by("id").equals(expected)
        shutil.rmtree(copy)
    # Some were killed before a group had landed, and some behind one.
    assert 1 < landed < KILLS
