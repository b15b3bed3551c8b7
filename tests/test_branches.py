"""Branches of one table: lines of versions of their own, in turns with pylance, and what may happen while they are made
and deleted."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import (
    AlreadyExistsError,
    EskerError,
    InvalidArgumentError,
    InvalidRefError,
    NotFoundError,
    RefConflictError,
    UnsupportedError,
)
from esker.fragment import write_fragments
from esker.repo import Repository
from esker.store import stores
from tests.interrupts import Interrupt
from tests.watched_stores import in_another_thread

Watch = Callable[[str, str], str | None]


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    """`watched["f"]` sees each operation of the test's own thread on local stores, and may name a fault."""
    found: dict[str, Watch] = {}
    before = stores._factories["file"]

    def make(uri: str, options: Any, durable: bool) -> Store:
        if threading.current_thread() is not threading.main_thread():
            return before(uri, options, durable)
        # A branch's store has its own root: a watch sees whole paths.
        inner = Store(uri, durable=False)
        return FaultStore(inner, watch=lambda verb, path: found["f"](verb, f"{uri}/{path}") if found else None).store

    stores.register("file", make)
    yield found
    stores.register("file", before)


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def three(uri: str) -> str:
    """A table of three versions with rows 0, then 1, then 2."""
    for number in range(3):
        esker.write_dataset(_rows(number), uri, mode="append" if number else "create")
    return uri


def _ids(dataset: Any) -> list[int]:
    found: list[int] = dataset.to_table()["id"].to_pylist()
    return sorted(found)


def _agree(uri: str, branch: str | None, ids: list[int]) -> None:
    """Both libraries find these rows on a branch."""
    assert _ids(esker.dataset(uri, version=(branch, None))) == ids
    assert _ids(lance.dataset(uri).checkout_version((branch, None))) == ids
    esker.dataset(uri, version=(branch, None)).validate()


def _files(uri: str) -> set[str]:
    return {path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["feat", "team/feat", "a.b-c_1/d"])
def test_both_libraries_write_to_a_branch_in_turns(three: str, name: str) -> None:
    ours = esker.dataset(three).create_branch(name, 2)
    assert (ours.version, ours.uri, _ids(ours)) == (2, f"{three}/tree/{name}", [0, 1])
    theirs = lance.write_dataset(_rows(10), lance.dataset(ours.uri), mode="append")
    assert theirs.version == 3
    ours = esker.write_dataset(_rows(11), esker.dataset(ours.uri), mode="append")
    ours.delete("id = 0")
    theirs.checkout_latest()
    theirs.delete("id = 10")
    ours.checkout_latest()
    ours.update({"id": "id + 100"}, "id = 11")
    ours.merge_insert("id").when_not_matched_insert_all().execute(_rows(1, 12))
    _agree(three, name, [1, 12, 111])
    _agree(three, None, [0, 1, 2])
    ours.checkout_version(3).restore()
    _agree(three, name, [0, 1, 10])
    ours.checkout_latest()
    ours.add_columns({"twice": "id * 2"})
    theirs.checkout_latest()
    theirs.add_columns({"thrice": "id * 3"})
    ours.checkout_latest()
    assert ours.to_table() == theirs.to_table()
    ours = esker.write_dataset(_rows(7), ours, mode="overwrite")
    _agree(three, name, [7])
    theirs = lance.write_dataset(_rows(8), lance.dataset(ours.uri), mode="append")
    _agree(three, name, [7, 8])
    assert lance.dataset(ours.uri).create_branch("of-theirs").uri == f"{three}/tree/of-theirs"
    _agree(three, "of-theirs", [7, 8])
    _agree(three, None, [0, 1, 2])
    assert esker.dataset(three).latest_version == lance.dataset(three).latest_version == 3


def test_branches_of_both_libraries_are_described_alike(three: str) -> None:
    lance.dataset(three).create_branch("theirs", 2)
    esker.dataset(three).create_branch("ours", 2)
    first, second = (json.loads(Path(three, f"_refs/branches/{name}.json").read_text()) for name in ("ours", "theirs"))
    assert list(first) == list(second)
    for found in (first, second):
        found.pop("createAt")
        assert len(found["identifier"]["version_mapping"][0].pop()) == 32
    assert first == second
    esker.dataset(three).create_branch("grand/child", ("theirs", None))
    lance.dataset(three).create_branch("grand/theirs", ("ours", 2))
    lance.dataset(three).branches.replace_metadata("ours", {"by": "them"})
    esker.dataset(three).branches.replace_metadata("theirs", {"by": "us"})
    ours, theirs = esker.dataset(three).branches, lance.dataset(three).branches
    assert ours.list() == theirs.list()
    assert ours.list()["grand/child"]["parent_branch"] == "theirs"
    for order in (None, "asc", "desc"):
        assert ours.list_ordered(order) == theirs.list_ordered(order)
    assert Path(three, "_refs/branches/grand%2Fchild.json").exists()


