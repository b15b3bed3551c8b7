"""Python workers of Spark collect garbage after each task: what they have imported is put aside, what users bring is
not."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker.spark
from esker.spark.wording import is_worker
from esker.spark.worker_task import WorkerTask
from tests.spark.conftest import load


@pytest.fixture
def numbers(uri: str) -> str:
    table = pa.table({"id": pa.array(range(1000), pa.int64()), "name": [f"n{i}" for i in range(1000)]})
    lance.write_dataset(table, uri, max_rows_per_file=400)
    return uri


KEPT = """
import gc, pickle, sys, weakref
import pyarrow as pa
from esker.spark import worker_task

worker_task.is_worker = lambda: sys.argv[1] == "worker"

class Model:
    def __init__(self):
        self.itself = self

    def __call__(self, batches):
        return batches

class Mapped(worker_task.MadeInWorkers):
    def __init__(self, model):
        self.model = model

sent = pickle.dumps(Mapped(Model()))
gc.unfreeze()
worker_task._known = 0
before = gc.get_freeze_count()
found = pickle.loads(sent)
frozen = gc.get_freeze_count() - before
model = weakref.ref(found.model)
del found
gc.collect()
print(frozen > 10_000, model() is None)
"""


@pytest.mark.parametrize(("where", "told"), [("worker", "True True"), ("driver", "False True")])
def test_imports_are_put_aside_in_a_worker_alone_and_what_users_bring_never(where: str, told: str) -> None:
    found = subprocess.run([sys.executable, "-c", KEPT, where], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == told, found.stderr


def test_workers_put_aside_once_what_they_have_imported(spark: Any, numbers: str) -> None:
    def told(batch: pa.RecordBatch) -> pa.RecordBatch:
        import gc
        import os

        return pa.RecordBatch.from_pydict({"process": [os.getpid()], "frozen": [gc.get_freeze_count()]})

    def frozen() -> dict[int, set[int]]:
        shown: dict[int, set[int]] = {}
        rows = esker.spark.map_batches(
            numbers, told, schema="process bigint, frozen bigint", rows_per_partition=100, spark=spark
        )
        for process, count in rows.collect():
            shown.setdefault(process, set()).add(count)
        return shown

    # The first tasks import what they need.
    frozen()
    for counts in frozen().values():
        # Few of them go as they are: modules are not forgotten.
        assert max(counts) - min(counts) < 1_000
        assert min(counts) > 10_000
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("through", ["option", "read", "count"])
def test_reads_of_all_kinds_give_their_rows(spark: Any, numbers: str, through: str) -> None:
    if through == "option":
        assert load(spark, numbers).count() == 1000
    elif through == "read":
        assert len(esker.spark.read(spark, numbers).collect()) == 1000
    else:
        assert esker.spark.read(spark, numbers).where("id >= 10").count() == 990


def test_a_task_is_its_function_with_what_it_works_with() -> None:
    task = pickle.loads(pickle.dumps(WorkerTask(_more, 3)))
    batch = pa.RecordBatch.from_pydict({"a": [1]})
    assert [made["a"].to_pylist() for made in task(iter([batch]))] == [[4]]
    assert not is_worker()


def _more(by: int, batches: Any) -> Any:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"a": [value + by for value in batch["a"].to_pylist()]})
