"""Tables that are dropped, and branches that are deleted, below an open handle: nothing is committed to their place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import CommitConflictError, NotFoundError
from tests.tree_branches import Watch, agree, files_below, ids_of, meanwhile, rows_of, three_versions, watched_stores

CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda dataset: esker.write_dataset(rows_of(9), dataset, mode="append"),
    "overwrite": lambda dataset: esker.write_dataset(rows_of(9), dataset, mode="overwrite"),
    "config": lambda dataset: dataset.update_config({"a": "b"}),
    "columns": lambda dataset: dataset.alter_columns({"path": "id", "name": "key"}),
    "an operation": lambda dataset: LanceDataset.commit(
        dataset, LanceOperation.Append([]), read_version=dataset.version
    ),
}


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


def _changes_nothing(dataset: LanceDataset, change: str) -> None:
    with pytest.raises(CommitConflictError, match="there no more, nor is a later one.*open it again") as caught:
        CHANGES[change](dataset)
    assert not caught.value.retryable


@pytest.mark.parametrize("names", ["V1", "V2"])
@pytest.mark.parametrize("how", [LanceDataset.drop, shutil.rmtree])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_table_that_was_dropped_is_refused(
    uri: str, change: str, how: Callable[[str], object], names: str
) -> None:
    esker.write_dataset(rows_of(0), uri, enable_v2_manifest_paths=names == "V2")
    dataset = esker.write_dataset(rows_of(1), uri, mode="append")
    how(uri)
    _changes_nothing(dataset, change)
    assert not [path for path in files_below(uri) if not path.startswith("_transactions/")]
    with pytest.raises(NotFoundError, match="no table"):
        esker.dataset(uri)
    # By its address it is a new table.
    assert esker.write_dataset(rows_of(9), uri, mode="overwrite").version == 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_branch_that_was_deleted_is_refused(uri: str, change: str) -> None:
    esker.dataset(three_versions(uri)).create_branch("x").insert(rows_of(3))
    branch = esker.dataset(uri, version=("x", None))
    esker.dataset(uri).branches.delete("x")
    with pytest.raises(CommitConflictError, match="the branch x was deleted"):
        CHANGES[change](branch)
    assert esker.dataset(uri).create_branch("x").version == 3


@pytest.mark.parametrize("place", ["table", "branch"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_put_right_after_a_drop_is_taken_back(
    uri: str, watched: dict[str, Watch], change: str, place: str
) -> None:
    dataset = esker.dataset(three_versions(uri))
    if place == "branch":
        dataset = dataset.create_branch("x")
        dataset.insert(rows_of(3))
    drop = LanceDataset.drop if place == "table" else lambda uri: esker.dataset(uri).branches.delete("x")
    watched["f"] = meanwhile(lambda: drop(uri), verb="put_if_absent", part="_versions/")
    _changes_nothing(esker.dataset(dataset.uri), change)
    watched.clear()
    assert not [path for path in files_below(dataset.uri) if path.startswith("_versions/")]


@pytest.mark.parametrize("names", ["V1", "V2"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_put_right_after_a_table_was_made_anew_is_taken_back(
    uri: str, watched: dict[str, Watch], change: str, names: str
) -> None:
    dataset = esker.dataset(three_versions(uri))

    def make_anew() -> None:
        LanceDataset.drop(uri)
        esker.write_dataset(rows_of(77), uri, enable_v2_manifest_paths=names == "V2")

    watched["f"] = meanwhile(make_anew, verb="put_if_absent", part="_versions/")
    with pytest.raises(CommitConflictError, match="the table was dropped or replaced") as caught:
        CHANGES[change](dataset)
    watched.clear()
    assert not caught.value.retryable
    assert len(esker.dataset(uri).versions()) == 1
    assert ids_of(esker.dataset(uri)) == [77]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_put_right_after_a_branch_was_made_anew_is_taken_back(
    uri: str, watched: dict[str, Watch], change: str
) -> None:
    main = esker.dataset(three_versions(uri))
    branch = main.create_branch("x")
    branch.insert(rows_of(3))

    def make_anew() -> None:
        esker.dataset(uri).branches.delete("x")
        esker.dataset(uri).create_branch("x")

    watched["f"] = meanwhile(make_anew, verb="put_if_absent", part="_versions/")
    with pytest.raises(CommitConflictError, match="the branch x was deleted or replaced"):
        CHANGES[change](esker.dataset(branch.uri))
    watched.clear()
    agree(uri, "x", [0, 1, 2])


@pytest.mark.parametrize("versions", [4, 6])
@pytest.mark.parametrize("change", CHANGES)
def test_a_race_that_is_lost_to_a_table_that_was_made_anew_is_a_conflict(
    uri: str, watched: dict[str, Watch], change: str, versions: int
) -> None:
    dataset = esker.dataset(three_versions(uri))

    def make_anew() -> None:
        LanceDataset.drop(uri)
        for number in range(versions):
            esker.write_dataset(rows_of(number), uri, mode="append")

    watched["f"] = meanwhile(make_anew, verb="put_if_absent", part="_versions/")
    with pytest.raises(CommitConflictError, match="the table was dropped or replaced"):
        CHANGES[change](dataset)
    watched.clear()
    assert ids_of(esker.dataset(uri)) == [*range(versions)]


def test_what_was_put_on_later_versions_than_its_own_is_taken_back_as_well(uri: str, watched: dict[str, Watch]) -> None:
    dataset = esker.dataset(three_versions(uri))
    esker.write_dataset(rows_of(3), uri, mode="append")

    def make_anew() -> None:
        LanceDataset.drop(uri)
        for number in range(3):
            esker.write_dataset(rows_of(number), uri, mode="append")

    watched["f"] = meanwhile(make_anew, verb="put_if_absent", part="_versions/")
    with pytest.raises(CommitConflictError, match="another manifest"):
        dataset.insert(rows_of(9))
    watched.clear()
    assert ids_of(esker.dataset(uri)) == [0, 1, 2]


@pytest.mark.parametrize("hidden", [1, 3])
def test_a_listing_that_lacks_the_newest_versions_is_no_drop(uri: str, watched: dict[str, Watch], hidden: int) -> None:
    dataset = esker.dataset(three_versions(uri))
    newest = sorted((Path(uri) / "_versions").iterdir())[:hidden]

    def hide(verb: str, path: str) -> None:
        for manifest in newest if "_versions" in path else []:
            away = Path(f"{manifest}.away")
            if verb == "list" and manifest.exists():
                manifest.rename(away)
            elif verb != "list" and away.exists():
                away.rename(manifest)

    watched["f"] = hide
    esker.write_dataset(rows_of(3), dataset, mode="append")
    watched.clear()
    hide("get", "_versions")
    assert ids_of(esker.dataset(uri)) == [0, 1, 2, 3]


def test_a_table_with_one_version_is_none_that_was_dropped(uri: str, watched: dict[str, Watch]) -> None:
    """A clean-up right after the put leaves ours alone."""
    dataset = esker.dataset(three_versions(uri))

    def clean() -> None:
        for path in sorted((Path(uri) / "_versions").iterdir())[1:]:
            path.unlink()

    watched["f"] = meanwhile(clean, verb="list", part="_versions/", nth=2)
    esker.write_dataset(rows_of(3), dataset, mode="append")
    watched.clear()
    assert len(esker.dataset(uri).versions()) == 1
    assert ids_of(esker.dataset(uri)) == [0, 1, 2, 3]


@pytest.mark.parametrize("place", ["table", "branch"])
def test_a_table_that_is_dropped_while_it_is_opened_is_not_found(
    uri: str, watched: dict[str, Watch], place: str
) -> None:
    there = three_versions(uri)
    if place == "branch":
        there = esker.dataset(uri).create_branch("x").uri
    drop = LanceDataset.drop if place == "table" else lambda uri: esker.dataset(uri).branches.delete("x")
    watched["f"] = meanwhile(lambda: drop(uri), verb="get", part="_versions/")
    with pytest.raises(NotFoundError, match=f"no table at {there}"):
        esker.dataset(there)
