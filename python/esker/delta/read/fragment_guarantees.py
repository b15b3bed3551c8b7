"""What the log says of each file, as expressions of pyarrow: a dataset skips fragments whose expression rules them out.

Partition values, counts of nulls, and bounds. Bounds are left out where a writer may have cut or rounded them, of
booleans, where old writers had wrong ones, and of floats, whose NaN they say nothing of.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import FileSelection
from ..._native.store import Store
from .file_reader import TableFile, guarantee

_CUT_AT = 32
"""Characters of a text from which on it may have been cut: writers cut at 32 or at 64."""
_MILLISECOND_US = 1000


def fragment_guarantees(files: list[TableFile], selection: FileSelection, store: Store) -> list[pc.Expression]:
    """For each file an expression that is true for all its rows.

    Args:
        files: The files of the selection, in its order.
        selection: What the log says of them.
        store: The table's.

    Example:
        `fragment_guarantees(scan.table_files(), selection, store)[0]`
    """
    found = [guarantee(file.partition) if file.partition else None for file in files]
    paths, columns = selection.statistics(store)
    batch = pa.record_batch(columns)
    records = batch.column(0)
    for number, path in enumerate(paths):
        if len(path) > 1:
            continue
        nulls, low, high = (batch.column(1 + 3 * number + part) for part in range(3))
        for row, term in _terms(pc.field(path[0]), records, nulls, low, high):
            before = found[row]
            found[row] = term if before is None else before & term
    return [pc.scalar(True) if whole is None else whole for whole in found]


def _terms(
    column: pc.Expression, records: pa.Array, nulls: pa.Array, low: pa.Array, high: pa.Array
) -> Iterator[tuple[int, pc.Expression]]:
    """What is true of one column: the file's number and a term."""
    kind = low.type
    if pa.types.is_null(kind):
        # Of lists and maps some writers counted the nulls within.
        return
    checks = (pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    bounded = not any(check(kind) for check in checks)
    if pa.types.is_timestamp(kind):
        # Writers cut bounds to milliseconds.
        high = pc.add(high.cast(pa.int64()), _MILLISECOND_US).cast(kind)
    is_null, is_valid = column.is_null(), column.is_valid()
    counts = zip(records.to_pylist(), nulls.to_pylist(), strict=True)
    for row, (rows, missing) in enumerate(counts):
        if missing is not None and missing == rows:
            yield row, is_null
            continue
        if missing == 0:
            yield row, is_valid
        if not bounded:
            continue
        bounds = []
        if low[row].is_valid:
            bounds.append(column >= low[row])
        if high[row].is_valid and not (pa.types.is_string(kind) and len(high[row].as_py()) >= _CUT_AT):
            bounds.append(column <= high[row])
        for bound in bounds:
            # pyarrow uses a bound beside nulls in this form only.
            yield row, bound if missing == 0 else bound | is_null
