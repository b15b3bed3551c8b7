"""Changes of a table's folder as a whole: the table comes, goes, or goes on just as it did in the source."""

from __future__ import annotations

import json

from ...exceptions import CorruptFileError, NotFoundError
from ..objects.batches import info, rows
from ..objects.object_info import ObjectInfo
from .own_files import REFS, TAGS, is_own, is_ref
from .references import References, references_of
from .roots import TableRoots
from .table_change import TableChange, TableSide, is_same_object
from .table_log import is_derived


def check_no_log_change(change: TableChange, roots: TableRoots) -> None:
    """Refuses a change of a folder that its log does not tell of, unless files were only added or repeat the log.

    Raises:
        TableConflictError: A clean-up took files, tags were made or moved, or files were replaced by hand.
    """
    for path, before, after in _differences(change, roots):
        if is_derived(path):
            continue
        if path.startswith(REFS):
            change.refuse(
                "unsupported",
                f"the commit changes tags of {change.name} ({path!r}), and tags name versions by their numbers, which "
                "may be others on the branch",
                "make or delete the tag on the branch itself",
            )
        if after is None or before is None:
            # What a clean-up has taken is taken back by nobody, and a file that no version names is no change.
            if (before is None) is not change.transplant.is_revert:
                continue
            change.refuse(
                "unsupported",
                f"the commit is a clean-up of {change.name}: it took {path!r}",
                "clean the table up on the branch itself, or leave the commit as it is",
            )
        if not is_same_object(before, after):
            change.refuse(
                "unsupported",
                f"the commit replaces {path!r} of {change.name}, which the table's log does not tell of",
                "write the file on the branch itself",
            )


def take_new_versions(change: TableChange, roots: TableRoots) -> None:
    """Takes the source's new versions as they are, on top of the branch's, which end where the change begins.

    The branch keeps each entry and file that it has.

    Raises:
        TableConflictError: The branch has another file where the source has one of its own, or one is missing, or has
            cleaned up a version that is tagged; or manifests have other names.
    """
    if change.source.known.naming != change.dest.known.naming:
        change.refuse(
            "unsupported",
            f"the commit renames the manifests of {change.name}",
            "rename them on the branch (`migrate_manifest_paths_v2`), and do by hand what else the commit did",
        )
    differing = {path: pair for path, *pair in _differences(change, roots) if pair[1] is not None}
    there = change.dest.found(sorted(differing))
    for path, (before, after) in sorted(differing.items()):
        found = there.get(path)
        if not is_derived(path) and not (is_same_object(found, before) or is_same_object(found, after)):
            change.refuse(
                "changed",
                f"the branch has another file as {path!r} of {change.name}",
                "remove that file on the branch, and do it again",
            )
        if path.startswith(TAGS):
            _check_tag(change, path)
        change.dest.workspace.take(change.folder + path, after)
    needed = _new_references(change)
    # The branch may have cleaned up what only these versions refer to. The newest one has to be whole.
    change.bring(needed.pop())
    for older in needed:
        older.files = set(change.source.found(sorted(older.files)))
        change.bring(older)


def _check_tag(change: TableChange, path: str) -> None:
    """Refuses a tag of a version that the branch has cleaned up: only newer ones come."""
    try:
        version = json.loads(change.source.store.get(path))["version"]
    except (ValueError, KeyError, TypeError):
        return  # What no reader can make sense of does no harm.
    ours = change.dest.known
    is_old = isinstance(version, int) and version <= ours.newest.number
    if is_old and version in change.source.known.entries and version not in ours.entries:
        change.refuse(
            "cleaned-up",
            f"the commit tags version {version} of {change.name} ({path!r}), which the branch has cleaned up",
            "do by hand on the branch what the commit did, without the tag",
            version,
        )


def _new_references(change: TableChange) -> list[References]:
    """What each version refers to that the branch has not, the newest last; those that cannot be read are left out."""
    found = []
    log = change.source.known
    for number, entry in log.entries.items():
        if number > change.dest.known.newest.number:
            try:
                path = entry.path.removeprefix(change.folder)
                found.append(references_of(change.source.store, change.format, number, path))
            except (NotFoundError, CorruptFileError):
                if entry == log.newest:
                    raise
    return found


def take_folder(change: TableChange, roots: TableRoots) -> None:
    """Makes the table's folder on the branch what it is in the source: the table comes whole, or goes."""
    wanted = {found.path: found for found in change.source.listed(roots=roots)}
    for path in {*wanted, *(found.path for found in change.dest.listed(roots=roots))}:
        change.dest.workspace.take(path, wanted.get(path))


def drop_table(change: TableChange, roots: TableRoots) -> None:
    """Takes the table away on the branch. What else the branch alone has in its folder stays.

    Raises:
        TableConflictError: Since the change, the branch has made tags of it, or changed a file that would go.
    """
    before = {found.path: found for found in change.base.listed(roots=roots)}
    after = {found.path: found for found in change.source.listed(roots=roots)}
    for found in list(change.dest.listed(roots=roots)):
        inner = found.path.removeprefix(change.folder)
        old, new = before.get(found.path), after.get(found.path)
        is_table = is_own(change.format, inner) and not is_ref(change.format, inner)
        if is_table or is_same_object(found, old):
            if not is_same_object(found, new):
                change.dest.workspace.take(found.path, new)
        elif is_ref(change.format, inner) or not is_same_object(old, new):
            change.refuse(
                "changed" if change.transplant.is_revert else "dropped",
                f"{change.name} would be dropped, and the branch has changed {inner!r} of it since",
                "drop it there, if that is meant",
            )


def has_same_files(one: TableSide, other: TableSide, roots: TableRoots) -> bool:
    """Whether two contents have the same files in a table's folder."""
    ours, theirs = ({found.path: found for found in side.listed(roots=roots)} for side in (one, other))
    return ours.keys() == theirs.keys() and all(is_same_object(found, theirs[path]) for path, found in ours.items())


def _differences(change: TableChange, roots: TableRoots) -> list[tuple[str, ObjectInfo | None, ObjectInfo | None]]:
    """The paths within the folder at which base and source differ, with both sides."""
    found = change.core.storage.diff(change.base.content, change.source.content, prefix=change.folder)
    return [
        (row["path"].removeprefix(change.folder), info(row["path"], row["left"]), info(row["path"], row["right"]))
        for row in rows(found)
        if roots.root_of(row["path"]) == change.folder
    ]
