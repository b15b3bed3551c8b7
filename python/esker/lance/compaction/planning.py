"""Plans a compaction: which fragments are rewritten together.

```
fragments in order:   big   small small deleted small   big   small
                       │      └── run of candidates ─┘    │     └─ alone: nothing to join it with
                       └─ enough rows: stays              └─ stays
run -> cut where an index covers one and not the other -> joined by size -> groups of at least the target's rows
```

Candidates are those of pylance: fragments with fewer rows than the target, or with too many deleted rows. Two rules are
our own, and keep a table from being rewritten over and over:

- A fragment that has few rows, but fills a file of `max_bytes_per_file`, is done, unless a file has more rows at least.
- Fragments are joined only if that makes each of them grow by half, so that a row is rewritten a logarithmic number of
  times however small the appends are. Fragments that are rewritten for their deleted rows join any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..._native import table as native
from ..version import TableVersion
from .options import CompactionSettings
from .sizes import data_bytes, is_full, is_too_large, live_rows, num_files

GROWTH = 1.5
"""Fragments are joined if the result has at least so many times the rows of the largest of them."""


@dataclass(frozen=True)
class Candidate:
    """A fragment that may be rewritten.

    Attributes:
        fragment: The fragment.
        rows: Its live rows.
        nbytes: The size of its data files, None where their writer did not say.
        is_due: Whether it is rewritten in any case, for its deleted rows.
        covered_by: The index segments that cover it.
    """

    fragment: native.Fragment
    rows: int
    nbytes: int | None
    is_due: bool
    covered_by: frozenset[str]


def plan_groups(table: TableVersion, settings: CompactionSettings) -> list[tuple[native.Fragment, ...]]:
    """The groups of fragments to rewrite, each in the table's order, oldest first.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance.compaction.options import CompactionSettings
        >>> from esker.lance.compaction.planning import plan_groups
        >>> rows = pa.table({"id": range(40)})
        >>> dataset = esker.write_dataset(rows, "memory://doc-plan-groups", max_rows_per_file=10)
        >>> groups = plan_groups(dataset._table, CompactionSettings(target_rows_per_fragment=20))
        >>> [[fragment.id for fragment in group] for group in groups]
        [[0, 1], [2, 3]]
    """
    planned = [
        group
        for run in _runs(table, settings)
        for joined in joined_by_size(run)
        for group in _cut(joined, settings.target_rows_per_fragment)
        if _is_worthwhile(group, settings)
    ]
    return [tuple(one.fragment for one in group) for group in _within_budget(planned, settings)]


def _runs(table: TableVersion, settings: CompactionSettings) -> Iterator[list[Candidate]]:
    """Neighbours that may be rewritten together."""
    covered = table.manifest.index_coverage(table.store) if table.manifest.indices else {}
    excluded = frozenset(settings.excluded_fragment_ids)
    run: list[Candidate] = []
    for fragment in table.fragments:
        found = None if fragment.id in excluded else _candidate(table, fragment, covered.get(fragment.id, ()), settings)
        if run and (found is None or found.covered_by != run[0].covered_by):
            yield run
            run = []
        if found is not None:
            run.append(found)
    if run:
        yield run


def _candidate(
    table: TableVersion,
    fragment: native.Fragment,
    covered_by: Sequence[str],
    settings: CompactionSettings,
) -> Candidate | None:
    rows, nbytes = live_rows(table, fragment), data_bytes(fragment)
    physical = fragment.physical_rows or rows
    gone = max(physical - rows, 0)
    share = gone / physical if physical else 0.0
    is_due = settings.materialize_deletions and share > settings.materialize_deletions_threshold
    if not is_due and (physical >= settings.target_rows_per_fragment or is_full(rows, nbytes, settings)):
        return None
    return Candidate(fragment, rows, nbytes, is_due, frozenset(covered_by))


def joined_by_size(run: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """The parts of a run that are worth joining: each makes its largest fragment grow by half.

    Where one fragment is too large for that, what is before it and what is behind it are joined without it. So no two
    of the fragments that come of it are worth joining again.

    Args:
        run: Neighbours in the table.
    """
    largest = max((one for one in run if not one.is_due), key=lambda one: one.rows, default=None)
    if largest is None or (len(run) > 1 and sum(one.rows for one in run) >= GROWTH * largest.rows):
        if run:
            yield list(run)
        return
    middle = next(i for i, one in enumerate(run) if one is largest)
    yield from joined_by_size(run[:middle])
    yield from joined_by_size(run[middle + 1 :])


def _cut(joined: list[Candidate], target: int) -> Iterator[list[Candidate]]:
    """Groups of at least `target` rows each, as small as that allows; what is left at the end goes with the last."""
    group: list[Candidate] = []
    rows, left = 0, sum(one.rows for one in joined)
    for one in joined:
        group.append(one)
        rows, left = rows + one.rows, left - one.rows
        if rows >= target and left >= target:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _is_worthwhile(group: Sequence[Candidate], settings: CompactionSettings) -> bool:
    """Whether fewer files come of it, or files without deleted rows, or those that are too large are split."""
    if any(one.is_due for one in group):
        return True
    sizes = [one.nbytes for one in group]
    nbytes = None if None in sizes else sum(size or 0 for size in sizes)
    files = num_files(sum(one.rows for one in group), nbytes, settings)
    if len(group) == 1:
        return False
    return files < len(group) or (
        files > len(group) and any(is_too_large(one.rows, one.nbytes, settings) for one in group)
    )


def _within_budget(groups: Iterable[list[Candidate]], settings: CompactionSettings) -> Iterator[list[Candidate]]:
    """The first groups that together keep within the budgets of a run."""
    fragments = rows = nbytes = 0
    for group in groups:
        fragments += len(group)
        rows += sum(one.rows for one in group)
        nbytes += sum(one.nbytes or 0 for one in group)
        if (
            fragments > (settings.max_source_fragments or fragments)
            or rows > (settings.max_source_rows or rows)
            or nbytes > (settings.max_source_bytes or nbytes)
        ):
            return
        yield group
