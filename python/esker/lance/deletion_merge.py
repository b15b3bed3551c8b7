"""`DeletionMerge`: a change goes on top of one that deleted other rows of the same fragments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from .._native.table import Manifest, Transaction
from ..exceptions import NotFoundError
from .log import LanceLog

Reconcile: TypeAlias = Callable[[Transaction, Manifest, Transaction], Transaction | None]
"""Takes our transaction, the manifest of the version that theirs made, and their transaction, where both touch the same
fragment. Returns ours adapted to that version (both deleted rows of one fragment, for example), or None if it must be
computed again."""


class DeletionMerge:
    """A `Reconcile` that merges deletion vectors if the two changes deleted different rows of a fragment.

    A Rewrite keeps the groups of fragments of which others only deleted rows; its new fragments lose these rows, too.

    Args:
        log: The table's log, whose store holds the deletion files.
        base: The version that our change was computed from.

    Example:
        `LanceCommit(log, delete, reconcile=DeletionMerge(log, manifest))`
    """

    def __init__(self, log: LanceLog, base: Manifest) -> None:
        self._log = log
        self._base = base

    def __call__(self, ours: Transaction, manifest: Manifest, theirs: Transaction) -> Transaction | None:
        """Ours, adapted to the version of `manifest`; None if both changed the same rows."""
        if ours.may_insert_same_keys(theirs):
            # Both may have inserted rows with the same keys, even if they deleted different rows.
            return None
        self._log.mount(manifest)
        # A clean-up may have taken the deletion files that ours was computed from: then it is computed again.
        with suppress(NotFoundError):
            adapted = ours.reconcile(self._log.store, self._base, manifest, theirs)
            self._base = manifest if adapted is not None else self._base  # what others' next change is compared with
            return adapted
        return None
