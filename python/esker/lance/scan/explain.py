"""The plan of a scan as text, and its cost."""

from __future__ import annotations

import time

from ..._native.scan import ruled_out
from .options import ColumnOrdering, ScanStatistics
from .scan import Scan


def explained(scan: Scan, verbose: bool) -> str:
    """The plan of the scan, as indented lines from the last step to the first."""
    return "\n".join("  " * depth + line for depth, line in enumerate(_plan(scan, verbose)))


def analyzed(scan: Scan, count_rows: bool) -> str:
    """Runs the scan and returns its plan with its cost."""
    seen: list[ScanStatistics] = []
    if count_rows:
        started, before = time.monotonic(), scan.table.store.io_stats_snapshot()
        rows, after = scan.count_rows(), scan.table.store.io_stats_snapshot()
        iops, nbytes = after.read_iops - before.read_iops, after.read_bytes - before.read_bytes
        seen.append(ScanStatistics(iops, iops, nbytes, rows, time.monotonic() - started))
    else:
        for _ in scan.but(scan_stats_callback=seen.append).to_batches():
            pass
    cost = seen[0]
    saved = f", groups_skipped={cost.groups_skipped}/{cost.groups}" if cost.groups else ""
    scanned = _rows_scanned(scan)
    seen_rows = f", rows_scanned={scanned}" if scanned is not None and not cost.groups_skipped else ""
    read = (
        f", output_rows={cost.rows}{seen_rows}, bytes_read={cost.bytes_read}, iops={cost.iops}, "
        f"requests={cost.requests}{saved}"
    )
    return (
        f"Analyzed: rows={cost.rows}, elapsed={cost.seconds * 1000:.1f}ms, "
        f"requests={cost.requests}, bytes_read={cost.bytes_read}{saved}\n  "
        + (explained(scan, False) + read).replace("\n", "\n  ")
    )


def _rows_scanned(scan: Scan) -> int | None:
    """How many rows a scan looks at; None where that depends on how soon it has enough."""
    options = scan.options
    if not options.order_by and (options.limit is not None or options.offset):
        return None
    if options.fragment_ids is None:
        return scan.table.num_rows
    rows = [fragment.num_rows for fragment in scan.table.manifest.fragments() if fragment.id in options.fragment_ids]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None


def _plan(scan: Scan, verbose: bool) -> list[str]:
    options = scan.options
    lines = []
    if scan.projection.expressions:
        lines.append(f"Projection: {', '.join(scan.projection.describe())}")
    if options.order_by and (options.limit is not None or options.offset):
        lines.append(f"Limit: limit={options.limit}, offset={options.offset or 0}")
    if options.order_by:
        lines.append(f"Sort: {', '.join(_order_text(key) for key in options.order_by)}")
    columns = scan.projection.columns
    names = list(scan.table.schema.names if columns is None else columns)
    if scan.predicate is not None:
        names += [name for name in scan.predicate.columns if name not in names]
    read = f"LanceRead: uri={scan.table.uri}, version={scan.table.number}, projection=[{', '.join(names)}]"
    if scan.predicate is not None:
        read += f", filter={scan.predicate}"
        read += f", use_stats={options.use_stats}"
        if verbose and options.use_stats:
            groups, out = ruled_out(
                scan.table.store, scan.table.manifest, scan.predicate, fragment_ids=options.fragment_ids
            )
            read += f", groups_skipped={out}/{groups}" if groups else ""
    if not options.order_by and (options.limit is not None or options.offset):
        read += f", limit={options.limit}, offset={options.offset or 0}"
    ids = options.fragment_ids
    total = scan.table.manifest.num_fragments
    read += f", fragments={total if ids is None else len(ids)}/{total}"
    if verbose:
        read += f", in_order={options.scan_in_order}, batch_size={options.batch_size}"
        read += f", row_id={options.with_row_id}, row_address={options.with_row_address}, rows={scan.table.num_rows}"
    return [*lines, read]


def _order_text(key: ColumnOrdering) -> str:
    return f"{key.column_name} {'asc' if key.ascending else 'desc'} nulls {'first' if key.nulls_first else 'last'}"
