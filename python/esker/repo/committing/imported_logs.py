"""What an import may make of tables that are there: objects of one folder are put among those of another."""

from __future__ import annotations

from ..core.repository_core import RepositoryCore
from ..errors import table_conflict
from ..objects.object_info import TableConflict
from ..tables.roots import TableRoots, logs_at
from ..tables.table_log import Relation


def check_logs_go_on(core: RepositoryCore, branch: str, before: str, after: str) -> None:
    """Refuses an import that replaces entries of a table's log: what it leaves of them would be another table's.

    Args:
        core: The repository.
        branch: Where it goes.
        before: The metarange that it was put over.
        after: That with the import.

    Raises:
        TableConflictError: There is another table in a folder.
    """
    conflicts = []
    for folder in TableRoots(core.storage, [before]).touched(before, after):
        there, made = (logs_at(core.storage, content, folder) for content in (before, after))
        for format, log in there.items():
            relation, version = made[format].relation(log)
            if relation not in (Relation.SAME, Relation.EXTENDS):
                path = folder.rstrip("/")
                why = f"{branch!r} has another table at {path or '/'!r}, whose version {version} is not the import's"
                advice = "delete that folder on the branch first, or import to another one"
                conflicts.append(TableConflict(path, format, "replaced", version, why, advice))
    if conflicts:
        raise table_conflict(*conflicts, what=f"import to {branch}")
