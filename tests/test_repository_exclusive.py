"""The mode `x`: of several writers of one handle that make the same new object, one wins, and its bytes stay."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from esker.exceptions import AlreadyExistsError
from esker.repo import NoChangesError, Repository
from esker.repo.filesystem import RepositoryFileSystem


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo")


def test_one_of_several_that_write_what_may_not_be_there_yet_wins(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("gone").upload("1")
    main.commit("gone")
    main.object("gone").delete()
    for path in ("new", "gone"):
        writers = [main.object(path).writer("xb") for _ in range(3)]
        for number, writer in enumerate(writers):
            writer.write(b"%d" % number)
        writers[1].close()
        for late in (writers[0], writers[2]):
            with pytest.raises(AlreadyExistsError, match=path):
                late.close()
        assert main.object(path).reader().read() == b"1"
    # Nor beside commits of what is staged.
    for number in range(5):
        late = main.object(f"n{number}").writer("xb")
        main.object(f"n{number}").upload("first", "x")
        main.commit("first")
        main.object("other").upload(str(number))
        with pytest.raises(AlreadyExistsError, match=f"n{number}"):
            late.close()


def test_threads_that_write_what_may_not_be_there_yet_win_once(repo: Repository) -> None:
    main = repo.branch("main")
    won: list[tuple[str, int]] = []

    def work(number: int) -> None:
        for path in map(str, range(30)):
            try:
                main.object(path).upload(str(number), "x")
            except AlreadyExistsError:
                continue
            won.append((path, number))
            if len(won) % 7 == 0:
                with suppress(NoChangesError):
                    main.commit("some")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won, key=lambda one: int(one[0])) == [
        (path, int(main.object(path).reader("r").read())) for path in map(str, range(30))
    ]


def test_a_file_system_makes_what_is_new_once(repo: Repository) -> None:
    fs = RepositoryFileSystem(repo)
    late = fs.open("main/a", "xb")
    fs.pipe_file("main/a", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        late.close()
    assert fs.cat("main/a") == b"first"
    with suppress(KeyError), fs.transaction:
        fs.pipe_file("main/b", b"1", mode="create")
        raise KeyError
    fs.pipe_file("main/b", b"2", mode="create")
    assert fs.cat("main/b") == b"2"
