"""Blobs of kind lance.blob.v2: in the data file, in files beside it, and wherever their URIs lead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.blob import Blob, BlobType, blob_array, blob_field
from esker.exceptions import CorruptFileError, EskerError, InvalidArgumentError, UnsupportedError

SIZES = [3, 0, 65_536, 65_537, 100_000, 4_194_304, 4_194_305, 70_000]


def payloads() -> list[bytes | None]:
    return [None, *(bytes([i]) * size for i, size in enumerate(SIZES))]


def table_of(blobs: list[Any], **thresholds: Any) -> pa.Table:
    return pa.table([blob_array(blobs)], schema=pa.schema([blob_field("b", **thresholds)]))


def files_of(uri: Path) -> dict[str, int]:
    """Names, relative to the folder of the data file, and sizes of the files of blobs."""
    (data_file,) = (uri / "data").glob("*.lance")
    return {file.name: file.stat().st_size for file in (uri / "data" / data_file.stem).glob("*")}


WRITERS = {"esker": esker.write_dataset, "pylance": lance.write_dataset}


@pytest.fixture(params=sorted(WRITERS))
def writer(request: pytest.FixtureRequest) -> Any:
    return WRITERS[request.param]


def test_blobs_of_all_sizes_come_back_from_both_readers(tmp_path: Path, writer: Any) -> None:
    writer(table_of(payloads()), str(tmp_path / "t"), data_storage_version="2.2")
    for dataset in (esker.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))):
        assert dataset.to_table(blob_handling="all_binary")["b"].to_pylist() == payloads()
        files = dataset.take_blobs("b", indices=range(len(payloads())))
        assert [None if file is None else file.read() for file in files] == payloads()
        assert dataset.read_blob_ranges("b", [(7, 4_194_300, 5), (5, 1, 2)], selector="indices") == [
            (0, 7, bytes([6]) * 5),
            (1, 5, bytes([4]) * 2),
        ]


@pytest.mark.parametrize(
    "thresholds",
    [
        {},
        {"inline_size_threshold": 0},
        {"inline_size_threshold": 70_000, "dedicated_size_threshold": 90_000},
        {"pack_file_size_threshold": 150_000},
    ],
    ids=str,
)
def test_blobs_go_where_pylance_puts_them(tmp_path: Path, thresholds: dict[str, int]) -> None:
    described = {}
    for name, write in WRITERS.items():
        write(table_of(payloads(), **thresholds), str(tmp_path / name), data_storage_version="2.2")
        rows = esker.dataset(tmp_path / name).to_table()["b"].to_pylist()
        assert rows == lance.dataset(str(tmp_path / name)).to_table()["b"].to_pylist()
        # Where an empty blob lies says nothing.
        described[name] = [row and (row["kind"], row["size"], row["blob_id"]) for row in rows]
    assert described["esker"] == described["pylance"]
    assert files_of(tmp_path / "esker") == files_of(tmp_path / "pylance")


def test_tables_of_either_writer_are_appended_to_by_the_other(tmp_path: Path) -> None:
    for first, second in (("esker", "pylance"), ("pylance", "esker")):
        uri = str(tmp_path / first)
        WRITERS[first](table_of(payloads()), uri, data_storage_version="2.2")
        WRITERS[second](table_of([b"more", None]), uri, mode="append")
        for dataset in (esker.dataset(uri), lance.dataset(uri)):
            found = dataset.to_table(blob_handling="all_binary")["b"].to_pylist()
            assert found == [*payloads(), b"more", None]


def test_binary_is_taken_for_a_blob_column(tmp_path: Path) -> None:
    dataset = esker.write_dataset(table_of([b"a", None]), tmp_path / "t", data_storage_version="2.2")
    for type_ in (pa.binary(), pa.large_binary()):
        dataset.insert(pa.table({"b": pa.array([b"c", None], type_)}))
    assert dataset.to_table(blob_handling="all_binary")["b"].to_pylist() == [b"a", None, b"c", None, b"c", None]
    assert dataset.schema.field("b").type == lance.dataset(str(tmp_path / "t")).schema.field("b").type


def test_blobs_below_structs_and_lists_keep_their_nulls(tmp_path: Path, writer: Any) -> None:
    item = blob_field("item")
    struct = pa.struct([blob_field("inner"), pa.field("n", pa.int32())])
    blobs = blob_array([b"x", None, b"y" * 100_000, b"", b"z"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, None, 5], pa.int32()), blobs, type=pa.list_(item))
    structs = pa.StructArray.from_arrays(
        [blobs.slice(0, 4), pa.array([1, 2, 3, 4], pa.int32())],
        fields=list(struct),
        mask=pa.array([False, False, False, True]),
    )
    table = pa.table([lists, structs], schema=pa.schema([pa.field("l", lists.type), pa.field("s", struct)]))
    writer(table, str(tmp_path / "t"), data_storage_version="2.2")
    ours = esker.dataset(tmp_path / "t")
    theirs = lance.dataset(str(tmp_path / "t"))
    found = ours.to_table(blob_handling="all_binary")
    assert found["l"].to_pylist() == [[b"x", None], [], [b"y" * 100_000, b"", b"z"], None]
    assert found["s"].to_pylist()[3] is None
    assert [row["inner"] for row in found["s"].to_pylist()[:3]] == [b"x", None, b"y" * 100_000]
    assert found.to_pylist() == theirs.to_table(blob_handling="all_binary").to_pylist()
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    files = ours.take_blobs("s.inner", indices=[2, 0, 1, 3])
    assert [None if file is None else file.read() for file in files] == [b"y" * 100_000, b"x", None, None]


def test_blobs_may_stay_where_their_uris_lead(tmp_path: Path, writer: Any) -> None:
    (tmp_path / "photos.bin").write_bytes(bytes(range(200)))
    uri = (tmp_path / "photos.bin").as_uri()
    table = table_of([uri, Blob.from_uri(uri, 3, 4), b"own"])
    writer(table, str(tmp_path / "t"), data_storage_version="2.2", allow_external_blob_outside_bases=True)
    for dataset in (esker.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))):
        expected = [bytes(range(200)), bytes([3, 4, 5, 6]), b"own"]
        assert [blob for _, blob in dataset.read_blobs("b", indices=[0, 1, 2])] == expected
        assert [file and file.size() for file in dataset.take_blobs("b", indices=[0, 1, 2])] == [200, 4, 3]
        assert [row["kind"] for row in dataset.to_table()["b"].to_pylist()] == [3, 3, 0]
    assert esker.dataset(tmp_path / "t").to_table(blob_handling="all_binary")["b"].to_pylist() == expected


def test_blobs_outside_are_copied_or_refused_unless_allowed(tmp_path: Path) -> None:
    (tmp_path / "photos.bin").write_bytes(bytes(range(200)))
    table = table_of([Blob.from_uri((tmp_path / "photos.bin").as_uri(), 3, 4)])
    for write in WRITERS.values():
        with pytest.raises((EskerError, OSError), match="allow_external_blob_outside_bases"):
            write(table, str(tmp_path / "refused"), data_storage_version="2.2")
    assert not list((tmp_path / "refused").glob("data/**/*.lance"))
    dataset = esker.write_dataset(table, tmp_path / "t", data_storage_version="2.2", external_blob_mode="ingest")
    assert dataset.to_table()["b"].to_pylist()[0]["kind"] == 0
    assert dataset.read_blobs("b", indices=[0]) == [(0, bytes([3, 4, 5, 6]))]
    with pytest.raises(InvalidArgumentError, match="only applies when"):
        esker.write_dataset(table, tmp_path / "n", external_blob_mode="ingest", allow_external_blob_outside_bases=True)


def test_a_failed_write_leaves_no_file_of_blobs(tmp_path: Path) -> None:
    blobs = [b"x" * 100_000, b"y" * 5_000_000, "file:///nowhere/at/all"]
    with pytest.raises(InvalidArgumentError, match="outside registered external bases"):
        esker.write_dataset(table_of(blobs), tmp_path / "t", data_storage_version="2.2")
    assert [file for file in (tmp_path / "t").rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("is_too_long", [False, True])
def test_new_columns_that_fail_leave_no_file_of_blobs(is_too_long: bool, tmp_path: Path) -> None:
    dataset = esker.write_dataset(
        pa.table({"id": range(8)}), tmp_path / "t", max_rows_per_file=4, data_storage_version="2.2"
    )
    before = {file for file in (tmp_path / "t").rglob("*") if file.is_file()}
    blobs = blob_array([b"x" * 100, b"y" * 100_000, b"z" * 5_000_000, b"a"])
    schema = pa.schema([blob_field("blob")])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([blobs], schema=schema)
        if not is_too_long:
            raise RuntimeError("broken off")
        yield pa.record_batch([blobs], schema=schema)
        yield pa.record_batch([blobs.slice(0, 1)], schema=schema)

    with pytest.raises((RuntimeError, EskerError), match="broken off|more values"):
        dataset.add_columns(batches(), reader_schema=schema)
    assert {file for file in (tmp_path / "t").rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("mode", ["create", "append"])
def test_a_refused_commit_leaves_no_file_of_blobs(mode: str, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    schema = pa.schema([blob_field("blob")])
    batch = pa.record_batch([blob_array([b"x" * 100, b"y" * 100_000, b"z" * 5_000_000])], schema=schema)
    if mode == "append":
        esker.write_dataset(pa.Table.from_batches([batch]), uri, data_storage_version="2.2")
    before = set(uri.rglob("*.blob"))

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        esker.write_dataset(pa.table({"id": [1]}), uri, mode="overwrite")

    with pytest.raises(EskerError, match="exists already|conflict"):
        esker.write_dataset(batches(), uri, schema=schema, mode=mode, data_storage_version="2.2")
    assert set(uri.rglob("*.blob")) == before


@pytest.mark.parametrize("ends", ["analysed", "refused", "committed"])
def test_an_upsert_that_is_not_committed_leaves_no_file_of_blobs(ends: str, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    schema = pa.schema([("id", pa.int64()), blob_field("blob")])

    def rows(first: int) -> pa.RecordBatch:
        blobs = blob_array([b"x" * 100, b"y" * 100_000, b"z" * 5_000_000])
        return pa.record_batch([pa.array(range(first, first + 3)), blobs], schema=schema)

    dataset = esker.write_dataset(pa.Table.from_batches([rows(0)]), uri, data_storage_version="2.2")
    before = set(uri.rglob("*.blob"))

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(2)
        if ends == "refused":
            esker.write_dataset(pa.table({"id": [1]}), uri, mode="overwrite")

    upsert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    if ends == "analysed":
        upsert.analyze_plan(batches(), schema=schema)
    elif ends == "refused":
        with pytest.raises(EskerError, match="conflict"):
            upsert.execute(batches(), schema=schema)
    else:
        upsert.execute(batches(), schema=schema)
        assert len(set(uri.rglob("*.blob"))) == len(before) + 2
        found = dataset.take_blobs("blob", indices=[2, 3, 4])
        assert [blob and len(blob.readall()) for blob in found] == [100, 100_000, 5_000_000]
        return
    assert set(uri.rglob("*.blob")) == before


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_earlier_versions_refuse_blobs_of_this_kind(tmp_path: Path, version: str) -> None:
    with pytest.raises(UnsupportedError, match="version 2.2 can"):
        esker.write_dataset(table_of([b"x"]), tmp_path / "t", data_storage_version=version)


def test_the_type_and_its_values_are_those_of_pylance() -> None:
    ours, theirs = blob_array([b"x", None, "file:///y"]), lance.blob_array([b"x", None, "file:///y"])
    assert ours.storage == theirs.storage
    assert ours.type.storage_type == theirs.type.storage_type
    assert blob_field("b", inline_size_threshold=7).metadata == lance.blob_field("b", inline_size_threshold=7).metadata
    for wrong in ({"data": b"x", "uri": "y"}, {}, {"uri": ""}, {"uri": "y", "position": 1}, {"data": b"x", "size": 1}):
        for make in (Blob, lance.Blob):
            with pytest.raises(ValueError, match=r"[Bb]lob"):
                make(**wrong)
    with pytest.raises(TypeError, match="bytes-like"):
        blob_array([1])
    for bad, error in ((-1, ValueError), (True, TypeError), (2**64, OverflowError)):
        with pytest.raises(error):
            blob_field("b", inline_size_threshold=bad)


@pytest.mark.parametrize(("position", "size"), [(1, 2), (0, 3), (0, None), (None, 3), (0, 0)])
def test_a_part_of_bytes_is_refused_as_by_pylance(tmp_path: Path, position: int | None, size: int | None) -> None:
    values = {"data": b"abc", "uri": None, "position": position, "size": size}
    blobs = pa.ExtensionArray.from_storage(BlobType(), pa.array([values], BlobType().storage_type))
    table = pa.table([blobs], schema=pa.schema([blob_field("b")]))
    for write in WRITERS.values():
        with pytest.raises(OSError, match="position"):
            write(table, str(tmp_path / "t"), data_storage_version="2.2")


@pytest.mark.parametrize(("registers", "expected"), [("import esker", "struct"), ("import esker.blob", "extension")])
def test_blobs_that_pyarrow_read_are_written_whether_their_type_is_registered_or_not(
    tmp_path: Path, registers: str, expected: str
) -> None:
    rows = pa.table({"b": esker.blob_array([b"x", None])})
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    program = f"""if True:
        {registers}
        import pyarrow as pa
        rows = pa.ipc.open_file("b.arrow").read_all()
        assert str(rows.schema.field("b").type).startswith({expected!r})
        import esker
        dataset = esker.write_dataset(rows, "t", data_storage_version="2.2")
        assert isinstance(dataset.schema.field("b").type, esker.BlobType)
        assert dataset.take_blobs("b", indices=[0])[0].read() == b"x"
    """
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


@pytest.mark.parametrize(
    "read",
    [
        lambda ds: ds.take_blobs("b", indices=[0])[0].read(),
        lambda ds: ds.take_blobs("b", indices=[0])[0].read_range(0, 50),
        lambda ds: ds.read_blobs("b", indices=[0]),
        lambda ds: ds.read_blob_ranges("b", [(0, 0, 50)], selector="indices"),
    ],
    ids=["file", "range of a file", "blobs", "ranges"],
)
def test_an_object_outside_that_is_too_short_is_an_oserror(read: Any, writer: Any, tmp_path: Path) -> None:
    (tmp_path / "photos.bin").write_bytes(bytes(100))
    table = table_of([Blob.from_uri((tmp_path / "photos.bin").as_uri(), 90, 50)])
    writer(table, str(tmp_path / "t"), allow_external_blob_outside_bases=True)
    for library in (lance, esker):
        with pytest.raises(OSError, match="photos.bin|fill whole buffer") as caught:
            list(read(library.dataset(str(tmp_path / "t"))))
    assert isinstance(caught.value, CorruptFileError)
