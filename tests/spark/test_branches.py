"""Spark reads the tables of a repository's refs, each DataFrame at one commit, and writes to those of its branches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import esker
import esker.spark
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.repo import Repository
from esker.repo.table_address import address
from esker.spark import EskerSource
from tests.spark.conftest import load, save


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def append(repo: Repository, branch: str, *ids: int) -> None:
    with repo.branch(branch).transact(f"append {ids}") as tx:
        esker.write_dataset(rows(*ids), tx.store_uri("lake/lance"), mode="append")
        write_deltalake(tx.store_uri("lake/delta"), rows(*ids), mode="append")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "the lake", committer="me")
    with made.branch("main").transact("tables") as tx:
        esker.write_dataset(rows(1, 2), tx.store_uri("lake/lance"))
        write_deltalake(tx.store_uri("lake/delta"), rows(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    made.branch("feature/x").create("main")
    return made


def ids(frame: object) -> list[int]:
    return sorted(row.id for row in frame.collect())  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", ["lance", "delta"])
def test_a_data_frame_reads_the_commit_at_which_it_was_loaded(
    spark: SparkSession, repo: Repository, table: str
) -> None:
    def at(ref: str) -> str:
        return address(repo.uri, ref, f"lake/{table}")

    loaded = load(spark, at("feature/x"))
    read = esker.spark.read(spark, repo.branch("feature/x").store_uri(f"lake/{table}"), filter="id > 1")
    typed = spark.read.format("esker").schema("id long").load(at("feature/x"))
    append(repo, "feature/x", 3)
    # The same version number on the same branch, with other rows.
    repo.branch("feature/x").reset_to("main")
    append(repo, "feature/x", 7, 8)
    assert ids(loaded) == [1, 2]
    assert ids(read) == [2]
    # With a schema from the user Spark asks for nothing before the query: that is when the ref is resolved.
    assert ids(typed) == [1, 2, 7, 8]
    assert ids(loaded.union(load(spark, at("feature/x"))).distinct()) == [1, 2, 7, 8]
    assert ids(load(spark, at("feature/x"))) == [1, 2, 7, 8]
    assert ids(load(spark, at("main@"))) == ids(load(spark, at("feature/x~1"))) == [1, 2]


def test_older_versions_and_changes_are_read_at_the_commit_too(spark: SparkSession, repo: Repository) -> None:
    append(repo, "main", 3)
    at = address(repo.uri, "main", "lake")
    assert ids(load(spark, f"{at}/lance", version=1)) == [1, 2]
    assert ids(load(spark, f"{at}/delta", versionAsOf=0)) == [1, 2]
    changes = load(spark, f"{at}/delta", readChangeFeed="true", startingVersion=1)
    repo.branch("main").reset_to("main~1")
    assert ids(changes) == [3]


def test_writes_to_a_repository_that_are_not_to_a_branch_are_refused_with_what_to_do(
    spark: SparkSession, repo: Repository
) -> None:
    frame = spark.range(3)
    branch = repo.branch("main")
    others = [address(repo.uri, ref, "lake/lance") for ref in ("main~1", "main@", "none", branch.get_commit().id)]
    before = branch.get_commit()
    for at in others:
        for mode in ("append", "overwrite"):
            with pytest.raises(PySparkException, match="a ref that is only read"):
                save(frame, at, mode)
            with pytest.raises(UnsupportedError, match="a ref that is only read"):
                esker.spark.write(frame, at, mode=mode)
        with pytest.raises(UnsupportedError, match="where each batch is a commit"):
            EskerSource({"path": at}).streamWriter(frame.schema, False)
    for at in ("esker://lake/t", "esker:///lake@main/t"):
        with pytest.raises(InvalidArgumentError, match=r"Branch\.store_uri"):
            esker.spark.write(frame, at, mode="append")
    assert branch.get_commit() == before
    with branch.transact("rows") as tx:
        with pytest.raises(UnsupportedError, match=r"frame\.toArrow"):
            esker.spark.write(frame, tx.store_uri("lake/lance"), mode="append")
        with pytest.raises(UnsupportedError, match="which a stream outlasts"):
            EskerSource({"path": tx.store_uri("lake/lance")}).streamWriter(frame.schema, False)
        with pytest.raises(UnsupportedError, match="only this process"):
            esker.spark.read(spark, tx.store_uri("lake/lance"))
        with pytest.raises(AnalysisException, match="only this process"):
            load(spark, tx.store_uri("lake/lance"))
        # What the message advises.
        esker.write_dataset(frame.toArrow(), tx.store_uri("lake/lance"), mode="append")
        write_deltalake(tx.store_uri("lake/delta"), frame.toArrow(), mode="append")
    assert ids(load(spark, repo.branch("main").store_uri("lake/delta"))) == [0, 1, 1, 2, 2]


def test_a_batch_function_writes_several_tables_of_a_branch_in_one_commit(
    spark: SparkSession, repo: Repository, tmp_path: Path
) -> None:
    rows_of = spark.readStream.format("esker").load(repo.branch("main").store_uri("lake/lance"))
    branch = repo.branch("feature/x")

    def merge(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            # Spark runs a batch again after a failure.
            with branch.transact(f"batch {number}") as tx:
                lance = esker.dataset(tx.store_uri("lake/lance")).merge_insert("id")
                merging = lance.when_matched_update_all().when_not_matched_insert_all()
                merging.execute(batch.toArrow(), application=("a stream", number))
                esker.write_dataset(
                    batch.toArrow(), tx.store_uri("lake/new"), mode="append", application=("a stream", number)
                )
                delta = DeltaTable(tx.store_uri("lake/delta")).merge(batch.toArrow(), "s.id = t.id", "s", "t")
                delta.when_matched_update_all().when_not_matched_insert_all().execute()

    append(repo, "main", 3)
    query = rows_of.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    for at in ("lake/lance", "lake/delta", "lake/new"):
        assert ids(load(spark, branch.store_uri(at))) == [1, 2, 3]


def test_an_upsert_writes_to_a_branch_and_to_nothing_else_of_a_repository(
    spark: SparkSession, repo: Repository, tmp_path: Path
) -> None:
    rows_of = spark.readStream.format("esker").load(repo.branch("main").store_uri("lake/lance"))
    branch = repo.branch("feature/x")
    others = [address(repo.uri, ref, "lake/lance") for ref in ("feature/x~1", "main@", "none", branch.get_commit().id)]
    for at in others:
        with pytest.raises(UnsupportedError, match="a ref that is only read"):
            esker.spark.upsert_stream(rows_of, at, keys="id")
    with branch.transact("rows") as tx, pytest.raises(UnsupportedError, match="which a stream outlasts"):
        esker.spark.upsert_stream(rows_of, tx.store_uri("lake/lance"), keys="id")

    targets = {"lake/lance": None, "lake/delta": None, "lake/new": None, "new/delta": "delta"}
    for number in (3, 4):
        append(repo, "main", number)
        for at, kind in targets.items():
            before = branch.get_commit()
            upsert = esker.spark.upsert_stream(rows_of, branch.store_uri(at), keys="id", table_format=kind)
            upsert = upsert.option("checkpointLocation", str(tmp_path / at)).trigger(availableNow=True)
            upsert.start().awaitTermination()
            assert ids(load(spark, branch.store_uri(at))) == list(range(1, number + 1))
            # A batch is a commit, and so is the first version of a table.
            is_new = number == 3 and "new" in at
            *since, base = branch.log(2 + is_new)
            assert ([commit.metadata["esker.table"] for commit in since], base) == ([at] * len(since), before)
    assert ids(load(spark, repo.branch("main").store_uri("lake/lance"))) == [1, 2, 3, 4]


def test_what_spark_wrote_elsewhere_is_committed_by_an_import(
    spark: SparkSession, repo: Repository, tmp_path: Path
) -> None:
    save(spark.range(3), str(tmp_path / "outside" / "lance"))
    save(spark.range(3), str(tmp_path / "outside" / "delta"), tableFormat="delta")
    repo.branch("main").import_data("from Spark").prefix(f"{tmp_path}/outside/", "taken/").run()
    for table in ("lance", "delta"):
        assert ids(load(spark, repo.branch("main").store_uri(f"taken/{table}"))) == [0, 1, 2]
