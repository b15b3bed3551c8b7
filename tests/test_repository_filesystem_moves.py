"""What goes away and moves in a repository's file system: folders, patterns, and only so deep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from esker.exceptions import InvalidArgumentError, NotFoundError
from esker.repo import Repository
from esker.repo.filesystem import RepositoryFileSystem

PATHS = ["main/t/1", "main/t/2", "main/t/b/1", "main/t/b/c/1", "main/t/x[1]"]


@pytest.fixture
def fs(tmp_path: Path) -> RepositoryFileSystem:
    """The file system of a repository with some objects that are committed, and some that are staged."""
    made = RepositoryFileSystem(Repository.create(str(tmp_path / "lake")))
    made.pipe({path: path.encode() for path in PATHS[:3]})
    made.repository.branch("main").commit("some")
    made.pipe({path: path.encode() for path in PATHS[3:]})
    return made


@pytest.mark.parametrize(
    ("path", "options", "left"),
    [
        ("main/t", {"recursive": True}, []),
        ("main/t/", {"recursive": True, "maxdepth": 1}, PATHS[2:4]),
        ("main/t", {"recursive": True, "maxdepth": 2}, PATHS[3:4]),
        ("main/t", {"recursive": True, "maxdepth": 3}, []),
        ("main/t/b/*", {}, [*PATHS[:2], *PATHS[3:]]),
        ("main/t/*", {"recursive": True, "maxdepth": 1}, PATHS[2:4]),
        ("main/t/*", {"recursive": True}, []),
        ("main/t/[12]", {}, PATHS[2:]),
        ("main/t/x[1]", {}, PATHS[:4]),
        (["main/t/1", "main/t/b"], {"recursive": True}, ["main/t/2", "main/t/x[1]"]),
    ],
)
def test_what_is_removed(
    path: str | list[str], options: dict[str, Any], left: list[str], fs: RepositoryFileSystem
) -> None:
    fs.rm(path, **options)
    assert fs.find("main") == left


@pytest.mark.parametrize("path", ["main/t/b", ["main/t/1", "main/t/3"], "main/t/y*", "main/t/b/c"])
def test_what_is_not_there_to_be_removed_leaves_the_rest(path: str | list[str], fs: RepositoryFileSystem) -> None:
    with pytest.raises(NotFoundError):
        fs.rm(path)
    assert fs.find("main") == PATHS
    with pytest.raises(InvalidArgumentError, match="maxdepth"):
        fs.rm("main/t", recursive=True, maxdepth=0)


def test_folders_move_with_all_that_they_hold(fs: RepositoryFileSystem) -> None:
    fs.mv("main/t/b", "main/n", recursive=True)
    assert fs.find("main") == ["main/n/1", "main/n/c/1", *PATHS[:2], "main/t/x[1]"]
    pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs)).move("main/n", "main/t/b")
    assert fs.find("main") == PATHS
    assert [fs.cat_file(path) for path in PATHS] == [path.encode() for path in PATHS]
    fs.mv("main/t", "main/n", recursive=True, maxdepth=1)
    assert fs.find("main") == ["main/n/1", "main/n/2", "main/n/x[1]", *PATHS[2:4]]
    fs.repository.branch("other").create("main")
    fs.cp("main/", "other/all/", recursive=True)
    assert fs.find("other/all/n") == ["other/all/n/1", "other/all/n/2", "other/all/n/x[1]"]


def test_what_moves_to_itself_stays(fs: RepositoryFileSystem) -> None:
    for target in ("main/t/1", "esker://main/t/1", "/main/t/1"):
        fs.mv("main/t/1", target)
    fs.mv("main/t/1", fs.repository.branch("main").store_uri("t/1"))
    fs.repository.branch("a/b").create("main")
    fs.mv("a%2Fb/t/1", "a/b/t/1")
    assert fs.exists("a/b/t/1")
    fs.mv("main/t", "main/t/", recursive=True)
    with pytest.raises(InvalidArgumentError, match="outside"):
        fs.mv("main/t", "main/t/b", recursive=True)
    with pytest.raises(NotFoundError):
        fs.mv("main/nothing", "main/u")
    assert fs.find("main") == PATHS


@pytest.mark.parametrize(
    ("source", "target", "recursive"),
    [
        ("main/t/1", "main/t/", False),
        ("main/t/b", "main/t/", True),
        ("main/t/b", "main/t", True),
        ("main/t/*", "main/t/", True),
        ("main/t/[12]", "main/t", False),
        (["main/t/1", "main/t/2"], "main/t", False),
        (["main/t/1"], ["esker://main/t/1"], False),
    ],
)
def test_what_moves_into_the_folder_that_it_is_in_stays(
    source: str | list[str], target: str | list[str], recursive: bool, fs: RepositoryFileSystem
) -> None:
    fs.mv(source, target, recursive=recursive)
    assert {path: fs.cat_file(path) for path in fs.find("main")} == {path: path.encode() for path in PATHS}


def test_what_a_pattern_stands_for_moves_into_a_folder_below(fs: RepositoryFileSystem) -> None:
    fs.mv("main/t/*", "main/t/n", recursive=True)
    assert fs.find("main") == [f"main/t/n{path.removeprefix('main/t')}" for path in PATHS]


def test_a_target_may_be_a_source_too(fs: RepositoryFileSystem) -> None:
    fs.mv(["main/t/1", "main/t/2"], ["main/t/2", "main/t/3"])
    assert (fs.cat_file("main/t/2"), fs.cat_file("main/t/3")) == (b"main/t/1", b"main/t/2")
    assert not fs.exists("main/t/1")


def test_objects_that_would_have_no_place_of_their_own_stay(fs: RepositoryFileSystem) -> None:
    with pytest.raises(InvalidArgumentError, match="as many targets"):
        fs.mv(["main/t/1", "main/t/2"], ["main/t/3"])
    with pytest.raises(InvalidArgumentError, match="several for one"):
        fs.mv(["main/t/1", "main/t/b/1"], "main/n")
    with pytest.raises(NotFoundError):
        fs.mv(["main/t/1", "main/t/4"], ["main/n", "main/t/5"])
    assert fs.find("main") == PATHS


def test_what_looks_like_a_pattern_and_is_there_is_what_moves(fs: RepositoryFileSystem) -> None:
    fs.pipe_file("main/t/x1", b"another")
    assert fs.cat("main/t/x[1]") == b"main/t/x[1]"
    fs.cp("main/t/x[1]", "main/n")
    fs.mv("main/t/x[1]", "main/m")
    assert fs.find("main") == ["main/m", "main/n", *PATHS[:4], "main/t/x1"]
    assert fs.cat("main/[mn]") == {"main/m": b"main/t/x[1]", "main/n": b"main/t/x[1]"}
    fs.pipe_file("main/y[z]/1", b"1")
    fs.mv("main/y[z]", "main/y", recursive=True)
    assert fs.find("main/y") == ["main/y/1"]


def test_an_object_that_no_path_of_the_file_system_reaches_is_not_lost_with_its_folder(
    fs: RepositoryFileSystem,
) -> None:
    branch = fs.repository.branch("main")
    branch.object("t/b/").upload(b"bytes")
    branch.object("t/b/c/").upload(b"")
    fs.mv("main/t/b", "main/n", recursive=True)
    assert [one.path for one in branch.objects(prefix="t/b")] == ["t/b/"]
    assert fs.find("main/n") == ["main/n/1", "main/n/c/1"]
