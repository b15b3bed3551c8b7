"""Writers under random schedules and faults, checked version by version. A seed that fails is in the message.

By hand, many of them: `python -m tests.simulation.run --schedules 100000`; again one that failed:
`python -m tests.simulation.run --first-seed SEED --schedules 1 --verbose`.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Callable

import pytest

from esker.commit.protocol import Verdict
from esker.delta.log.commit import DeltaCommit
from esker.lance.commit import LanceCommit
from tests.simulation import delta
from tests.simulation.model import Violation
from tests.simulation.run import simulate

SCHEDULES = int(os.environ.get("ESKER_SCHEDULES", "120"))
FIRST = int(os.environ.get("ESKER_SCHEDULES_SEED", "0"))


def test_every_version_is_the_one_before_and_exactly_its_own_change() -> None:
    outcomes: collections.Counter[str] = collections.Counter()
    on_branches: collections.Counter[str] = collections.Counter()
    faults: collections.Counter[str] = collections.Counter()
    for seed in range(FIRST, FIRST + SCHEDULES):
        found = simulate(seed)
        outcomes += collections.Counter(f"{change.kind} {change.outcome}" for change in found.changes)
        on_branches += collections.Counter(change.kind for change in found.changes if change.branch is not None)
        faults += found.faults
    assert {"crash_before", "crash_after", "lose_reply", "fail"} <= set(faults)
    assert {"append", "compact"} <= set(on_branches)
    for kind in (
        "append",
        "delete",
        "update",
        "upsert",
        "overwrite",
        "restore",
        "config",
        "commit_append",
        "cleanup",
        "compact",
        "tag",
        "branch",
        "delete_branch",
    ):
        assert outcomes[f"{kind} done"] > 0, outcomes


def test_every_version_of_a_delta_table_is_the_one_before_and_exactly_its_own_change() -> None:
    outcomes: collections.Counter[str] = collections.Counter()
    faults: collections.Counter[str] = collections.Counter()
    # They take twice as long as others: most of their changes read data files.
    for seed in range(FIRST, FIRST + (SCHEDULES + 1) // 2):
        found = delta.simulate(seed)
        outcomes += collections.Counter(f"{change.kind} {change.outcome}" for change in found.changes)
        faults += found.faults
    assert {"crash_before", "crash_after", "lose_reply", "fail", "Ctrl-C", "night"} <= set(faults)
    for kind, _ in delta.KINDS:
        assert outcomes[f"{kind} done"] > 0, outcomes


@pytest.mark.parametrize("seed", [1432, 2016583, 2019433, 9443])
def test_a_seed_that_found_a_fault_finds_it_no_more(seed: int) -> None:
    """A dropped column's id given anew; a restore under a freed number; two clean-ups beside a restore; a restore of
    what a writer that slept had put under a freed number, and took back."""
    simulate(seed)


@pytest.mark.parametrize("seed", [3, 7, 24, 58])
def test_a_seed_makes_the_same_course_again(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert first.trace == second.trace
    assert [str(change) for change in first.changes] == [str(change) for change in second.changes]


@pytest.mark.parametrize(("owner", "simulated"), [(LanceCommit, simulate), (DeltaCommit, delta.simulate)])
def test_a_writer_that_overlooks_conflicts_is_caught(
    owner: type, simulated: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seeds() -> None:
        for seed in range(100):
            simulated(seed)

    verdict = Verdict.KEEP if owner is LanceCommit else Verdict.REBASE
    monkeypatch.setattr(owner, "judge", lambda self, change: verdict)
    with pytest.raises(Violation, match="seed"):
        seeds()
