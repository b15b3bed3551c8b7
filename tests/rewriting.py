"""Rewrites fragments of a table through the native surface and commits them, as a compaction does."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import esker
from esker import LanceOperation
from esker._native import compaction
from esker.lance.fragment_metadata import FragmentMetadata


def staged(uri: str, fragments: list[int] | None = None, **options: Any) -> compaction.RewriteOutcome:
    """New fragments in place of some of a table's, or of all; nothing is committed."""
    dataset = esker.dataset(uri)
    table = dataset._table
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()] if fragments is None else fragments
    chosen: dict[str, Any] = {
        "data_storage_version": dataset.data_storage_version,
        "max_rows_per_file": 1 << 20,
        "max_bytes_per_file": 90 << 30,
        "memory_limit": 512 << 20,
        **options,
    }
    return compaction.rewrite_fragments(table.store, table.manifest, ids, **chosen)


def rewritten(uri: str, fragments: list[int] | None = None, **options: Any) -> compaction.RewriteOutcome:
    """The same, committed."""
    dataset = esker.dataset(uri)
    outcome = staged(uri, fragments, **options)
    old = [f.metadata for f in dataset.get_fragments() if fragments is None or f.fragment_id in fragments]
    new = [FragmentMetadata.from_native(fragment) for fragment in outcome.fragments]
    group = LanceOperation.RewriteGroup(old, new)
    esker.LanceDataset.commit(uri, LanceOperation.Rewrite([group], []), read_version=dataset.version)
    return outcome


def data_files(uri: str) -> set[str]:
    """All files below `data/`, relative to it."""
    folder = Path(uri) / "data"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def same(found: pa.Table, expected: pa.Table) -> str | None:
    """How two tables differ, if they do."""
    if found.schema.types != expected.schema.types:
        return f"types {expected.schema.types} became {found.schema.types}"
    for name in expected.column_names:
        left, right = expected[name], found[name]
        if left.type == right.type and not pa.types.is_dictionary(left.type):
            try:
                if left.combine_chunks().equals(right.combine_chunks()):
                    continue
            except pa.ArrowInvalid:
                pass
        rows, others = left.to_pylist(), right.to_pylist()
        if repr(rows) == repr(others):
            continue
        pairs = enumerate(zip(rows, others, strict=False))
        found_at = next((f"row {at}: {a!r:.80} became {b!r:.80}" for at, (a, b) in pairs if repr(a) != repr(b)), "")
        return f"column {name}, {len(rows)} rows, {len(others)} found: {found_at}"
    return None


def read_everywhere(
    uri: str, expected: pa.Table, rng: random.Random, readers: Sequence[str] = ("pylance", "esker")
) -> str | None:
    """How what the libraries read differs from what is expected: whole, in takes, and in a range of rows."""
    rows = expected.num_rows
    taken = sorted({rng.randrange(rows) for _ in range(20)} | {0, rows - 1}) if rows else []
    start = rng.randrange(rows) if rows else 0
    libraries: dict[str, Any] = {"pylance": lance, "esker": esker}
    for name in readers:
        dataset = libraries[name].dataset(uri)
        whole = same(dataset.to_table(), expected)
        if whole:
            return f"{name}: {whole}"
        if not rows:
            continue
        some = same(dataset.take(taken), expected.take(taken))
        if some:
            return f"{name}, taken {taken}: {some}"
        part = same(dataset.to_table(offset=start, limit=7), expected.slice(start, 7))
        if part:
            return f"{name}, 7 rows from {start}: {part}"
    return None
