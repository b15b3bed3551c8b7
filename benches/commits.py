"""Commits and changes of rows, beside pylance: `python -m benches.commits`.

Both libraries in turns, without fsync, which pylance never does (`--durable` lets esker do it). Each operation starts
from a copy of the same table; making the copy is not timed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import esker
from benches.cases import remove
from benches.measure import Operation, in_turns
from esker.fragment import write_fragments

LIBRARIES = {"esker": esker, "pylance": lance}
PROCESSES = 4
COMMITS = 50


@dataclass(frozen=True)
class Subject:
    """One library with its place: `folder` holds the tables that cases share, `target` is free to write to."""

    name: str
    folder: Path
    rows: int
    durable: bool

    @property
    def library(self) -> Any:
        """The module."""
        return LIBRARIES[self.name]

    @property
    def target(self) -> str:
        """Where this library's copy of a table is."""
        return str(self.folder / f"copy-{self.name}")

    @property
    def options(self) -> dict[str, Any]:
        """What makes both equally durable."""
        return {"durable": self.durable} if self.name == "esker" else {}


@dataclass(frozen=True)
class Case:
    """One thing to measure: its name, its title in reports, and what makes the operation."""

    name: str
    title: str
    prepare: Callable[[Subject], Operation]


def numbers(start: int, stop: int) -> pa.Table:
    """Rows of a key, two numbers and a text."""
    keys = np.arange(start, stop)
    text = pa.array(np.char.add("row ", keys.astype(str)))
    return pa.table({"k": keys, "n": keys % 1000, "v": keys * 0.5, "s": text})


def made(path: Path, make: Callable[[str], object]) -> Path:
    """The table at `path`, made if it is not there yet."""
    if not path.exists():
        make(str(path))
    return path


