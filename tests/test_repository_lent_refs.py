"""Refs of a repository that move by an external manifest store: when that fails, and when somebody is held up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.commit.external import SqliteManifestStore
from esker.exceptions import AlreadyExistsError, CorruptFileError, IOFailedError, NotFoundError
from esker.repo import Repository
from esker.repo.refs import atomic_objects
from esker.repo.refs.numbered_log import OLD_SECONDS, NumberedLog
from tests.held_up import hold_up_the_winner

HEX = "0123456789abcdef" * 2


@pytest.fixture
def lender(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/manifests.db"


@pytest.fixture
def repo(tmp_path: Path, lender: str) -> Repository:
    return Repository.create(tmp_path / "repo", manifest_store=lender)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    def run(verb: str, work: Callable[[], object]) -> None:
        def fails(*_: Any) -> Any:
            raise IOFailedError("no reply")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteManifestStore, verb, fails)
            with pytest.raises(IOFailedError, match="no reply"):
                work()

    return run


def _names(repo: Repository) -> list[str]:
    return [tag.id for tag in repo.tags()]


def test_a_tag_whose_deletion_was_broken_off_can_be_deleted_again(
    repo: Repository, lender: str, failing: Callable[[str, Callable[[], object]], None]
) -> None:
    repo.tag("v1").create("main")
    failing("delete", repo.tag("v1").delete)
    assert not _names(repo)
    again = Repository(repo.uri, manifest_store=lender)
    with pytest.raises(AlreadyExistsError, match="deletion was broken off; delete it again"):
        again.tag("v1").create("main")
    again.tag("v1").delete()
    with pytest.raises(NotFoundError):
        again.tag("v1").delete()
    again.tag("v1").create("main")
    assert _names(repo) == ["v1"]


def test_a_tag_that_was_not_created_is_no_tag_under_another_name(
    repo: Repository, lender: str, failing: Callable[[str, Callable[[], object]], None]
) -> None:
    failing("put_if_not_exists", lambda: repo.tag("v1").create("main"))
    repo.tag(f"v2-{HEX}").create("main")
    assert _names(repo) == [f"v2-{HEX}"]
    repo.tag("v1").create("main")
    assert _names(Repository(repo.uri, manifest_store=lender)) == ["v1", f"v2-{HEX}"]
    assert not list(repo.fsck())


def test_a_tag_that_was_not_copied_to_its_place_is_listed(repo: Repository, lender: str) -> None:
    repo.tag("v1").create("main")
    place = Path(repo.uri, "_esker/refs/tags/v1")
    place.rename(f"{place}-{HEX}")
    store = SqliteManifestStore(lender.removeprefix("sqlite://"))
    assert store.put_if_exists(f"{repo.uri}/_esker/refs/tags/v1", 1, f"_esker/refs/tags/v1-{HEX}", 1)
    assert _names(repo) == ["v1"]
    assert repo.tag("v1").get_commit().id == repo.ref("main").get_commit().id
    assert place.exists()


def test_a_deleted_tag_whose_writer_did_not_end_stays_deleted(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SqliteManifestStore, "put_if_exists", lambda *_: (_ for _ in ()).throw(IOFailedError("lost")))
        repo.tag("v1").create("main")
    assert _names(repo) == ["v1"]
    repo.tag("v1").delete()
    assert not list(Path(repo.uri, "_esker/refs/tags").iterdir())
    assert not _names(repo)


@pytest.mark.parametrize("late_s", [0.0, 60.0], ids=["long", "short"])
def test_a_tag_that_was_deleted_does_not_come_back_by_its_writer(
    repo: Repository,
    lender: str,
    late_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(atomic_objects, "_LATE_S", late_s)
    other = Repository(repo.uri, manifest_store=lender)
    hold_up_the_winner(monkeypatch, lambda: other.tag("v1").delete(), of="tags/v1")
    repo.tag("v1").create("main")
    assert not _names(repo)
    assert not list(Path(repo.uri, "_esker/refs/tags").iterdir())


def test_a_tag_that_was_made_anew_stays_where_it_is(
    repo: Repository,
    lender: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(atomic_objects, "_LATE_S", 0.0)
    other = Repository(repo.uri, manifest_store=lender)
    first = repo.ref("main").get_commit().id
    repo.branch("main").object("a").upload("a")
    second = repo.branch("main").commit("second").id

    def anew() -> None:
        other.tag("v1").delete()
        other.tag("v1").create(second)

    hold_up_the_winner(monkeypatch, anew, of="tags/v1")
    repo.tag("v1").create(first)
    assert repo.tag("v1").get_commit().id == second


def test_a_reader_that_is_held_up_brings_no_tag_back(
    repo: Repository, lender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.tag("v1").create("main")
    place = Path(repo.uri, "_esker/refs/tags/v1")
    place.rename(f"{place}-{HEX}")
    store = SqliteManifestStore(lender.removeprefix("sqlite://"))
    assert store.put_if_exists(f"{repo.uri}/_esker/refs/tags/v1", 1, f"_esker/refs/tags/v1-{HEX}", 1)
    other = Repository(repo.uri, manifest_store=lender)
    read = repo._core.atomic._store.get

    class HeldUp:
        def __getattr__(self, name: str) -> Any:
            return getattr(repo._core.store, name)

        def get(self, path: str) -> bytes:
            data = read(path)
            if path.endswith(HEX):
                other.tag("v1").delete()
            return data

    monkeypatch.setattr(repo._core.atomic, "_store", HeldUp())
    assert repo.tag("v1").get_commit()
    assert not _names(other)
    assert not list(place.parent.iterdir())


def test_an_entry_whose_writer_did_not_end_is_compacted_for_good(
    repo: Repository, lender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(repo: Repository, message: str) -> None:
        repo.branch("main").object("a").upload(message)
        repo.branch("main").commit(message)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteManifestStore, "put_if_exists", lambda *_: (_ for _ in ()).throw(IOFailedError("lost")))
        commit(repo, "ours")
    assert repo.ref("main").get_commit().message == "ours"
    other = Repository(repo.uri, manifest_store=lender)
    for number in range(5):
        commit(other, f"theirs {number}")
    assert other._core.log("main").compact(keep=2, younger_than_s=-3600)
    # A process that has seen nothing but its own entry, hours ago: that is gone.
    log = repo._core.log("main")
    log._looked = (log._looked[0] - 2 * OLD_SECONDS, log._looked[1] - 2 * OLD_SECONDS)
    assert repo.ref("main").get_commit().message == "theirs 4"
    commit(repo, "after them")
    assert [one.message for one in other.ref("main").log(2)] == ["after them", "theirs 4"]


@pytest.mark.parametrize("has_won", [False, True], ids=["before the put", "after it"])
def test_two_names_of_one_repository_overwrite_no_commit(
    repo: Repository,
    lender: str,
    tmp_path: Path,
    has_won: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = tmp_path / "link"
    link.symlink_to(repo.uri)
    other = Repository(link, manifest_store=lender)

    def theirs() -> None:
        other.branch("main").object("b").upload("b")
        other.branch("main").commit("theirs")

    repo.branch("main").object("a").upload("a")
    if has_won:
        hold_up_the_winner(monkeypatch, theirs, of=f"{repo.uri}/_esker/refs/heads/main/{2:020}")
        with pytest.raises(CorruptFileError, match="opens the repository by another name"):
            repo.branch("main").commit("ours")
    else:
        put = NumberedLog.put

        def late(log: NumberedLog, number: int, data: bytes) -> bool:
            monkeypatch.setattr(NumberedLog, "put", put)
            theirs()
            return put(log, number, data)

        monkeypatch.setattr(NumberedLog, "put", late)
        repo.branch("main").commit("ours")
    assert [one.message for one in repo.ref("main").log(2)][has_won - 1] == "theirs"
    repo.branch("main").object("c").upload("c")
    repo.branch("main").commit("next")
    assert sorted(entry.path for entry in other.ref("main").objects()) == ["a", "b", "c"]
