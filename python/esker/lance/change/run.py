"""Changes that a dataset makes to its own table: computed from what it shows, and again where others came first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from ..._native import table as native
from ...commit.loop import DEFAULT_MAX_RETRIES, Backoff, CommitLimits, commit, follow
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError
from ..commit import DeletionMerge, LanceCommit, is_applied
from ..log import LanceLog, NamingScheme
from ..operation import LanceOperation, application_properties, merge_message
from ..write.staging import check_changeable, log_of

if TYPE_CHECKING:
    from ...dataset import LanceDataset

DEFAULT_COMMIT_TIMEOUT = timedelta(minutes=30)


def commit_limits(max_retries: int, timeout: timedelta | None, backoff: Backoff | None = None) -> CommitLimits:
    """When a commit gives up.

    Args:
        max_retries: Attempts after the first.
        timeout: For all attempts together; None for no limit.
        backoff: The pauses between them.

    Raises:
        InvalidArgumentError: A negative number, or no time at all.

    Example:
        >>> from datetime import timedelta
        >>> from esker.lance.change.run import commit_limits
        >>> commit_limits(3, timedelta(seconds=5)).timeout_s
        5.0
    """
    if max_retries < 0:
        raise InvalidArgumentError(f"expected max_retries >= 0, found {max_retries}")
    if timeout is not None and timeout <= timedelta(0):
        raise InvalidArgumentError(f"expected a positive commit_timeout, found {timeout}")
    seconds = None if timeout is None else timeout.total_seconds()
    return CommitLimits(max_retries=max_retries, timeout_s=seconds, backoff=backoff or Backoff())


def retry_limits(conflict_retries: int, retry_timeout: timedelta) -> CommitLimits:
    """When a change of rows gives up, by pylance's two arguments.

    Args:
        conflict_retries: How often it is computed again, where others changed the same rows.
        retry_timeout: After this time it is not tried again, however long the first try takes.

    Raises:
        InvalidArgumentError: A negative number, or no time at all.

    Example:
        >>> from datetime import timedelta
        >>> from esker.lance.change.run import retry_limits
        >>> retry_limits(3, timedelta(seconds=5)).max_reruns
        3
    """
    if conflict_retries < 0:
        raise InvalidArgumentError(f"expected conflict_retries >= 0, found {conflict_retries}")
    if retry_timeout <= timedelta(0):
        raise InvalidArgumentError(f"expected a positive retry_timeout, found {retry_timeout}")
    return CommitLimits(
        # Who is patient about changes of the same rows is so about races for the next version.
        max_retries=max(DEFAULT_MAX_RETRIES, conflict_retries),
        max_reruns=conflict_retries,
        timeout_s=retry_timeout.total_seconds(),
    )


def commit_change(
    dataset: LanceDataset,
    make: Callable[[native.Manifest], LanceOperation.BaseOperation],
    *,
    base: native.Manifest | None = None,
    again: bool = True,
    merge_deletions: bool = False,
    message: str | None = None,
    properties: dict[str, str] | None = None,
    application: tuple[str, int] | None = None,
    limits: CommitLimits | None = None,
    log: LanceLog | None = None,
    staged: StagedFiles | None = None,
) -> None:
    """Commits what `make` says and moves the dataset to the version that this makes.

    Args:
        dataset: The table, at the version that the change is computed from.
        make: Given a version's manifest, the operation that makes the change to that version.
        base: The version that the change is computed from, if it is another one than `dataset` shows.
        again: Whether `make` may be asked again for a later version, if what others committed meanwhile asks for it.
        merge_deletions: Whether rows that others deleted from the same fragments, if they are other rows, are put
            into one deletion file with ours instead of asking `make` again. Right for an operation that is a Delete, or
            an Update that moves rows, made of the manifest that `make` was given.
        message: Noted on the transaction.
        properties: Likewise.
        application: An application's id and the number of this change among its own: one that was committed under that
            number, or a higher one, is not committed again.
        limits: When to give up.
        log: The table to commit to, as `log_of` gives it; one of its own by default, where the commit is durable.
        staged: The files that `make` writes, which takes care of those of an earlier computation itself.

    Raises:
        CommitConflictError: Others' changes leave no room for this one.
        CommitStateUnknownError: The store failed before it was known whether the change is committed.
        UnsupportedError: The table needs a newer writer.

    Example:
        `commit_change(dataset, lambda manifest: LanceOperation.Restore(2))`
    """
    start = dataset if base is None else dataset._with_manifest(base)
    table = log or log_of(start, durable=True)
    check_changeable(start)
    noted = application_properties(application, merge_message(message, properties))
    if application is not None:
        latest = table.open()[0]
        if is_applied(latest, *application):
            dataset._move_to(latest)
            return

    def change(manifest: native.Manifest, scheme: NamingScheme = "V2") -> LanceCommit:
        table.mount(manifest)
        transaction = make(manifest).to_native(manifest.version, noted)
        reconcile = DeletionMerge(table, manifest) if merge_deletions else None
        lock = dataset._commit_lock
        return LanceCommit(table, transaction, lock=lock, base=manifest, reconcile=reconcile, scheme=scheme)

    current = change(start._manifest)

    def rerun(latest: int) -> LanceCommit:
        nonlocal current
        # The loop goes on from here without another look at the versions: how they are named must be known.
        manifest, listing = table.open(latest)
        current = change(manifest, listing.scheme)
        return current

    version = commit(current, limits=limits, rerun=rerun if again else None, staged=staged)
    follow(lambda: dataset._move_to(current.committed(version)), f"version {version}")
