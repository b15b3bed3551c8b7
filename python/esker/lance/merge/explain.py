"""The plan of a merge as text: the first line is as in pylance's plans, the others are the steps of esker."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..._native.merge import MergeSource
from ..version import TableVersion
from .clauses import Condition, MergeClauses
from .outcome import PreparedMerge


def explained(
    table: TableVersion, on: Sequence[str], clauses: MergeClauses, source: pa.Schema, condition: Condition | None
) -> str:
    """The plan of a merge of a source with these columns."""
    keys = ", ".join(on)
    lines = [f"MergeInsert: on=[{keys}], {clauses}"]
    rest = [name for name in table.schema.names if name not in source.names]
    if clauses.when_matched == "update" and rest:
        lines.append(f"  TakeRows: columns=[{', '.join(rest)}] of the rows that are updated")
    if condition is not None:
        predicate, _, columns = condition
        lines.append(f"  Condition: {predicate}, columns=[{', '.join(columns)}] of the rows that match")
    lines.append(f"  MatchKeys: on=[{keys}], the source's keys in memory, a part at a time if they are larger")
    more = clauses.delete_predicate(table)
    read = [*on, *(name for name in (more.columns if more else []) if name not in on)]
    filtered = "" if more is None else f", delete_if={more}"
    fragments = table.manifest.num_fragments
    lines.append(f"    LanceRead: uri={table.uri}, columns=[{', '.join(read)}], num_fragments={fragments}{filtered}")
    lines.append(f"    Source: columns=[{', '.join(source.names)}]")
    return "\n".join(lines) + "\n"


def analyzed(plan: str, merge: PreparedMerge, source: MergeSource, elapsed_s: float) -> str:
    """A plan with the metrics of its run."""
    data_files = [path for path in merge.files if path.startswith("data/")]
    first, rest = plan.split("\n", 1)
    written = f"bytes_written={merge.bytes_written}, num_files_written={len(data_files)}"
    counts = ", ".join(f"{name}={count}" for name, count in merge.result.items())
    metrics = f"elapsed={elapsed_s * 1000:.3f}ms, {written}, {counts}"
    keys = ", ".join(f"{name}={value}" for name, value in merge.metrics.items())
    lines = []
    for line in rest.split("\n"):
        if line.startswith("  MatchKeys"):
            line += f", metrics=[{keys}]"
        elif line.startswith("    Source"):
            line += f", metrics=[output_rows={source.num_rows}, spilled_bytes={source.spilled_bytes}]"
        lines.append(line)
    return f"{first}, metrics=[{metrics}]\n" + "\n".join(lines)
