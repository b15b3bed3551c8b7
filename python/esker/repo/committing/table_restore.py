"""A table's content on the source, restored on the destination as a new version: `source-wins` where both went on."""

from __future__ import annotations

import time
from typing import Protocol

from ..._native.delta import Snapshot
from ..._native.table import Manifest, Operation, Transaction
from ...commit.loop import commit
from ...delta.log.commit import CommitRequest, DeltaCommit
from ...delta.log.target import WriteTarget
from ...delta.properties import PostCommitHookProperties
from ...delta.write.restoration import restoration
from ...lance.commit import APPLICATION_PREFIX, LanceCommit
from ...lance.log import LanceLog
from ..core.repository_core import RepositoryCore
from ..tables.references import References, delta_references, lance_references
from ..tables.workspace import TableWorkspace
from .table_decision import Decision
from .table_folder import Contents

ORIGIN = "esker.restored.commit"
"""The property of a Lance transaction that names the repository's commit whose content it restores."""


class TableRestore(Protocol):
    """A restore that is worked out, and not yet committed."""

    references: References
    """What the restored version refers to."""
    versions: int
    """How many versions it adds."""

    def commit(self, workspace: TableWorkspace) -> None:
        """Commits it to the table in a workspace, where the files lie that it refers to."""


def prepare_restore(
    core: RepositoryCore, contents: Contents, decision: Decision, uri: str, commit_id: str
) -> TableRestore:
    """Works a restore out. Writes nothing.

    Args:
        core: The repository.
        contents: The sides.
        decision: Which table.
        uri: Of the destination's root, for messages.
        commit_id: The commit whose content it restores.

    Raises:
        UnsupportedError: The table's rules, or this release, have no such version.
    """
    source, dest = (TableWorkspace(core, content, uri) for content in (contents.source, contents.dest))
    made = LanceRestore if decision.format == "lance" else DeltaRestore
    return made(source, dest, decision.folder, commit_id)


class LanceRestore:
    """A Lance table's newest version on the source, as a Restore on the destination.

    Row ids, fragment ids and field ids go on from the higher number of both sides; an application's last number is the
    higher one as well, for which a version may come before.
    """

    def __init__(self, source: TableWorkspace, dest: TableWorkspace, folder: str, commit_id: str) -> None:
        self._folder = folder
        self._properties = {ORIGIN: commit_id}
        uri = dest.uri_of(folder)
        self._restored = LanceLog(source.store(folder), uri).open()[0]
        self.references = lance_references(self._restored)
        self.references.check_inside(uri)
        base = LanceLog(dest.store(folder), uri).open()[0]
        self._applications = _later_applications(base, self._restored)
        self.versions = 2 if self._applications else 1
        # Applied once to nothing, so that what its rules refuse is refused before anything is written.
        transaction = self._transaction(base.version)
        transaction.apply(
            base,
            version=base.version + 1,
            data_storage_version=base.storage_version_to_write,
            timestamp_ns=time.time_ns(),
            restored=self._restored,
        )

    def _transaction(self, read_version: int) -> Transaction:
        return Transaction(read_version, Operation.restore(self._restored.version), properties=self._properties)

    def commit(self, workspace: TableWorkspace) -> None:
        """Commits it."""
        log = LanceLog(workspace.store(self._folder), workspace.uri_of(self._folder))
        if self._applications:
            base, listing = log.open()
            noted = Operation.update_config(config_updates=(dict(self._applications), False))
            commit(
                LanceCommit(
                    log, Transaction(base.version, noted, properties=self._properties), base=base, scheme=listing.scheme
                )
            )
        base, listing = log.open()
        transaction = self._transaction(base.version)
        commit(LanceCommit(log, transaction, base=base, scheme=listing.scheme, restored=self._restored))


class DeltaRestore:
    """A Delta table's newest version on the source, as an entry RESTORE on the destination."""

    versions = 1

    def __init__(self, source: TableWorkspace, dest: TableWorkspace, folder: str, commit_id: str) -> None:
        self._folder = folder
        uri, there, here = dest.uri_of(folder), source.store(folder), dest.store(folder)
        self._base, restored = Snapshot.load(here), Snapshot.load(there)
        self.references = delta_references(there, restored)
        self.references.check_inside(uri)
        target = WriteTarget(uri, here, self._base)
        self._entry = restoration(target, there, restored, commit_id)
        # Made once for nothing, so that what its rules refuse is refused before anything is written.
        DeltaCommit(target, self._entry)

    def commit(self, workspace: TableWorkspace) -> None:
        """Commits it. The log is not cleaned up: a merge takes no entry away."""
        target = WriteTarget(workspace.uri_of(self._folder), workspace.store(self._folder), self._base)
        hooks = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
        DeltaCommit(target, self._entry, CommitRequest(hooks=hooks)).run()


def _later_applications(base: Manifest, other: Manifest) -> dict[str, str]:
    """The last numbers of applications that are higher on the other side."""
    found = {}
    for key, number in other.config.items():
        if key.startswith(APPLICATION_PREFIX) and number.isdigit():
            known = base.config.get(key, "")
            if not known.isdigit() or int(known) < int(number):
                found[key] = number
    return found
