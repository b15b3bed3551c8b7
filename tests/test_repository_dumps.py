"""Dumps of refs beside writers and collections, and restores of them: whole, or refused before anything is put."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, CommitConflictError, NotFoundError
from esker.repo import ExpiredError, Repository
from esker.store import stores

Watch = Callable[[str, str], None]


class Watched:
    """Stores below `watched://`, whose requests something happens beside."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.fails: str | None = None

    def meet(self, verb: str, part: str, action: Callable[[], object]) -> list[str]:
        """Does something once, just before a request; returns what tells whether it was done."""
        done: list[str] = []

        def watch(asked: str, path: str) -> None:
            if asked.startswith(verb) and part in path and not done:
                done.append(path)
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(action).result()

        self.watch = watch
        return done

    def open(self, uri: str, options: object, durable: bool) -> Store:
        def watch(verb: str, path: str) -> str | None:
            if self.watch is not None:
                self.watch(verb, path)
            return "fail" if verb == self.fails else None

        return FaultStore(Store(uri.removeprefix("watched://"), durable=False), "", watch=watch).store


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    stores.register("watched", made.open)
    yield made
    made.watch = None


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "from", committer="me")
    made.branch("main").object("a").upload("1")
    made.branch("main").commit("one")
    return made


def copied(repo: Repository, to: Path, but: str = "") -> Repository:
    """A new repository with the tables and objects of another, and none of its refs."""
    made = Repository.create(to)
    for folder in ("_lakefs", "data"):
        if Path(repo.uri, folder).exists():
            shutil.copytree(Path(repo.uri, folder), to / folder, dirs_exist_ok=True)
    if but:
        (to / but).unlink()
    return made


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def test_a_commit_and_its_tag_beside_a_dump_are_both_in_it_or_neither(
    repo: Repository, watched: Watched, tmp_path: Path
) -> None:
    def write() -> None:
        other = Repository(repo.uri)
        other.branch("main").object("b").upload(other.branch("main").get_commit().id)
        other.tag("two").create(other.branch("main").commit("two"))

    for at, part in enumerate(("refs/heads", "refs/tags", "commits/")):
        done = watched.meet("list", part, write)
        Repository("watched://" + repo.uri).dump_refs()
        assert done
        moved = copied(repo, tmp_path / str(at))
        moved.restore_refs()
        assert list(moved.fsck()) == []
        if "two" in [tag.id for tag in moved.tags()]:
            assert moved.ref("two").object("b").exists()
        repo.tag("two").delete()


def test_a_tag_that_is_deleted_beside_a_dump_is_left_out(repo: Repository, watched: Watched, tmp_path: Path) -> None:
    repo.tag("v1").create("main")
    repo.tag("v2").create("main")
    assert watched.meet("get", "tags/v1", lambda: Repository(repo.uri).tag("v1").delete()) == []
    Repository("watched://" + repo.uri).dump_refs()
    moved = copied(repo, tmp_path / "to")
    moved.restore_refs()
    assert [tag.id for tag in moved.tags()] == ["v2"]


@pytest.fixture
def dead(repo: Repository) -> str:
    """A commit of the repository that has expired, and whose content is deleted."""
    repo.branch("tmp").create("main")
    repo.branch("tmp").object("z").upload("z")
    made = repo.branch("tmp").commit("dead").id
    repo.branch("tmp").delete()
    repo.change_settings(retention_days=0)
    assert repo.gc(dry_run=False, grace_s=-3600, now=time.time() + 10 * 86400).tables
    return made


@pytest.mark.parametrize("list_is_lost", [False, True])
def test_what_has_expired_is_expired_where_the_dump_is_restored(
    list_is_lost: bool, repo: Repository, dead: str, tmp_path: Path
) -> None:
    repo.dump_refs()
    moved = copied(repo, tmp_path / "to", "_lakefs/esker_expired.json" if list_is_lost else "")
    moved.restore_refs()
    for use in (
        lambda: moved.branch("y").create(dead),
        lambda: moved.tag("y").create(dead),
        lambda: list(moved.ref(dead).objects()),
        lambda: moved.ref(dead).merge_into("main"),
        lambda: moved.branch("main").cherry_pick(dead),
        lambda: moved.branch("main").reset_to(dead),
    ):
        with pytest.raises(ExpiredError):
            use()
    assert next(moved.ref(dead).log()).message == "dead"
    for handle in (moved, repo):
        handle.gc()
        handle.gc(dry_run=False, grace_s=-3600)
        assert list(handle.fsck()) == []
    moved.dump_refs()
    again = copied(moved, tmp_path / "again")
    again.restore_refs()
    with pytest.raises(ExpiredError):
        again.branch("y").create(dead)


