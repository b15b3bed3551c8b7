"""Entries of an external manifest store that a broken-off deletion leaves behind: they are in nobody's way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.commit.external import SqliteManifestStore
from esker.exceptions import IOFailedError, NotFoundError, RefConflictError
from esker.lance import LanceLog
from esker.lance.refs.creation import _Creation
from tests.external import Failing, Killed


@pytest.fixture
def store(tmp_path: Path) -> SqliteManifestStore:
    return SqliteManifestStore(tmp_path / "manifests.db")


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _make(uri: str, store: SqliteManifestStore) -> esker.LanceDataset:
    """A table of three versions, with a branch of as many."""
    dataset = esker.write_dataset(_ids(0, 1), uri, manifest_store=store)
    branch = dataset.create_branch("feat")
    for number in (1, 2):
        dataset.insert(_ids(number, 1))
        branch.insert(_ids(number * 10, 1))
    return dataset


@pytest.mark.parametrize("fault", ["kill_before", "fail"])
@pytest.mark.parametrize("start", [1, 2])
def test_a_branch_is_created_where_a_deletion_was_broken_off_before_its_entries_went(
    uri: str, store: SqliteManifestStore, fault: str, start: int
) -> None:
    dataset = _make(uri, store)
    dataset.create_branch("kept", 1).insert(_ids(7, 1))
    with pytest.raises((Killed, IOFailedError)):
        esker.dataset(uri, manifest_store=Failing(store, fault, "delete")).branches.delete("feat")
    entries = LanceLog.at(f"{uri}/tree/feat", manifest_store=store)
    assert entries.has_entries()
    made = dataset.create_branch("feat", start)
    assert (made.version, made.count_rows()) == (start, start)
    again = esker.dataset(uri, manifest_store=store).checkout_version(("feat", None))
    assert (again.version, again.count_rows()) == (start, start)
    again.insert(_ids(8, 1))
    assert lance.dataset(f"{uri}/tree/feat").count_rows() == start + 1
    assert dataset.checkout_version(("kept", None)).count_rows() == 2


def test_a_first_version_that_is_left_with_later_entries_is_not_taken_for_the_new_branch(
    uri: str, store: SqliteManifestStore
) -> None:
    dataset = _make(uri, store)
    Path(uri, "_refs/branches/feat.json").unlink()
    for version in (2, 3):
        Path(uri, f"tree/feat/_versions/{2**64 - 1 - version:020}.manifest").unlink()
    assert dataset.create_branch("feat", 1).count_rows() == 1
    assert dataset.checkout_version(("feat", None)).count_rows() == 1


@pytest.mark.parametrize("start", [1, 2])
@pytest.mark.parametrize("place", ["_put", "forget_entries"])
def test_a_creation_that_another_one_overtakes_leaves_no_entries_in_its_branch(
    uri: str, store: SqliteManifestStore, monkeypatch: pytest.MonkeyPatch, place: str, start: int
) -> None:
    dataset = _make(uri, store)
    # A deletion was broken off before the entries of versions 1 to 3 went.
    Path(uri, "_refs/branches/feat.json").unlink()
    shutil.rmtree(f"{uri}/tree/feat")
    owner: Any = _Creation if place == "_put" else LanceLog
    method = getattr(owner, place)

    def overtaken(this: Any) -> Any:
        monkeypatch.setattr(owner, place, method)
        assert esker.dataset(uri, manifest_store=store).create_branch("feat", 1).count_rows() == 1
        return method(this)

    monkeypatch.setattr(owner, place, overtaken)
    with pytest.raises(RefConflictError, match="already exists"):
        dataset.create_branch("feat", start)
    branch = esker.dataset(uri, manifest_store=store).checkout_version(("feat", None))
    assert (branch.version, branch.count_rows()) == (1, 1)
    branch.insert(_ids(8, 1))
    assert esker.dataset(uri, manifest_store=store).checkout_version(("feat", None)).count_rows() == 2
    assert lance.dataset(f"{uri}/tree/feat").count_rows() == 2


def _break_off(monkeypatch: pytest.MonkeyPatch, method: Callable[..., None], at: int) -> list[str]:
    """Kills the process before the call of `forget_entries` with this number; what was called."""
    seen: list[str] = []

    def killing(log: LanceLog) -> None:
        seen.append(log.uri)
        if len(seen) == at + 1:
            raise Killed
        method(log)

    monkeypatch.setattr(LanceLog, "forget_entries", killing)
    return seen


@pytest.mark.parametrize("at", [0, 1])
def test_a_drop_that_was_broken_off_at_the_entries_can_be_done_again(
    uri: str, store: SqliteManifestStore, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    _make(uri, store)
    with monkeypatch.context() as patched:
        seen = _break_off(patched, LanceLog.forget_entries, at)
        with pytest.raises(Killed):
            esker.LanceDataset.drop(uri, options)
    assert len(seen) == at + 1
    esker.LanceDataset.drop(uri, options)
    for place in (uri, f"{uri}/tree/feat"):
        assert store.get_latest(place) is None
    made = esker.write_dataset(_ids(0, 2), uri, manifest_store=store)
    assert (made.version, made.create_branch("feat").count_rows()) == (1, 2)


def test_the_entries_of_a_table_whose_files_are_gone_are_dropped(
    uri: str, store: SqliteManifestStore, options: dict[str, str]
) -> None:
    esker.write_dataset(_ids(0, 1), uri, manifest_store=store)
    esker.LanceDataset.drop(uri)
    assert store.get_latest(uri) is not None
    esker.LanceDataset.drop(uri, options)
    assert store.get_latest(uri) is None
    with pytest.raises(NotFoundError, match="nothing lies at"):
        esker.LanceDataset.drop(uri, options)
    assert esker.write_dataset(_ids(0, 1), uri, manifest_store=store).version == 1
