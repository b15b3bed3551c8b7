"""Merges of contents in which tables changed: outside of tables path by path, and each table as a whole.

```
TableRoots.places_of_changes   which tables the source changed, and whether it changed anything else
TableRules.decide              what becomes of each, by the logs
TableFolder.changes            the paths that this changes below its folder; nothing is written so far
Storage.merge                  the rest, path by path
TableWorkspace                 what the tables become, over that
```

Costs what differs: ranges that both sides have are not opened, and no data file is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...cached import cached_property
from ...exceptions import CorruptFileError, InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..core.repository_core import RepositoryCore
from ..errors import MergeConflictError, table_conflict
from ..objects.object_info import Conflict, TableConflict
from ..objects.staging import Staging
from ..tables.roots import TableRoots, logs_at
from ..tables.workspace import TableWorkspace
from .merge_content import conflicts_of, merged_content, path_conflict
from .table_decision import Action, Decision, Sides, TableRules
from .table_folder import ChangedFileError, Changes, Contents, TableFolder, conflict_from
from .table_lineage import TableLineage

if TYPE_CHECKING:
    from .table_restore import TableRestore

_CONFLICTS = 1000
"""As many are listed at first."""
_REFUSALS = (CorruptFileError, InvalidArgumentError, SchemaMismatchError, UnsupportedError)


@dataclass(frozen=True)
class MergeTerms:
    """What a merge goes by.

    Attributes:
        sides: What the sides are called.
        strategy: `none`, `source-wins` or `dest-wins`.
        source_id: The source's commit.
        uri: What the destination is called in messages.
        lineage: The history of both sides, where they have one.
    """

    sides: Sides
    strategy: str
    source_id: str
    uri: str
    lineage: TableLineage | None = None


@dataclass(frozen=True)
class PlannedTable:
    """What becomes of one table, worked out.

    Attributes:
        decision: What happens, or what is in the way.
        changes: The paths that it changes below the table's folder.
        restore: The new version, where there is one.
        is_path_wise: Whether a merge path by path does it as well.
    """

    decision: Decision
    changes: Changes = field(default_factory=dict)
    restore: TableRestore | None = None
    is_path_wise: bool = False


class ContentMerge:
    """One merge of two contents. Nothing is written before `finish`.

    Args:
        core: The repository.
        contents: The contents.
        terms: What it goes by.

    Example:
        `ContentMerge(core, Contents(base, source, dest), terms).finish()`
    """

    def __init__(self, core: RepositoryCore, contents: Contents, terms: MergeTerms) -> None:
        self._core = core
        self.contents = contents
        self._terms = terms
        self.roots = TableRoots(core.storage, [contents.base, contents.source, contents.dest])
        self._places = self.roots.places_of_changes(contents.base, contents.source)

    @cached_property
    def tables(self) -> list[PlannedTable]:
        """The tables that the source changed, in the order of their folders, and what becomes of each."""
        return [self._planned(folder) for folder in self._places if folder is not None]

    @property
    def table_conflicts(self) -> list[TableConflict]:
        """What is in the way of tables."""
        found = (table.decision.conflict for table in self.tables)
        return [conflict for conflict in found if conflict is not None]

    def conflicts(self) -> MergeConflictError | None:
        """The error that the merge ends in: what is in the way of tables and of paths; None if nothing is."""
        paths, count = self._path_conflicts()
        tables = self.table_conflicts
        if tables:
            sides = self._terms.sides
            beside = f" ({count} paths were changed on both sides as well)" if count else ""
            what = f"merge of {sides.source} into {sides.dest}{beside}"
            return table_conflict(*tables, what=what, conflicts=paths, count=count)
        return path_conflict(paths, count) if count else None

    def finish(self) -> tuple[str, Staging | None]:
        """Merges; the metarange, and what was written for it beside ranges.

        Raises:
            MergeConflictError: Something is in the way.
        """
        terms = self._terms
        if not self.tables:
            contents = self.contents
            merged = merged_content(self._core, contents.base, contents.source, contents.dest, terms.strategy)
            return merged.metarange_id or "", None
        found = self.conflicts()
        if found is not None:
            raise found
        workspace = TableWorkspace(self._core, self._merged_paths(), terms.uri)
        for table in self.tables:
            if table.is_path_wise:
                continue
            folder = self._folder(table.decision.folder)
            for path, there in folder.reverted(workspace.content):
                workspace.take(path, there)
            for path, there in table.changes.items():
                workspace.take(path, there)
            if table.restore is not None:
                table.restore.commit(workspace)
        content, written = workspace.finish(), workspace.written()
        return content, written if len(written) else None

    def _folder(self, folder: str) -> TableFolder:
        return TableFolder(self._core, self.roots, self.contents, folder, self._terms.strategy)

    def _planned(self, folder: str) -> PlannedTable:
        core, contents, terms = self._core, self.contents, self._terms
        rules = TableRules(folder, terms.sides, terms.strategy, terms.lineage)
        base, source, dest = (
            logs_at(core.storage, content, folder) for content in (contents.base, contents.source, contents.dest)
        )
        decision = rules.decide(base, source, dest)
        if decision.action is Action.PLAIN:
            return PlannedTable(decision, is_path_wise=True)
        below = self._folder(folder)
        if decision.action is Action.TAKE and below.is_path_wise():
            return PlannedTable(decision, is_path_wise=True)
        try:
            restore = None
            if decision.action is Action.RESTORE:
                # What tables need is imported when a table is met.
                from .table_restore import prepare_restore

                restore = prepare_restore(core, contents, decision, terms.uri, terms.source_id)
            changes = below.changes(decision, restore.references if restore else None)
            return PlannedTable(decision, changes, restore)
        except ChangedFileError as error:
            refused = conflict_from(rules, decision, error)
        except _REFUSALS as error:
            refused = rules.refused(
                decision,
                "unsupported",
                None if decision.dest is None else decision.dest.newest.number,
                f"{rules.name} cannot be merged so: {error}",
                'merge with strategy="dest-wins", or write the rows again on the destination',
            )
        return PlannedTable(refused)

    def _path_conflicts(self) -> tuple[list[Conflict], int]:
        """Paths that both sides changed, outside of tables: the first of them, and how many there are."""
        if self._terms.strategy != "none" or not self.merges_paths:
            return [], 0
        whole = self.folders_of_tables
        storage, contents, rule = self._core.storage, self.contents, self._core.settings().rule()
        most = _CONFLICTS
        while True:
            found = storage.merge(
                contents.base, contents.source, contents.dest, rule=rule, dry_run=True, max_conflicts=most
            )
            if found.conflict_count <= most:
                break
            most = found.conflict_count
        listed = [one for one in conflicts_of(found) if not whole or self.roots.root_of(one.path) not in whole]
        return listed[:_CONFLICTS], len(listed)

    @property
    def folders_of_tables(self) -> set[str]:
        """The folders below which nothing is merged path by path."""
        return {table.decision.folder for table in self.tables if table.decision.action is not Action.PLAIN}

    @property
    def merges_paths(self) -> bool:
        """Whether the source changed anything that is merged path by path."""
        return None in self._places or any(table.is_path_wise for table in self.tables)

    def _merged_paths(self) -> str:
        """The content that a merge path by path makes. What it makes of tables is put right over it."""
        contents, terms = self.contents, self._terms
        if not self.merges_paths:
            return contents.dest
        strategy = "dest-wins" if terms.strategy == "none" else terms.strategy
        return merged_content(self._core, contents.base, contents.source, contents.dest, strategy).metarange_id or ""
