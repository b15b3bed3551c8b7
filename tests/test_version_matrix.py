"""Every leaf type in every shape, with no, some and only nulls, in every file version, both ways beside pylance.

A cell is one column: written by one library and read by the other, whole, in ranges and by row numbers around the edges
of pages and chunks, and compared value by value. What pylance itself cannot bring back is in `GAPS`: there we bring it
back right, or refuse it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance.file
import pyarrow as pa
import pytest

from esker.exceptions import UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter
from tests.matrix import LEAVES, NULLS, ROWS, SHAPES, shaped

VERSIONS = ("2.0", "2.1", "2.2")
CACHES = (2000, None)
"""Bytes that gather before a page: many small pages, or one."""

RANGES = [(0, 1), (ROWS - 1, 1), (127, 2), (510, 4), (1020, 9), (700, 600), (0, 0)]
TAKEN = [0, 1, 2, 127, 128, 255, 256, 511, 512, 1023, 1024, 1025, 1400, ROWS - 1]

TEXTS = tuple(name for name in LEAVES if name.startswith(("utf8", "large_utf8", "binary", "large_binary")))
DICTIONARIES = tuple(name for name in LEAVES if name.startswith("dictionary"))


@dataclass(frozen=True)
class Gap:
    """Cells that pylance does not bring back.

    Args:
        versions: The file versions.
        leaves: The leaf types.
        shapes: The shapes.
        why: What pylance does.
        nulls: The nulls.
    """

    versions: tuple[str, ...]
    leaves: tuple[str, ...]
    shapes: tuple[str, ...]
    why: str
    nulls: tuple[str, ...] = NULLS


GAPS = (
    Gap(VERSIONS, TEXTS, ("fixed",), "panics when it writes, but for columns of nulls only"),
    Gap(VERSIONS, DICTIONARIES, ("fixed",), "refuses the type"),
    Gap(("2.0", "2.1"), ("map",), SHAPES, "refuses the type"),
    Gap(("2.2",), ("map",), ("fixed",), "refuses the type"),
    Gap(("2.1", "2.2"), ("empty_struct",), SHAPES[1:], "refuses it, loses nulls, or loses the neighbouring column"),
    Gap(VERSIONS, ("empty_struct",), ("flat",), "refuses nulls, or loses them", ("some", "all")),
    Gap(("2.0",), ("empty_struct",), SHAPES[1:], "refuses nulls, or loses them", ("some", "all")),
    Gap(("2.0",), ("empty_struct",), ("fixed",), "refuses the type"),
)


def gap(version: str, leaf: str, shape: str, nulls: str) -> Gap | None:
    """The gap that a cell falls into."""
    for known in GAPS:
        if version in known.versions and leaf in known.leaves and shape in known.shapes and nulls in known.nulls:
            return known
    return None


def _difference(expected: pa.Table, found: pa.Table) -> str | None:
    left, right = expected["c"], found["c"]
    if left.type != right.type:
        return f"type {left.type} became {right.type}"
    # Chunks whose dictionaries differ do not join: their values are compared one by one.
    with contextlib.suppress(pa.ArrowInvalid):
        if left.combine_chunks().equals(right.combine_chunks()):
            return None
    rows, others = left.to_pylist(), right.to_pylist()
    if len(rows) != len(others):
        return f"{len(rows)} rows became {len(others)}"
    pairs = enumerate(zip(rows, others, strict=True))
    return next((f"row {at}: {a!r:.60} became {b!r:.60}" for at, (a, b) in pairs if a != b), None)


def _check(reader: Any, table: pa.Table, *, ranges: list[tuple[int, int]]) -> str | None:
    found = _difference(table, reader.read_all().to_table())
    if found:
        return f"all rows: {found}"
    for start, rows in ranges:
        found = _difference(table.slice(start, rows), reader.read_range(start, rows).to_table())
        if found:
            return f"{rows} rows from {start}: {found}"
    found = _difference(table.take(TAKEN), reader.take_rows(TAKEN).to_table())
    return f"rows by number: {found}" if found else None


def _write(writer: Callable[..., Any], path: str, table: pa.Table, version: str, cache: int | None) -> None:
    with writer(path, version=version, data_cache_bytes=cache) as out:
        out.write_batch(table)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_cell_crosses_both_ways(version: str, leaf: str, tmp_path: Path) -> None:
    path, failures = str(tmp_path / "cell.lance"), []
    for shape, nulls, cache in [(s, n, c) for s in SHAPES for n in NULLS for c in CACHES]:
        if gap(version, leaf, shape, nulls):
            continue
        table = pa.table({"c": shaped(leaf, shape, nulls, null_structs=version != "2.0")})
        for way, writer, reader, ranges in (
            ("pylance to esker", lance.file.LanceFileWriter, LanceFileReader, RANGES),
            ("esker to pylance", LanceFileWriter, lance.file.LanceFileReader, RANGES[-2:-1]),
        ):
            try:
                _write(writer, path, table, version, cache)
                found = _check(reader(path), table, ranges=ranges)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found:
                failures.append(f"{shape}, {nulls} null, pages of {cache}, {way}: {found:.300}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("leaf", sorted({leaf for known in GAPS for leaf in known.leaves}))
@pytest.mark.parametrize("version", VERSIONS)
def test_what_pylance_cannot_bring_back_is_right_or_refused(version: str, leaf: str, tmp_path: Path) -> None:
    path = str(tmp_path / "cell.lance")
    for shape, nulls in [(s, n) for s in SHAPES for n in NULLS if gap(version, leaf, s, n)]:
        table = pa.table({"c": shaped(leaf, shape, nulls, null_structs=version != "2.0")})
        with contextlib.suppress(UnsupportedError):
            _write(LanceFileWriter, path, table, version, None)
        if not Path(path).exists():
            continue
        assert _check(LanceFileReader(path), table, ranges=RANGES) is None, (shape, nulls)
        Path(path).unlink()
