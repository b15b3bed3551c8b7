"""What a handle stages, against a plain map: objects whole, paths in the order of their bytes, removals among them."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from esker.exceptions import InvalidArgumentError
from esker.repo import ObjectInfo, Repository, repository
from esker.repo.filesystem import RepositoryFileSystem

NUMBERS = itertools.count()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PATHS = st.text(st.sampled_from("ab/-.0é日\U0001f600"), min_size=1, max_size=4)
TIMES = st.none() | st.integers(-(10**15), 10**16).map(lambda us: EPOCH + timedelta(microseconds=us))
OBJECTS = st.builds(
    ObjectInfo,
    path=st.just(""),
    physical_address=st.sampled_from(["data/1/a", "s3://bucket/日本", "/local/x"]),
    size_bytes=st.integers(0, 2**62),
    checksum=st.text(max_size=5),
    mtime=TIMES,
    content_type=st.sampled_from(["", "text/plain"]),
    metadata=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
    address_type=st.sampled_from(["relative", "full", "by_prefix"]),
)
STEPS = st.lists(st.tuples(PATHS, st.none() | OBJECTS), max_size=20)


@given(STEPS, STEPS, PATHS, PATHS)
def test_what_is_staged_is_listed_and_committed_as_a_map_would(
    first: list[tuple[str, ObjectInfo | None]], then: list[tuple[str, ObjectInfo | None]], prefix: str, after: str
) -> None:
    branch = Repository.create(f"memory://staging-{next(NUMBERS)}").branch("main")
    model: dict[str, ObjectInfo] = {}
    for steps in (first, then):
        before, staged = dict(model), {}
        for path, info in steps:
            staged[path] = info and ObjectInfo(**{**vars(info), "path": path})
            branch._stage(path, staged[path])
        for path, info in staged.items():
            model.pop(path, None)
            if info is not None:
                model[path] = info
        expected = [model[path] for path in sorted(model, key=str.encode)]
        assert list(branch.objects()) == expected
        assert list(branch.objects(prefix=prefix, after=after)) == [
            info for info in expected if info.path.startswith(prefix) and info.path > after
        ]
        told = [(change.path, change.left, change.right) for change in branch.uncommitted()]
        paths = sorted(staged, key=str.encode)
        either = [(path, before.get(path), staged[path]) for path in paths]
        assert told == [one for one in either if one[1:] != (None, None)]
        branch.commit("step", allow_empty=True)
        # What has the same identity stays as it was committed: address and time are no part of it.
        for path in paths:
            if path in before and path in model and identity(before[path]) == identity(model[path]):
                model[path] = before[path]
        assert list(branch.objects()) == [model[path] for path in sorted(model, key=str.encode)]


def identity(info: ObjectInfo) -> object:
    return info.size_bytes, info.checksum, dict(info.metadata), info.content_type


@pytest.fixture
def many(tmp_path: Path) -> Repository:
    """A repository with more staged than is looked at in one go."""
    repo = Repository.create(tmp_path / "repo")
    for n in range(10_000):
        path = f"{n * 7919 % 10_000:05}"
        repo.branch("main")._stage(path, ObjectInfo(path, f"data/0/{n}", n, f"{n:x}"))
    return repo


def test_many_staged_objects_are_listed_in_pages(many: Repository) -> None:
    main = many.branch("main")
    assert [entry.path for entry in main.objects()] == [f"{n:05}" for n in range(10_000)]
    assert [change.path for change in main.uncommitted()] == [f"{n:05}" for n in range(10_000)]
    assert len(list(main.uncommitted(max_amount=3, after="00004"))) == 3
    listed = main.objects()
    first = next(listed)
    # What is staged meanwhile is among the rest, what is taken back is not.
    main._stage("99999x", ObjectInfo("99999x", "data/0/x", 1, "1"))
    main.reset_changes("object", "09999")
    rest = [entry.path for entry in listed]
    assert (first.path, rest[-1], len(rest)) == ("00000", "99999x", 9_999)


def test_many_objects_are_deleted_in_one_commit(many: Repository) -> None:
    main = many.branch("main")
    main.commit("all")
    main.delete_objects(entry.path for entry in many.ref("main").objects() if int(entry.path) % 10)
    assert [int(entry.path) for entry in main.objects()] == list(range(0, 10_000, 10))
    main.commit("fewer")
    assert len(list(repository(many.uri).branch("main").objects())) == 1000


def test_a_failed_block_of_a_file_system_takes_back_what_it_staged_over_many(many: Repository) -> None:
    main, fs = many.branch("main"), RepositoryFileSystem(many)
    before = main.object("00001").stat()

    def fail() -> None:
        with fs.transaction:
            fs.pipe("main/00001", b"new")
            fs.pipe("main/other", b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert main.object("00001").stat() == before
    assert not main.object("other").exists()
    assert len(list(main.uncommitted())) == 10_000


def test_an_address_of_no_known_type_is_refused_when_it_is_staged(many: Repository) -> None:
    with pytest.raises(InvalidArgumentError, match="address type"):
        many.branch("main")._stage("x", ObjectInfo("x", "a", 1, "1", address_type="near"))  # type: ignore[arg-type]
    assert not many.branch("main").object("x").exists()
