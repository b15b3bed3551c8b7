"""A change of a Lance table as a new version on a branch: a Restore where nothing came after, else its fragments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..._native.table import Manifest, Operation, Transaction
from ...cached import cached_property
from ...commit.loop import commit
from ...exceptions import CommitConflictError, InvalidArgumentError, UnsupportedError
from ...lance.commit import APPLICATION_PREFIX, MAX_FIELD_ID, LanceCommit
from ...lance.log import LanceLog
from .lance_fragments import FragmentChange
from .references import References, lance_references
from .table_change import BY_HAND, TableChange, TableSide

RESTORED = "esker.restored"
"""The transaction property of a change that brings files back, by another operation than a Restore."""
_STABLE_ROW_IDS = 2


def transplant_lance(change: TableChange) -> None:
    """Commits the change to the branch's table, in its workspace.

    Raises:
        TableConflictError: The table's own rules do not allow it.
    """
    versions = LanceVersions.of(change)
    if versions.source.is_like(versions.base):
        return
    if change.is_exact:
        _check_same_table(change, versions)
        _restore(change, versions)
        return
    _check_same_table(change, versions, of=versions.dest)
    if versions.source.is_like(versions.dest):
        return
    if versions.dest.is_like(versions.base) and _may_restore(change, versions):
        _restore(change, versions)
        return
    manifests = [one.manifest for one in (versions.base, versions.source, versions.dest)]
    are_new = _has_written(change)
    found = FragmentChange.between(change, *manifests, are_new=are_new)
    if not _is_there(change, versions, found):
        stable = versions.dest.has_stable_row_ids
        operation, needed, names = found.operation(stable and _has_source(change), has_stable_row_ids=stable)
        _commit(change, versions, operation, needed, names, {RESTORED: "true"} if found.added and not are_new else {})


@dataclass(frozen=True, eq=False)
class LanceVersion:
    """The newest version of a Lance table in a content."""

    manifest: Manifest

    @staticmethod
    def of(side: TableSide) -> LanceVersion:
        """That of a content that has the table."""
        path = side.known.newest.path.removeprefix(side.folder)
        return LanceVersion(Manifest.decode(side.store.get(path), path))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What files of rows rely on, and what a change of rows leaves as it is."""
        manifest = self.manifest
        counts = (APPLICATION_PREFIX, MAX_FIELD_ID)
        config = {key: value for key, value in manifest.config.items() if not key.startswith(counts)}
        return {
            "schema": manifest.schema,
            "file version": manifest.data_storage_version,
            "stable row ids": self.has_stable_row_ids,
            "configuration": config,
            "table metadata": manifest.table_metadata,
            "base paths": manifest.base_paths,
        }

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return bool(self.manifest.reader_feature_flags & _STABLE_ROW_IDS)

    @property
    def index_names(self) -> set[str]:
        """The names of its indices."""
        return {index.name for index in self.manifest.indices}

    def differing(self, other: LanceVersion) -> list[str]:
        """Which of its settings another version has not."""
        return [name for name, value in self.settings.items() if other.settings[name] != value]

    def is_like(self, other: LanceVersion) -> bool:
        """Whether it holds the same rows, in the same files and with the same indices."""
        return (
            self.settings == other.settings
            and self.manifest.indices == other.manifest.indices
            and self.manifest.fragments() == other.manifest.fragments()
        )

    def files(self) -> set[str]:
        """Its data files and indices, whose names are random."""
        files = {file.location for fragment in self.manifest.fragments() for file in fragment.files}
        return files | {index.folder for index in self.manifest.indices}


@dataclass(frozen=True)
class LanceVersions:
    """The three versions."""

    base: LanceVersion
    source: LanceVersion
    dest: LanceVersion

    @staticmethod
    def of(change: TableChange) -> LanceVersions:
        """Those of a change."""
        return LanceVersions(*(LanceVersion.of(side) for side in (change.base, change.source, change.dest)))


