"""What code beside pylance relies on beyond names: words of messages, the kinds of errors, and the form of texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pytest

import esker

LIBRARIES: list[Any] = [esker, lance]


def _table(library: Any, uri: str, **options: Any) -> Any:
    return library.write_dataset(pa.table({"id": [1, 2, 3], "n": [10, 20, 30]}), uri, **options)


def _commit_without_time(library: Any, uri: str) -> None:
    dataset = _table(library, uri)
    append = library.LanceOperation.Append([library.LanceFragment.create(uri, pa.table({"id": [4], "n": [40]}))])
    library.LanceDataset.commit(dataset, append, read_version=1, commit_timeout=timedelta(0))


def _blobs(library: Any, uri: str) -> Any:
    schema = pa.schema([library.blob_field("blob", inline_size_threshold=4096)])
    rows = pa.table({"blob": library.blob_array([b"abc", b"defg"])}, schema=schema)
    return library.write_dataset(rows, uri, data_storage_version="2.2")


def _append_of_other_thresholds(library: Any, uri: str) -> None:
    _blobs(library, uri)
    schema = pa.schema([library.blob_field("blob", inline_size_threshold=1024)])
    library.write_dataset(pa.table({"blob": library.blob_array([b"x"])}, schema=schema), uri, mode="append")


def _ingest_and_leave(library: Any, uri: str) -> None:
    rows = pa.table({"blob": library.blob_array([b"x"])})
    options = {"external_blob_mode": "ingest", "allow_external_blob_outside_bases": True}
    library.write_dataset(rows, uri, data_storage_version="2.2", **options)


def _unknown_base(library: Any, uri: str) -> None:
    merge = _table(library, uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.target_bases(["elsewhere"]).execute(pa.table({"id": [1], "n": [0]}))


def _late_project(library: Any, uri: str) -> None:
    dataset = _table(library, uri)
    dataset.alter_columns({"path": "n", "nullable": False})
    schema = dataset.read_transaction(2).operation.schema
    _table(library, uri, mode="append", schema=dataset.schema)
    project = library.LanceOperation.Project(schema=schema, preserves_nullability=False)
    library.LanceDataset.commit(uri, project, read_version=2)


REFUSED: dict[str, tuple[Callable[[Any, str], object], type[Exception], str]] = {
    "no time": (_commit_without_time, OSError, "non-zero"),
    "no versions": (
        lambda library, uri: _table(library, uri).cleanup_old_versions(retain_versions=0),
        OSError,
        "retain_versions must be greater than 0, got 0",
    ),
    "no files": (
        lambda library, uri: _table(library, uri).explain_cleanup_old_versions(max_files=0),
        ValueError,
        "max_files must be positive",
    ),
    "a column that is there": (
        lambda library, uri: _table(library, uri).add_columns(pa.field("id", pa.float32())),
        Exception,
        re.escape("Type conflicts between id(Int64) and id(Float32)"),
    ),
    "an offset beyond": (
        lambda library, uri: _table(library, uri).get_fragment(0).delete_rows([3]),
        ValueError,
        "offset 3 is out of range",
    ),
    "a fragment of nothing": (
        lambda library, uri: library.LanceFragment.create(uri, pd.DataFrame([{}])),
        OSError,
        "nothing was written|empty schema",
    ),
    "other thresholds": (_append_of_other_thresholds, OSError, "Cannot append data with blob threshold metadata"),
    "ingest and leave": (_ingest_and_leave, OSError, 'only applies when external_blob_mode="reference"'),
    "a range past all": (
        lambda library, uri: _blobs(library, uri).read_blob_ranges("blob", [(0, 2**64 - 1, 2)], selector="indices"),
        ValueError,
        r"offset \+ length overflowed",
    ),
    "a range past the blob": (
        lambda library, uri: _blobs(library, uri).read_blob_ranges("blob", [(0, 0, 4)], selector="indices"),
        ValueError,
        "exceeds blob size",
    ),
    "a range past the file": (
        lambda library, uri: _blobs(library, uri).take_blobs("blob", indices=[0])[0].read_ranges([(1, 9)]),
        ValueError,
        "exceeds blob size",
    ),
    "no buffer": (
        lambda library, uri: _blobs(library, uri).read_blobs("blob", indices=[0], io_buffer_size=0),
        ValueError,
        "io_buffer_size must be greater than 0",
    ),
    "an unknown base": (_unknown_base, Exception, "not found in available bases"),
    "a late project": (_late_project, Exception, "preempted"),
    "ids twice": (lambda library, _: library.fragment.RowIdSequence([3, 1, 3]), ValueError, "Row ids must be unique"),
    "ids of halves": (
        lambda library, _: library.fragment.RowIdSequence(pa.array([1.5])),
        TypeError,
        "array of integers",
    ),
    "a null id": (lambda library, _: library.fragment.RowIdSequence(pa.array([1, None])), Exception, "not be null"),
    "ids below": (lambda library, _: library.fragment.RowIdSequence(range(-1, 2)), ValueError, "non-negative"),
    "ids below, in Arrow": (lambda library, _: library.fragment.RowIdSequence(pa.array([-1])), ValueError, "uint64"),
    "one id": (lambda library, _: library.fragment.RowIdSequence(5), TypeError, "iterable of integers"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_it_with_the_same_words(name: str, library: Any, uri: str) -> None:
    act, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        act(library, uri)


@pytest.mark.parametrize("count", [0, 2, 10, 12])
def test_row_ids_are_shown_alike(count: int) -> None:
    assert repr(esker.fragment.RowIdSequence(range(count))) == repr(lance.fragment.RowIdSequence(range(count)))


def test_the_metadata_of_a_fragment_are_shown_alike() -> None:
    values = '{"id": 3, "files": [{"path": "a.lance", "fields": [0]}], "deletion_file": null, "physical_rows": 9}'
    shown = [repr(library.FragmentMetadata.from_json(values)) for library in LIBRARIES]
    assert shown[0] == shown[1]


def test_data_files_have_names_that_object_stores_can_spread(uri: str) -> None:
    for library in LIBRARIES:
        _table(library, uri, mode="append")
    esker.dataset(uri).optimize.compact_files()
    for path in Path(uri, "data").iterdir():
        assert re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", path.name)


def test_frames_take_the_options_of_scans_and_of_arrow(uri: str) -> None:
    dataset = _table(esker, uri)
    for source in (dataset, dataset.get_fragment(0)):
        frame = source.to_pandas(columns=["n"], filter="id > 1", limit=1, types_mapper=pd.ArrowDtype, blob_mode="bytes")
        assert frame["n"].tolist() == [20]
        assert frame["n"].dtype == pd.ArrowDtype(pa.int64())


@pytest.mark.parametrize("container", ["struct", "list", "large list", "struct in a list"])
def test_upserts_of_other_columns_keep_blobs_in_structs_and_lists(container: str, uri: str) -> None:
    field, blobs = esker.blob_field("blob"), esker.blob_array([b"one", b"two", None])
    struct = pa.StructArray.from_arrays([blobs], fields=[field])
    offsets = pa.array([0, 2, 2, 3], pa.int32())
    nested: dict[str, pa.Array] = {
        "struct": struct,
        "list": pa.ListArray.from_arrays(offsets, blobs, type=pa.list_(field)),
        "large list": pa.LargeListArray.from_arrays(offsets.cast("int64"), blobs, type=pa.large_list(field)),
        "struct in a list": pa.ListArray.from_arrays(offsets, struct),
    }
    rows = pa.table({"id": [1, 2, 3], "nested": nested[container], "other": [10, 20, 30]})
    dataset = esker.write_dataset(rows, uri, data_storage_version="2.2")

    def shown(library: Any) -> pa.Table:
        return library.dataset(uri).to_table(blob_handling="all_binary").sort_by("id")

    before = shown(esker)["nested"].to_pylist()
    dataset.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [2, 3], "other": [200, 300]}))
    for library in LIBRARIES:
        assert shown(library)["nested"].to_pylist() == before
        assert shown(library)["other"].to_pylist() == [10, 200, 300]


def test_row_ids_can_be_set_on_a_fragment_for_an_update_by_hand(uri: str) -> None:
    dataset = _table(esker, uri, enable_stable_row_ids=True, max_rows_per_file=2)
    first = dataset.get_fragments()[0].delete("id = 2")
    (new,) = esker.fragment.write_fragments(pa.table({"id": [2], "n": [99]}), uri)
    new.row_id_meta = esker.fragment.RowIdSequence([1]).to_inline_metadata()
    operation = esker.LanceOperation.Update(updated_fragments=[first], new_fragments=[new])
    esker.LanceDataset.commit(uri, operation, read_version=1)
    for library in LIBRARIES:
        rows = library.dataset(uri).to_table(columns=["id", "n"], with_row_id=True).sort_by("id")
        assert rows["_rowid"].to_pylist() == [0, 1, 2]
        assert rows["n"].to_pylist() == [10, 99, 30]


@pytest.mark.parametrize("named", ["uri", "relative"])
def test_the_uri_of_a_table_among_the_target_bases_is_its_own_root(
    named: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = esker.DatasetBasePath(str(tmp_path / "base"), "cold")
    dataset = _table(esker, uri, initial_bases=[base])
    monkeypatch.chdir(Path(uri).parent)
    root = uri if named == "uri" else Path(uri).name
    merge = dataset.merge_insert("id").when_not_matched_insert_all().target_bases([root, "cold"])
    merge.execute(pa.table({"id": [9], "n": [90]}))
    (file,) = esker.dataset(uri).get_fragments()[-1].data_files()
    assert file.base_id is None
    assert lance.dataset(uri).count_rows() == 4
