"""Objects that memory should not hold: uploads, writers, readers and exports go piece by piece."""

from __future__ import annotations

import gc
import hashlib
import io
import itertools
import os
import tracemalloc
import warnings
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, EskerError, InvalidArgumentError, IOFailedError, NotFoundError
from esker.repo import Repository, repository
from esker.repo.objects import object_io, upload
from esker.repo.objects.object_io import read_range
from tests.faulty import Faulty
from tests.servers import S3Server

PIECE = b"0123456789abcdef" * 4096


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


def pieces(count: int) -> Iterator[bytes]:
    for n in range(count):
        yield n.to_bytes(8, "big") + PIECE


def test_a_long_object_is_never_whole_in_memory(repo: Repository, tmp_path: Path) -> None:
    count = 1600
    main = repo.branch("main")
    tracemalloc.start()
    main.object("long").upload(pieces(count))
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 40 << 20
    stat = main.object("long").stat()
    assert stat.size_bytes == count * (len(PIECE) + 8) > 100 << 20
    tracemalloc.reset_peak()
    seen = hashlib.md5()
    with main.object("long").reader() as reader:
        while data := reader.read(1 << 20):
            seen.update(data)
    assert seen.hexdigest() == stat.checksum
    main.commit("long")
    assert repo.ref("main").export(str(tmp_path / "out")) == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20
    assert (tmp_path / "out/long").stat().st_size == stat.size_bytes
    assert list(repo.fsck()) == []


