"""Files without a table: `esker.file` beside pylance's `lance.file`, both ways, and what bad calls are told."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.exceptions import (
    CorruptFileError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    SchemaMismatchError,
    UnsupportedError,
)
from esker.file import LanceFileReader, LanceFileSession, LanceFileWriter, stable_version
from tests.samples import people, same

VERSIONS = ["2.0"]


def _write(path: Path, table: pa.Table, *, version: str = "2.0", peer: bool = False) -> str:
    with (lance.file.LanceFileWriter if peer else LanceFileWriter)(str(path), version=version) as writer:
        writer.write_batch(table)
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return _write(tmp_path / "people.lance", people(1000))


@pytest.mark.parametrize("version", VERSIONS)
def test_files_cross_both_ways_by_every_kind_of_read(version: str, tmp_path: Path) -> None:
    table = people(3000)
    ours = _write(tmp_path / "ours", table, version=version)
    theirs = _write(tmp_path / "theirs", table, version=version, peer=True)
    rows = [0, 1, 7, 1023, 1024, 1025, 2998, 2999]
    for reader in (LanceFileReader(ours), LanceFileReader(theirs), lance.file.LanceFileReader(ours)):
        assert reader.num_rows() == 3000
        same(table, reader.read_all().to_table())
        same(table.slice(1020, 10), reader.read_range(1020, 10).to_table())
        same(table.take(rows), reader.take_rows(rows).to_table())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("peer", [False, True])
def test_metadata_and_statistics_are_those_that_pylance_finds(version: str, peer: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "f.lance")
    with (lance.file.LanceFileWriter if peer else LanceFileWriter)(path, version=version) as writer:
        writer.write_batch(people(500))
        assert writer.add_global_buffer(b"hello") == 1
        assert writer.add_global_buffer(b"") == 2
        writer.add_schema_metadata("owner", "tests")
    ours, theirs = LanceFileReader(path), lance.file.LanceFileReader(path)
    found, expected = ours.metadata(), theirs.metadata()
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.schema.metadata == {b"owner": b"tests"}
    numbers = ("major_version", "minor_version", "num_rows", "num_data_bytes", "num_column_metadata_bytes")
    for name in (*numbers, "num_global_buffer_bytes"):
        assert getattr(found, name) == getattr(expected, name), name

    def places(buffers: list[Any]) -> list[tuple[int, int]]:
        return [(buffer.position, buffer.size) for buffer in buffers]

    assert places(found.global_buffers) == places(expected.global_buffers)
    assert len(found.columns) == len(expected.columns) > 5
    for mine, other in zip(found.columns, expected.columns, strict=True):
        assert places(mine.column_buffers) == places(other.column_buffers)
        assert [places(p.buffers) for p in mine.pages] == [places(p.buffers) for p in other.pages]
        assert all(page.encoding for page in mine.pages)
    statistics = [(c.num_pages, c.size_bytes) for c in ours.file_statistics().columns]
    assert statistics == [(c.num_pages, c.size_bytes) for c in theirs.file_statistics().columns]
    for reader in (ours, theirs):
        assert [bytes(reader.read_global_buffer(index)) for index in (1, 2)] == [b"hello", b""]
    assert ours.read_global_buffer(0) == bytes(theirs.read_global_buffer(0))


def test_batches_have_the_size_asked_for(path: str) -> None:
    reader = LanceFileReader(path)
    assert [b.num_rows for b in reader.read_all(batch_size=300).to_batches()] == [300, 300, 300, 100]
    assert [b.num_rows for b in reader.read_range(5, 11, batch_size=4).to_batches()] == [4, 4, 3]
    taken = reader.take_rows(range(0, 1000, 3), batch_size=100, batch_readahead=1)
    assert [b.num_rows for b in taken.to_batches()] == [100, 100, 100, 34]
    assert reader.read_range(1000, 0).to_table().num_rows == 0
    assert reader.take_rows([]).to_table().schema == reader.metadata().schema


@pytest.mark.parametrize(
    "columns", [["id"], ["name", "id"], ["place.zip"], ["place.zip", "id", "place.city"], ["place", "place.zip"]]
)
def test_columns_and_paths_come_as_in_pylance(columns: list[str], path: str) -> None:
    ours = LanceFileReader(path, columns=columns).read_all().to_table()
    same(lance.file.LanceFileReader(path, columns=columns).read_all().to_table(), ours)


def test_no_columns_are_rows_without_columns(path: str) -> None:
    assert sum(b.num_rows for b in LanceFileReader(path, columns=[]).read_range(0, 10).to_batches()) == 10


def test_row_numbers_may_be_of_any_kind(path: str) -> None:
    reader = LanceFileReader(path)
    for rows in ([1, 2, 9], (1, 2, 9), np.array([1, 2, 9]), pa.array([1, 2, 9]), iter([1, 2, 9])):
        assert reader.take_rows(rows).to_table()["id"].to_pylist() == [1, 2, 9]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r: r.read_range(990, 20), OutOfRangeError, "rows 990 to 1010 are out of range"),
        (lambda r: r.read_range(-1, 2), OutOfRangeError, "rows -1 to 1"),
        (lambda r: r.read_range(1, -1), OutOfRangeError, "rows 1 to 0"),
        (lambda r: r.take_rows([1000]), OutOfRangeError, "row number 1000"),
        (lambda r: r.take_rows([-1]), OutOfRangeError, "row number -1"),
        (lambda r: r.take_rows([3, 3]), InvalidArgumentError, "found 3 after 3"),
        (lambda r: r.take_rows([1, 4, 3]), InvalidArgumentError, "found 3 after 4"),
        (lambda r: r.take_rows([0.5]), InvalidArgumentError, "expected row numbers as integers"),
        (lambda r: r.read_all(batch_size=0), InvalidArgumentError, "batch_size > 0"),
        (lambda r: r.read_all(batch_readahead=0), InvalidArgumentError, "batch_readahead > 0"),
        (lambda r: r.read_global_buffer(1), InvalidArgumentError, "found index 1 of 1 buffers"),
        (lambda r: r.read_global_buffer(-1), InvalidArgumentError, ">= 0, found -1"),
    ],
)
def test_bad_reads_are_told_what_was_expected(
    call: Callable[[LanceFileReader], object], error: type[EskerError], message: str, path: str
) -> None:
    with pytest.raises(error, match=message):
        call(LanceFileReader(path))


def test_files_that_cannot_be_opened_say_why(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotFoundError):
        LanceFileReader(tmp_path / "none.lance")
    with pytest.raises(CorruptFileError, match="LANC"):
        LanceFileReader(__file__)
    with pytest.raises(InvalidArgumentError, match=r"found 'nope'; there are: id, score"):
        LanceFileReader(path, columns=["nope"])
    with pytest.raises(InvalidArgumentError, match="path of a file"):
        LanceFileReader(str(tmp_path) + "/")
    with pytest.raises(UnsupportedError, match="namespace_client"):
        LanceFileReader(path, namespace_client=object(), table_id=["t"])


def test_a_file_is_seen_when_it_is_closed_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    writer = LanceFileWriter(path, pa.schema([("id", pa.int64())]))
    writer.write_batch(pa.table({"id": range(10)}))
    assert not path.exists()
    assert writer.size_bytes is None
    assert [writer.close(), writer.size_bytes, writer.close()] == [10, path.stat().st_size, None]
    for call in (
        lambda: writer.write_batch(pa.table({"id": [1]})),
        lambda: writer.add_global_buffer(b""),
        lambda: writer.add_schema_metadata("k", "v"),
    ):
        with pytest.raises(InvalidArgumentError, match="closed"):
            call()


def test_a_writer_that_is_forgotten_or_fails_leaves_nothing(tmp_path: Path) -> None:
    forgotten = LanceFileWriter(tmp_path / "f.lance")
    forgotten.write_batch(people(10))
    del forgotten
    gc.collect()

    def fail() -> None:
        with LanceFileWriter(tmp_path / "g.lance") as writer:
            writer.write_batch(people(10))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(InvalidArgumentError, match="Schema is unknown"), LanceFileWriter(tmp_path / "h.lance"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_batches_are_matched_to_the_schema_by_name(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    with LanceFileWriter(tmp_path / "f.lance", schema) as writer:
        writer.write_batch(pa.table({"b": ["x"], "c": [0.5], "a": [1]}))
        writer.write_batch(pa.record_batch({"a": [2], "b": pa.array(["y"], pa.string_view())}))
        with pytest.raises(SchemaMismatchError, match="column 'b': is missing"):
            writer.write_batch(pa.table({"a": [3]}))
        with pytest.raises(SchemaMismatchError, match="column 'a': expected type int64, found string"):
            writer.write_batch(pa.table({"a": ["x"], "b": ["x"]}))
        with pytest.raises(TypeError, match=r"found dict"):
            writer.write_batch({"a": [1]})
    same(
        pa.table({"a": [1, 2], "b": ["x", "y"]}, schema=schema),
        LanceFileReader(tmp_path / "f.lance").read_all().to_table(),
    )
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    writer = LanceFileWriter(tmp_path / "g.lance", strict)
    with pytest.raises(SchemaMismatchError, match="no nulls, found 1"):
        writer.write_batch(pa.table({"a": [1, None]}))


def test_a_schema_alone_makes_a_file_of_no_rows(tmp_path: Path) -> None:
    schema = people(0).schema.with_metadata({"k": "v"})
    with LanceFileWriter(tmp_path / "f.lance", schema) as writer:
        writer.add_schema_metadata("l", "w")
    for reader in (LanceFileReader, lance.file.LanceFileReader):
        found = reader(str(tmp_path / "f.lance"))
        assert (found.num_rows(), found.metadata().schema) == (0, schema)
        assert found.metadata().schema.metadata == {b"k": b"v", b"l": b"w"}


def test_page_sizes_follow_the_caches_and_limits(tmp_path: Path) -> None:
    table = pa.table({"a": range(10_000), "b": range(10_000)})
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 1),
        ({"max_page_bytes": 20_000}, 4),
        ({"data_cache_bytes": 40_000}, 4),
    ]
    for options, pages in cases:
        path = str(tmp_path / "f.lance")
        with LanceFileWriter(path, version="2.0", **options) as writer:
            writer.write_batch(table)
        assert len(LanceFileReader(path).metadata().columns[0].pages) == pages, options
        same(table, lance.file.LanceFileReader(path).read_all().to_table())
    with pytest.raises(InvalidArgumentError, match="data_cache_bytes > 0"):
        LanceFileWriter(path, data_cache_bytes=0)


def test_threads_may_share_a_writer_and_a_reader(tmp_path: Path) -> None:
    with LanceFileWriter(tmp_path / "f.lance", pa.schema([("id", pa.int64())])) as writer:
        parts = [pa.table({"id": range(i * 100, i * 100 + 100)}) for i in range(8)]
        threads = [threading.Thread(target=writer.write_batch, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    reader = LanceFileReader(tmp_path / "f.lance")
    assert sorted(reader.read_all().to_table()["id"].to_pylist()) == list(range(800))


def test_threads_whose_first_batch_says_the_schema_lose_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All first batches come while the file is being opened.
    opening = LanceFileWriter._open

    def slow(writer: LanceFileWriter, schema: pa.Schema) -> Any:
        time.sleep(0.05)
        return opening(writer, schema)

    monkeypatch.setattr(LanceFileWriter, "_open", slow)
    writer = LanceFileWriter(tmp_path / "f.lance")
    parts = [pa.table({"id": range(i * 100, i * 100 + 100)}) for i in range(4)]
    threads = [threading.Thread(target=writer.write_batch, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.close() == 400
    assert sorted(LanceFileReader(tmp_path / "f.lance").read_all().to_table()["id"].to_pylist()) == list(range(400))


def test_versions_are_named_as_in_pylance_and_the_unstable_one_is_refused(tmp_path: Path) -> None:
    assert stable_version() == lance.file.stable_version() == "2.2"
    for name in ("2.3", "next"):
        with pytest.raises(UnsupportedError, match="not stable yet: .* use '2.2'"):
            LanceFileWriter(tmp_path / "f.lance", version=name)
    with pytest.raises(InvalidArgumentError, match="found '1.5'"):
        LanceFileWriter(tmp_path / "f.lance", version="1.5")
    with pytest.raises(TypeError, match="compression_level"):
        LanceFileWriter(tmp_path / "f.lance", compression_level=3)  # type: ignore[call-arg]


def test_a_file_of_an_unstable_version_is_refused_by_name(tmp_path: Path) -> None:
    path = _write(tmp_path / "f.lance", people(10), version="2.3", peer=True)
    with pytest.raises(UnsupportedError, match=r"found 2\.3"):
        LanceFileReader(path)


def test_a_session_reads_writes_and_lists_as_in_pylance(tmp_path: Path) -> None:
    ours, theirs = LanceFileSession(tmp_path), lance.file.LanceFileSession(str(tmp_path))
    for name in ("a.lance", "sub/b.lance", "sub/deep/c.lance"):
        with ours.open_writer(name, schema=pa.schema([("id", pa.int64())]), version="2.0") as writer:
            writer.write_batch(pa.table({"id": [1, 2, 3]}))
    assert ours.open_reader("sub/b.lance", columns=["id"]).read_all().to_table()["id"].to_pylist() == [1, 2, 3]
    for folder in (None, "sub", "sub/deep", "none"):
        assert sorted(theirs.list(folder)) == ours.list(folder)
        mine, other = ours.list_with_delimiter(folder), theirs.list_with_delimiter(folder)
        assert mine.objects == sorted(other.objects)
        assert mine.common_prefixes == sorted(other.common_prefixes)
    assert (ours.contains("a.lance"), ours.contains("b.lance")) == (True, False)
    whole = (tmp_path / "a.lance").read_bytes()
    assert ours.read_range("a.lance", len(whole) - 4, 4) == b"LANC"
    ours.download_file("a.lance", tmp_path / "copy")
    ours.upload_file(tmp_path / "copy", "sub/d.lance")
    assert (tmp_path / "sub/d.lance").read_bytes() == whole
    ours.delete_file("sub/d.lance")
    for call in (
        lambda: ours.delete_file("sub/d.lance"),
        lambda: ours.read_range("sub/d.lance", 0, 1),
        lambda: ours.download_file("sub/d.lance", tmp_path / "copy"),
        lambda: ours.open_reader("sub/d.lance"),
    ):
        with pytest.raises(NotFoundError):
            call()
    with pytest.raises(CorruptFileError):
        ours.read_range("a.lance", len(whole) - 4, 400)


def test_a_file_of_a_table_is_read_alone(uri: str) -> None:
    table = people(100)
    dataset = esker.write_dataset(table, uri)
    (file,) = dataset.get_fragments()[0].data_files()
    same(table, LanceFileReader(f"{uri}/data/{file.path}").read_all().to_table())
