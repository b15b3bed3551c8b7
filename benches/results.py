"""The numbers of one run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from benches.measure import Samples

BASE = "esker"
"""The engine that all ratios are about."""

EXTRA = ("esker, fsync",)
"""Engines that are shown but are no peers."""


@dataclass
class Results:
    """What was measured, by input, case and engine.

    Attributes:
        times: seconds; the key is (input, case, engine).
        sizes: bytes on the disk; the key is (input, engine).
        absent: why a number is missing; the key is (input, case or "", engine).
    """

    engines: list[str]
    times: dict[tuple[str, str, str], Samples] = field(default_factory=dict)
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    absent: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def peers(self) -> list[str]:
        """The engines that esker is compared with."""
        return [engine for engine in self.engines if engine != BASE and engine not in EXTRA]

    def value(self, data: str, case: str, engine: str) -> float | None:
        """Seconds, or bytes for the case ``size``; None if there is no number."""
        if case == "size":
            return self.sizes.get((data, engine))
        samples = self.times.get((data, case, engine))
        return samples.median if samples else None

    def ratio(self, data: str, case: str, peer: str) -> float | None:
        """How many times as long, or as large, the peer is: above 1 esker is better."""
        ours, theirs = self.value(data, case, BASE), self.value(data, case, peer)
        return theirs / ours if ours and theirs else None

    def mean_ratio(self, cases: list[str], peer: str) -> float | None:
        """The geometric mean of the ratios of some cases over all inputs."""
        inputs = {data for data, _ in self.sizes}
        ratios = [ratio for data in inputs for case in cases if (ratio := self.ratio(data, case, peer))]
        return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None

    def save(self, path: Path, about: dict[str, object]) -> None:
        """Save everything as JSON."""
        measured = [
            {"input": data, "case": case, "engine": engine, **samples.summary()}
            for (data, case, engine), samples in self.times.items()
        ]
        sizes = [{"input": data, "engine": engine, "bytes": size} for (data, engine), size in self.sizes.items()]
        absent = [
            {"input": data, "case": case, "engine": engine, "why": why}
            for (data, case, engine), why in self.absent.items()
        ]
        document = {**about, "times": measured, "sizes": sizes, "absent": absent}
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
