"""`esker compact`: joins small fragments and removes deleted rows; `--dry-run` lists what it would rewrite."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace

from ..optimize import Compaction, CompactionPlan
from .amount import amount
from .output import Output, size_text
from .tables import open_table


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--dry-run", action="store_true", help="list what would be rewritten, and rewrite nothing")
    parser.add_argument("--target-rows", type=amount, metavar="N", help="rows that a fragment should have (1048576)")
    parser.add_argument("--max-bytes", type=amount, metavar="N", help="bytes after which a new file is started")
    parser.add_argument("--max-source-bytes", type=amount, metavar="N", help="rewrite at most so many bytes")
    parser.add_argument("--memory-limit", type=amount, metavar="N", help="bytes to hold at once (536870912)")


def compact(options: Namespace, output: Output) -> None:
    """Compacts a table, or lists the fragments that it would rewrite.

    Raises:
        InvalidArgumentError: A number is not what it must be.
        CommitConflictError: All groups were lost to other writers.
    """
    dataset = open_table(options)
    given = {
        "target_rows_per_fragment": options.target_rows,
        "max_bytes_per_file": options.max_bytes,
        "max_source_bytes": options.max_source_bytes,
        "memory_limit": options.memory_limit,
    }
    if options.dry_run:
        _show(Compaction.plan(dataset, given), output)
        return
    metrics = Compaction.execute(dataset, given)
    lost = [list(group.fragment_ids) for group in metrics.lost]
    counts = {name: value for name, value in dataclasses.asdict(metrics).items() if name != "lost"}
    if output.as_json:
        output.json({**counts, "lost": lost, "version": dataset.version})
        return
    facts = {name.replace("_", " "): f"{count:,}" for name, count in counts.items()}
    if lost:
        facts["left to others"] = "; ".join(", ".join(map(str, ids)) for ids in lost)
    output.facts("compacted", facts)


def _show(plan: CompactionPlan, output: Output) -> None:
    groups = [
        {
            "fragments": [fragment.id for fragment in task.fragments],
            "rows": sum(fragment.num_rows for fragment in task.fragments),
            "bytes": sum(file.file_size_bytes or 0 for fragment in task.fragments for file in fragment.files),
        }
        for task in plan.tasks
    ]
    if output.as_json:
        output.json(groups)
        return
    rows = [(_range(group["fragments"]), f"{group['rows']:,}", size_text(group["bytes"])) for group in groups]  # type: ignore[arg-type]
    output.table(None, [("fragments", False), ("rows", True), ("size", True)], rows)


def _range(ids: list[int]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]} to {ids[-1]} ({len(ids)})"
