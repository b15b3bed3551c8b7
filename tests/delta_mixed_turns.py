"""One Delta table that esker, deltalake and, if asked for, Spark change in turns, beside the rows that must be there.

By hand: `python -m tests.delta_mixed_turns --tables 100 --turns 25`, with `--spark` for tables that Spark changes too.
After each turn rows, types, feeds, metrics and the log itself are compared.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from esker.delta import DeltaTable, Field, write_deltalake
from esker.delta.change import column_copies
from tests.delta_mixed_model import (
    SCHEMA,
    UPDATES,
    Effect,
    MergeClause,
    RandomMerge,
    Row,
    Test,
    effect_of,
    merge,
    predicate,
    row_of,
)
from tests.delta_rows import rows as shown
from tests.test_delta_delete import read_by_theirs

CONFIGURATIONS: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3", "delta.isolationLevel": "Serializable"},
    {"delta.dataSkippingNumIndexedCols": "3", "delta.checkpoint.writeStatsAsStruct": "true"},
]
MAPPED: list[dict[str, str]] = [
    {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true"},
    {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
]
PARTITIONS: list[list[str]] = [[], [], ["p"], ["day"], ["p", "b"], ["n"]]
COUNTS = {"inserted": "num_target_rows_inserted", "updated": "num_target_rows_updated"}
COUNTS["deleted"] = "num_target_rows_deleted"


@dataclass
class MixedTurns:
    """A table, and what must be in it.

    Args:
        path: The table's.
        numbers: What is drawn.
        spark: Spark's Delta, if it takes turns.
        plain: Whether the table is one that deltalake writes to.
    """

    path: Path
    numbers: random.Random
    spark: Any = None
    plain: bool = True
    rows: list[Row] = field(default_factory=list)
    columns: list[str] = field(default_factory=lambda: list(SCHEMA.names))
    history: dict[int, tuple[list[Row], list[str]]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    key: int = 0

    def create(self) -> None:
        """Its first version, by any of the writers."""
        self.configuration = self.numbers.choice(CONFIGURATIONS if self.plain else MAPPED)
        self.by = self.numbers.choice(PARTITIONS)
        self.feed = self.configuration.get("delta.enableChangeDataFeed") == "true"
        data = self._new()
        given: dict[str, Any] = {"configuration": self.configuration, "partition_by": self.by or None}
        if self.plain and self.numbers.random() < 0.4:
            deltalake.write_deltalake(self.path, data, **given)
        else:
            write_deltalake(self.path, data, **given)
        self.done.append(f"create {self.configuration} by {self.by}")
        self._check()

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.schema([SCHEMA.field(n) if n in SCHEMA.names else pa.field(n, pa.int64()) for n in self.columns])

    def _fresh(self, count: int) -> list[Row]:
        made = [row_of(self.numbers, self.key + number, self.columns) for number in range(count)]
        self.key += count
        return made

    def _table(self, rows: Iterable[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), self.schema)

    def _new(self) -> pa.Table:
        made = self._fresh(self.numbers.randrange(1, 8))
        self.rows = [*self.rows, *made]
        return self._table(made)

    # Turns.

    def turn(self) -> None:
        """One change by somebody, and the comparison."""
        who = self.numbers.choice(self._writers())
        kinds = ["append", "delete", "delete", "update", "update", "merge", "merge", "merge", "replace", "other"]
        kind = self.numbers.choice(kinds)
        if kind == "other":
            kind = self.numbers.choice(["overwrite", "replace", "column", "optimize", "restore", "checkpoint"])
        self.done.append(f"{who} {kind}")
        self.counts[f"{who} {kind}"] += 1
        getattr(self, f"_{kind}")(who)
        self._check()

    def _writers(self) -> list[str]:
        return [*["ours"] * 3, *(["theirs"] if self.plain else []), *(["spark"] if self.spark else [])]

    def _open(self, who: str) -> Any:
        return DeltaTable(self.path) if who == "ours" else deltalake.DeltaTable(self.path)

    def _sql(self, text: str) -> None:
        self.done.append(text)
        self.spark.run(text)

    @property
    def _name(self) -> str:
        return f"delta.`{self.path}`"

    def _append(self, who: str) -> None:
        data = self._new()
        if who == "spark":
            self.spark.write(self.path, data, files=self.numbers.choice([1, 2]))
        else:
            write = write_deltalake if who == "ours" else deltalake.write_deltalake
            write(self.path, data, mode="append")

    def _overwrite(self, who: str) -> None:
        self.rows = []
        data = self._new()
        if who == "spark":
            self.spark.write(self.path, data, mode="overwrite")
        else:
            write = write_deltalake if who == "ours" else deltalake.write_deltalake
            write(self.path, data, mode="overwrite")

    def _replace(self, who: str) -> None:
        sql, meant = f"id < {(least := self.numbers.randrange(self.key + 1))}", lambda row: row["id"] < least
        fresh = [row_of(self.numbers, number, self.columns) for number in range(min(least, 2))]
        table: Any = self.path
        if who == "ours" and self.numbers.random() < 0.5:
            # Others' new rows, or what they moved, may be among those that go.
            (sql, meant), fresh = self._predicate(who), []
            table = self._race(who, not self._meant(meant)[0])
            if self.plain and self.numbers.random() < 0.3:
                self.done.append("stale by a compaction")
                self._optimize("theirs")
                self._note(self.rows)
            self.done[-1] += f" where {sql}"
        self.rows = [*(row for row in self.rows if meant(row) is not True), *fresh]
        data = self._table(fresh)
        if who == "spark":
            self.spark.write(self.path, data, mode="overwrite", replaceWhere=sql)
        else:
            write = write_deltalake if who == "ours" else deltalake.write_deltalake
            write(table, data, mode="overwrite", predicate=sql)

    def _column(self, who: str) -> None:
        if len(self.columns) > len(SCHEMA) + 2:
            return
        name = f"c{len(self.columns)}"
        if who == "ours":
            DeltaTable(self.path).alter.add_columns(Field(name, "long"))
        elif who == "theirs":
            deltalake.DeltaTable(self.path).alter.add_columns(deltalake.Field(name, "long"))
        else:
            self._sql(f"ALTER TABLE {self._name} ADD COLUMNS ({name} BIGINT)")
        self.columns = [*self.columns, name]
        self.rows = [{**row, name: None} for row in self.rows]

    def _optimize(self, who: str) -> None:
        if who == "spark" or (self.spark and not self.plain):
            self._sql(f"OPTIMIZE {self._name}")
        elif self.plain and self.numbers.random() < 0.7:
            deltalake.DeltaTable(self.path).optimize.compact()
        elif self.plain:
            deltalake.DeltaTable(self.path).optimize.z_order(["id"])

    def _restore(self, who: str) -> None:
        older = sorted(self.history)[:-1]
        if not older:
            return
        version = self.numbers.choice(older)
        if who == "spark" or (self.spark and not self.plain):
            self._sql(f"RESTORE TABLE {self._name} TO VERSION AS OF {version}")
        elif self.plain:
            deltalake.DeltaTable(self.path).restore(version)
        else:
            return
        self.rows, self.columns = self.history[version]

    def _checkpoint(self, who: str) -> None:
        self._open("theirs" if who == "theirs" else "ours").create_checkpoint()

    def _predicate(self, who: str) -> Test:
        # Bounds of row groups, which know nothing of NaN, make deltalake leave out rows.
        return predicate(self.numbers, self.rows, without=("x",) if who == "theirs" else ())

    def _meant(self, test: Callable[[Row], Any]) -> tuple[list[Row], list[Row]]:
        there = [row for row in self.rows if test(row) is True]
        return there, [row for row in self.rows if test(row) is not True]

    def _race(self, who: str, is_idle: bool) -> Any:
        """The table; now and then it is stale, as another writer has appended: what has nothing to do looks no more."""
        table = self._open(who)
        if who == "ours" and not is_idle and self.numbers.random() < 0.2:
            self.done.append("stale")
            before = list(self.rows)
            self._append("theirs" if self.plain else "ours")
            self._note(before)
        return table

    def _note(self, before: list[Row]) -> None:
        self.history[DeltaTable(self.path).version()] = (self.rows, self.columns)

    def _delete(self, who: str) -> None:
        sql, test = self._predicate(who)
        if self.numbers.random() < 0.03:
            sql, test = None, lambda row: True  # type: ignore[assignment]
        self.done[-1] += f" where {sql}"
        if who == "spark":
            self.spark.run(f"DELETE FROM {self._name}" + (f" WHERE {sql}" if sql else ""))
            self.rows = self._meant(test)[1]
            return
        table = self._race(who, not self._meant(test)[0])
        gone, self.rows = self._meant(test)
        told = table.delete(sql)
        if "num_deleted_rows" in told and (who == "ours" or sql):
            assert told["num_deleted_rows"] == len(gone), told
        if who == "ours":
            assert "num_deleted_rows" in told
            self._expect(Effect(deleted=gone))

    def _update(self, who: str) -> None:
        (sql, test), (updates, changed) = self._predicate(who), self.numbers.choice(UPDATES)
        self.done[-1] += f" {updates} where {sql}"
        if who == "spark":
            assigned = ", ".join(f"{name} = {value}" for name, value in updates.items())
            self.spark.run(f"UPDATE {self._name} SET {assigned} WHERE {sql}")
            self.rows = [{**row, **changed(row)} if test(row) is True else row for row in self.rows]
            return
        table = self._race(who, not self._meant(test)[0])
        pairs = [(row, {**row, **changed(row)}) for row in self.rows if test(row) is True]
        self.rows = [*self._meant(test)[1], *(new for _, new in pairs)]
        told = table.update(updates, predicate=sql)
        assert told["num_updated_rows"] == len(pairs), told
        if who == "ours":
            self._expect(Effect(updated=pairs))

    def _merge(self, who: str) -> None:
        made = merge(self.numbers, self.rows, self._fresh(self.numbers.randrange(3)), may_double=who != "spark")
        self.done[-1] += f" {_described(made)}"
        if who == "spark":
            self._merge_by_spark(made)
            self.rows, found = effect_of(made, self.rows, self.columns)
            assert not found.is_error
            return
        found = effect_of(made, self.rows, self.columns)[1]
        table = self._race(who, found.is_error or not found)
        merger = _clauses(table.merge(self._table(made.source), made.condition[0], "s", "t"), made)
        after, found = effect_of(made, self.rows, self.columns)
        if found.is_error:
            # By rows that another writer has appended meanwhile, it may be.
            with pytest.raises(Exception, match="duplicate relevant"):
                merger.execute()
            return
        self.rows = after
        told = merger.execute()
        counted = {name: told[key] for name, key in COUNTS.items()}
        assert counted == {name: len(getattr(found, name)) for name in COUNTS}, counted
        assert told["num_source_rows"] == len(made.source)
        if who == "ours":
            self._expect(found)

    def _merge_by_spark(self, made: RandomMerge) -> None:
        given = self.path.parent / f"{self.path.name}-source.parquet"
        pq.write_table(self._table(made.source), given)
        text = f"MERGE INTO {self._name} t USING parquet.`{given}` s ON {made.condition[0]}"
        for when, clauses in (
            ("MATCHED", made.matched),
            ("NOT MATCHED", made.inserts),
            ("NOT MATCHED BY SOURCE", made.by_source),
        ):
            for clause in clauses:
                text += f" WHEN {when}" + (f" AND {clause.condition[0]}" if clause.condition else "") + " THEN "
                text += _for_spark(clause)
        self.spark.run(text)

    # Comparisons.

    def _expect(self, found: Effect) -> None:
        """Compares the feed of the newest version, which must tell this change alone."""
        table = DeltaTable(self.path)
        version = table.version()
        if not found or not self.feed:
            return
        wanted = [("delete", row) for row in found.deleted] + [("insert", row) for row in found.inserted]
        for old, new in found.updated:
            wanted += [("update_preimage", old), ("update_postimage", new)]
        kinds = pa.array([kind for kind, _ in wanted], pa.string())
        expected = self._table(row for _, row in wanted).append_column("_change_type", kinds)
        feed = pa.table(table.load_cdf(version, version))
        _same(feed.select(expected.column_names), expected, "the feed")
        if self.plain and not self.by and self._has_files_of_changes(version):
            theirs = pa.table(deltalake.DeltaTable(self.path).load_cdf(version, version))
            _same(
                theirs.select(expected.column_names).cast(expected.schema), expected, "the feed as deltalake reads it"
            )

    def _has_files_of_changes(self, version: int) -> bool:
        """Without them deltalake tells of a removed file the rows that its vector deleted long ago."""
        return '{"cdc"' in (self.path / "_delta_log" / f"{version:020}.json").read_text()

    def _check(self) -> None:
        table = DeltaTable(self.path)
        expected = self._table(self.rows)
        found = table.to_pyarrow_table()
        assert [(f.name, f.type) for f in found.schema] == [(f.name, f.type) for f in expected.schema], found.schema
        _same(found, expected, "rows")
        assert table.count() == len(self.rows)
        self.history[table.version()] = (self.rows, self.columns)
        sql, test = predicate(self.numbers, self.rows)
        wanted = self._table(row for row in self.rows if test(row) is True)
        _same(table.to_pyarrow_table(filters=sql), wanted, f"rows where {sql}")
        if self.plain:
            _same(read_by_theirs(self.path).select(self.columns), expected, "rows as deltalake reads them")
        if self.spark and self.numbers.random() < 0.5:
            _same(self.spark.read(self.path).select(self.columns), expected, "rows as Spark reads them")
            # A row is found by statistics that any of us wrote.
            counted = self.spark.rows(f"SELECT count(*) c FROM {self._name} WHERE {sql}")["c"].to_pylist()
            assert counted == [len(wanted)], (sql, counted, len(wanted))
        version = self.numbers.choice(list(self.history))
        rows, columns = self.history[version]
        before = DeltaTable(self.path, version=version).to_pyarrow_table()
        assert before.column_names == columns
        assert sorted(before["id"].to_pylist()) == sorted(row["id"] for row in rows), f"version {version}"
        check_log(self.path, table)


def _same(found: pa.Table, expected: pa.Table, what: str) -> None:
    there, wanted = collections.Counter(shown(found)), collections.Counter(shown(expected))
    assert there == wanted, (
        f"{what}: found {list((there - wanted).elements())}, expected {list((wanted - there).elements())}"
    )


def _described(made: RandomMerge) -> str:
    parts = [f"on {made.condition[0]} of ids {[row['id'] for row in made.source]}"]
    for when, clauses in (("matched", made.matched), ("not matched", made.inserts), ("by source", made.by_source)):
        for clause in clauses:
            values = "all" if clause.values is None else clause.values[0]
            parts.append(f"{when} {clause.action} {values} if {clause.condition and clause.condition[0]}")
    return "; ".join(parts)


def _clauses(merger: Any, made: RandomMerge) -> Any:
    for clause in made.matched:
        sql = clause.condition[0] if clause.condition else None
        if clause.action == "delete":
            merger = merger.when_matched_delete(sql)
        elif clause.values is None:
            merger = merger.when_matched_update_all(sql)
        else:
            merger = merger.when_matched_update(clause.values[0], sql)
    for clause in made.inserts:
        sql = clause.condition[0] if clause.condition else None
        if clause.values is None:
            merger = merger.when_not_matched_insert_all(sql)
        else:
            merger = merger.when_not_matched_insert(clause.values[0], sql)
    for clause in made.by_source:
        sql = clause.condition[0] if clause.condition else None
        if clause.values is None:
            merger = merger.when_not_matched_by_source_delete(sql)
        else:
            merger = merger.when_not_matched_by_source_update(clause.values[0], sql)
    return merger


def _for_spark(clause: MergeClause) -> str:
    if clause.action == "delete":
        return "DELETE"
    if clause.values is None:
        return "UPDATE SET *" if clause.action == "update" else "INSERT *"
    values = clause.values[0]
    if clause.action == "update":
        return "UPDATE SET " + ", ".join(f"t.{name} = {value}" for name, value in values.items())
    return f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def check_log(path: Path, table: DeltaTable) -> None:
    """What the newest version's files are, against what the log says of them."""
    newest = path / "_delta_log" / f"{table.version():020}.json"
    if not newest.exists():
        return
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    if "esker" not in str(info.get("engineInfo")):
        return
    is_update = info["operation"] == "UPDATE"
    names = {
        field.name: field.metadata.get("delta.columnMapping.physicalName", field.name)
        for field in table.schema().fields
    }
    for action in actions:
        add = action.get("add")
        if add is None:
            continue
        file = path / unquote(add["path"])
        assert file.stat().st_size == add["size"]
        statistics = json.loads(add["stats"])
        rows = pq.read_table(file, partitioning=None)
        assert statistics["numRecords"] == rows.num_rows, add
        vector = add.get("deletionVector")
        assert statistics.get("tightBounds", True) is (vector is None) or (
            "tightBounds" not in statistics and vector is None
        )
        assert not vector or 0 < vector["cardinality"] < rows.num_rows, add
        for name in names.values():
            if name not in rows.column_names or pa.types.is_nested(rows[name].type):
                continue
            nulls = statistics.get("nullCount", {}).get(name)
            assert nulls in (None, rows[name].null_count), (name, add)
            # deltalake's bounds know nothing of NaN; they stay with a file that gets a vector, and with copied columns.
            if vector is None and not (is_update and pa.types.is_floating(rows[name].type)):
                _check_bounds(name, rows[name], statistics)
    removed = [action["remove"] for action in actions if "remove" in action]
    assert all("deletionVector" in action or not action.get("deletionVector") for action in removed)


