"""A ref that is written to: its changes are staged until a commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ..exceptions import InvalidArgumentError
from .differences import folded
from .objects.object_info import Change, ObjectInfo
from .objects.ref_view import BranchView
from .objects.staging import Staging
from .objects.stored_object import StoredObject, WriteableObject
from .reference import Reference


class WriteableReference(Reference):
    """What a branch and a transaction's branch have in common: a ref with what is staged over it."""

    _view: BranchView

    @property
    def _staging(self) -> Staging:
        return self._view.staging

    @property
    def head(self) -> Reference:
        """The last commit, without what is staged."""
        return Reference(self._core, self.get_commit().id)

    def object(self, path: str) -> WriteableObject:
        """The object at a path, which need not exist."""
        return WriteableObject(self._view, path)

    def _stage(self, path: str, change: ObjectInfo | None) -> None:
        self._view.stage(path, change)

    def delete_objects(self, object_paths: str | StoredObject | Iterable[str | StoredObject]) -> None:
        """Stages that paths go. No error for those at which there is nothing."""
        paths = [object_paths] if isinstance(object_paths, str | StoredObject) else list(object_paths)
        for path in paths:
            self._stage(path.path if isinstance(path, StoredObject) else path, None)

    def uncommitted(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
    ) -> Iterator[Change]:
        """What this process has staged and not committed.

        Args:
            max_amount: At most so many.
            after: Only paths behind this one.
            prefix: What paths start with.
            delimiter: Paths that go on after it are one `prefix_changed` together.
        """
        changes = self._view.uncommitted(prefix or "", after or "", delimiter or "")
        yield from islice(folded(changes, prefix or "", delimiter) if delimiter else changes, max_amount)

    def reset_changes(self, path_type: str = "reset", path: str | None = None) -> None:
        """Takes back what is staged: all (`reset`), one path (`object`), or what starts with one (`common_prefix`)."""
        staging = self._staging
        if path_type == "reset":
            staging.check_not_shared()
            staging.clear()
            return
        if path_type not in ("object", "common_prefix") or path is None:
            raise InvalidArgumentError(
                f"expected 'reset', or 'object' or 'common_prefix' with a path, found {path_type!r} with {path!r}"
            )
        wanted = [p for p, _ in staging.within(path)] if path_type == "common_prefix" else [path]
        staging.forget(wanted)
