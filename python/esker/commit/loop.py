"""The commit loop of all table formats (docs/commit-protocol.md).

```
latest version -> changes since our base -> verdicts -> next bytes -> put-if-absent -> landed
   ^                │ our own write id:       │ refuse: CommitConflictError   │ exists, or no reply:
   │                v landed already          v rerun: a fresh change         v read back: whose write id is there?
   └───────────────────────────── back off ────────────────────────────── another writer's, or none
```

A commit ends in one of three ways: *landed*, *refused* (it is not there, and never will be) or *unknown*. After an
ambiguous reply the loop reads the object back and compares write ids; each retry looks for its own write id among the
changes, too. A version that a clean-up has removed proves nothing: the outcome of a put to it stays unknown, unless the
newest version shows that the change is in it.
"""

from __future__ import annotations

import errno
import logging
import random
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ..exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    InvalidArgumentError,
    UnsupportedError,
)
from .orphans import Outcome, StagedFiles, acknowledge
from .protocol import (
    CommitProtocol,
    CommittedChange,
    KnowsItsPuts,
    LeavesTraces,
    MayMissHistory,
    NothingPut,
    PutsUnderLock,
    Verdict,
)

_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EMFILE,
        errno.ENAMETOOLONG,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EPERM,
        errno.EROFS,
    }
)
"""Codes by which a store refuses to make or to fill a file. Others, as EIO, may be the lost reply of a server."""
DEFAULT_MAX_RETRIES = 20
"""Attempts after the first, as in pylance."""
DEFAULT_TIMEOUT_S = 30 * 60.0
"""Seconds for all attempts together, as in pylance."""


@dataclass(frozen=True)
class Backoff:
    """Pauses that grow and differ between writers: uniform in [0, min(cap, base * 2**attempt)) seconds.

    Example:
        >>> from esker.commit.loop import Backoff
        >>> 0 <= Backoff(base_s=0.01, cap_s=1.0).pause(3) < 0.08
        True
    """

    base_s: float = 0.01
    cap_s: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = field(default=random.random)

    def pause(self, attempt: int) -> float:
        """Seconds to wait before attempt number `attempt` (1 is the first retry)."""
        return self.draw() * min(self.cap_s, self.base_s * 2.0 ** min(attempt, 32))


@dataclass(frozen=True)
class CommitLimits:
    """When the loop gives up: after `max_retries` retries or `timeout_s` seconds (None: no limit).

    At most `max_failures` attempts may end in an error of the store: a full disk stays full. A change is computed again
    at most `max_reruns` times (None: no limit of its own).
    """

    max_retries: int = DEFAULT_MAX_RETRIES
    max_failures: int = 3
    max_reruns: int | None = None
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic


def commit(
    change: CommitProtocol,
    *,
    limits: CommitLimits | None = None,
    rerun: Callable[[int], CommitProtocol] | None = None,
    staged: StagedFiles | None = None,
) -> int:
    """Commits a change and returns its version; the newest version if it was applied already.

    Args:
        change: The change, with the rules of its table format.
        limits: When to give up.
        rerun: Computes the change again from the version that it is given, for a verdict of `Verdict.RERUN`. Without it
            such a verdict ends in a conflict that the caller may retry.
        staged: The staged files that the change names. The loop keeps its `outcome` up to date.

    Raises:
        CommitConflictError: Other writers' changes conflict with ours, or won every race. Nothing of ours is visible
            then, and never will be.
        CommitStateUnknownError: The store failed, or the versions that others committed meanwhile are gone, before it
            was known whether our commit landed. The message says what to look for.
        IOFailedError: The store failed before anything was put.

    Example:
        `commit(LanceCommit(log, transaction), limits=CommitLimits(max_retries=3))`
    """
    race = _Race(change, limits or CommitLimits(), rerun, staged or StagedFiles())
    try:
        return race.run()
    except CommitStateUnknownError:
        raise
    except Exception as error:
        if race.doubts:
            raise race.unknown(error) from error
        raise
    except BaseException as error:
        race.broken_off(error)
        raise