def test_a_collection_that_finds_content_gone_says_whose(repo: Repository) -> None:
    content = repo.branch("main").get_commit().meta_range_id
    Path(repo.uri, "_lakefs", content).unlink()
    with pytest.raises(NotFoundError, match=f"{repo.branch('main').get_commit().id}.*nothing was deleted"):
        Repository(repo.uri).gc()


def test_a_collection_beside_a_dump_leaves_it_whole(repo: Repository, watched: Watched, tmp_path: Path) -> None:
    collected = watched.meet("put", "refs_manifest.json", lambda: Repository(repo.uri).gc(dry_run=False, grace_s=-3600))
    dump = Repository("watched://" + repo.uri).dump_refs()
    assert collected
    assert list(repo.fsck()) == []
    moved = copied(repo, tmp_path / "to")
    moved.restore_refs(dump)
    assert moved.ref("main").get_commit() == repo.ref("main").get_commit()


def test_a_dump_that_a_collection_is_about_to_delete_is_refused(repo: Repository, tmp_path: Path) -> None:
    before = repo.dump_refs()
    repo.tag("v1").create("main")
    after = repo.dump_refs()
    manifest = Path(repo.uri, "_lakefs/refs_manifest.json")
    manifest.write_text(json.dumps(vars(before)))
    run = Path(repo.uri, "_esker/gc", 32 * "0")
    run.parent.mkdir(exist_ok=True)
    said = {"ended": False, "time": time.time(), "before": 0, "commits": [], "tables": [after.tags_meta_range_id]}
    run.write_text(json.dumps(said))
    with pytest.raises(CommitConflictError, match="again when it is done") as caught:
        Repository(repo.uri).dump_refs()
    assert caught.value.retryable
    assert json.loads(manifest.read_text()) == vars(before)
    run.write_text(json.dumps({**said, "ended": True}))
    assert Repository(repo.uri).dump_refs() == after


def commit(to: Repository) -> None:
    to.branch("other").create("main")
    to.branch("other").object("k").upload("k")
    to.branch("other").commit("other")


def collide(to: Repository) -> None:
    to.branch("q").create("main")


def tag(to: Repository) -> None:
    to.tag("v1").create("main")


def commit_and_delete(to: Repository) -> None:
    commit(to)
    to.branch("other").delete()


@pytest.mark.parametrize("there", [commit, collide, tag, commit_and_delete])
def test_a_restore_into_what_is_not_new_is_refused_before_anything_is_put(
    there: Callable[[Repository], None], repo: Repository, tmp_path: Path
) -> None:
    repo.branch("q").create("main")
    repo.tag("v1").create("main")
    repo.dump_refs()
    there(copied(repo, tmp_path / "to"))
    before = files(tmp_path / "to")
    with pytest.raises(AlreadyExistsError, match="just created"):
        Repository(tmp_path / "to").restore_refs()
    assert files(tmp_path / "to") == before


def test_a_restore_without_the_content_of_a_branch_is_refused_before_anything_is_put(
    repo: Repository, tmp_path: Path
) -> None:
    repo.dump_refs()
    moved = copied(repo, tmp_path / "to", f"_lakefs/{repo.branch('main').get_commit().meta_range_id}")
    before = files(tmp_path / "to")
    with pytest.raises(NotFoundError, match="copy all of"):
        moved.restore_refs()
    assert files(tmp_path / "to") == before


def test_a_restore_that_failed_at_its_last_step_can_be_done_again(
    repo: Repository, watched: Watched, tmp_path: Path
) -> None:
    repo.tag("v1").create("main")
    repo.dump_refs()
    moved = copied(repo, tmp_path / "to")
    first = moved.branch("main").get_commit().id
    watched.fails = "delete"
    with pytest.raises(OSError, match="injected"):
        Repository(f"watched://{tmp_path / 'to'}").restore_refs()
    watched.fails = None
    for _ in range(2):
        Repository(tmp_path / "to").restore_refs()
        assert moved.ref("main").get_commit() == repo.ref("main").get_commit()
        assert [tag.id for tag in moved.tags()] == ["v1"]
        assert not Path(tmp_path, "to/_esker/commits", first).exists()
    moved.branch("main").object("b").upload("1")
    moved.branch("main").commit("more")
    with pytest.raises(AlreadyExistsError, match="just created"):
        Repository(tmp_path / "to").restore_refs()
