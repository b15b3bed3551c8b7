"""A repository as fsspec's file system: pandas, pyarrow and DuckDB read and write paths of a branch."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, IOFailedError, NotFoundError, UnsupportedError
from esker.repo import Repository
from esker.repo.filesystem import RepositoryFileSystem

ROWS = pa.table({"k": range(1000), "v": [n * 0.5 for n in range(1000)]})


@pytest.fixture
def fs(tmp_path: Path) -> RepositoryFileSystem:
    """The file system of an empty repository."""
    return RepositoryFileSystem(Repository.create(str(tmp_path / "lake")))


def test_what_is_written_is_staged_and_committed_by_the_repository(fs: RepositoryFileSystem) -> None:
    with fs.open("main/a/b.txt", "w") as out:
        out.write("hello")
    assert fs.cat("main/a/b.txt") == b"hello"
    assert fs.ls("main/a", detail=False) == ["main/a/b.txt"]
    assert not fs.exists("main~0/a/b.txt")
    commit = fs.repository.branch("main").commit("one")
    assert fs.cat("main~0/a/b.txt") == fs.cat(f"{commit.id}/a/b.txt") == b"hello"
    other = RepositoryFileSystem(Repository(fs.repository.uri))
    assert other.cat("main/a/b.txt") == b"hello"


def test_an_error_while_writing_stages_nothing(fs: RepositoryFileSystem) -> None:
    def fail() -> None:
        with fs.open("main/a", "wb") as out:
            out.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not fs.exists("main/a")


def test_folders_are_there_while_they_hold_objects(fs: RepositoryFileSystem) -> None:
    fs.makedirs("main/a/b")
    assert not fs.exists("main/a")
    assert [fs.isdir(path) for path in ("main", "")] == [True, True]
    fs.pipe({"main/a/b/1": b"1", "main/a/b/2": b"22", "main/a/3": b"333", "main/a.txt": b""})
    assert [fs.isdir(path) for path in ("main/a", "main/a/b", "main/a.txt")] == [True, True, False]
    assert [fs.isfile(path) for path in ("main/a.txt", "main/a")] == [True, False]
    assert fs.ls("main/a", detail=False) == ["main/a/3", "main/a/b"]
    assert [(one["name"], one["type"], one["size"]) for one in fs.ls("main")] == [
        ("main/a.txt", "file", 0),
        ("main/a", "directory", 0),
    ]
    assert fs.find("main") == ["main/a.txt", "main/a/3", "main/a/b/1", "main/a/b/2"]
    assert fs.find("main/a/b/1") == ["main/a/b/1"]
    assert fs.glob("main/a/*/*") == ["main/a/b/1", "main/a/b/2"]
    assert fs.du("main/a") == 6
    assert list(fs.walk("main/a")) == [("main/a", ["b"], ["3"]), ("main/a/b", [], ["1", "2"])]
    fs.rm("main/a", recursive=True)
    assert fs.find("main") == ["main/a.txt"]
    for path in ("main/a", "main/nothing", "nobranch", "nobranch/a"):
        with pytest.raises(FileNotFoundError):
            fs.info(path)
        with pytest.raises(FileNotFoundError):
            fs.ls(path)


def test_branches_and_tags_are_the_first_folders(fs: RepositoryFileSystem) -> None:
    fs.pipe("main/a", b"1")
    fs.repository.branch("main").commit("one")
    fs.repository.branch("feature/x").create("main")
    fs.repository.tag("v1").create("main")
    assert fs.ls("", detail=False) == ["feature%2Fx", "main", "v1"]
    fs.pipe("feature%2Fx/a", b"2")
    assert (fs.cat("feature%2Fx/a"), fs.cat("v1/a"), fs.cat("main/a")) == (b"2", b"1", b"1")
    assert fs.ls("feature%2Fx", detail=False) == ["feature%2Fx/a"] == fs.find("feature%2Fx")
    assert fs.ls("feature/x", detail=False) == ["feature/x/a"] == fs.find("feature/x")
    assert fs.cat("feature/x/a") == b"2"
    with pytest.raises(NotFoundError):
        fs.pipe("v1/a", b"3")


def test_parts_of_objects_are_read(fs: RepositoryFileSystem) -> None:
    data = bytes(range(256)) * 1000
    fs.pipe("main/a", data)
    assert fs.cat_file("main/a", 10, 20) == data[10:20]
    assert fs.cat_file("main/a", -10) == data[-10:]
    assert fs.cat_file("main/a", 5, -5) == data[5:-5]
    assert fs.cat_file("main/a", len(data) + 5) == b""
    assert fs.cat_ranges(["main/a"] * 2, [0, 100], [7, 300]) == [data[:7], data[100:300]]
    with fs.open("main/a", block_size=1000) as file:
        file.seek(200_000)
        assert file.read(100) == data[200_000:200_100]
        fs.pipe("main/a", b"other")
        assert file.read(100) == data[200_100:200_200]
    assert fs.cat("main/a") == b"other"


def test_objects_are_copied_moved_and_appended_to(fs: RepositoryFileSystem) -> None:
    fs.pipe("main/a", b"1")
    fs.cp_file("main/a", "main/b")
    assert fs.info("main/b")["address"] == fs.info("main/a")["address"]
    fs.mv("main/a", "main/c")
    with fs.open("main/c", "ab") as out:
        out.write(b"2")
    assert fs.find("main") == ["main/b", "main/c"]
    assert fs.cat("main/c") == b"12"
    fs.touch("main/c", truncate=False)
    assert fs.size("main/c") == 2
    fs.touch("main/c")
    assert fs.size("main/c") == 0
    with pytest.raises(AlreadyExistsError):
        fs.open("main/c", "xb")
    with pytest.raises(NotFoundError):
        fs.rm("main/nothing")
    with pytest.raises(InvalidArgumentError):
        fs.pipe("main", b"")


def test_pandas_writes_and_reads(fs: RepositoryFileSystem) -> None:
    uri = fs.repository.uri
    options = {"repository": uri}
    frame = ROWS.to_pandas()
    frame.to_parquet("esker://main/t/a.parquet", storage_options=options)
    frame.to_csv("esker://main/t/a.csv", storage_options=options, index=False)
    # The file system that pandas used is kept by fsspec, with what it staged.
    fsspec.filesystem("esker", **options).repository.branch("main").commit("frames")
    pd.testing.assert_frame_equal(pd.read_parquet("esker://main~0/t/a.parquet", storage_options=options), frame)
    pd.testing.assert_frame_equal(pd.read_csv("esker://main~0/t/a.csv", storage_options=options), frame)
    assert fs.repository.ref("main").object("t/a.parquet").exists()


def test_pyarrow_writes_and_reads_datasets(fs: RepositoryFileSystem) -> None:
    pads.write_dataset(
        ROWS.append_column("part", pa.array([n % 3 for n in range(1000)])),
        "main/t",
        filesystem=fs,
        format="parquet",
        partitioning=pads.partitioning(pa.schema([("part", pa.int64())]), flavor="hive"),
    )
    fs.repository.branch("main").commit("parts")
    assert fs.ls("main/t", detail=False) == ["main/t/part=0", "main/t/part=1", "main/t/part=2"]
    found = pads.dataset("main~0/t", filesystem=fs, partitioning="hive").to_table(filter=pads.field("part") == 1)
    assert found.num_rows == 333
    pq.write_table(ROWS, "main/one.parquet", filesystem=fs)
    assert pq.read_table("main/one.parquet", filesystem=fs).equals(ROWS)


def test_duckdb_reads_and_writes(fs: RepositoryFileSystem) -> None:
    for part in range(3):
        pq.write_table(ROWS.slice(part * 300, 300), f"main/t/{part}.parquet", filesystem=fs)
    fs.repository.branch("main").commit("parts")
    database = duckdb.connect()
    database.register_filesystem(fs)
    query = "SELECT count(*), sum(k) FROM read_parquet('esker://main~0/t/*.parquet')"
    assert database.execute(query).fetchone() == (900, sum(range(900)))
    database.execute("COPY (SELECT 7 AS k) TO 'esker://main/out.parquet' (FORMAT parquet)")
    assert pq.read_table("main/out.parquet", filesystem=fs).to_pydict() == {"k": [7]}


def test_duckdb_writes_into_folders_that_it_makes(fs: RepositoryFileSystem) -> None:
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    rows = "select range as a, range % 3 as k from range(9)"
    connection.sql(f"copy ({rows}) to 'esker://main/new' (format parquet, partition_by (k))")
    read = "from read_parquet('esker://main/new/*/*.parquet', hive_partitioning = true) select a, k order by a"
    assert connection.sql(read).fetchall() == connection.sql(f"{rows} order by a").fetchall()
    with pytest.raises(duckdb.Error, match="not empty"):
        connection.sql(f"copy ({rows}) to 'esker://main/new' (format parquet, partition_by (k))")
    fs.makedirs("main/empty")
    assert fs.ls("main/empty") == []
    assert not fs.exists("main/empty")
    with pytest.raises(NotFoundError):
        fs.ls("main/never")


def test_polars_writes_and_reads_open_files(fs: RepositoryFileSystem) -> None:
    frame = pl.DataFrame({"k": [1, 2, 3], "v": ["a", "b", None]})
    with fs.open("main/t/a.parquet", "wb") as out:
        frame.write_parquet(out)
    fs.repository.branch("main").commit("frame")
    with fs.open("main~0/t/a.parquet") as file:
        assert pl.read_parquet(file, columns=["v"]).equals(frame.select("v"))
    assert pl.scan_pyarrow_dataset(pads.dataset("main/t", filesystem=fs)).collect().equals(frame)


def test_a_transaction_keeps_all_of_its_block_staged_or_nothing(fs: RepositoryFileSystem) -> None:
    fs.pipe("main/before", b"1")
    with fs.transaction:
        fs.pipe("main/a", b"1")
        with fs.open("main/b", "w") as out:
            out.write("2")
    assert fs.ls("main", detail=False) == ["main/a", "main/b", "main/before"]
    with suppress(KeyError), fs.transaction:
        fs.pipe("main/c", b"3")
        fs.rm("main/a")
        with fs.open("main/b", "w") as out:
            out.write("changed")
        raise KeyError
    assert fs.cat(["main/a", "main/b", "main/before"]) == {"main/a": b"1", "main/b": b"2", "main/before": b"1"}
    assert not fs.exists("main/c")
    fs.repository.branch("main").commit("all")
    with fs.transaction:
        fs.put_file(__file__, "main/this")
    assert fs.repository.branch("main").object("this").exists()


def test_a_failed_transaction_gives_up_what_is_open(fs: RepositoryFileSystem) -> None:
    with suppress(KeyError), fs.transaction:
        files = [fs.open("main/a", "wb"), fs.open("main/b", "w"), fs.open("main/c", "w", compression="gzip")]
        files[0].write(b"half")
        files[1].write("half")
        files[2].write("half")
        raise KeyError
    for file in files:
        with suppress(ValueError):
            file.close()
    assert fs.find("main") == []


def test_one_transaction_at_a_time(fs: RepositoryFileSystem) -> None:
    with suppress(KeyError), fs.transaction:
        fs.pipe("main/a", b"1")
        with pytest.raises(UnsupportedError, match="at work"), fs.transaction:
            fs.pipe("main/b", b"2")
        fs.pipe("main/c", b"3")
        raise KeyError
    assert fs.find("main") == []
    with fs.transaction:
        fs.pipe("main/a", b"1")
    fs.start_transaction()
    fs.pipe("main/b", b"1")
    fs.end_transaction()
    assert fs.find("main") == ["main/a", "main/b"]


def test_a_failed_transaction_takes_back_its_own_and_nothing_of_others(fs: RepositoryFileSystem) -> None:
    main = fs.repository.branch("main")
    fs.pipe("main/both", b"before")
    with suppress(KeyError), fs.transaction:
        fs.pipe("main/own", b"1")
        main.object("theirs").upload("2")
        fs.pipe("main/both", b"own")
        main.object("both").upload("theirs")
        fs.pipe("main/both", b"own again")
        fs.cp_file("main/both", "main/copy")
        fs.pipe("main/last", b"own")
        main.object("last").upload("theirs")
        main.object("gone").upload("3")
        raise KeyError
    assert fs.cat(["main/both", "main/last"]) == {"main/both": b"theirs", "main/last": b"theirs"}
    assert [change.path for change in main.uncommitted()] == ["both", "gone", "last", "theirs"]
    with suppress(KeyError), fs.transaction:
        fs.pipe("main/landed", b"1")
        main.commit("by others")
        fs.pipe("main/landed", b"2")
        raise KeyError
    assert not list(main.uncommitted())
    assert fs.cat("main/landed") == b"1"


def test_ctrl_c_right_after_a_change_is_staged_leaves_none_of_a_transaction(fs: RepositoryFileSystem) -> None:
    def interrupt(frame: FrameType, event: str, what: Any) -> None:
        if event == "c_return" and what.__qualname__.endswith("StagedPaths.stage"):
            sys.setprofile(None)
            raise KeyboardInterrupt

    fs.pipe("main/b", b"before")
    with suppress(KeyboardInterrupt), fs.transaction:
        fs.pipe({"main/a": b"own", "main/b": b"own"})
        sys.setprofile(interrupt)
        fs.pipe("main/b", b"own again")
    assert {path: fs.cat_file(path) for path in fs.find("main")} == {"main/b": b"before"}


def test_a_change_that_was_refused_within_a_transaction_hides_none_before_it(fs: RepositoryFileSystem) -> None:
    fs.pipe("main/a", b"before")
    with suppress(KeyError), fs.transaction:
        fs.rm("main/a")
        with fs.open("main/a", "xb") as out:
            out.write(b"own")
            fs.pipe("main/a", b"own first")
            with suppress(AlreadyExistsError):
                out.close()
        raise KeyError
    assert fs.cat("main/a") == b"before"


def test_a_transaction_ends_where_what_is_open_cannot_be_given_up(
    fs: RepositoryFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "lake"), durable=False)
    faults = FaultStore(store, watch=lambda verb, path: "fail" if verb == "writer.abort" else None)
    monkeypatch.setattr(fs.repository._core, "store", faults.store)
    fs.pipe("main/a", b"before")
    with suppress(IOFailedError), fs.transaction:
        fs.pipe({"main/a": b"own", "main/b": b"own"})
        files = [fs.open(f"main/{n}", "wb") for n in range(2)]
        for file in files:
            file.write(bytes(9 << 20))
        raise KeyError
    assert [verb for _, verb, _ in faults.operations].count("writer.abort") == 2
    assert {path: fs.cat_file(path) for path in fs.find("main")} == {"main/a": b"before"}
    with fs.transaction:
        fs.pipe("main/c", b"next")
    assert fs.find("main") == ["main/a", "main/c"]


def test_empty_objects_that_end_with_a_slash_are_folders(fs: RepositoryFileSystem) -> None:
    main = fs.repository.branch("main")
    pq.write_table(ROWS, "main/t/p=1/x.parquet", filesystem=fs)
    for marker in ("t/", "t/p=1/", "t/p=2/"):
        main.object(marker).upload(b"")
    for _ in range(2):
        assert fs.find("main/t") == ["main/t/p=1/x.parquet"] == list(fs.cat("main/t/p=1/*"))
        assert fs.ls("main/t", detail=False) == ["main/t/p=1", "main/t/p=2"]
        assert fs.ls("main/t/p=2") == []
        assert fs.isdir("main/t/p=2")
        assert pads.dataset("main/t", filesystem=fs, partitioning="hive").to_table().num_rows == ROWS.num_rows
        assert pd.read_parquet("main/t", filesystem=fs).shape == (ROWS.num_rows, 3)
        main.commit("all", allow_empty=True)
    fs.mv("main/t", "main/u", recursive=True)
    assert [one.path for one in main.objects()] == ["u/p=1/x.parquet"]
