"""Work on refs that is broken off: by Ctrl-C at any request, by a lost reply whose look-up fails as well, by hooks.

Whatever ends it: every ref opens, what was reported as done is there, what was refused is not, nothing that a ref leads
to is missing, and the next writer goes on.
"""

from __future__ import annotations

import itertools
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    EskerError,
    IOFailedError,
)
from esker.repo import HookEvent, Repository, repository
from esker.repo.core.creation import create as create_at
from esker.repo.refs.atomic_objects import AtomicObjects
from esker.store import stores
from tests.test_repository_crash_points import check_sound, commit, fill, merge, revert, state

VERBS = {"get", "put", "put_if_absent", "delete", "delete_all", "head", "list", "list_paths", "list_folders"}


class Interrupted:
    """A store that is left by Ctrl-C before or after one of its requests."""

    def __init__(self, store: Store, number: int, *, after: bool) -> None:
        self._store, self._number, self._after = store, number, after
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in VERBS:
            return found

        def asked(*args: Any) -> Any:
            mine = next_of(self)
            if mine == self._number and not self._after:
                raise KeyboardInterrupt
            try:
                return found(*args)
            finally:
                if mine == self._number:
                    raise KeyboardInterrupt

        return asked


def next_of(store: Interrupted) -> int:
    store.count += 1
    return store.count - 1


def under(repo: Repository, store: Interrupted) -> None:
    core = repo._core
    proxy = cast(Store, store)
    core.store = core.atomic._store = core.commits._store = core.commits.packs._store = proxy


def create(repo: Repository) -> None:
    repo.branch("new").create("dev")


def tag(repo: Repository) -> None:
    repo.tag("v1").create("dev")


def reset(repo: Repository) -> None:
    repo.branch("dev").reset_to("main")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("work", [commit, merge, create, tag, reset, revert], ids=lambda work: work.__name__)
def test_ctrl_c_at_any_request_leaves_refs_that_are_whole(
    work: Callable[[Repository], None], after: bool, tmp_path: Path
) -> None:
    pristine, whole = tmp_path / "pristine", tmp_path / "whole"
    fill(str(pristine))
    shutil.copytree(pristine, whole)
    before = state(Repository(whole))
    work(Repository(whole))
    done = state(Repository(whole))
    for number in itertools.count():
        folder = tmp_path / str(number)
        shutil.copytree(pristine, folder)
        repo = Repository(folder)
        store = Interrupted(repo._core.store, number, after=after)
        under(repo, store)
        interrupted = False
        try:
            work(repo)
        except KeyboardInterrupt:
            interrupted = True
        if not interrupted:
            assert state(Repository(folder)) == done
            break
        check_sound(str(folder), before, done, f"Ctrl-C at {number}")
        shutil.rmtree(folder)
    assert number > 3


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_creation_that_was_broken_off_is_done_again(after: bool, tmp_path: Path) -> None:
    for number in itertools.count():
        folder = tmp_path / str(number)
        store = Interrupted(Store(str(folder)), number, after=after)
        proxy = cast(Store, store)
        try:
            assert create_at(proxy, str(folder), AtomicObjects(proxy), "main", "me")
        except KeyboardInterrupt:
            pass
        else:
            break
        repo = Repository.create(folder, exist_ok=True)
        assert [branch.id for branch in repo.branches()] == ["main"]
        repo.branch("main").object("a").upload("a")
        repo.branch("main").commit("first")
        assert [commit.message for commit in repository(folder).ref("main").log()] == ["first", "Repository created"]
        assert list(repository(folder).fsck()) == []
    assert number > 4


class Planned:
    """Stores behind `planned://`, whose requests meet what a test plans."""

    def __init__(self) -> None:
        self.plan: Callable[[str, str], str | None] = lambda verb, path: None

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        inner = Store(uri.removeprefix("planned://"), durable=False)
        return FaultStore(inner, watch=lambda verb, path: self.plan(verb, path)).store


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    found = Planned()
    monkeypatch.setitem(stores._factories, "planned", cast(Any, found))
    return found


def lost_and_blind(ref: str, blind: set[str]) -> Callable[[str, str], str | None]:
    """The reply to the put of a ref is lost; from then on requests of some kinds fail."""
    lost: list[str] = []

    def plan(verb: str, path: str) -> str | None:
        if lost and verb in blind:
            return "fail"
        if verb == "put_if_absent" and ref in path and not lost:
            lost.append(path)
            return "lose_reply"
        return None

    return plan


