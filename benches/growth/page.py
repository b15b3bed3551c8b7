"""The page: docs/performance.md, with the figures of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benches.growth.charts import limit_seconds
from benches.growth.series import Found, Series
from benches.growth.work import Work

HEAD = """# Performance

This page is written by `make bench-report`, in one run on one machine; what it says of time is worth as much as the
machine's quiet. Read ratios: above 1 esker is faster, or smaller.

{machine}

The machine copies {memcpy:.1f} GB/s in memory with all cores{disk}: these are the dashed lines in the pictures, for the
bytes of the whole table in Arrow or of esker's files.

Each table has `id`, which counts the rows, `key`, uniform and unsorted, and integers, doubles, prices and timestamps in
turns. Full scans read batch by batch and keep none; filters read two columns; rows are taken at random, all columns of
them. Every run opens the table anew, but for takes. Engines take turns, and each figure is a median:

{engines}
"""

TAIL = """## What the figures do not say

- Tables are on a local disk and, but for the cold scans, in the system's memory.
- Parquet is read and written by pyarrow; rows are taken by reading their row groups, since it has nothing finer.
- Files are not synced while they are written, which pylance and pyarrow never do.

Reference: [`LanceDataset.scanner`](reference/esker.md#esker.LanceDataset.scanner),
[`LanceDataset.take`](reference/esker.md#esker.LanceDataset.take).
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def figure(value: float) -> str:
    """A ratio with two digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def duration(seconds: float) -> str:
    """Milliseconds or seconds with two or three digits."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def series_section(series: Series, found: Found, works: list[Work], limits: dict[str, float], picture: str) -> str:
    """A series: its picture, esker's times, the peers' ratios."""
    head = ["work", *(f"{value:,}" for value in series.shapes)]
    rows = []
    for work in works:
        cells = []
        for value in series.shapes:
            ours = found.seconds[value, work.name, "esker"]
            ratios = [found.seconds[value, work.name, peer] / ours for peer in series.engines if peer != "esker"]
            cell = f"{duration(ours)}: {', '.join(figure(ratio) for ratio in ratios)}"
            bound = limit_seconds(found, value, work, limits)
            cells.append(cell if bound is None else f"{cell}; {work.limit} {figure(bound / ours)}")
        rows.append([work.title, *cells])
    sizes = []
    for value in series.shapes:
        ours_bytes = found.file_bytes[value, "esker"]
        ratios = [found.file_bytes[value, peer] / ours_bytes for peer in series.engines if peer != "esker"]
        sizes.append(f"{ours_bytes / 1e6:.3g} MB: {', '.join(figure(ratio) for ratio in ratios)}")
    rows.append(["size", *sizes])
    peers = " and ".join(engine for engine in series.engines if engine != "esker")
    return "\n".join(
        [
            f"## {series.title}",
            "",
            f"Across: {series.axis}. A cell has esker's time, and how many times longer {peers} took.",
            "",
            f"![{series.title}]({picture})",
            "",
            table(head, rows),
            "",
        ]
    )


def network_section(found: list[tuple[Any, ...]], delay_s: float, server: str) -> str:
    """Requests and times on an S3 server."""
    rows = []
    for title, requests, seconds in found:
        ours, theirs = sorted(seconds["esker"]), sorted(seconds["pylance"])
        middle = ours[len(ours) // 2], theirs[len(theirs) // 2]
        counts = [str(len(requests[name])) for name in ("esker", "pylance")]
        rows.append([title, *counts, duration(middle[0]), figure(middle[1] / middle[0])])
    head = ["operation", "requests", "pylance's", "time", "pylance / esker"]
    return "\n".join(
        [
            "## A store behind a network",
            "",
            f"An S3 server ({server}) on the same machine whose replies come {delay_s * 1e3:.0f} ms later;",
            "a table of 200,000 rows in four fragments.",
            "",
            table(head, rows),
            "",
        ]
    )
