"""Delta tables made by random writes of ours and of deltalake, read in every way; a list of Python has the same rows.

```
python -m tests.fuzzing.delta --cases 1000 --first-seed 7
```
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa

from esker.delta import DeltaTable, write_deltalake
from tests.fuzzing.delta_conditions import Condition, random_condition
from tests.fuzzing.delta_peer_faults import (
    peer_makes,
    peer_partitions,
    peer_reads,
    peer_replaces,
    pyarrow_misses_nan,
    pyarrow_misses_zero,
)
from tests.fuzzing.delta_rows import Column, RandomRows, plainly

FILTERS = 3
"""Conditions that each table is read with, in the end."""


class DeltaCase:
    """One table, from a seed.

    Args:
        seed: It.
        path: A folder of its own, which is not there yet.
    """

    def __init__(self, seed: int, path: Path) -> None:
        self.source = RandomRows(seed)
        self.path = path
        self.columns, self.partition_by = self.source.columns()
        self.rows: list[dict[str, Any]] = []
        self.done: list[str] = []
        """What was done, for whoever looks at a case that failed."""

    def run(self) -> None:
        """Makes the table, and compares its rows after each write, and in the end with filters."""
        self._write("append")
        for _ in range(self.source.random.randint(1, 4)):
            self.source.random.choice(
                [self._append, self._append, self._replace, self._replace, self._overwrite, self._widen, self._delete]
            )()
            self._check_rows()
        for _ in range(FILTERS):
            self._check_filter(random_condition(self.source, self.columns))

    def _write(self, mode: str, condition: Condition | None = None, columns: list[Column] | None = None) -> None:
        columns = columns or self.columns
        rows = self.source.rows(columns)
        if condition is not None:
            rows = [row for row in rows if condition.keeps(row, in_sql=True)]
        is_ours = self.source.random.random() < 0.6
        ours = is_ours or not peer_makes(columns) or not self._peer_works(condition, rows)
        arguments: dict[str, Any] = {}
        if condition is not None:
            arguments["predicate"] = condition.sql()
        if columns is not self.columns:
            arguments["schema_mode"] = "merge"
        is_new = columns is not self.columns or not DeltaTable.is_deltatable(self.path)
        # deltalake takes a zone or a unit for another type where it makes a table.
        table = self.source.table(columns, rows, is_new=is_new, forms=ours or not is_new)
        ours = ours or not peer_partitions(table, self.partition_by)
        write = write_deltalake if ours else deltalake.write_deltalake
        if ours:
            arguments["durable"] = False
        self.done.append(f"{'ours' if ours else 'theirs'}: {mode} of {rows}, {arguments}, {table.schema.types}")
        write(str(self.path), table, mode=mode, partition_by=self.partition_by or None, **arguments)  # type: ignore[arg-type]
        if mode == "overwrite":
            self.rows = [row for row in self.rows if condition and not condition.keeps(row, in_sql=True)]
        self.rows += rows

    def _append(self) -> None:
        self._write("append")

    def _overwrite(self) -> None:
        self._write("overwrite")

    def _replace(self) -> None:
        self._write("overwrite", random_condition(self.source, self.columns))

    def _widen(self) -> None:
        """A column more, and one that is left out."""
        left = [column for column in self.columns if column.name == "id" or column.name in self.partition_by]
        more = self.source.column(f"n{len(self.columns)}")
        before = self.columns
        self._write("append", columns=[*left, more])
        self.columns = [*before, more]
        for row in self.rows:
            for column in self.columns:
                row.setdefault(column.name, None)

    def _delete(self) -> None:
        """deltalake's delete writes files of views."""
        condition = random_condition(self.source, self.columns)
        if not self._peer_works(condition, []):
            return
        self.done.append(f"theirs: delete of {condition.sql()}")
        deltalake.DeltaTable(str(self.path)).delete(condition.sql())
        self.rows = [row for row in self.rows if not condition.keeps(row, in_sql=True)]

    def _peer_works(self, condition: Condition | None, rows: list[dict[str, Any]]) -> bool:
        """Whether the peer reads the table with these rows, too, and does with it what it is told to."""
        if not peer_reads(self.columns, self.partition_by, [*self.rows, *rows]):
            return False
        return condition is None or peer_replaces(condition, self.partition_by)

    def expected(self, keeps: Callable[[dict[str, Any]], bool] | None = None) -> list[Any]:
        """The rows that are kept, by `id`."""
        found = []
        for row in self.rows:
            if keeps is None or keeps(self._kept(row)):
                found.append(plainly({column.name: self._kept(row)[column.name] for column in self.columns}))
        return sorted(found, key=lambda row: row["id"])

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row as a table keeps it: an empty text is null as a partition value."""
        return {name: None if value == "" and name in self.partition_by else value for name, value in row.items()}

    def found(self, rows: Any) -> list[Any]:
        """Rows that were read, by `id`."""
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        found = [plainly(row) for row in table.select([c.name for c in self.columns]).to_pylist()]
        return sorted(found, key=lambda row: row["id"])

    def _check_rows(self) -> None:
        self.rows = [self._kept(row) for row in self.rows]
        table, expected = DeltaTable(self.path), self.expected()
        self._same("to_pyarrow_table", table.to_pyarrow_table(), expected)
        self._same("scan", table.scan().read_all(), expected)
        assert table.count() == len(expected), ("count", table.count(), len(expected))
        if peer_reads(self.columns, self.partition_by, self.rows):
            self._same("deltalake", deltalake.DeltaTable(str(self.path)).to_pyarrow_table(), expected)

    def _check_filter(self, condition: Condition) -> None:
        self.done.append(f"filter {condition.sql()}")
        table = DeltaTable(self.path)
        of_sql = self.expected(lambda row: condition.keeps(row, in_sql=True))
        of_arrow = self.expected(lambda row: condition.keeps(row, in_sql=False))
        if pyarrow_misses_nan(condition, self.rows) or pyarrow_misses_zero(condition):
            self._same("sql", table.to_pyarrow_table(filters=condition.sql()), of_sql)
            if condition.tuples() is not None and not pyarrow_misses_nan(condition, self.rows):
                self._same("tuples", table.to_pyarrow_table(filters=condition.tuples()), of_arrow)
            return
        sql, expression, tuples = condition.sql(), condition.expression(), condition.tuples()
        names = [column.name for column in self.columns]
        self._same("sql", table.to_pyarrow_table(filters=sql), of_sql)
        self._same("sql scan", table.scan(names, sql).read_all(), of_sql)
        self._same("expression", table.to_pyarrow_table(filters=expression), of_arrow)
        self._same("expression scan", table.scan(names, expression).read_all(), of_arrow)
        dataset = table.to_pyarrow_dataset()
        self._same("dataset", dataset.to_table(filter=expression), of_arrow)
        pruned = self.found(table.to_pyarrow_dataset(file_pruning_predicate=sql).to_table(filter=expression))
        both = [row for row in of_arrow if row in of_sql]
        assert all(row in pruned for row in both), ("pruned dataset", pruned, both)
        assert all(row in of_arrow for row in pruned), ("pruned dataset", pruned, of_arrow)
        if tuples is not None:
            self._same("tuples", table.to_pyarrow_table(filters=tuples), of_arrow)
        self._check_engines(dataset, condition, of_sql, of_arrow)

    def _check_engines(self, dataset: Any, condition: Condition, of_sql: list[Any], of_arrow: list[Any]) -> None:
        """DuckDB and polars push what they can into the dataset."""
        if of_sql != of_arrow or any(column.plain == "timestamp" for column in condition.columns):
            # They have rules of their own for NaN, and zones of their own.
            return
        ids = [row["id"] for row in of_arrow]
        found = (
            duckdb.connect().execute(f"select id from dataset where {_for_duckdb(condition)} order by id").fetchall()
        )
        assert [row[0] for row in found] == ids, ("duckdb", [row[0] for row in found], ids)
        terms = condition.lists[0]
        if len(condition.lists) == 1 and not condition.negated and all(term.operator in _POLARS for term in terms):
            lazy = polars.scan_pyarrow_dataset(dataset)
            for term in terms:
                column = polars.col(term.column.name)
                lazy = lazy.filter(_POLARS[term.operator](column, *term.values))
            got = sorted(lazy.select("id").collect()["id"].to_list())
            assert got == ids, ("polars", got, ids)

    def _same(self, way: str, rows: Any, expected: list[Any]) -> None:
        found = self.found(rows)
        if found != expected:
            missing = [row for row in expected if row not in found]
            more = [row for row in found if row not in expected]
            raise AssertionError(f"{way}: missing {missing}, not expected {more}")


_POLARS: dict[str, Callable[..., Any]] = {
    "=": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    ">=": lambda column, value: column >= value,
    "is null": lambda column: column.is_null(),
    "is not null": lambda column: column.is_not_null(),
}


def _for_duckdb(condition: Condition) -> str:
    """DuckDB writes bytes in another way."""
    text = condition.sql()
    for column in condition.lists:
        for term in column:
            for value in term.values:
                if isinstance(value, bytes):
                    escaped = "".join(f"\\x{byte:02x}" for byte in value)
                    text = text.replace(f"X'{value.hex()}'", f"'{escaped}'::blob", 1)
    return text


def run_case(seed: int) -> None:
    """Runs one case; what it did is told where it fails."""
    folder = Path(tempfile.mkdtemp(prefix="esker-delta-"))
    case = DeltaCase(seed, folder / "t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            case.run()
    except BaseException as error:
        steps = "\n".join(case.done)
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{steps}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Runs cases until they are done; tells each that fails, and how many did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--traceback", action="store_true")
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.cases):
        try:
            run_case(seed)
        except AssertionError as error:
            failed += 1
            if arguments.traceback:
                traceback.print_exception(error)
            else:
                print(error, flush=True)
    print(f"{arguments.cases} cases, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