def _check_bounds(name: str, values: pa.ChunkedArray, statistics: dict[str, Any]) -> None:
    least = statistics.get("minValues", {}).get(name)
    most = statistics.get("maxValues", {}).get(name)
    if least is None and most is None:
        return
    if pa.types.is_string(values.type):
        texts = [value.encode() for value in values.to_pylist() if value is not None]
        assert least is None or all(least.encode() <= value for value in texts), (name, least, texts)
        assert most is None or all(most.encode() >= value for value in texts), (name, most, texts)
    elif pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        assert least is None or not pc.any(pc.less(values, least)).as_py(), (name, least)
        assert most is None or not pc.any(pc.greater(values, most)).as_py(), (name, most)
        assert not pa.types.is_floating(values.type) or not pc.any(pc.is_nan(values)).as_py(), "bounds beside NaN"


def run(seed: int, turns: int, folder: Path, spark: Any = None) -> collections.Counter[str]:
    """One table of a seed. Every other one has its files copied column by column, which large ones are.

    Raises:
        AssertionError: It names the turns up to a difference.
    """
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(column_copies, "LEAST_COPIED", 0)
        return _run(seed, turns, folder, spark)


def _run(seed: int, turns: int, folder: Path, spark: Any) -> collections.Counter[str]:
    numbers = random.Random(seed)
    table = MixedTurns(folder / f"table-{seed}", numbers, spark, plain=spark is None or numbers.random() < 0.5)
    try:
        table.create()
        for _ in range(turns):
            table.turn()
    except Exception as error:
        course = "\n".join(table.done)
        raise AssertionError(f"seed {seed}: {error!r} after\n{course}") from error
    return table.counts


def main() -> None:
    """Runs many tables, and prints counts and differences."""
    parser = argparse.ArgumentParser(description="Change Delta tables in turns with peers.")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    failed = 0
    work = Path(tempfile.mkdtemp(prefix="esker-mixed-"))
    opened: Any = nullcontext(None)
    if options.spark:
        from tests.interop.delta_spark import SparkDelta

        opened = SparkDelta(work)
    with opened as spark:
        for seed in range(options.first_seed, options.first_seed + options.tables):
            try:
                counts += run(seed, options.turns, work, spark)
            except AssertionError as error:
                failed += 1
                if options.verbose:
                    traceback.print_exc()
                text = str(error)
                print(text if options.verbose else text[:1500] + " ... " + text[-700:], flush=True)
            shutil.rmtree(work / f"table-{seed}", ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    print(f"{options.tables} tables, {sum(counts.values())} turns, {failed} failed: {dict(counts)}")


if __name__ == "__main__":
    main()