def _check_same_table(change: TableChange, versions: LanceVersions, of: LanceVersion | None = None) -> None:
    """Refuses a table that is not known to be the one that the commit changed: by its log, else by its files."""
    sides = [(change.base, versions.base), (change.source, versions.source)]
    log = change.dest.known
    if of is None:
        # The table is the base's own: whether the source is.
        sides, of = sides[1:], versions.base
    for side, version in sides:
        theirs = side.known.entries
        if any(theirs.get(number) == entry for number, entry in log.entries.items()) or of.files() & version.files():
            return
    gone = all(1 in one.entries for one in (log, change.base.known, change.source.known))
    if gone:
        change.refuse("replaced", f"{change.name} is another table on the branch than the one of the commit", BY_HAND)
    change.refuse(
        "cleaned-up",
        f"clean-ups have taken the versions of {change.name} that would tell whether the branch has the same table",
        BY_HAND,
    )


def _is_there(change: TableChange, versions: LanceVersions, found: FragmentChange) -> bool:
    """Whether the branch has all of the change already.

    Raises:
        TableConflictError: The change is one of more than rows, or the branch's table has other columns or settings.
    """
    before, after, ours = versions.base, versions.source, versions.dest
    uuids = {index.uuid for index in after.manifest.indices}
    if found.is_there and ours.settings == after.settings and uuids <= {one.uuid for one in ours.manifest.indices}:
        return True
    changed = before.differing(after)
    if changed:
        change.refuse(
            "unsupported",
            f"the commit changes the {' and the '.join(changed)} of {change.name}, which went another way on the "
            "branch",
            BY_HAND,
        )
    names = before.index_names | after.index_names
    if before.index_names != after.index_names or found.is_empty:
        change.refuse(
            "unsupported",
            f"the commit changes indices of {change.name} ({', '.join(sorted(names))})",
            "build or drop the index on the branch itself",
        )
    others = before.differing(ours)
    if others:
        change.refuse(
            "changed",
            f"on the branch {change.name} has not the {' and the '.join(others)} that it has where the commit "
            "changed it",
            BY_HAND,
        )
    return found.is_there


def _has_source(change: TableChange) -> bool:
    """Whether the branch's log has the source's version: rows that come back are the branch's own then."""
    theirs = change.source.known.newest
    return change.dest.known.entries.get(theirs.number) == theirs


def _may_restore(change: TableChange, versions: LanceVersions) -> bool:
    """Whether the branch's table is what the change began with, although its log is not, and the change is one of more
    than rows. Stable row ids of another log could be those of other rows."""
    if versions.dest.has_stable_row_ids and not _has_source(change):
        return False
    base, source = versions.base, versions.source
    return bool(base.differing(source)) or base.index_names != source.index_names


def _has_written(change: TableChange) -> bool:
    """Whether the commit has written the files that come, rather than brought them back."""
    if change.transplant.is_revert:
        return False
    log = LanceLog(change.source.store, change.uri)
    for number in range(change.base.known.newest.number + 1, change.source.known.newest.number + 1):
        entry = change.source.known.entries.get(number)
        if entry is None:
            return False
        path = entry.path.removeprefix(change.folder)
        made = log.transaction(Manifest.decode(change.source.store.get(path), path))
        if made is None or made.operation == "Restore" or RESTORED in made.properties:
            return False
    return True


def _restore(change: TableChange, versions: LanceVersions) -> None:
    restored = versions.source.manifest
    needed, there = lance_references(restored), lance_references(versions.dest.manifest)
    needed = replace(needed, files=needed.files - there.files, folders=needed.folders - there.folders)
    # What is in doubt is looked up: the branch may have cleaned up what only the older version refers to.
    _commit(change, versions, Operation.restore(restored.version), needed, {}, {}, restored=restored)


def _commit(
    change: TableChange,
    versions: LanceVersions,
    operation: Operation,
    needed: References,
    names: dict[str, str],
    properties: dict[str, str],
    restored: Manifest | None = None,
) -> None:
    needed.elsewhere += lance_references(versions.dest.manifest).elsewhere
    change.bring(needed, names)
    dest = versions.dest.manifest
    said = {change.transplant.key: change.transplant.commit_id, **properties}
    transaction = Transaction(dest.version, operation, properties=said)
    log = LanceLog(change.dest.store, change.uri)
    try:
        dest.check_writable()
        commit(LanceCommit(log, transaction, base=dest, restored=restored))
    except (UnsupportedError, InvalidArgumentError, CommitConflictError) as error:
        change.refuse("unsupported", f"{change.name} does not take the change: {error}", BY_HAND)
