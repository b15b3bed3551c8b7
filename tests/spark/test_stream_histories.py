"""Queries that write a table beside others, with two faults at once: each row is there once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark import branch_histories
from tests.spark import stream_histories as histories


@pytest.mark.parametrize("seed", range(16))
def test_each_row_is_there_once_whatever_happens_to_a_batch(seed: int) -> None:
    histories.course(seed)


@pytest.mark.parametrize("seed", range(12))
def test_each_row_is_on_the_branch_once_whatever_happens_to_a_batch(seed: int) -> None:
    branch_histories.course(seed)


@pytest.mark.parametrize("course", [histories.course, branch_histories.course])
def test_the_histories_meet_faults(course: Callable[[int], object]) -> None:
    before = histories.WEATHER.hits.total()
    for seed in range(16, 20):
        course(seed)
    assert histories.WEATHER.hits.total() > before