def test_a_branch_begins_as_pylance_begins_one(three: str) -> None:
    ours = esker.dataset(three).create_branch("ours", 2)
    theirs = lance.dataset(three).create_branch("theirs", 2)
    theirs = esker.dataset(theirs.uri)
    assert ours.base_paths() == theirs.base_paths()
    first, second = ours._manifest, theirs._manifest
    assert first.fragments() == second.fragments()
    assert (first.branch, second.branch) == ("ours", "theirs")
    assert first.reader_feature_flags == second.reader_feature_flags
    assert first.writer_feature_flags == second.writer_feature_flags
    for dataset, name in ((ours, "ours"), (theirs, "theirs")):
        transaction = dataset.read_transaction(2)
        assert transaction is not None
        peer = lance.dataset(three).checkout_version((name, 2)).read_transaction(2)
        assert peer.operation.branch_name == name
        assert (peer.operation.ref_version, peer.operation.ref_path) == (2, three)
    deep = ours.create_branch("deep")
    peer = lance.dataset(ours.uri).create_branch("deep-theirs")
    assert deep.base_paths() == esker.dataset(peer.uri).base_paths()


def test_a_branch_of_a_branch_reads_the_files_of_both(three: str) -> None:
    first = esker.dataset(three).create_branch("first", 1)
    first.insert(_rows(10))
    second = first.create_branch("second")
    second.insert(_rows(20))
    second.delete("id = 0")
    third = lance.dataset(second.uri).create_branch("third")
    third = lance.write_dataset(_rows(30), third, mode="append")
    third.delete("id = 10")
    for name, ids in {"first": [0, 10], "second": [10, 20], "third": [20, 30]}.items():
        _agree(three, name, ids)
    _agree(three, None, [0, 1, 2])


def test_references_mean_the_same_from_every_handle(three: str) -> None:
    main = esker.dataset(three)
    branch = main.create_branch("feat", 2)
    branch.insert(_rows(10))
    branch.tags.create("here")
    main.tags.create("there", 1)
    assert branch.tags.list() == main.tags.list() == lance.dataset(branch.uri).tags.list()
    meanings: list[tuple[Any, str, int]] = [
        (("feat", 2), branch.uri, 2),
        (("feat", None), branch.uri, 3),
        ((None, 1), three, 1),
        (("main", None), three, 3),
        ("here", branch.uri, 3),
        ("there", three, 1),
    ]
    for handle in (main, branch, branch.checkout_version(2), esker.dataset(branch.uri)):
        for reference, uri, version in meanings:
            found = handle.checkout_version(reference)
            assert (found.uri, found.version) == (uri, version)
            again = esker.dataset(handle.uri, version=reference)
            assert (again.uri, again.version) == (uri, version)
            assert _ids(found) == _ids(lance.dataset(three).checkout_version(reference))
    # An int is a version of the branch at hand.
    assert _ids(branch.checkout_version(3)) == [0, 1, 10]
    assert _ids(main.checkout_version(3)) == [0, 1, 2]
    with pytest.raises(NotFoundError):
        branch.checkout_version(1)
    assert [version["version"] for version in branch.versions()] == [2, 3]
    branch = branch.checkout_version(2)
    branch.checkout_latest()
    assert (branch.version, branch.latest_version) == (3, 3)


