"""Rewrites (compactions) that are computed and not committed yet: what tests of their commit share."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

import esker
from esker import LanceOperation
from esker._native.table import Fragment, Transaction
from esker.commit import commit
from esker.fragment import write_fragments
from esker.lance import DeletionMerge, LanceCommit
from esker.lance.fragment_metadata import FragmentMetadata
from tests.lineage import fields, message

VERSIONS = ["_row_last_updated_at_version", "_row_created_at_version"]


def _range(place: int, value: int) -> bytes:
    return message([(1, message([(1, value), (2, value + 1)]))])


def _with_lineage(fragment: FragmentMetadata, rows: pa.Table) -> FragmentMetadata:
    """The fragment with the ids and versions of its rows, as a compaction keeps them."""
    ids = message([(1, _range(0, value)) for value in rows["_rowid"].to_pylist()])
    parts = [*fields(fragment.to_native().encode()), (5, ids)]
    for number, name in zip((7, 9), VERSIONS, strict=True):
        runs = [message([(1, _range(0, place)), (2, value)]) for place, value in enumerate(rows[name].to_pylist())]
        parts.append((number, message([(1, run) for run in runs])))
    return FragmentMetadata.from_native(Fragment.decode(message(parts)))


def group(uri: str, ids: Iterable[int], rows_per_file: int = 1 << 20) -> LanceOperation.RewriteGroup:
    """The live rows of some fragments of the newest version, in order, in new fragments that no version has yet."""
    dataset = esker.dataset(uri)
    found = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    old = [found[number] for number in ids]
    stable = dataset.has_stable_row_ids
    columns = dataset.schema.names
    extra = ["_rowid", *VERSIONS] if stable else []
    rows = dataset.scanner(columns=[*columns, *extra], fragments=old, scan_in_order=True).to_table()
    new: list[FragmentMetadata] = []
    for start in range(0, rows.num_rows, rows_per_file):
        part = rows.slice(start, rows_per_file)
        (fragment,) = write_fragments(part.select(columns), uri, data_storage_version=dataset.data_storage_version)
        new.append(_with_lineage(fragment, part) if stable else fragment)
    return LanceOperation.RewriteGroup([fragment.metadata for fragment in old], new)


def rewrite(uri: str, *groups: Iterable[int], rows_per_file: int = 1 << 20) -> tuple[int, LanceOperation.Rewrite]:
    """A Rewrite of groups of fragments of the newest version, and the number of that version."""
    made = [group(uri, ids, rows_per_file) for ids in groups]
    return esker.dataset(uri).version, LanceOperation.Rewrite(made, [])


def land(uri: str, prepared: tuple[int, LanceOperation.Rewrite]) -> LanceCommit:
    """Commits it as a compaction does, and returns the commit."""
    version, operation = prepared
    base = esker.dataset(uri, version=version)
    change = LanceCommit(
        base._log, operation.to_native(version, None), reconcile=DeletionMerge(base._log, base._manifest)
    )
    commit(change)
    return change


def landed_groups(change: LanceCommit) -> list[list[int]]:
    """The old fragments of the groups that were not lost."""
    transaction: Transaction = change.transaction
    operation = esker.Transaction.from_native(transaction).operation
    assert isinstance(operation, LanceOperation.Rewrite)
    return [[fragment.id for fragment in group.old_fragments] for group in operation.groups]
