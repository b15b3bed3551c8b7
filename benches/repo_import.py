"""Many objects through one handle: imports of what exists elsewhere, and what is staged before a commit.

    python -m benches.repo_import [--files 100000] [--folders 10] [--staged 200000]

The source is a folder of empty files, to which so many other folders lead: a million objects out of a hundred thousand
files. Each step runs in a process of its own, over a folder without fsync; told are its seconds and by how much its
memory grew at most.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from esker._native.store import Store
from esker.repo import ObjectInfo, Repository, repository
from esker.store import stores


def timed(what: str, work: Callable[[], object]) -> None:
    """Runs something in a process of its own, and tells its time and memory."""
    child = os.fork()
    if not child:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{what:44} {seconds:7.2f} s   peak +{(peak - before) / 1024:5.0f} MiB   {found}", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, f"{what} failed"


def fill(folder: Path, files: int, folders: int) -> None:
    """So many empty files, a thousand a folder, and links to all of them."""
    for n in range(files):
        place = folder / "real" / f"day={n // 1000:05}"
        if n % 1000 == 0:
            place.mkdir(parents=True)
        (place / f"part-{n * 7919 % files:08}-c000.snappy.parquet").touch()
    for n in range(folders):
        (folder / "source" / f"year={n:02}").mkdir(parents=True)
        (folder / "source" / f"year={n:02}" / "days").symlink_to(folder / "real")


def imported(repo: str, source: Path) -> object:
    """Imports all of it."""
    return repository(repo).branch("main").import_data("all").prefix(str(source), "lake/").run().ingested_objects


def staged(repo: str, objects: int) -> Repository:
    """A handle that has staged so many objects, in no order."""
    opened = repository(repo)
    branch = opened.branch("main")
    when = datetime.now(UTC)
    for n in range(objects):
        k = n * 7919 % objects
        path = f"tables/events/day={k // 1000:05}/part-{k:09}.parquet"
        branch._stage(path, ObjectInfo(path, f"data/09527361/{k:032x}", k, f"{k * 31:032x}", when))
    return opened


def listed(opened: Repository) -> int:
    """All objects of the branch, with what is staged."""
    return sum(1 for _ in opened.branch("main").objects())


def steps_of_staging(repo: str, objects: int) -> None:
    """Stages, looks at it, and commits."""
    timed(f"stage {objects}", lambda: len(staged(repo, objects)._core.staging("main")))
    opened = staged(repo, objects)
    branch = opened.branch("main")
    timed("list with what is staged", lambda: listed(opened))
    timed("uncommitted()", lambda: sum(1 for _ in branch.uncommitted()))
    timed("look at one, stage one, a thousand times", lambda: [turn(opened, n) for n in range(1000)][-1])
    timed("commit what is staged", lambda: branch.commit("staged").id[:12])
    branch.commit("staged")
    paths = [entry.path for entry in opened.ref("main").objects(prefix="tables/")][: objects // 2]
    timed(f"delete_objects of {len(paths)}", lambda: deleted(opened, paths))


def turn(opened: Repository, number: int) -> int:
    """What programs do that look before they write."""
    branch = opened.branch("main")
    found = len(list(branch.objects(prefix=f"new/{number - 1}", max_amount=1)))
    branch._stage(f"new/{number}", ObjectInfo(f"new/{number}", f"data/0/{number}", 1, "0"))
    return found


def deleted(opened: Repository, paths: list[str]) -> int:
    """Deletes them in one commit, and lists what is left before that."""
    branch = opened.branch("main")
    branch.delete_objects(paths)
    left = listed(opened)
    branch.commit("deleted")
    return left


def main() -> None:
    """Makes a source and a repository, and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=10)
    parser.add_argument("--staged", type=int, default=200_000)
    options = parser.parse_args()
    stores.register("fast", lambda uri, _, durable: Store(uri.removeprefix("fast://"), durable=False))
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), options.files, options.folders)
        repo = f"fast://{folder}/repo"
        Repository.create(repo, committer="bench")
        source = Path(folder) / "source"
        timed("list the source", lambda: len(Store(str(source)).list_paths()))
        timed(f"import {options.files * options.folders}", lambda: imported(repo, source))
        timed("garbage collection, dry", lambda: repository(repo).gc())
        timed("fsck", lambda: list(repository(repo).fsck()))
        other = f"fast://{folder}/other"
        Repository.create(other, committer="bench")
        steps_of_staging(other, options.staged)


if __name__ == "__main__":
    main()
