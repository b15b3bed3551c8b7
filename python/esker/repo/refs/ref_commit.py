"""The commit of one entry to a log, by the commit loop that tables use as well."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from ...commit.loop import CommitLimits, commit
from ...commit.protocol import CommittedChange, NothingPut, Verdict
from ...exceptions import CommitConflictError, CommitStateUnknownError
from .clock import elapsed_s
from .numbered_log import OLD_SECONDS, LogEntry, NumberedLog

HINT_EVERY = 16
_HELD_UP_AT_MOST = 4
HELD_UP_S = 600.0
"""An entry that was made longer ago is made anew before it is put: what it leads to is looked at again."""
Build = Callable[[LogEntry | None], LogEntry]
"""Given the last entry of a log, makes the next; called again where another was faster, or where it was made too long
ago. What it raises ends it."""


@dataclass(frozen=True)
class _Removed:
    """An entry that has been compacted away: its write id is not known any more."""

    version: int
    write_id: None = None


class _Behind(CommitConflictError):
    """The last known entry was too old, and nothing was put: the commit starts again from the current one."""


class RefCommit:
    """An entry that `build` made after the last one that was read.

    Args:
        log: The log.
        build: Makes the entry.
        read: The last entry, None for an empty log.
        write_id: Our id, the same however often the entry is made anew.
        what: What is being done, for messages.
    """

    def __init__(self, log: NumberedLog, build: Build, read: LogEntry | None, write_id: str, what: str) -> None:
        self._log = log
        self._build = build
        self._read = read
        self._what = what
        self.tried = 0
        self.has_several = False
        self._put_last: LogEntry | None = None
        self.advice = "look at the history, or at what is there,"
        self.write_id = write_id
        self.read_version = read.number if read else 0
        self.entry: LogEntry
        self._make()

    def _make(self) -> None:
        self.entry = replace(self._build(self._read), number=self.read_version + 1, write_id=self.write_id)

    def latest(self) -> int:
        """The number of the last entry, 0 if there is none."""
        head = self._log.head()
        return head.number if head else 0

    def changes_since(self, version: int, latest: int) -> Iterator[CommittedChange]:
        """The entries that others put meanwhile."""
        for number in range(version + 1, latest + 1):
            yield self._log.entry(number) or _Removed(number)

    def applied(self, latest: int) -> bool:
        """Never: an entry is known by its write id alone."""
        return False

    def judge(self, change: CommittedChange) -> Verdict:
        """Whatever others did, ours is made anew on top of it, or refuses to be."""
        return Verdict.RERUN

    def rebase(self, change: CommittedChange) -> None:
        """Never called: see `judge`."""

    def next_bytes(self, version: int) -> bytes:
        """The entry, made anew if the one that there is has waited for too long."""
        if elapsed_s(self.entry.made) > HELD_UP_S:
            self._make()
        return self.entry.encode()

    def put(self, version: int, data: bytes) -> bool:
        """Puts the entry if there is none of its number. One that was held up on its way here is made anew first."""
        for _ in range(_HELD_UP_AT_MOST):
            if elapsed_s(self.entry.made) > HELD_UP_S:
                data = self._anew()
            held_up = self._log.held_up
            # Before the put: one that fails may have landed nevertheless.
            self.has_several |= self._put_last not in (None, self.entry)
            self._put_last = self.entry
            try:
                landed = self._log.put(version, data)
            except OSError as error:
                if self._log.store.has_denied(error):
                    raise self._nothing_put(error) from error
                raise
            if landed or self._log.held_up == held_up:
                self.tried += 1
                return landed
            head = self._log.head()
            if (head.number if head else 0) != version - 1:
                break
            data = self._anew()
        raise self._nothing_put(_Behind(f"{self._what}: held up for too long; try again", retryable=True))

    def _anew(self) -> bytes:
        try:
            self._make()
        except Exception as error:
            raise self._nothing_put(error) from error
        return self.entry.encode()

    def _nothing_put(self, reason: Exception) -> Exception:
        # An earlier put of ours may have landed nevertheless.
        return reason if self.tried else NothingPut(reason)

    def is_in_history(self, version: int) -> bool:
        """Whether the entry that was just put is one that others find: its number may have come free meanwhile."""
        if elapsed_s(self.entry.made) <= OLD_SECONDS or not self._log.is_behind(version):
            return True
        self._log.remove(version)
        return False

    def write_id_at(self, version: int) -> str | None:
        """Whose entry is there."""
        found = self._log.entry(version)
        return found.write_id if found else None

    def landed(self, version: int) -> None:
        """Leaves a hint, now and then."""
        if version % HINT_EVERY == 0:
            self._log.hint(version)

    def conflict(self, change: CommittedChange, *, retryable: bool) -> Exception:
        """The error for an entry that cannot go on top of another's."""
        return CommitConflictError(
            f"{self._what}: another writer's entry {change.version} came first; do it again",
            operation=self._what,
            other_version=change.version,
            retryable=retryable,
        )

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """The error for others that were faster every time."""
        return CommitConflictError(
            f"{self._what}: others were faster in {attempts} attempts within {seconds:.1f} s; try again",
            operation=self._what,
            retryable=True,
        )


def append(log: NumberedLog, build: Build, what: str, limits: CommitLimits | None = None) -> LogEntry:
    """Appends the entry that `build` makes of the last one, and returns it.

    Args:
        log: The log.
        build: Makes the entry.
        what: What is being done, for messages.
        limits: When to give up.

    Raises:
        CommitConflictError: Others were faster every time.

    Example:
        `append(log, lambda head: LogEntry(0, "settings", body={...}), "change the settings")`
    """
    write_id = uuid.uuid4().hex
    made: list[RefCommit] = []

    def make(read: LogEntry | None) -> RefCommit:
        made.append(RefCommit(log, build, read, write_id, what))
        return made[-1]

    def tried() -> LogEntry:
        number = commit(make(log.head()), limits=limits, rerun=lambda latest: make(log.entry(latest)))
        return _landed(log, made, number, what)

    for _ in range(_HELD_UP_AT_MOST - 1):
        with suppress(_Behind):
            return tried()
    return tried()


def _landed(log: NumberedLog, made: list[RefCommit], number: int, what: str) -> LogEntry:
    for change in reversed(made):
        if change.entry.number == number:
            # Of several that were put under one number, an earlier one may be there, whose reply was lost.
            found = _there(log, change, number, what) if change.has_several else change.entry
            return replace(found, made=change.entry.made)
    return _there(log, made[-1], number, what)


def _there(log: NumberedLog, change: RefCommit, number: int, what: str) -> LogEntry:
    try:
        return log.entry(number) or change.entry
    except OSError as error:
        raise CommitStateUnknownError(
            f"{what}: it has landed as the entry {number}, and reading it back failed: {error}; {change.advice} before "
            "you do it again",
            version=number,
            transaction=change.write_id,
        ) from error
