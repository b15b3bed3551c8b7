"""Versions that a clean-up does not find, and that are there all the same: their files stay."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import IOFailedError
from esker.lance.cleanup import CleanupPolicy, cleanup
from esker.lance.log import LanceLog

NUMBERS = [1, 2, 3]


def _make(uri: str) -> None:
    for number in NUMBERS:
        esker.write_dataset(pa.table({"id": [number]}), uri, mode="overwrite")


def _manifest(uri: str, number: int) -> Path:
    return Path(uri, f"_versions/{2**64 - 1 - number:020}.manifest")


def _hiding(uri: str, path: Path, times: int) -> Store:
    """A store that does not find a version when it reads it, so many times, and lists it all the same."""
    aside, reads = Path(uri, "aside"), list[str]()

    def watch(verb: str, name: str) -> str | None:
        if aside.exists():
            aside.rename(path)
        if not verb.startswith("list") and name == str(path.relative_to(uri)) and len(reads) < times:
            reads.append(verb)
            path.rename(aside)
        return None

    return FaultStore(Store(uri), watch=watch).store


def _clean(uri: str, store: Store) -> None:
    policy = CleanupPolicy(retain_versions=1, delete_unverified=True)
    cleanup(LanceLog(store, uri), esker.dataset(uri)._manifest, policy)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_version_that_is_put_back_while_a_clean_up_looks_keeps_its_files(uri: str, number: int) -> None:
    _make(uri)
    _clean(uri, _hiding(uri, _manifest(uri, number), 1))
    kept = sorted({number, 3})
    assert [version["version"] for version in esker.dataset(uri).versions()] == kept
    for version in kept:
        assert lance.dataset(uri, version=version).to_table()["id"].to_pylist() == [version]


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing_goes_where_a_store_lists_what_it_does_not_find(uri: str, number: int) -> None:
    _make(uri)
    with pytest.raises(IOFailedError, match=r"\.manifest of .* is listed, but was not found"):
        _clean(uri, _hiding(uri, _manifest(uri, number), 99))
    if Path(uri, "aside").exists():
        Path(uri, "aside").rename(_manifest(uri, number))
    for version in NUMBERS:
        assert esker.dataset(uri, version=version).to_table()["id"].to_pylist() == [version]


def test_nothing_goes_where_the_manifest_of_a_branch_is_listed_and_not_found(uri: str) -> None:
    _make(uri)
    esker.dataset(uri).create_branch("feat", 1)
    path = Path(uri, f"tree/feat/{_manifest('', 1)}")
    with pytest.raises(IOFailedError, match=r"tree/feat/.*\.manifest of .* is listed, but was not found"):
        _clean(uri, _hiding(uri, path, 99))
    if Path(uri, "aside").exists():
        Path(uri, "aside").rename(path)
    assert [version["version"] for version in esker.dataset(uri).versions()] == NUMBERS
    assert esker.dataset(uri, version=("feat", None)).to_table()["id"].to_pylist() == [1]
