"""Delete and update of rows.

Each is computed from one version and committed on top of the newest one. If other writers changed other rows of the
same fragments meanwhile, the deletion vectors are merged; if they changed the same rows, the change is computed again
from the newest version.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError
from ..log import LanceLog
from ..operation import LanceOperation
from ..scan.predicate import Filter, to_predicate
from ..version import TableVersion
from ..write.request import DEFAULT_MEMORY_LIMIT
from .assignments import Assignments
from .row_changes import RowChanges
from .run import CommitTerms, commit_rows


def delete_rows(table: TableVersion, predicate: Filter, terms: CommitTerms) -> tuple[TableVersion, int]:
    """Deletes the rows for which a predicate is true; returns the new version and the number of deleted rows."""
    changes: RowChanges | None = None

    def compute(at: TableVersion, log: LanceLog, staged: StagedFiles) -> LanceOperation.BaseOperation:
        nonlocal changes
        changes = RowChanges(at, log=log, staged=staged)
        parsed = to_predicate(predicate, at.described_schema)
        described = predicate if isinstance(predicate, str) else str(parsed)
        changes.delete_where(predicate)
        return changes.delete_operation(described)

    committed = commit_rows(table, compute, terms)
    return committed, changes.num_deleted if changes else 0


def update_rows(
    table: TableVersion,
    updates: Mapping[str, str],
    where: Filter | None,
    terms: CommitTerms,
    *,
    data_storage_version: str | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> tuple[TableVersion, int]:
    """Updates the rows for which a predicate is true; returns the new version and the number of updated rows.

    Raises:
        InvalidArgumentError: There are no updates.
        TypeError: A new value is not SQL text.
    """
    if not updates:
        raise InvalidArgumentError("expected updates, found none; name a column and its new value")
    for name, value in updates.items():
        if not isinstance(value, str):
            raise TypeError(f"expected SQL text as the new value of {name!r}, found {type(value).__name__}")
    changes: RowChanges | None = None

    def compute(at: TableVersion, log: LanceLog, staged: StagedFiles) -> LanceOperation.BaseOperation:
        nonlocal changes
        changes = RowChanges(at, memory_limit=memory_limit, log=log, staged=staged)
        assignments = Assignments(updates, changes.schema)
        changes.write(
            assignments.applied(changes.take_out(where)), changes.schema, data_storage_version=data_storage_version
        )
        return changes.update_operation(assignments.columns)

    committed = commit_rows(table, compute, terms)
    return committed, changes.num_deleted if changes else 0
