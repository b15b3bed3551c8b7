"""`BlobDescriptor`s and the builder of columns of them: blobs whose bytes are written before their file of data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...arrow.prepared_blobs import DEDICATED, INLINE, PACKED, PREPARED_TYPE, prepared_field
from ...exceptions import InvalidArgumentError
from ...missing import missing_method

BytesLike = bytes | bytearray | memoryview | Sequence[int]
"""The bytes of a blob: a buffer, or numbers from 0 to 255."""


@dataclass(frozen=True, slots=True, repr=False)
class BlobDescriptor:
    """Where one blob lies. The writers of blob files return them; `BlobDescriptorArrayBuilder` takes them.

    Args:
        kind: 0 in the file of data, 1 in a file of blobs that it shares, 2 in one of its own; None for a null.
        data: Its bytes, of kind 0.
        blob_id: The number of the file of blobs, from 1.
        offset: Its first byte there.
        size: Its size in bytes.

    Example:
        >>> from esker import BlobDescriptor
        >>> BlobDescriptor(1, blob_id=7, offset=0, size=5)
        Packed { blob_id: 7, offset: 0, size: 5 }
    """

    kind: int | None
    data: bytes | None = None
    blob_id: int | None = None
    offset: int | None = None
    size: int | None = None

    def __repr__(self) -> str:
        if self.kind is None:
            return "Null"
        if self.kind == INLINE:
            return f"Inline {{ data: {self.data!r} }}"
        if self.kind == PACKED:
            return f"Packed {{ blob_id: {self.blob_id}, offset: {self.offset}, size: {self.size} }}"
        return f"Dedicated {{ blob_id: {self.blob_id}, size: {self.size} }}"


class BlobDescriptorArrayBuilder:
    """Builds a column of prepared blobs, a row for each value that is appended.

    The column goes into a file by `LanceFileSession.open_writer`, with `field` in the schema and the file's version
    2.2. Tables take those whose bytes it brings itself (`append_inline`), too.

    Args:
        column: The column's name.

    Example:
        >>> from esker import BlobDescriptorArrayBuilder
        >>> builder = BlobDescriptorArrayBuilder("photo")
        >>> builder.extend_packed(1, offsets=[0, 5], sizes=[5, 3])
        >>> builder.append_null()
        >>> len(builder.finish())
        3
    """

    def __init__(self, column: str) -> None:
        self._field = prepared_field(column)
        self._rows: list[BlobDescriptor] | None = []

    @property
    def field(self) -> pa.Field:
        """The column's field, for the schema of the file."""
        return self._field

    def extend_packed(self, blob_id: int, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Appends blobs that share a file of blobs.

        Args:
            blob_id: The file's number, from 1.
            offsets: The first byte of each within the file.
            sizes: The size of each in bytes.

        Raises:
            InvalidArgumentError: The number is 0, a blob ends beyond 2^64, or there are more of the ones than the
                others. Nothing is appended then.
        """
        if len(offsets) != len(sizes):
            raise InvalidArgumentError(
                f"offsets and sizes must have the same length, got {len(offsets)} and {len(sizes)}"
            )
        pairs = zip(offsets, sizes, strict=True)
        self.extend([BlobDescriptor(PACKED, None, blob_id, offset, size) for offset, size in pairs])

    def append_dedicated(self, blob_id: int, size: int) -> None:
        """Appends a blob that has a file of its own.

        Args:
            blob_id: The file's number, from 1.
            size: The blob's size in bytes.

        Raises:
            InvalidArgumentError: One of them is no number that the format can hold.
        """
        self.append(BlobDescriptor(DEDICATED, None, blob_id, None, size))

    def append(self, value: BlobDescriptor) -> None:
        """Appends a blob that a writer of blob files has returned.

        Raises:
            TypeError: `value` is something else.
            InvalidArgumentError: One of its numbers cannot be.
        """
        self.extend([value])

    def extend(self, values: Iterable[BlobDescriptor]) -> None:
        """Appends many, as `append` does one; all of them or none.

        Raises:
            TypeError: One of them is no `BlobDescriptor`.
            InvalidArgumentError: A number of one cannot be.
        """
        rows = self._open()
        values = list(values)
        for value in values:
            if not isinstance(value, BlobDescriptor):
                raise TypeError(f"{type(value).__name__!r} object is not an instance of 'BlobDescriptor'")
            _check(value)
        rows.extend(values)

    def append_inline(self, data: BytesLike) -> None:
        """Appends a blob whose bytes go into the file of data."""
        self.append(BlobDescriptor(INLINE, as_bytes(data)))

    def append_null(self) -> None:
        """Appends a null."""
        self.append(BlobDescriptor(None))

    append_managed = missing_method(
        "BlobDescriptorArrayBuilder", "append_managed", "append the bytes, or write them with a PackedBlobWriter"
    )

    def finish(self) -> pa.StructArray:
        """The column.

        Raises:
            InvalidArgumentError: It was returned before.
        """
        rows, self._rows = self._open(), None
        return descriptor_array(rows)

    def _open(self) -> list[BlobDescriptor]:
        if self._rows is None:
            raise InvalidArgumentError("BlobDescriptorArrayBuilder is already finished; make another")
        return self._rows


def descriptor_array(blobs: Sequence[BlobDescriptor]) -> pa.StructArray:
    """A column of prepared blobs.

    Example:
        >>> from esker.lance.blob.prepared import BlobDescriptor, descriptor_array
        >>> descriptor_array([BlobDescriptor(2, blob_id=1, size=9), BlobDescriptor(None)]).null_count
        1
    """
    columns = [
        [blob.kind for blob in blobs],
        [blob.data for blob in blobs],
        [None] * len(blobs),
        [blob.blob_id for blob in blobs],
        [blob.size for blob in blobs],
        [blob.offset for blob in blobs],
    ]
    fields = [PREPARED_TYPE.field(index) for index in range(PREPARED_TYPE.num_fields)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    mask = pa.array([blob.kind is None for blob in blobs], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def as_bytes(data: BytesLike) -> bytes:
    """The bytes of a blob.

    Raises:
        TypeError: They are none; a text has to be encoded.

    Example:
        >>> from esker.lance.blob.prepared import as_bytes
        >>> as_bytes([98, 97])
        b'ba'
    """
    if isinstance(data, bytes):
        return data
    if isinstance(data, str | int):
        raise TypeError(f"expected the bytes of a blob, found {type(data).__name__}; encode text first")
    return bytes(data)


def check_blob_id(blob_id: int) -> None:
    """Checks the number of a file of blobs.

    Raises:
        InvalidArgumentError: It is not from 1 to 2^32 - 1.
    """
    if blob_id == 0:
        raise InvalidArgumentError("Blob id 0 is reserved; number the files of blobs from 1")
    if not 0 < blob_id < 2**32:
        raise InvalidArgumentError(f"expected a blob_id from 1 to {2**32 - 1}, found {blob_id}")


def _check(blob: BlobDescriptor) -> None:
    if blob.kind is None:
        return
    if blob.kind == INLINE:
        if blob.data is None:
            raise InvalidArgumentError("expected the data of a blob of kind 0, found None")
        return
    if blob.kind not in (PACKED, DEDICATED):
        raise InvalidArgumentError(f"expected a blob of kind 0, 1 or 2, found {blob.kind}")
    if blob.blob_id is None or blob.size is None or (blob.offset is None) != (blob.kind == DEDICATED):
        raise InvalidArgumentError(f"expected blob_id, size and, of kind 1, offset, found {blob!r}")
    check_blob_id(blob.blob_id)
    offset = blob.offset or 0
    if offset < 0 or blob.size < 0 or offset + blob.size >= 2**64:
        raise InvalidArgumentError(
            f"Packed blob range overflows u64: offset={offset}, size={blob.size}; expected numbers from 0 that end "
            "before 2^64"
        )
