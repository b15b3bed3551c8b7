"""The one commit loop.

```
latest version -> changes since ours was computed -> verdicts -> next bytes -> put if absent -> it is ours
   ^                  │ our own write id:              │ refuse: CommitConflictError   │ exists, or no reply:
   │                  v we have won                    v re-run: a fresh change        v whose write id is there?
   └───────────────────────────── back off ─────────────────────────────── another's, or nobody's
```

Nothing is reported as lost that may have landed: after a doubtful reply the loop reads back and looks for its own write
id before it calls anything a conflict, and it looks again among the changes whenever it starts anew.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from .protocol import CommitProtocol, Verdict

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
    """When the loop gives up: after `max_retries` more attempts or `timeout_s` seconds (None: no limit).

    Of these attempts at most `max_failures` may end in an error of the store: asking does not empty a full disk. A
    change is computed again at most `max_reruns` times (None: no limit of its own).
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
) -> int:
    """Commits a change and returns the version that it became; the newest version if it was applied already.

    Args:
        change: The change, with its table's rules.
        limits: When to give up.
        rerun: Computes the change again from the version it is given, for a verdict of `Verdict.RERUN`. Without it such
            a verdict ends in a conflict that a caller may retry.

    Raises:
        CommitConflictError: Others' changes leave no room for ours, or were faster in every attempt. Nothing of ours is
            visible then.
        IOFailedError: The store failed, and our commit is not there.

    Example:
        `commit(LanceCommit(log, transaction), limits=CommitLimits(max_retries=3))`
    """
    limits = limits or CommitLimits()
    started = limits.clock()
    attempt = failures = reruns = 0
    seen = change.read_version
    while True:
        latest = change.latest()
        if change.applied(latest):
            return latest
        if limits.max_reruns is not None and reruns >= limits.max_reruns:
            rerun = None
        if rerun and reruns and limits.timeout_s is not None and limits.clock() - started > limits.timeout_s:
            rerun = None
        found, replacement = _reconcile(change, seen, latest, rerun)
        if found is not None:
            return found
        seen = latest
        if replacement is not change:
            # It took its time: others may have been faster meanwhile.
            change, reruns = replacement, reruns + 1
            continue
        version = latest + 1
        landed, failure = _put(change, version, change.next_bytes(version))
        if landed:
            _finish(change, version)
            return version
        attempt += 1
        failures += failure is not None
        elapsed = limits.clock() - started
        if failure is not None and failures > limits.max_failures:
            raise failure
        if attempt > limits.max_retries or (limits.timeout_s is not None and elapsed > limits.timeout_s):
            raise failure or change.exhausted(attempt, elapsed)
        limits.backoff.sleep(limits.backoff.pause(attempt))


def _finish(change: CommitProtocol, version: int) -> None:
    try:
        change.landed(version)
    except OSError as error:
        # The commit is there, and must not be reported as failed; the next one does it again.
        warnings.warn(f"version {version} is committed, but what follows a commit failed: {error}", stacklevel=3)


def _put(change: CommitProtocol, version: int, data: bytes) -> tuple[bool, OSError | None]:
    """Whether our object is there now, and what the store failed with if it did."""
    try:
        if change.put(version, data):
            return True, None
        failure = None
    except OSError as error:
        failure = error
    # No reply is not a refusal, and "exists" may be our own first try: the object itself tells whose it is.
    try:
        return change.write_id_at(version) == change.write_id, failure
    except OSError as error:
        return False, failure or error


def _reconcile(
    change: CommitProtocol, seen: int, latest: int, rerun: Callable[[int], CommitProtocol] | None
) -> tuple[int | None, CommitProtocol]:
    """The version in which our change has landed already, if it has, and the change that is to be put on `latest`."""
    for other in change.changes_since(seen, latest):
        if other.write_id == change.write_id:
            return other.version, change
        verdict = change.judge(other)
        if verdict is Verdict.REBASE:
            change.rebase(other)
        elif verdict is Verdict.REFUSE:
            raise change.conflict(other, retryable=False)
        elif verdict is Verdict.RERUN:
            if rerun is None:
                raise change.conflict(other, retryable=True)
            # Computed from `latest`, so that nothing up to there can be in its way.
            return None, rerun(latest)
    return None, change
