"""The last steps that all commits share: content over the base, hooks, the stored commit, the moved branch.

```
NewCommit      what the commit says: branch, message, metadata, committer, date
Content        what it holds and needs: computed over the branch's last commit, and again on a retry
commit_onto    NewCommit + Content -> hooks -> entry_to (stored, checked) -> move_branch -> hooks
```
"""

from __future__ import annotations

import getpass
import operator
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..hooks import EventType
from ..refs.commits import Commit
from ..refs.numbered_log import LogEntry
from ..text import check_text
from .hook_event import run_after, run_before
from .needs import Needs
from .ref_move import entry_to, move_branch


@dataclass(frozen=True)
class NewCommit:
    """What a commit says, whatever it holds.

    Attributes:
        branch: The branch that moves to it.
        message: Why.
        metadata: The user's own keys and values.
        committer: Who; the user of the machine by default.
        date: When, in seconds since the Unix epoch; now by default.
        merged: The ref expression that is merged, for hooks; None for what is no merge.
        second_parent: Of a merge that is no squash.
    """

    branch: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    committer: str | None = None
    date: int | None = None
    merged: str | None = None
    second_parent: Commit | None = None

    @property
    def what(self) -> str:
        """What is being done, for messages."""
        return f"commit to {self.branch}" if self.merged is None else f"merge into {self.branch}"

    def over(self, base: Commit, content: Callable[[Commit], Content]) -> tuple[Commit, Needs]:
        """The commit whose first parent is `base`, and what it needs."""
        committer = check_text(self.committer or default_committer(), "a committer")
        held = content(base)
        commit = Commit.make(
            committer=committer,
            message=self.message,
            meta_range_id=held.meta_range_id,
            creation_date=int(time.time()) if self.date is None else _checked(self.date),
            parents=(base,) if self.second_parent is None else (base, self.second_parent),
            metadata=self.metadata,
        )
        return commit, held.needs


@dataclass(frozen=True)
class Content:
    """What a commit holds: the id of its metarange, and what it takes that its branch has not led to so far."""

    meta_range_id: str
    needs: Needs


def commit_onto(
    core: RepositoryCore,
    new: NewCommit,
    content: Callable[[Commit], Content],
    landed: Callable[[Commit], None] = lambda made: None,
    apart: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Commit:
    """Commits onto a branch, and returns the commit.

    Args:
        core: The repository.
        new: What the commit says.
        content: What it holds, given the branch's last commit. What this raises ends it.
        landed: Called with the commit as soon as the branch has moved.
        apart: Makes what the hooks before the commit are called in. What this raises at its end ends the commit.

    Raises:
        CommitConflictError: Other writers were faster every time.
    """

    before: EventType = "pre-commit" if new.merged is None else "pre-merge"
    after: EventType = "post-commit" if new.merged is None else "post-merge"

    def build(head: LogEntry | None) -> LogEntry:
        commit, needs = new.over(core.commit_of(head, new.branch), content)
        if core.hooks.has(before):
            with apart():
                run_before(core, before, new.branch, new.merged, commit)
        return entry_to(core, "commit", commit, needs)

    entry = move_branch(core, new.branch, build, new.what)
    made = core.commit_of(entry, new.branch)
    landed(made)
    run_after(core, after, new.branch, new.merged, made)
    return made


def _checked(date: int) -> int:
    try:
        if -(1 << 63) <= (seconds := operator.index(date)) < 1 << 63:
            return seconds
    except TypeError:
        pass
    raise InvalidArgumentError(f"expected a date as whole seconds since the Unix epoch, found {date!r}")


def default_committer() -> str:
    """The committer where none is given: the user of the machine."""
    try:
        return getpass.getuser().encode(errors="replace").decode()
    except (OSError, KeyError, ImportError):
        return "esker"
