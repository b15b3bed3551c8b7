"""Verbs of a simulated writer of Delta tables that change rows, and what each does to the rows.

The table's level is `Serializable`: a version is the one before it, changed as its verb changes rows, whatever version
the verb was computed from.
"""

from __future__ import annotations

from functools import partial

from esker.commit.orphans import StagedFiles
from esker.delta import DeltaTable
from esker.delta.change.changed_table import ChangedTable
from esker.delta.change.files import ChangedFiles
from esker.delta.log.changes import read_change
from esker.delta.log.commit import CommitRequest, DeltaCommit, LogEntry
from esker.delta.log.conflict import ReadSet
from esker.delta.log.entries import newest_version
from esker.exceptions import NotFoundError
from tests.simulation import model
from tests.simulation.actor import Actor, Attempt
from tests.simulation.model import Change, Condition, Rows, State
from tests.simulation.writer import table

VERBS = [("delete", 4), ("update", 5), ("merge", 6), ("rewrite", 3), ("vacuum", 2)]
KEYS = 10
"""Keys below it are there for all writers."""


class DeltaVerbs(Actor):
    """Deletes, updates, merges, moves rows to other files, removes files that no newer version has."""

    def _condition(self) -> Condition:
        number, part = self.random.choice([2, 3, 5]), self.random.randrange(3)
        return self.random.choice(
            [
                Condition(f"id % {number} = {part}", "modulo", number, part),
                Condition(f"id = {part} or id = 5", "two", 0, part),
                Condition("n > 60", "large"),
                Condition("id >= 1000 and n < 50", "small"),
            ]
        )

    def _told(self, change: Change, first: int, rows: int) -> None:
        if not rows:
            # It may have looked at a newer version than its handle has gone to.
            change.idle = first, newest_version(self.simulation.inner)

    def _delete(self, change: Change) -> Attempt:
        holds = self._condition()

        def delete() -> None:
            found = DeltaTable(self.uri)
            first = found.version()
            self._told(change, first, found.delete(holds.sql)["num_deleted_rows"])

        return partial(deleted, holds), delete

    def _update(self, change: Change) -> Attempt:
        holds, step = self._condition(), self.random.randrange(1, 9)

        def update() -> None:
            found = DeltaTable(self.uri)
            first = found.version()
            told = found.update({"n": f"n + {step}"}, predicate=holds.sql)
            self._told(change, first, told["num_updated_rows"])

        return partial(updated, holds, step), update

    def _merge(self, change: Change) -> Attempt:
        source = {key: self.random.randrange(100) for key in self.random.sample(range(KEYS), 3)}
        kind = self.random.choice(["upsert", "mixed", "insert", "by_source"])

        def merge() -> None:
            found = DeltaTable(self.uri)
            first = found.version()
            merger = found.merge(table(source), "t.id = s.id", "s", "t")
            if kind == "mixed":
                merger = merger.when_matched_delete("s.n < 30")
            if kind != "insert":
                merger = merger.when_matched_update({"n": "t.n + s.n"})
            if kind == "by_source":
                merger = merger.when_not_matched_by_source_delete("t.id >= 1000 and t.n < 30")
                merger = merger.when_not_matched_by_source_update({"n": "t.n + 1"}, "t.id >= 1000 and t.n < 60")
            else:
                merger = merger.when_not_matched_insert({"id": "s.id", "n": "s.n"})
            told = merger.execute()
            self._told(change, first, sum(told[f"num_target_rows_{d}"] for d in ("inserted", "updated", "deleted")))

        return partial(merged, kind, source), merge

    def _rewrite(self, change: Change) -> Attempt:
        """All rows move to one file, as a compaction moves them: `dataChange` is false."""

        def rewrite() -> None:
            found = DeltaTable(self.uri)
            if not compact(found):
                change.idle = found.version(), found.version()

        return model.same, rewrite

    def _vacuum(self, change: Change) -> Attempt:
        """Files go that were removed, and that the newest version does not have."""

        def vacuum() -> None:
            target = DeltaTable(self.uri)._write_target()
            live = {file.path for file in ChangedTable(target, None).scan.table_files()}
            for version in range(target.read_version + 1):
                for path in read_change(target.store, "", version).removes:
                    if path not in live:
                        try:
                            target.store.delete(path)
                        except NotFoundError:
                            continue

        return model.same, vacuum


def compact(found: DeltaTable) -> bool:
    """Moves all rows of a table to one file; whether there was anything to move."""
    target = found._write_target()
    changed = ChangedTable(target, None, removes_rows=False)
    files = changed.candidates()
    if not files:
        return False
    with StagedFiles() as staged:
        with ChangedFiles(changed, staged, None, keeps_changes=False) as writer:
            for file in files:
                writer.remove(file)
                for batch in changed.scan.read(file.file, changed.names):
                    writer.write(batch)
            actions = [(name, {**fields, "dataChange": False}) for name, fields in writer.close()]
        read = ReadSet(files=frozenset(file.file.path for file in files))
        DeltaCommit(target, LogEntry("OPTIMIZE", {}, actions, read), CommitRequest()).run(staged)
    return True


def deleted(holds: Condition, before: State, snapshot: State, history: model.History) -> State:
    """Rows gone that a condition holds for."""
    return _with(before, {key: value for key, value in before.rows.items() if not holds(key, value)})


def updated(holds: Condition, step: int, before: State, snapshot: State, history: model.History) -> State:
    """`n + step` in rows that a condition holds for."""
    return _with(before, {k: v + step if holds(k, v) else v for k, v in before.rows.items()})


def merged(kind: str, source: Rows, before: State, snapshot: State, history: model.History) -> State:
    """Rows changed by those of a source."""
    made: Rows = {}
    for key, value in before.rows.items():
        if key in source:
            if kind == "mixed" and source[key] < 30:
                continue
            made[key] = value if kind == "insert" else value + source[key]
        elif kind == "by_source" and key >= 1000 and value < 30:
            continue
        else:
            made[key] = value + (kind == "by_source" and key >= 1000 and value < 60)
    if kind != "by_source":
        made |= {key: value for key, value in source.items() if key not in before.rows}
    return _with(before, made)


def _with(before: State, rows: Rows) -> State:
    return State(rows, before.columns, before.config)
