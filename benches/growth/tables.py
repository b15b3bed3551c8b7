"""The tables of the report: made piece by piece from a seed, and written by each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benches.data import keys

PIECE_VALUES = 8_000_000
"""Values of all columns of a piece, about."""


@dataclass(frozen=True)
class Shape:
    """One table.

    Attributes:
        rows: of the whole table.
        columns: `id`, which counts the rows, `key`, uniform and unsorted, and others of four kinds in turns.
        fragments: data files; engines without fragments have one.
    """

    rows: int
    columns: int = 6
    fragments: int = 1

    @property
    def piece(self) -> int:
        """Rows of a piece, of which a fragment has a whole number or a part."""
        return max(1024, min(1 << 20, PIECE_VALUES // self.columns, -(-self.rows // self.fragments)))


def integers(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(rng.poisson(20, rows).astype(np.int32))


def floats(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(rng.random(rows))


def prices(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(np.round(rng.random(rows) * 500, 2))


def moments(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(1_700_000_000_000_000 + np.cumsum(rng.integers(0, 2_000_000, rows)), pa.timestamp("us", "UTC"))


KINDS: list[tuple[str, Callable[[np.random.Generator, int], pa.Array]]] = [
    ("count", integers),
    ("score", floats),
    ("price", prices),
    ("moment", moments),
]


def column_names(columns: int) -> list[str]:
    """`id`, `key`, and then the kinds in turns, numbered from the second turn on."""
    turns = (f"{KINDS[n % 4][0]}{n // 4 or ''}" for n in range(columns - 2))
    return ["id", "key", *turns]


def piece(shape: Shape, start: int, seed: int) -> pa.RecordBatch:
    """The rows from one on, at most a piece of them."""
    rows = min(shape.piece, shape.rows - start)
    rng = np.random.default_rng([seed, start])
    made = [pa.array(np.arange(start, start + rows)), keys(rng, rows)]
    made += [KINDS[number % 4][1](rng, rows) for number in range(shape.columns - 2)]
    return pa.record_batch(made, names=column_names(shape.columns))


def batches(shape: Shape, seed: int) -> pa.RecordBatchReader:
    """All rows, of which a piece is in memory."""
    schema = piece(Shape(1, shape.columns), 0, seed).schema

    def pieces() -> Iterator[pa.RecordBatch]:
        for start in range(0, shape.rows, shape.piece):
            yield piece(shape, start, seed)

    return pa.RecordBatchReader.from_batches(schema, pieces())


def write_lance(module: Any, shape: Shape, seed: int, path: Path) -> None:
    """A table of esker or pylance in the file version that both write by default."""
    per_file = -(-shape.rows // shape.fragments)
    if shape.fragments == 1 or per_file % shape.piece == 0:
        module.write_dataset(batches(shape, seed), str(path), max_rows_per_file=per_file, max_rows_per_group=per_file)
        return
    raise ValueError(f"expected fragments of whole pieces of {shape.piece} rows, found {per_file} rows")


def write_parquet(shape: Shape, seed: int, path: Path) -> None:
    """One file with zstd, row groups of a million rows or a piece."""
    reader = batches(shape, seed)
    with pa.parquet.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=1 << 20)
