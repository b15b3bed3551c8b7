"""One table that esker and Spark change in turns, beside a plain list of its rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from esker.delta import DeltaTable, write_deltalake

from .delta_spark import SparkDelta

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("day", pa.date32()),
        ("x", pa.float64()),
        ("s", pa.struct([("t", pa.string()), ("u", pa.int32())])),
        ("d", pa.decimal128(12, 3)),
        ("at", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.float32())),
        ("b", pa.binary()),
        ("f", pa.bool_()),
    ]
)
PARTITIONS = ["a", "b c", "é/:%=", None]
Row = dict[str, Any]


def one_row(numbers: random.Random, number: int) -> Row:
    """A row with values of every kind, and nulls."""

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.2 else value

    text = "".join(numbers.choices("ab'\\\"é\U0001f600 ", k=numbers.randrange(45)))
    return {
        "id": number,
        "p": numbers.choice(PARTITIONS),
        "day": maybe(date(1969, 12, 30) + timedelta(numbers.randrange(5))),
        "x": maybe(numbers.choice([0.0, -1.5, 1e300, float("inf"), numbers.random()])),
        "s": maybe({"t": maybe(text), "u": maybe(numbers.randrange(-5, 5))}),
        "d": maybe(Decimal(numbers.randrange(-(10**6), 10**6)).scaleb(-3)),
        "at": maybe(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=numbers.randrange(10**7))),
        "l": maybe([maybe(n) for n in range(numbers.randrange(4))]),
        "m": maybe([(key, float(len(key))) for key in ["k", "kk"][: numbers.randrange(3)]]),
        "b": maybe(numbers.randbytes(numbers.randrange(5))),
        "f": maybe(numbers.random() < 0.5),
    }


@dataclass
class Turns:
    """A table, and what must be in it.

    Args:
        spark: The peer.
        path: The table's.
        numbers: What is drawn.
        partition_by: Columns to partition by.
        properties: The table's.
        ours: Whether esker creates the table.
    """

    spark: SparkDelta
    path: Path
    numbers: random.Random
    partition_by: list[str]
    properties: dict[str, str]
    ours: bool
    rows: list[Row] = field(default_factory=list)
    history: list[list[Row]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    schema: pa.Schema = SCHEMA
    without: frozenset[str] = frozenset()
    _next: int = 0

    def new(self, count: int | None = None) -> pa.Table:
        """New rows, which shall be there from now on."""
        made = []
        for _ in range(self.numbers.randrange(1, 6) if count is None else count):
            row = one_row(self.numbers, self._next)
            for name in self.schema.names[len(SCHEMA) :]:
                row[name] = self.numbers.choice([None, self._next])
            made.append(row)
            self._next += 1
        self.rows = [*self.rows, *made]
        return pa.Table.from_pylist(made, self.schema)

    def create(self) -> None:
        """Its first version."""
        if self.ours:
            by = self.partition_by or None
            write_deltalake(self.path, self.new(), partition_by=by, configuration=self.properties)
        else:
            columns = ", ".join(f"{f.name} {SQL_TYPES[f.name]}" for f in SCHEMA)
            properties = ", ".join(f"'{k}' = '{v}'" for k, v in self.properties.items())
            self.spark.run(
                f"CREATE TABLE delta.`{self.path}` ({columns}) USING delta"
                + (f" PARTITIONED BY ({', '.join(self.partition_by)})" if self.partition_by else "")
                + (f" TBLPROPERTIES ({properties})" if properties else "")
            )
            self.told("create")
            self.spark.write(self.path, self.new())
        self.told("write")

    def told(self, what: str) -> None:
        """A change is made, perhaps in several versions: the table is compared."""
        self.done.append(what)
        table = DeltaTable(self.path)
        self.same(table.to_pyarrow_table(), self.rows)
        self.history += [self.rows] * (table.version() + 1 - len(self.history))
        if self.rows:
            row = self.numbers.choice(self.rows)
            for name in ("id", "p", "day", "d", "at", "f"):
                if row[name] is None:
                    continue
                found = table.to_pyarrow_table(filters=[(name, "=", row[name])])
                self.same(found, [r for r in self.rows if r[name] == row[name]])

    def same(self, found: pa.Table, wanted: list[Row]) -> None:
        """Raises if rows are not those that are wanted, and says which."""
        there = ordered(found)
        if there != wanted:
            more, less = ([row for row in a if row not in b] for a, b in ((there, wanted), (wanted, there)))
            raise AssertionError(f"found {more}, expected {less} (of {len(wanted)} rows) after {self.done}")

    def turn(self) -> None:
        """One change."""
        turns = [name for name in dir(self) if name.startswith("turn_") and name not in self.without]
        name = self.numbers.choice(turns)
        getattr(self, name)()
        self.told(name.removeprefix("turn_"))

    def compare(self) -> None:
        """All that the peer sees, now and of some versions before."""
        self.same(self.spark.read(self.path), self.rows)
        for row in self.numbers.sample(self.rows, min(2, len(self.rows))):
            # By statistics that either of us wrote.
            for column, value in [*((name, row[name]) for name in ("p", "day", "x", "d", "at")), *_inner(row)]:
                if value is None:
                    continue
                query = f"SELECT id FROM delta.`{self.path}` WHERE {column} = {literal(value)}"
                found = self.spark.rows(query)["id"].to_pylist()
                assert row["id"] in found, (self.done, query, row)
        for version in self.numbers.sample(range(len(self.history)), min(3, len(self.history))):
            there = ordered(DeltaTable(self.path, version=version).to_pyarrow_table())
            self.same(self.spark.read(self.path, versionAsOf=version), there)

    def keep(self, wanted: Any) -> None:
        """Only these rows stay."""
        self.rows = [row for row in self.rows if wanted(row)]

    def change(self, wanted: Any, **values: Any) -> None:
        """Rows become others."""
        self.rows = [{**row, **values} if wanted(row) else row for row in self.rows]

    def _replace(self, predicate: str, wanted: Any) -> None:
        self.keep(lambda row: not wanted(row))
        kept, self.rows = self.rows, []
        fresh = self.new(4)
        matching = [wanted(row) for row in self.rows]
        self.rows = [*kept, *(row for row, match in zip(self.rows, matching, strict=True) if match)]
        write_deltalake(self.path, fresh.filter(pa.array(matching)), mode="overwrite", predicate=predicate)

    def turn_our_append(self) -> None:
        write_deltalake(self.path, self.new(), mode="append", target_file_size=self.numbers.choice([None, 400]))

    def turn_our_appends(self) -> None:
        for _ in range(4):
            write_deltalake(self.path, self.new(1), mode="append")
            self.told("one append")

    def turn_our_overwrite(self) -> None:
        self.rows = []
        write_deltalake(self.path, self.new(), mode="overwrite")

    def turn_our_replacement_of_a_partition(self) -> None:
        self._replace("p = 'b c'", lambda row: row["p"] == "b c")

    def turn_our_replacement_of_rows(self) -> None:
        least = self.numbers.randrange(self._next + 1)
        self._replace(f"id >= {least}", lambda row: row["id"] >= least)

    def turn_our_checkpoint(self) -> None:
        DeltaTable(self.path).create_checkpoint()

    def turn_our_new_column(self) -> None:
        if len(self.schema) < len(SCHEMA) + 2:
            self._widen(f"c{len(self.schema)}")
            write_deltalake(self.path, self.new(), mode="append", schema_mode="merge")

    def turn_their_new_column(self) -> None:
        if len(self.schema) < len(SCHEMA) + 2:
            self._widen(f"C{len(self.schema)}")
            self.spark.write(self.path, self.new(), mergeSchema=True)

    def _widen(self, name: str) -> None:
        self.schema = self.schema.append(pa.field(name, pa.int64()))
        self.rows = [{**row, name: None} for row in self.rows]

    def turn_their_append(self) -> None:
        self.spark.write(self.path, self.new(), files=self.numbers.choice([1, 3]))

    def turn_their_overwrite(self) -> None:
        self.rows = []
        self.spark.write(self.path, self.new(), mode="overwrite")

    def turn_our_delete(self) -> None:
        rest = self.numbers.randrange(4)
        DeltaTable(self.path).delete(f"id % 4 = {rest}")
        self.keep(lambda row: row["id"] % 4 != rest)

    def turn_our_update(self) -> None:
        least = self.numbers.randrange(self._next + 1)
        DeltaTable(self.path).update({"x": "-2.5", "p": "'b c'"}, predicate=f"id >= {least} and p is not null")
        self.change(lambda row: row["id"] >= least and row["p"] is not None, x=-2.5, p="b c")

    def turn_their_delete(self) -> None:
        rest = self.numbers.randrange(3)
        self.spark.run(f"DELETE FROM delta.`{self.path}` WHERE id % 3 = {rest}")
        self.keep(lambda row: row["id"] % 3 != rest)

    def turn_their_update(self) -> None:
        least = self.numbers.randrange(self._next + 1)
        self.spark.run(f"UPDATE delta.`{self.path}` SET x = 7.5, p = 'a' WHERE id < {least}")
        self.change(lambda row: row["id"] < least, x=7.5, p="a")

    def turn_their_merge(self) -> None:
        known = [row["id"] for row in self.rows]
        some = self.numbers.sample(known, min(len(known), 3))
        fresh, self._next = self._next, self._next + 1
        listed = ", ".join(f"({number})" for number in [*some, fresh])
        self.spark.run(
            f"MERGE INTO delta.`{self.path}` t USING (SELECT id FROM VALUES {listed} AS v(id)) u ON t.id = u.id "
            "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.x = -3.5 "
            "WHEN NOT MATCHED THEN INSERT (id, p, x) VALUES (u.id, 'b c', 0.5)"
        )
        self.keep(lambda row: row["id"] not in some or row["id"] % 2)
        self.change(lambda row: row["id"] in some, x=-3.5)
        empty = dict.fromkeys(self.schema.names)
        self.rows = [*self.rows, {**empty, "id": fresh, "p": "b c", "x": 0.5}]

    def turn_their_optimize(self) -> None:
        self.spark.run(f"OPTIMIZE delta.`{self.path}`")

    def turn_their_checkpoint(self) -> None:
        self.spark.checkpoint(self.path)

    def turn_our_append_to_what_was(self) -> None:
        ours = DeltaTable(self.path)
        self.spark.write(self.path, self.new())
        write_deltalake(ours, self.new(), mode="append")


SQL_TYPES = {
    "id": "BIGINT",
    "p": "STRING",
    "day": "DATE",
    "x": "DOUBLE",
    "s": "STRUCT<t: STRING, u: INT>",
    "d": "DECIMAL(12, 3)",
    "at": "TIMESTAMP",
    "l": "ARRAY<INT>",
    "m": "MAP<STRING, FLOAT>",
    "b": "BINARY",
    "f": "BOOLEAN",
}


def _inner(row: Row) -> list[tuple[str, Any]]:
    return [(f"s.{name}", value) for name, value in (row["s"] or {}).items()]


def literal(value: Any) -> str:
    """A value as Spark's SQL has it."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value.isoformat()}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, float):
        return f"DOUBLE('{value!r}')"
    return f"{value}BD" if isinstance(value, Decimal) else str(value)


def ordered(table: pa.Table) -> list[Row]:
    """Rows by their ids."""
    return table.sort_by("id").to_pylist()
