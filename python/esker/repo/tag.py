"""A tag: a name that stays at one commit."""

from __future__ import annotations

import json
import time
import uuid
from functools import partial

from ..commit.loop import follow
from ..exceptions import AlreadyExistsError, CommitConflictError, NotFoundError
from .committing.collection_check import check_not_collected
from .committing.needs import Needs
from .committing.ref_move import fail, store_commit
from .objects.ref_view import RefView, TagView
from .reference import Reference, ReferenceType, id_of
from .refs.clock import elapsed_s, moment
from .refs.commits import Commit
from .refs.layout import check_name, tag_path
from .refs.ref_commit import HELD_UP_S


class Tag(Reference):
    """A tag of a repository, which need not exist.

    Example:
        `repository.tag("v1").create("main")`
    """

    def _make_view(self) -> RefView:
        return TagView(self._core, self.id)

    def create(self, source_ref: ReferenceType, exist_ok: bool | None = False) -> Tag:
        """Creates the tag where a ref is now. A tag never moves: with `exist_ok`, one that is there stays where it is.

        Raises:
            AlreadyExistsError: It is there already, and `exist_ok` is not set.
        """
        check_name(self.id, "tag")
        commit = self._core.resolve(id_of(source_ref))
        store_commit(self._core, commit, Needs(frozenset((commit.id,))))
        said = {"commit_id": commit.id, "time": time.time(), "write_id": uuid.uuid4().hex}
        announced = moment()
        if self._core.atomic.put_own(tag_path(self.id), json.dumps(said).encode()):
            self._check_late(commit, was_held_up=elapsed_s(announced) > HELD_UP_S)
        else:
            there = self._core.tag_commit(self.id)
            if there is None and self._core.atomic.is_taken(tag_path(self.id)):
                raise AlreadyExistsError(
                    f"tag {self.id!r} is being deleted, or its deletion was broken off; delete it again", path=self.id
                )
            if there is None or not exist_ok:
                raise AlreadyExistsError(f"tag {self.id!r} exists already, at {there}", path=self.id)
        return self

    def _check_late(self, commit: Commit, *, was_held_up: bool) -> None:
        """Looks once more whether a collection has missed the tag, which may have taken long to put."""
        try:
            if was_held_up:
                store_commit(self._core, commit, Needs(frozenset((commit.id,))))
            else:
                check_not_collected(self._core, commit)
        except (NotFoundError, CommitConflictError):
            # Its content may be gone: no reader can rely on it.
            self._core.atomic.delete(tag_path(self.id), free=True)
            raise
        except OSError as error:
            follow(partial(fail, error), f"tag {self.id}")

    def delete(self) -> None:
        """Deletes the tag, or what a deletion that was broken off has left of it.

        Raises:
            NotFoundError: There is none.
        """
        if self._core.tag_commit(self.id) is None and not self._core.atomic.is_taken(tag_path(self.id)):
            raise NotFoundError(f"no tag {self.id!r} in {self._core.uri}", path=self.id)
        self._core.atomic.delete(tag_path(self.id), free=True)
