"""Spark's reads, writes and streams of tables beside Spark's own Parquet, in turns in one session: ratios of medians.

`python -m benches.spark [--rows N] [--rounds N] [--cases NAME...]`
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benches.measure import Operation, in_turns

Run = Callable[[], object]
COLUMNS = ("id", "id * 0.5d AS a", "id % 1000 / 7d AS b", "concat('text ', id % 10000) AS s")
BATCHES, BATCH_ROWS = 50, 1_000
MAPPED = 8
"""The table of `map_batches` has so many times the rows of the others: the start of a query is little beside them."""


@dataclass(frozen=True)
class Case:
    """One line: what is compared, by how much it should be faster, and how many bytes a fused map reads.

    Args:
        name: Its name.
        title: What is compared, the base first.
        wanted: The ratio of the times, base to ours, that is asked for.
        base: What it is compared with.
        ours: What is measured.
        told: What else there is to say, by the medians of both.
    """

    name: str
    title: str
    wanted: float
    base: Run
    ours: Run
    told: Callable[[float, float], str] | None = None


class Tables:
    """The same rows as Parquet and as tables of both formats."""

    def __init__(self, spark: Any, folder: Path, rows: int) -> None:
        import esker.spark

        self.spark, self.folder, self.rows = spark, folder, rows
        self.parquet = str(folder / "parquet")
        self.mapped = 0
        self.streamed = 0.0
        spark.range(0, rows, 1, 4).selectExpr(*COLUMNS).write.parquet(self.parquet)
        self.source = spark.read.parquet(self.parquet)
        for kind in ("lance", "delta"):
            esker.spark.write(self.source, folder / kind, table_format=kind)
        small = self.source.limit(3_000).repartition(300)
        esker.spark.write(small, folder / "small")
        small.write.parquet(str(folder / "small.parquet"))

    def cases(self) -> Iterator[Case]:
        """All of them."""
        for kind in ("lance", "delta"):
            yield from self._of(kind)
        files = partial(self._noop, self.spark.read.parquet, str(self.folder / "small.parquet"))
        yield Case("small", "lance: 300 small files, no-op", 1.0, files, partial(self._noop, self._table, "small"))
        yield Case("map", "lance: map_batches, to a full scan", 2.0, self._scan_large, self._map, self._mapped)

    def _of(self, kind: str) -> Iterator[Case]:
        parquet = partial(self._noop, self.spark.read.parquet, self.parquet)
        full = partial(self._noop, self._table, kind)

        def aggregate() -> None:
            _aggregate(self._table(kind).to_df())

        def pruned() -> None:
            _noop(self._table(kind).columns("id").to_df())

        def filtered() -> None:
            _noop(self._table(kind).where("id % 100 = 7").to_df())

        yield Case(f"scan-{kind}", f"{kind}: full scan, no-op", 1.0, parquet, full)
        yield Case(
            f"aggregate-{kind}", f"{kind}: aggregate of 4 columns", 1.0, lambda: _aggregate(self.source), aggregate
        )
        yield Case(f"pruned-{kind}", f"{kind}: 1 of 4 columns to all", 2.0, full, pruned)
        yield Case(f"filtered-{kind}", f"{kind}: 1 % of rows to all", 2.0, full, filtered)
        yield Case(f"count-{kind}", f"{kind}: count", 1.0, self.source.count, lambda: self._table(kind).count())
        yield Case(f"write-{kind}", f"{kind}: write to discarding", 0.95, self._discard, partial(self._write, kind))
        of_spark, of_esker = (partial(self._batches, name) for name in ("parquet", kind))
        yield Case(f"batches-{kind}", f"{kind}: {BATCHES} batches of a stream", 1 / 3, of_spark, of_esker)
        batch = partial(self._write, kind, from_table=True)
        stream = partial(self._stream, kind)
        yield Case(f"stream-{kind}", f"{kind}: source and sink to batch", 0.8, batch, stream, self._without_start)

    def _table(self, name: str) -> Any:
        import esker.spark

        return esker.spark.read(self.spark, self.folder / name)

    @staticmethod
    def _noop(read: Callable[[str], Any], name: str) -> None:
        found = read(name)
        _noop(found.to_df() if hasattr(found, "to_df") else found)

    def _large(self) -> Path:
        import esker.spark

        uri = self.folder / "large"
        if not uri.exists():
            esker.spark.write(self.spark.range(0, MAPPED * self.rows, 1, 4).selectExpr(*COLUMNS), uri)
        return uri

    def _scan_large(self) -> None:
        self._noop(self._table, self._large().name)

    def _map(self) -> None:
        import esker.spark

        def rows(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

        found = esker.spark.map_batches(self._large(), rows, spark=self.spark, schema="rows bigint, bytes bigint")
        sums = found.selectExpr("sum(rows)", "sum(bytes)").collect()[0]
        if sums[0] != MAPPED * self.rows:
            raise RuntimeError(f"expected {MAPPED * self.rows} rows, found {sums[0]}")
        self.mapped = int(sums[1])

    def _mapped(self, _: float, ours: float) -> str:
        return f"{self.mapped / ours / 1e9:.2f} of 2 GB/s"

    def _stream(self, kind: str) -> None:
        target = self._fresh()
        stream = self.spark.readStream.format("esker").load(str(self.folder / kind))
        writer = stream.writeStream.format("esker").option("tableFormat", kind).trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{target}-checkpoint").start(str(target))
        query.awaitTermination()
        self.streamed = sum(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress) / 1e3

    def _without_start(self, base: float, _: float) -> str:
        """The last stream without the start of its query, in which Spark starts a process of Python."""
        return f"{self.streamed:.2f} s, {base / self.streamed:.2f}, without the start of the query"

    def _discard(self) -> None:
        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            count = sum(batch.num_rows for batch in batches)
            yield pa.RecordBatch.from_pydict({"rows": [count]})

        self.source.mapInArrow(rows, "rows bigint").collect()

    def _write(self, kind: str, *, from_table: bool = False) -> None:
        import esker.spark

        source = self._table(kind).to_df() if from_table else self.source
        esker.spark.write(source, self._fresh(), table_format=kind)

    def _batches(self, kind: str) -> None:
        """A stream of small files: one batch for each."""
        inputs = self.folder / "input"
        if not inputs.exists():
            numbers = self.spark.range(0, BATCHES * BATCH_ROWS, 1, BATCHES).selectExpr("id", "id * 2 AS twice")
            numbers.write.parquet(str(inputs))
        target = self._fresh()
        stream = self.spark.readStream.schema("id long, twice long").option("maxFilesPerTrigger", 1)
        writer = stream.parquet(str(inputs)).writeStream.option("checkpointLocation", f"{target}-checkpoint")
        writer = writer.format("parquet") if kind == "parquet" else writer.format("esker").option("tableFormat", kind)
        writer.trigger(availableNow=True).start(str(target)).awaitTermination()

    def _fresh(self) -> Path:
        target = self.folder / "target"
        for path in (target, Path(f"{target}-checkpoint")):
            shutil.rmtree(path, ignore_errors=True)
        return target


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _aggregate(frame: Any) -> None:
    frame.selectExpr("max(id)", "sum(a)", "avg(b)", "max(s)").collect()


def main(arguments: list[str] | None = None) -> None:
    """Makes the tables and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", help="names, or what they begin with")
    parser.add_argument("--conf", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the session")
    options = parser.parse_args(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.showConsoleProgress", "false")
    for setting in options.conf:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder), options.rows)
        print(f"{'':44}{'base':>10}{'esker':>10}{'ratio':>8}{'wanted':>8}")
        for case in tables.cases():
            if options.cases and not case.name.startswith(tuple(options.cases)):
                continue
            samples = in_turns({"base": Operation(case.base), "esker": Operation(case.ours)}, options.rounds)
            base, ours = samples["base"].median, samples["esker"].median
            print(f"{case.title:44}{base:>8.2f} s{ours:>8.2f} s{base / ours:>8.2f}{case.wanted:>8.2f}", flush=True)
            if case.told is not None:
                print(f"{'':44}{case.told(base, ours)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s")
