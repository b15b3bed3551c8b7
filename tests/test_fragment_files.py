"""Fragments of files that are in place, takes from one fragment, and whether a table is whole."""

import os
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker.exceptions import (
    CorruptFileError,
    InvalidArgumentError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedError,
)
from esker.fragment import write_fragments

ROWS = pa.table(
    {
        "a": [1, 2, 3],
        "s": pa.array([{"x": n, "y": {"z": str(n)}} for n in range(3)]),
        "l": pa.array([[1], [2, 3], None]),
    }
)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_a_file_that_is_in_place_becomes_a_fragment(tmp_path: Path, version: str) -> None:
    rows = ROWS.drop_columns(["s", "l"]) if version == "0.1" else ROWS
    dataset = esker.write_dataset(rows, str(tmp_path), data_storage_version=version)
    written = dataset.get_fragments()[0].metadata.files[0]
    made = esker.LanceFragment.create_from_file(written.path, dataset, 5)
    found = made.files[0]
    assert (made.id, made.physical_rows) == (5, 3)
    for name in ("fields", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes"):
        assert getattr(found, name) == getattr(written, name), name
    shutil.copy(tmp_path / "data" / written.path, tmp_path / "data" / "again.lance")
    made = esker.LanceFragment.create_from_file("again.lance", dataset, 0)
    esker.LanceDataset.commit(dataset, esker.LanceOperation.Append([made]), read_version=1)
    assert lance.dataset(str(tmp_path)).to_table() == pa.concat_tables([rows, rows])


def test_a_file_that_is_not_of_the_table_is_refused(tmp_path: Path) -> None:
    dataset = esker.write_dataset(ROWS, str(tmp_path / "t"))
    other = esker.write_dataset(pa.table({"a": ["text"]}), str(tmp_path / "o"))
    name = other.get_fragments()[0].metadata.files[0].path
    shutil.copy(tmp_path / "o" / "data" / name, tmp_path / "t" / "data" / "other.lance")
    with pytest.raises(SchemaMismatchError, match="found 'a' of type string"):
        esker.LanceFragment.create_from_file("other.lance", dataset, 0)
    with pytest.raises(NotFoundError):
        esker.LanceFragment.create_from_file("none.lance", dataset, 0)


def test_a_session_takes_as_the_fragment_does(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(100), "b": range(100)}), str(tmp_path), max_rows_per_file=60)
    dataset.delete("a % 7 = 3")
    theirs = lance.dataset(str(tmp_path))
    for ours, other in zip(dataset.get_fragments(), theirs.get_fragments(), strict=True):
        for with_address in (False, True):
            session = ours.open_session(["b"], with_row_address=with_address)
            expected = other.open_session(columns=["b"], with_row_address=with_address)
            # pylance takes rising numbers alone.
            for indices in ([0, 5, 7], [9], list(range(20))):
                assert session.take(indices).to_pydict() == expected.take(indices).to_pydict()


def test_columns_are_joined_by_what_rows_are_called(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(10)}), str(tmp_path), max_rows_per_file=4)
    dataset.delete("a = 5")
    ids = dataset.to_table(columns=["a"], with_row_id=True)
    dataset.merge(pa.table({"_rowid": ids["_rowid"], "b": pc.multiply(ids["a"], 2)}), "_rowid")
    merged = []
    for fragment in dataset.get_fragments():
        rows = fragment.scanner(columns=["a"], with_row_address=True).to_table()
        part = pa.table({"_rowaddr": rows["_rowaddr"], "c": pc.multiply(rows["a"], 3)})
        metadata, schema = fragment.merge(part, "_rowaddr")
        merged.append(metadata)
    operation = esker.LanceOperation.Merge(merged, schema)
    dataset = esker.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    found = lance.dataset(str(tmp_path)).to_table().to_pylist()
    assert found == [{"a": a, "b": a * 2, "c": a * 3} for a in range(10) if a != 5]


