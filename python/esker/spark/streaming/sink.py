"""The sink of `writeStream`: each batch of a query is one version of the table, and is there once.

```
planner  the plan of a batch: the table's version, its schema
tasks      rows -> data files; few rows travel with the message, so that small batches make one file, not one a task
driver   commit: all of it in one version, which carries the id of the query and the number of the batch
```

Spark runs a batch again if it died before it noted that the batch is done: the table knows the last number of each
query, and a batch that is there is not committed again. Another checkpoint is another query.

Spark makes a new writer for the commit, in a process of its own: what tasks were planned with comes in their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from esker.exceptions import UnsupportedError
from esker.spark.streaming.automatic_compaction import compact
from esker.spark.streaming.batch_identity import query_of_checkpoint, query_of_task
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_task import MadeInWorkers
from esker.spark.writer import EskerWriter

if TYPE_CHECKING:
    from esker.spark.delta_writer import DeltaWriter

__all__ = ["SMALL_BYTES", "BatchMessage", "EskerStreamWriter"]

SMALL_BYTES = 256 * 1024
"""Rows of a task up to this size travel to the commit, which writes them into one file."""

# Spark has had it since 4.1. Without it `EskerSource.streamWriter` refuses the query.
_Base: Any = getattr(datasource, "DataSourceStreamArrowWriter", object)


@dataclass(frozen=True)
class BatchMessage(WriterCommitMessage):
    """What a task tells the commit.

    Args:
        query: The id of the query, None if Spark did not tell.
        message: What the write of files tells; None if there was nothing to write.
        rows: Few rows that are in no file yet, as an Arrow stream.
        writer: The writer that was planned, from the first task alone.
    """

    query: str | None
    message: WriterCommitMessage | None
    rows: bytes | None
    writer: EskerWriter | DeltaWriter | None


class EskerStreamWriter(MadeInWorkers, _Base):  # type: ignore[misc]
    """Writes the batches of a query to a table.

    Args:
        plan: Plans the write of a batch.
        is_planning: Whether this is where Spark plans a batch; the plan of a commit comes from its tasks.
        checkpoint: The option `checkpointLocation`.
    """

    def __init__(
        self, plan: Callable[[], EskerWriter | DeltaWriter], *, is_planning: bool, checkpoint: str | None
    ) -> None:
        self._plan = plan
        self._writer = plan() if is_planning else None
        self._checkpoint = checkpoint

    @in_words_of_spark()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Writes the rows of one task as data files, or sends them to the commit if they are few."""
        if self._writer is None:
            raise UnsupportedError("expected a writer that was planned, found none: this release of Spark is not known")
        context = TaskContext.get()
        query = query_of_task()
        first = context is None or context.partitionId() == 0
        told = self._writer if first else None
        few: list[pa.RecordBatch] = []
        size = 0
        for batch in iterator:
            if batch.num_rows == 0:
                continue
            few.append(batch)
            size += batch.nbytes
            if size > SMALL_BYTES:
                return BatchMessage(query, self._writer.write(chain(few, iterator)), None, told)
        return BatchMessage(query, None, _encoded(few), told)

    @in_words_of_spark()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Makes the rows of all tasks the table's next version, unless the batch is there already."""
        found = [message for message in messages if isinstance(message, BatchMessage)]
        writer = next((message.writer for message in found if message.writer is not None), None)
        if writer is None:
            if found:
                raise UnsupportedError("expected the plan of the batch from its first task, found none")
            # No tasks, no rows: an append has nothing to do, a replacement is the same however often it is done.
            self._plan().commit([])
            return
        queries = {message.query for message in found}
        query = next(iter(queries)) if len(queries) == 1 else None
        written = [message.message for message in found if message.message is not None]
        try:
            numbered = writer.numbered((query or query_of_checkpoint(self._checkpoint), batchId))
            rows = [batch for message in found for batch in _decoded(message.rows)]
            most = numbered.options.max_files_per_commit if numbered.options is not None else None
            if rows:
                written.append(numbered.write(iter(rows)))
            if most is not None:
                written = [message for message in numbered.joined(written, most) if message is not None]
        except BaseException:
            # Nothing was put: the files of the tasks are nobody's.
            writer.abort([*written, None])
            raise
        numbered.commit(written)
        every = numbered.options.compact_every if numbered.options is not None else None
        if every is not None and (batchId + 1) % every == 0:
            compact(numbered.address)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Deletes the files of the tasks that finished, if others did not: then nothing was committed."""
        found = [message for message in messages if isinstance(message, BatchMessage)]
        writer = next((message.writer for message in found if message.writer is not None), None)
        if any(message is None for message in messages) and found:
            written = [message.message for message in found if message.message is not None]
            (writer or self._plan()).abort([*written, None])


def _encoded(batches: list[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def _decoded(rows: bytes | None) -> list[pa.RecordBatch]:
    return [] if rows is None else list(pa.ipc.open_stream(rows))
