"""Checks what other processes hand in, before it is rewritten or committed: tasks and results may be of another table,
damaged on their way, or so old that a clean-up took their files.

```
result ── its old fragments are those of its version ── its new ones hold as many rows, and their columns ── staged
       │ no: InvalidArgumentError, nothing is committed                                                        │
       └─ the transaction is staged: from here on a clean-up keeps its files ── each is there, with its bytes ─┘
            no: StagedFilesGone, the other results are committed without it
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..._native import table as native
from ..._native.schema import Field
from ..._native.store import Store
from ...exceptions import CommitConflictError, InvalidArgumentError, NotFoundError
from ...store.stores import is_behind_network
from ..cleanup.inspection import each
from ..version import TableVersion
from .results import RewriteResult
from .sizes import live_rows

CONCURRENCY = 16
"""How many requests are made concurrently behind a network."""

_ADVICE = "plan the compaction again, from this table"


class StagedFilesGone(CommitConflictError):
    """Files that results name are not there, or are not what was written: a clean-up took them.

    Attributes:
        paths: The files.
    """

    paths: Collection[str] = ()


def fragments_of_version(
    table: TableVersion, group: Sequence[native.Fragment], what: str
) -> tuple[native.Fragment, ...]:
    """The fragments of a group as its version has them.

    Args:
        table: The version that the group was read from.
        group: The fragments, as a task or a result names them.
        what: What names them, for messages.

    Raises:
        InvalidArgumentError: The version has no such fragments, or other files of them.
    """
    wanted = {fragment.id for fragment in group}
    there = {fragment.id: fragment for fragment in table.fragments if fragment.id in wanted}
    for fragment in group:
        found = there.get(fragment.id)
        if found is None:
            raise InvalidArgumentError(
                f"expected {what} of version {table.number} of {table.log.uri}, found fragment {fragment.id}, which "
                f"that version lacks; {_ADVICE}"
            )
        if _contents(found) != _contents(fragment):
            raise InvalidArgumentError(
                f"expected {what} of version {table.number} of {table.log.uri}, found fragment {fragment.id} with "
                f"other files or rows than it has there; {_ADVICE}"
            )
    order = list(there)
    if len(group) == len(order) and [fragment.id for fragment in group] != order:
        # A row of the new fragments is known by its rank among the old rows.
        raise InvalidArgumentError(
            f"expected {what} with fragments in the order of version {table.number}, found "
            f"{[fragment.id for fragment in group]} for {order}; {_ADVICE}"
        )
    return tuple(there[fragment.id] for fragment in group)


def vetted(base: TableVersion, results: Iterable[RewriteResult]) -> list[RewriteResult]:
    """The results, with the fragments that they replace as their version has them.

    Args:
        base: The version that they were read from.
        results: What tasks wrote.

    Raises:
        InvalidArgumentError: A result is of another table, two replace the same fragment, or its new fragments are not
            the live rows of the old ones.
    """
    found: list[RewriteResult] = []
    ids: set[int] = set()
    for result in results:
        if any(_is_same(result, other) for other in found):
            # Handed in twice.
            continue
        old = fragments_of_version(base, result.old, "the result of a compaction")
        numbers = [fragment.id for fragment in old]
        twice = ids.intersection(numbers) or {one for one in numbers if numbers.count(one) > 1}
        if twice:
            raise InvalidArgumentError(
                f"expected each fragment in one result, found fragment {min(twice)} twice; commit one of the results"
            )
        ids.update(numbers)
        _check_new(base, old, result.new)
        found.append(RewriteResult(result.read_version, old, result.new, result.staged))
    return found


def check_staged(store: Store, results: Iterable[RewriteResult], *, uri: str) -> None:
    """Checks that the files of results are there. Once a transaction names them, no clean-up takes them.

    Args:
        store: The store of their table.
        results: The results.
        uri: The table, for messages.

    Raises:
        StagedFilesGone: Some are not there, or have another size than what was written.
    """
    sizes: dict[str, int | None] = {}
    for result in results:
        sizes.update(dict.fromkeys(result.staged))
        sizes.update((file.location, file.file_size_bytes) for fragment in result.new for file in fragment.files)

    def is_gone(path: str) -> bool:
        try:
            size = store.head(path).size
        except NotFoundError:
            return True
        return sizes[path] is not None and sizes[path] != size

    paths = sorted(sizes)
    concurrency = CONCURRENCY if is_behind_network(uri) else 1
    gone = [path for path, lacks in zip(paths, each(paths, is_gone, concurrency), strict=True) if lacks]
    if gone:
        error = StagedFilesGone(
            f"Commit conflict: {gone[0]} of {uri}, which a Rewrite names, and {len(gone) - 1} further files are not "
            "there as they were written: a clean-up took them before they were committed; nothing of ours is visible, "
            "plan the compaction again",
            uri=uri,
            operation="Rewrite",
            retryable=True,
        )
        error.paths = frozenset(gone)
        raise error


def _is_same(one: RewriteResult, other: RewriteResult) -> bool:
    ids = [[fragment.id for fragment in result.old] for result in (one, other)]
    return ids[0] == ids[1] and one.files == other.files


def _contents(fragment: native.Fragment) -> tuple[Any, ...]:
    files = [(file.path, file.base_id, file.fields) for file in fragment.files]
    return files, fragment.deletion_file, fragment.physical_rows


def _check_new(base: TableVersion, old: Sequence[native.Fragment], new: Sequence[native.Fragment]) -> None:
    ids = ", ".join(str(fragment.id) for fragment in old)
    if not old:
        raise InvalidArgumentError(
            f"expected a result that replaces fragments, found one that replaces none; {_ADVICE}"
        )
    live, rows = sum(live_rows(base, fragment) for fragment in old), sum(fragment.physical_rows for fragment in new)
    if rows != live or any(fragment.deletion_file is not None for fragment in new):
        raise InvalidArgumentError(
            f"expected new fragments of the {live} live rows of fragments {ids}, found {rows} rows or deleted ones; "
            f"{_ADVICE}"
        )
    before = {(file.path, file.base_id) for fragment in base.fragments for file in fragment.files}
    used = [(file.path, file.base_id) for fragment in new for file in fragment.files]
    if len(set(used)) < len(used) or not before.isdisjoint(used):
        raise InvalidArgumentError(
            f"expected new files in place of fragments {ids}, found some that are named twice, or that version "
            f"{base.number} has already; {_ADVICE}"
        )
    schema = _above(base.manifest.schema.fields)
    wanted = {field for fragment in old for file in fragment.files for field in file.fields if field in schema}
    for fragment in new:
        there = {field for file in fragment.files for field in file.fields}
        lacking = [field for field in sorted(wanted) if there.isdisjoint(schema[field])]
        if lacking:
            raise InvalidArgumentError(
                f"expected the columns of fragments {ids} in the new ones, found none with field id {lacking[0]}; "
                f"{_ADVICE}"
            )


def _above(fields: Sequence[Field]) -> Mapping[int, frozenset[int]]:
    """For each field all those whose data hold it: itself, what it is part of, and its parts."""
    found: dict[int, frozenset[int]] = {}

    def visit(field: Field, parents: frozenset[int]) -> frozenset[int]:
        line = parents | {field.id}
        below = [visit(child, line) for child in field.children]
        found[field.id] = line.union(*below)
        return frozenset({field.id}).union(*below)

    for field in fields:
        visit(field, frozenset())
    return found
