"""`DeltaTable.deletion_vectors`: a selection vector for each file that has deleted rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from ..._native.delta import FileSelection
from .scan import TableScan


def selection_vectors(scan: TableScan, selection: FileSelection) -> pa.RecordBatchReader:
    """For each file with deleted rows which of its rows are there.

    Args:
        scan: Reads files of the version.
        selection: The files that it reads.

    Example:
        `selection_vectors(scan, selection).read_all().column_names`
    """
    schema = pa.schema([("filepath", pa.string()), ("selection_vector", pa.list_(pa.bool_()))])

    def batches() -> Iterator[pa.RecordBatch]:
        for file, uri in zip(scan.table_files(), selection.uris(), strict=True):
            deleted = scan.deleted(file)
            if deleted is None:
                continue
            rows = sum(batch.num_rows for batch in scan.read(replace(file, deletion_vector=None), []))
            gone = set(deleted.to_pylist())
            place = uri if "://" in uri else f"file://{uri}"
            yield pa.record_batch([[place], [[row not in gone for row in range(rows)]]], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
