"""What a ref reads: the content of its commit, and on a branch the staged changes over it.

`Reference`, `Branch` and `StoredObject` are thin handles over a view; they do not import each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from ...exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from ..core.repository_core import RepositoryCore
from ..refs.clock import Moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..text import check_text
from .batches import BATCH_ROWS, info, infos, listed, table
from .object_info import Change, CommonPrefix, ObjectInfo
from .staging import Staging


class RefView:
    """What a ref expression reads.

    Args:
        core: The repository.
        id: The expression.
    """

    def __init__(self, core: RepositoryCore, id: str) -> None:
        self.core = core
        self.id = id

    def commit(self) -> Commit:
        """The commit that the ref means now.

        Raises:
            NotFoundError: It means nothing.
        """
        return self.core.resolve(self.id)

    def base(self) -> Commit:
        """The commit that is read."""
        return self.commit()

    def frozen(self) -> RefView:
        """The same as it is now, whatever is committed or staged later."""
        return RefView(self.core, self.base().id)

    def found(self, path: str) -> tuple[ObjectInfo | None, str | Staging]:
        """What is at a path, and the id of the commit that it is part of, or where it is staged."""
        commit = self.base()
        check_text(path, "a path")
        with explained(self.core.store, commit.id):
            rows = table(self.core.storage.get(commit.meta_range_id, [path])).to_pylist(maps_as_pydicts="strict")
        return info(path, rows[0]["entry"]) if rows else None, commit.id

    def objects(
        self, prefix: str = "", after: str = "", delimiter: str = "", max_amount: int | None = None
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """The objects whose paths start with `prefix`. See `Reference.objects`."""
        first = _next(check_text(after, "a path"), prefix, check_text(delimiter, "a delimiter"))
        yield from self._listed(prefix, first, delimiter, max_amount)

    def _listed(
        self, prefix: str, first: str, delimiter: str = "", max_amount: int | None = None
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """What is committed, from the path `first` on."""
        commit = self.base()
        # No more is decoded than was asked for.
        count = BATCH_ROWS if max_amount is None else max(1, min(max_amount, BATCH_ROWS))
        with explained(self.core.store, commit.id):
            listing = self.core.storage.list(
                commit.meta_range_id, prefix=check_text(prefix, "a prefix"), from_path=first, delimiter=delimiter
            )
            yield from islice(listed(listing, count), max_amount)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the name, and how the repository is opened; nothing of what is staged."""
        return type(self), (self.core, self.id)


class TagView(RefView):
    """What a tag reads: the tag, where a branch has the same name."""

    def commit(self) -> Commit:
        """The commit that the tag stands for."""
        found = self.core.tag_commit(self.id)
        if found is None:
            raise NotFoundError(f"expected a tag {self.id!r} in {self.core.uri}, found none", path=self.id)
        return self.core.commits.get(found)


