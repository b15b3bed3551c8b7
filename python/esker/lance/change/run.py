"""Runs a change: computes it from one version, commits it, and computes it again after a conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..._native import table as native
from ...commit.loop import CommitLimits, commit, follow
from ...commit.orphans import StagedFiles
from ..cleanup.automatic import cleaned_up
from ..commit import LanceCommit, is_applied
from ..deletion_merge import DeletionMerge
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
    """Commits the operation that `make` returns, and returns the new version.

    Args:
        table: The base version.
        make: Takes a version's manifest and returns the operation that changes that version.
        again: Whether `make` may be called again with the newest version after a conflict (`Verdict.RERUN`).
        merge_deletions: Whether to merge deletion vectors if other writers deleted other rows of the same fragments,
            instead of calling `make` again. Only for a Delete, or an Update that moves rows, which `make` computed from
            the manifest that it was given.
        message: The commit message, a property of the transaction.
        properties: Further properties of the transaction.
        application: An application's id and the number of this change among its changes. If the application has
            committed this number, or a higher one, already, nothing is committed.
        limits: When to give up.
        log: The log to commit to, from `TableVersion.writable_log`; a durable one by default.
        staged: The files that `make` stages. If called again, `make` itself discards those of the call before.

    Raises:
        CommitConflictError: Another writer's change conflicts with this one.
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
        # The commit may put without another listing, so it needs the naming scheme of the manifests.
        manifest, listing = log.open(latest)
        current = change(manifest, listing.scheme)
        return current

    version = commit(current, limits=limits, rerun=rerun if again else None, staged=staged)
    shown = table

    def show() -> None:
        nonlocal shown
        shown = table.at(current.committed(version))

    follow(show, f"version {version}")
    return cleaned_up(shown)


@dataclass(frozen=True)
class CommitTerms:
    """How a change of rows is committed.

    Attributes:
        limits: When to give up.
        message: The commit message, a property of the transaction.
        application: An application's id and the number of this change among its changes; see `commit_change`.
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
    """Commits a change of rows. It is computed again from the newest version if others changed the same rows.

    Args:
        table: The base version.
        compute: Takes a version, the log to stage files in and the `StagedFiles` to add them to; returns the operation.
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
