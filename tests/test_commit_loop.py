"""The commit loop against a plain model of a log: lost replies, failures, conflicts, bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from esker.commit import Backoff, CommitConflictError, CommitLimits, Verdict, commit
from esker.commit.protocol import CommittedChange
from esker.exceptions import IOFailedError


@dataclass(frozen=True)
class Entry:
    version: int
    write_id: str | None
    kind: str = "append"
    number: int | None = None


@dataclass
class Log:
    """A log in memory, with what happens at the next puts: each takes the entry and stores it, loses it, or raises."""

    entries: list[Entry] = field(default_factory=list)
    puts: list[Callable[[Log, Entry], bool]] = field(default_factory=list)

    def put(self, entry: Entry) -> bool:
        return self.puts.pop(0)(self, entry) if self.puts else store(self, entry)


def store(log: Log, entry: Entry) -> bool:
    if len(log.entries) >= entry.version:
        return False
    log.entries.append(entry)
    return True


def lose_the_reply(log: Log, entry: Entry) -> bool:
    store(log, entry)
    raise IOFailedError("connection reset")


def lose_the_request(log: Log, entry: Entry) -> bool:
    raise IOFailedError("connection reset")


def repeat_after_a_lost_reply(log: Log, entry: Entry) -> bool:
    """What a store's client does that tries again by itself: the second try meets the first's object."""
    store(log, entry)
    return store(log, entry)


def someone_first(kind: str = "append") -> Callable[[Log, Entry], bool]:
    def put(log: Log, entry: Entry) -> bool:
        store(log, Entry(entry.version, "other", kind))
        return store(log, entry)

    return put


def arrives_late(log: Log, entry: Entry) -> bool:
    """The request is still on its way when it is reported as failed, and lands behind another writer's."""
    store(log, Entry(entry.version, "other"))
    store(log, Entry(entry.version + 1, entry.write_id))
    raise IOFailedError("timeout")


@dataclass
class Append:
    log: Log
    write_id: str = "ours"
    read_version: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=lambda: {"append": Verdict.KEEP})
    rebased: list[int] = field(default_factory=list)
    number: int | None = None
    after: list[int] = field(default_factory=list)
    fails_afterwards: bool = False

    def latest(self) -> int:
        return len(self.log.entries)

    def changes_since(self, version: int, latest: int) -> Iterable[Entry]:
        return self.log.entries[version:latest]

    def judge(self, change: CommittedChange) -> Verdict:
        assert isinstance(change, Entry)
        return self.verdicts[change.kind]

    def applied(self, latest: int) -> bool:
        return self.number is not None and any(entry.number == self.number for entry in self.log.entries[:latest])

    def landed(self, version: int) -> None:
        self.after.append(version)
        if self.fails_afterwards:
            raise IOFailedError("disk full")

    def rebase(self, change: CommittedChange) -> None:
        self.rebased.append(change.version)

    def next_bytes(self, version: int) -> bytes:
        return f"{version} {self.write_id}".encode()

    def put(self, version: int, data: bytes) -> bool:
        assert data == self.next_bytes(version)
        return self.log.put(Entry(version, self.write_id, number=self.number))

    def write_id_at(self, version: int) -> str | None:
        return self.log.entries[version - 1].write_id if version <= len(self.log.entries) else None

    def conflict(self, change: CommittedChange, *, retryable: bool) -> Exception:
        return CommitConflictError("conflict", other_version=change.version, retryable=retryable)

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        return CommitConflictError(f"lost {attempts} times", retryable=True)


def limits(**options: object) -> CommitLimits:
    return CommitLimits(backoff=Backoff(sleep=lambda seconds: None), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("puts", "version"),
    [
        ([], 1),
        ([lose_the_reply], 1),
        ([repeat_after_a_lost_reply], 1),
        ([lose_the_request], 1),
        ([someone_first()], 2),
        ([someone_first(), someone_first(), lose_the_reply], 3),
        ([lose_the_request, someone_first(), lose_the_request, lose_the_reply], 2),
        ([arrives_late], 2),
    ],
)
def test_one_commit_lands_once_whatever_happens_to_replies(
    puts: list[Callable[[Log, Entry], bool]], version: int
) -> None:
    log = Log(puts=list(puts))
    assert commit(Append(log), limits=limits()) == version
    assert [entry.version for entry in log.entries if entry.write_id == "ours"] == [version]


