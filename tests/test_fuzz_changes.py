"""Random changes beside pylance and a plain model, and the faults of pylance that they step around."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from tests.fuzzing.changes import run
from tests.fuzzing.plain_table import Clauses, PlainTable


@pytest.mark.parametrize("first_seed", range(0, 500, 100))
def test_random_changes_make_what_pylance_and_a_plain_model_make(first_seed: int) -> None:
    told: list[str] = []
    failed, _ = run(100, first_seed, told.append)
    assert failed == 0, "\n\n".join(told)


def test_a_seed_replays_its_case(tmp_path: Path) -> None:
    from tests.fuzzing.changes import Case

    logs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        case = Case(7, tmp_path / name)
        case.run()
        logs.append(case.log)
    assert logs[0] == logs[1]


def test_the_plain_model_keeps_what_a_partial_struct_lacks() -> None:
    whole = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    table = PlainTable(
        pa.schema([("k", pa.int64()), ("s", whole)]), [{"k": 1, "s": {"a": 1, "b": 2}}, {"k": 2, "s": None}]
    )
    source = pa.table({"k": [1, 2, 3], "s": pa.array([None, None, {"a": 4}], pa.struct([("a", pa.int64())]))})
    said = table.merge(source, Clauses(["k"], "update", None, True, False, None))
    assert said == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 0}
    assert [row["s"] for row in table.rows] == [{"a": None, "b": 2}, None, {"a": 4, "b": None}]


def test_pylance_sees_what_lies_below_a_null_struct(tmp_path: Path) -> None:
    struct = pa.StructArray.from_arrays([pa.array([1, 50])], ["a"], mask=pa.array([False, True]))
    rows = pa.table({"k": [1, 2], "s": struct})
    theirs = lance.write_dataset(pa.table({"k": [1, 2], "s": [{"a": 0}] * 2}), tmp_path / "t")
    merge = theirs.merge_insert("k").when_matched_update_all("source.s.a > 2")
    assert merge.execute(rows)["num_updated_rows"] == 1, "it sees the 50 no more: known_fault need not step around it"


def test_pylance_finds_null_keys_equal_in_a_join(tmp_path: Path) -> None:
    rows, other = pa.table({"k": pa.array([None, 1])}), pa.table({"k": pa.array([None], pa.int64()), "v": ["null"]})
    found = []
    for module in (lance, esker):
        dataset = module.write_dataset(rows, tmp_path / module.__name__)
        dataset.merge(other, "k")
        found.append(dataset.to_table()["v"].to_pylist())
    assert found == [["null", None], [None, None]]


def test_pylance_does_not_plan_a_merge_of_deletes_alone(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "v": [1, 2]})
    theirs = lance.write_dataset(rows, tmp_path / "theirs")
    ours = esker.write_dataset(rows, tmp_path / "ours")
    for filter in (None, "v > 1"):
        with pytest.raises(OSError, match="missing from merge insert input schema|not supported|Internal error"):
            theirs.merge_insert("k").when_matched_delete().when_not_matched_by_source_delete(filter).execute(rows)
    merge = ours.merge_insert("k").when_matched_delete().when_not_matched_by_source_delete()
    assert merge.execute(rows.slice(0, 1))["num_deleted_rows"] == 2
