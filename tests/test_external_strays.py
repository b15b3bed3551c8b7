"""Versions that a reader or writer of a table with an external manifest store brings back: it was held up while it
finished a commit, and a clean-up has removed the version meanwhile, or the table was made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.commit.external import SqliteManifestStore, manifests
from esker.commit.external.manifests import ExternalManifests
from esker.exceptions import NotFoundError
from tests.held_up import hold_up_the_winner
from tests.tree_branches import Watch, ids_of, meanwhile, rows_of, watched_stores

OPTIONS: dict[str, Any] = {"mode": "overwrite"}


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


@pytest.fixture
def lender(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteManifestStore:
    """The external store of a table whose third version is staged: its writer has died."""
    store = SqliteManifestStore(tmp_path / "manifests.db")
    for number in range(2):
        esker.write_dataset(rows_of(number), uri, manifest_store=store, **OPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr(ExternalManifests, "finish", lambda *_: None)
        esker.write_dataset(rows_of(2), uri, manifest_store=store, **OPTIONS)
    return store


def _go_on(uri: str, lender: SqliteManifestStore) -> None:
    for number in (3, 4):
        esker.write_dataset(rows_of(number), uri, manifest_store=lender, **OPTIONS)
    esker.dataset(uri, manifest_store=lender).cleanup_old_versions(retain_versions=1)


def _numbers(dataset: Any) -> list[int]:
    return [version["version"] for version in dataset.versions()]


def test_a_reader_that_finds_a_commit_finished_does_not_copy_it_again(
    uri: str, watched: dict[str, Watch], lender: SqliteManifestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = SqliteManifestStore.get
    reads = 0

    def get(store: SqliteManifestStore, base_uri: str, version: int) -> Any:
        nonlocal reads
        reads += 1
        if reads == 2:
            # It has read the staged manifest.
            monkeypatch.setattr(SqliteManifestStore, "get", asked)
            _go_on(uri, lender)
        return asked(store, base_uri, version)

    monkeypatch.setattr(SqliteManifestStore, "get", get)
    assert ids_of(esker.dataset(uri, manifest_store=lender)) == [4]
    assert reads == 2
    assert _numbers(esker.dataset(uri, manifest_store=lender)) == [5]


def _hold_up_the_writer(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    hold_up_the_winner(monkeypatch, work)
    monkeypatch.setattr(manifests, "_LATE_S", 0.0)


def test_a_writer_whose_commit_was_finished_does_not_copy_it_again(
    uri: str, lender: SqliteManifestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_on() -> None:
        _go_on(uri, lender)
        # As if more than an hour had passed: the writer may still wait for the reply.
        esker.dataset(uri, manifest_store=lender).cleanup_old_versions(retain_versions=1, delete_unverified=True)

    _hold_up_the_writer(go_on, monkeypatch)
    esker.write_dataset(rows_of(9), uri, manifest_store=lender, mode="append")
    found = esker.dataset(uri, manifest_store=lender)
    assert (ids_of(found), _numbers(found)) == ([4], [6])


def test_a_writer_brings_no_version_of_a_table_that_was_dropped_into_the_new_one(
    uri: str, lender: SqliteManifestStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}

    def make_anew() -> None:
        esker.LanceDataset.drop(uri, storage_options=options)
        esker.write_dataset(rows_of(7), uri, manifest_store=lender)

    _hold_up_the_writer(make_anew, monkeypatch)
    with suppress(NotFoundError):
        esker.write_dataset(rows_of(9), uri, manifest_store=lender, mode="append")
    found = esker.dataset(uri, manifest_store=lender)
    assert (ids_of(found), _numbers(found)) == ([7], [1])


@pytest.mark.parametrize("make", ["restore", "tag", "branch"])
def test_of_a_version_that_was_brought_back_nothing_is_made(
    uri: str, watched: dict[str, Watch], lender: SqliteManifestStore, make: str
) -> None:
    watched["f"] = meanwhile(lambda: _go_on(uri, lender), verb="put_if_absent", part="_versions/")
    assert esker.dataset(uri, manifest_store=lender).version == 3
    watched.clear()
    dataset = esker.dataset(uri, manifest_store=lender)
    assert _numbers(dataset) == [3, 5]
    makes: dict[str, Callable[[], object]] = {
        "restore": dataset.checkout_version(3).restore,
        "tag": lambda: dataset.tags.create("v", 3),
        "branch": lambda: dataset.create_branch("b", 3),
    }
    with pytest.raises(NotFoundError, match="cleaned up"):
        makes[make]()
    assert ids_of(esker.dataset(uri, manifest_store=lender)) == [4]
    assert not dataset.tags.list()
    assert not dataset.branches.list()
