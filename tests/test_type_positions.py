"""Arrow's types at every place where they can stand are taken as pylance takes them, or more."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError
from esker.file import LanceFileReader, LanceFileWriter
from tests.type_positions import LEAVES, cases, difference

VERSIONS = ["2.0", "2.2"]
NULLS = {"nullable": (True, False, False), "required": (False, True, True)}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", LEAVES)
def test_a_type_is_taken_wherever_pylance_takes_it(kind: str, version: str, tmp_path: Path) -> None:
    number = 0
    for with_null, required, required_items in NULLS.values():
        for case in cases(kind, with_null=with_null, required=required, required_items=required_items):
            number += 1
            found = difference(case, version, str(tmp_path / str(number)))
            assert found is None, f"{case.field}: {found}"


@pytest.mark.parametrize("mode", ["append", "merge_insert", "add_columns", "merge", "file"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.field("item", pa.float32(), nullable=False), 2)),
        pa.array([["a"], None], pa.list_view(pa.string_view())),
        pa.array([[("a", "b")], []], pa.map_(pa.string_view(), pa.string_view())),
        pa.array([{"l": [b"x" * 20]}, None], pa.struct([("l", pa.large_list_view(pa.binary_view()))])),
    ],
    ids=lambda column: str(column.type),
)
def test_views_and_required_items_are_taken_on_every_way_in(mode: str, column: pa.Array, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    new = pa.table({"id": [3, 4], "c": column})
    if mode == "file":
        with LanceFileWriter(uri, new.schema, version="2.2") as writer:
            writer.write_batch(new)
        found = LanceFileReader(uri).read_all().to_table()
    elif mode in ("append", "merge_insert"):
        dataset = esker.write_dataset(pa.table({"id": [1, 2], "c": column}), uri, data_storage_version="2.2")
        if mode == "append":
            esker.write_dataset(new, uri, mode="append")
        else:
            dataset.merge_insert("id").when_not_matched_insert_all().execute(new)
        found = esker.dataset(uri).to_table(filter="id > 2")
    else:
        dataset = esker.write_dataset(pa.table({"id": [3, 4]}), uri, data_storage_version="2.2")
        if mode == "merge":
            dataset.merge(new, "id")
        else:
            dataset.add_columns(new.select(["c"]))
        found = dataset.to_table()
    assert found.to_pylist() == new.to_pylist()
    found.validate(full=True)


def test_a_view_of_lists_that_overlap_is_written_in_its_order(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "c", "d"])
    views = pa.ListViewArray.from_arrays(pa.array([3, 0, 1], pa.int32()), pa.array([1, 2, 3], pa.int32()), words)
    dataset = esker.write_dataset(pa.table({"c": views}), str(tmp_path / "t"))
    assert dataset.to_table()["c"].to_pylist() == [["d"], ["a", "b"], ["b", "c", "d"]]
    sliced = esker.write_dataset(pa.table({"c": views.slice(1, 1)}), str(tmp_path / "s"))
    assert sliced.to_table()["c"].to_pylist() == [["a", "b"]]


@pytest.mark.parametrize("sql", ["true", "NULL", "id", "ID", "current_date", "1.5", "'a'", "cast(NULL as int)"])
def test_a_computed_column_is_what_pylance_makes_of_it(sql: str, tmp_path: Path) -> None:
    import lance

    for library in (esker, lance):
        uri = str(tmp_path / library.__name__)
        library.write_dataset(pa.table({"id": [1]}), uri, data_storage_version="2.1")
        library.dataset(uri).add_columns({"x": sql})
        assert lance.dataset(uri).to_table() == esker.dataset(uri).to_table()
    theirs, ours = (str(tmp_path / name) for name in ("lance", "esker"))
    assert esker.dataset(ours).to_table().to_pylist() == lance.dataset(theirs).to_table().to_pylist()
    assert esker.dataset(ours).schema.field("x").type == lance.dataset(theirs).schema.field("x").type


def test_what_cannot_be_written_says_which_column(tmp_path: Path) -> None:
    for kind in ("interval", "run_end_encoded", "decimal32"):
        (case,) = (
            case for case in cases(kind, with_null=False, required=False, required_items=False) if case.place == "alone"
        )
        with pytest.raises(EskerError, match="'c'"):
            esker.write_dataset(case.table(), str(tmp_path / kind))
