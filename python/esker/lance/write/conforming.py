"""Rows in the columns, the types and the field ids of the table that they are written to."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..._native import table as native
from ...arrow.batch_source import BatchSource
from ...arrow.blob_arrays import with_blobs_v2
from ...arrow.conform import conform
from ...storage_version import storage_version
from .request import WriteRequest


@dataclass(frozen=True)
class ConformedRows:
    """Rows as their files hold them.

    Attributes:
        source: The rows.
        fields: Their columns, with the field ids of the table.
        data_storage_version: The version of the files.
    """

    source: BatchSource
    fields: native.Schema
    data_storage_version: str


def conformed(source: BatchSource, request: WriteRequest) -> ConformedRows:
    """Rows in the columns of the table that they are appended to, or in columns of their own.

    Raises:
        SchemaMismatchError: An append whose columns are not the table's.
        InvalidArgumentError: A name that no column can have, or an unknown file version.
    """
    base = request.target.base
    version = storage_version(request.data_storage_version, base, request.mode)
    if request.mode == "append" and base is not None:
        # A column that the data lack is not written at all: it reads as null.
        table = pa.schema(base.schema)
        fields = base.schema.select([name for name in table.names if name in source.schema.names])
        source = conform(source, table)
    else:
        if version == "2.2":
            source = with_blobs_v2(source)
        fields = native.Schema.from_arrow(source.schema)
        fields.check_column_names()
    return ConformedRows(source.counted(request.progress, "writing rows"), fields, version)
