"""Queries that write a table beside others, with two faults at once: each row is there once."""

from __future__ import annotations

import pytest

from tests.spark import stream_histories as histories


@pytest.mark.parametrize("seed", range(16))
def test_each_row_is_there_once_whatever_happens_to_a_batch(seed: int) -> None:
    histories.course(seed)


def test_the_histories_meet_faults() -> None:
    before = histories.WEATHER.hits.total()
    for seed in range(16, 20):
        histories.course(seed)
    assert histories.WEATHER.hits.total() > before
