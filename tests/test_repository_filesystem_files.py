"""Files of a repository's file system: codecs, text, errors in the middle, and pickles of what is open."""

from __future__ import annotations

import gc
import gzip
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.compression import compr

from esker.exceptions import UnsupportedError
from esker.repo import Repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.objects.ref_view import RefView


@pytest.fixture
def fs(tmp_path: Path) -> RepositoryFileSystem:
    """The file system of an empty repository."""
    return RepositoryFileSystem(Repository.create(str(tmp_path / "lake")))


CODECS = sorted(codec for codec in compr if codec is not None)


@pytest.mark.parametrize("codec", CODECS)
def test_what_goes_through_a_codec_is_staged_when_the_file_is_closed(codec: str, fs: RepositoryFileSystem) -> None:
    data = b"0123456789" * 1000
    with fs.open("main/bytes", "wb", compression=codec) as out:
        assert out.write(data[:5000]) == 5000
        assert not fs.exists("main/bytes")
        out.write(data[5000:])
    with fs.open("main/text", "w", compression=codec, encoding="utf-16-le", newline="\r\n") as out:
        out.write("é\n")
    assert fs.cat("main/bytes") != data
    with fs.open("main/bytes", compression=codec) as file:
        assert file.read() == data
    with fs.open("main/text", "r", compression=codec, encoding="utf-16-le", newline="") as text:
        assert text.read() == "é\r\n"


def test_a_codec_is_inferred_from_the_path(fs: RepositoryFileSystem) -> None:
    for path in ("main/a.gz", "main/a.txt"):
        with fs.open(path, "wt", compression="infer") as out:
            out.write("hello")
    assert gzip.decompress(fs.cat("main/a.gz")) == b"hello" == fs.cat("main/a.txt")


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize("mode", ["w", "wb", "a", "ab", "x", "xb"])
def test_an_error_in_the_middle_leaves_what_was_there(codec: str | None, mode: str, fs: RepositoryFileSystem) -> None:
    if "x" not in mode:
        fs.pipe("main/a", b"before")
    before = fs.find("main", detail=True)

    def fail() -> None:
        with fs.open("main/a", mode, compression=codec) as out:
            out.write(b"half" if "b" in mode else "half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert fs.find("main", detail=True) == before


def test_a_file_that_is_closed_takes_nothing_more(fs: RepositoryFileSystem) -> None:
    for mode, data in (("wb", b"1"), ("w", "1")):
        out = fs.open("main/a", mode, compression="gzip")
        out.write(data)
        out.close()
        out.close()
        with pytest.raises(ValueError, match="closed"):
            out.write(data)
        out.discard()
        with fs.open("main/a", "rb", compression="gzip") as file:
            assert file.read() == b"1"


def test_a_codec_over_a_transaction_that_has_ended_stages_nothing(fs: RepositoryFileSystem) -> None:
    with fs.repository.branch("main").transact("t") as tx:
        out = tx.object("a").writer()
        out.write(b"1")
    with pytest.raises(UnsupportedError, match="ended"):
        out.close()
    assert not fs.exists("main/a")


def test_an_open_file_pickles_and_reads_on_from_where_it_was(fs: RepositoryFileSystem) -> None:
    fs.pipe("main/a", bytes(range(100)))
    fs.repository.branch("main").commit("a")
    with fs.open("main/a", block_size=10) as file:
        file.seek(40)
        with pickle.loads(pickle.dumps(file)) as other:
            assert other.tell() == 40
            assert other.read() == file.read() == bytes(range(40, 100))


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_begins_with_the_mark_of_its_encoding_and_has_no_other(
    encoding: str, codec: str | None, fs: RepositoryFileSystem
) -> None:
    for mode, text in (("w", "a\n"), ("a", "é\n"), ("a", "c")):
        with fs.open("main/a", mode, compression=codec, encoding=encoding, newline="\n") as out:
            out.write(text[:1])
            assert not out.seekable()
            with pytest.raises(OSError, match="count its bytes"):
                out.tell()
            out.write(text[1:])
    with fs.open("main/a", "rb", compression=codec) as file:
        assert file.read() == "a\né\nc".encode(encoding)


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_what_is_dropped_before_it_is_closed_is_not_staged(
    mode: str, codec: str | None, fs: RepositoryFileSystem
) -> None:
    file = fs.open("main/a", mode, compression=codec)
    file.write("half" if mode == "w" else b"half")
    del file
    gc.collect()
    assert not fs.exists("main/a")
    file = fs.open("main/a", "w", compression=codec)
    file.write("whole")
    below = file.detach()
    del file
    gc.collect()
    below.close()
    with fs.open("main/a", "r", compression=codec) as read:
        assert read.read() == "whole"


@pytest.mark.parametrize(
    ("read", "tail"),
    [
        (lambda fs: fs.cat("main/a"), 0),
        (lambda fs: fs.cat_file("main/a", start=-4), -4),
        (lambda fs: fs.open("main/a").read(), 0),
    ],
    ids=["cat", "cat_tail", "open"],
)
def test_what_is_read_beside_a_commit_is_the_object_before_or_behind_it(
    read: Callable[[RepositoryFileSystem], bytes],
    tail: int,
    fs: RepositoryFileSystem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Repository(tmp_path / "lake").branch("main")
    find = RefView.found
    for old, new in itertools.permutations([b"short", b"and a longer one"]):
        for at in range(4):
            other.object("a").upload(old)
            other.commit("old", allow_empty=True)
            looks = itertools.count()

            def found(view: RefView, path: str) -> Any:
                if next(looks) == at:  # noqa: B023
                    monkeypatch.setattr(RefView, "found", find)
                    other.object("a").upload(new)  # noqa: B023
                    other.commit("new")
                return find(view, path)

            monkeypatch.setattr(RefView, "found", found)
            assert read(fs) in (old[tail:], new[tail:])
            monkeypatch.setattr(RefView, "found", find)