def table(subject: Subject) -> Path:
    """The table of `rows` rows in ten fragments."""

    def make(uri: str) -> None:
        lance.write_dataset(numbers(0, subject.rows), uri, max_rows_per_file=max(1, subject.rows // 10))

    return made(subject.folder / "rows", make)


def on_copy(subject: Subject, source: Path, run: Callable[[str], object]) -> Operation:
    """`run` on a copy of `source`, whose files are links to the same bytes: none is ever changed."""

    def copy() -> None:
        remove(Path(subject.target))
        shutil.copytree(source, subject.target, copy_function=os.link)

    return Operation(run=lambda: run(subject.target), before=copy, after=lambda: remove(Path(subject.target)))


def append(subject: Subject) -> Operation:
    """Append 100 rows: open, write a file, commit."""
    rows = numbers(0, 100)
    return on_copy(
        subject,
        table(subject),
        lambda uri: subject.library.write_dataset(rows, uri, mode="append", **subject.options),
    )


def delete(subject: Subject) -> Operation:
    """Delete every tenth row."""
    return on_copy(
        subject, table(subject), lambda uri: subject.library.dataset(uri).delete("n % 10 = 3", **subject.options)
    )


def update(subject: Subject) -> Operation:
    """Update every tenth row."""
    return on_copy(
        subject,
        table(subject),
        lambda uri: subject.library.dataset(uri).update({"v": "v + 1"}, where="n % 10 = 3", **subject.options),
    )


def update_few(subject: Subject) -> Operation:
    """Update ten rows."""
    return on_copy(
        subject,
        table(subject),
        lambda uri: subject.library.dataset(uri).update({"v": "v + 1"}, where="k < 10", **subject.options),
    )


def upsert(subject: Subject) -> Operation:
    """Upsert a thirtieth of the rows by key, in any order: half of them are there, half are new."""
    rng = np.random.default_rng(0)
    half = max(1, subject.rows // 60)
    there = rng.choice(subject.rows, half, replace=False)
    rows = pa.concat_tables([numbers(0, subject.rows).take(there), numbers(subject.rows, subject.rows + half)])
    rows = rows.take(rng.permutation(2 * half)).combine_chunks()

    def run(uri: str) -> object:
        merge = subject.library.dataset(uri).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        return merge.execute(rows, **subject.options)

    return on_copy(subject, table(subject), run)


def opening_versions(subject: Subject) -> Operation:
    """Open a table of 1,000 versions and count its rows."""

    def make(uri: str) -> None:
        for number in range(1000):
            lance.write_dataset(numbers(number, number + 1), uri, mode="append")

    path = made(subject.folder / "versions", make)
    return Operation(lambda: subject.library.dataset(str(path)).count_rows())


def opening_fragments(subject: Subject) -> Operation:
    """Open a table of 10,000 fragments and count its rows."""
    path = fragments(subject, 10_000)
    return Operation(lambda: subject.library.dataset(str(path)).count_rows())


def append_fragments(count: int) -> Callable[[Subject], Operation]:
    """Append 100 rows to a table of many fragments."""
    rows = numbers(0, 100)

    def prepare(subject: Subject) -> Operation:
        return on_copy(
            subject,
            fragments(subject, count),
            lambda uri: subject.library.write_dataset(rows, uri, mode="append", **subject.options),
        )

    return prepare


def fragments(subject: Subject, count: int) -> Path:
    """A table of many fragments of a row each. They share one file: it is the manifest that counts."""

    def make(uri: str) -> None:
        row = numbers(0, 1)
        (one,) = write_fragments(row, uri, mode="create")
        esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(row.schema, [one] * count))

    return made(subject.folder / f"fragments-{count}", make)


def commits_of(name: str, uri: str, number: int, options: dict[str, Any], start: Any, times: Any) -> None:
    """One process: waits for the others, then appends again and again, and tells when it began and was done."""
    library = LIBRARIES[name]
    rows = numbers(number, number + 1)
    start.wait()
    began = time.monotonic()
    for _ in range(COMMITS):
        library.write_dataset(rows, uri, mode="append", **options)
    times.put((began, time.monotonic()))


def processes(subject: Subject) -> float:
    """Seconds from the first commit of 4 processes of 50 appends each to the last."""
    remove(Path(subject.target))
    subject.library.write_dataset(numbers(0, 1), subject.target)
    context = multiprocessing.get_context("spawn")
    start, times = context.Barrier(PROCESSES), context.Queue()
    shared = (start, times)
    workers = [
        context.Process(target=commits_of, args=(subject.name, subject.target, number, subject.options, *shared))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    spans = [times.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    found = subject.library.dataset(subject.target).count_rows()
    if found != 1 + PROCESSES * COMMITS:
        raise RuntimeError(f"expected {1 + PROCESSES * COMMITS} rows after all commits, found {found}")
    remove(Path(subject.target))
    return max(done for _, done in spans) - min(began for began, _ in spans)


CASES = [
    Case("append", "append 100 rows", append),
    Case("delete-10", "delete 10 %", delete),
    Case("update-10", "update 10 %", update),
    Case("update-few", "update 10 rows", update_few),
    Case("upsert", "upsert a thirtieth", upsert),
    Case("open-versions", "open after 1,000 versions", opening_versions),
    Case("open-fragments", "open after 10,000 fragments", opening_fragments),
    Case("append-10000", "append after 10,000 fragments", append_fragments(10_000)),
    Case("append-100000", "append after 100,000 fragments", append_fragments(100_000)),
]
PROCESSES_CASE = "processes"


def report(title: str, ours: float, theirs: float) -> None:
    """One line of what was measured."""
    print(f"{title:36}{ours * 1000:>11.2f} ms{theirs * 1000:>11.2f} ms{theirs / ours:>9.2f}")


def main(arguments: list[str] | None = None) -> None:
    """Makes the tables and measures."""
    names = [*(case.name for case in CASES), PROCESSES_CASE]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--durable", action="store_true", help="esker with fsync")
    parser.add_argument("--scratch", help="folder for the tables, on the disk to measure; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        subjects = {name: Subject(name, Path(folder), options.rows, options.durable) for name in LIBRARIES}
        print(f"{'':36}{'esker':>14}{'pylance':>14}{'ratio':>9}")
        for case in CASES:
            if case.name in options.cases:
                samples = in_turns({name: case.prepare(it) for name, it in subjects.items()}, options.rounds)
                report(case.title, samples["esker"].median, samples["pylance"].median)
        if PROCESSES_CASE in options.cases:
            best = {name: min(processes(it) for _ in range(3)) for name, it in subjects.items()}
            report(f"{PROCESSES} processes x {COMMITS} commits", best["esker"], best["pylance"])


if __name__ == "__main__":
    main()
