"""Streams of record batches: from the Rust core, and cut or joined to the size that was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ._native.scan import BatchStream
from .exceptions import UnsupportedError


def read(stream: BatchStream) -> Iterator[pa.RecordBatch]:
    """The batches of a native stream, with errors of our own tree: the C stream carries only their text."""
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
    """The same rows in batches of about `limit` bytes at most. Slices, no copies."""
    for batch in batches:
        pieces = max(1, -(-batch.nbytes // limit))
        step = max(1, -(-batch.num_rows // pieces))
        for start in range(0, max(batch.num_rows, 1), step):
            yield batch.slice(start, step)


def join_to_rows(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows` rows; only the last may be shorter."""
    pending: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        pending.append(batch)
        held += batch.num_rows
        if held < rows:
            continue
        joined = _joined(pending)
        start = 0
        while held - start >= rows:
            yield joined.slice(start, rows)
            start += rows
        pending, held = [joined.slice(start)], held - start
    if held:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches as one, whose dictionaries hold the values of all of theirs.

    Raises:
        UnsupportedError: The keys of a dictionary column cannot name so many values.
    """
    if len(batches) == 1:
        return batches[0]
    if not any(_holds_dictionary(type_) for type_ in batches[0].schema.types):
        return pa.concat_batches(batches)
    try:
        return pa.concat_batches(pa.Table.from_batches(batches).unify_dictionaries().to_batches())
    except pa.ArrowException as error:
        raise UnsupportedError(
            f"batches of exactly so many rows cannot be made of columns whose dictionaries differ: {error}; "
            "leave strict_batch_size out"
        ) from error


def _holds_dictionary(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _holds_dictionary(type_.storage_type)
    children = (type_.field(i).type for i in range(type_.num_fields))
    return bool(pa.types.is_dictionary(type_)) or any(_holds_dictionary(child) for child in children)
