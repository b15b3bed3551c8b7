"""Record batches on their way into a file, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

from ..progress import Progress, Tally

_Result = TypeVar("_Result")


class BatchSource:
    """Record batches of one schema, read once.

    Arrow's C stream interface carries the text of an error and not the error: what the iterator raises is kept, and
    `feed` raises it in place of what became of it.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch] | pa.RecordBatchReader) -> None:
        self.schema = schema
        self.failure: BaseException | None = None
        self._batches = batches

    def reader(self) -> pa.RecordBatchReader:
        """The batches as a reader."""
        if isinstance(self._batches, pa.RecordBatchReader):
            return self._batches
        return pa.RecordBatchReader.from_batches(self.schema, self._guarded(self._batches))

    def feed(self, consume: Callable[[pa.RecordBatchReader], _Result]) -> _Result:
        """What `consume` makes of the batches. An error of their own iterator is raised as it was.

        Example:
            >>> import pyarrow as pa
            >>> from esker.arrow.batch_source import BatchSource
            >>> batch = pa.record_batch({"id": [1, 2]})
            >>> BatchSource(batch.schema, [batch]).feed(lambda reader: reader.read_all().num_rows)
            2
        """
        try:
            return consume(self.reader())
        except Exception:
            if self.failure is not None:
                raise self.failure from None
            raise

    def map(self, schema: pa.Schema, convert: Callable[[pa.RecordBatch], pa.RecordBatch]) -> BatchSource:
        """The same rows with each batch converted to `schema`."""
        source = BatchSource(schema, ())
        # The errors of this source's iterator pass through the other's: both remember them.
        source._batches = (convert(batch) for batch in self._batches)
        return source

    def counted(self, progress: Progress | None, step: str) -> BatchSource:
        """The same rows, which are reported as they are taken."""
        if progress is None:
            return self
        tally = Tally(progress, step)

        def count(batch: pa.RecordBatch) -> pa.RecordBatch:
            tally.add(rows=batch.num_rows, bytes=batch.nbytes)
            return batch

        return self.map(self.schema, count)

    def _guarded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise
