"""Batches whose process dies by `kill -9` at a stage, and that run again: each row is in the table once.

Here processes do what Spark's do, without a JVM; `tests.spark.killed` does it with Spark. By hand, 50 times each:
`python -c "from tests.spark import test_stream_kills as kills; kills.by_hand(50)"`.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import esker
from esker.delta import DeltaTable
from esker.spark.options import TableAddress
from esker.spark.streaming import sink
from esker.spark.streaming.upsert import _Upsert
from tests.spark.killed import OF_UPSERTS, STAGES, KilledSource, die, dying_puts
from tests.spark.streams import Batch

SCHEMA = StructType().add("id", LongType())
BATCHES, ROWS = 3, 20
_MODES = {"append": STAGES, "complete": STAGES, "upsert": OF_UPSERTS}


def _run(uri: str, kind: str, mode: str, number: int, stage: str, flag: str, small: bool) -> None:
    """A batch, in a process of its own."""
    names = ("STAGE", "BATCH", "FLAG", "VICTIM")
    os.environ.update(dict(zip([f"ESKER_KILL_{name}" for name in names], (stage, str(number), flag, ""), strict=True)))
    if mode == "upsert":
        _upsert(uri, kind, number)
        return
    sink.SMALL_BYTES = 256 * 1024 if small else 0
    first = 0 if mode == "complete" else number * ROWS
    rows = [{"id": n} for n in range(first, (number + 1) * ROWS)]
    batch = Batch(uri, SCHEMA, "a-query", number, complete=mode == "complete", source=KilledSource, tableFormat=kind)
    batch.run(rows[::3], rows[1::3], rows[2::3])


class _Frame:
    """What an upsert asks of the DataFrame of a batch."""

    schema = StructType().add("id", LongType())
    columns = schema.names

    def __init__(self, rows: range) -> None:
        self._rows = rows

    def toDF(self, *names: str) -> _Frame:
        return self

    def toArrow(self) -> pa.Table:
        return pa.table({"id": pa.array(self._rows, pa.int64())})


def _upsert(uri: str, kind: str, number: int) -> None:
    """Half of the rows are those of the batch before."""
    upsert = _Upsert(TableAddress(uri, {}), ["id"], None, {}, "a-query", kind == "delta")
    die("commit_start", number)
    dying_puts(number)
    first = max(number * ROWS - ROWS // 2, 0)
    upsert(_Frame(range(first, (number + 1) * ROWS)), number)  # type: ignore[arg-type]
    die("commit_end", number)


def killed_and_run_again(folder: Path, kind: str, mode: str, stage: str, victim: int, *, small: bool) -> list[int]:
    """The ids in a table of three batches, of which one was killed and run again, and another one run again, too."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    uri, flag = str(folder / "table"), str(folder / "died")
    for number in range(BATCHES):
        for stage_now in (stage if number == victim else "", ""):
            given = (uri, kind, mode, number, stage_now, flag, small)
            process = context.Process(target=_run, args=given)
            process.start()
            process.join()
            expected = -signal.SIGKILL if stage_now else 0
            assert process.exitcode == expected, (stage_now, process.exitcode)
    table = esker.dataset(uri).to_table() if kind == "lance" else DeltaTable(uri).to_pyarrow_table()
    return sorted(table["id"].to_pylist())


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_batch_that_is_killed_is_there_once_when_it_has_run_again(tmp_path: Path, kind: str, stage: str) -> None:
    victim = STAGES.index(stage) % BATCHES
    found = killed_and_run_again(tmp_path, kind, "append", stage, victim, small=False)
    assert found == list(range(BATCHES * ROWS))


@pytest.mark.parametrize("stage", ["put", "put_landed"])
@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_an_upsert_that_is_killed_is_there_once_when_it_has_run_again(tmp_path: Path, kind: str, stage: str) -> None:
    found = killed_and_run_again(tmp_path, kind, "upsert", stage, OF_UPSERTS.index(stage) % BATCHES, small=True)
    assert found == list(range(BATCHES * ROWS))


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_replacement_that_is_killed_is_there_once_when_it_has_run_again(tmp_path: Path, kind: str) -> None:
    found = killed_and_run_again(tmp_path, kind, "complete", "put_landed", 1, small=True)
    assert found == list(range(BATCHES * ROWS))


def by_hand(runs: int) -> None:
    """All formats, modes and stages so often; prints the figures."""
    done, wrong = Counter[str](), 0
    for _ in range(runs):
        for kind in ("lance", "delta"):
            for mode, stages in _MODES.items():
                for stage in stages:
                    victim, small = random.randrange(BATCHES), random.random() < 0.5
                    with tempfile.TemporaryDirectory() as folder:
                        found = killed_and_run_again(Path(folder), kind, mode, stage, victim, small=small)
                    done[stage if mode != "upsert" else f"upsert {stage}"] += 1
                    if found != list(range(BATCHES * ROWS)):
                        wrong += 1
                        print("wrong:", kind, mode, stage, victim, small, found, flush=True)
        print(f"{done.total()} runs, {wrong} wrong: {dict(done)}", flush=True)
