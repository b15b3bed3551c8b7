"""The series: one property of a table grows, the others stay."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benches import page_cache
from benches.growth import tables
from benches.growth.tables import Shape
from benches.growth.work import WORK, Subject, Work, medians
from benches.run import MAKERS

ENGINES = ["esker", "pylance", "parquet zstd"]
FRAGMENT_ROWS = 1 << 22


@dataclass(frozen=True)
class Series:
    """One property that grows.

    Attributes:
        name: in the names of files.
        title: in the report.
        axis: what grows.
        shapes: the tables, by that property.
        engines: who takes part.
    """

    name: str
    title: str
    axis: str
    shapes: dict[int, Shape]
    engines: list[str] = field(default_factory=lambda: list(ENGINES))


@dataclass
class Found:
    """What was measured of one series."""

    seconds: dict[tuple[int, str, str], float] = field(default_factory=dict)
    """Median seconds by value on the axis, work and engine."""
    file_bytes: dict[tuple[int, str], int] = field(default_factory=dict)
    arrow_bytes: dict[int, int] = field(default_factory=dict)


def all_series(largest: int) -> list[Series]:
    """The series, with tables of at most so many rows."""
    rows = [count for count in (1_000_000, 10_000_000, 100_000_000) if count <= largest] or [largest]
    scale = min(1.0, largest / FRAGMENT_ROWS)
    fragment_rows = max(1024 * 8, int(FRAGMENT_ROWS * scale) // 8192 * 8192)
    # Powers of two, so that each fragment has whole pieces.
    fragments = [count for count in (1, 8, 64, 1024) if fragment_rows // count >= 1024]
    values = max(40_960 * 100, int(40_960_000 * scale))
    return [
        Series("rows", "Rows", "rows of a table of 6 columns", {count: Shape(count) for count in rows}),
        Series(
            "fragments",
            "Fragments",
            f"fragments of a table of {fragment_rows:,} rows",
            {count: Shape(fragment_rows, fragments=count) for count in fragments},
            ENGINES[:2],
        ),
        Series(
            "columns",
            "Columns",
            f"columns of a table of {values:,} values",
            {count: Shape(max(1024, values // count), columns=count) for count in (10, 100, 1000, 4000)},
        ),
    ]


def write(engine: str, shape: Shape, seed: int, path: Path) -> None:
    """Write a table with an engine."""
    if engine.startswith("parquet"):
        tables.write_parquet(shape, seed, path)
        return
    peer: Any = MAKERS[engine]("2.2")
    tables.write_lance(peer.module, shape, seed, path)


def measure(
    series: Series, scratch: Path, seed: int, say: Callable[[str], None], work: list[Work], seconds: float
) -> Found:
    """Write and measure the tables of a series, one after the other."""
    found = Found()
    for value, shape in series.shapes.items():
        with tempfile.TemporaryDirectory(dir=scratch, prefix=f"{series.name}-") as folder:
            subjects = {}
            for engine in series.engines:
                say(f"{series.title}: {value:,} {series.axis}, {engine} writes")
                path = Path(folder) / engine.replace(" ", "-")
                write(engine, shape, seed, path)
                subjects[engine] = Subject(MAKERS[engine]("2.2"), shape, path, seed)
                found.file_bytes[value, engine] = page_cache.size_of(path)
            per_row = tables.piece(shape, 0, seed)
            found.arrow_bytes[value] = per_row.nbytes * shape.rows // per_row.num_rows
            check(subjects)
            for each in work:
                say(f"{series.title}: {value:,} {series.axis}, {each.title}")
                for engine, took in medians(each, subjects, seconds).items():
                    found.seconds[value, each.name, engine] = took
            for subject in subjects.values():
                shutil.rmtree(subject.path, ignore_errors=True)
    return found


def check(subjects: dict[str, Subject]) -> None:
    """All engines must answer the same, or no time of theirs means anything."""
    answers = {}
    for name, subject in subjects.items():
        reader = subject.peer.open(subject.path)
        rows = subject.shape.rows
        few = reader.take(pa.array([0, rows // 2, rows - 1], pa.uint64()))
        answers[name] = (reader.count(), few.select(["id", "key", "score"]).to_pydict())
    first, *others = answers
    for other in others:
        if answers[other] != answers[first]:
            raise AssertionError(f"{other} answered {answers[other]}, {first} answered {answers[first]}")


def works(cold: bool) -> list[Work]:
    """All work, without what needs a system that forgets files where there is none."""
    return [each for each in WORK if cold or each.limit != "disk"]
