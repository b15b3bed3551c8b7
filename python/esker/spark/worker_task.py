"""`WorkerTask`: a function that Spark runs in its Python workers, where imports are not collected after each task.

A worker collects garbage after each task, and looks at all that it has imported: 50 to 90 ms of a core for esker,
pyarrow and PySpark, which is more than many a task takes.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from esker.spark.wording import in_words_of_spark, is_worker

__all__ = ["MadeInWorkers", "WorkerTask"]

_MORE = 64
"""How many more modules are worth a second look."""

_known = 0


class MadeInWorkers:
    """Whatever Spark sends to its workers: before its state arrives there, what is imported is put aside.

    The state comes later, and with it what users refer to: that is collected as ever.
    """

    def __new__(cls, *args: Any, **named: Any) -> MadeInWorkers:
        """Makes one, on the driver or, of a pickle, in a worker."""
        _spare_imports()
        return super().__new__(cls)


class WorkerTask(MadeInWorkers):
    """A function for `mapInArrow`. Errors of esker that leave it are in the words of Spark's users.

    Args:
        run: A function of a module: it gets `given`, then the batches.
        given: What it works with; it is pickled.

    Example:
        `frame.mapInArrow(WorkerTask(rows_of, reader), schema)`
    """

    def __init__(self, run: Callable[..., Iterator[pa.RecordBatch]], *given: Any) -> None:
        self._run, self._given = run, given

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the function makes of the batches."""
        with in_words_of_spark():
            yield from self._run(*self._given, batches)


def _spare_imports() -> None:
    global _known
    if is_worker() and len(sys.modules) > _known + _MORE:
        _known = len(sys.modules)
        gc.freeze()
