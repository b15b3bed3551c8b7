"""A query that dies by `kill -9` at a stage of a batch, and what is in its table after it was started again.

`python -m tests.spark.killed RUNS [SECONDS]` does it RUNS times for each format, mode and stage, and prints figures;
`killed_often` lets one JVM serve many kills, `test_stream_kills` does without Spark. Each run is processes of their
own: the driver, its JVM, the workers of tasks and of the commit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

import esker
from esker.commit import loop
from esker.delta import DeltaTable
from esker.spark import EskerSource
from esker.spark.streaming.batch_identity import BATCH_ID
from esker.spark.streaming.sink import EskerStreamWriter

STAGES = ("task_start", "task", "task_end", "commit_start", "put", "put_landed", "commit_end")
"""Before, during and after the work of a task; before the commit, before its put, after it with the reply lost, and
after the commit, before Spark knows of it."""
OF_UPSERTS = ("commit_start", "put", "put_landed", "commit_end")
EACH = "each"
PLAN = "ESKER_KILL_PLAN"
FILES = 3
_ROWS = 40
_STAGE, _BATCH, _FLAG, _DRIVER, _VICTIM = (
    f"ESKER_KILL_{name}" for name in ("STAGE", "BATCH", "FLAG", "DRIVER", "VICTIM")
)


def die(stage: str, batch: object) -> None:
    """Dies if this is the stage and the batch: once, or once in each batch."""
    plan = _plan()
    wanted = plan.get(_BATCH)
    if stage != plan.get(_STAGE) or wanted not in (str(batch), EACH):
        return
    flag = f"{plan[_FLAG]}-{batch}" if wanted == EACH else plan[_FLAG]
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if plan.get(_VICTIM) == "driver":
        # The driver and its JVM.
        os.killpg(int(os.environ[_DRIVER]), signal.SIGKILL)
    if plan.get(_VICTIM) == "executor":
        # The JVM that has started the daemon that has forked this worker.
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.rpartition(") ")[2].split()[1]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _plan() -> Mapping[str, str]:
    """Where to die: from a file where one JVM serves several plans, otherwise from the environment."""
    if PLAN not in os.environ:
        return os.environ
    found: dict[str, str] = json.loads(Path(os.environ[PLAN]).read_text())
    return found


def plan(folder: Path, stage: str, batch: str, victim: str) -> dict[str, str]:
    """Where to die."""
    return {_STAGE: stage, _BATCH: batch, _VICTIM: victim, _FLAG: str(folder / "died")}


def dying_puts(batch: object) -> None:
    """Has the commit loop of this process die before and after its put."""
    put = getattr(loop._Race, "undying", loop._Race._put)
    loop._Race.undying = put  # type: ignore[attr-defined]

    def dying(self: Any, version: int, data: bytes) -> Any:
        die("put", batch)
        found = put(self, version, data)
        die("put_landed", batch)
        return found

    loop._Race._put = dying  # type: ignore[method-assign]


class DyingWriter(EskerStreamWriter):
    """The sink, in processes that die."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        context = TaskContext.get()
        assert context is not None
        batch = context.getLocalProperty(BATCH_ID)

        def rows() -> Iterator[pa.RecordBatch]:
            for found in iterator:
                yield found
                die("task", batch)

        die("task_start", batch)
        written = super().write(rows())
        die("task_end", batch)
        return written

    def commit(self, messages: Any, batchId: int) -> None:
        die("commit_start", batchId)
        dying_puts(batchId)
        super().commit(messages, batchId)
        die("commit_end", batchId)


class KilledSource(EskerSource):
    """The format `killed`."""

    @classmethod
    def name(cls) -> str:
        return "killed"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        made = super().streamWriter(schema, overwrite)
        made.__class__ = DyingWriter
        return made


def session(master: str) -> Any:
    """A session with speculation, for a busy machine."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "512m",
        # A JVM that lives for a few batches of a few rows is faster without what pays for many.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.01",
        "spark.sql.session.timeZone": "UTC",
        "spark.network.timeout": "600s",
        "spark.executor.heartbeatInterval": "60s",
        "spark.python.daemon.module": "tests.spark.warm_daemon",
        # A master gives an application up whose executors are killed ten times.
        "spark.deploy.maxExecutorRetries": "-1",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def query(folder: str, kind: str, mode: str) -> None:
    """Runs the query over all files that are there: the driver."""
    # The JVM and its workers are of this process's group, and die with it.
    os.environ[_DRIVER] = str(os.getpgid(0))
    spark = session("local-cluster[2,1,1024]" if os.environ.get(_VICTIM) == "executor" else "local[2,4]")
    run(spark, folder, kind, mode)
    spark.stop()


def run(spark: Any, folder: str, kind: str, mode: str) -> None:
    """Runs the query in a session that is there."""
    from esker.spark.streaming import upsert
    from tests.spark import killed

    spark.dataSource.register(killed.KilledSource)
    rows = spark.readStream.schema("id long, s string").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    uri = f"{folder}/table"
    if mode == "upsert":
        undying = getattr(upsert._Upsert, "undying", upsert._Upsert.__call__)
        upsert._Upsert.undying = undying  # type: ignore[attr-defined]

        def dying(self: Any, frame: Any, batch: int) -> None:
            die("commit_start", batch)
            dying_puts(batch)
            undying(self, frame, batch)
            die("commit_end", batch)

        upsert._Upsert.__call__ = dying  # type: ignore[method-assign]
        writer = upsert.upsert_stream(rows, uri, keys="id", table_format=kind)
    else:
        rows = rows.groupBy("id").count() if mode == "complete" else rows.repartition(2)
        writer = rows.writeStream.format("killed").option("tableFormat", kind).option("path", uri).outputMode(mode)
    started = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    started.awaitTermination()


def start(folder: Path, kind: str, mode: str, stage: str, batch: int | str, victim: str) -> int:
    """Runs the query in a process of its own, which dies at a stage, or which does not."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed", "query", str(folder), kind, mode],
        env={"PYSPARK_PYTHON": sys.executable, **os.environ, **plan(folder, stage, str(batch), victim)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("wb"),
    )
    return process.wait(timeout=900)


