"""Random changes beside pylance and a plain model, and the faults of pylance that they step around."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from tests.fuzzing import change_faults as faults
from tests.fuzzing.changes import run
from tests.fuzzing.plain_table import Clauses, PlainTable


@pytest.mark.parametrize("first_seed", range(0, 400, 100))
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
    assert merge.execute(rows)["num_updated_rows"] == 1, f"no longer: {faults.HIDDEN}"


def test_pylance_inserts_no_rows_without_a_key_from_structs_that_lack_fields(tmp_path: Path) -> None:
    rows = pa.table({"k": [1], "s": [{"a": 1, "b": 2}]})
    source = pa.table({"k": pa.array([None, 2]), "s": [{"a": 3}, {"a": 4}]})
    said = []
    for module in (lance, esker):
        dataset = module.write_dataset(rows, tmp_path / module.__name__)
        merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        said.append(merge.execute(source)["num_inserted_rows"])
    assert said == [1, 2], f"no longer: {faults.NULLS_LEFT_OUT}"


def test_pylance_copies_an_extension_column_as_its_storage(tmp_path: Path) -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    types = []
    for module in (lance, esker):
        dataset = module.write_dataset(pa.table({"u": uuids}), tmp_path / module.__name__)
        dataset.add_columns({"copy": "u"})
        types.append(dataset.schema.field("copy").type)
    assert types == [pa.binary(16), pa.uuid()], f"no longer: {faults.BARE_COPIES}"


def test_pylance_computes_new_values_from_new_ones(tmp_path: Path) -> None:
    names = ["b", "c", "d", "e"]
    rows = pa.table({"a": [1], **{name: [0] for name in names}})
    updates = {"a": "a - 2", **dict.fromkeys(names, "a")}
    wanted = [{"a": -1, **dict.fromkeys(names, 1)}]
    found = []
    # Which column comes first is for chance to say.
    for turn in range(10):
        dataset = lance.write_dataset(rows, tmp_path / f"{turn}")
        dataset.update(updates)
        found.append(dataset.to_table().to_pylist())
    assert any(made != wanted for made in found), f"no longer: {faults.NEW_VALUES_SEEN}"
    ours = esker.write_dataset(rows, tmp_path / "ours")
    ours.update(updates)
    assert ours.to_table().to_pylist() == wanted


ROWS = pa.table({"k": [1, 2], "v": [1, 2], "s": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]})
PART = pa.table({"k": [2, 3], "v": [20, 30], "s": [{"a": 20}, {"a": 30}]})
REFUSED: dict[str, Callable[[Any], Any]] = {
    "missing from merge insert input schema": lambda ds: (
        ds.merge_insert("k").when_matched_delete().when_not_matched_by_source_delete().execute(ROWS)
    ),
    "does not exist in source struct": lambda ds: (
        ds.merge_insert("k").when_not_matched_by_source_delete("v > 1").execute(PART)
    ),
    "Not supported: Deleting rows from the target": lambda ds: (
        ds.merge_insert("k").when_matched_update_all().when_not_matched_by_source_delete().execute(PART)
    ),
    "Not supported: Combining when_matched": lambda ds: (
        ds.merge_insert("k").when_matched_delete().when_not_matched_insert_all().execute(PART)
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_pylance_refuses_what_can_be_done(text: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=text):
        REFUSED[text](lance.write_dataset(ROWS, tmp_path / "theirs"))
    REFUSED[text](esker.write_dataset(ROWS, tmp_path / "ours"))


def test_pylance_merges_no_columns_of_a_source_without_rows(tmp_path: Path) -> None:
    source = ROWS.select(["k", "v"]).slice(0, 0)
    for module in (esker, lance):
        dataset = module.write_dataset(ROWS, tmp_path / module.__name__)
        merge = dataset.merge_insert("k").when_matched_update_all().write_mode("rewrite_columns")
        if module is esker:
            assert merge.execute(source)["num_updated_rows"] == 0
        else:
            with pytest.raises(OSError, match="RewriteColumns cannot express this"):
                merge.execute(source)


def test_pylance_reads_no_fragment_that_no_column_is_left_of(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"k": [1], "c": [2]}), tmp_path / "t")
    dataset = lance.write_dataset(pa.table({"c": [3]}), tmp_path / "t", mode="append")
    dataset.drop_columns(["c"])
    with pytest.raises(ValueError, match="does not contain any data"):
        dataset.to_table()
    assert esker.dataset(tmp_path / "t").to_table().to_pylist() == [{"k": 1}, {"k": None}]


def test_pylance_leaves_a_file_that_it_finds_invalid(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(ROWS, uri)
    for module in (esker, lance):
        dataset: Any = module.dataset(uri)
        fragment, fields = dataset.get_fragments()[0].update_columns(ROWS.select(["k", "s"]), "k")
        operation = module.LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
        module.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    with pytest.raises(OSError, match="did not have any fields in common"):
        lance.dataset(uri).validate()
    assert lance.dataset(uri).to_table() == esker.dataset(uri).to_table() == ROWS


def test_pylance_cuts_bools_below_null_structs_wrongly(tmp_path: Path) -> None:
    values = [None, None, False, True, True, True, True, True, None, True, True, True, False, None, True]
    nulls = pa.array([n in (3, 5, 6, 8, 11, 14) for n in range(len(values))])
    rows = pa.table({"s": pa.StructArray.from_arrays([pa.array(values)], ["a"], mask=nulls)})
    with pytest.raises(OSError, match="null_bit_buffer size too small"):
        lance.write_dataset(rows, tmp_path / "theirs", max_rows_per_file=7, data_storage_version="2.2")
    ours = esker.write_dataset(rows, tmp_path / "ours", max_rows_per_file=7, data_storage_version="2.2")
    assert lance.dataset(ours.uri).to_table()["s"].to_pylist() == rows["s"].to_pylist()
