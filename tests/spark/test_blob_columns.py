"""Spark writes to tables with blobs of the second kind, whose bytes lie in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import types as T

import esker
from esker.repo import Repository
from esker.spark.streaming import sink
from tests.spark.jobs import batches, planned, staged, wrote
from tests.spark.streams import Batch

_BLOB = (
    T.StructType()
    .add("data", T.BinaryType())
    .add("uri", T.StringType())
    .add("position", T.DecimalType(20, 0))
    .add("size", T.DecimalType(20, 0))
)
SCHEMA = T.StructType().add("id", T.LongType()).add("b", _BLOB)
SIZES = [5, 100_000, 5_000_000]


def _row(size: int | None) -> dict[str, Any]:
    return {"id": size, "b": None if size is None else {"data": b"x" * size}}


@pytest.fixture(params=["folder", "branch"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Repository | None]:
    """A table without rows, and the repository that it lies in."""
    repo = None if request.param == "folder" else Repository.create(tmp_path / "lake", committer="me")
    at = str(tmp_path / "t") if repo is None else repo.branch("main").store_uri("t")
    rows = pa.schema([pa.field("id", pa.int64()), esker.blob_field("b")]).empty_table()
    esker.write_dataset(rows, at, data_storage_version="2.2")
    return at, repo


def _folder(place: tuple[str, Repository | None], tmp_path: Path) -> Path:
    at, repo = place
    if repo is None:
        return Path(at)
    repo.branch("main").export(str(tmp_path / "export"))
    return tmp_path / "export" / "t"


def _sizes(folder: Path) -> list[int]:
    """The sizes of all blobs, as the peer reads them; all files are those of fragments."""
    table = lance.dataset(folder)
    stems = {Path(file.path).stem for fragment in table.get_fragments() for file in fragment.data_files()}
    assert {path.parent.name for path in folder.rglob("*.blob")} <= stems
    assert {path.stem for path in folder.rglob("*.lance")} == stems
    blobs = table.take_blobs("b", indices=list(range(table.count_rows())))
    return sorted(len(blob.read()) for blob in blobs)


def test_blobs_are_appended_as_their_fields(place: tuple[str, Repository | None], tmp_path: Path) -> None:
    for size in SIZES:
        wrote(place[0], SCHEMA, [_row(size)])
    assert _sizes(_folder(place, tmp_path)) == SIZES


def test_small_files_with_blobs_are_joined(
    place: tuple[str, Repository | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "SMALL_BYTES", 0)
    for number in range(2):
        tasks = [[_row(size)] for size in SIZES]
        Batch(place[0], SCHEMA, "query", number, maxFilesPerCommit=1).run(*tasks)
    assert len(esker.dataset(place[0]).get_fragments()) == 2
    assert _sizes(_folder(place, tmp_path)) == sorted(SIZES * 2)


def test_blobs_of_a_job_that_failed_are_deleted(tmp_path: Path) -> None:
    at = tmp_path / "t"
    rows = pa.schema([pa.field("id", pa.int64()), esker.blob_field("b")]).empty_table()
    esker.write_dataset(rows, at, data_storage_version="2.2")
    job = planned(str(at), SCHEMA)
    messages = staged(job, [batches(SCHEMA, [_row(SIZES[-1])])])
    assert len(list(at.rglob("*.blob"))) == 1
    job.abort([*messages, None])
    assert not list(at.rglob("*.blob"))
    assert not list(at.rglob("*.lance"))