@pytest.mark.parametrize("size", [0, 1, 1000, 3001])
@pytest.mark.parametrize("kind", ["bytes", "file", "pieces", "writer", "text"])
def test_all_ways_to_write_give_the_same_object(
    repo: Repository, kind: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "SHORT_BYTES", 1000)
    data = os.urandom(size).hex().encode()[:size]
    target = repo.branch("main").object("a")
    options: dict[str, Any] = {"content_type": "text/plain", "metadata": {"k": "v"}}
    if kind == "bytes":
        target.upload(data, **options)
    elif kind == "file":
        target.upload(io.BytesIO(data), **options)
    elif kind == "pieces":
        target.upload((data[at : at + 7] for at in range(0, size, 7)), **options)
    elif kind == "writer":
        with target.writer("wb", **options) as writer:
            for at in range(0, size, 300):
                assert writer.write(data[at : at + 300]) == len(data[at : at + 300])
            assert writer.tell() == size
    else:
        with target.writer("w", **options) as writer:
            writer.write(data.decode())
    stat = target.stat()
    assert (stat.size_bytes, stat.checksum) == (size, hashlib.md5(data).hexdigest())
    assert (stat.content_type, stat.metadata) == ("text/plain", {"k": "v"})
    assert target.reader().read() == data
    assert target.read_range(size // 2, size) == data[size // 2 :]


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_a_file_that_an_error_closes_leaves_nothing(
    repo: Repository, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "SHORT_BYTES", 10)
    target = repo.branch("main").object("a")
    text = "some text" if mode == "w" else b"some bytes"
    with suppress(RuntimeError), target.writer(mode) as writer:  # type: ignore[arg-type]
        for _ in range(5):
            writer.write(text)
        raise RuntimeError
    given_up = target.writer(mode)  # type: ignore[arg-type]
    given_up.write(text)
    given_up.discard()
    # Nobody closes this one.
    target.writer(mode).write(text)  # type: ignore[arg-type]
    assert not target.exists()
    assert list(repo.branch("main").uncommitted()) == []
    assert repo._core.store.list("data/") == []
    assert repo._core.store.list_unfinished("data/") == []


@pytest.mark.parametrize(
    "data",
    [
        array("i"),
        array("i", [1, 2]),
        memoryview(b"abcd")[::2],
        pa.array([], pa.int64()).buffers()[1],
        pa.py_buffer(b"ab"),
    ],
    ids=["empty_array", "array", "steps", "empty_buffer", "buffer"],
)
def test_whatever_lends_bytes_is_written(data: Any, repo: Repository) -> None:
    main, whole = repo.branch("main"), memoryview(data).tobytes()
    with main.object("a").writer() as file:
        assert file.write(data) == len(whole)
        assert file.write(data) == len(whole)
    main.object("b").upload([data, data])
    main.object("c").upload(memoryview(data))
    assert [main.object(path).reader().read() for path in "abc"] == [whole * 2, whole * 2, whole]


def test_modes_are_those_of_files(repo: Repository) -> None:
    target = repo.branch("main").object("a")
    target.upload("one", "x")
    for mode in ("x", "xb"):
        with pytest.raises(AlreadyExistsError):
            target.writer(mode)
        with pytest.raises(AlreadyExistsError):
            target.upload("two", mode)
    with pytest.raises(InvalidArgumentError, match="expected the mode"):
        target.writer("a")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        repo.branch("none").object("a").upload("one")
    with target.reader("r") as reader:
        assert (reader.name, reader.mode, reader.read(1)) == ("a", "r", "o")
        reader.seek(1, os.SEEK_CUR)
        assert reader.read() == "e"
        reader.seek(-2, os.SEEK_END)
        assert reader.read() == "ne"
    with target.reader() as binary, pytest.raises(io.UnsupportedOperation):
        binary.write(b"x")


@pytest.mark.parametrize("text", ["id,city\r\n1,Oslo\r\n", "é\r\n\r\nb\r", "a\rb\r\r\nc", "a\u2028b\nc"])
def test_text_ends_lines_at_line_feeds_and_tells_bytes(text: str, repo: Repository) -> None:
    target = repo.branch("main").object("a")
    target.upload(text)
    for count in range(len(text) + 1):
        with target.reader("r") as reader:
            read = reader.read(count)
            assert (read, reader.tell()) == (text[:count], len(read.encode()))
            reader.seek(0, os.SEEK_CUR)
            assert reader.read() == text[count:]
    with target.reader("r") as reader:
        assert reader.readlines() == [line.decode() for line in io.BytesIO(text.encode()).readlines()]
    with target.reader("r") as reader, target.reader() as binary:
        for line in reader:
            assert (line.encode(), reader.tell()) == (binary.readline(), binary.tell())


def test_a_read_asks_for_few_large_ranges(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    target = repo.branch("main").object("a")
    data = b"0123456789abcde\n" * (1 << 16)
    target.upload(data)
    ranges: list[int] = []

    def counted(core: Any, info: Any, commit: str, start: int, end: int) -> bytes:
        ranges.append(end - start)
        return read_range(core, info, commit, start, end)

    def ways() -> Iterator[tuple[int, bytes]]:
        yield 1, target.reader().read()
        yield 1, target.reader("r").read().encode()
        yield 16, b"".join(target.reader())
        yield 16, "".join(target.reader("r")).encode()
        with target.reader("r") as reader:
            yield 17, "".join(iter(lambda: reader.read(1000), "")).encode()
        with target.reader() as reader:
            reader.seek(-16, os.SEEK_END)
            assert (reader.read(), reader.read(), reader.tell()) == (data[-16:], b"", len(data))
            reader.seek(len(data) + 5)
            assert (reader.read(), reader.tell()) == (b"", len(data) + 5)

    monkeypatch.setattr(object_io, "read_range", counted)
    for most, read in ways():
        assert read == data
        assert 0 < len(ranges) <= most
        ranges.clear()
    monkeypatch.setattr(object_io, "PIECE_BYTES", 1 << 19)
    assert target.reader().read() == data
    assert ranges[-2:] == [1 << 19, 1 << 19]
    reader = target.reader()
    raw = reader.raw
    reader.close()
    assert (reader.closed, raw.closed) == (True, True)


def test_bytes_arrive_whole_or_not_at_all(faulty: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "SHORT_BYTES", 1 << 16)
    data = b"".join(pieces(4))
    number = count = 0
    while number <= count:
        for fault in ("crash_before", "crash_after", "fail", "disk_full"):
            uri = str(tmp_path / f"{fault}-{number}")
            Repository.create(uri)
            with suppress(EskerError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                repo = Repository(f"fault://{uri}", storage_options={"plan": f"{fault}@{number}"})
                repo.branch("main").object("a").upload(io.BytesIO(data))
                repo.branch("main").commit("a")
            count = max(count, len(faulty.made[-1].operations))
            found = repository(uri)
            assert list(found.fsck()) == []
            if found.ref("main").object("a").exists():
                assert found.ref("main").object("a").reader().read() == data
            # What a dead writer has left is garbage.
            found.gc(dry_run=False, grace_s=-3600)
            assert found._core.store.list_unfinished("data/") == []
            # A commit that was about to be made counts as well.
            commits = len(found._core.store.list("_esker/commits/")) - 1
            assert len(found._core.store.list("data/")) <= commits
        number += 3
    assert count > 8


@pytest.mark.parametrize("fault", ["lose_reply", "fail"])
@pytest.mark.parametrize("text", [True, False], ids=["text", "bytes"])
def test_an_object_of_which_a_part_was_not_written_is_not_staged(
    text: bool, fault: str, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = itertools.count()

    def second(verb: str, path: str) -> str | None:
        return fault if verb == "writer.write" and next(parts) == 1 else None

    monkeypatch.setattr(repo._core, "store", FaultStore(Store(repo.uri, durable=False), watch=second).store)
    main = repo.branch("main")
    file = main.object("a").writer("w" if text else "wb")
    data = "a" * (9 << 20) if text else bytes(9 << 20)
    file.write(data)
    with pytest.raises(IOFailedError, match="injected"):
        file.write(data)
    with pytest.raises(IOFailedError, match="write it anew"):
        file.write(data[:1])
    with pytest.raises(IOFailedError, match="write it anew"):
        file.close()
    assert not main.object("a").exists()
    main.object("a").upload(data)
    assert main.object("a").stat().size_bytes == 9 << 20


def test_the_bytes_below_a_text_file_are_those_of_whoever_takes_them(repo: Repository) -> None:
    main = repo.branch("main")
    file = main.object("a").writer("w")
    file.write("text")
    below = file.detach()
    del file
    gc.collect()
    below.write(b" and bytes")
    below.close()
    assert main.object("a").reader("r").read() == "text and bytes"


def test_long_objects_go_to_an_object_store_in_parts(s3: S3Server) -> None:
    repo = Repository.create(f"s3://{s3.bucket()}/lake", storage_options=s3.storage_options)
    main = repo.branch("main")
    repo._core.store.io_stats()
    main.object("long").upload(pieces(600))
    assert repo._core.store.io_stats().write_iops > 3
    main.commit("long")
    found = hashlib.md5()
    for piece in pieces(600):
        found.update(piece)
    assert main.object("long").stat().checksum == found.hexdigest()
    with main.object("long").reader() as reader:
        reader.seek(599 * (len(PIECE) + 8))
        assert reader.read() == (599).to_bytes(8, "big") + PIECE
    assert list(repo.fsck()) == []
