"""Post-commit hooks: a checkpoint every `delta.checkpointInterval` versions, and log clean-up after it."""

from __future__ import annotations

import json

from ..._native.delta import Snapshot
from ..._native.store import Store
from ...exceptions import CorruptFileError, InvalidArgumentError, NotFoundError
from ..properties import PostCommitHookProperties
from .checkpoint import write_checkpoint
from .cleanup import clean_log
from .snapshots import load_snapshot, refresh_snapshot

INTERVAL = "delta.checkpointInterval"
DEFAULT_INTERVAL = 10


class PostCommit:
    """Done once the entry of a version is there.

    Args:
        store: The table's.
        configuration: The table's properties.
        properties: What of it is done.
        snapshot: An older version, from which the new one is replayed; from the log if not given.

    Example:
        `DeltaCommit(..., after=PostCommit(store)).run()`
    """

    def __init__(
        self,
        store: Store,
        configuration: dict[str, str],
        properties: PostCommitHookProperties | None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._properties = properties or PostCommitHookProperties()
        self._snapshot = snapshot

    def __call__(self, version: int, store: Store | None = None) -> None:
        """After the commit of `version`, which another store may be the one to have."""
        store = store or self._store
        if not self._properties.create_checkpoint or version == 0 or version % self._interval():
            return
        snapshot = self._at(store, version)
        try:
            write_checkpoint(store, snapshot)
        except NotFoundError:
            # A concurrent clean-up deleted the entries that the base version is replayed from.
            snapshot = load_snapshot(store, version=version)
            write_checkpoint(store, snapshot)
        clean = self._properties.cleanup_expired_logs
        if clean is None:
            clean = self._configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true"
        if clean:
            configuration = json.loads(snapshot.metadata_json)["configuration"] or {}
            clean_log(store, configuration, version, after_commit=True)

    def _at(self, store: Store, version: int) -> Snapshot:
        if self._snapshot is not None and self._snapshot.version < version:
            try:
                found = refresh_snapshot(self._snapshot, store, version=version)
                if found.version == version:
                    return found
            except CorruptFileError:
                pass  # The log itself decides.
        return load_snapshot(store, version=version)

    def _interval(self) -> int:
        text = self._configuration.get(INTERVAL, str(DEFAULT_INTERVAL))
        if not text.isdigit() or int(text) < 1:
            raise InvalidArgumentError(f"expected {INTERVAL} as a number from 1 on, found {text!r}")
        return int(text)
