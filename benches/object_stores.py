"""Requests and seconds on an S3 server, beside pylance: `python -m benches.object_stores`.

Both libraries do the same work on a table of their own with the same rows, through a proxy that counts requests. With
`--delay` (20 ms) each reply is held back that long, as a network would; then operations are timed in turns. The server
is MinIO where it has been built, else ministack (see tests/servers); it runs on this machine, so that what is compared
is what each library asks of it, and how much of that at once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import esker
from tests.servers import S3Server, start_s3
from tests.servers.counting import CountingProxy, Request
from tests.servers.s3 import described

LIBRARIES = {"esker": esker, "pylance": lance}
ROWS = 200_000
FRAGMENTS = 4


@dataclass(frozen=True)
class Subject:
    """One library and its table of `ROWS` rows."""

    name: str
    root: str
    options: dict[str, str]

    @property
    def library(self) -> Any:
        return LIBRARIES[self.name]

    @property
    def uri(self) -> str:
        return f"{self.root}/rows-{self.name}"

    def open(self) -> Any:
        return self.library.dataset(self.uri, storage_options=self.options)


Work = Callable[[Subject, Any], object]
"""What is counted: given the subject and what was prepared."""


@dataclass(frozen=True)
class Case:
    """One operation: `prepare` is not counted."""

    title: str
    run: Work
    prepare: Callable[[Subject], Any] = lambda subject: None


def numbers(start: int, stop: int) -> pa.Table:
    keys = np.arange(start, stop)
    text = pa.array(np.char.add("row ", keys.astype(str)))
    return pa.table({"k": keys, "n": keys % 1000, "v": keys * 0.5, "s": text})


def _write(subject: Subject, where: Any, **options: Any) -> object:
    return subject.library.write_dataset(numbers(0, 100), where, storage_options=subject.options, **options)


def _new(subject: Subject) -> str:
    return f"{subject.root}/new-{subject.name}-{time.monotonic_ns()}"


TAKEN = sorted(np.random.default_rng(7).choice(ROWS, 100, replace=False).tolist())

CASES = [
    Case("create", _write, _new),
    Case("open", lambda subject, _: subject.open()),
    Case("open version 1", lambda s, _: s.library.dataset(s.uri, version=1, storage_options=s.options)),
    Case("open, count", lambda subject, _: subject.open().count_rows()),
    Case("newest version", lambda _, table: table.latest_version, Subject.open),
    Case("take 100 rows", lambda _, table: table.take(TAKEN), Subject.open),
    Case("take 100 rows of 1 column", lambda _, table: table.take(TAKEN, columns=["v"]), Subject.open),
    Case("take 1 row", lambda _, table: table.take([TAKEN[50]]), Subject.open),
    Case("scan", lambda _, table: table.to_table(), Subject.open),
    Case("scan 1 column", lambda _, table: table.to_table(columns=["n"]), Subject.open),
    Case("scan with a filter", lambda _, table: table.to_table(filter="n = 3"), Subject.open),
    Case("first 10 rows", lambda _, table: table.head(10), Subject.open),
    Case("open, append 100 rows", lambda s, _: _write(s, s.uri, mode="append")),
    Case("append to an open table", lambda s, table: _write(s, table, mode="append"), Subject.open),
    Case("scan, with the new fragments", lambda _, table: table.to_table(), Subject.open),
    Case("delete", lambda _, table: table.delete("k = 77"), Subject.open),
    Case("update", lambda _, table: table.update({"v": "1.0"}, where="k = 78"), Subject.open),
    Case("upsert 100 rows", lambda _, table: _upsert(table), Subject.open),
    Case("versions", lambda _, table: table.versions(), Subject.open),
]


def _upsert(table: Any) -> object:
    return table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(numbers(500, 600))


def make(subject: Subject, versions: int) -> None:
    """The table, with a history of `versions` versions."""
    library, options = subject.library, subject.options
    library.write_dataset(numbers(0, ROWS), subject.uri, max_rows_per_file=ROWS // FRAGMENTS, storage_options=options)
    for number in range(versions - 1):
        subject.open().update_config({"turn": str(number)})


def counted(case: Case, subject: Subject, proxy: CountingProxy) -> list[Request]:
    """The requests of one operation."""
    prepared = case.prepare(subject)
    proxy.take()
    case.run(subject, prepared)
    return proxy.take()


def timed(case: Case, subject: Subject) -> float:
    """Seconds of one operation."""
    prepared = case.prepare(subject)
    start = time.perf_counter()
    case.run(subject, prepared)
    return time.perf_counter() - start


def run(server: S3Server, *, versions: int, rounds: int, delay_s: float, cases: list[Case]) -> list[tuple[Any, ...]]:
    """For each case: its title, the requests and bytes of both, their seconds."""
    found = []
    with CountingProxy(server.server.port) as proxy:
        options = {**server.storage_options, "aws_endpoint": proxy.endpoint}
        root = f"s3://{server.bucket()}"
        subjects = [Subject(name, root, options) for name in LIBRARIES]
        for subject in subjects:
            make(subject, versions)
        for case in cases:
            proxy.delay_s = 0
            requests = {subject.name: counted(case, subject, proxy) for subject in subjects}
            proxy.delay_s = delay_s
            seconds: dict[str, list[float]] = {subject.name: [] for subject in subjects}
            for number in range(rounds):
                for subject in subjects if number % 2 else reversed(subjects):
                    seconds[subject.name].append(timed(case, subject))
            found.append((case.title, requests, seconds))
    return found


def kinds(requests: list[Request]) -> str:
    counts = Counter(request.kind for request in requests)
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in counts.items())


def report(found: list[tuple[Any, ...]], *, details: bool) -> None:
    """Prints the figures of both, and ratios pylance / esker: above 1 esker is faster, or reads and writes less."""
    print("| operation | requests | pylance | bytes, ratio | ms | pylance | ratio |")
    print("|---|---|---|---|---|---|---|")
    for title, requests, seconds in found:
        ours, theirs = requests["esker"], requests["pylance"]
        bytes_ = [sum(request.sent + request.received for request in each) for each in (ours, theirs)]
        row = [title, str(len(ours)), str(len(theirs)), f"{bytes_[1] / max(1, bytes_[0]):.2f}"]
        if seconds["esker"]:
            middle = [statistics.median(seconds[name]) for name in LIBRARIES]
            row += [*(f"{value * 1000:.0f}" for value in middle), f"{middle[1] / middle[0]:.2f}"]
        else:
            row += ["", "", ""]
        print("| " + " | ".join(row) + " |")
    if details:
        for title, requests, _ in found:
            print(f"\n{title}")
            for name in LIBRARIES:
                print(f"  {name}: {kinds(requests[name])}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=20, help="versions of the table")
    parser.add_argument("--rounds", type=int, default=7, help="timed runs of each operation; 0 counts only")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that a reply takes longer when timed")
    parser.add_argument("--cases", nargs="*", help="parts of titles")
    parser.add_argument("--details", action="store_true", help="name the requests")
    options = parser.parse_args(arguments)
    chosen = [case for case in CASES if not options.cases or any(part in case.title for part in options.cases)]
    with start_s3() as server:
        print(
            f"S3 server: {described()}, {options.versions} versions, {options.delay * 1000:.0f} ms added when timed\n"
        )
        found = run(server, versions=options.versions, rounds=options.rounds, delay_s=options.delay, cases=chosen)
    report(found, details=options.details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
