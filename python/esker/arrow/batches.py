"""Outgoing record batches: the streams of the Rust core with their errors, and batches cut to a size in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from .._native.scan import BatchStream
from ..progress import byte_count

_LITTLE = 4096


def read(stream: BatchStream) -> Iterator[pa.RecordBatch]:
    """The batches of a native stream. Its errors are raised as `EskerError`s: the C stream carries only their text."""
    reader = pa.RecordBatchReader.from_stream(stream)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            if stream.error is not None:
                raise stream.error from None
            raise error
        yield batch


def read_all(stream: BatchStream) -> pa.Table:
    """All batches of a native stream as a table, without holding the GIL."""
    try:
        return pa.RecordBatchReader.from_stream(stream).read_all()
    except (pa.ArrowException, OSError):
        if stream.error is not None:
            raise stream.error from None
        raise


def cut_to_bytes(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `limit` bytes at most. The batches are slices, not copies."""
    for batch in batches:
        pieces = max(1, -(-byte_count(batch) // limit))
        step = max(1, -(-batch.num_rows // pieces))
        for start in range(0, max(batch.num_rows, 1), step):
            yield batch.slice(start, step)


def owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A copy of a batch in memory of its own: whoever made it may fill its memory anew.

    A batch that is a small part of its memory is a slice of a larger one, and comes back as it is.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.batches import owned
        >>> owned(pa.record_batch({"id": [1, 2]})).num_rows
        2
    """
    if batch.get_total_buffer_size() > 2 * byte_count(batch) + _LITTLE:
        return batch
    return batch.copy_to(pa.default_cpu_memory_manager())
