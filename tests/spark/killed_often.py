"""Many kills for few starts of Spark: each batch of a query is killed once at one stage, and the table checked after.

`python -m tests.spark.killed_often VICTIM BATCHES SECONDS [WORD...]`, whole paths in `PYTHONPATH`: `worker` kills the
Python processes of tasks and commits, and `executor` the JVMs of tasks, all under one driver; `driver` kills the driver
with its JVM, and starts it again for each kill; `torn` takes back the checkpoint's note that a batch is done. Words
choose formats, modes, stages.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.spark.killed import EACH, OF_UPSERTS, PLAN, STAGES, plan, put_files, run, session, start, wrong

Case = tuple[str, str, str]
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def cases(victim: str) -> Iterator[Case]:
    """Formats, modes and stages at which such a process can be killed."""
    stages: Iterable[str] = STAGES
    if victim == "executor":
        stages = ("task_start", "task", "task_end")
    if victim == "torn":
        stages = ("torn",)
    for stage in stages:
        for kind in ("lance", "delta"):
            for mode in ("append", "complete"):
                yield kind, mode, stage
    if victim in ("driver", "torn"):
        # An upsert is committed by the driver itself.
        for stage in OF_UPSERTS if victim == "driver" else stages:
            yield from ((kind, "upsert", stage) for kind in ("lance", "delta"))


def killed(folder: Path) -> int:
    """How often a query was killed."""
    return sum(1 for _ in folder.glob("died-*"))


class Kept:
    """One session that serves all kills."""

    def __init__(self, victim: str) -> None:
        self._victim = victim
        self._plan = Path(tempfile.mkdtemp()) / "plan.json"
        os.environ[PLAN] = str(self._plan)
        self._aim({})
        self._spark = session("local-cluster[2,1,1024]" if victim == "executor" else "local[2,4]")

    def _aim(self, where: dict[str, str]) -> None:
        fresh = self._plan.with_name("next")
        fresh.write_text(json.dumps(where))
        fresh.rename(self._plan)

    def kills(self, folder: Path, case: Case, batches: int) -> int:
        """Runs the query of a case until it ends, and once more; returns how often it was killed."""
        kind, mode, stage = case
        if stage == "torn":
            return self._torn(folder, kind, mode, batches)
        put_files(folder, mode, range(batches))
        self._aim(plan(folder, stage, EACH, self._victim))
        last: Exception | None = None
        for _ in range(batches + 3):
            try:
                run(self._spark, str(folder), kind, mode)
                break
            except Exception as error:
                last = error
        else:
            raise RuntimeError("did not end") from last
        self._aim({})
        take_note_back(folder)
        run(self._spark, str(folder), kind, mode)
        return killed(folder)

    def _torn(self, folder: Path, kind: str, mode: str, batches: int) -> int:
        for number in range(batches):
            put_files(folder, mode, [number])
            run(self._spark, str(folder), kind, mode)
            if not take_note_back(folder):
                raise RuntimeError("expected a note to take back")
            (folder / f"died-{number}").touch()
        run(self._spark, str(folder), kind, mode)
        return killed(folder)


class Anew:
    """A driver for each kill."""

    def __init__(self) -> None:
        # The classes of Spark, which a JVM of its own would load and check anew for each kill.
        self._shared = Path(tempfile.mkdtemp()) / "classes.jsa"
        with tempfile.TemporaryDirectory() as name, java(f"-XX:ArchiveClassesAtExit={self._shared}"):
            put_files(Path(name), "append", [0])
            start(Path(name), "lance", "append", "", 0, "")

    def kills(self, folder: Path, case: Case, batches: int) -> int:
        """Starts the query of a case until it ends, and once more; returns how often it was killed."""
        kind, mode, stage = case
        put_files(folder, mode, range(batches))
        with java(f"-XX:SharedArchiveFile={self._shared}"):
            for _ in range(batches + 3):
                if start(folder, kind, mode, stage, EACH, "driver") == 0:
                    break
            else:
                raise RuntimeError("did not end: " + (folder / "stderr").read_text()[-2000:])
        return killed(folder)


@contextmanager
def java(*options: str) -> Iterator[None]:
    """With options of Java for JVMs that live shortly."""
    with patch.dict(os.environ, JDK_JAVA_OPTIONS=" ".join([*_SHORT, *options])):
        yield


def take_note_back(folder: Path) -> bool:
    """Takes the note back that the last batch is done, as if the machine had lost what it wrote last."""
    numbers = [
        max((int(path.name) for path in (folder / "checkpoint" / log).glob("[0-9]*")), default=-1)
        for log in ("offsets", "commits")
    ]
    if numbers[0] != numbers[1] or numbers[0] < 0:
        return False
    note = folder / "checkpoint" / "commits" / str(numbers[1])
    note.unlink()
    note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
    return True


def main(victim: str, batches: int, seconds: float, words: set[str]) -> None:
    """Runs the cases, and prints what came of them."""
    until, figures, mistakes = time.monotonic() + seconds, Counter[str](), 0
    with java():
        kills: Any = Anew() if victim == "driver" else Kept(victim)
    for case in cases(victim):
        if (words and not words & set(case)) or time.monotonic() > until:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "q")
            try:
                count = kills.kills(folder, case, batches)
                found = wrong(folder, case[0], case[1], batches)
            except Exception as error:
                count, found = killed(folder), f"{error!r} of {error.__cause__!r}"[:2000]
        figures[case[2]] += count
        mistakes += bool(found)
        print(victim, *case, f"{count} kills in {time.monotonic() - began:.0f} s", found or "right", flush=True)
    print(victim, dict(figures), f"{sum(figures.values())} kills, {mistakes} wrong", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), set(sys.argv[4:]))