def test_a_function_goes_on_where_it_failed(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(100)}), str(tmp_path / "t"), max_rows_per_file=20)
    kept = tmp_path / "kept.sqlite"
    seen: list[int] = []

    def double(batch: pa.RecordBatch, fails_from: int = 1000) -> pa.RecordBatch:
        first = batch["a"][0].as_py()
        seen.append(first)
        if first >= fails_from:
            raise RuntimeError("no more")
        return pa.record_batch([pc.multiply(batch["a"], 2)], ["twice"])

    schema = pa.schema([("twice", pa.int64())])
    failing = esker.batch_udf(schema, checkpoint_file=kept)(lambda batch: double(batch, 50))
    with pytest.raises(RuntimeError, match="no more"):
        dataset.add_columns(failing)
    assert (dataset.version, kept.exists(), seen) == (1, True, [0, 20, 40, 60])
    seen.clear()
    dataset.add_columns(esker.batch_udf(schema, checkpoint_file=kept)(double))
    assert seen == [60, 80]
    assert not kept.exists()
    assert lance.dataset(dataset.uri).to_table()["twice"].to_pylist() == list(range(0, 200, 2))
    kept.write_bytes(b"no database, as long as its first bytes")
    with pytest.raises(CorruptFileError, match="choose another checkpoint_file"):
        esker.batch_udf(schema, checkpoint_file=kept)(double)


def test_a_column_that_is_null_whatever_the_table_holds_writes_no_file(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(10)}), str(tmp_path))
    dataset.add_columns({"b": "CAST(NULL AS INT)", "c": "CAST(NULL AS STRING)"})
    assert len(dataset.get_fragments()[0].data_files()) == 1
    assert dataset.schema.types == [pa.int64(), pa.int32(), pa.string()]
    dataset.add_columns({"d": "CAST(NULL AS INT)", "e": "a + 1", "f": "nullif(a, a)"})
    assert len(dataset.get_fragments()[0].data_files()) == 2
    assert lance.dataset(str(tmp_path)).to_table() == dataset.to_table()


def test_results_of_one_fragment_are_not_kept(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(10)}), str(tmp_path / "t"))
    function = esker.batch_udf(checkpoint_file=tmp_path / "kept")(lambda batch: batch)
    with pytest.raises(InvalidArgumentError, match="A checkpoint file cannot be used"):
        dataset.get_fragments()[0].merge_columns(function)


def test_a_function_of_changing_columns_is_refused(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": range(10)}), str(tmp_path), max_rows_per_file=5)
    names = iter("bcdef")
    with pytest.raises(InvalidArgumentError, match="does not match the expected schema: expected b: int64"):
        dataset.add_columns(lambda batch: pa.record_batch([batch["a"]], [next(names)]))


def test_a_table_that_is_whole_passes_and_a_damaged_one_does_not(tmp_path: Path) -> None:
    dataset = esker.write_dataset(ROWS, str(tmp_path), enable_stable_row_ids=True)
    dataset = esker.write_dataset(ROWS, dataset, mode="append")
    dataset.delete("a = 2")
    dataset.add_columns({"b": "a + 1"})
    dataset.validate()
    lance.dataset(str(tmp_path)).validate()
    file = tmp_path / "data" / dataset.get_fragments()[1].metadata.files[0].path
    whole = file.read_bytes()
    os.remove(file)
    with pytest.raises(NotFoundError):
        esker.dataset(str(tmp_path)).validate()
    file.write_bytes(whole[:-1])
    with pytest.raises(CorruptFileError):
        esker.dataset(str(tmp_path)).validate()
    small = esker.write_dataset(ROWS.slice(0, 1), str(tmp_path / "other"))
    shutil.copy(tmp_path / "other" / "data" / small.get_fragments()[0].metadata.files[0].path, file)
    with pytest.raises(CorruptFileError, match="expected 3 rows as fragment 1 has, found 1"):
        esker.dataset(str(tmp_path)).validate()


def test_a_fields_own_key_values_are_told(tmp_path: Path) -> None:
    field = pa.field("a", pa.int64(), metadata={"unit": "m"})
    dataset = esker.write_dataset(pa.table([[1]], schema=pa.schema([field])), str(tmp_path))
    assert dataset.lance_schema.fields()[0].metadata == {"unit": "m"}
    assert lance.dataset(str(tmp_path)).lance_schema.fields()[0].metadata == {"unit": "m"}


def test_arguments_of_a_commit_are_refused_where_nothing_is_committed(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    dataset = esker.write_dataset(rows, tmp_path / "t")
    given: dict[str, Any] = {
        "commit_message": "why",
        "application": ("job", 1),
        "transaction_properties": {"by": "me"},
        "enable_stable_row_ids": True,
        "max_retries": 3,
    }
    for name, value in given.items():
        with pytest.raises((TypeError, UnsupportedError), match=name):
            write_fragments(rows, dataset, **{name: value})
        with pytest.raises((TypeError, UnsupportedError), match=name):
            esker.LanceFragment.create(dataset.uri, rows, **{name: value})
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1
