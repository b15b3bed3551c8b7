"""Spark writes to tables on branches of repositories: tasks stage files, and a write, or a batch, is one commit."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions
from pyspark.sql import types as T

import esker
import esker.spark
from esker.delta import write_deltalake
from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    NotFoundError,
)
from esker.repo import ProtectedBranchError, Repository
from esker.spark.delta_writer import DeltaWriter
from esker.spark.streaming import sink
from esker.spark.table import FragmentPlan
from tests.spark.conftest import save
from tests.spark.jobs import batches, planned, read, staged, wrote
from tests.spark.streams import Batch

SCHEMA = T.StructType().add("id", T.LongType()).add("s", T.StringType())
KINDS = pytest.mark.parametrize("kind", ["lance", "delta"])


def _rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "s": f"x{n}"} for n in ids]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "the lake", committer="me")


def _ids(repo: Repository, folder: Path, kind: str, branch: str = "main", path: str = "t") -> list[int]:
    """The rows of a table, as the peer reads an export of the branch; they are those that we read."""
    place = folder / f"export{time.monotonic_ns()}"
    repo.branch(branch).export(str(place))
    if kind == "lance":
        found = lance.dataset(place / path).to_table()
    else:
        found = deltalake.DeltaTable(str(place / path)).to_pyarrow_table()
    ids = sorted(found["id"].to_pylist())
    assert sorted(row["id"] for row in read(repo.branch(branch).store_uri(path))) == ids
    return ids


@KINDS
def test_each_mode_writes_one_commit(spark: SparkSession, repo: Repository, tmp_path: Path, kind: str) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    other = repo.branch("other").create("main")
    made = {"tableFormat": kind}
    for mode, start, there in (
        ("append", 0, [0, 1, 2]),
        ("append", 3, [0, 1, 2, 3, 4, 5]),
        ("overwrite", 7, [7, 8, 9]),
    ):
        before = main.get_commit()
        save(spark.range(start, start + 3, numPartitions=3).withColumn("s", functions.lit("x")), at, mode, **made)
        since, base = main.log(2)
        assert base == before
        assert since.metadata["esker.table"] == "t"
        assert _ids(repo, tmp_path, kind) == there
    for mode in ("ignore", "error"):
        before = main.get_commit()
        frame = spark.range(3).withColumn("s", functions.lit("x"))
        if mode == "ignore":
            esker.spark.write(frame, at, mode=mode, table_format=kind)
        else:
            with pytest.raises(AlreadyExistsError):
                esker.spark.write(frame, at, mode=mode, table_format=kind)
        assert main.get_commit() == before
    # What was written beside it on another branch is merged.
    esker.spark.write(spark.range(1).withColumn("s", functions.lit("x")), other.store_uri("u"), mode="append")
    other.merge_into("main")
    assert _ids(repo, tmp_path, "lance", path="u") == [0]
    assert _ids(repo, tmp_path, kind) == [7, 8, 9]


def test_a_part_of_a_delta_table_is_replaced(spark: SparkSession, repo: Repository, tmp_path: Path) -> None:
    at = repo.branch("main").store_uri("t")
    frame = spark.range(6).withColumn("p", functions.col("id") % 2)
    esker.spark.write(frame, at, mode="append", table_format="delta", partition_by="p")
    new = spark.range(10, 12).withColumn("p", functions.lit(1).cast("long"))
    esker.spark.write(new, at, mode="overwrite", replace_where="p = 1")
    assert _ids(repo, tmp_path, "delta") == [0, 2, 4, 10, 11]
    esker.spark.write(spark.range(20, 21).withColumn("p", functions.lit(0).cast("long")), at, mode="overwrite",
                      partition_overwrite_mode="dynamic")  # fmt: skip
    assert _ids(repo, tmp_path, "delta") == [10, 11, 20]


@KINDS
def test_a_query_writes_to_a_branch(spark: SparkSession, repo: Repository, tmp_path: Path, kind: str) -> None:
    main = repo.branch("main")
    source = str(tmp_path / "source.lance")
    frame = spark.readStream.format("esker")
    esker.write_dataset(pa.table({"id": pa.array(range(5)), "s": ["x"] * 5}), source)
    rows = frame.load(source).repartition(3)

    def run(output: str, mode: str) -> None:
        writer = (rows if mode == "append" else rows.groupBy("s").agg(functions.sum("id").alias("id"))).writeStream
        writer = writer.format("esker").option("tableFormat", kind).outputMode(mode)
        writer = writer.option("checkpointLocation", str(tmp_path / output)).trigger(availableNow=True)
        writer.start(main.store_uri(output)).awaitTermination()

    for number in range(2):
        if number:
            esker.write_dataset(pa.table({"id": [5, 6], "s": ["x"] * 2}), source, mode="append")
        before = main.get_commit()
        run("t", "append")
        assert list(main.log(2))[1] == before
        run("sum", "complete")
        run("sum", "complete")
    assert _ids(repo, tmp_path, kind) == list(range(7))
    assert _ids(repo, tmp_path, kind, path="sum") == [sum(range(7))]


@KINDS
@pytest.mark.parametrize("small", [0, sink.SMALL_BYTES])
def test_a_batch_on_a_branch_is_there_once_however_often_it_runs(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, small: int
) -> None:
    monkeypatch.setattr(sink, "SMALL_BYTES", small)
    main = repo.branch("main")
    at = main.store_uri("t")
    options: dict[str, Any] = {"tableFormat": kind, "maxFilesPerCommit": 1}
    if kind == "lance":
        options["compactEvery"] = 2
    for number in range(3):
        for _ in range(2):
            Batch(at, SCHEMA, "query", number, **options).run(_rows(2 * number), [], _rows(2 * number + 1))
    assert _ids(repo, tmp_path, kind) == list(range(6))
    # A branch knows the batches of the one that it was made from, and a reset takes them back.
    other = repo.branch("other").create("main")
    Batch(other.store_uri("t"), SCHEMA, "query", 2, **options).run(_rows(4), _rows(5))
    Batch(other.store_uri("t"), SCHEMA, "query", 3, **options).run(_rows(6))
    assert _ids(repo, tmp_path, kind, "other") == list(range(7))
    other.reset_to("main")
    Batch(other.store_uri("t"), SCHEMA, "query", 3, **options).run(_rows(6))
    assert _ids(repo, tmp_path, kind, "other") == list(range(7))
    assert _ids(repo, tmp_path, kind) == list(range(6))


@KINDS
def test_appends_of_several_jobs_and_what_others_commit_are_all_there(
    repo: Repository, tmp_path: Path, kind: str
) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    wrote(at, SCHEMA, _rows(0), tableFormat=kind)
    jobs = [planned(at, SCHEMA) for _ in range(3)]
    sent = [staged(job, [batches(SCHEMA, _rows(10 * n)), batches(SCHEMA, _rows(10 * n + 1))]) for n, job in
            enumerate(jobs, 1)]  # fmt: skip
    main.object("beside").upload(b"x")
    main.commit("beside")
    rows = pa.Table.from_pylist(_rows(1), schema=pa.schema({"id": pa.int64(), "s": pa.string()}))
    (write_deltalake(at, rows, mode="append") if kind == "delta" else esker.write_dataset(rows, at, mode="append"))
    for job, messages in zip(jobs, sent, strict=True):
        pickle.loads(pickle.dumps(job)).commit(messages)
    assert _ids(repo, tmp_path, kind) == [0, 1, 10, 11, 20, 21, 30, 31]
    # Two that make the table.
    new = main.store_uri("new")
    jobs = [planned(new, SCHEMA, tableFormat=kind) for _ in range(2)]
    sent = [staged(job, [batches(SCHEMA, _rows(n))]) for n, job in enumerate(jobs)]
    for job, messages in zip(jobs, sent, strict=True):
        job.commit(messages)
    assert _ids(repo, tmp_path, kind, path="new") == [0, 1]


@KINDS
@pytest.mark.parametrize("mode", ["append", "ignore", "error", "overwrite"])
def test_jobs_that_make_a_table_at_once_meet_as_in_a_folder(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    found: list[tuple[str, list[int]]] = []
    for at in (str(tmp_path / "t"), repo.branch("main").store_uri("t")):
        options = {"tableFormat": kind} | ({"saveMode": mode} if mode != "overwrite" else {})
        job = planned(at, SCHEMA, overwrite=mode == "overwrite", **options)
        messages = staged(job, [batches(SCHEMA, _rows(1))])
        owner, name = (DeltaWriter, "_commit") if kind == "delta" else (FragmentPlan, "commit")
        commit = getattr(owner, name)

        def after_another(*args: Any, at: str = at, commit: Any = commit) -> Any:
            # The store of the commit is open: what it knows of the branch is old by now.
            monkeypatch.undo()
            wrote(at, SCHEMA, _rows(2), tableFormat=kind)
            return commit(*args)

        monkeypatch.setattr(owner, name, after_another)
        outcome = "done"
        try:
            job.commit(messages)
        except (AlreadyExistsError, CommitConflictError) as error:
            outcome = type(error).__name__
        found.append((outcome, sorted(row["id"] for row in read(at))))
    assert found[0] == found[1]
    assert found[0][1] == ([1, 2] if mode == "append" else [2])


@KINDS
@pytest.mark.parametrize("on_branch", [False, True])
def test_a_job_that_makes_a_table_hides_none_of_the_other_format(
    repo: Repository, tmp_path: Path, kind: str, on_branch: bool
) -> None:
    at = repo.branch("main").store_uri("t") if on_branch else str(tmp_path / "t")
    other = "delta" if kind == "lance" else "lance"
    jobs = {mode: planned(at, SCHEMA, tableFormat=kind, saveMode=mode) for mode in ("append", "ignore", "error")}
    sent = {mode: staged(job, [batches(SCHEMA, _rows(1))]) for mode, job in jobs.items()}
    wrote(at, SCHEMA, _rows(2), tableFormat=other)
    for mode, job in jobs.items():
        if mode == "ignore":
            job.commit(sent[mode])
            continue
        with pytest.raises(CommitConflictError, match=f"others have made a {other.capitalize()} table"):
            job.commit(sent[mode])
    assert [row["id"] for row in read(at)] == [2]
    wrote(at, SCHEMA, _rows(3))
    assert sorted(row["id"] for row in read(at)) == [2, 3]


@KINDS
def test_a_write_whose_files_a_collection_took_is_refused_and_leaves_the_branch(
    repo: Repository, tmp_path: Path, kind: str
) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    wrote(at, SCHEMA, _rows(0), tableFormat=kind)
    job = planned(at, SCHEMA)
    messages = staged(job, [batches(SCHEMA, _rows(1))])
    before = main.get_commit()
    _collect(repo)
    with pytest.raises(NotFoundError, match="garbage collection has deleted"):
        job.commit(messages)
    job.abort(messages)
    assert main.get_commit() == before
    assert _ids(repo, tmp_path, kind) == [0]


@KINDS
def test_what_tasks_staged_longer_ago_than_the_grace_period_is_refused(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    wrote(at, SCHEMA, _rows(0), tableFormat=kind)
    job = planned(at, SCHEMA)
    messages = staged(job, [batches(SCHEMA, _rows(1))])
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7 * 86_400)
    with pytest.raises(InvalidArgumentError, match="begun more than .* hours ago"):
        job.commit(messages)
    monkeypatch.undo()
    job.commit(messages)
    assert sorted(row["id"] for row in read(at)) == [0, 1]


@KINDS
@pytest.mark.parametrize("becomes", ["deleted", "reset", "replaced"])
def test_a_branch_that_changed_under_a_job_is_as_it_was_left(
    repo: Repository, kind: str, becomes: str, tmp_path: Path
) -> None:
    main = repo.branch("main")
    wrote(main.store_uri("t"), SCHEMA, _rows(0), tableFormat=kind)
    other = repo.branch("other").create("main")
    at = other.store_uri("t")
    wrote(at, SCHEMA, _rows(1), tableFormat=kind)
    job = planned(at, SCHEMA)
    messages = staged(job, [batches(SCHEMA, _rows(2))])
    if becomes == "deleted":
        other.delete()
    elif becomes == "reset":
        other.reset_to("main")
    else:
        with other.transact("drop") as tx:
            tx.delete_objects([found.path for found in other.objects(prefix="t/")])
        wrote(at, SCHEMA, _rows(5), tableFormat=kind)
    with pytest.raises((NotFoundError, CommitConflictError)) as raised:
        job.commit(messages)
    job.abort(messages)
    assert becomes in str(raised.value) or "other" in str(raised.value)
    if becomes == "deleted":
        # Nor does giving up a job of which a task failed hide what it failed of.
        job.abort([*messages, None])
        with pytest.raises(NotFoundError):
            other.get_commit()
    else:
        assert _ids(repo, tmp_path, kind, "other") == ([0] if becomes == "reset" else [5])


@KINDS
def test_a_protected_branch_is_refused_before_anything_is_written(repo: Repository, kind: str) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    wrote(at, SCHEMA, _rows(0), tableFormat=kind)
    objects = _objects(repo)
    repo.change_settings(protected_branches=["ma*"])
    for plan in (lambda: planned(at, SCHEMA), lambda: Batch(at, SCHEMA, "query", 0)):
        with pytest.raises(ProtectedBranchError, match="is protected"):
            plan()
    assert _objects(repo) == objects


@KINDS
@pytest.mark.parametrize("give_up", [True, False])
def test_files_of_a_job_that_failed_are_collected(repo: Repository, tmp_path: Path, kind: str, give_up: bool) -> None:
    main = repo.branch("main")
    at = main.store_uri("t")
    wrote(at, SCHEMA, _rows(0), tableFormat=kind)
    objects = _objects(repo)
    before = main.get_commit()
    job = planned(at, SCHEMA)
    messages = staged(job, [batches(SCHEMA, _rows(1))])
    assert len(_objects(repo)) == len(objects) + 1
    if give_up:
        job.abort([*messages, None])
    assert main.get_commit() == before
    _collect(repo)
    assert len(_objects(repo)) <= len(objects)
    assert _ids(repo, tmp_path, kind) == [0]


def _objects(repo: Repository) -> set[str]:
    root = Path(repo.uri.removeprefix("file://"))
    return {str(path) for path in (root / "data").rglob("*") if path.is_file()}


def _collect(repo: Repository) -> None:
    # The clock of a file system goes in steps: what was put in the same one stays.
    time.sleep(0.05)
    repo.gc(dry_run=False, grace_s=0)
