"""pylance and esker take turns on one table: after each operation both see what a plain model holds.

Short here. A long walk by hand: `ESKER_TURNS=500 ESKER_TURNS_SEED=7 pytest tests/test_turns.py`. A walk that fails
tells its seed and what was done.
"""

from __future__ import annotations

import copy
import importlib
import os
import random
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

TURNS = int(os.environ.get("ESKER_TURNS", "36"))
SEED = int(os.environ.get("ESKER_TURNS_SEED", "1"))

Row = dict[str, Any]
Library = Any
"""`esker` or `lance`: what the walk calls has one name in both."""

BASE = {"k": pa.int64(), "n": pa.int64(), "s": pa.string()}


class Turns:
    """The table, the model, and what both have been through."""

    def __init__(self, uri: str, seed: int, *, stable: bool, version: str, roots: bool) -> None:
        self.roots = roots
        self.uri = uri
        self.random = random.Random(seed)
        self.stable = stable
        self.version = version
        self.rows: dict[int, Row] = {}
        self.types: dict[str, pa.DataType] = dict(BASE)
        self.ids: dict[int, tuple[int, int]] = {}
        self.next_key = 0
        self.names = 0
        self.history: list[str] = []
        self.snapshots: dict[int, tuple[dict[int, Row], dict[str, pa.DataType], dict[int, tuple[int, int]]]] = {}

    # What rows look like, and which are meant.

    def new_rows(self, count: int) -> list[Row]:
        rows = []
        for _ in range(count):
            row: Row = {name: self.value(type_) for name, type_ in self.types.items()}
            row["k"] = self.next_key
            self.next_key += 1
            rows.append(row)
        return rows

    def value(self, type_: pa.DataType) -> Any:
        if self.random.random() < 0.2:
            return None
        number = self.random.randrange(-1000, 1000)
        return f"text {number}" if pa.types.is_string(type_) else number

    def table(self, rows: list[Row]) -> pa.Table:
        columns = {name: pa.array([row[name] for row in rows], type_) for name, type_ in self.types.items()}
        return pa.table(columns)

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        """SQL, and the same of a row; null is not true."""
        number, part = self.random.randrange(2, 7), self.random.randrange(7)
        some = sorted(self.random.sample(sorted(self.rows), min(4, len(self.rows)))) or [-1]
        low = self.random.randrange(-1000, 1000)
        return self.random.choice(
            [
                (f"k % {number} = {part}", lambda row: row["k"] % number == part),
                (f"k in ({', '.join(map(str, some))})", lambda row: row["k"] in some),
                (f"n > {low} and n < {low + 400}", lambda row: row["n"] is not None and low < row["n"] < low + 400),
                ("n is null", lambda row: row["n"] is None),
                (f"k >= {some[0]} and k <= {some[-1]}", lambda row: some[0] <= row["k"] <= some[-1]),
                ("s = 'text 5' or k = 0", lambda row: row["s"] == "text 5" or row["k"] == 0),
            ]
        )

    def extra(self) -> list[str]:
        return [name for name in self.types if name not in BASE]

    # Operations. Each returns what it did.

    def append(self, library: Library) -> str:
        rows = self.new_rows(self.random.randrange(1, 40))
        library.write_dataset(self.table(rows), self.uri, mode="append", max_rows_per_file=self.random.choice([7, 100]))
        self.rows.update((row["k"], row) for row in rows)
        return f"append {len(rows)}"

    def delete(self, library: Library) -> str:
        sql, holds = self.condition()
        gone = [key for key, row in self.rows.items() if holds(row)]
        if len(gone) == len(self.rows) > 3:
            return "nothing, all rows would go"
        assert library.dataset(self.uri).delete(sql) == {"num_deleted_rows": len(gone)}, sql
        for key in gone:
            del self.rows[key]
        return f"delete {sql}"

    def update(self, library: Library) -> str:
        sql, holds = self.condition()
        step = self.random.randrange(1, 50)
        text, change = self.random.choice(
            [
                ({"n": f"n + {step}"}, lambda row: {"n": None if row["n"] is None else row["n"] + step}),
                ({"n": "k"}, lambda row: {"n": row["k"]}),
                ({"s": f"'text {step}'"}, lambda row: {"s": f"text {step}"}),
                ({"s": "NULL", "n": str(step)}, lambda row: {"s": None, "n": step}),
                ({"s": "n"}, lambda row: {"s": None if row["n"] is None else str(row["n"])}),
            ]
        )
        changed = [row for row in self.rows.values() if holds(row)]
        assert library.dataset(self.uri).update(text, where=sql) == {"num_rows_updated": len(changed)}, sql
        for row in changed:
            row.update(change(row))
        return f"update {text} where {sql}"

    def stale(self, library: Library) -> str:
        """A change of some rows by a dataset that shows an older version: it goes on top, or says that it cannot."""
        newest = esker.dataset(self.uri).version
        number = self.random.choice(sorted(n for n in self.snapshots if n >= newest - 3))
        keys = sorted(set(self.rows) & set(self.snapshots[number][0]))
        keys = self.random.sample(keys, min(4, len(keys))) or [-1]
        where, step = f"k in ({', '.join(map(str, keys))})", self.random.randrange(1, 50)
        dataset, deletes = library.dataset(self.uri, version=number), self.random.random() < 0.4
        changed = [self.rows[key] for key in keys if key in self.rows]
        try:
            if deletes:
                assert dataset.delete(where) == {"num_deleted_rows": len(changed)}
            else:
                assert dataset.update({"n": str(step)}, where=where) == {"num_rows_updated": len(changed)}
        except OSError as error:
            if "conflict" not in str(error).lower():
                raise
            return f"stale change of version {number} refused"
        for row in changed:
            if deletes:
                del self.rows[row["k"]]
            else:
                row["n"] = step
        return f"stale {'delete' if deletes else 'update'} of version {number}: {where}"

    def truncate(self, library: Library) -> str:
        library.dataset(self.uri).truncate_table()
        self.rows = {}
        return "truncate"

    def merge_insert(self, library: Library) -> str:
        keys = self.random.sample(sorted(self.rows), min(5, len(self.rows)))
        rows = self.new_rows(len(keys) + 3)
        for row, key in zip(rows, keys, strict=False):
            row["k"] = key
        self.random.shuffle(rows)
        merge = library.dataset(self.uri).merge_insert("k")
        old = [row for row in rows if row["k"] in self.rows]
        new = [row for row in rows if row["k"] not in self.rows]
        table, inserted, updated, deleted = self.table(rows), 0, 0, 0
        kind = self.random.choice(["upsert", "upsert", "update", "insert", "delete", "if", "replace"])
        if kind in ("upsert", "insert", "replace"):
            merge.when_not_matched_insert_all()
            inserted = len(new)
        if kind in ("upsert", "replace"):
            merge.when_matched_update_all()
            updated = len(old)
        elif kind == "update":
            # Columns that the source lacks keep their values.
            table = table.select(["n", "k"])
            merge.when_matched_update_all()
            old = [{**self.rows[row["k"]], "n": row["n"]} for row in old]
            updated = len(old)
        elif kind == "if":
            merge.when_matched_update_all("source.n > target.n")
            pairs = [(row["n"], self.rows[row["k"]]["n"], row) for row in old]
            old = [row for ours, theirs, row in pairs if ours is not None and theirs is not None and ours > theirs]
            updated = len(old)
        elif kind == "delete":
            merge.when_matched_delete()
            deleted = len(old)
            for row in old:
                del self.rows[row["k"]]
        if kind == "replace":
            low = self.random.randrange(200, 1000)
            merge.when_not_matched_by_source_delete(f"n > {low}")
            matched = {row["k"] for row in rows}
            gone = [key for key, row in self.rows.items() if key not in matched and (row["n"] or 0) > low]
            deleted = len(gone)
            for key in gone:
                del self.rows[key]
        counts = merge.execute(table)
        assert tuple(counts.values()) == (inserted, updated, deleted), (kind, counts)
        self.rows.update((row["k"], row) for row in [*(old if updated else []), *(new if inserted else [])])
        return f"merge_insert, {kind} {[row['k'] for row in rows]}"

    def overwrite(self, library: Library) -> str:
        self.types = dict(BASE)
        rows = self.new_rows(self.random.randrange(5, 40))
        library.write_dataset(self.table(rows), self.uri, mode="overwrite", max_rows_per_file=10)
        self.rows = {row["k"]: row for row in rows}
        self.ids = {}
        return f"overwrite {len(rows)}"

    def add_column(self, library: Library) -> str:
        self.names += 1
        name, factor = f"c{self.names}", self.random.randrange(2, 9)
        library.dataset(self.uri).add_columns({name: f"k * {factor}"})
        self.types[name] = pa.int64()
        for row in self.rows.values():
            row[name] = row["k"] * factor
        return f"add column {name} = k * {factor}"

    def add_nulls(self, library: Library) -> str:
        self.names += 1
        name = f"c{self.names}"
        library.dataset(self.uri).add_columns(pa.field(name, pa.string()))
        self.types[name] = pa.string()
        for row in self.rows.values():
            row[name] = None
        return f"add nulls {name}"

    def drop_column(self, library: Library) -> str:
        if not self.extra():
            return "nothing, no column to drop"
        name = self.random.choice(self.extra())
        library.dataset(self.uri).drop_columns([name])
        del self.types[name]
        for row in self.rows.values():
            del row[name]
        return f"drop column {name}"

    def rename_column(self, library: Library) -> str:
        if not self.extra():
            return "nothing, no column to rename"
        self.names += 1
        old, new = self.random.choice(self.extra()), f"c{self.names}"
        library.dataset(self.uri).alter_columns({"path": old, "name": new})
        self.types = {new if name == old else name: type_ for name, type_ in self.types.items()}
        self.rows = {k: {new if n == old else n: v for n, v in row.items()} for k, row in self.rows.items()}
        return f"rename column {old} to {new}"

    def compact(self, library: Library) -> str:
        """At once, or as workers do it; with a small target several groups, some of large fragments."""
        target = self.random.choice([1024, 60, 15])
        options = {
            "target_rows_per_fragment": target,
            "materialize_deletions_threshold": self.random.choice([0.1, 0.0]),
        }
        if self.random.random() < 0.5:
            metrics = library.dataset(self.uri).optimize.compact_files(**options)
        else:
            compaction = importlib.import_module(f"{library.__name__}.optimize").Compaction
            dataset = library.dataset(self.uri)
            plan = compaction.plan(dataset, options)
            metrics = compaction.commit(dataset, [task.execute(dataset) for task in plan.tasks])
        return f"compact to {target}: {metrics}"

    def restore(self, library: Library) -> str:
        number = self.random.choice(sorted(self.snapshots)[-12:])
        library.dataset(self.uri, version=number).restore()
        self.rows, self.types, self.ids = copy.deepcopy(self.snapshots[number])
        return f"restore {number}"

    def append_elsewhere(self, library: Library) -> str:
        """To a base path of the table, a new one if it has none (a restore forgets those that came since)."""
        known = [base.name for base in esker.dataset(self.uri).base_paths().values() if base.name]
        if not known:
            self.names += 1
            known = [f"b{self.names}"]
            base = library.DatasetBasePath(f"{self.uri}-{known[0]}", known[0], self.random.random() < 0.5)
            library.dataset(self.uri).add_bases([base])
            version = esker.dataset(self.uri).version
            self.snapshots[version] = copy.deepcopy((self.rows, self.types, self.ids))
        rows = self.new_rows(self.random.randrange(1, 20))
        library.write_dataset(self.table(rows), self.uri, mode="append", max_rows_per_file=5, target_bases=known)
        self.rows.update((row["k"], row) for row in rows)
        return f"append {len(rows)} to {known}"

    def clone(self, library: Library) -> str:
        """The walk goes on in a table that borrows this one's files."""
        self.names += 1
        source = esker.dataset(self.uri)
        target = f"{self.uri.partition('-clone')[0]}-clone{self.names}"
        library.dataset(self.uri).shallow_clone(target, source.version)
        self.uri = target
        self.snapshots = {source.version: copy.deepcopy((self.rows, self.types, self.ids))}
        return f"clone to {target}"

    # The walk.

    def create(self, library: Library) -> None:
        rows = self.new_rows(30)
        library.write_dataset(
            self.table(rows),
            self.uri,
            max_rows_per_file=11,
            data_storage_version=self.version,
            enable_stable_row_ids=self.stable,
        )
        self.rows = {row["k"]: row for row in rows}
        self.history.append(f"{library.__name__}: create")
        self.check()

    def turn(self) -> None:
        operations = [self.append] * 3 + [self.delete] * 4 + [self.update] * 5 + [self.merge_insert] * 2
        operations += [self.add_column, self.add_nulls, self.drop_column, self.rename_column]
        operations += [self.compact] * 3
        operations += [self.restore] * 2 + [self.stale] * 3
        if self.roots:
            operations += [self.append_elsewhere] * 3 + [self.clone]
        if self.random.random() < 0.05:
            operations = [self.overwrite, self.overwrite, self.truncate]
        operation, library = self.random.choice(operations), self.random.choice([lance, esker])
        self.history.append(f"{library.__name__}: {operation.__name__} fails")
        done = operation(library)
        self.history[-1] = f"{library.__name__}: {done}"
        self.check()

    def check(self) -> None:
        system = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
        theirs, ours = lance.dataset(self.uri), esker.dataset(self.uri)
        assert ours.version == theirs.version
        assert ours.schema.names == theirs.schema.names == list(self.types)
        assert ours.count_rows() == theirs.count_rows() == len(self.rows)
        found = ours.to_table(columns=[*self.types, *system])
        expected = theirs.to_table(columns=[*self.types, *system])
        assert found.to_pylist() == expected.to_pylist()
        rows = {row["k"]: {name: row[name] for name in self.types} for row in found.to_pylist()}
        assert found.num_rows == len(rows), "a key came twice"
        assert rows == self.rows
        if self.stable:
            self.check_ids(found)
        self.snapshots[ours.version] = copy.deepcopy((self.rows, self.types, self.ids))

    def check_ids(self, found: pa.Table) -> None:
        ids = {row["k"]: (row["_rowid"], row["_row_created_at_version"]) for row in found.to_pylist()}
        assert len({rowid for rowid, _ in ids.values()}) == len(ids), "an id came twice"
        for key, known in self.ids.items():
            if key in ids:
                assert ids[key] == known, f"row {key} was {known}, is {ids[key]}"
        self.ids = ids
        keys = self.random.sample(sorted(ids), min(5, len(ids)))
        taken = esker.dataset(self.uri).take_rows([ids[key][0] for key in keys], columns=["k"])
        assert taken["k"].to_pylist() == keys


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("roots", [False, True], ids=["one root", "several roots"])
def test_both_libraries_take_turns_on_one_table(uri: str, roots: bool, stable: bool, version: str) -> None:
    turns = Turns(uri, SEED, stable=stable, version=version, roots=roots)
    try:
        turns.create(turns.random.choice([lance, esker]))
        for _ in range(TURNS):
            turns.turn()
    except Exception as error:
        raise AssertionError(
            f"seed {SEED}, turn {len(turns.history)}: {error}\n" + "\n".join(turns.history[-40:])
        ) from error
