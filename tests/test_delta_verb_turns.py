"""esker and deltalake delete, update and merge rows of one table in turns, at random, beside a plain list of rows.

`ESKER_TURNS=500` runs more of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker.delta import DeltaTable, write_deltalake
from tests.delta_rows import rows
from tests.test_delta_delete import read_by_theirs

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64()), ("s", pa.string())])
Row = dict[str, Any]
LAYOUTS: dict[str, dict[str, Any]] = {
    "copy": {"configuration": {"delta.enableChangeDataFeed": "true"}},
    "partitions": {"partition_by": ["p"]},
    "vectors": {"configuration": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}},
    "vectors of partitions": {
        "configuration": {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"},
        "partition_by": ["p"],
    },
}


def _less(name: str, value: Any) -> Callable[[Row], bool]:
    return lambda row: row[name] is not None and row[name] < value


def _equal(name: str, value: Any) -> Callable[[Row], bool]:
    return lambda row: row[name] is not None and row[name] == value


TERMS = st.one_of(
    st.integers(0, 40).map(lambda n: (f"id < {n}", _less("id", n))),
    st.integers(0, 40).map(lambda n: (f"id = {n}", _equal("id", n))),
    st.integers(2, 5).map(lambda n: (f"id % {n} = 1", lambda row: row["id"] % n == 1)),
    st.sampled_from(["a", "b c", "zz"]).map(lambda text: (f"p = '{text}'", _equal("p", text))),
    st.sampled_from(["a", "b c"]).map(lambda text: (f"s = '{text}'", _equal("s", text))),
    st.sampled_from([("p is null", lambda row: row["p"] is None), ("s is null", lambda row: row["s"] is None)]),
    st.sampled_from([-1.5, 0.0, 2.0]).map(lambda n: (f"x < {n}", _less("x", n))),
)


def _and(pair: Any) -> tuple[str, Callable[[Row], bool]]:
    (one, first), (other, second) = pair
    return f"{one} and {other}", lambda row: first(row) and second(row)


def _or(pair: Any) -> tuple[str, Callable[[Row], bool]]:
    (one, first), (other, second) = pair
    return f"({one}) or ({other})", lambda row: first(row) or second(row)


PREDICATES = st.one_of(TERMS, TERMS, st.tuples(TERMS, TERMS).map(_and), st.tuples(TERMS, TERMS).map(_or))
CHANGES: list[tuple[dict[str, str], Callable[[Row], Row]]] = [
    ({"x": "x + 1"}, lambda row: {"x": None if row["x"] is None else row["x"] + 1}),
    ({"s": "p", "x": "id"}, lambda row: {"s": row["p"], "x": float(row["id"])}),
    ({"p": "'b c'"}, lambda row: {"p": "b c"}),
    ({"p": "s", "s": "p"}, lambda row: {"p": row["s"], "s": row["p"]}),
    ({"s": "null"}, lambda row: {"s": None}),
    ({"x": "case when x > 0 then 0 else x end"}, lambda row: {"x": 0.0 if (row["x"] or 0) > 0 else row["x"]}),
]
NEW_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b c", None]),
        st.one_of(st.none(), st.integers(-4, 4).map(float)),
        st.sampled_from(["a", "b c", "é/:%", None]),
    ),
    min_size=1,
    max_size=6,
)
TURNS = st.one_of(
    st.tuples(st.sampled_from(["append", "their append"]), NEW_ROWS),
    st.tuples(st.sampled_from(["delete", "delete", "their delete"]), PREDICATES),
    st.tuples(
        st.sampled_from(["update", "update", "their update", "stale update"]),
        st.tuples(PREDICATES, st.sampled_from(CHANGES)),
    ),
    st.tuples(st.sampled_from(["checkpoint", "compact", "stale delete"]), PREDICATES),
    st.tuples(st.sampled_from(["merge", "merge", "their merge"]), st.tuples(PREDICATES, NEW_ROWS)),
)


class Model:
    """The rows that must be there."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.next = 0

    def new(self, given: list[Any]) -> pa.Table:
        made = []
        for p, x, s in given:
            made.append({"id": self.next, "p": p, "x": x, "s": s})
            self.next += 1
        self.rows += made
        return pa.Table.from_pylist(made, SCHEMA)

    def delete(self, meant: Callable[[Row], bool]) -> int:
        before = len(self.rows)
        self.rows = [row for row in self.rows if not meant(row)]
        return before - len(self.rows)

    def merge(self, meant: Callable[[Row], bool], given: list[Any]) -> tuple[pa.Table, list[int]]:
        """Rows with every other id that is there, and with new ones: what is meant of those found goes, others change.

        Returns:
            The source, and how many rows are inserted, updated and deleted.
        """
        ids = [*(row["id"] for row in self.rows[::2]), *range(self.next, self.next + len(given))][: len(given) + 2]
        self.next += len(given)
        source = [
            {"id": key, **dict(zip(("p", "x", "s"), given[number % len(given)], strict=True))}
            for number, key in enumerate(ids)
        ]
        by_id = {row["id"]: row for row in source}
        kept, counts = [], [0, 0, 0]
        for row in self.rows:
            new = by_id.pop(row["id"], None)
            if new is None:
                kept.append(row)
            elif meant(row):
                counts[2] += 1
            else:
                kept.append({**row, "p": new["p"], "x": new["x"]})
                counts[1] += 1
        counts[0] = len(by_id)
        self.rows = [*kept, *by_id.values()]
        return pa.Table.from_pylist(source, SCHEMA), counts

    def update(self, meant: Callable[[Row], bool], changed: Callable[[Row], Row]) -> int:
        count = sum(map(bool, map(meant, self.rows)))
        self.rows = [{**row, **changed(row)} if meant(row) else row for row in self.rows]
        return count