def test_errors_are_those_of_pylance(three: str) -> None:
    esker.dataset(three).create_branch("feat")
    esker.dataset(three).create_branch("feat/child", ("feat", None))
    esker.dataset(three).create_branch("other")
    esker.dataset(three).tags.create("t", ("other", None))
    for library in (esker, lance):
        dataset = library.dataset(three)
        for name in ("", "/a", "a/", "a//b", "a..b", "a\\b", "a b", "a@b", "a.lock", "main"):
            with pytest.raises(OSError, match="Ref is invalid"):
                dataset.create_branch(name)
        with pytest.raises(OSError, match="already exists|Clone operation"):
            dataset.create_branch("feat")
        with pytest.raises(OSError, match=r"main:9 does not exist|9\.manifest"):
            dataset.create_branch("b", 9)
        with pytest.raises((OSError, ValueError)):
            dataset.create_branch("b", ("nowhere", None))
        with pytest.raises((OSError, ValueError)):
            dataset.checkout_version(("nowhere", None))
        with pytest.raises(OSError, match="Ref conflict error: Branch feat is referenced by .* versions, can not del"):
            dataset.branches.delete("feat")
        with pytest.raises(OSError, match="Ref conflict error: Branch other is referenced by tags .* can not delete"):
            dataset.branches.delete("other")
        with pytest.raises(ValueError, match="Ref not found error: Branch nowhere does not exist"):
            dataset.branches.delete("nowhere")
        with pytest.raises(ValueError, match="Ref not found error"):
            dataset.branches.replace_metadata("nowhere", {})
    with pytest.raises(RefConflictError, match="branch feat already exists in"):
        esker.dataset(three).create_branch("feat")
    with pytest.raises(NotFoundError, match="branch nowhere of .* does not exist, expected one of feat, feat/child"):
        esker.dataset(three, version=("nowhere", None))
    with pytest.raises(InvalidRefError, match="segment '.'"):
        esker.dataset(three).create_branch("a/./b")


def test_a_branch_is_deleted_with_its_files_and_its_name_is_free_again(three: str) -> None:
    before = _files(three)
    for library in (esker, lance):
        branch = esker.dataset(three).create_branch("team/feat", 1)
        branch.insert(_rows(10))
        branch.delete("id = 0")
        library.dataset(three).branches.delete("team/feat")
        assert _files(three) == before
        assert esker.dataset(three).branches.list() == {}
        with pytest.raises(NotFoundError):
            esker.dataset(three, version=("team/feat", None))
    branch = lance.dataset(three).create_branch("team/feat", 2)
    assert _ids(branch) == [0, 1]


@pytest.mark.parametrize("library", [esker, lance])
@pytest.mark.parametrize(("first", "second"), [("feat", "feat/x"), ("feat/x", "feat"), ("a/b", "a/c"), ("a", "a/data")])
def test_a_branch_beside_another_one_is_deleted_and_made_again(
    three: str, library: Any, first: str, second: str
) -> None:
    for name in (first, second):
        esker.dataset(three).create_branch(name, 2).insert(_rows(10))
    library.dataset(three).branches.delete(first)
    assert set(esker.dataset(three).branches.list()) == {second}
    _agree(three, second, [0, 1, 10])
    # What pylance leaves of `feat` beside `feat/x` has a later version than the new one.
    again = esker.dataset(three).create_branch(first, 1)
    assert ([version["version"] for version in again.versions()], _ids(again)) == ([1], [0])
    again.insert(_rows(20))
    _agree(three, first, [0, 20])
    _agree(three, second, [0, 1, 10])


@pytest.mark.parametrize("parent", [1, 2])
def test_a_tree_without_its_ref_is_taken_over(three: str, parent: int) -> None:
    for library in (lance, esker):
        library.dataset(three).create_branch("feat", 2)
        Path(three, "_refs/branches/feat.json").unlink()
    again = esker.dataset(three).create_branch("feat", parent)
    assert ([version["version"] for version in again.versions()], _ids(again)) == ([parent], [*range(parent)])
    assert lance.dataset(three).branches.list()["feat"]["parent_version"] == parent
    lance.write_dataset(_rows(9), lance.dataset(again.uri), mode="append")
    _agree(three, "feat", [*range(parent), 9])


def test_a_table_that_is_no_branch_is_not_taken_over(three: str) -> None:
    esker.write_dataset(_rows(5), f"{three}/tree/feat")
    with pytest.raises(RefConflictError, match="a table that is no branch lies at"):
        esker.dataset(three).create_branch("feat", 1)
    assert _ids(esker.dataset(f"{three}/tree/feat")) == [5]


def _meanwhile(work: Callable[[], object], *, verb: str, part: str, nth: int = 1) -> Watch:
    """A watch that does some work before the nth operation of a kind."""
    seen = 0

    def watch(operation: str, path: str) -> str | None:
        nonlocal seen
        if operation == verb and part in path:
            seen += 1
            if seen == nth:
                in_another_thread(work)
        return None

    return watch


