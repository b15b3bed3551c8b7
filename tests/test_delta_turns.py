"""esker and deltalake write to one Delta table in turns, at random, beside a plain list of rows.

`ESKER_TURNS=500` runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.delta import DeltaTable, write_deltalake

SCHEMA = pa.schema(
    [("id", pa.int64()), ("p", pa.string()), ("x", pa.float64()), ("s", pa.struct([("t", pa.string())]))]
)
PARTITIONS = ["a", "b c", "é/:%", None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(PARTITIONS),
        st.one_of(st.none(), st.floats(allow_nan=False, width=32)),
        st.one_of(st.none(), st.text(alphabet="ab\x00é\U0010ffff", max_size=40)),
    ),
    min_size=1,
    max_size=4,
)
TURNS = st.one_of(
    st.tuples(st.sampled_from(["append", "theirs append", "overwrite", "theirs overwrite"]), ROWS),
    st.tuples(st.sampled_from(["replace", "theirs delete", "theirs update", "replace half"]), st.integers(0, 30)),
    st.tuples(st.sampled_from(["checkpoint", "theirs checkpoint", "theirs optimize", "stale append"]), st.none()),
)


class Model:
    """The rows that must be there."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.next = 0

    def new(self, rows: list[Any]) -> pa.Table:
        """New rows, with ids of their own."""
        made = []
        for p, x, t in rows:
            made.append({"id": self.next, "p": p, "x": x, "s": None if t is None else {"t": t}})
            self.next += 1
        self.rows += made
        return pa.Table.from_pylist(made, SCHEMA)

    def keep(self, wanted: Any) -> None:
        """Only these rows stay."""
        self.rows = [row for row in self.rows if wanted(row)]


def take_turn(path: Path, model: Model, turn: str, argument: Any) -> None:
    """One write, in the table and in the model."""
    theirs = deltalake.DeltaTable(path)
    if turn == "append":
        write_deltalake(path, model.new(argument), mode="append")
    elif turn == "theirs append":
        deltalake.write_deltalake(path, model.new(argument), mode="append")
    elif turn == "overwrite":
        model.rows = []
        write_deltalake(path, model.new(argument), mode="overwrite")
    elif turn == "theirs overwrite":
        model.rows = []
        deltalake.write_deltalake(path, model.new(argument), mode="overwrite")
    elif turn == "replace":
        model.keep(lambda row: row["p"] != "b c")
        write_deltalake(path, model.new([("b c", 1.5, "r")]), mode="overwrite", predicate="p = 'b c'")
    elif turn == "replace half":
        model.keep(lambda row: row["id"] < argument)
        new = model.new([("a", None, "h")])
        if model.rows[-1]["id"] < argument:
            model.rows.pop()
            new = new.slice(0, 0)
        write_deltalake(path, new, mode="overwrite", predicate=f"id >= {argument}")
    elif turn == "theirs delete":
        theirs.delete(f"id % 3 = {argument % 3}")
        model.keep(lambda row: row["id"] % 3 != argument % 3)
    elif turn == "theirs update":
        theirs.update({"x": "7.5"}, predicate=f"id < {argument}")
        for row in model.rows:
            row["x"] = 7.5 if row["id"] < argument else row["x"]
    elif turn == "checkpoint":
        DeltaTable(path).create_checkpoint()
    elif turn == "theirs checkpoint":
        theirs.create_checkpoint()
    elif turn == "theirs optimize":
        theirs.optimize.compact()
    elif turn == "stale append":
        ours = DeltaTable(path)
        deltalake.write_deltalake(path, model.new([("a", 0.5, None)]), mode="append")
        write_deltalake(ours, model.new([(None, -0.5, "z")]), mode="append")


@settings(
    max_examples=int(os.environ.get("ESKER_TURNS", "15")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(TURNS, min_size=3, max_size=14), st.booleans(), st.booleans())
def test_turns(tmp_path_factory: pytest.TempPathFactory, turns: list[Any], partitioned: bool, ours: bool) -> None:
    path = tmp_path_factory.mktemp("turns")
    model = Model()
    write: Any = write_deltalake if ours else deltalake.write_deltalake
    properties = {"delta.checkpointInterval": "4"}
    write(path, model.new([("a", 1.0, "x")]), partition_by=["p"] if partitioned else None, configuration=properties)
    for turn, argument in turns:
        take_turn(path, model, turn, argument)
        found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
        assert found == model.rows, turn
    theirs = deltalake.DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert theirs == model.rows
    for row in model.rows:
        assert row["id"] in DeltaTable(path).to_pyarrow_table(filters=[("id", "=", row["id"])])["id"].to_pylist()
        if row["s"] is not None and "\x00" not in row["s"]["t"]:
            where = "s.t = '{}'".format(row["s"]["t"])
            assert row["id"] in DeltaTable(path).to_pyarrow_table(filters=where)["id"].to_pylist()