def _of(alias: str, sql: str) -> str:
    """A predicate whose columns have an alias."""
    return re.sub(r"(?<![\w'])(id|p|s|x)(?![\w'])", rf"{alias}.\1", sql)


def take_turn(path: Path, model: Model, turn: str, argument: Any) -> None:
    """One change, in the table and in the model."""
    kind = turn.removeprefix("their ").removeprefix("stale ")
    table: Any = deltalake.DeltaTable(path) if turn.startswith("their") else DeltaTable(path)
    if turn.startswith("stale"):
        # Another writer lands between. What has nothing to do in its own version does not look at others'.
        meant = argument[0][1] if kind == "update" else argument[1]
        is_idle = not any(map(meant, model.rows))
        deltalake.write_deltalake(path, model.new([("a", 1.0, "a"), (None, None, None)]), mode="append")
        if is_idle:
            told = (
                table.delete(argument[0])
                if kind == "delete"
                else table.update(argument[1][0], predicate=argument[0][0])
            )
            assert told.get("num_deleted_rows", told.get("num_updated_rows")) == 0
            return
    if kind == "append":
        write = deltalake.write_deltalake if turn.startswith("their") else write_deltalake
        write(path, model.new(argument), mode="append")
    elif kind == "delete":
        sql, meant = argument
        assert table.delete(sql).get("num_deleted_rows", 0) == model.delete(meant)
    elif kind == "update":
        (sql, meant), (updates, changed) = argument
        told = table.update(updates, predicate=sql)
        assert told["num_updated_rows"] == model.update(meant, changed)
    elif kind == "merge":
        (sql, meant), given = argument
        source, counts = model.merge(meant, given)
        merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_delete(_of("t", sql))
        merger = merger.when_matched_update({"p": "s.p", "x": "s.x"})
        told = merger.when_not_matched_insert_all().execute()
        assert [told[f"num_target_rows_{done}"] for done in ("inserted", "updated", "deleted")] == counts
    elif kind == "checkpoint":
        table.create_checkpoint()
    else:
        deltalake.DeltaTable(path).optimize.compact()


@settings(max_examples=int(os.environ.get("ESKER_TURNS", "24")) // 4, deadline=None)
@pytest.mark.parametrize("layout", LAYOUTS)
@given(turns=st.lists(TURNS, min_size=2, max_size=9))
def test_any_order_of_turns_keeps_the_models_rows(
    tmp_path_factory: pytest.TempPathFactory, layout: str, turns: list[tuple[str, Any]]
) -> None:
    path, model = tmp_path_factory.mktemp("turns"), Model()
    first = [("a", 1.0, "a"), ("a", -2.0, "b c"), ("b c", None, None), (None, 0.5, "a"), ("b c", 2.0, "é/:%")]
    write_deltalake(path, model.new(first * 2), **LAYOUTS[layout])
    for turn, argument in turns:
        take_turn(path, model, turn, argument)
        expected = rows(pa.Table.from_pylist(model.rows, SCHEMA))
        assert rows(DeltaTable(path).to_pyarrow_table()) == expected, turn
        assert rows(read_by_theirs(path).select(SCHEMA.names)) == expected, turn
        assert DeltaTable(path).count() == len(model.rows), turn
    if "configuration" in LAYOUTS[layout] and "delta.enableChangeDataFeed" in LAYOUTS[layout]["configuration"]:
        assert rows(_replayed(pa.table(DeltaTable(path).load_cdf()))) == expected


def _replayed(feed: pa.Table) -> pa.Table:
    """The rows that a feed leads to: what came, less what went."""
    left: dict[str, tuple[int, Row]] = {}
    for row in feed.to_pylist():
        plain = {name: row[name] for name in SCHEMA.names}
        step = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
        count = left.get(repr(plain), (0, plain))[0] + step
        left[repr(plain)] = (count, plain)
    assert all(count in (0, 1) for count, _ in left.values())
    return pa.Table.from_pylist([row for count, row in left.values() if count], SCHEMA)