class BranchView(RefView):
    """What a branch reads, and what is staged on it.

    Args:
        core: The repository.
        id: The branch.
        staging: A transaction's; by default the one that all handles of the branch in this process share.
    """

    def __init__(self, core: RepositoryCore, id: str, staging: Staging | None = None) -> None:
        super().__init__(core, id)
        self._own_staging = staging

    @property
    def staging(self) -> Staging:
        """What is staged and not committed."""
        return self._own_staging if self._own_staging is not None else self.core.staging(self.id)

    def commit(self) -> Commit:
        """The last commit of the branch.

        Raises:
            NotFoundError: There is no such branch.
        """
        return self.core.head(self.id)

    def base(self) -> Commit:
        """The commit that is read: the branch's last, or in a transaction the one that it began at."""
        if self._own_staging is not None and self._own_staging.base is not None:
            return self._own_staging.base
        return self.commit()

    def frozen(self) -> RefView:
        """The same as it is now, whatever is committed or staged later."""
        staging = Staging()
        staging.restore(self.staging.saved())
        staging.base = self.base()
        return BranchView(self.core, self.id, staging)

    def found(self, path: str) -> tuple[ObjectInfo | None, str | Staging]:
        """What is at a path, and the id of the commit that it is part of, or where it is staged."""
        staging = self.staging
        is_staged, change = staging.lookup(check_text(path, "a path"))
        return (change, staging) if is_staged else super().found(path)

    def objects(
        self, prefix: str = "", after: str = "", delimiter: str = "", max_amount: int | None = None
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """The objects whose paths start with `prefix`, with what is staged. See `Reference.objects`."""
        staging = self.staging
        if not len(staging):
            yield from super().objects(prefix, after, delimiter, max_amount)
            return
        first = _next(check_text(after, "a path"), prefix, check_text(delimiter, "a delimiter"))
        committed = self._listed(prefix, first)
        last, given = None, 0
        for entry in _overlaid(committed, staging.within(prefix, first)):
            found: ObjectInfo | CommonPrefix = entry
            head, cut, _ = entry.path[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if cut:
                found = CommonPrefix(prefix + head + delimiter)
                if found == last:
                    continue
                last = found
            if max_amount is not None and given >= max_amount:
                return
            given += 1
            yield found

    def uncommitted(self, prefix: str = "", after: str = "", delimiter: str = "") -> Iterator[Change]:
        """What is staged and not committed, against what is read without it.

        Args:
            prefix: What paths start with.
            after: Only paths behind this one.
            delimiter: Up to which paths are one then: `after` may be such a prefix.
        """
        staging = self.staging
        # Of a branch that is not there, nothing is said, whether something is staged on it or not.
        content = self.base().meta_range_id
        for batch in staging.batches(prefix, _next(after, prefix, delimiter)):
            committed = dict(infos(self.core.storage.get(content, [path for path, _ in batch])))
            for path, staged in batch:
                left = committed.get(path)
                if staged is None and left is None:
                    continue
                kind = "removed" if staged is None else "changed" if left is not None else "added"
                yield Change(kind, path, "object", staged.size_bytes if staged else 0, left, staged)

    # Staging.

    def check_writeable(self, path: str) -> Commit:
        """Refuses what cannot be staged before its bytes are written; returns the commit that it will go over."""
        staging = self.staging
        staging.check_open()
        if not check_text(path, "a path"):
            raise InvalidArgumentError("expected a path, found an empty one")
        if staging.base is not None:
            return staging.base
        self.core.check_unprotected(self.id)
        return self.commit()

    def check_new(self, path: str) -> None:
        """Refuses a path at which there is an object.

        Raises:
            AlreadyExistsError: There is one.
        """
        if self.found(path)[0] is not None:
            raise AlreadyExistsError(f"{path!r} exists already in {self.id!r}", path=path)

    def stage(
        self,
        path: str,
        change: ObjectInfo | None,
        began: Moment | None = None,
        source: str | Staging | None = None,
        is_new: bool = False,
    ) -> None:
        """Stages an object at a path, or with None that the path goes.

        Args:
            path: Where.
            change: What.
            began: When its bytes began to be written: garbage collection spares them by this age.
            source: The id of the commit of which it is a copy, or where what is copied is staged: its bytes are no
                younger for being staged once more.
            is_new: Whether there may be no object at the path.

        Raises:
            AlreadyExistsError: There is one, and it is to be new.
        """
        staging = self.staging
        while True:
            emptied = staging.emptied
            base = self.check_writeable(path)
            if is_new:
                self.check_new(path)
            # Another thread's commit may have taken what was staged, so that the base is behind it.
            if staging.add(path, change, base, emptied=emptied, began=began, source=source, is_new=is_new):
                return

    def stage_copy(self, found: ObjectInfo, source: str | Staging, path: str) -> None:
        """Stages an object at a path: one of a commit, whose id `source` is, or one that is staged somewhere."""
        self.stage(path, replace(found, path=path), source=source)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._own_staging is not None:
            raise UnsupportedError("a transaction stays in its process; pickle the branch that it began on")
        return super().__reduce__()


def _next(after: str, prefix: str, delimiter: str) -> str:
    """The first path of a listing behind `after`, which may be a common prefix that an earlier page ended with."""
    head, cut, rest = after.removeprefix(prefix).partition(delimiter) if delimiter else ("", "", "")
    if cut and not rest and after == prefix + head + delimiter:
        return _behind_all(after)
    return after + "\0" if after else ""


def _behind_all(prefix: str) -> str:
    """The first string behind all that start with a prefix, in the order of their UTF-8."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return prefix + "\0"
    # There are no characters between the two.
    last = 0xE000 if kept[-1] == "\ud7ff" else ord(kept[-1]) + 1
    return kept[:-1] + chr(last)


def _overlaid(
    committed: Iterator[ObjectInfo | CommonPrefix], staged: Iterator[tuple[str, ObjectInfo | None]]
) -> Iterator[ObjectInfo]:
    """Committed objects with staged ones in their places, both in the order of their paths."""
    change = next(staged, None)
    for entry in committed:
        assert isinstance(entry, ObjectInfo)
        while change is not None and change[0] < entry.path:
            if change[1] is not None:
                yield change[1]
            change = next(staged, None)
        if change is not None and change[0] == entry.path:
            continue
        yield entry
    while change is not None:
        if change[1] is not None:
            yield change[1]
        change = next(staged, None)
