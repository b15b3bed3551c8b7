"""Take the time of several engines in turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ENOUGH = 0.1
"""Seconds that one engine gets in each round: what is quicker is run again, up to `MOST` times."""

MOST = 20


@dataclass(frozen=True)
class Operation:
    """What is timed, and what comes before and after it untimed."""

    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None


@dataclass
class Samples:
    """The times of one operation, in seconds."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the wall-clock times."""
        return statistics.median(self.wall)

    @property
    def spread(self) -> float:
        """How far the middle half of the times reaches, as a share of the median."""
        if len(self.wall) < 4:
            return (max(self.wall) - min(self.wall)) / self.median
        low, _, high = statistics.quantiles(self.wall, n=4)
        return (high - low) / self.median

    def summary(self) -> dict[str, object]:
        """What is saved."""
        return {
            "median_seconds": self.median,
            "best_seconds": min(self.wall),
            "spread": self.spread,
            "median_cpu_seconds": statistics.median(self.processor),
            "seconds": self.wall,
        }


def once(operation: Operation) -> tuple[float, float]:
    """Run an operation once and return its wall-clock and processor seconds, the latter of all threads."""
    operation.before()
    gc.disable()
    try:
        processor = time.process_time()
        started = time.perf_counter()
        result = operation.run()
        wall = time.perf_counter() - started
        processor = time.process_time() - processor
    finally:
        gc.enable()
    del result
    operation.after()
    return wall, processor


def in_turns(operations: Mapping[str, Operation], rounds: int) -> dict[str, Samples]:
    """Run each operation twice to warm up, then ``rounds`` rounds of all of them in turns.

    Args:
        operations: what to run, by engine.
        rounds: how many rounds; their order changes from round to round, so that none always follows the same other.

    Returns:
        the samples of each engine; the warm-up is not among them.
    """
    gc.freeze()  # what is imported by now need not be looked at again
    repeats = {}
    for name, operation in operations.items():
        # Twice: the first run may meet memory that the system has to find first.
        wall = min(once(operation)[0], once(operation)[0])
        repeats[name] = max(1, min(MOST, int(ENOUGH / max(wall, 1e-6))))
    samples = {name: Samples() for name in operations}
    names = list(operations)
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(names, len(names)):
            gc.collect()
            for _ in range(repeats[name]):
                wall, processor = once(operations[name])
                samples[name].wall.append(wall)
                samples[name].processor.append(processor)
    return samples