@pytest.mark.parametrize("library", [esker, lance])
@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize(
    ("verb", "part"), [("put_if_absent", "_versions/"), ("put_if_absent", "_refs/"), ("list", "_versions/")]
)
def test_of_two_writers_of_one_branch_one_wins(
    three: str, watched: dict[str, Watch], verb: str, part: str, theirs: int, library: Any
) -> None:
    """Whoever is told that the branch is there finds the version that was asked for, and what was written since."""
    told: list[OSError] = []

    def other() -> None:
        try:
            made = library.dataset(three).create_branch("feat", theirs)
            library.write_dataset(_rows(70), made, mode="append")
        except OSError as error:
            # pylance finds our manifest in the tree, which is no branch yet.
            told.append(error)

    watched["f"] = _meanwhile(other, verb=verb, part=part if verb != "list" else "tree/feat/_versions/")
    if library is lance and part == "_refs/":
        esker.dataset(three).create_branch("feat", 2)
        assert told
        theirs, added = 2, []
    else:
        with pytest.raises(RefConflictError, match="already exists"):
            esker.dataset(three).create_branch("feat", 2)
        assert not told
        added = [70]
    watched.clear()
    assert esker.dataset(three).branches.list()["feat"]["parent_version"] == theirs
    _agree(three, "feat", [*range(theirs), *added])
    numbers = [version["version"] for version in esker.dataset(three, version=("feat", None)).versions()]
    assert numbers == [theirs, theirs + 1][: 1 + len(added)]


@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize("at", range(20))
def test_of_two_writers_that_take_over_one_tree_one_wins(
    three: str, watched: dict[str, Watch], at: int, theirs: int
) -> None:
    """Another creation runs as a whole before the operation `at` of ours: both find the leftovers of a third one."""
    esker.dataset(three).create_branch("feat", 1).insert(_rows(50))
    Path(three, "_refs/branches/feat.json").unlink()
    dataset = esker.dataset(three)
    outcomes: dict[str, bool] = {}

    def create(name: str, dataset: Any, version: int) -> None:
        try:
            dataset.create_branch("feat", version)
            outcomes[name] = True
        except RefConflictError:
            outcomes[name] = False

    seen = 0

    def other(verb: str, path: str) -> str | None:
        nonlocal seen
        seen += 1
        if seen == at + 1:
            in_another_thread(lambda: create("theirs", esker.dataset(three), theirs))
        return None

    watched["f"] = other
    create("ours", dataset, 2)
    watched.clear()
    assert sum(outcomes.values()) == 1
    parent = 2 if outcomes["ours"] else theirs
    found = esker.dataset(three)
    assert found.branches.list()["feat"]["parent_version"] == parent
    branch = found.checkout_version(("feat", None))
    assert [version["version"] for version in branch.versions()] == [parent]
    branch.insert(_rows(70))
    _agree(three, "feat", [*range(parent), 70])


def test_a_branch_that_is_there_stays_as_it_is(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 1)
    for number in (10, 11):
        branch.insert(_rows(number))
    branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    before = _files(three)
    for parent in (1, 2, 3):
        with pytest.raises(RefConflictError, match="branch feat already exists"):
            esker.dataset(three).create_branch("feat", parent)
        assert _files(three) == before


FAULTS = ["crash_before", "crash_after", "lose_reply", "fail"]


