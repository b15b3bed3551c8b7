"""Blob columns: their Arrow type, values to write, and files to read, under the names of pylance's `lance.blob`."""

from .arrow.blobs import Blob, BlobArray, BlobColumn, BlobIterator, BlobType, blob_array, blob_field
from .lance.blob.file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobIterator",
    "BlobType",
    "blob_array",
    "blob_field",
]
