"""The clean-up of a table, and its dry run.

```
list files -> list versions -> read transactions under way          (a dry run stops here)
  -> remove the manifests of the versions to remove, oldest first
  -> read tags and branches again, and put back the manifests that they name by now
  -> read the versions and transactions that came meanwhile, which may need files again
  -> remove the files that no kept version refers to
```

Removing a version frees its number. A writer that listed the versions before that version was committed would put its
own version under that number, and believe that it has committed. So writers stage their transaction before they list,
and a clean-up keeps all versions after the read version of a transaction under way.

Manifests are removed before other files: a version that a reader finds has all its files. A writer that brings an old
version back (a restore, a detached commit) stages its transaction first, and then checks that the version is still
there. So one of the two notices the other: the writer finds the manifest gone and gives up, or the clean-up finds the
transaction and keeps the files. Likewise somebody who tags a version, or starts a branch from it, puts the tag first
and then looks whether the version is still there; a clean-up removes the manifest and then reads the tags.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress

from ..._native.table import Manifest
from ...exceptions import EskerError, NotFoundError, TaggedVersionsError
from ...progress import Progress, Tally
from ...store.staging import flush
from ..log import LanceLog
from .explanation import CleanupCandidateFile, CleanupExplanation, CleanupStats, counted
from .inspection import GoingVersion, Inspection, concurrency_of, each, inspect, store_time_ns
from .policy import CleanupPolicy

GROUP_BYTES = 64 * 1024**2
"""Bytes of manifests that a clean-up holds, to put back those that were tagged while it removed them."""
_OURS_UNFINISHED = re.compile(r"(^|/)\.tmp-[0-9a-f]{32}$")


def explain(
    log: LanceLog,
    manifest: Manifest,
    policy: CleanupPolicy,
    *,
    include_files: bool,
    max_files: int | None,
    main: LanceLog | None = None,
) -> CleanupExplanation:
    """What a clean-up would remove. Changes nothing.

    Args:
        log: The log of the table, or of one of its branches.
        manifest: The version that the clean-up starts from.
        policy: Which versions are removed.
        include_files: Whether to list the files.
        max_files: How many files to list; None for all.
        main: The log of the main line, where tags and branches are kept; by default `log`, which is that of the main
            line then.

    Raises:
        TaggedVersionsError: A tagged version would be removed, and the policy makes that an error.
        CorruptFileError: A manifest, a tag or a branch cannot be read.
    """
    found = inspect(log, main or log, manifest, policy, now_ns=time.time_ns())
    _refuse_tagged(found)
    files = [*found.candidates(), *(gone.candidate() for gone in found.going)]
    listed = files if max_files is None else files[:max_files]
    return CleanupExplanation(
        read_version=manifest.version,
        stats=counted(files),
        candidate_files=listed if include_files else [],
        candidate_files_truncated=include_files and len(listed) < len(files),
        candidate_file_limit=max_files if include_files else None,
        referenced_branches=found.refs.branches,
        warnings=_warnings(found),
    )


def cleanup(
    log: LanceLog,
    manifest: Manifest,
    policy: CleanupPolicy,
    progress: Progress | None = None,
    *,
    main: LanceLog | None = None,
    keep_from: int | None = None,
) -> CleanupStats:
    """Removes the files that `explain` lists.

    Args:
        log: The log of the table, or of one of its branches.
        manifest: The version that the clean-up starts from.
        policy: Which versions are removed.
        progress: Gets the number of removed files.
        main: The log of the main line; see `explain`.
        keep_from: This version and later ones are kept; by default that of `manifest`.

    Raises:
        TaggedVersionsError: A tagged version would be removed, and the policy makes that an error.
        CorruptFileError: A manifest, a tag or a branch cannot be read. Nothing is removed then.
        IOFailedError: A version could not be removed. Its files are all there.
    """
    # With a local clock that is ahead of the store's, files would seem older than they are.
    now_ns = min(time.time_ns(), store_time_ns(log, secrets.token_hex(8)))
    found = inspect(log, main or log, manifest, policy, now_ns=now_ns, keep_from=keep_from)
    _refuse_tagged(found)
    remover = _Remover(log, policy)
    _remove_versions(found, remover)
    gone = [version.candidate() for version in found.going]
    if gone:
        waiting = found.keep_newcomers()
    files = list(found.candidates())
    if found.overtaken or (gone and waiting.brought_back & {version.version for version in found.going}):
        # A version that has just been removed is being brought back: leave its files to a later clean-up.
        files = [file for file in files if file.unverified]
    removed = remover.remove_all(files, Tally(progress, "removing files", unit="files", total=len(files)))
    flush(log.store, "Clean-up")
    if remover.failure is not None:
        warnings.warn(
            f"{remover.failed} files of {log.uri} could not be removed, the next clean-up finds them again: "
            f"{remover.failure}",
            stacklevel=3,
        )
    return counted([*removed, *gone], failed=remover.failed)


def _remove_versions(found: Inspection, remover: _Remover) -> None:
    """Removes the manifests of the versions to remove. Those that have been tagged meanwhile come back, and stay."""
    staying: set[int] = set()
    for group in _groups(found.going):
        removed: dict[int, tuple[str, bytes]] = {}
        for version in group:
            # Another clean-up may be at work.
            with suppress(NotFoundError):
                removed[version.version] = version.path, found.log.store.get(version.path)
            remover.remove(version.path)
        for number in found.read_refs().versions & removed.keys():
            path, data = removed[number]
            found.log.store.put(path, data)
            found.references.keep(Manifest.decode(data, path))
            staying.add(number)
    found.going = [version for version in found.going if version.version not in staying]


def _groups(going: list[GoingVersion]) -> Iterator[list[GoingVersion]]:
    """The versions in groups whose manifests fit in memory."""
    group: list[GoingVersion] = []
    size = 0
    for version in going:
        group.append(version)
        size += version.size
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Remover:
    """Removes files, at the policy's rate at most."""

    def __init__(self, log: LanceLog, policy: CleanupPolicy) -> None:
        self._store = log.store
        self._concurrency = concurrency_of(log, policy)
        self._pause = 1 / policy.rate_limit if policy.rate_limit else 0.0
        self._lock = threading.Lock()
        self._next = time.monotonic()
        self.failed = 0
        self.failure: EskerError | None = None

    def remove(self, path: str) -> None:
        """Removes one file. That it is gone already is no error."""
        self._wait()
        delete: Callable[[str], None] = self._store.delete
        if _OURS_UNFINISHED.search(path):
            delete = self._store.delete_unfinished
        with suppress(NotFoundError):
            delete(path)

    def remove_all(self, files: list[CleanupCandidateFile], tally: Tally) -> list[CleanupCandidateFile]:
        """Removes files and returns those that were removed."""

        def one(file: CleanupCandidateFile) -> bool:
            is_gone = self._try(file)
            tally.add(files=1, bytes=file.size_bytes if is_gone else 0)
            return is_gone

        done = list(each(files, one, self._concurrency))
        return [file for file, is_gone in zip(files, done, strict=True) if is_gone]

    def _try(self, file: CleanupCandidateFile) -> bool:
        try:
            self.remove(file.path)
        except EskerError as error:
            with self._lock:
                self.failed += 1
                self.failure = self.failure or error
            return False
        return True

    def _wait(self) -> None:
        if not self._pause:
            return
        with self._lock:
            now = time.monotonic()
            self._next = max(self._next, now) + self._pause
            wait = self._next - self._pause - now
        if wait > 0:
            time.sleep(wait)


def _refuse_tagged(found: Inspection) -> None:
    named = {name: number for name, number in found.refs.tags.items() if number in found.tagged}
    if found.policy.error_if_tagged and named:
        raise TaggedVersionsError(
            f"{len(named)} tagged versions would be removed: {named}; remove the tags, or keep these versions by "
            "error_if_tagged_old_versions=False",
            uri=found.log.uri,
            version=min(named.values()),
        )


def _warnings(found: Inspection) -> list[str]:
    told = []
    if found.policy.delete_unverified:
        told.append("delete_unverified removes what writers at work have staged: make sure that there are none")
    if found.unread:
        told.append(
            f"{found.unread} versions stay because another process committed them less than an hour ago, and may still "
            "wait for the reply; if no writer is at work, delete_unverified=True removes them, too"
        )
    return told