@pytest.mark.parametrize("leftover", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_a_branch_is_there_or_can_be_created(
    three: str, watched: dict[str, Watch], fault: str, leftover: bool
) -> None:
    for at in range(60):
        if leftover:
            esker.dataset(three).create_branch("feat", 1).insert(_rows(50))
            Path(three, "_refs/branches/feat.json").unlink()
        dataset, seen = esker.dataset(three), 0

        def strike(verb: str, path: str, at: int = at) -> str | None:
            nonlocal seen
            seen += 1
            return fault if seen == at + 1 else None

        watched["f"] = strike
        reported = True
        try:
            dataset.create_branch("feat", 2)
        except EskerError:
            reported = False
        watched.clear()
        there = "feat" in esker.dataset(three).branches.list()
        assert there or not reported
        if not there:
            esker.dataset(three).create_branch("feat", 2)
        branch = esker.dataset(three, version=("feat", None))
        assert ([version["version"] for version in branch.versions()], _ids(branch)) == ([2], [0, 1])
        branch.insert(_rows(9))
        assert _ids(esker.dataset(three, version=("feat", None))) == [0, 1, 9]
        esker.dataset(three).branches.delete("feat")
        if seen <= at:
            assert reported
            return
    raise AssertionError("expected fewer operations")


@pytest.mark.parametrize("kind", ["create", "take over", "delete", "tag"])
def test_ctrl_c_at_any_moment_leaves_a_branch_or_none(three: str, kind: str) -> None:
    def prepare() -> Any:
        dataset = esker.dataset(three)
        if kind in ("take over", "delete"):
            dataset.create_branch("feat", 1).insert(_rows(50))
        if kind == "take over":
            Path(three, "_refs/branches/feat.json").unlink()
        return dataset

    def work(dataset: Any) -> None:
        if kind == "tag":
            dataset.tags.create("t", 2)
        elif kind == "delete":
            dataset.branches.delete("feat")
        else:
            dataset.create_branch("feat", 2)

    def clear() -> None:
        dataset = esker.dataset(three)
        if "feat" not in dataset.branches.list():
            assert _ids(dataset.create_branch("feat", 2)) == [0, 1]
        branch = dataset.checkout_version(("feat", None))
        branch.validate()
        assert _ids(branch) in ([0, 1], [0, 50])
        dataset.branches.delete("feat")
        for tag in dataset.tags.list():
            assert dataset.checkout_version(tag).count_rows() == 2
            dataset.tags.delete(tag)

    dataset = prepare()
    with Interrupt() as counted:
        work(dataset)
    clear()
    for number in range(len(counted.events)):
        dataset = prepare()
        with pytest.raises(KeyboardInterrupt), Interrupt(number):
            work(dataset)
        clear()


@pytest.mark.parametrize("kind", ["tag", "branch", "take over"])
def test_of_many_writers_at_once_one_wins(three: str, kind: str) -> None:
    if kind == "take over":
        esker.dataset(three).create_branch("feat", 1).insert(_rows(50))
        Path(three, "_refs/branches/feat.json").unlink()
    start = threading.Barrier(6)

    def create(number: int) -> int | None:
        dataset = esker.dataset(three)
        start.wait()
        try:
            if kind == "tag":
                dataset.tags.create("feat", number)
            else:
                dataset.create_branch("feat", number)
        except RefConflictError:
            return None
        return number

    with ThreadPoolExecutor(6) as threads:
        won = [number for number in threads.map(create, [1, 2, 3, 1, 2, 3]) if number is not None]
    assert len(won) == 1
    dataset = esker.dataset(three)
    if kind == "tag":
        assert dataset.tags.get_version("feat") == won[0]
    else:
        assert dataset.branches.list()["feat"]["parent_version"] == won[0]
        branch = dataset.checkout_version(("feat", None))
        assert [version["version"] for version in branch.versions()] == won
        _agree(three, "feat", [*range(won[0])])


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_a_deleted_branch_can_be_created_again(
    three: str, watched: dict[str, Watch], fault: str
) -> None:
    for at in range(60):
        esker.dataset(three).create_branch("feat", 1).insert(_rows(50))
        dataset, seen = esker.dataset(three), 0

        def strike(verb: str, path: str, at: int = at) -> str | None:
            nonlocal seen
            seen += 1
            return fault if seen == at + 1 else None

        watched["f"] = strike
        reported = True
        try:
            dataset.branches.delete("feat")
        except EskerError:
            reported = False
        watched.clear()
        there = "feat" in esker.dataset(three).branches.list()
        assert not (there and reported)
        if there:
            _agree(three, "feat", [0, 50])
            esker.dataset(three).branches.delete("feat")
        branch = esker.dataset(three).create_branch("feat", 2)
        assert _ids(branch) == [0, 1]
        _agree(three, "feat", [0, 1])
        esker.dataset(three).branches.delete("feat")
        if seen <= at:
            assert reported
            return
    raise AssertionError("expected fewer operations")


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("verb", ["delete", "list", "get"])
@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_branch_that_is_named_while_it_is_deleted_stays_or_the_name_is_refused(
    three: str, watched: dict[str, Watch], kind: str, verb: str, nth: int
) -> None:
    esker.dataset(three).create_branch("feat", 1).insert(_rows(50))
    told: list[EskerError] = []
    named: list[bool] = []

    def name() -> None:
        dataset = esker.dataset(three)
        named.append(True)
        try:
            if kind == "tag":
                dataset.tags.create("t", ("feat", 2))
            else:
                dataset.create_branch("child", ("feat", 2))
        except NotFoundError as error:
            told.append(error)

    watched["f"] = _meanwhile(name, verb=verb, part="", nth=nth)
    try:
        esker.dataset(three).branches.delete("feat")
        stays = False
    except RefConflictError:
        stays = True
    watched.clear()
    found = esker.dataset(three)
    assert not named or stays != bool(told)
    assert ("feat" in found.branches.list()) == stays
    assert set(found.tags.list()) == ({"t"} if stays and kind == "tag" else set())
    if stays:
        _agree(three, "feat", [0, 50])
        assert _ids(found.checkout_version("t" if kind == "tag" else ("child", None))) == [0, 50]
    else:
        assert not any(path.startswith("tree/") for path in _files(three))


def _clean(uri: str, **options: Any) -> int:
    dataset = esker.dataset(uri)
    return dataset.cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False, **options
    ).old_versions