class _Race:
    """The attempts of one change.

    `doubts` maps a version to the change that we put there with unknown outcome. The entry goes when the object of that
    version is known to be another writer's: then our put can have no effect any more.
    """

    def __init__(
        self,
        change: CommitProtocol,
        limits: CommitLimits,
        rerun: Callable[[int], CommitProtocol] | None,
        staged: StagedFiles,
    ) -> None:
        self.change = change
        self.doubts: dict[int, CommitProtocol] = {}
        self._limits = limits
        self._rerun = rerun
        self._staged = staged
        # A change that is computed again may have a new write id; a commit under an earlier one is ours, too.
        self._own = {change.write_id}
        self._unanswered: set[int] = set()
        self._attempts = self._failures = self._reruns = 0
        self._started = limits.clock()

    def run(self) -> int:
        """Tries until the change has landed, and returns its version."""
        seen = self.change.read_version
        while True:
            try:
                latest = self.change.latest()
                if self.change.applied(latest):
                    return self._landed(latest)
                found, replacement = self._reconcile(seen, latest)
            except OSError as error:
                # After a put with unknown outcome a failed read is retried; an answer is final.
                if not self.doubts or isinstance(error, _ANSWERS):
                    raise
                self._failed(error)
                continue
            if found is not None:
                return self._landed(found, ours=found in self.doubts)
            seen = latest
            if replacement is not self.change:
                # Computing it again took time: look for newer versions before the put.
                self.change, self._reruns = replacement, self._reruns + 1
                self._own.add(replacement.write_id)
                continue
            version = latest + 1
            landed, failure = self._put(version, self.change.next_bytes(version))
            if landed:
                return self._landed(version, ours=True)
            self._failed(failure)

    def broken_off(self, error: BaseException) -> None:
        """Notes what is certainly not there after Ctrl-C, which comes before a call of a store or after it."""
        if error.__context__ is not None:
            # It may have come while the error of a put was on its way here.
            return
        for version, change in list(self.doubts.items()):
            if version not in self._unanswered and isinstance(change, KnowsItsPuts):
                with suppress(Exception):
                    if change.was_put(version) is False:
                        self._not_at(version)

    def unknown(self, error: BaseException) -> Exception:
        """The error that says that the outcome of the commit is unknown, caused by `error`."""
        version, change = next(iter(self.doubts.items()))
        after = "was committed is not known, and its files are left as they are"
        return _unknown(change, version, f"{error}; whether ", after)

    def _reconcile(self, seen: int, latest: int) -> tuple[int | None, CommitProtocol]:
        """Judges the changes after `seen`: the version in which our change has landed, if any, and what to put next."""
        verdict = Verdict.KEEP
        for other in self.change.changes_since(seen, latest):
            if other.write_id in self._own:
                if self._is_in_history(other.version):
                    return other.version, self.change
                # `_is_in_history` has removed our object: read what is at this version now.
                other = next(iter(self.change.changes_since(other.version - 1, other.version)))
            elif other.write_id is not None:
                self._not_at(other.version)
            elif other.version in self.doubts:
                return self._of_gone(other, latest), self.change
            if verdict is Verdict.RERUN:
                if not self.doubts:
                    break
                # The verdict stands; the remaining changes are only searched for our own write ids.
                continue
            verdict = self.change.judge(other)
            if verdict is Verdict.REBASE:
                self.change.rebase(other)
            elif verdict is Verdict.REFUSE:
                raise self.change.conflict(other, retryable=False)
            elif verdict is Verdict.RERUN and not self._may_rerun():
                raise self.change.conflict(other, retryable=True)
        if verdict is Verdict.RERUN and self._rerun is not None:
            # Computed from `latest`: no change up to there can conflict with it.
            return None, self._rerun(latest)
        return None, self.change

    def _may_rerun(self) -> bool:
        limits = self._limits
        if self._rerun is None or (limits.max_reruns is not None and self._reruns >= limits.max_reruns):
            return False
        return not (self._reruns and self._is_late())

    def _is_late(self) -> bool:
        return self._limits.timeout_s is not None and self._limits.clock() - self._started > self._limits.timeout_s

    def _of_gone(self, other: CommittedChange, latest: int) -> int:
        """The version of `other`, whose writer is not known any more, if the newest version shows that it was ours."""
        change = self.doubts[other.version]
        if isinstance(change, LeavesTraces) and change.is_part_of(latest):
            # `landed` is not to be called for a version that is gone.
            del self.doubts[other.version]
            return other.version
        raise self.change.conflict(other, retryable=False)

    def _put(self, version: int, data: bytes) -> tuple[bool, Exception | None]:
        """Puts the object of `version`: whether it is there and ours, and the store's error if it failed."""
        change = self.change
        self.doubts[version] = change
        self._staged.outcome = Outcome.UNKNOWN
        try:
            landed = change.put(version, data)
            failure, is_refused = None, False
        except NothingPut as refusal:
            self._not_sent(version)
            raise refusal.reason from None
        except (InvalidArgumentError, UnsupportedError):
            # The store refused the operation as such: nothing was written.
            self._not_sent(version)
            raise
        except Exception as error:
            landed, failure = False, error
            # A reply that an earlier attempt did not get may still say that its object is there.
            is_refused = is_refusal(error) and version not in self._unanswered
            if not is_refused:
                self._unanswered.add(version)
        if landed:
            return self._is_in_history(version), None
        # A lost reply is no refusal, and "exists" may be our own first attempt: the write id in the object tells.
        try:
            there = change.write_id_at(version)
        except Exception as error:
            if not is_refused:
                # What is there may be ours.
                self._unanswered.add(version)
            return False, failure or error
        if there in self._own:
            return self._is_in_history(version), failure
        if there is not None or is_refused:
            self._not_at(version)
        return False, failure

    def _is_in_history(self, version: int) -> bool:
        """Whether `version`, which is ours, is part of the table's history. If not, its object was removed."""
        if version not in self.doubts:
            return True
        change = self.doubts[version]
        if not isinstance(change, MayMissHistory) or change.is_in_history(version):
            return True
        # It was there to be read: another writer may have restored it, and so refer to its files by now.
        self._staged.was_shown = True
        self._not_at(version)
        return False

    def _not_sent(self, version: int) -> None:
        """Notes that a put of `version` sent nothing. What an earlier one sent may still arrive."""
        if version not in self._unanswered:
            self._not_at(version)

    def _not_at(self, version: int) -> None:
        """Notes that the object of `version` is not ours, and never will be."""
        self.doubts.pop(version, None)
        if not self.doubts and not self._staged.was_shown and self._staged.outcome is Outcome.UNKNOWN:
            self._staged.outcome = Outcome.REFUSED

    def _failed(self, failure: Exception | None) -> None:
        """Pauses before the next attempt, or gives up."""
        self._attempts += 1
        self._failures += failure is not None
        if failure is not None and (self._failures > self._limits.max_failures or not isinstance(failure, OSError)):
            raise failure
        if self._attempts > self._limits.max_retries or self._is_late():
            raise failure or self.change.exhausted(self._attempts, self._limits.clock() - self._started)
        self._limits.backoff.sleep(self._limits.backoff.pause(self._attempts))

    def _landed(self, version: int, *, ours: bool = False) -> int:
        """Does what follows a commit. A failure in here is a warning: the commit stands."""
        self._staged.outcome = Outcome.LANDED
        change = self.doubts.get(version, self.change)
        self.doubts.clear()
        for write_id in self._own:
            acknowledge(write_id)
        if ours:
            follow(lambda: change.landed(version), f"version {version}")
        self._check_released(change, version)
        return version

    def _check_released(self, change: CommitProtocol, version: int) -> None:
        """Raises where the lock of a version was not released: nobody knows how long it was ours."""
        unreleased = change.unreleased if isinstance(change, PutsUnderLock) else {}
        for other, lost in unreleased.items():
            if other != version:
                tell(f"the lock of version {other}, which was another writer's, could not be released: {lost}")
        error = unreleased.get(version)
        if error is not None:
            after = f"was put, but its lock could not be released ({error})"
            raise _unknown(change, version, "", after) from error


