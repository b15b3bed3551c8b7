"""What no version of a table refers to, found in plain Python: what a dry run must name, and no more."""

from __future__ import annotations

import re

import esker
from esker._native.store import Store
from esker._native.table import Manifest
from esker.lance.cleanup import CleanupExplanation

FOLDERS = ("data/", "_deletions/", "_transactions/", "_indices/", "_versions/")
_MANIFEST = re.compile(r"_versions/d?\d+\.manifest$")
EVERYTHING = 1_000_000


def leftovers(store: Store) -> set[str]:
    """The files in a table's folders that none of its manifests refers to."""
    there = {meta.path for folder in FOLDERS for meta in store.list(folder)}
    needed = {path for path in there if _MANIFEST.search(path)}
    for path in sorted(needed):
        manifest = Manifest.decode(store.get(path), path)
        needed.add(f"_transactions/{manifest.transaction_file}")
        for fragment in manifest.fragments():
            needed.update(f"data/{file.path}" for file in fragment.files)
            needed.update([fragment.deletion_file] if fragment.deletion_file else [])
        for index in manifest.indices:
            needed.update(path for path in there if path.startswith(f"_indices/{index.uuid}/"))
    gone = {path for path in needed - there if not path.endswith("/None")}
    assert not gone, f"files that versions refer to are gone: {gone}"
    return (there - needed) | {meta.path for folder in FOLDERS for meta in store.list_unfinished(folder)}


def named(dataset: esker.LanceDataset) -> tuple[set[str], CleanupExplanation]:
    """What a dry run names that keeps all versions."""
    found = dataset.explain_cleanup_old_versions(
        retain_versions=EVERYTHING, delete_unverified=True, include_files=True, max_files=None
    )
    return {file.path for file in found.candidate_files}, found


def check_leftovers(uri: str) -> int:
    """A dry run names what was left behind and nothing else, and then it is gone, and nothing else. How much it was."""
    store = Store(uri)
    left = leftovers(store)
    found, explanation = named(esker.dataset(uri))
    assert found == left
    # A writer may be at work: what is young stays.
    assert esker.dataset(uri).explain_cleanup_old_versions(retain_versions=EVERYTHING).stats.bytes_removed == 0
    stats = esker.dataset(uri).cleanup_old_versions(retain_versions=EVERYTHING, delete_unverified=True)
    assert stats == explanation.stats
    assert not leftovers(store)
    return len(left)
