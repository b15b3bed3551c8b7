"""Random turns of esker and pylance on one table, in which either compacts, tags, branches, clones and asks by SQL.

A plain dictionary says what every version, tag and branch must hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError

Rows = dict[int, int]
SEEDS = 4
STEPS = 20


class Turns:
    """A table, and what each of its lines and names must hold."""

    def __init__(self, seed: int, uri: str) -> None:
        self.random = random.Random(seed)
        self.uri = uri
        self.next = 0
        self.lines: dict[str | None, Rows] = {None: {}}
        self.tags: dict[str, Rows] = {}
        self.clones: list[tuple[str, Rows]] = []
        rows = self._fresh(30)
        self.lines[None] = dict(rows)
        self.log: list[str] = []
        options: dict[str, Any] = {
            "data_storage_version": self.random.choice(["2.0", "2.1", "2.2"]),
            "enable_stable_row_ids": self.random.random() < 0.5,
            "max_rows_per_file": 7,
        }
        self._peer().write_dataset(_table(rows), uri, **options)
        if options["enable_stable_row_ids"] and self.random.random() < 0.5:
            config: dict[str, str | None] = {
                "lance.row_lineage.spill": "true",
                "lance.row_lineage.inline_max_bytes": "0",
            }
            esker.dataset(uri).update_config(config)

    def _peer(self) -> Any:
        return self.random.choice([esker, lance])

    def _fresh(self, count: int) -> Rows:
        start, self.next = self.next, self.next + count
        return {key: key * 10 for key in range(start, start + count)}

    def _line(self) -> str | None:
        return self.random.choice(list(self.lines))

    def _uri(self, line: str | None) -> str:
        return self.uri if line is None else f"{self.uri}/tree/{line}"

    def step(self) -> None:
        """One turn of either library on some line, and a look at that line by both."""
        line, peer = self._line(), self._peer()
        verb = self.random.choice(list(VERBS))
        self.log.append(f"{peer.__name__} {verb} {line}")
        VERBS[verb](self, line, peer, peer.dataset(self._uri(line)))
        self.check(line)

    def check(self, line: str | None) -> None:
        """Both find on a line what the model says, by scans, counts and queries."""
        expected = self.lines[line]
        for peer in (esker, lance):
            dataset = peer.dataset(self._uri(line))
            assert _found(dataset) == expected, (peer.__name__, self.log)
            low = self.random.randrange(self.next + 1)
            kept = {key: value for key, value in expected.items() if key >= low}
            assert dataset.count_rows(f"k >= {low}") == len(kept), (peer.__name__, self.log)
            query = f"SELECT count(*) AS n, sum(v) AS s FROM t WHERE k >= {low} AND v IS NOT NULL"
            (answer,) = pa.Table.from_batches(dataset.sql(query).table_name("t").build().to_batch_records()).to_pylist()
            assert (answer["n"], answer["s"] or 0) == (len(kept), sum(kept.values())), (peer.__name__, self.log)

    def finish(self) -> None:
        """All lines, tags and clones."""
        for line in self.lines:
            self.check(line)
        for name, rows in self.tags.items():
            for peer in (esker, lance):
                assert _found(peer.dataset(self.uri).checkout_version(name)) == rows, (peer.__name__, name, self.log)
        for uri, rows in self.clones:
            for peer in (esker, lance):
                assert _found(peer.dataset(uri)) == rows, (peer.__name__, uri, self.log)


def _table(rows: Rows) -> pa.Table:
    return pa.table({"k": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.int64())})


def _found(dataset: Any) -> Rows:
    rows = dataset.to_table(columns=["k", "v"])
    found = dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert len(found) == rows.num_rows
    return found


def _append(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    rows = turns._fresh(turns.random.choice([1, 5, 20]))
    peer.write_dataset(_table(rows), turns._uri(line), mode="append", max_rows_per_file=9)
    turns.lines[line] |= rows


def _delete(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    by, rest = turns.random.choice([(3, 1), (7, 2), (2, 0)])
    dataset.delete(f"k % {by} = {rest}")
    turns.lines[line] = {key: value for key, value in turns.lines[line].items() if key % by != rest}


def _update(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    by = turns.random.choice([2, 5])
    dataset.update({"v": "v + 1"}, where=f"k % {by} = 0")
    turns.lines[line] = {key: value + (key % by == 0) for key, value in turns.lines[line].items()}


def _upsert(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    rows = turns._fresh(2)
    there = list(turns.lines[line])
    rows |= {key: -key for key in turns.random.sample(there, min(3, len(there)))}
    dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(_table(rows))
    turns.lines[line] |= rows


def _compact(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=turns.random.choice([10, 40, 1000]))


def _stale(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    """A compaction that was computed before others deleted: ours carries the deletes, pylance's gives up."""
    ours = esker.dataset(turns._uri(line))
    plan = esker.optimize.Compaction.plan(ours, {"target_rows_per_fragment": 1000})
    results = [task.execute(ours) for task in plan.tasks]
    _delete(turns, line, peer, dataset)
    if results:
        esker.optimize.Compaction.commit(esker.dataset(turns._uri(line)), results)


def _tag(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    name = f"t{len(turns.tags)}"
    peer.dataset(turns.uri).tags.create(name, (line, dataset.version))
    turns.tags[name] = dict(turns.lines[line])


def _branch(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    if len(turns.lines) < 4:
        name = f"b{len(turns.lines)}"
        peer.dataset(turns.uri).create_branch(name, (line, dataset.version))
        turns.lines[name] = dict(turns.lines[line])


def _clone(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    if line is None and len(turns.clones) < 3:
        uri = f"{turns.uri}-clone{len(turns.clones)}"
        dataset.shallow_clone(uri, dataset.version)
        turns.clones.append((uri, dict(turns.lines[line])))


def _restore(turns: Turns, line: str | None, peer: Any, dataset: Any) -> None:
    versions = [one["version"] for one in dataset.versions()]
    old = peer.dataset(turns._uri(line), version=turns.random.choice(versions[-4:]))
    rows = _found(old)
    old.restore()
    turns.lines[line] = rows


VERBS: dict[str, Callable[[Turns, str | None, Any, Any], None]] = {
    "appends": _append,
    "deletes": _delete,
    "updates": _update,
    "upserts": _upsert,
    "compacts": _compact,
    "compacts late": _stale,
    "tags": _tag,
    "branches": _branch,
    "clones": _clone,
    "restores": _restore,
}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_turns_with_compaction_tags_branches_clones_and_queries(seed: int, uri: str) -> None:
    turns = Turns(seed, uri)
    for _ in range(STEPS):
        try:
            turns.step()
        except EskerError as error:
            raise AssertionError(turns.log) from error
    turns.finish()
