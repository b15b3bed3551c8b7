"""Branches of one table: lines of versions of their own, in turns with pylance."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import (
    AlreadyExistsError,
    InvalidArgumentError,
    InvalidRefError,
    NotFoundError,
    RefConflictError,
    UnsupportedError,
)
from esker.fragment import write_fragments
from esker.repo import Repository
from tests.tree_branches import Watch, agree, files_below, ids_of, meanwhile, rows_of, three_versions, watched_stores


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


@pytest.fixture
def three(uri: str) -> str:
    return three_versions(uri)


@pytest.mark.parametrize("name", ["feat", "team/feat", "a.b-c_1/d"])
def test_both_libraries_write_to_a_branch_in_turns(three: str, name: str) -> None:
    ours = esker.dataset(three).create_branch(name, 2)
    assert (ours.version, ours.uri, ids_of(ours)) == (2, f"{three}/tree/{name}", [0, 1])
    theirs = lance.write_dataset(rows_of(10), lance.dataset(ours.uri), mode="append")
    assert theirs.version == 3
    ours = esker.write_dataset(rows_of(11), esker.dataset(ours.uri), mode="append")
    ours.delete("id = 0")
    theirs.checkout_latest()
    theirs.delete("id = 10")
    ours.checkout_latest()
    ours.update({"id": "id + 100"}, "id = 11")
    ours.merge_insert("id").when_not_matched_insert_all().execute(rows_of(1, 12))
    agree(three, name, [1, 12, 111])
    agree(three, None, [0, 1, 2])
    ours.checkout_version(3).restore()
    agree(three, name, [0, 1, 10])
    ours.checkout_latest()
    ours.add_columns({"twice": "id * 2"})
    theirs.checkout_latest()
    theirs.add_columns({"thrice": "id * 3"})
    ours.checkout_latest()
    assert ours.to_table() == theirs.to_table()
    ours = esker.write_dataset(rows_of(7), ours, mode="overwrite")
    agree(three, name, [7])
    theirs = lance.write_dataset(rows_of(8), lance.dataset(ours.uri), mode="append")
    agree(three, name, [7, 8])
    assert lance.dataset(ours.uri).create_branch("of-theirs").uri == f"{three}/tree/of-theirs"
    agree(three, "of-theirs", [7, 8])
    agree(three, None, [0, 1, 2])
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
    first.insert(rows_of(10))
    second = first.create_branch("second")
    second.insert(rows_of(20))
    second.delete("id = 0")
    third = lance.dataset(second.uri).create_branch("third")
    third = lance.write_dataset(rows_of(30), third, mode="append")
    third.delete("id = 10")
    for name, ids in {"first": [0, 10], "second": [10, 20], "third": [20, 30]}.items():
        agree(three, name, ids)
    agree(three, None, [0, 1, 2])


def test_references_mean_the_same_from_every_handle(three: str) -> None:
    main = esker.dataset(three)
    branch = main.create_branch("feat", 2)
    branch.insert(rows_of(10))
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
            assert ids_of(found) == ids_of(lance.dataset(three).checkout_version(reference))
    # An int is a version of the branch at hand.
    assert ids_of(branch.checkout_version(3)) == [0, 1, 10]
    assert ids_of(main.checkout_version(3)) == [0, 1, 2]
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
    before = files_below(three)
    for library in (esker, lance):
        branch = esker.dataset(three).create_branch("team/feat", 1)
        branch.insert(rows_of(10))
        branch.delete("id = 0")
        library.dataset(three).branches.delete("team/feat")
        assert files_below(three) == before
        assert esker.dataset(three).branches.list() == {}
        with pytest.raises(NotFoundError):
            esker.dataset(three, version=("team/feat", None))
    branch = lance.dataset(three).create_branch("team/feat", 2)
    assert ids_of(branch) == [0, 1]


@pytest.mark.parametrize("library", [esker, lance])
@pytest.mark.parametrize(("first", "second"), [("feat", "feat/x"), ("feat/x", "feat"), ("a/b", "a/c"), ("a", "a/data")])
def test_a_branch_beside_another_one_is_deleted_and_made_again(
    three: str, library: Any, first: str, second: str
) -> None:
    for name in (first, second):
        esker.dataset(three).create_branch(name, 2).insert(rows_of(10))
    library.dataset(three).branches.delete(first)
    assert set(esker.dataset(three).branches.list()) == {second}
    agree(three, second, [0, 1, 10])
    # What pylance leaves of `feat` beside `feat/x` has a later version than the new one.
    again = esker.dataset(three).create_branch(first, 1)
    assert ([version["version"] for version in again.versions()], ids_of(again)) == ([1], [0])
    again.insert(rows_of(20))
    agree(three, first, [0, 20])
    agree(three, second, [0, 1, 10])


@pytest.mark.parametrize("parent", [1, 2])
def test_a_tree_without_its_ref_is_taken_over(three: str, parent: int) -> None:
    for library in (lance, esker):
        library.dataset(three).create_branch("feat", 2)
        Path(three, "_refs/branches/feat.json").unlink()
    again = esker.dataset(three).create_branch("feat", parent)
    assert ([version["version"] for version in again.versions()], ids_of(again)) == ([parent], [*range(parent)])
    assert lance.dataset(three).branches.list()["feat"]["parent_version"] == parent
    lance.write_dataset(rows_of(9), lance.dataset(again.uri), mode="append")
    agree(three, "feat", [*range(parent), 9])


def test_a_table_that_is_no_branch_is_not_taken_over(three: str) -> None:
    lance.write_dataset(rows_of(5), f"{three}/tree/feat")
    with pytest.raises(RefConflictError, match="a table that is no branch lies at"):
        esker.dataset(three).create_branch("feat", 1)
    assert ids_of(esker.dataset(f"{three}/tree/feat")) == [5]


@pytest.mark.parametrize("mode", ["append", "create", "overwrite"])
@pytest.mark.parametrize("name", ["feat", "team/feat", "a/tree/b"])
def test_no_table_is_made_where_a_branch_that_is_gone_belongs(name: str, mode: str, three: str) -> None:
    branch = esker.dataset(three).create_branch(name, 1).uri
    esker.dataset(three).branches.delete(name)
    with pytest.raises(NotFoundError, match=f"expected the branch {name} of the table at .* create_branch"):
        esker.write_dataset(rows_of(5), branch, mode=mode)
    assert ids_of(esker.dataset(three).create_branch(name, 1)) == [0]


def test_a_folder_named_tree_is_one_like_others(tmp_path: Path) -> None:
    assert ids_of(esker.write_dataset(rows_of(5), tmp_path / "tree" / "t")) == [5]


def _clean(uri: str, **options: Any) -> int:
    dataset = esker.dataset(uri)
    return dataset.cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False, **options
    ).old_versions


def test_a_clean_up_keeps_what_branches_use(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch.delete("id = 0")
    deep = branch.create_branch("deep")
    deep.insert(rows_of(20))
    esker.write_dataset(rows_of(99), three, mode="overwrite")
    assert _clean(three) == 2
    for name, ids in {"feat": [1], "deep": [1, 20]}.items():
        agree(three, name, ids)
    assert [version["version"] for version in esker.dataset(three).versions()] == [2, 4]


def test_a_branch_is_cleaned_up_by_itself(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch.insert(rows_of(10))
    branch.create_branch("child")
    branch.insert(rows_of(11))
    branch.tags.create("kept")
    branch.insert(rows_of(12), mode="overwrite")
    branch.insert(rows_of(13))
    found = branch.explain_cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [("child", 3)]
    with pytest.raises(OSError, match="1 tagged versions would be removed: {'kept': 4}"):
        branch.cleanup_old_versions(retain_versions=1)
    stats = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False)
    assert stats.old_versions == found.stats.old_versions == 2
    assert [version["version"] for version in branch.versions()] == [3, 4, 6]
    agree(three, "feat", [12, 13])
    agree(three, "child", [0, 1, 10])
    assert ids_of(lance.dataset(three, version="kept")) == [0, 1, 10, 11]
    agree(three, None, [0, 1, 2])
    branch.tags.delete("kept")
    esker.dataset(three).branches.delete("child")
    again = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert (again.old_versions, again.data_files_removed) == (2, 2)
    agree(three, "feat", [12, 13])


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("verb", ["delete", "list", "get"])
def test_a_branch_that_is_made_while_a_clean_up_runs_can_be_read(
    three: str, watched: dict[str, Watch], verb: str, nth: int
) -> None:
    esker.write_dataset(rows_of(99), three, mode="overwrite")
    told: list[NotFoundError] = []

    def branch() -> None:
        try:
            esker.dataset(three).create_branch("feat", 2)
        except NotFoundError as error:
            told.append(error)

    watched["f"] = meanwhile(branch, verb=verb, part="", nth=nth)
    _clean(three)
    watched.clear()
    if told:
        assert esker.dataset(three).branches.list() == {}
    else:
        agree(three, "feat", [0, 1])


@pytest.mark.parametrize("part", ["tree/feat/_versions/", "_refs/branches"])
def test_a_clean_up_while_a_branch_is_made_is_noticed(three: str, watched: dict[str, Watch], part: str) -> None:
    watched["f"] = meanwhile(lambda: _clean(three), verb="put_if_absent", part=part)
    with pytest.raises(NotFoundError, match="while it was being branched from"):
        esker.dataset(three).create_branch("feat", 2)
    watched.clear()
    assert esker.dataset(three).branches.list() == {}
    assert not any(path.startswith("tree/") and path.endswith(".manifest") for path in files_below(three))


def test_commits_and_clones_take_references(three: str, tmp_path: Path) -> None:
    branch = esker.dataset(three).create_branch("feat", 1)
    branch.tags.create("start")
    for base in (three, esker.dataset(three), branch, branch.uri):
        fragments = write_fragments(rows_of(5), branch)
        reference: Any = "start" if base is branch else ("feat", 1)
        made = LanceDataset.commit(base, LanceOperation.Append(fragments), read_version=reference)
        assert made.uri == branch.uri
    agree(three, "feat", [0, 5, 5, 5, 5])
    agree(three, None, [0, 1, 2])
    for number, reference in enumerate([("feat", None), ("feat", 1), "start", 2, (None, None)]):
        shallow = esker.dataset(three).shallow_clone(tmp_path / f"s{number}", reference)
        deep = esker.dataset(three).deep_clone(tmp_path / f"d{number}", reference)
        peer = lance.dataset(three).shallow_clone(str(tmp_path / f"p{number}"), reference)
        assert ids_of(shallow) == ids_of(deep) == ids_of(peer) == ids_of(lance.dataset(str(tmp_path / f"s{number}")))
        # A clone of a branch is a table of its own.
        for clone in (shallow, deep):
            assert clone._manifest.branch is None
            clone.tags.create("t")
            assert ids_of(lance.dataset(clone.uri).create_branch("own")) == ids_of(clone)
        assert shallow.base_paths() == esker.dataset(str(tmp_path / f"p{number}")).base_paths()
    with pytest.raises(AlreadyExistsError):
        esker.dataset(three).shallow_clone(tmp_path / "s0", "start")


def test_conflicts_on_a_branch_are_those_of_the_branch(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    again = esker.dataset(branch.uri)
    esker.dataset(three).delete("id = 0")
    branch.update({"id": "id + 10"}, "id = 0")
    again.delete("id = 1")
    agree(three, "feat", [10])
    agree(three, None, [1, 2])


def test_handles_on_branches_are_pickled_and_carried_on(three: str) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    copied = pickle.loads(pickle.dumps(branch))
    copied.insert(rows_of(10))
    assert (copied.uri, copied.version) == (branch.uri, 3)
    assert ids_of(copied.checkout_version(("main", None))) == [0, 1, 2]
    fragment = pickle.loads(pickle.dumps(copied.get_fragments()[0]))
    assert fragment.to_table() == copied.get_fragments()[0].to_table()


@pytest.mark.parametrize("names", ["V1", "V2"])
@pytest.mark.parametrize("stable", [False, True])
def test_branches_of_tables_of_either_kind(uri: str, names: str, stable: bool) -> None:
    for number in range(3):
        esker.write_dataset(
            rows_of(number),
            uri,
            mode="append" if number else "create",
            enable_v2_manifest_paths=names == "V2",
            enable_stable_row_ids=stable,
        )
    branch = esker.dataset(uri).create_branch("feat", 2)
    branch.insert(rows_of(10))
    branch.delete("id = 0")
    lance.write_dataset(rows_of(11), lance.dataset(branch.uri), mode="append")
    branch.checkout_latest()
    peer = lance.dataset(branch.uri)
    assert branch.to_table(with_row_id=True) == peer.to_table(with_row_id=True)
    assert ids_of(branch) == [1, 10, 11]
    branch.tags.create("t")
    branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    agree(uri, "feat", [1, 10, 11])
    esker.dataset(uri).tags.delete("t")
    esker.dataset(uri).branches.delete("feat")


def test_branches_with_an_external_manifest_store(uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    for number in range(3):
        mode = "append" if number else "create"
        esker.write_dataset(rows_of(number), uri, mode=mode, storage_options=options)
    dataset = esker.dataset(uri, storage_options=options)
    for _ in range(2):
        branch = dataset.create_branch("feat", 2)
        branch.insert(rows_of(10))
        assert ids_of(esker.dataset(uri, version=("feat", None), storage_options=options)) == [0, 1, 10]
        again = pickle.loads(pickle.dumps(branch))
        again.insert(rows_of(11))
        assert again.version == 4
        dataset.branches.delete("feat")
    dataset.create_branch("feat", 2).insert(rows_of(10))
    Path(uri, "_refs/branches/feat.json").unlink()
    assert ids_of(dataset.create_branch("feat", 1)) == [0]


def test_branches_in_memory() -> None:
    dataset = esker.write_dataset(rows_of(1), "memory://branches")
    branch = dataset.create_branch("a/b")
    branch.insert(rows_of(2))
    assert ids_of(esker.dataset("memory://branches/tree/a/b")) == [1, 2]
    assert ids_of(dataset) == [1]
    dataset.branches.delete("a/b")
    assert dataset.branches.list() == {}


def test_a_table_in_a_repository_has_tags_and_no_branches(tmp_path: Path) -> None:
    main = Repository.create(str(tmp_path / "lake")).branch("main")
    with main.transact(commit_message="tables") as transaction:
        uri = transaction.store_uri("t.lance")
        dataset = esker.write_dataset(rows_of(1), uri)
        with pytest.raises(UnsupportedError, match=r"make one there \(Repository.branch\(name\).create\(source\)\)"):
            dataset.create_branch("feat")
        dataset.tags.create("kept")
        dataset.tags.create("gone")
        dataset.tags.delete("gone")
        dataset = esker.write_dataset(rows_of(2), uri, mode="append")
    committed = esker.dataset(main.store_uri("t.lance"))
    assert set(committed.tags.list()) == {"kept"}
    assert ids_of(committed) == [1, 2]
    assert ids_of(committed.checkout_version("kept")) == [1]
    committed.tags.create("late")
    assert set(esker.dataset(main.store_uri("t.lance")).tags.list()) == {"kept", "late"}
    with pytest.raises(UnsupportedError):
        esker.dataset(main.head.store_uri("t.lance")).tags.create("later")


def test_a_table_on_a_live_branch_of_a_repository_has_tags(tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    main = repository.branch("main")
    uri = main.store_uri("t.lance")
    dataset = esker.write_dataset(rows_of(1), uri, auto_cleanup_options={"interval": 1, "older_than_seconds": 0})
    dataset.tags.create("kept")
    dataset.tags.create("gone")
    with pytest.raises(RefConflictError):
        dataset.tags.create("kept")
    dataset.tags.update("gone", 1)
    dataset.tags.replace_metadata("kept", {"by": "me"})
    dataset.tags.delete("gone")
    for number in (2, 3):
        esker.write_dataset(rows_of(number), uri, mode="append")
    with pytest.raises(UnsupportedError, match="which has branches of its own"):
        dataset.create_branch("feat")
    assert not list(main.uncommitted())
    # Another process, and a branch of the repository, see them.
    again = esker.dataset(Repository(str(tmp_path / "lake")).branch("main").store_uri("t.lance"))
    assert again.tags.list()["kept"]["metadata"] == {"by": "me"}
    assert set(again.tags.list()) == {"kept"}
    assert ids_of(again.checkout_version("kept")) == [1]
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
    assert ids_of(moved) == [0]
    with pytest.raises(InvalidArgumentError, match="expected the branch feat in a folder tree/feat of its table"):
        moved.tags.list()


def test_base_paths_on_a_branch_are_the_branchs_own(three: str, tmp_path: Path) -> None:
    branch = esker.dataset(three).create_branch("feat", 2)
    branch = branch.add_bases([esker.DatasetBasePath(str(tmp_path / "cold"), "cold")])
    branch = esker.write_dataset(rows_of(10), branch, mode="append", target_bases=["cold"])
    assert [base.name for base in branch.base_paths().values()] == [None, "cold"]
    deep = branch.create_branch("deep")
    deep.insert(rows_of(11))
    agree(three, "feat", [0, 1, 10])
    agree(three, "deep", [0, 1, 10, 11])
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
    branch.insert(rows_of(10))
    newest = branch.versions()[-1]["timestamp"]
    assert esker.dataset(branch.uri, asof=newest).version == 2
    assert esker.dataset(branch.uri, asof=newest + timedelta(days=1)).version == 3