_ANSWERS = (CommitConflictError, AlreadyExistsError, CorruptFileError, InvalidArgumentError)
"""Errors about the contents of the log, and about the change. Others mean that the log could not be read."""


def _unknown(change: CommitProtocol, version: int, before: str, after: str) -> CommitStateUnknownError:
    """The error of a version, with what is told before and after its name, and how to find out."""
    uri = getattr(change, "uri", None)
    advice = getattr(change, "advice", f"look for the id {change.write_id} among the commits")
    place = f" of {uri}" if uri else ""
    return CommitStateUnknownError(
        f"{before}version {version}{place} {after}: {advice} before you run it again",
        uri=uri,
        version=version,
        transaction=change.write_id,
    )


def follow(work: Callable[[], object], committed: str) -> None:
    """Runs the work that follows a commit. A failure is only a warning: the commit stands.

    Args:
        work: The work.
        committed: What is committed, for the warning's text.

    Example:
        >>> from esker.commit.loop import follow
        >>> follow(lambda: None, "version 3")
    """
    try:
        work()
    except Exception as error:
        tell(f"{committed} is committed, but what follows a commit failed: {error}")


def is_refusal(error: Exception) -> bool:
    """Whether the store did not take an object, so that it is not there unless it is found there: a full disk, missing
    rights.

    Example:
        >>> import errno
        >>> from esker.commit.loop import is_refusal
        >>> is_refusal(OSError(errno.EACCES, "read-only")), is_refusal(OSError("no reply"))
        (True, False)
    """
    return isinstance(error, OSError) and error.errno in _REFUSALS


def tell(message: str) -> None:
    """Warns of what does not make a commit fail.

    Example:
        >>> import warnings
        >>> from esker.commit.loop import tell
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always")
        ...     tell("version 3 is committed, but its lock is held")
        >>> str(told[0].message)
        'version 3 is committed, but its lock is held'
    """
    # Under `-W error` the warning is an exception, which would make the commit look failed: log it instead.
    try:
        warnings.warn(message, stacklevel=5)
    except Warning:
        logging.getLogger(__name__).warning(message)
