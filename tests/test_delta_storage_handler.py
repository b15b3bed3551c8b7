"""`DeltaStorageHandler`: the objects of a table as a file system of pyarrow, beside pyarrow's own and deltalake's."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake.fs
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable, write_deltalake
from esker.delta.fs import DeltaStorageHandler
from esker.repo import Repository

PATHS = ["a", "a/", "a/x", "/a/x", "top", "nothing", "", "/", "a/b", "a/b/y"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for path, data in [("top", b"t"), ("a/x", b"hello"), ("a/b/y", b"yo"), ("ab", b"no")]:
        (tmp_path / path).write_bytes(data)
    return tmp_path


@pytest.fixture
def handler(root: Path) -> DeltaStorageHandler:
    return DeltaStorageHandler(root)


def told(infos: list[pa_fs.FileInfo]) -> list[tuple[Any, ...]]:
    return sorted((info.path, str(info.type), info.size, info.mtime_ns) for info in infos)


@pytest.mark.parametrize("path", PATHS)
def test_infos_are_those_of_deltalake(root: Path, path: str) -> None:
    ours, theirs = DeltaStorageHandler(root), deltalake.fs.DeltaStorageHandler(str(root))
    assert told(ours.get_file_info([path])) == told(theirs.get_file_info([path]))


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("base", ["", "/", "a", "a/", "a/b"])
def test_listings_are_those_of_deltalake_and_of_the_local_file_system(root: Path, base: str, recursive: bool) -> None:
    selector = pa_fs.FileSelector(base, recursive=recursive)
    ours = DeltaStorageHandler(root).get_file_info_selector(selector)
    assert told(ours) == told(deltalake.fs.DeltaStorageHandler(str(root)).get_file_info_selector(selector))
    local = pa_fs.SubTreeFileSystem(str(root), pa_fs.LocalFileSystem()).get_file_info(selector)
    assert sorted((i.path.strip("/"), i.type) for i in local) == sorted((i.path, i.type) for i in ours)


def test_a_folder_that_is_missing_is_an_error_unless_it_may_be(handler: DeltaStorageHandler) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder 'z'"):
        handler.get_file_info_selector(pa_fs.FileSelector("z"))
    assert handler.get_file_info_selector(pa_fs.FileSelector("z", allow_not_found=True)) == []


def test_files_are_read_anywhere(handler: DeltaStorageHandler) -> None:
    with handler.open_input_file("/a/x") as file:
        assert (file.size(), file.mode, file.seekable(), file.read(2), file.tell()) == (5, "rb", True, b"he", 2)
        assert file.read_at(3, 1) == b"ell"
    assert handler.open_input_stream("a/x").read() == b"hello"
    for path in ("nothing", "a"):
        with pytest.raises(FileNotFoundError):
            handler.open_input_file(path)


def test_known_sizes_are_taken_as_they_are(root: Path) -> None:
    handler = DeltaStorageHandler(root, known_sizes={"a/x": 3, "/top": 9})
    assert handler.open_input_file("a/x").read() == b"hel"
    assert [info.size for info in handler.get_file_info(["a/x", "top", "ab"])] == [3, 9, 2]
    copied: DeltaStorageHandler = pickle.loads(pickle.dumps(handler))
    assert copied.open_input_file("a/x").size() == 3
    with handler.open_output_stream("a/x") as file:
        file.write(b"longer")
    assert handler.open_input_file("a/x").read() == b"longer"


def test_a_file_is_there_when_it_is_closed(root: Path, handler: DeltaStorageHandler) -> None:
    file = handler.open_output_stream("n/e/w", metadata={"a": "b"})
    file.write(b"one")
    assert not (root / "n" / "e" / "w").exists()
    file.close()
    assert (root / "n" / "e" / "w").read_bytes() == b"one"
    with handler.open_output_stream("n/e/w") as again:
        again.write(b"two")
    assert (root / "n" / "e" / "w").read_bytes() == b"two"
    with handler.open_output_stream("empty"):
        pass
    assert (root / "empty").read_bytes() == b""


def test_a_file_that_is_forgotten_leaves_nothing(root: Path) -> None:
    from esker._native.store import Store
    from esker.delta.log.store_file import WrittenStoreFile

    before = sorted(root.rglob("*"))
    file = WrittenStoreFile(Store(str(root)).writer("half"))
    file.write(b"half")
    del file
    gc.collect()
    assert sorted(root.rglob("*")) == before


def test_files_and_folders_are_copied_moved_and_deleted(root: Path, handler: DeltaStorageHandler) -> None:
    handler.copy_file("a/x", "copies/x")
    handler.copy_file("top", "copies/x")
    handler.copy_file("top", "top")
    assert (root / "copies" / "x").read_bytes() == (root / "top").read_bytes() == b"t"
    handler.move("copies/x", "a/x")
    assert not (root / "copies" / "x").exists()
    assert (root / "a" / "x").read_bytes() == b"t"
    handler.move("a", "moved")
    handler.move("moved", "moved")
    assert (root / "moved" / "b" / "y").read_bytes() == b"yo"
    assert not (root / "a" / "x").exists()
    assert (root / "ab").exists()
    handler.delete_file("top")
    assert not (root / "top").exists()
    handler.delete_dir("moved")
    assert not (root / "moved" / "b" / "y").exists()
    assert (root / "ab").exists()
    handler.delete_dir("moved")
    handler.create_dir("made")
    handler.delete_root_dir_contents()
    assert handler.get_file_info_selector(pa_fs.FileSelector("", recursive=True)) == [] or not any(
        info.is_file for info in handler.get_file_info_selector(pa_fs.FileSelector("", recursive=True))
    )


@pytest.mark.parametrize(
    ("call", "raised"),
    [
        (lambda h: h.delete_file("nothing"), FileNotFoundError),
        (lambda h: h.delete_file("a"), FileNotFoundError),
        (lambda h: h.copy_file("nothing", "a/x"), FileNotFoundError),
        (lambda h: h.move("nothing", "a/x"), FileNotFoundError),
        (lambda h: h.move("a", "a/b/c"), ValueError),
        (lambda h: h.delete_dir_contents("nothing"), FileNotFoundError),
        (lambda h: h.delete_dir_contents(""), ValueError),
        (lambda h: h.delete_dir("/"), ValueError),
        (lambda h: h.open_append_stream("top"), NotImplementedError),
        (lambda h: h.open_input_file("../outside"), ValueError),
        (lambda h: h.open_output_stream("a/./x"), ValueError),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_lost(
    root: Path, handler: DeltaStorageHandler, call: Callable[[DeltaStorageHandler], object], raised: type[Exception]
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(raised) as found:
        call(handler)
    assert isinstance(found.value, exceptions.EskerError)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_pyarrow_reads_and_writes_datasets_through_it(root: Path) -> None:
    files = pa_fs.PyFileSystem(DeltaStorageHandler(root / "t"))
    rows = pa.table({"a": list(range(10)), "c": [1, 2] * 5})
    partitioning = ds.partitioning(pa.schema([("c", pa.int64())]), flavor="hive")
    ds.write_dataset(rows, "/", partitioning=partitioning, format="parquet", filesystem=files)
    ds.write_dataset(
        rows,
        "/",
        partitioning=partitioning,
        format="parquet",
        filesystem=files,
        existing_data_behavior="delete_matching",
    )
    read = ds.dataset("/", format="parquet", filesystem=files, partitioning=partitioning).to_table()
    assert sorted(read.to_pylist(), key=str) == sorted(rows.to_pylist(), key=str)
    pq.write_table(rows, "one.parquet", filesystem=files)
    assert pq.read_table("one.parquet", filesystem=files).equals(rows)
    assert files == pa_fs.PyFileSystem(DeltaStorageHandler(root / "t"))
    assert files != pa_fs.PyFileSystem(DeltaStorageHandler(root))


@pytest.mark.parametrize("stored", ["folder", "memory"])
def test_it_is_made_of_an_open_table(tmp_path: Path, stored: str) -> None:
    uri = str(tmp_path) if stored == "folder" else f"memory://handler-{tmp_path.name}"
    write_deltalake(uri, pa.table({"id": [1, 2]}))
    table = DeltaTable(uri)
    (name,) = table.get_add_actions()["path"].to_pylist()
    for handler in (DeltaStorageHandler.from_table(table), DeltaStorageHandler.from_table(table._table)):
        assert pq.read_table(handler.open_input_file(name))["id"].to_pylist() == [1, 2]
        assert handler.equals(DeltaStorageHandler(uri))
        assert hash(handler) == hash(DeltaStorageHandler(uri))
        assert handler.normalize_path("/a//b/") == "a/b/"
        assert handler.get_type_name() == "object-store"


def test_small_buffers_are_warned_of_in_deltalakes_words(root: Path) -> None:
    handler = DeltaStorageHandler(root, {"max_buffer_size": "1"})
    with pytest.warns(UserWarning, match="You specified a `max_buffer_size` of 1 bits less than 5242880 bits"):
        handler.open_output_stream("n")


def test_a_table_on_a_branch_is_read_and_not_written(tmp_path: Path) -> None:
    uri = Repository.create(str(tmp_path / "lake"), committer="me").branch("main").store_uri("t")
    write_deltalake(uri, pa.table({"id": [1]}))
    table = DeltaTable(uri)
    (name,) = table.get_add_actions()["path"].to_pylist()
    handler = DeltaStorageHandler(uri)
    assert pq.read_table(handler.open_input_file(name))["id"].to_pylist() == [1]
    for call in (
        lambda: handler.open_output_stream("n"),
        lambda: handler.delete_file(name),
        lambda: handler.delete_root_dir_contents(),
        lambda: handler.copy_file(name, "n"),
        lambda: handler.move(name, "n"),
    ):
        with pytest.raises(exceptions.UnsupportedError, match="on a branch of a repository"):
            call()
    assert DeltaTable(uri).to_pyarrow_table()["id"].to_pylist() == [1]
