"""Scans of random tables, beside a plain model, pylance, pyarrow and DuckDB.

By hand: `python -m tests.fuzzing.scans --cases 100000 --first-seed 0`. A seed that fails is printed, and
`--first-seed SEED --cases 1 --verbose` runs it again and prints what it does.
"""

from __future__ import annotations

import argparse
import collections
import random
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa

import esker
from tests.fuzzing.filters import Condition, random_condition
from tests.fuzzing.orders import Key, in_order, random_keys, shown_keys
from tests.fuzzing.peer_faults import known_fault
from tests.fuzzing.schemas import VERSIONS, random_schema, random_table

QUERIES = 6
_LAST_CALLS = 3


class Difference(AssertionError):
    """An answer is not what it must be."""


@dataclass
class Case:
    """A table with a past, and the rows that it must have."""

    seed: int
    folder: Path
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.version = self.rng.choice([*VERSIONS, "2.0", "2.1", "2.2"])
        self.stable = self.rng.random() < 0.3
        self.schema = random_schema(self.rng, self.version, columns=self.rng.randint(1, 5))
        self.uri = str(self.folder / f"case-{self.seed}")
        self.next_id = 0
        rows = self._more(self.rng.choice([1, 5, 30, 30, 700]))
        self.ours = esker.write_dataset(
            rows,
            self.uri,
            max_rows_per_file=self.rng.choice([2, 7, 100]) if rows.num_rows < 100 else 300,
            data_storage_version=self.version,
            enable_stable_row_ids=self.stable,
            durable=False,
        )
        self.model = _without_views(rows)
        self.say(
            f"{self.version}{' stable ids' if self.stable else ''}: "
            + ", ".join(f"{it.name}: {it.type}{'' if it.nullable else ' not null'}" for it in self.schema)
        )

    def say(self, text: str) -> None:
        """Notes what is done."""
        self.said.append(text)

    def _more(self, rows: int) -> pa.Table:
        table = random_table(self.rng, self.schema, rows, self.version, first_id=self.next_id)
        self.next_id += rows
        return table

    def change(self) -> None:
        """One more version."""
        kind = self.rng.choice(["append", "append", "delete", "delete", "update", "new column"])
        modulus, rest = self.rng.randint(2, 6), self.rng.randint(0, 5)
        hit = [number % modulus == rest for number in self.model["id"].to_pylist()]
        self.say(f"{kind} id % {modulus} = {rest}")
        if kind == "append":
            rows = self._more(self.rng.choice([1, 4, 20]))
            extra = [name for name in self.model.column_names if name not in rows.column_names]
            self.ours = esker.write_dataset(rows, self.ours, mode="append", max_rows_per_file=9, durable=False)
            for name in extra:
                rows = rows.append_column(self.model.schema.field(name), pa.nulls(rows.num_rows, pa.int64()))
            self.model = pa.concat_tables([self.model, _without_views(rows)])
        elif kind == "delete":
            self.ours.delete(f"id % {modulus} = {rest}", durable=False)
            self.model = self.model.filter(pa.array([not it for it in hit], pa.bool_()))
        elif kind == "update" and self.version != "0.1":
            self.ours.update({"id": "id + 1000"}, f"id % {modulus} = {rest}", durable=False)
            moved = self.model.filter(pa.array(hit, pa.bool_()))
            ids = pa.array([number + 1000 for number in moved["id"].to_pylist()], pa.int64())
            moved = moved.set_column(0, self.model.schema.field("id"), ids)
            self.model = pa.concat_tables([self.model.filter(pa.array([not it for it in hit], pa.bool_())), moved])
            self.next_id += 1000
        elif kind == "new column" and self.version != "0.1" and "n" not in self.model.column_names:
            # It may be null: an append that lacks a column which may not is refused.
            self.ours.add_columns({"n": "nullif(id * 2, -1)"})
            values = pa.array([number * 2 for number in self.model["id"].to_pylist()], pa.int64())
            self.model = self.model.append_column(pa.field("n", pa.int64()), values)

    def run(self) -> None:
        """Makes the table's past, and asks of it.

        Raises:
            Difference: An answer is not what it must be.
        """
        for _ in range(self.rng.randint(0, 4)):
            self.change()
        self.ours = esker.dataset(self.uri)
        self.peer = lance.dataset(self.uri)
        self.rows = _plain_rows(self.model)
        found = _plain_rows(self.ours.to_table())
        self.expect("all rows", found, self.rows)
        # From here on the rows as they were read: of the types that the table has.
        self.model = self.ours.to_table()
        for _ in range(QUERIES):
            self.query()
        self.take()

    def expect(self, what: str, found: Any, expected: Any) -> None:
        """Says what differs.

        Raises:
            Difference: It does.
        """
        self.counts["compared"] += 1
        if _told(found) != _told(expected):
            raise Difference(f"{what}:\n  found    {str(found)[:1500]}\n  expected {str(expected)[:1500]}")

    def query(self) -> None:
        """One scan."""
        rng = self.rng
        condition: Condition | None = random_condition(rng, self.model) if rng.random() < 0.6 else None
        keys = random_keys(rng, self.model.schema) if rng.random() < 0.5 else []
        options: dict[str, Any] = {}
        if condition is not None:
            options["filter"] = condition.expression if rng.random() < 0.3 and condition.portable else condition.sql
        if rng.random() < 0.4:
            options["limit"] = rng.choice([0, 1, 2, 5, 100])
        if rng.random() < 0.3:
            options["offset"] = rng.choice([0, 1, 3, 50])
        if rng.random() < 0.3:
            options["batch_size"] = rng.choice([1, 2, 5, 1000])
            options["strict_batch_size"] = rng.random() < 0.3
        names = rng.sample(self.model.column_names, rng.randint(1, self.model.num_columns))
        if rng.random() < 0.5:
            options["columns"] = names
        self.say(f"scan {options} order {[str(key) for key in keys]}")
        rows = [row for row, true in zip(self.rows, self.kept(condition), strict=True) if true]
        if keys:
            rows = in_order(rows, keys)
        start = options.get("offset", 0)
        rows = rows[start : None if "limit" not in options else start + options["limit"]]
        wanted = names if "columns" in options else self.model.column_names
        expected = [{name: row[name] for name in wanted} for row in rows]
        found = self.ours.scanner(**options, order_by=[key.ours for key in keys] or None)
        table = found.to_table()
        self.expect("rows", _plain_rows(table), expected)
        if rng.random() < 0.2:
            viewed = self.ours.to_table(**options, order_by=[key.ours for key in keys] or None, string_view=True)
            self.expect("views", _plain_rows(viewed), expected)
        batches = list(found.to_batches())
        self.expect("batches", [row for batch in batches for row in _plain_rows(batch)], expected)
        if "batch_size" in options:
            self.expect("small batches", max([b.num_rows for b in batches] or [0]) <= options["batch_size"], True)
        tagged = list(found.scan_batches())
        self.expect("tagged batches", [row for batch, _ in tagged for row in _plain_rows(batch)], expected)
        self.expect("count", found.count_rows(), len(expected))
        if condition is not None:
            self.beside_engines(condition)
        self.beside_peer(options, keys, expected)

    def kept(self, condition: Condition | None) -> list[bool]:
        """For each row whether a condition holds."""
        return [True] * len(self.rows) if condition is None else [condition.holds(row) is True for row in self.rows]

    def beside_engines(self, condition: Condition) -> None:
        """The same rows by pyarrow and by DuckDB, where the condition means the same to them."""
        if not condition.portable:
            return
        expected = [row["id"] for row, true in zip(self.rows, self.kept(condition), strict=True) if true]
        self.expect("beside pyarrow", self.model.filter(condition.expression)["id"].to_pylist(), expected)
        self.counts["as pyarrow"] += 1
        if self.rng.random() < 0.3:
            rows = self.model.select(
                [name for name in self.model.column_names if f"`{name}`" in condition.sql or name == "id"]
            )
            sql = f"select id from rows where {condition.sql.replace('`', '')}"
            self.expect("beside DuckDB", [row[0] for row in duckdb.sql(sql).fetchall()], expected)
            self.counts["as DuckDB"] += 1
            del rows  # DuckDB found it by its name.

    def beside_peer(self, options: dict[str, Any], keys: list[Key], expected: list[dict[str, Any]]) -> None:
        """The same scan by pylance, which may have no answer; another one must be a fault that is known."""
        options = {name: value for name, value in options.items() if name != "strict_batch_size"}
        if keys and options.get("limit") == 0:
            return  # The peer panics.
        try:
            table = self.peer.scanner(**options, order_by=[key.theirs for key in keys] or None).to_table()
        except BaseException as error:  # Panics of the peer are no `Exception`.
            if isinstance(error, KeyboardInterrupt):
                raise
            self.counts["peer has no answer"] += 1
            self.counts[f"peer: {type(error).__name__} {str(error)[:60]}"] += 1
            return
        found = _plain_rows(table)
        if keys:
            # Rows with equal keys come in any order.
            shown = [key for key in keys if key.column in table.column_names]
            differ = _told(shown_keys(found, shown)) != _told(shown_keys(expected, shown))
        else:
            differ = _told(found) != _told(expected)
        if differ:
            fault = known_fault(self.model.schema, options, keys)
            if fault is None:
                self.expect("beside pylance", found, expected)
            self.counts[f"known: {fault}"] += 1
        self.counts["as pylance"] += 1

    def take(self) -> None:
        """Rows by number, and by id."""
        if not self.rows:
            return
        numbers = [self.rng.randrange(len(self.rows)) for _ in range(self.rng.randint(0, 6))]
        names = self.rng.sample(self.model.column_names, self.rng.randint(1, self.model.num_columns))
        self.say(f"take {numbers} {names}")
        expected = [{name: self.rows[number][name] for name in names} for number in numbers]
        self.expect("take", _plain_rows(self.ours.take(numbers, names)), expected)
        ids = self.ours.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
        found = self.ours.take_rows([ids[number] for number in numbers], names)
        self.expect("take by id", _plain_rows(found), expected)


