"""Blob columns against pylance: written by either, read by both, as bytes, descriptions and files."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import IO, Any, cast

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, UnsupportedError

BLOB = {"lance-encoding:blob": "true"}
VERSIONS = ["2.0", "2.1", "2.2"]


def blob_field(name: str = "blob") -> pa.Field:
    return pa.field(name, pa.large_binary(), metadata=BLOB)


def some_blobs(count: int, seed: int = 1) -> list[bytes | None]:
    chance = random.Random(seed)
    sizes = [0, 1, 10, 64, 1000, 20_000]
    return [None if chance.random() < 0.2 else chance.randbytes(chance.choice(sizes)) for _ in range(count)]


def table_of(blobs: list[bytes | None]) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64()), blob_field()])
    return pa.table([pa.array(range(len(blobs))), pa.array(blobs, pa.large_binary())], schema=schema)


def struct_table(blobs: list[bytes | None]) -> pa.Table:
    """Blobs in a struct."""
    struct = pa.struct([blob_field("inner"), pa.field("n", pa.int32())])
    records = [{"inner": blob, "n": i} for i, blob in enumerate(blobs)]
    return pa.table([pa.array(records, struct)], schema=pa.schema([pa.field("struct", struct)]))


def nested_table(blobs: list[bytes | None]) -> pa.Table:
    """Blobs in a struct, in a list, and in structs in lists."""
    struct = pa.struct([blob_field("inner"), pa.field("n", pa.int32())])
    lists = [None if i % 7 == 3 else blobs[i : i + i % 4] for i in range(len(blobs))]
    records = [{"inner": blob, "n": i} for i, blob in enumerate(blobs)]
    schema = pa.schema(
        [
            pa.field("struct", struct),
            pa.field("list", pa.list_(blob_field("item"))),
            pa.field("structs", pa.large_list(pa.field("item", struct))),
        ]
    )
    columns = [
        pa.array(records, struct),
        pa.array(lists, schema.field("list").type),
        pa.array([records[i : i + i % 3] for i in range(len(blobs))], schema.field("structs").type),
    ]
    return pa.table(columns, schema=schema)


WRITERS = {"esker": esker.write_dataset, "pylance": lance.write_dataset}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=sorted(WRITERS))
def writer(request: pytest.FixtureRequest) -> Any:
    return WRITERS[request.param]


def both(uri: Path) -> list[Any]:
    return [esker.dataset(uri), lance.dataset(str(uri))]


def skip_lists(make: Any, version: str) -> None:
    if make is nested_table and version == "2.1":
        pytest.skip("nobody reads lists of blobs of version 2.1 back")


@pytest.mark.parametrize("make", [table_of, struct_table, nested_table])
def test_blobs_of_either_writer_come_back_from_both_readers(
    tmp_path: Path, writer: Any, version: str, make: Any
) -> None:
    skip_lists(make, version)
    table = make(some_blobs(300))
    writer(table, str(tmp_path / "t"), data_storage_version=version, max_rows_per_file=110)
    for dataset in both(tmp_path / "t"):
        assert dataset.to_table(blob_handling="all_binary").to_pylist() == table.to_pylist()
    ours, theirs = both(tmp_path / "t")
    assert ours.schema == theirs.schema
    assert ours.schema.field(-1).metadata == theirs.schema.field(-1).metadata


@pytest.mark.parametrize("make", [table_of, struct_table, nested_table])
@pytest.mark.parametrize("handling", [None, "blobs_descriptions", "all_descriptions"])
def test_a_scan_describes_blobs_as_pylance_does(
    tmp_path: Path, writer: Any, version: str, make: Any, handling: str | None
) -> None:
    skip_lists(make, version)
    writer(make(some_blobs(50)), str(tmp_path / "t"), data_storage_version=version)
    ours, theirs = (d.to_table(blob_handling=handling) for d in both(tmp_path / "t"))
    assert ours.schema == theirs.schema
    assert ours.to_pylist() == theirs.to_pylist()


def test_take_head_and_fragments_show_blobs_as_pylance_does(tmp_path: Path, version: str) -> None:
    esker.write_dataset(table_of(some_blobs(50)), tmp_path / "t", data_storage_version=version)
    ours, theirs = both(tmp_path / "t")
    assert ours.take([7, 3, 3, 40]).to_pylist() == theirs.take([7, 3, 3, 40]).to_pylist()
    assert ours.head(5).to_pylist() == theirs.head(5).to_pylist()
    assert (
        ours.head(5, blob_handling="all_binary").to_pylist() == theirs.head(5, blob_handling="all_binary").to_pylist()
    )
    ours, theirs = (d.get_fragments()[0] for d in (ours, theirs))
    assert ours.take([3, 7]).to_pylist() == both(tmp_path / "t")[1].take([3, 7]).to_pylist(), "as datasets do"
    if version == "2.2":
        return  # pylance's fragments cannot take blobs there.
    assert ours.take([3, 7], blob_handling="all_binary").to_pylist() == theirs.take([3, 7]).to_pylist()
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()


def test_takes_of_datasets_and_fragments_agree_about_blobs(tmp_path: Path, version: str) -> None:
    blobs = some_blobs(50)
    dataset = esker.write_dataset(table_of(blobs), tmp_path / "t", data_storage_version=version)
    (fragment,) = dataset.get_fragments()
    for handling in (None, "all_binary", "blobs_descriptions", "all_descriptions"):
        taken = [one.take([7, 3, 3], blob_handling=handling) for one in (dataset, fragment)]
        assert taken[0] == taken[1] == dataset.to_table(blob_handling=handling).take([7, 3, 3])
    whole = fragment.take([7, 3], blob_handling="all_binary")
    assert whole.column(whole.num_columns - 1).to_pylist() == [blobs[7], blobs[3]]
    for one in (dataset, fragment):
        with pytest.raises(InvalidArgumentError, match="Invalid blob_handling"):
            one.take([1], blob_handling="some")


def test_a_filter_knows_null_blobs_and_their_sizes(tmp_path: Path, writer: Any, version: str) -> None:
    blobs = some_blobs(200)
    writer(table_of(blobs), str(tmp_path / "t"), data_storage_version=version)
    dataset = esker.dataset(tmp_path / "t")
    nulls = [i for i, blob in enumerate(blobs) if blob is None]
    large = [i for i, blob in enumerate(blobs) if blob is not None and len(blob) > 900]
    assert dataset.to_table(["id"], "blob IS NULL")["id"].to_pylist() == nulls
    assert dataset.count_rows("blob IS NOT NULL") == len(blobs) - len(nulls)
    found = dataset.to_table(filter="blob.size > 900 AND blob IS NOT NULL", blob_handling="all_binary")
    assert found["id"].to_pylist() == large
    assert found["blob"].to_pylist() == [blobs[i] for i in large]


def test_sizes_are_a_column_without_reading_blobs(tmp_path: Path, version: str) -> None:
    blobs = [b"x" * 100_000] * 20
    dataset = esker.write_dataset(table_of(list(blobs)), tmp_path / "t", data_storage_version=version)
    dataset = esker.dataset(tmp_path / "t")
    dataset.count_rows()
    dataset.io_stats()
    assert dataset.to_table(["blob.size"])["blob.size"].to_pylist() == [100_000] * 20
    assert dataset.io_stats().read_bytes < 70_000  # The file's tail and the descriptions.


@pytest.mark.parametrize("names", ["ids", "addresses", "indices"])
def test_take_blobs_keeps_order_and_duplicates_as_pylance(
    tmp_path: Path, writer: Any, version: str, names: str
) -> None:
    writer(table_of(some_blobs(90)), str(tmp_path / "t"), data_storage_version=version, max_rows_per_file=30)
    rows = [80, 3, 3, 41, 0, 30, 29] if names == "indices" else [2 << 32 | 5, 1, 1, 1 << 32, 29]
    ours, theirs = (d.take_blobs("blob", **{names: rows}) for d in both(tmp_path / "t"))
    contents = [[None if file is None else (file.size(), file.read()) for file in files] for files in (ours, theirs)]
    assert contents[0] == contents[1]
    ours, theirs = (d.read_blobs("blob", **{names: rows}, preserve_order=True) for d in both(tmp_path / "t"))
    assert ours == theirs
    requests = [(row, 0, 0) for row in rows]
    ours, theirs = (d.read_blob_ranges("blob", requests, selector=names) for d in both(tmp_path / "t"))
    assert ours == theirs


def test_take_blobs_counts_live_rows_and_refuses_deleted_ones(tmp_path: Path, version: str) -> None:
    blobs = some_blobs(60)
    esker.write_dataset(table_of(blobs), tmp_path / "t", data_storage_version=version, max_rows_per_file=20)
    lance.dataset(str(tmp_path / "t")).delete("id < 5 OR id = 22")
    ours, theirs = both(tmp_path / "t")
    rows = [0, 16, 15, 53]
    contents = [
        [None if file is None else file.read() for file in dataset.take_blobs("blob", indices=rows)]
        for dataset in (ours, theirs)
    ]
    assert contents[0] == contents[1]
    assert ours.read_blobs("blob", indices=rows) == theirs.read_blobs("blob", indices=rows)
    with pytest.raises(UnsupportedError, match="must not target deleted rows: .* is deleted"):
        ours.take_blobs("blob", addresses=[1 << 32 | 2])


def test_take_blobs_in_a_struct(tmp_path: Path, writer: Any, version: str) -> None:
    blobs = some_blobs(40)
    writer(struct_table(blobs), str(tmp_path / "t"), data_storage_version=version)
    files = esker.dataset(tmp_path / "t").take_blobs("struct.inner", indices=range(40))
    assert [None if file is None else file.read() for file in files] == blobs


def test_take_blobs_refuses_what_makes_no_sense(tmp_path: Path, version: str) -> None:
    dataset = esker.write_dataset(table_of(some_blobs(10)), tmp_path / "t", data_storage_version=version)
    assert dataset.take_blobs("blob", indices=[]) == []
    with pytest.raises(ValueError, match="is not a blob column"):
        dataset.take_blobs("id", indices=[0])
    with pytest.raises(InvalidArgumentError, match="Field 'nope' not found: expected a column"):
        dataset.take_blobs("nope", indices=[0])
    with pytest.raises(IndexError, match="row number 10 is out of range"):
        dataset.take_blobs("blob", indices=[10])
    with pytest.raises(InvalidArgumentError, match="row address 10 is out of range"):
        dataset.take_blobs("blob", ids=[10])
    with pytest.raises(InvalidArgumentError, match="fragment 5"):
        dataset.take_blobs("blob", addresses=[5 << 32])
    with pytest.raises(ValueError, match="Exactly one of ids, indices, or addresses"):
        dataset.take_blobs("blob", ids=[1], indices=[1])
    with pytest.raises(InvalidArgumentError, match="selector must be one of"):
        dataset.read_blob_ranges("blob", [(0, 0, 1)], selector="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid blob_handling"):
        dataset.to_table(blob_handling="bytes")


def one_file(tmp_path: Path, version: str, blob: bytes, buffer_size: int = 512 * 1024) -> tuple[Any, Any]:
    esker.write_dataset(table_of([b"a" * 999, blob]), tmp_path / "t", data_storage_version=version)
    dataset = esker.dataset(tmp_path / "t")
    (file,) = dataset.take_blobs("blob", indices=[1], buffer_size=buffer_size)
    dataset.io_stats()
    return dataset, file


def test_a_blob_file_reads_only_what_is_asked(tmp_path: Path, version: str) -> None:
    blob = random.Random(3).randbytes(3_000_000)
    dataset, file = one_file(tmp_path, version, blob)

    def cost() -> tuple[int, int]:
        stats = dataset.io_stats()
        return stats.read_iops, stats.read_bytes

    assert file.size() == 3_000_000
    assert cost() == (0, 0)
    assert file.seek(1_000_000) == 1_000_000
    assert file.tell() == 1_000_000
    assert cost() == (0, 0)
    assert file.read(10) == blob[1_000_000:1_000_010]
    assert cost() == (1, 10)
    # A read that follows the last one reads ahead, and those after it cost nothing.
    assert file.read(10) == blob[1_000_010:1_000_020]
    assert cost() == (1, 512 * 1024)
    assert file.read(1000) == blob[1_000_020:1_001_020]
    assert cost() == (0, 0)
    assert file.read_range(5, 7) == blob[5:12]
    assert cost() == (1, 7)
    assert file.tell() == 1_001_020
    assert file.seek(-5, io.SEEK_END) == 2_999_995
    assert file.readall() == blob[-5:]
    assert cost() == (1, 5)
    assert file.read(1) == b""
    assert cost() == (0, 0)
    assert file.seek(4_000_000) == 4_000_000
    assert file.read() == b""
    file.seek(0)
    assert file.read() == blob
    assert cost()[1] == 3_000_000


def test_without_a_buffer_nothing_is_read_ahead(tmp_path: Path, version: str) -> None:
    dataset, file = one_file(tmp_path, version, bytes(range(256)) * 4, buffer_size=0)
    assert [file.read(3) for _ in range(3)] == [bytes([0, 1, 2]), bytes([3, 4, 5]), bytes([6, 7, 8])]
    assert dataset.io_stats().read_bytes == 9


@pytest.mark.parametrize(("size", "error"), [(-1, ValueError), (True, TypeError), (1.5, TypeError), (None, TypeError)])
def test_a_wrong_buffer_is_refused_even_for_no_rows(tmp_path: Path, size: Any, error: type[Exception]) -> None:
    esker.write_dataset(table_of([b"x"]), tmp_path / "t", data_storage_version="2.1")
    for dataset in both(tmp_path / "t"):
        for rows in ([], [0]):
            with pytest.raises(error, match="buffer_size must be"):
                dataset.take_blobs("blob", indices=rows, buffer_size=size)


def test_a_blob_file_is_a_file(tmp_path: Path, version: str) -> None:
    text = b"first\nsecond\nthird"
    _, file = one_file(tmp_path, version, text)
    assert isinstance(file, io.BufferedIOBase)
    assert file.readable()
    assert file.seekable()
    assert not file.writable()
    assert list(file) == [b"first\n", b"second\n", b"third"]
    file.seek(0)
    assert list(io.TextIOWrapper(cast(IO[bytes], file))) == ["first\n", "second\n", "third"]
    assert file.closed is True


def test_a_blob_file_fills_buffers_and_closes(tmp_path: Path, version: str) -> None:
    _, file = one_file(tmp_path, version, b"0123456789")
    with file as opened:
        into = bytearray(4)
        assert opened.readinto(into) == 4
        assert into == b"0123"
        assert opened.readinto(memoryview(into)[1:3]) == 2
        assert into == b"0453"
        assert opened.seek(2, io.SEEK_CUR) == 8
        assert opened.readinto(into) == 2
        assert into == b"8953"
        with pytest.raises(TypeError, match="read-write"):
            opened.readinto(b"0000")
        with pytest.raises(ValueError, match="negative seek value -1"):
            opened.seek(-1)
        with pytest.raises(ValueError, match="Invalid whence"):
            opened.seek(0, 9)
        with pytest.raises(InvalidArgumentError, match="within the blob's 10 bytes"):
            opened.read_range(5, 6)
    assert file.closed
    for use in (file.read, file.tell, lambda: file.seek(0), lambda: file.read_range(0, 1)):
        with pytest.raises(ValueError, match="closed file"):
            use()


def test_whole_blobs_that_lie_together_are_read_together(tmp_path: Path, version: str) -> None:
    blobs: list[bytes | None] = [bytes([i]) * 1000 for i in range(200)]
    esker.write_dataset(table_of(blobs), tmp_path / "t", data_storage_version=version)
    dataset = esker.dataset(tmp_path / "t")
    dataset.read_blobs("blob", indices=[0])
    dataset.io_stats()
    found = dataset.read_blobs("blob", indices=range(200))
    assert found == list(enumerate(blobs))
    assert dataset.io_stats().read_iops <= 4


def test_appends_and_copies_bring_their_blobs(tmp_path: Path, version: str) -> None:
    first, second = some_blobs(20, 1), some_blobs(20, 2)
    dataset = esker.write_dataset(table_of(first), tmp_path / "a", data_storage_version=version)
    dataset.insert(table_of(second))
    copy = esker.write_dataset(dataset, tmp_path / "b", data_storage_version=version)
    for found in (dataset, copy, lance.dataset(str(tmp_path / "b"))):
        assert found.to_table(blob_handling="all_binary")["blob"].to_pylist() == first + second
    assert lance.dataset(str(tmp_path / "b")).schema == lance.dataset(str(tmp_path / "a")).schema
    assert copy.to_table()["blob"].type == dataset.to_table()["blob"].type


def test_a_column_without_a_file_has_null_blobs(tmp_path: Path, version: str) -> None:
    lance.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "t"), data_storage_version=version)
    field = esker.blob_field("more") if version == "2.2" else blob_field("more")
    lance.dataset(str(tmp_path / "t")).add_columns(field)
    dataset = esker.dataset(tmp_path / "t")
    assert dataset.take_blobs("more", indices=[0, 1]) == [None, None]
    assert dataset.to_table(["more"])["more"].to_pylist() == [None, None]
    assert dataset.to_table(["more"], blob_handling="all_binary")["more"].to_pylist() == [None, None]


def test_data_frames_hold_files_bytes_or_descriptions(tmp_path: Path, version: str) -> None:
    blobs = [b"abc", None, b"", b"de"]
    esker.write_dataset(table_of(list(blobs)), tmp_path / "t", data_storage_version=version)
    dataset = esker.dataset(tmp_path / "t")
    frame = dataset.to_pandas()
    assert list(frame.columns) == ["id", "blob"]
    assert [None if file is None else file.read() for file in frame["blob"]] == blobs
    assert list(dataset.to_pandas(blob_mode="bytes")["blob"]) == blobs
    assert list(dataset.to_pandas(blob_mode="descriptions")["blob"]) == dataset.to_table()["blob"].to_pylist()
    renamed = dataset.to_pandas(columns={"photo": "blob"}, filter="id = 3")
    assert [file.read() for file in renamed["photo"]] == [b"de"]
    esker.write_dataset(struct_table(list(blobs)), tmp_path / "n", data_storage_version=version)
    inner = [row["inner"] for row in esker.dataset(tmp_path / "n").to_pandas(columns=["struct"])["struct"]]
    assert [None if file is None else file.read() for file in inner] == blobs
    with pytest.raises(ValueError, match="blob_mode must be one of"):
        dataset.to_pandas(blob_mode="files")


def test_lists_of_blobs_are_refused_where_nobody_could_read_them(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="lists of blobs; versions 2.0 and 2.2 can") as raised:
        esker.write_dataset(nested_table([b"x"]), tmp_path / "t", data_storage_version="2.1")
    assert raised.value.column == "list.item"


def test_blobs_of_version_0_1_are_bytes_and_are_said_to_be(tmp_path: Path) -> None:
    """pylance writes such files, and cannot read them."""
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([[0, 1], [b"a", b"bb"]], schema=pa.schema([pa.field("id", pa.int64()), blob]))
    lance.write_dataset(rows, tmp_path / "t", data_storage_version="legacy")
    found = esker.dataset(tmp_path / "t")
    assert found.to_table(blob_handling="all_binary")["b"].to_pylist() == [b"a", b"bb"]
    assert found.to_table(columns=["id"])["id"].to_pylist() == [0, 1]
    for read in (
        found.to_table,
        lambda: found.head(1),
        lambda: found.take([1]),
        lambda: found.take_blobs("b", indices=[1]),
        lambda: found.count_rows("b IS NOT NULL"),
    ):
        with pytest.raises(UnsupportedError, match="all_binary"):
            read()


@pytest.mark.parametrize("type_", [pa.binary(), pa.utf8(), pa.int64()])
def test_only_large_binary_can_be_a_blob_column(tmp_path: Path, type_: pa.DataType) -> None:
    schema = pa.schema([pa.field("b", type_, metadata=BLOB)])
    with pytest.raises(UnsupportedError, match="use large_binary") as raised:
        esker.write_dataset(schema.empty_table(), tmp_path / "t", data_storage_version="2.0")
    assert raised.value.column == "b"


def test_writing_blobs_takes_no_memory_for_them(tmp_path: Path, version: str) -> None:
    """Payloads leave with their batch: only descriptions wait for their page."""
    blob = b"z" * 1_000_000
    schema = pa.schema([blob_field()])

    def batches() -> Any:
        for _ in range(40):
            yield pa.record_batch([pa.array([blob] * 5, pa.large_binary())], schema=schema)

    before = pa.total_allocated_bytes()
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    dataset = esker.write_dataset(reader, tmp_path / "t", data_storage_version=version, memory_limit=1 << 20)
    assert pa.total_allocated_bytes() - before < 20_000_000
    assert dataset.count_rows() == 200
    assert len(dataset.get_fragments()) == 1
    assert [file and file.read() for file in dataset.take_blobs("blob", indices=[199])] == [blob]


def test_files_without_a_table_hold_blobs(tmp_path: Path, version: str) -> None:
    from lance.file import LanceFileReader, LanceFileWriter

    from esker.file import LanceFileReader as OurReader
    from esker.file import LanceFileWriter as OurWriter

    table = table_of(some_blobs(60))
    for name, make in (("ours", OurWriter), ("theirs", LanceFileWriter)):
        path = str(tmp_path / f"{name}.lance")
        with make(path, table.schema, version=version) as writer:
            writer.write_batch(table)
        for reader in (OurReader(path), LanceFileReader(path)):
            assert reader.read_all().to_table().to_pylist() == table.to_pylist()


def test_a_scan_of_large_blobs_comes_in_small_batches(tmp_path: Path, version: str) -> None:
    """However few bytes their descriptions take: what a batch holds is bounded by the blobs."""
    table = table_of([bytes([i % 251]) * 2_000_000 for i in range(30)])
    dataset = esker.write_dataset(table, tmp_path / "t", data_storage_version=version)
    sizes = [batch.nbytes for batch in dataset.to_batches(blob_handling="all_binary")]
    assert sum(sizes) >= 60_000_000
    assert max(sizes) < 20_000_000
