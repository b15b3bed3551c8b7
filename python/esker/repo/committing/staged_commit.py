"""The commit of what is staged.

```
commit_staging       the line
  check_committable  staged  -> checked: young enough that garbage collection has deleted none of it
  stored_ranges      checked -> ranges and a metarange: the base commit with the staged changes
  landed_on          brought onto the branch's last commit, where others have committed since; conflicts end here
  commit_onto        stored -> branch moved: see `new_commit`
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from ...exceptions import CommitConflictError, CommitStateUnknownError, InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..errors import NoChangesError
from ..objects.batches import rows
from ..objects.staging import Staging
from ..refs.clock import moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..text import check_pairs, check_text
from .lost_ref import OnLost, landed_on
from .needs import Needs
from .new_commit import Content, NewCommit, commit_onto

_TURNS = 20
"""How often a commit takes anew what is staged, after others of the same handle have committed what it had taken."""


def commit_staging(
    core: RepositoryCore,
    staging: Staging,
    new: NewCommit,
    *,
    allow_empty: bool = False,
    on_lost: OnLost = OnLost.REPLAY,
    check: Callable[[str, str], None] = lambda before, after: None,
    seal: Callable[[], None] = lambda: None,
) -> Commit:
    """Commits what is staged now, and nothing else; it is not staged any more then.

    What other threads and hooks stage meanwhile stays staged, whether the commit lands or not. Commits of the same wait
    for each other, but not for hooks: one whose changes were committed while its hooks worked takes what is left.

    Args:
        core: The repository.
        staging: What is staged: by a branch's handle, a transaction or an import.
        new: Where it goes, and what the commit says.
        allow_empty: Commits even if nothing changes.
        on_lost: What to do with commits of tables to which others have committed meanwhile.
        check: Called with the metaranges of the base and of what is staged over it; what it raises ends the commit.
        seal: Called when the branch has moved: ends the stores that stage there.

    Raises:
        NoChangesError: Nothing is staged, or what is staged changes nothing: the base has it already, or the branch by
            now, as after a commit whose reply was lost. In the second case it is not staged any more.
        MergeConflictError: Others have changed the same paths. What is staged stays.
        TableConflictError: Others have changed the same table in a way that leaves no room. What is staged stays.
        CommitConflictError: Each time, others of the same handle committed what was taken while hooks worked.
    """
    core.check_unprotected(new.branch)
    new = replace(new, message=check_text(new.message, "a message"), metadata=check_pairs(new.metadata, "metadata"))
    for _ in range(_TURNS):
        with suppress(_Overtaken), ExitStack() as turn:
            turn.enter_context(staging.turn())
            taken = turn.enter_context(staging.taken())
            commit = _Commit(core, staging, taken, new, allow_empty, on_lost)
            return commit.run(check, seal, turn.close)
    raise CommitConflictError(
        f"{new.what}: each time, hooks or other threads of this handle committed what it was about to commit; call it "
        "again, or let no hook commit on the same branch",
        operation=new.what,
        retryable=True,
    )


class _Overtaken(Exception):
    """While hooks worked, what a commit had taken was committed by another."""


@dataclass(frozen=True)
class _Commit:
    """One turn of a commit: see `commit_staging`."""

    core: RepositoryCore
    staging: Staging
    taken: Staging
    new: NewCommit
    allow_empty: bool
    on_lost: OnLost

    def run(self, check: Callable[[str, str], None], seal: Callable[[], None], end_turn: Callable[[], None]) -> Commit:
        """Commits what was taken. The turn ends when the branch has moved: hooks that follow may commit."""
        core, new, taken = self.core, self.new, self.taken
        base = taken.base or core.head(new.branch)
        check_committable(core, new.branch, taken)
        taken.forget_dropped()
        began = moment()
        ours = stored_ranges(core, new.branch, base, taken, allow_empty=self.allow_empty)
        check(base.meta_range_id, ours)
        versions: dict[str, tuple[int, ...]] = {}

        def content(dest: Commit) -> Content:
            check_committable(core, new.branch, taken)
            with explained(core.store, base.id):
                found = landed_on(core, new.branch, base, ours, dest, taken, self.on_lost)
            versions.clear()
            versions.update(found.versions)
            # A table's own commit loop knows its entry by its write id.
            is_told = not self.allow_empty and self.on_lost is not OnLost.TAKEN
            if is_told and _is_same(core, base, dest, found.content):
                landed(dest)
                raise NoChangesError(
                    f"branch {new.branch!r} has all that is staged already, by the commit {dest.id} or one before it: "
                    "nothing was committed, and it is not staged any more; allow_empty commits all the same"
                )
            return Content(found.content, Needs(frozenset(taken.sources), began, found.staging))

        def landed(made: Commit) -> None:
            seal()
            # What was staged since saw neither what others have committed meanwhile nor other numbers of versions:
            # against the content that it saw, the next commit finds the conflicts.
            seen = made if made.meta_range_id == ours else replace(base, meta_range_id=ours)
            self.staging.drop(taken, base, seen)
            self.staging.versions = dict(versions)
            end_turn()

        try:
            return commit_onto(core, new, content, landed=landed, apart=self._apart)
        except CommitStateUnknownError:
            self.staging.is_in_doubt = True
            raise

    @contextmanager
    def _apart(self) -> Iterator[None]:
        with self.staging.out_of_turn():
            yield
        # Of nothing, as with allow_empty, nothing can be committed by another.
        if len(self.taken) and self.staging.landings != self.taken.landings:
            raise _Overtaken


def _is_same(core: RepositoryCore, base: Commit, dest: Commit, content: str) -> bool:
    """Whether what was brought onto the branch's last commit changes nothing there. Of the base it is known already."""
    if dest.meta_range_id == base.meta_range_id:
        return False
    # The same bytes may have been put at two addresses.
    return content == dest.meta_range_id or not any(
        True for _ in rows(core.storage.diff(dest.meta_range_id, content), 1)
    )


def check_committable(core: RepositoryCore, branch: str, staging: Staging) -> None:
    """Refuses what was staged so long ago that garbage collection may have deleted it.

    Raises:
        InvalidArgumentError: It is older than the grace period.
    """
    grace = core.settings().grace_s
    # Without a grace period, collections announce what they delete, and commits look there: see `needs`.
    if 0 < grace < staging.age_s:
        raise InvalidArgumentError(
            f"branch {branch!r}: what is staged was begun more than {grace / 3600:.4g} hours ago; garbage "
            "collection may have taken it for left behind: reset the changes, where a handle has staged them, and "
            "write them again"
        )


def stored_ranges(core: RepositoryCore, branch: str, base: Commit, staging: Staging, *, allow_empty: bool) -> str:
    """Stores the base version with what is staged, and returns the id of its metarange.

    Raises:
        NoChangesError: It is the base version's own.
    """
    applied = core.storage.apply(base.meta_range_id, staging.changes(), rule=core.settings().rule())
    if applied.metarange_id is None and not allow_empty:
        raise NoChangesError(f"branch {branch!r}: nothing is staged that changes anything; allow_empty commits it")
    return applied.metarange_id or base.meta_range_id
