"""Vortex, by the package vortex-data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa

from benches.peers.peer import Peer, Range, Reader, Unavailable


class VortexReader(Reader):
    """An open file."""

    def __init__(self, path: Path) -> None:
        import vortex

        self.vortex = vortex
        self.file = vortex.open(str(path), without_segment_cache=True)
        self.schema: pa.Schema | None = None

    def count(self) -> int:
        return int(self.file.to_dataset().count_rows())

    def scan(self, columns: Sequence[str] | None = None, where: Range | None = None) -> pa.Table:
        predicate = None
        if where:
            column = self.vortex.expr.column(where.column)
            predicate = self.vortex.expr.and_(column >= where.low, column < where.high)
        return self.file.to_arrow(list(columns) if columns else None, expr=predicate).read_all()

    def stream(self) -> Iterator[pa.RecordBatch]:
        return iter(self.file.to_arrow())

    def take(self, rows: pa.Array) -> pa.Table:
        """Vortex wants the row numbers sorted and each once, so order and repetitions are restored from its answer."""
        if self.schema is None:
            schema = self.file.to_arrow(limit=0).schema
            self.schema = pa.schema([field.with_type(without_views(field.type)) for field in schema])
        distinct, places = np.unique(rows.to_numpy(), return_inverse=True)
        indices = self.vortex.array(pa.array(distinct, pa.uint64()))
        return self.file.to_arrow(indices=indices, schema=self.schema).read_all().take(pa.array(places))


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type with plain strings for views of strings, which pyarrow cannot take."""
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_views(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_views(kind.value_type)))
    return kind


class Vortex(Peer):
    """Vortex with its defaults, but that it keeps no decoded segments between reads: no other engine here does."""

    name = "vortex"
    settings = "segment cache off; does not fsync"

    def __init__(self) -> None:
        try:
            import vortex
        except ImportError as error:
            raise Unavailable(f"vortex-data is not installed: {error}") from error
        self.module = vortex
        self.settings += f"; {vortex.worker_threads()} worker thread(s) beside the caller's"

    @property
    def version(self) -> str:
        return version("vortex-data")

    def write(self, table: pa.Table, path: Path) -> None:
        self.module.io.write(table, str(path))

    def open(self, path: Path) -> Reader:
        return VortexReader(path)
