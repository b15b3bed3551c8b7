"""Blob columns: their Arrow type, and the values to write into them. Names and arguments are pylance's `lance.blob`."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa

from ..exceptions import SchemaMismatchError

BLOB_KEY = b"lance-encoding:blob"
"""Metadata key that makes a large_binary field a blob column, whatever its value."""
BLOB_EXTENSION = "lance.blob.v2"

_FIELDS = [
    pa.field("data", pa.large_binary()),
    pa.field("uri", pa.utf8()),
    pa.field("position", pa.uint64()),
    pa.field("size", pa.uint64()),
]
_THRESHOLD_KEYS = {
    "inline_size_threshold": b"lance-encoding:blob-inline-size-threshold",
    "dedicated_size_threshold": b"lance-encoding:blob-dedicated-size-threshold",
    "pack_file_size_threshold": b"lance-encoding:blob-pack-file-size-threshold",
}
_LARGEST_THRESHOLD = 2**64 - 1


@dataclass(frozen=True)
class Blob:
    """One value of a blob column: bytes, or the URI of an object that holds them.

    Args:
        data: The bytes.
        uri: Where the bytes are, instead of `data`.
        position: First byte within the object at `uri`. Without `position` and `size` the blob is the whole object.
        size: Number of bytes from `position` on, above 0.

    Raises:
        ValueError: Neither or both of `data` and `uri` are given, or only one of `position` and `size`. A null blob is
            `None`.

    Example:
        >>> from esker.blob import Blob
        >>> Blob.from_uri("file:///tmp/photos.tar", position=512, size=1024).size
        1024
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if self.data is not None and self.uri is not None:
            raise ValueError("Blob cannot have both data and uri")
        if self.uri == "":
            raise ValueError("Blob uri cannot be empty")
        if (self.position is not None or self.size is not None) and self.uri is None:
            raise ValueError("External packed blob must have a uri")
        if (self.position is None) != (self.size is None):
            raise ValueError("External blob must set both position and size, or neither")
        if self.data is None and self.uri is None:
            raise ValueError("Blob must set `data` or `uri`; use None for a null blob")
        if self.size == 0:
            raise ValueError("External blob range size must be greater than zero")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """A blob of these bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """A blob stored at `uri`: the whole object, or `size` bytes from `position` on."""
        if (position is not None and position < 0) or (size is not None and size < 0):
            raise ValueError("External blob position and size must be non-negative")
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """A blob of no bytes, which is not a null."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of a blob column of the second kind: a struct of data, uri, position and size.

    Writes take it, and the table's schema shows it; a scan returns descriptions of the blobs instead.
    """

    def __init__(self) -> None:
        super().__init__(pa.struct(_FIELDS), BLOB_EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        if not pa.types.is_struct(storage_type):
            raise TypeError(f"expected a struct as storage of {BLOB_EXTENSION}, found {storage_type}")
        found = [(field.name, field.type) for field in storage_type]
        if found not in ([(f.name, f.type) for f in _FIELDS[:2]], [(f.name, f.type) for f in _FIELDS]):
            raise TypeError(
                f"expected data and uri, or data, uri, position and size, as storage of {BLOB_EXTENSION}, "
                f"found {storage_type}"
            )
        self = cls.__new__(cls)
        pa.ExtensionType.__init__(self, storage_type, BLOB_EXTENSION)
        return self

    def __arrow_ext_class__(self) -> type[BlobArray]:
        return BlobArray

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).__arrow_ext_deserialize__, (self.storage_type, b"")


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]
    """Values of a blob column, made by `from_pylist` or `blob_array`."""

    @classmethod
    def from_pylist(cls, values: list[Any]) -> BlobArray:
        """An array of bytes-like values, URIs (str), `Blob`s and None.

        Raises:
            TypeError: Anything else among the values.
            ValueError: An empty URI.
        """
        blobs = [_to_blob(value) for value in values]
        columns = [
            pa.array([None if blob is None else getattr(blob, field.name) for blob in blobs], type=field.type)
            for field in _FIELDS
        ]
        mask = pa.array([blob is None for blob in blobs], type=pa.bool_())
        storage = pa.StructArray.from_arrays(columns, names=[field.name for field in _FIELDS], mask=mask)
        return cast(BlobArray, pa.ExtensionArray.from_storage(BlobType(), storage))


def _to_blob(value: Any) -> Blob | None:
    if value is None or isinstance(value, Blob):
        return value
    if isinstance(value, str):
        return Blob(uri=value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Blob(data=bytes(value))
    raise TypeError(f"BlobArray values must be bytes-like, str (URI), Blob, or None; got {type(value)}")


def blob_array(values: list[Any]) -> BlobArray:
    """An array for a blob column of bytes-like values, URIs (str), `Blob`s and None.

    Example:
        >>> from esker.blob import blob_array
        >>> len(blob_array([b"bytes", None, "file:///tmp/photo.jpg"]))
        3
    """
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """The field of a blob column of the second kind, for tables of file version 2.2.

    Args:
        name: The column's name.
        nullable: Whether there may be nulls.
        inline_size_threshold: Blobs of up to this many bytes are stored in the data file.
        dedicated_size_threshold: Blobs of more than this many bytes get a file of their own; those in between share
            pack files.
        pack_file_size_threshold: Bytes after which a pack file is full.

    Raises:
        TypeError, ValueError, OverflowError: A threshold is not a size.

    Example:
        >>> from esker.blob import blob_field
        >>> blob_field("photo").type.extension_name
        'lance.blob.v2'
    """
    thresholds = {
        "inline_size_threshold": inline_size_threshold,
        "dedicated_size_threshold": dedicated_size_threshold,
        "pack_file_size_threshold": pack_file_size_threshold,
    }
    metadata = {}
    for key, value in thresholds.items():
        if value is not None:
            _check_threshold(key, value, least=0 if key == "inline_size_threshold" else 1)
            metadata[_THRESHOLD_KEYS[key]] = str(value).encode()
    return pa.field(name, BlobType(), nullable=nullable, metadata=metadata or None)


def _check_threshold(name: str, value: int, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be {'non-negative' if least == 0 else 'positive'}")
    if value > _LARGEST_THRESHOLD:
        raise OverflowError(f"{name} must fit in a Rust usize, of 64 bits")


def check_thresholds(found: pa.Schema, table: pa.Schema) -> None:
    """Checks that rows to append say nothing else than the table of where their blobs are to lie.

    Raises:
        SchemaMismatchError: They do.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.blobs import blob_field, check_thresholds
        >>> table = pa.schema([blob_field("photo", inline_size_threshold=9)])
        >>> check_thresholds(pa.schema([blob_field("photo")]), table)
    """
    for field in found:
        index = table.get_field_index(field.name)
        stored = dict((table.field(index).metadata or {}) if index >= 0 else {})
        for key in _THRESHOLD_KEYS.values():
            given = (field.metadata or {}).get(key)
            if given is not None and index >= 0 and given != stored.get(key):
                raise SchemaMismatchError(
                    f"Cannot append data with blob threshold metadata {key.decode()}={given.decode()} to column "
                    f"{field.name!r}, which the table has with {stored.get(key, b'none').decode()}; leave it out",
                    column=field.name,
                )


class BlobIterator:
    """The values of a binary column one by one, as file-like objects."""

    def __init__(self, binary_iter: Iterator[pa.BinaryScalar]) -> None:
        self.binary_iter = binary_iter

    def __iter__(self) -> BlobIterator:
        return self

    def __next__(self) -> IO[bytes] | None:
        value = next(self.binary_iter)
        return io.BytesIO(value.as_py()) if value.is_valid else None


class BlobColumn:
    """A binary array whose values are read as file-like objects.

    Example:
        >>> import pyarrow as pa
        >>> from esker.blob import BlobColumn
        >>> [file.read() for file in BlobColumn(pa.array([b"ab", b"c"]))]
        [b'ab', b'c']
    """

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            raise ValueError(f"Expected a pyarrow.Array or pyarrow.ChunkedArray, got {type(blob_column)}")
        if not pa.types.is_large_binary(blob_column.type) and not pa.types.is_binary(blob_column.type):
            raise ValueError(f"Expected a binary array, got {blob_column.type}")
        self.blob_column = blob_column

    def __iter__(self) -> BlobIterator:
        return BlobIterator(iter(self.blob_column))


# Another library, such as pylance, may have registered the type already.
with contextlib.suppress(pa.ArrowKeyError):
    pa.register_extension_type(BlobType())
