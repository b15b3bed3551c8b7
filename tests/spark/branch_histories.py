"""Random histories of two streams into a table on a branch of a repository, with up to two faults at once.

As those of `stream_histories`: a batch is run again until it has ended, and sometimes once more, while others commit to
the table, to the rest of the branch and to another branch, merge it, clean up and collect garbage. In the end each row
is there once. By hand: `python -m tests.spark.branch_histories FIRST_SEED COUNT`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError
from esker.repo import Repository
from esker.repo.table_address import address
from esker.store.stores import register
from tests.spark import stream_histories
from tests.spark.stream_histories import FAULTS, WEATHER, Course, Strikes


class BranchCourse(Course):
    """One history, on a branch."""

    def __init__(self, seed: int, folder: Path, faults: Sequence[str]) -> None:
        super().__init__(seed, folder, faults)
        self.repo = Repository.create(folder / "lake", committer="me")
        self.main = self.repo.branch("main")
        self.path = self.main.store_uri("t")
        self.uri = address(f"{stream_histories.SCHEME}://{folder / 'lake'}", "main", "t")
        self.collections = 0

    def there(self) -> Counter[tuple[int, str]]:
        """The rows."""
        if self.kind == "delta":
            table = DeltaTable(self.path).to_pyarrow_table()
        else:
            table = esker.dataset(self.path).to_table()
        return Counter(zip(table["id"].to_pylist(), table["by"].to_pylist(), strict=True))

    def _ends(self, query: str, number: int, rows: list[dict[str, Any]], strikes: Strikes) -> bool:
        before = self.collections
        try:
            return super()._ends(query, number, rows, strikes)
        except NotFoundError:
            # A collection without a grace period has taken what tasks had staged, which is read or committed then.
            assert self.collections > before
            return False

    def _other(self) -> None:
        WEATHER.set({})
        if not any(True for _ in self.main.objects(prefix="t/")):
            return
        self.others += 1
        deeds = [self._beside, self._compact, self._clean, self._collect]
        if self.mode != "complete":
            # A batch in complete mode replaces the rows of others, or conflicts with them.
            deeds += [self._append, self._merge]
        self.rng.choice(deeds)()

    def _append(self, uri: str | None = None) -> None:
        rows = pa.table({"id": pa.array([-self.others], pa.int64()), "by": ["other"]})
        if self.kind == "lance":
            esker.write_dataset(rows, uri or self.path, mode="append")
        else:
            write_deltalake(uri or self.path, rows, mode="append")
        self.expected[-self.others, "other"] += 1

    def _beside(self) -> None:
        """A commit of the branch that is not one of the table."""
        with self.main.transact("beside") as tx:
            tx.object(f"beside/{self.others}").upload(b"x")

    def _merge(self) -> None:
        """A branch on which rows were added."""
        other = self.repo.branch(f"b{self.others}").create("main")
        self._append(other.store_uri("t"))
        if self.rng.random() < 0.5:
            self._beside()
        other.merge_into("main")

    def _compact(self) -> None:
        if self.kind == "lance":
            esker.dataset(self.path).optimize.compact_files()

    def _clean(self) -> None:
        if self.kind == "lance":
            esker.dataset(self.path).cleanup_old_versions(older_than=timedelta(0))

    def _collect(self) -> None:
        self.collections += 1
        self.repo.gc(dry_run=False, grace_s=0)


def course(seed: int, faults: Sequence[str] = FAULTS) -> BranchCourse:
    """Runs a history; what is wrong is an `AssertionError`."""
    with suppress(Exception):
        register(stream_histories.SCHEME, stream_histories.open_store)
    folder = Path(tempfile.mkdtemp())
    try:
        made = BranchCourse(seed, folder, faults)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = made.run()
        assert found == made.expected, (seed, made.kind, made.expected - found, found - made.expected)
        return made
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    stream_histories.main(int(sys.argv[1]), int(sys.argv[2]), course)
