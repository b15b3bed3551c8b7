"""Blobs that lie below a base path of their table: a number and a path there instead of a URI; with pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import DatasetBasePath as TheirBasePath

import esker
from esker import DatasetBasePath
from esker.blob import Blob, blob_array
from esker.exceptions import EskerError, InvalidArgumentError

NAMES = ("a.bin", "deep/er/b.bin", "data/c.bin", "deep/ä b%20.bin")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a file of each name, which holds its own name."""
    folder = tmp_path / "outside"
    for name in NAMES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def blobs_of(folder: Path) -> list[Any]:
    uris = [(folder / name).as_uri() for name in NAMES]
    return [*uris, Blob.from_uri(uris[1], position=2, size=3), b"inline", None]


EXPECTED = [*(name.encode() for name in NAMES), NAMES[1].encode()[2:5], b"inline", None]


def made(writer: Any, uri: Path, blobs: list[Any], *bases: tuple[Path, int, bool], **options: Any) -> Any:
    kind = TheirBasePath if writer is lance else DatasetBasePath
    paths = [kind(path.as_uri(), name=f"base{number}", is_dataset_root=root, id=number) for path, number, root in bases]
    table = pa.table({"n": range(len(blobs)), "blob": blob_array(blobs)})
    return writer.write_dataset(table, str(uri), data_storage_version="2.2", initial_bases=paths, **options)


def read(library: Any, uri: Path) -> list[bytes | None]:
    """All blobs, one by one, and the same as one column."""
    dataset = library.dataset(str(uri))
    rows = dataset.to_table(["n"])["n"].to_pylist()
    column = dataset.scanner(["blob"], blob_handling="all_binary").to_table()["blob"].to_pylist()
    there = [row for row in range(len(rows)) if column[row] is not None]
    one_by_one = [file.readall() for file in dataset.take_blobs("blob", indices=there)]
    assert one_by_one == [column[row] for row in there]
    return list(column)


@pytest.mark.parametrize("writer", [esker, lance], ids=["esker", "pylance"])
def test_both_read_what_either_wrote(writer: Any, outside: Path, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    made(writer, uri, blobs_of(outside), (outside, 7, False))
    found = [row["blob"] for row in lance.dataset(str(uri)).to_table().to_pylist()]
    assert [(blob["blob_id"], blob["blob_uri"]) for blob in found[:4]] == [(7, name) for name in NAMES]
    assert (found[4]["position"], found[4]["size"]) == (2, 3)
    assert esker.dataset(uri).to_table().to_pylist() == lance.dataset(str(uri)).to_table().to_pylist()
    assert read(esker, uri) == EXPECTED
    dataset = lance.dataset(str(uri))
    assert [file.readall() for file in dataset.take_blobs("blob", indices=list(range(6)))] == EXPECTED[:6]


@pytest.mark.parametrize("writer", [esker, lance], ids=["esker", "pylance"])
def test_the_nearest_base_counts_and_the_root_of_a_table_does_not(writer: Any, outside: Path, tmp_path: Path) -> None:
    blobs = [(outside / NAMES[1]).as_uri()]
    dataset = made(writer, tmp_path / "near", blobs, (outside, 3, False), (outside / "deep", 4, False))
    assert [row["blob"]["blob_id"] for row in dataset.to_table().to_pylist()] == [4]
    assert read(esker, tmp_path / "near") == [NAMES[1].encode()]
    with pytest.raises((EskerError, OSError), match="outside"):
        made(writer, tmp_path / "root", blobs, (outside, 3, True))
    sibling = outside.with_name("outside2")
    sibling.mkdir()
    with pytest.raises((EskerError, OSError), match="outside"):
        made(writer, tmp_path / "beside", blobs, (sibling, 3, False), (outside.with_name("out"), 4, False))


def test_they_stay_where_they_are_in_compactions_and_changes(outside: Path, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    dataset = made(esker, uri, blobs_of(outside), (outside, 7, False))
    dataset.insert(pa.table({"n": [7], "blob": blob_array([(outside / NAMES[0]).as_uri()])}))
    dataset.delete("n = 0")
    assert dataset.optimize.compact_files().fragments_removed == 2
    dataset.cleanup_old_versions(older_than=None, retain_versions=1, delete_unverified=True)
    for name in NAMES:
        assert (outside / name).read_text() == name
    found = [row["blob"] for row in dataset.to_table().to_pylist()]
    assert [(blob["blob_id"], blob["blob_uri"]) for blob in found[:3]] == [(7, name) for name in NAMES[1:]]
    assert read(esker, uri) == [*EXPECTED[1:], NAMES[0].encode()]
    clone = dataset.shallow_clone(tmp_path / "clone", reference=dataset.version)
    assert clone.count_rows() == 7
    assert read(esker, tmp_path / "clone") == [*EXPECTED[1:], NAMES[0].encode()]
    dataset.create_branch("b")
    assert read(esker, uri / "tree" / "b") == [*EXPECTED[1:], NAMES[0].encode()]


def test_new_columns_and_ingested_blobs(outside: Path, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    paths = [DatasetBasePath(outside.as_uri(), name="outside", id=2)]
    dataset = esker.write_dataset(pa.table({"n": range(7)}), uri, data_storage_version="2.2", initial_bases=paths)
    dataset.add_columns(pa.table({"blob": blob_array(blobs_of(outside))}).to_reader())
    assert read(esker, uri) == EXPECTED
    other = tmp_path / "other"
    dataset = made(esker, other, blobs_of(outside), (outside, 2, False), external_blob_mode="ingest")
    assert {row["blob"]["kind"] for row in dataset.to_table().to_pylist() if row["blob"]} == {0}
    assert read(esker, other) == EXPECTED


@pytest.mark.parametrize("writer", [esker, lance], ids=["esker", "pylance"])
def test_uris_of_files_may_have_escapes(writer: Any, outside: Path, tmp_path: Path) -> None:
    blobs = [(outside / name).as_uri() for name in NAMES]
    made(writer, tmp_path / "t", blobs, allow_external_blob_outside_bases=True)
    assert read(esker, tmp_path / "t") == EXPECTED[:4]


def test_what_is_missing_or_leads_elsewhere_is_an_error(outside: Path, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    made(esker, uri, [(outside / NAMES[0]).as_uri()], (outside, 7, False))
    (outside / NAMES[0]).unlink()
    with pytest.raises(EskerError, match=r"a\.bin"):
        read(esker, uri)
    (tmp_path / "secret").write_text("secret")
    sneaky = f"{outside.as_uri()}/../secret"
    with pytest.raises(InvalidArgumentError, match="outside"):
        made(esker, tmp_path / "sneaky", [sneaky], (outside, 7, False))
