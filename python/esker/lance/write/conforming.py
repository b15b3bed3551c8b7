"""Second step of a write: gives rows the columns, types and field ids of the table that they are written to."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..._native.schema import Schema
from ...arrow.batch_source import BatchSource
from ...arrow.blob_arrays import with_blobs_v2
from ...arrow.blobs import check_thresholds
from ...arrow.conform import conform
from ...storage_version import storage_version
from .request import WriteRequest


@dataclass(frozen=True)
class ConformedRows:
    """Rows as their files will hold them.

    Attributes:
        source: The rows.
        fields: Their columns, with the field ids of the table.
        data_storage_version: The file version.
    """

    source: BatchSource
    fields: Schema
    data_storage_version: str


def conformed(source: BatchSource, request: WriteRequest) -> ConformedRows:
    """Rows in the columns of the table for an append, otherwise in their own columns.

    Raises:
        SchemaMismatchError: The columns of an append are not those of the table.
        InvalidArgumentError: A column name is not allowed, or the file version is unknown.
    """
    base = request.target.base
    version = storage_version(request.data_storage_version, base, request.mode)
    if request.mode == "append" and base is not None:
        # A column that the data lack is not written: it reads as null.
        table = pa.schema(base.schema)
        given = set(source.schema.names)
        check_thresholds(source.schema, table)
        fields = base.schema.select([name for name in table.names if name in given])
        source = conform(source, table)
    else:
        if version == "2.2":
            source = with_blobs_v2(source)
        fields = Schema.from_arrow(source.schema)
        fields.check_column_names()
    return ConformedRows(source.counted(request.progress, "writing rows"), fields, version)