def _without_views(rows: pa.Table) -> pa.Table:
    """The rows with views as the types that a table keeps in their place, which pyarrow can filter."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return rows.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in rows.schema]))


def _plain_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; moments as integers, for nanoseconds."""
    columns = []
    for values in table.columns:
        if isinstance(values.type, pa.BaseExtensionType):
            storage = [chunk.storage for chunk in getattr(values, "chunks", [values])]
            values = pa.chunked_array(storage, values.type.storage_type)
        columns.append(values.to_pylist())
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _told(value: Any) -> Any:
    """What two equal answers have in common: NaN is NaN, and -0.0 is not 0.0."""
    return repr(value)


def run_case(seed: int, folder: Path) -> Case:
    """Runs one seed.

    Raises:
        Difference: An answer is not what it must be.
    """
    case = None
    try:
        case = Case(seed, folder)
        case.run()
    except Exception as error:
        done = "\n".join(case.said[:1] + case.said[-_LAST_CALLS:]) if case else ""
        raise Difference(f"seed {seed}: {type(error).__name__} {error}\n{done}") from error
    return case


def main() -> None:
    """Runs many seeds, and prints counts."""
    parser = argparse.ArgumentParser(description="Scan random tables beside the peers.")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print what each case does")
    options = parser.parse_args()
    started = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first_seed, options.first_seed + options.cases):
            try:
                case = run_case(seed, Path(folder))
            except Difference as difference:
                failed += 1
                print(difference, flush=True)
                if options.verbose:
                    traceback.print_exception(difference.__cause__)
                continue
            counts += case.counts
            if options.verbose:
                print("\n".join(case.said))
    for name, count in counts.most_common():
        print(count, name)
    print(f"{options.cases} cases, {failed} failed, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
