"""One merge twice: by us on one copy of a table, by pylance on another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import lance
import pyarrow as pa

import esker
from tests.lineage import same_lineage

Clauses: TypeAlias = Callable[[Any], Any]
"""Calls methods of a merge builder, ours or pylance's: they are called alike."""


def upsert(merge: Any) -> Any:
    """The most common merge."""
    return merge.when_matched_update_all().when_not_matched_insert_all()


def pair(uri: str, rows: pa.Table, **options: Any) -> tuple[esker.LanceDataset, lance.LanceDataset]:
    """One table twice: for us and for them."""
    made = [lance.write_dataset(rows, uri + end, **options) for end in "12"]
    return esker.dataset(uri + "1"), made[1]


def multiset(rows: pa.Table) -> list[str]:
    """The rows whatever their order, as text: NaN equals itself, and 0.0 is not -0.0."""
    return sorted(repr(row) for row in rows.to_pylist())


def same_rows(ours: esker.LanceDataset, theirs: lance.LanceDataset, *, lineage: bool = True) -> None:
    """Our table, as both libraries read it, holds the rows of theirs."""
    read = lance.dataset(ours.uri)
    read.validate()
    assert multiset(ours.to_table()) == multiset(read.to_table()) == multiset(theirs.to_table())
    if ours.has_stable_row_ids:
        # Which new row gets which id is for the writer to say; what is old keeps its own.
        columns = [*ours.schema.names, "_row_created_at_version", "_row_last_updated_at_version"]
        made = [multiset(dataset.to_table(columns=columns)) for dataset in (ours, theirs)]
        assert made[0] == made[1]
        kept = "_row_created_at_version = 1"
        old = [multiset(d.to_table(columns=[*ours.schema.names, "_rowid"], filter=kept)) for d in (ours, theirs)]
        assert old[0] == old[1]
    assert ours.version == theirs.version
    if lineage:
        same_lineage(read, ours)


def merge_both(
    uri: str, table: pa.Table, source: pa.Table, on: str | list[str] | None, clauses: Clauses, **options: Any
) -> tuple[esker.LanceDataset, lance.LanceDataset]:
    """Merges twice and checks that both say and made the same."""
    ours, theirs = pair(uri, table, **options)
    assert clauses(ours.merge_insert(on)).execute(source) == clauses(theirs.merge_insert(on)).execute(source)
    # Lists of NaN are not equal to themselves.
    same_rows(ours, theirs, lineage=not any(pa.types.is_floating(field.type) for field in table.schema))
    return ours, theirs
