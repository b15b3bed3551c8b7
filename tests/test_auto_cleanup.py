"""Automatic clean-up: writers remove old versions after every so many of their own, as the table's config asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import InvalidArgumentError
from esker.fragment import write_fragments
from esker.lance.cleanup.automatic import duration
from esker.store import stores

EAGER: Any = {"interval": 3, "older_than_seconds": 0}
KEY = "lance.auto_cleanup."


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _versions(uri: str) -> list[int]:
    return [version["version"] for version in esker.dataset(uri).versions()]


@pytest.mark.parametrize(
    "options",
    [
        EAGER,
        {"interval": 2, "older_than_seconds": 0},
        {"interval": 0, "older_than_seconds": 0},
        {"interval": 2, "older_than_seconds": 3600},
        {"interval": 2},
        {"older_than_seconds": 7},
    ],
)
def test_the_same_versions_stay_as_with_pylance(tmp_path: Path, options: Any) -> None:
    uris = {library: str(tmp_path / library.__name__) for library in (esker, lance)}
    configs: list[dict[str, str]] = []
    for library, uri in uris.items():
        made = library.write_dataset(_rows(0), uri, auto_cleanup_options=options)
        config = dict(made.config())
        for number in range(1, 9):
            library.write_dataset(_rows(number), uri, mode="append")
        configs.append(config)
    ages = [duration(config.pop(f"{KEY}older_than")) for config in configs]
    assert (configs[0], ages[0]) == (configs[1], ages[1])
    assert _versions(uris[esker]) == _versions(uris[lance])
    assert esker.dataset(uris[esker]).to_table() == lance.dataset(uris[esker]).to_table()


def test_in_turns_on_one_table(uri: str) -> None:
    lance.write_dataset(_rows(0), uri, auto_cleanup_options=EAGER)
    for number in range(1, 12):
        library = esker if number % 2 else lance
        library.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri)[-1] == 12
    assert len(_versions(uri)) < 12
    assert sorted(esker.dataset(uri).to_table()["id"].to_pylist()) == [*range(12)]
    esker.dataset(uri).validate()


def test_options_are_for_new_tables_as_in_pylance(uri: str) -> None:
    for library in (esker, lance):
        place = f"{uri}-{library.__name__}"
        library.write_dataset(_rows(0), place)
        for mode in ("append", "overwrite"):
            assert library.write_dataset(_rows(1), place, mode=mode, auto_cleanup_options=EAGER).config() == {}
    for mode in ("append", "overwrite"):
        made = esker.write_dataset(_rows(0), f"{uri}-{mode}", mode=mode, auto_cleanup_options=EAGER)
        assert made.config() == {f"{KEY}interval": "3", f"{KEY}older_than": "0s"}


@pytest.mark.parametrize("wrong", [{"interval": -1}, {"interval": "2"}, {"older_than_seconds": -1}, {"every": 3}])
def test_wrong_options_are_refused(uri: str, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected"):
        esker.write_dataset(_rows(0), uri, auto_cleanup_options=wrong)
    assert not Path(uri).exists()


def test_it_is_switched_on_and_off_as_in_pylance(uri: str) -> None:
    esker.write_dataset(_rows(0), uri)
    for library in (esker, lance):
        dataset = library.dataset(uri)
        dataset.optimize.enable_auto_cleanup({"interval": 2, "older_than_seconds": 3600})
        dataset.checkout_latest()
        assert dataset.config() == {f"{KEY}interval": "2", f"{KEY}older_than": "3600s"}
        dataset.update_config({f"{KEY}retain_versions": "3"})
        dataset.optimize.disable_auto_cleanup()
        dataset.checkout_latest()
        assert esker.dataset(uri).config() == {f"{KEY}retain_versions": "3"}
        dataset.delete_config_keys([f"{KEY}retain_versions"])


def _delete(uri: str) -> None:
    dataset = esker.dataset(uri)
    dataset.delete(f"id = {dataset.to_table()['id'][0].as_py()}")


def _commit(uri: str) -> None:
    fragments = write_fragments(_rows(7), uri)
    LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=esker.dataset(uri).version)


VERBS: dict[str, Callable[[str], object]] = {
    "append": lambda uri: esker.write_dataset(_rows(7), uri, mode="append"),
    "overwrite": lambda uri: esker.write_dataset(_rows(*range(20)), uri, mode="overwrite"),
    "delete": _delete,
    "update": lambda uri: esker.dataset(uri).update({"id": "id + 1"}),
    "merge_insert": lambda uri: esker.dataset(uri).merge_insert("id").when_not_matched_insert_all().execute(_rows(99)),
    "commit": _commit,
    "config": lambda uri: esker.dataset(uri).update_config({"a": "b"}),
    "metadata": lambda uri: esker.dataset(uri).update_metadata({"a": "b"}),
    "restore": lambda uri: esker.dataset(uri).restore(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_cleans_up(uri: str, verb: str) -> None:
    esker.write_dataset(_rows(*range(20)), uri, auto_cleanup_options=EAGER)
    for _ in range(5):
        VERBS[verb](uri)
    assert _versions(uri) == [5, 6]
    assert esker.dataset(uri).to_table() == lance.dataset(uri).to_table()
    esker.dataset(uri).validate()


def test_tagged_versions_are_passed_over(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options=EAGER)
    esker.dataset(uri).tags.create("kept")
    for number in range(1, 9):
        esker.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri) == [1, 8, 9]
    assert esker.dataset(uri, version="kept").to_table() == _rows(0)
    # pylance removes nothing any more.
    for number in range(9, 13):
        lance.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri) == [1, *range(8, 14)]


def test_the_number_of_versions_to_keep(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options=EAGER)
    esker.dataset(uri).update_config({f"{KEY}retain_versions": "4", f"{KEY}older_than": None})
    for number in range(1, 8):
        esker.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri) == [6, 7, 8, 9]


def test_without_a_condition_versions_of_two_weeks_stay(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options=EAGER)
    esker.dataset(uri).update_config({f"{KEY}older_than": None})
    for number in range(1, 6):
        esker.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri) == [*range(1, 8)]


def test_rate_and_concurrency_are_taken_from_the_config(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options=EAGER)
    esker.dataset(uri).update_config({f"{KEY}delete_rate_limit": "1000", f"{KEY}delete_concurrency": "2"})
    for number in range(1, 5):
        esker.write_dataset(_rows(number), uri, mode="append")
    assert _versions(uri) == [5, 6]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("interval", "often"),
        ("older_than", "long ago"),
        ("older_than", ""),
        ("retain_versions", "-1"),
        ("referenced_branch", "perhaps"),
        ("delete_rate_limit", "0"),
        ("delete_concurrency", "x"),
    ],
)
def test_a_wrong_value_is_a_warning_and_the_commit_stands(uri: str, key: str, value: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options={"interval": 1, "older_than_seconds": 0})
    with pytest.warns(UserWarning, match=r"version 2 is committed, but what follows a commit failed: expected"):
        esker.dataset(uri).update_config({KEY + key: value})
    with pytest.warns(UserWarning, match="version 3 is committed"):
        written = esker.write_dataset(_rows(1), uri, mode="append")
    assert (written.version, written.count_rows()) == (3, 2)
    assert _versions(uri) == [1, 2, 3]


@pytest.mark.parametrize("verb", ["delete", "list"])
def test_a_store_that_fails_in_a_clean_up_does_not_undo_the_commit(uri: str, verb: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options={"interval": 1, "older_than_seconds": 0})
    esker.write_dataset(_rows(1), uri, mode="append")
    committed: list[str] = []

    def fail(operation: str, path: str) -> str | None:
        if operation == "put_if_absent":
            committed.append(path)
        return "fail" if committed and operation == verb else None

    def make(place: str, options: Any, durable: bool) -> Store:
        return FaultStore(Store(place.removeprefix("fault://"), durable=False), watch=fail).store

    stores.register("fault", make)
    try:
        with pytest.warns(UserWarning, match="version 3 is committed"):
            written = esker.write_dataset(_rows(2), f"fault://{uri}", mode="append")
    finally:
        del stores._factories["fault"]
    assert written.version == esker.dataset(uri).version == 3
    assert esker.dataset(uri).to_table()["id"].to_pylist() == [0, 1, 2]
    esker.write_dataset(_rows(3), uri, mode="append")
    assert _versions(uri) == [3, 4]


def test_branches_clean_up_by_their_own_config(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options={"interval": 4, "older_than_seconds": 0})
    branch = esker.dataset(uri).create_branch("feat")
    for number in range(1, 6):
        branch.insert(_rows(number))
    assert [version["version"] for version in branch.versions()] == [3, 4, 5, 6]
    assert _versions(uri) == [1]
    for number in range(6):
        esker.write_dataset(_rows(10 + number), uri, mode="append")
    # The version that the branch starts from stays.
    assert _versions(uri) == [1, 3, 4, 5, 6, 7]
    assert sorted(branch.to_table()["id"].to_pylist()) == [*range(6)]


@pytest.mark.parametrize("asked", [True, False])
def test_branches_are_cleaned_up_with_their_table_on_request(uri: str, asked: bool) -> None:
    dataset = esker.write_dataset(_rows(0), uri)
    feat = dataset.create_branch("feat")
    child = feat.create_branch("child")
    other = dataset.create_branch("other")
    for branch in (feat, child, other):
        branch.update_config({f"{KEY}interval": "2", f"{KEY}older_than": "0s"})
        branch.insert(_rows(1))
        branch.insert(_rows(2))
    # One that is not due, as its newest version is no multiple of its interval.
    other.insert(_rows(3))

    def numbers() -> list[list[int]]:
        return [[version["version"] for version in branch.versions()] for branch in (feat, child, other)]

    # The first version of `feat` is the one that `child` starts from.
    assert numbers() == [[1, 3, 4], [3, 4], [3, 4, 5]]
    dataset.update_config({f"{KEY}interval": "1", f"{KEY}referenced_branch": str(asked).lower()})
    assert numbers() == ([[1, 4], [4], [3, 4, 5]] if asked else [[1, 3, 4], [3, 4], [3, 4, 5]])
    for branch in (feat, child, other):
        assert branch.to_table() == lance.dataset(branch.uri).to_table()
        branch.validate()


def test_detached_versions_clean_nothing_up(uri: str) -> None:
    esker.write_dataset(_rows(0), uri, auto_cleanup_options={"interval": 0, "older_than_seconds": 0})
    esker.write_dataset(_rows(1), uri, mode="append")
    change = LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap({"a": "b"}))
    LanceDataset.commit(uri, change, read_version=2, detached=True)
    assert _versions(uri) == [1, 2]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("3600s", 3600), ("14days", 14 * 86400), ("1h 30m", 5400), ("1h30min", 5400), ("2weeks", 14 * 86400)],
)
def test_times_are_read_as_pylance_reads_them(uri: str, text: str, seconds: int) -> None:
    assert duration(text).total_seconds() == seconds
    # A time that pylance cannot read stops its clean-up: here the old version goes, or is too young.
    lance.write_dataset(_rows(0), uri, auto_cleanup_options={"interval": 1, "older_than_seconds": 0})
    lance.dataset(uri).update_config({f"{KEY}older_than": text})
    for number in range(3):
        lance.write_dataset(_rows(number), uri, mode="append")
    assert (len(_versions(uri)) < 4) == (seconds == 0)


@pytest.mark.parametrize("text", ["", "s", "12", "1 fortnight", "1h!", "-1s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected lance.auto_cleanup.older_than as a time like 3600s"):
        duration(text)