@pytest.mark.parametrize("number", range(4))
def test_what_is_known_to_have_landed_is_not_told_as_a_failure(number: int, planned: Planned, tmp_path: Path) -> None:
    fill(str(tmp_path / "repo"))
    main = Repository(f"planned://{tmp_path / 'repo'}").branch("main")
    lost: list[str] = []
    reads = itertools.count()

    def plan(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and "heads/main/" in path and not lost:
            lost.append(path)
            return "lose_reply"
        return "fail" if lost and verb == "get" and path == lost[0] and next(reads) == number else None

    planned.plan = plan
    main.object("a").upload("anew")
    try:
        main.commit("anew")
    except CommitStateUnknownError:
        # The look-up itself has failed.
        assert number == 0
    assert lost
    planned.plan = lambda verb, path: None
    assert [commit.message for commit in Repository(tmp_path / "repo").branch("main").log(1)] == ["anew"]


@pytest.mark.parametrize(
    "blind", [{"get"}, {"list"}, {"get", "list", "head"}], ids=lambda blind: "+".join(sorted(blind))
)
@pytest.mark.parametrize(
    ("work", "ref"),
    [(commit, "heads/main/"), (merge, "heads/main/"), (create, "heads/new/"), (tag, "tags/v1"), (reset, "heads/dev/")],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_a_lost_reply_whose_look_up_fails_too_is_unknown_and_nothing_is_deleted(
    work: Callable[[Repository], None], ref: str, blind: set[str], planned: Planned, tmp_path: Path
) -> None:
    pristine, whole = tmp_path / "pristine", tmp_path / "whole"
    fill(str(pristine))
    shutil.copytree(pristine, whole)
    before = state(Repository(whole))
    work(Repository(whole))
    done = state(Repository(whole))
    repo = Repository(f"planned://{pristine}")
    there = {path for path in pristine.rglob("*") if path.is_file()}
    planned.plan = lost_and_blind(ref, blind)
    reported = True
    try:
        work(repo)
    except CommitStateUnknownError:
        reported = False
    assert there <= {path for path in pristine.rglob("*") if path.is_file()}
    planned.plan = lambda verb, path: None
    # It had landed, whatever could be said of it.
    assert state(Repository(pristine)) == done
    assert reported or "get" in blind
    check_sound(str(pristine), before, done, ref)


def test_creations_whose_replies_are_lost_are_known_by_what_is_there(planned: Planned, tmp_path: Path) -> None:
    planned.plan = lost_and_blind("repository.json", set())
    made = Repository.create(f"planned://{tmp_path}/a")
    assert Repository(tmp_path / "a").id == made.id
    planned.plan = lost_and_blind("repository.json", {"get"})
    with pytest.raises(CommitStateUnknownError):
        Repository.create(f"planned://{tmp_path}/b")
    planned.plan = lambda verb, path: None
    with pytest.raises(AlreadyExistsError):
        Repository.create(tmp_path / "b")
    assert Repository(tmp_path / "b").ref("main").get_commit().message == "Repository created"
    planned.plan = lost_and_blind("tags/v1", set())
    assert Repository(f"planned://{tmp_path}/b").tag("v1").create("main").get_commit()


class Retrying:
    """A store whose client sends the put of a path twice, so that it learns of its own object; a look at it fails."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path, self._sent = store, path, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        done = self._store.put_if_absent(path, data)
        if path.endswith(self._path):
            self._sent.append(path)
            return False
        return done

    def get(self, path: str) -> bytes:
        if path in self._sent:
            raise IOFailedError(f"{path}: cannot read: slow down")
        return self._store.get(path)


def test_what_a_retry_finds_and_nobody_can_read_is_in_doubt(tmp_path: Path) -> None:
    fill(str(tmp_path / "a"))
    repo = Repository(tmp_path / "a")
    repo._core.atomic._store = cast(Store, Retrying(repo._core.store, "tags/v1"))
    with pytest.raises(
        CommitStateUnknownError, match=r"tags/v1: it is not known whether it was put: something is there"
    ):
        repo.tag("v1").create("dev")
    assert repository(tmp_path / "a").ref("v1").get_commit() == repo.ref("dev").get_commit()
    store = cast(Store, Retrying(Store(str(tmp_path / "b")), "repository.json"))
    with pytest.raises(CommitStateUnknownError, match="it is not known whether it was put"):
        create_at(store, "b", AtomicObjects(store), "main", "me")
    assert [branch.id for branch in repository(tmp_path / "b").branches()] == ["main"]


def test_a_repository_that_was_created_and_cannot_be_opened_is_told_to_be_there(
    planned: Planned, tmp_path: Path
) -> None:
    put: list[str] = []

    def plan(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path.endswith("repository.json"):
            put.append(path)
            return None
        return "fail" if put else None

    planned.plan = plan
    with pytest.raises(CommitStateUnknownError, match="was created, but could not be opened.*do not create it again"):
        Repository.create(f"planned://{tmp_path}/lake")
    assert [branch.id for branch in repository(tmp_path / "lake").branches()] == ["main"]


def raises(event: HookEvent) -> None:
    raise RuntimeError(f"after {event.commit.message}")


@pytest.mark.parametrize("action", ["default", "error"])
def test_what_follows_a_commit_never_fails_it(action: Any, tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.add_hook("post-commit", raises)
    repo.add_hook("post-merge", raises)
    main = repo.branch("main")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        main.object("a").upload("a")
        main.commit("first")
        assert list(main.uncommitted()) == []
        repo.branch("dev").create("main")
        with repo.branch("dev").transact("second", tag="v2") as tx:
            tx.object("b").upload("b")
        repo.branch("dev").merge_into("main", message="third")
        main.revert("main", parent_number=1)
    assert len(told) == (4 if action == "default" else 0)
    messages = [commit.message for commit in repository(repo.uri).ref("main").log(first_parent=True)]
    assert messages[1:] == ["third", "first", "Repository created"]
    assert repo.ref("v2").get_commit().message == "second"


def test_a_transaction_that_cannot_be_tagged_says_that_it_is_committed(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    main = repo.branch("main")
    repo.add_hook("pre-commit", lambda event: repo.tag("v1").create("main"))  # type: ignore[arg-type]
    with (
        pytest.raises(AlreadyExistsError, match="committed as [0-9a-f]{64} to 'main', but not tagged"),
        main.transact("change", tag="v1") as tx,
    ):
        tx.object("a").upload("a")
    assert repo.ref("main").get_commit().message == "change"


def test_a_transaction_whose_tag_is_in_doubt_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> bool:
        raise CommitStateUnknownError("the reply is lost")

    repo = Repository.create(tmp_path / "repo")
    monkeypatch.setattr(AtomicObjects, "put_own", lost)
    with (
        pytest.raises(CommitStateUnknownError, match="to 'main', but it is not known whether it was tagged: the reply"),
        repo.branch("main").transact("change", tag="v1") as tx,
    ):
        tx.object("a").upload("a")
    assert repo.ref("main").get_commit().message == "change"


def test_a_transaction_takes_nothing_more_when_it_has_ended(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    with repo.branch("main").transact("change") as tx:
        tx.object("a").upload("a")
        store = stores.resolve(tx.store_uri())
        store.put("b", b"b")
        tx.commit("halfway")
        # What was opened before the commit would write to nowhere.
        with pytest.raises(NotImplementedError):
            store.put("c", b"c")
        stores.resolve(tx.store_uri()).put("d", b"d")
    with pytest.raises(NotImplementedError, match="ended"):
        tx.object("e").upload("e")
    assert [entry.path for entry in repo.ref("main").objects()] == ["a", "b", "d"]
    assert [commit.message for commit in repo.ref("main").log(2)] == ["change", "halfway"]


def test_a_repository_that_was_half_deleted_is_no_place_for_another(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.branch("main").object("a").upload("a")
    repo.branch("main").commit("first")
    (tmp_path / "repo/_esker/repository.json").unlink()
    with pytest.raises(AlreadyExistsError, match="left of a deletion"):
        Repository.create(tmp_path / "repo", exist_ok=True)
    shutil.rmtree(tmp_path / "repo/_esker")
    assert len(list(Repository.create(tmp_path / "repo").ref("main").log())) == 1


def test_a_restore_that_was_broken_off_is_done_again(planned: Planned, tmp_path: Path) -> None:
    fill(str(tmp_path / "from"))
    source = Repository(tmp_path / "from")
    source.tag("v1").create("dev")
    refs = source.dump_refs()
    for number in range(40):
        folder = tmp_path / str(number)
        Repository.create(folder)
        for below in ("_lakefs", "data"):
            shutil.copytree(tmp_path / "from" / below, folder / below, dirs_exist_ok=True)
        repo, asked = Repository(f"planned://{folder}"), itertools.count()
        planned.plan = lambda verb, path, number=number, asked=asked: (  # type: ignore[misc]
            "crash_after" if verb.startswith("put") and next(asked) == number else None
        )
        try:
            repo.restore_refs()
        except EskerError:
            planned.plan = lambda verb, path: None
            try:
                Repository(folder).restore_refs()
            except AlreadyExistsError:
                assert Repository(folder).ref("main").get_commit() == source.ref("main").get_commit()
            done = False
        else:
            done = True
        assert state(Repository(folder)) == state(source)
        assert list(Repository(folder).fsck()) == []
        if done:
            assert Repository(folder).dump_refs() == refs
            break
    assert number > 3


def test_a_restore_removes_no_commit_that_somebody_has_gone_on_from(tmp_path: Path) -> None:
    fill(str(tmp_path / "from"))
    Repository(tmp_path / "from").dump_refs()
    moved = Repository.create(tmp_path / "to")
    moved.tag("start").create("main")
    for below in ("_lakefs", "data"):
        shutil.copytree(tmp_path / "from" / below, tmp_path / "to" / below, dirs_exist_ok=True)
    moved.restore_refs()
    assert repository(tmp_path / "to").ref("start").get_commit().message == "Repository created"
    assert list(repository(tmp_path / "to").fsck()) == []


def test_a_conflict_is_a_refusal_and_no_doubt(tmp_path: Path) -> None:
    repo, other = Repository.create(tmp_path / "repo"), Repository(tmp_path / "repo")
    for n, handle in enumerate((repo, other)):
        handle.branch("main").object("a").upload(str(n))
    repo.branch("main").commit("first")
    with pytest.raises(CommitConflictError):
        other.branch("main").commit("second")