def put_files(folder: Path, mode: str, numbers: Iterable[int]) -> None:
    """Puts files of rows where the query looks for them, one for each batch."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        # Batches of an upsert overlap.
        first = number * (_ROWS // 2 if mode == "upsert" else _ROWS)
        lines = [json.dumps({"id": first + n, "s": f"batch {number}"}) for n in range(_ROWS)]
        (folder / f"{number}.json").write_text("\n".join(lines))
        os.utime(folder / f"{number}.json", (number + 1, number + 1))
        (folder / f"{number}.json").rename(folder / "in" / f"{number}.json")


def wrong(folder: Path, kind: str, mode: str, files: int) -> str:
    """What is wrong with the table after the batches of so many files, if anything."""
    uri = str(folder / "table")
    table = esker.dataset(uri).to_table() if kind == "lance" else DeltaTable(uri).to_pyarrow_table()
    found = Counter(table["id"].to_pylist())
    wanted = range(_ROWS * (files + 1) // 2 if mode == "upsert" else _ROWS * files)
    missing, twice = set(wanted) - set(found), {number for number, count in found.items() if count > 1}
    if missing or twice or set(found) - set(wanted):
        return f"{len(missing)} missing, {len(twice)} twice, {len(set(found) - set(wanted))} unknown"
    if mode == "complete" and set(table["count"].to_pylist()) != {1}:
        return "counted twice"
    if mode == "upsert":
        newest = {row["id"]: row["s"] for row in table.to_pylist()}
        late = [n for n in wanted if newest[n] != f"batch {min(n // (_ROWS // 2), files - 1)}"]
        return f"{len(late)} of an older batch" if late else ""
    return ""


def outcome(folder: Path, kind: str, mode: str, stage: str, victim: str, *, torn: bool = False) -> str:
    """Kills a query in a batch, starts it until it ends, and says what is wrong with the table, if anything.

    Args:
        folder: For the files, the table and the checkpoint.
        kind: The format of the table.
        mode: "append", "complete" or "upsert".
        stage: Where it dies.
        victim: "driver" for all its processes, "worker" for the one that is at that stage, "executor" for the JVM that
            runs the tasks of that worker.
        torn: Whether the note of the checkpoint that the last batch is done is lost, too.
    """
    put_files(folder, mode, range(FILES))
    code = start(folder, kind, mode, stage, random.randrange(FILES), victim)
    if not (folder / "died").exists():
        return f"did not die: {code}"
    if torn:
        # As if the machine had lost what it wrote last.
        notes = sorted((folder / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        for path in notes[-1:]:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    for _ in range(2):
        code = start(folder, kind, mode, "", 0, "")
        if code != 0:
            return f"did not start again: {code}: {(folder / 'stderr').read_text()[-2000:]}"
    return wrong(folder, kind, mode, FILES)


def cases() -> Iterable[tuple[str, str, str]]:
    """All formats, modes and stages."""
    for kind in ("lance", "delta"):
        for mode in ("append", "complete"):
            yield from ((kind, mode, stage) for stage in STAGES)
        yield from ((kind, "upsert", stage) for stage in OF_UPSERTS)


def by_hand(runs: int, seconds: float) -> None:
    """Does all cases `runs` times, or as often as there is time, and prints what came of them."""
    until, figures, mistakes = time.monotonic() + seconds, Counter[str](), []
    for number in range(runs):
        shuffled = list(cases())
        random.shuffle(shuffled)
        for kind, mode, stage in shuffled:
            if time.monotonic() > until:
                break
            victim = ("driver", "worker", "executor")[number % 3]
            if mode == "upsert" or (victim == "executor" and not stage.startswith("task")):
                victim = "driver"
            with tempfile.TemporaryDirectory() as folder:
                found = outcome(Path(folder, "q"), kind, mode, stage, victim, torn=number % 2 == 1)
            figures[f"{kind} {mode} {stage} {victim}: {'wrong' if found else 'right'}"] += 1
            if found:
                mistakes.append(f"{kind} {mode} {stage} {victim}: {found}")
                print(mistakes[-1], flush=True)
    for case, count in sorted(figures.items()):
        print(f"{case}: {count}")
    print(f"{sum(figures.values())} runs, {len(mistakes)} wrong")


if __name__ == "__main__":
    if sys.argv[1] == "query":
        query(*sys.argv[2:])
    else:
        by_hand(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