def test_a_change_that_refuses_stops_the_commit() -> None:
    log = Log([Entry(1, "a", "overwrite")])
    change = Append(log, verdicts={"overwrite": Verdict.REFUSE})
    with pytest.raises(CommitConflictError) as caught:
        commit(change, limits=limits())
    assert (caught.value.retryable, caught.value.other_version, len(log.entries)) == (False, 1, 1)


def test_changes_before_the_read_version_do_not_matter() -> None:
    log = Log([Entry(1, "a", "overwrite")])
    assert commit(Append(log, read_version=1, verdicts={}), limits=limits()) == 2


def test_a_rebase_adapts_the_change_and_goes_on() -> None:
    log = Log([Entry(1, "a"), Entry(2, "b", "delete")])
    change = Append(log, verdicts={"append": Verdict.KEEP, "delete": Verdict.REBASE})
    assert commit(change, limits=limits()) == 3
    assert change.rebased == [2]


def test_a_rerun_computes_the_change_again_from_the_newest_version() -> None:
    log = Log([Entry(1, "a", "update"), Entry(2, "b", "update")])
    change = Append(log, verdicts={"update": Verdict.RERUN})
    with pytest.raises(CommitConflictError) as caught:
        commit(change, limits=limits())
    assert caught.value.retryable is True
    seen: list[int] = []

    def rerun(version: int) -> Append:
        seen.append(version)
        return Append(log, write_id="again", read_version=version, verdicts={})

    assert commit(change, limits=limits(), rerun=rerun) == 3
    assert seen == [2]
    assert log.entries[-1].write_id == "again"


def test_attempts_failures_and_time_are_bounded() -> None:
    with pytest.raises(CommitConflictError, match="lost 5 times"):
        commit(Append(Log(puts=[someone_first()] * 9)), limits=limits(max_retries=4))
    with pytest.raises(IOFailedError, match="reset"):
        commit(Append(Log(puts=[lose_the_request] * 9)), limits=limits(max_failures=2))
    times = iter(range(0, 1000, 10))
    with pytest.raises(CommitConflictError, match="lost 3 times"):
        commit(Append(Log(puts=[someone_first()] * 9)), limits=limits(timeout_s=25.0, clock=lambda: next(times)))


def test_pauses_grow_and_differ_between_writers() -> None:
    backoff = Backoff(base_s=0.01, cap_s=1.0, draw=lambda: 1.0)
    assert [backoff.pause(attempt) for attempt in (1, 2, 3, 7, 99)] == [0.02, 0.04, 0.08, 1.0, 1.0]
    rng = random.Random(1)
    jittered = Backoff(draw=rng.random)
    assert len({jittered.pause(5) for _ in range(20)}) == 20


def test_a_change_that_an_earlier_run_made_is_not_made_again() -> None:
    log = Log([Entry(1, "a"), Entry(2, "earlier run", number=7), Entry(3, "b", "overwrite")])
    change = Append(log, read_version=1, verdicts={}, number=7)
    assert commit(change, limits=limits()) == 3
    assert (len(log.entries), change.after) == (3, [])


def test_a_twin_that_was_faster_is_noticed_after_the_lost_race() -> None:
    def twin_first(log: Log, entry: Entry) -> bool:
        store(log, Entry(entry.version, "twin", "overwrite", number=7))
        return store(log, entry)

    log = Log(puts=[twin_first])
    assert commit(Append(log, number=7), limits=limits()) == 1
    assert [entry.write_id for entry in log.entries] == ["twin"]


def test_what_follows_a_commit_happens_once_and_cannot_undo_it() -> None:
    change = Append(Log(puts=[someone_first()]))
    assert commit(change, limits=limits()) == 2
    assert change.after == [2]
    failing = Append(Log(), fails_afterwards=True)
    with pytest.warns(UserWarning, match="disk full"):
        assert commit(failing, limits=limits()) == 1
