"""A change of a table: computed from one version, committed, and computed again where others were first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..._native import table as native
from ...commit.loop import CommitLimits, commit, follow
from ...commit.orphans import StagedFiles
from ..commit import DeletionMerge, LanceCommit, is_applied
from ..log import LanceLog, NamingScheme
from ..operation import LanceOperation, application_properties, merge_message
from ..version import TableVersion


def commit_change(
    table: TableVersion,
    make: Callable[[native.Manifest], LanceOperation.BaseOperation],
    *,
    again: bool = True,
    merge_deletions: bool = False,
    message: str | None = None,
    properties: dict[str, str] | None = None,
    application: tuple[str, int] | None = None,
    limits: CommitLimits | None = None,
    log: LanceLog | None = None,
    staged: StagedFiles | None = None,
) -> TableVersion:
    """Commits what `make` says and returns the version that this makes.

    Args:
        table: The table, at the version that the change is computed from.
        make: Given a version's manifest, the operation that makes the change to that version.
        again: Whether `make` may be asked again for a later version, if what others committed meanwhile asks for it.
        merge_deletions: Whether rows that others deleted from the same fragments, if they are other rows, are put
            into one deletion file with ours instead of asking `make` again. Right for an operation that is a Delete, or
            an Update that moves rows, made of the manifest that `make` was given.
        message: Noted on the transaction.
        properties: Likewise.
        application: An application's id and the number of this change among its own: one that was committed under that
            number, or a higher one, is not committed again.
        limits: When to give up.
        log: The log to commit to, as `TableVersion.writable_log` gives it; a durable one by default.
        staged: The files that `make` writes, which takes care of those of an earlier computation itself.

    Raises:
        CommitConflictError: Others' changes leave no room for this one.
        CommitStateUnknownError: The store failed before it was known whether the change is committed.
        UnsupportedError: The table needs a newer writer.

    Example:
        `table = commit_change(table, lambda manifest: LanceOperation.Restore(2))`
    """
    log = log or table.writable_log(durable=True)
    table.check_writable()
    noted = application_properties(application, merge_message(message, properties))
    if application is not None:
        latest = log.open()[0]
        if is_applied(latest, *application):
            return table.at(latest)

    def change(manifest: native.Manifest, scheme: NamingScheme = "V2") -> LanceCommit:
        log.mount(manifest)
        transaction = make(manifest).to_native(manifest.version, noted)
        reconcile = DeletionMerge(log, manifest) if merge_deletions else None
        return LanceCommit(log, transaction, lock=table.commit_lock, base=manifest, reconcile=reconcile, scheme=scheme)

    current = change(table.manifest)

    def rerun(latest: int) -> LanceCommit:
        nonlocal current
        # The loop goes on from here without another look at the versions: how they are named must be known.
        manifest, listing = log.open(latest)
        current = change(manifest, listing.scheme)
        return current

    version = commit(current, limits=limits, rerun=rerun if again else None, staged=staged)
    shown = table

    def show() -> None:
        nonlocal shown
        shown = table.at(current.committed(version))

    follow(show, f"version {version}")
    return shown


@dataclass(frozen=True)
class CommitTerms:
    """How a change of rows is committed.

    Attributes:
        limits: When to give up.
        message: Noted on the transaction.
        application: An application's id and the number of this change among its own; see `commit_change`.
        durable: Whether files and commit are on stable storage on return.
    """

    limits: CommitLimits | None = None
    message: str | None = None
    application: tuple[str, int] | None = None
    durable: bool = True


def commit_rows(
    table: TableVersion,
    compute: Callable[[TableVersion, LanceLog, StagedFiles], LanceOperation.BaseOperation],
    terms: CommitTerms,
) -> TableVersion:
    """Commits a change of rows, computed again from the newest version where others changed the same rows.

    Args:
        table: The version that the change is computed from.
        compute: Given a version, the log to write files with and what takes in those files: the operation.
        terms: How it is committed.
    """
    log = table.writable_log(durable=terms.durable)
    staged = StagedFiles()

    def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
        staged.discard()
        return compute(table.at(manifest), log, staged)

    with staged:
        return commit_change(
            table,
            make,
            merge_deletions=True,
            message=terms.message,
            application=terms.application,
            limits=terms.limits,
            log=log,
            staged=staged,
        )
