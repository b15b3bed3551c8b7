"""Tags of a repository whose refs move by an external manifest store, when that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.commit.external import SqliteManifestStore
from esker.exceptions import AlreadyExistsError, IOFailedError, NotFoundError
from esker.repo import Repository

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
