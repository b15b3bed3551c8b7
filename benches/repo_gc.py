"""Garbage collection over many commits, in bounded memory.

    python -m benches.repo_gc [--commits 1000] [--objects 200]

Each commit replaces some objects of many, so that most ranges are shared and all data of old commits is garbage. Told
are the seconds and the growth of memory of a dry run and of one that deletes, beside a listing of the same objects.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from esker._native.store import Store
from esker.repo import Repository, repository
from esker.store import stores

MONTHS_S = 60 * 86400


def fill(folder: str, commits: int, objects: int) -> Repository:
    """A history of two months ago: every commit writes `objects` paths of twenty times as many."""
    # Nothing waits for a disk: filling is not what is measured.
    stores.register("fast", lambda uri, _, durable: Store(uri.removeprefix("fast://"), durable=False))
    repo = Repository.create(f"fast://{folder}", committer="bench")
    repo.change_settings(raggedness=200)
    main = repo.branch("main")
    then = int(time.time()) - MONTHS_S
    for n in range(commits):
        for k in range(objects):
            main.object(f"part={(n * 7 + k) % (20 * objects):06}/data").upload(b"%d %d" % (n, k))
        main.commit(f"commit {n}", date=then + n)
    for path in Path(folder).rglob("*"):
        os.utime(path, (then, then))
    return repo


def timed(what: str, work: Callable[[], object]) -> None:
    """Runs something in a process of its own, and tells its time and memory."""
    started = time.perf_counter()
    child = os.fork()
    if not child:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = work()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{what:40} peak +{(peak - before) / 1024:.0f} MiB  {found}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(f"{what:40} {time.perf_counter() - started:.2f} s")


def collected(folder: str, **options: Any) -> str:
    """What a collection found, and the requests that it sent to the store: a deletion counts each object."""
    repo = repository(folder)
    found = repo.gc(**options)
    stats = repo._core.store.io_stats_snapshot()
    return f"{found}; {stats.read_iops} reads of {stats.read_bytes / 1e6:.1f} MB, {stats.write_iops} writes"


def main() -> None:
    """Fills a repository and collects its garbage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        repo = fill(folder, options.commits, options.objects)
        print(f"{options.commits} commits of {options.objects} objects: {time.perf_counter() - started:.1f} s")
        timed("listing of all objects", lambda: len(repo._core.store.list_paths("data/")))
        repo.change_settings(retention_days=365)
        timed("dry run, all commits count", lambda: collected(folder))
        repo.change_settings(retention_days=21)
        timed("dry run", lambda: collected(folder))
        timed("collection", lambda: collected(folder, dry_run=False))
        timed("collection of nothing", lambda: collected(folder, dry_run=False))
        assert list(repository(folder).fsck()) == []


if __name__ == "__main__":
    main()
