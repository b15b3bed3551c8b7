"""Garbage collection beside writers that need, of all things, what it is about to delete.

A repository whose history is two months old has a commit that no ref leads to. A collection would give it up, and a
writer leads a ref to it, takes content out of it, or writes the same content anew. Each stands still at one of its
operations while the other goes on: whatever the order, the writer's ref is whole, or the writer was told.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from esker._native.fault import FaultStore
from esker._native.graveler import SortedNames
from esker._native.store import Store
from esker.exceptions import CommitConflictError, IOFailedError, NotFoundError
from esker.repo import ObjectInfo, Repository, import_data, repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.objects.batches import table as objects_table
from esker.repo.refs import gc_runs
from esker.repo.upkeep import garbage_collection
from esker.store import stores
from tests.ages import made_older

AGE_S = 60 * 86400.0
SEED = int(os.environ.get("ESKER_TURNS", "0"))
"""With any number but 0, all orders instead of some."""


def old_history(folder: Path) -> str:
    """Main at `third`, after `second`; and `lost`, which no ref leads to, with an object and a range of its own."""
    repo = Repository.create(folder, committer="me")
    then = int(time.time() - AGE_S)
    main = repo.branch("main")
    main.object("a").upload("a")
    main.commit("second", date=then)
    repo.branch("side").create("main")
    repo.branch("side").object("lost").upload("only here")
    lost = repo.branch("side").commit("lost", date=then).id
    main.object("b").upload("b")
    main.commit("third", date=then + 1)
    repo.branch("other").create("main")
    repo.branch("side").delete()
    for path in folder.rglob("*"):
        os.utime(path, (then, then))
    # The first commit has no date of its own to choose: retention goes by it, and it is nobody's content.
    return lost


def create(repo: Repository, lost: str) -> None:
    repo.branch("new").create(lost)


def tag(repo: Repository, lost: str) -> None:
    repo.tag("v1").create(lost)


def reset(repo: Repository, lost: str) -> None:
    repo.branch("other").reset_to(lost)


def merge(repo: Repository, lost: str) -> None:
    repo.ref(lost).merge_into("main")


def pick(repo: Repository, lost: str) -> None:
    repo.branch("main").cherry_pick(lost)


def copy(repo: Repository, lost: str) -> None:
    RepositoryFileSystem(repo).cp_file(f"{lost}/lost", "main/copied")
    repo.branch("main").commit("copied")


def again(repo: Repository, lost: str) -> None:
    # The same range and the same metarange as two months ago.
    repo.branch("main").object("b").delete()
    repo.branch("main").commit("second again")


def transact(repo: Repository, lost: str) -> None:
    with repo.branch("main").transact("new") as tx:
        tx.object("c").upload("c")
        tx.object("b").delete()


WORKS = [create, tag, reset, merge, pick, copy, again, transact]


class Watched:
    """Stores that tell of each of their operations, behind `watched://` URIs."""

    def __init__(self) -> None:
        self.watches: dict[str, Callable[[], None]] = {}

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        watch = self.watches.get(options.get("who", ""))

        def tell(verb: str, path: str) -> None:
            if watch is not None:
                watch()

        return FaultStore(Store(uri.removeprefix("watched://"), durable=False), watch=tell).store

    def open(self, folder: Path, who: str) -> Repository:
        return Repository(f"watched://{folder}", storage_options={"who": who})


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    found = Watched()
    stores.register("watched", found)  # type: ignore[arg-type]
    monkeypatch.setattr(garbage_collection, "_THREADS", 1)
    yield found
    del stores._factories["watched"]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("gc") / "pristine"
    return folder, old_history(folder)


def whole(folder: Path) -> None:
    """Everything that a ref leads to is there, byte for byte."""
    found = repository(folder)
    assert list(found.fsck()) == []
    for ref in [*found.branches(), *found.tags()]:
        for entry in found.ref(ref.id).objects():
            text = found.ref(ref.id).object(entry.path).reader("r").read()
            assert text == {"lost": "only here", "copied": "only here"}.get(entry.path, entry.path)


def tried(work: Callable[[Repository, str], None], repo: Repository, lost: str) -> str:
    """What became of it: done, given up by the collection, or to be tried again."""
    try:
        work(repo, lost)
    except NotFoundError:
        return "given up"
    except CommitConflictError as error:
        return "again" if error.retryable else "lost"
    return "done"


def operations(run: Callable[[], object], watches: dict[str, Callable[[], None]], who: str) -> int:
    count = itertools.count()
    watches[who] = lambda: (next(count), None)[1]
    run()
    return next(count)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_a_collection_and_a_writer_in_any_order(
    work: Callable[[Repository, str], None], watched: Watched, pristine: tuple[Path, str], tmp_path: Path
) -> None:
    first, lost = pristine
    counted = tmp_path / "counted"
    shutil.copytree(first, counted)
    collections = operations(lambda: watched.open(counted, "gc").gc(dry_run=False), watched.watches, "gc")
    shutil.rmtree(counted)
    shutil.copytree(first, counted)
    writes = operations(lambda: work(watched.open(counted, "writer"), lost), watched.watches, "writer")
    orders = list(itertools.product(range(collections), range(writes)))
    seen = set()
    some = orders if SEED else random.Random(work.__name__).sample(orders, min(8, len(orders)))
    # One writer that is done before the collection starts is among them.
    for k, j in [(0, writes), *some]:
        folder = tmp_path / f"{k}-{j}"
        shutil.copytree(first, folder)
        seen.add(_turn(work, watched, folder, lost, k, j))
        shutil.rmtree(folder)
    assert "done" in seen


def _turn(work: Callable[[Repository, str], None], watched: Watched, folder: Path, lost: str, k: int, j: int) -> str:
    """The collection stands still before its operation k, the writer runs up to its operation j; then the one to its
    end, and the other."""
    there, on = threading.Event(), threading.Event()
    own, collection = itertools.count(), itertools.count()
    outcome: list[str] = []

    def write() -> None:
        try:
            outcome.append(tried(work, watched.open(folder, "writer"), lost))
        finally:
            there.set()

    writer = threading.Thread(target=write)

    def at_writer() -> None:
        if next(own) == j:
            there.set()
            assert on.wait(60)

    def at_collection() -> None:
        if next(collection) == k:
            writer.start()
            assert there.wait(60)

    watched.watches = {"writer": at_writer, "gc": at_collection}
    watched.open(folder, "gc").gc(dry_run=False)
    on.set()
    writer.join(60)
    whole(folder)
    (found,) = outcome
    if found == "again":
        # The collection has ended: now it goes through, or was too late.
        found = tried(work, repository(folder), lost)
        assert found != "again"
        whole(folder)
    assert repository(folder).gc(dry_run=False).deleted
    whole(folder)
    return found


@pytest.mark.parametrize("fault", ["crash_before", "crash_after", "lose_reply"])
def test_a_collection_that_dies_leaves_everything_to_the_next(
    fault: str, faulty: object, pristine: tuple[Path, str], tmp_path: Path
) -> None:
    first, lost = pristine
    for number in itertools.count(0, 1 if SEED else 6):
        folder = tmp_path / str(number)
        shutil.copytree(first, folder)
        died = False
        repo = None
        with suppress(IOFailedError):
            repo = Repository(f"fault://{folder}", storage_options={"plan": f"{fault}@{number}"})
            repo.gc(dry_run=False)
            died = len(faulty.made[-1].operations) <= number  # type: ignore[attr-defined]
        if died:
            break
        whole(folder)
        # What it has announced binds writers until somebody finds it dead.
        assert tried(create, repository(folder), lost) in ("done", "given up")
        for path in (folder / "_esker/gc").glob("*"):
            os.utime(path, (1, 1))
        repository(folder).branch("main").object("c").upload("c")
        repository(folder).gc(dry_run=False)
        assert all(json.loads(path.read_text())["ended"] for path in (folder / "_esker/gc").glob("*"))
        whole(folder)
        shutil.rmtree(folder)
    assert number > 10


def test_what_was_given_up_can_be_led_to_no_more(pristine: tuple[Path, str], tmp_path: Path) -> None:
    first, lost = pristine
    shutil.copytree(first, tmp_path / "repo")
    repo = repository(tmp_path / "repo")
    counted = repo.gc()
    assert (counted.deleted, counted.objects) == (False, 1)
    done = repo.gc(dry_run=False)
    assert (done.objects, done.tables, done.expired) == (counted.objects, counted.tables, counted.expired)
    for work in (create, tag, reset, merge, pick):
        with pytest.raises(NotFoundError):
            work(repository(tmp_path / "repo"), lost)
    # The history tells of it all the same.
    assert repo.ref(lost).get_commit().message == "lost"
    assert list(repo.fsck()) == []


def test_a_collection_that_was_held_up_deletes_nothing_more(
    pristine: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = pristine
    shutil.copytree(first, tmp_path / "repo")
    repo = repository(tmp_path / "repo")
    announce = gc_runs.Run.announce

    def late(run: gc_runs.Run) -> None:
        announce(run)
        run._said = (run._said[0], run._said[1] - gc_runs.DEAD_S - 1)

    monkeypatch.setattr(gc_runs.Run, "announce", late)
    with pytest.raises(IOFailedError, match="held up"):
        repo.gc(dry_run=False)
    assert repo.gc().objects == 1


def test_an_import_of_what_the_repository_has_itself_is_no_garbage(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    main = repo.branch("main")
    main.object("a").upload("text")
    address = main.object("a").stat().physical_address
    main.reset_changes()
    main.import_data("own").object(f"{repo.uri}/{address}", "b").run()
    repo.gc(dry_run=False, grace_s=-3600)
    assert main.object("b").reader("r").read() == "text"


def test_what_an_earlier_release_imported_of_a_repository_with_escapes_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"file://{tmp_path}/my%20lake"
    repo = Repository.create(uri)
    main = repo.branch("main")
    main.object("a").upload("bytes")
    own = main.object("a").stat().physical_address
    main.reset_changes()

    def with_escapes(core: Any, found: Any, address: str, destination: str) -> Iterator[None]:
        yield found.add(destination, f"local://{tmp_path}/my%20lake/{own}", 5, 0)

    monkeypatch.setattr(import_data, "_one", with_escapes)
    main.import_data("own").object(f"{uri}/{own}", "one").run()
    Repository(uri).gc(dry_run=False, grace_s=-3600)
    assert (tmp_path / "my lake" / own).read_text() == "bytes"


def test_a_collection_goes_by_the_retention_that_holds_when_it_begins(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.change_settings(retention_days=0)
    main = repo.branch("main")
    for text in ("1", "2", "3"):
        main.object("a").upload(text)
        main.commit(text)
    Repository(tmp_path / "repo").change_settings(retention_days=1000)
    assert repo.gc(dry_run=False, grace_s=-3600).expired == 0
    assert repo.ref("main~2").object("a").reader("r").read() == "1"


@pytest.mark.parametrize("collector", ["repo", "link"])
@pytest.mark.parametrize("importer", ["repo", "link", "FILE"])
def test_an_import_of_own_objects_is_kept_by_whatever_name_it_was_made(
    tmp_path: Path, importer: str, collector: str
) -> None:
    repo = Repository.create(tmp_path / "repo")
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    main = repo.branch("main")
    for path in ("object", "prefix/a"):
        main.object(path).upload(path)
    one, many = (main.object(path).stat().physical_address for path in ("object", "prefix/a"))
    main.reset_changes()
    place = f"FILE://{tmp_path}/repo" if importer == "FILE" else str(tmp_path / importer)
    by = Repository(place).branch("main").import_data("own")
    by.object(f"{place}/{one}", "one").prefix(f"{place}/{many.rpartition('/')[0]}", "many").run()
    Repository(tmp_path / collector).gc(dry_run=False, grace_s=-3600)
    assert main.object("one").reader("r").read() == "object"
    assert main.object(f"many/{many.rpartition('/')[2]}").reader("r").read() == "prefix/a"


@pytest.mark.parametrize("above", [False, True])
def test_a_repository_that_is_moved_keeps_what_it_imports_of_itself(tmp_path: Path, above: bool) -> None:
    old, new = tmp_path / "old" / "repo", tmp_path / "new" / "repo"
    repo = Repository.create(old)
    (old.parent / "other").mkdir()
    (old.parent / "other" / "data").write_text("other")
    main = repo.branch("main")
    main.object("a").upload("bytes")
    own = main.object("a").stat().physical_address
    main.reset_changes()
    main.import_data("own").prefix(str(old.parent if above else old / "data"), "of").run()
    path = f"of/repo/{own}" if above else f"of/{own.removeprefix('data/')}"
    stat = main.object(path).stat()
    assert (stat.address_type, stat.physical_address) == ("relative", own)
    assert not above or main.object("of/other/data").stat().physical_address == f"local://{old.parent}/other/data"
    new.parent.mkdir()
    old.rename(new)
    moved = Repository(new)
    moved.gc(dry_run=False, grace_s=-3600)
    assert moved.branch("main").object(path).reader("r").read() == "bytes"
    assert not [found for found in moved.fsck() if own in found]


def test_names_beyond_what_memory_holds_come_out_in_order(tmp_path: Path) -> None:
    numbers = list(range(100))
    random.Random(1).shuffle(numbers)
    names, others = (SortedNames(str(tmp_path), name, memory_bytes=200) for name in "ab")
    for n in numbers:
        names.add(f"{n:03} \u00e9", n, "note")
        if n % 3:
            others.add(f"{n:03} \u00e9")
    missing = names.without(others)
    found = [row for _ in range(20) for row in missing.next_rows(7)]
    assert found == [(f"{n:03} \u00e9", n, "note", None) for n in range(0, 100, 3)]
    assert len(names.without(others, or_size=True).next_rows(1000)) == 100


def test_objects_beyond_what_memory_holds_are_collected_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_collection, "MEMORY_BYTES", 200)
    repo = Repository.create(tmp_path / "repo")
    main = repo.branch("main")
    for n in range(60):
        main.object(f"{n:02}").upload(str(n))
    main.reset_changes("common_prefix", "")
    assert repo.gc(grace_s=-3600).objects == 60
    for n in range(60):
        main.object(f"{n:02}").upload(str(n))
    main.commit("all")
    kept = sorted(entry.physical_address for entry in main.objects() if isinstance(entry, ObjectInfo))
    assert repo.gc(dry_run=False, grace_s=-3600).objects == 60
    assert sorted(Store(repo.uri).list_paths("data/")) == kept
    assert list(repo.fsck()) == []
    Store(repo.uri).delete(kept[7])
    Store(repo.uri).put(kept[9], b"longer than it was")
    assert len(list(repo.fsck())) == 2


def test_the_grace_period_is_everybodys(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.change_settings(grace_s=3600)
    main = repo.branch("main")
    main.object("a").upload("1")
    main._staging._started = (0.0, time.time() - 3700)
    with pytest.raises(ValueError, match="1 hours ago"):
        main.commit("late")
    main.reset_changes()
    made_older(repo.uri, 3000)
    assert repo.gc().objects == 0
    made_older(repo.uri, 3600 * garbage_collection.SLACK + 601)
    assert repo.gc().objects == 1


def test_branches_that_are_older_than_the_retention_are_merged_all_the_same(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    repo.change_settings(retention_days=0, raggedness=3, max_range_size=600)

    def change(branch: str, path: str, text: str = "x") -> None:
        repo.branch(branch).object(path).upload(text)
        repo.branch(branch).commit(path)

    for n in range(20):
        change("main", f"{n:02}")
    change("main", "05", "as it was when the branches began")
    for name in ("one", "two", "three"):
        repo.branch(name).create("main")
    change("one", "05", "of one")
    change("one", "of one")
    change("two", "of two")
    repo.branch("two").merge_into("three", allow_empty=True)
    for n in range(5):
        change("main", "05" if n < 1 else f"{n:02}", f"later {n}")
    made_older(repo.uri, 3 * 86400)
    assert repo.gc(dry_run=False).expired > 20
    made_older(repo.uri, 3 * 86400)
    repo.gc(dry_run=False)
    found = repository(repo.uri)
    assert list(found.fsck()) == []
    found.branch("two").merge_into("main")
    found.branch("three").merge_into("two", allow_empty=True)
    assert found.ref("one").conflicts_with("main") is not None
    assert [conflict.path for conflict in getattr(found.ref("one").conflicts_with("main"), "conflicts", [])] == ["05"]
    found.branch("one").merge_into("main", strategy="source-wins")
    assert found.ref("main").object("05").reader("r").read() == "of one"
    assert {"of one", "of two"} < {entry.path for entry in found.ref("main").objects()}
    whole_again = repository(repo.uri)
    assert list(whole_again.fsck()) == []
    # What has been merged is compared with no more: its tables go with the rest.
    made_older(repo.uri, 3 * 86400)
    for name in ("one", "two", "three"):
        whole_again.branch(name).delete()
    made_older(repo.uri, 3 * 86400)
    whole_again.gc(dry_run=False)
    content = whole_again.ref("main").get_commit().meta_range_id
    ranges = {row["id"] for row in objects_table(whole_again._core.storage.ranges(content)).to_pylist()}
    assert set(Store(repo.uri).list_paths("_lakefs/")) == {f"_lakefs/{id}" for id in {content, *ranges}}
    assert list(repository(repo.uri).fsck()) == []