def test_a_clean_up_keeps_what_branches_use(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch.delete("id = 0")
    deep = branch.create_branch("deep")
    deep.insert(_rows(20))
    esker.write_dataset(_rows(99), three, mode="overwrite")
    assert _clean(three) == 2
    for name, ids in {"feat": [1], "deep": [1, 20]}.items():
        _agree(three, name, ids)
    assert [version["version"] for version in esker.dataset(three).versions()] == [2, 4]


def test_a_branch_is_cleaned_up_by_itself(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch.insert(_rows(10))
    branch.create_branch("child")
    branch.insert(_rows(11))
    branch.tags.create("kept")
    branch.insert(_rows(12), mode="overwrite")
    branch.insert(_rows(13))
    found = branch.explain_cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [("child", 3)]
    with pytest.raises(OSError, match="1 tagged versions would be removed: {'kept': 4}"):
        branch.cleanup_old_versions(retain_versions=1)
    stats = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False)
    assert stats.old_versions == found.stats.old_versions == 2
    assert [version["version"] for version in branch.versions()] == [3, 4, 6]
    _agree(three, "feat", [12, 13])
    _agree(three, "child", [0, 1, 10])
    assert _ids(lance.dataset(three, version="kept")) == [0, 1, 10, 11]
    _agree(three, None, [0, 1, 2])
    branch.tags.delete("kept")
    esker.dataset(three).branches.delete("child")
    again = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert (again.old_versions, again.data_files_removed) == (2, 2)
    _agree(three, "feat", [12, 13])


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("verb", ["delete", "list", "get"])
def test_a_branch_that_is_made_while_a_clean_up_runs_can_be_read(
    three: str, watched: dict[str, Watch], verb: str, nth: int
) -> None:
    esker.write_dataset(_rows(99), three, mode="overwrite")
    told: list[NotFoundError] = []

    def branch() -> None:
        try:
            esker.dataset(three).create_branch("feat", 2)
        except NotFoundError as error:
            told.append(error)

    watched["f"] = _meanwhile(branch, verb=verb, part="", nth=nth)
    _clean(three)
    watched.clear()
    if told:
        assert esker.dataset(three).branches.list() == {}
    else:
        _agree(three, "feat", [0, 1])


@pytest.mark.parametrize("part", ["tree/feat/_versions/", "_refs/branches"])
def test_a_clean_up_while_a_branch_is_made_is_noticed(three: str, watched: dict[str, Watch], part: str) -> None:
    watched["f"] = _meanwhile(lambda: _clean(three), verb="put_if_absent", part=part)
    with pytest.raises(NotFoundError, match="while it was being branched from"):
        esker.dataset(three).create_branch("feat", 2)
    watched.clear()
    assert esker.dataset(three).branches.list() == {}
    assert not any(path.startswith("tree/") and path.endswith(".manifest") for path in _files(three))


def test_commits_and_clones_take_references(three: str, tmp_path: Path) -> None:
    branch = esker.dataset(three).create_branch("feat", 1)
    branch.tags.create("start")
    for base in (three, esker.dataset(three), branch, branch.uri):
        fragments = write_fragments(_rows(5), branch)
        reference: Any = "start" if base is branch else ("feat", 1)
        made = LanceDataset.commit(base, LanceOperation.Append(fragments), read_version=reference)
        assert made.uri == branch.uri
    _agree(three, "feat", [0, 5, 5, 5, 5])
    _agree(three, None, [0, 1, 2])
    for number, reference in enumerate([("feat", None), ("feat", 1), "start", 2, (None, None)]):
        shallow = esker.dataset(three).shallow_clone(tmp_path / f"s{number}", reference)
        deep = esker.dataset(three).deep_clone(tmp_path / f"d{number}", reference)
        peer = lance.dataset(three).shallow_clone(str(tmp_path / f"p{number}"), reference)
        assert _ids(shallow) == _ids(deep) == _ids(peer) == _ids(lance.dataset(str(tmp_path / f"s{number}")))
        # A clone of a branch is a table of its own.
        for clone in (shallow, deep):
            assert clone._manifest.branch is None
            clone.tags.create("t")
            assert _ids(lance.dataset(clone.uri).create_branch("own")) == _ids(clone)
        assert shallow.base_paths() == esker.dataset(str(tmp_path / f"p{number}")).base_paths()
    with pytest.raises(AlreadyExistsError):
        esker.dataset(three).shallow_clone(tmp_path / "s0", "start")


def test_conflicts_on_a_branch_are_those_of_the_branch(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    again = esker.dataset(branch.uri)
    esker.dataset(three).delete("id = 0")
    branch.update({"id": "id + 10"}, "id = 0")
    again.delete("id = 1")
    _agree(three, "feat", [10])
    _agree(three, None, [1, 2])


def test_handles_on_branches_are_pickled_and_carried_on(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    copied = pickle.loads(pickle.dumps(branch))
    copied.insert(_rows(10))
    assert (copied.uri, copied.version) == (branch.uri, 3)
    assert _ids(copied.checkout_version(("main", None))) == [0, 1, 2]
    fragment = pickle.loads(pickle.dumps(copied.get_fragments()[0]))
    assert fragment.to_table() == copied.get_fragments()[0].to_table()


@pytest.mark.parametrize("names", ["V1", "V2"])
@pytest.mark.parametrize("stable", [False, True])
def test_branches_of_tables_of_either_kind(uri: str, names: str, stable: bool) -> None:
    for number in range(3):
        esker.write_dataset(
            _rows(number),
            uri,
            mode="append" if number else "create",
            enable_v2_manifest_paths=names == "V2",
            enable_stable_row_ids=stable,
        )
    branch = esker.dataset(uri).create_branch("feat", 2)
    branch.insert(_rows(10))
    branch.delete("id = 0")
    lance.write_dataset(_rows(11), lance.dataset(branch.uri), mode="append")
    branch.checkout_latest()
    peer = lance.dataset(branch.uri)
    assert branch.to_table(with_row_id=True) == peer.to_table(with_row_id=True)
    assert _ids(branch) == [1, 10, 11]
    branch.tags.create("t")
    branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    _agree(uri, "feat", [1, 10, 11])
    esker.dataset(uri).tags.delete("t")
    esker.dataset(uri).branches.delete("feat")


def test_branches_with_an_external_manifest_store(uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    for number in range(3):
        mode = "append" if number else "create"
        esker.write_dataset(_rows(number), uri, mode=mode, storage_options=options)
    dataset = esker.dataset(uri, storage_options=options)
    for _ in range(2):
        branch = dataset.create_branch("feat", 2)
        branch.insert(_rows(10))
        assert _ids(esker.dataset(uri, version=("feat", None), storage_options=options)) == [0, 1, 10]
        again = pickle.loads(pickle.dumps(branch))
        again.insert(_rows(11))
        assert again.version == 4
        dataset.branches.delete("feat")
    dataset.create_branch("feat", 2).insert(_rows(10))
    Path(uri, "_refs/branches/feat.json").unlink()
    assert _ids(dataset.create_branch("feat", 1)) == [0]


def test_branches_in_memory() -> None:
    dataset = esker.write_dataset(_rows(1), "memory://branches")
    branch = dataset.create_branch("a/b")
    branch.insert(_rows(2))
    assert _ids(esker.dataset("memory://branches/tree/a/b")) == [1, 2]
    assert _ids(dataset) == [1]
    dataset.branches.delete("a/b")
    assert dataset.branches.list() == {}


def test_a_table_in_a_repository_has_tags_and_no_branches(tmp_path: Path) -> None:
    main = Repository.create(str(tmp_path / "lake")).branch("main")
    with main.transact(commit_message="tables") as transaction:
        uri = transaction.store_uri("t.lance")
        dataset = esker.write_dataset(_rows(1), uri)
        with pytest.raises(UnsupportedError, match=r"make one there \(Repository.branch\(name\).create\(source\)\)"):
            dataset.create_branch("feat")
        dataset.tags.create("kept")
        dataset.tags.create("gone")
        dataset.tags.delete("gone")
        dataset = esker.write_dataset(_rows(2), uri, mode="append")
    committed = esker.dataset(main.store_uri("t.lance"))
    assert set(committed.tags.list()) == {"kept"}
    assert _ids(committed) == [1, 2]
    assert _ids(committed.checkout_version("kept")) == [1]
    committed.tags.create("late")
    assert set(esker.dataset(main.store_uri("t.lance")).tags.list()) == {"kept", "late"}
    with pytest.raises(UnsupportedError):
        esker.dataset(main.head.store_uri("t.lance")).tags.create("later")


def test_a_table_on_a_live_branch_of_a_repository_has_tags(tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    main = repository.branch("main")
    uri = main.store_uri("t.lance")
    dataset = esker.write_dataset(_rows(1), uri, auto_cleanup_options={"interval": 1, "older_than_seconds": 0})
    dataset.tags.create("kept")
    dataset.tags.create("gone")
    with pytest.raises(RefConflictError):
        dataset.tags.create("kept")
    dataset.tags.update("gone", 1)
    dataset.tags.replace_metadata("kept", {"by": "me"})
    dataset.tags.delete("gone")
    for number in (2, 3):
        esker.write_dataset(_rows(number), uri, mode="append")
    with pytest.raises(UnsupportedError, match="which has branches of its own"):
        dataset.create_branch("feat")
    assert not list(main.uncommitted())
    # Another process, and a branch of the repository, see them.
    again = esker.dataset(Repository(str(tmp_path / "lake")).branch("main").store_uri("t.lance"))
    assert again.tags.list()["kept"]["metadata"] == {"by": "me"}
    assert set(again.tags.list()) == {"kept"}
    assert _ids(again.checkout_version("kept")) == [1]
    assert len(again.versions()) == 3
    side = repository.branch("side").create("main")
    there = esker.dataset(side.store_uri("t.lance"))
    there.tags.create("there")
    assert set(there.tags.list()) == {"kept", "there"}
    assert set(again.tags.list()) == {"kept"}
    esker.LanceDataset.drop(side.store_uri("t.lance"))
    with pytest.raises(NotFoundError):
        esker.dataset(side.store_uri("t.lance"))
    assert again.count_rows() == 3


def test_a_branch_whose_folder_was_moved_away_is_named(three: str, tmp_path: Path) -> None:
    branch = esker.dataset(three).create_branch("feat", 1)
    shutil.copytree(branch.uri, tmp_path / "elsewhere")
    moved = esker.dataset(str(tmp_path / "elsewhere"))
    assert _ids(moved) == [0]
    with pytest.raises(InvalidArgumentError, match="expected the branch feat in a folder tree/feat of its table"):
        moved.tags.list()


def test_base_paths_on_a_branch_are_the_branchs_own(three: str, tmp_path: Path) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch = branch.add_bases([esker.DatasetBasePath(str(tmp_path / "cold"), "cold")])
    branch = esker.write_dataset(_rows(10), branch, mode="append", target_bases=["cold"])
    assert [base.name for base in branch.base_paths().values()] == [None, "cold"]
    deep = branch.create_branch("deep")
    deep.insert(_rows(11))
    _agree(three, "feat", [0, 1, 10])
    _agree(three, "deep", [0, 1, 10, 11])
    assert esker.dataset(three).base_paths() == {}


def test_detached_versions_begin_no_branch(three: str) -> None:
    change = LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap({"a": "b"}))
    detached = LanceDataset.commit(three, change, read_version=2, detached=True)
    with pytest.raises(InvalidArgumentError, match="the detached version"):
        detached.create_branch("feat")


def test_identifiers_of_early_branches_are_those_that_pylance_makes_up(three: str) -> None:
    lance.dataset(three).create_branch("old", 2)
    path = Path(three, "_refs/branches/old.json")
    fields = json.loads(path.read_text())
    del fields["identifier"]
    path.write_text(json.dumps(fields))
    assert esker.dataset(three).branches.list() == lance.dataset(three).branches.list()
    esker.dataset(three).create_branch("young", ("old", None))
    assert esker.dataset(three).branches.list() == lance.dataset(three).branches.list()
    for library in (esker, lance):
        with pytest.raises(OSError, match="Branch old is referenced"):
            library.dataset(three).branches.delete("old")


def test_asof_on_a_branch(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch.insert(_rows(10))
    newest = branch.versions()[-1]["timestamp"]
    assert esker.dataset(branch.uri, asof=newest).version == 2
    assert esker.dataset(branch.uri, asof=newest + timedelta(days=1)).version == 3
