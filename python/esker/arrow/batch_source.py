"""`BatchSource`: incoming record batches that can be read once, and the errors of their iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

from ..progress import Progress, counted

_Result = TypeVar("_Result")


class BatchSource:
    """Record batches of one schema, read once.

    Arrow's C stream interface passes on only the text of an error. So the exception that the iterator raised is kept in
    `failure`, and `feed` raises it in place of Arrow's.
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
        """Calls `consume` with the batches. An exception that their own iterator raised comes out unchanged.

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
        # An exception of this source's iterator passes through the new source's generator, which keeps it.
        source._batches = (convert(batch) for batch in self._batches)
        return source

    def counted(self, progress: Progress | None, step: str) -> BatchSource:
        """The same rows, which are reported as they are taken."""
        if progress is None:
            return self
        source = BatchSource(self.schema, ())
        source._batches = counted(self._batches, progress, step)
        return source

    def _guarded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise
