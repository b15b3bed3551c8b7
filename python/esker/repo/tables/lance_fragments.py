"""A change between two versions of a Lance table as a change of fragments, put on top of a third version.

A fragment is known by its data files, whose names are random: its id may be another one on the branch. Rows that come
back to a fragment come back as a new fragment over the same files. Were its own deletion file to shrink, writers and
indices that know the larger one would lose those rows again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..._native.table import Fragment, Manifest, Operation
from ...lance.deletion_file import DeletionFile
from .references import References, fragment_references
from .table_change import BY_HAND, TableChange

Key: TypeAlias = tuple[str, ...]
"""The data files of a fragment."""


def key_of(fragment: Fragment) -> Key:
    """What a fragment is known by in all versions."""
    return tuple(file.location for file in fragment.files)


@dataclass
class FragmentChange:
    """What becomes of the branch's fragments.

    Attributes:
        change: The change of the table.
        dest: The branch's version.
        updated: Fragments of the branch that lose rows, with the source's.
        removed: Fragments of the branch that go.
        added: Fragments of the source that come.
        is_there: Whether the branch has all of it already.
        is_empty: Whether no fragment changes.
    """

    change: TableChange
    dest: Manifest
    updated: list[tuple[Fragment, Fragment]] = field(default_factory=list)
    removed: list[Fragment] = field(default_factory=list)
    added: list[Fragment] = field(default_factory=list)
    is_there: bool = False
    is_empty: bool = False

    @staticmethod
    def between(
        change: TableChange, base: Manifest, source: Manifest, dest: Manifest, *, are_new: bool
    ) -> FragmentChange:
        """The change from one version to another, on top of a third.

        Args:
            change: The change of the table.
            base: The version before it.
            source: The version after it.
            dest: The branch's.
            are_new: Whether the commit itself has written the files that come.

        Raises:
            TableConflictError: A fragment is not on the branch as it was before the change.
        """
        made = FragmentChange(change, dest)
        before, after, ours = (made._by_key(manifest.fragments()) for manifest in (base, source, dest))
        there, waiting, gone = 0, 0, list[Key]()
        for key in sorted(before.keys() | after.keys()):
            old, new, own = before.get(key), after.get(key), ours.get(key)
            if old is not None and new is not None and old.files != new.files:
                made._refuse(key, "has other columns after the commit")
            if _rows_of(old) == _rows_of(new):
                continue
            if new is None and own is None:
                gone.append(key)
            elif _rows_of(own) == _rows_of(new):
                there += 1
            elif _rows_of(own) == _rows_of(old):
                waiting += 1
                made._take(old, new, own)
            else:
                made._refuse(key, "was changed on the branch as well" if own is not None else "is gone on the branch")
        if gone and (waiting or not there):
            # Its rows may lie in another fragment by now.
            made._refuse(gone[0], "is gone on the branch")
        if there and waiting:
            change.refuse("changed", f"the branch has a part of what the commit did to {change.name} already", BY_HAND)
        if made.added and not made.removed and not made.updated:
            made._check_not_there(are_new=are_new)
        made.is_there, made.is_empty = not waiting, not waiting and not there
        return made

    def _check_not_there(self, *, are_new: bool) -> None:
        """Refuses fragments that come, while none goes, if the branch may have their rows in others."""
        coming = {key_of(fragment) for fragment in self.added}
        before: dict[Key, object] | None = None
        lost: set[Key] = set()
        for entry in self.change.own_versions():
            path = entry.path.removeprefix(self.change.folder)
            fragments = Manifest.decode(self.change.dest.store.get(path), path).fragments()
            after = {key_of(fragment): _rows_of(fragment) for fragment in fragments}
            if before is not None:
                taken = {key for key in coming & before.keys() if after.get(key) != before[key]}
                if taken and after.keys() - before.keys() - coming:
                    self.change.refuse_moved(entry, ", ".join(min(taken)))
                lost |= taken
            before = after
        self.change.check_lost({key[0] for key in coming}, {key[0] for key in lost}, are_new=are_new)

    def _by_key(self, fragments: Iterable[Fragment]) -> dict[Key, Fragment]:
        found: dict[Key, Fragment] = {}
        for fragment in fragments:
            if found.setdefault(key_of(fragment), fragment) is not fragment:
                self._refuse(key_of(fragment), "is there twice")
        return found

    def _refuse(self, key: Key, what: str) -> None:
        self.change.refuse("changed", f"the fragment of {', '.join(key)} of {self.change.name} {what}", BY_HAND)

    def _take(self, old: Fragment | None, new: Fragment | None, own: Fragment | None) -> None:
        if new is None and own is not None:
            self.removed.append(own)
        elif new is not None and (old is None or own is None):
            self.added.append(new)
        elif new is not None and own is not None and own.deletion_parts is None:
            self.updated.append((own, new))
        elif new is not None and own is not None:
            self.removed.append(own)
            self.added.append(new)

    def operation(self, keeps_row_ids: bool, has_stable_row_ids: bool) -> tuple[Operation, References, dict[str, str]]:
        """The operation, the files that it needs, and other names that some of them get.

        Args:
            keeps_row_ids: Whether fragments that come have their stable row ids.
            has_stable_row_ids: Whether the table has such.

        Raises:
            TableConflictError: It would give rows that move new ids.
        """
        if has_stable_row_ids and not keeps_row_ids and self.added and (self.removed or self.updated):
            self.change.refuse(
                "unsupported",
                f"the commit moves rows of {self.change.name}, whose stable row ids would be others on the branch",
                BY_HAND,
            )
        names: dict[str, str] = {}
        updated = [_with_vector(own, own.id, new, names) for own, new in self.updated]
        first = 0 if self.dest.max_fragment_id is None else self.dest.max_fragment_id + 1
        added = []
        for number, new in enumerate(self.added, first):
            plain = new if keeps_row_ids else Fragment(files=new.files, physical_rows=new.physical_rows)
            added.append(_with_vector(plain.with_id(number), number, new, names))
        needed = fragment_references(self.added)
        needed.files |= names.keys()
        gone = [fragment.id for fragment in self.removed]
        said = f"{self.change.transplant.verb} of {self.change.transplant.commit_id}"
        if not (updated or gone):
            made = Operation.append(added)
        elif not added:
            made = Operation.delete(updated, gone, said)
        else:
            made = Operation.update(removed_fragment_ids=gone, updated_fragments=updated, new_fragments=added)
        return made, needed, names


def _rows_of(fragment: Fragment | None) -> object:
    """Which rows of its files a fragment has; None for none."""
    return None if fragment is None else (fragment.deletion_parts,)


def _with_vector(fragment: Fragment, id: int, new: Fragment, names: dict[str, str]) -> Fragment:
    """A fragment with the deletion file of another one, which gets the name that its id asks for."""
    file = DeletionFile.of(new)
    if file is None or new.deletion_file is None:
        return fragment
    names[new.deletion_file] = file.path(id)
    return file.put_on(fragment)
