"""Registration, discovery, and the helpers `esker.spark.read` and `esker.spark.write`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import esker.spark
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, SchemaMismatchError
from tests.spark.conftest import by_pylance, load, save

ROWS = 1_000


@pytest.fixture
def numbers(uri: str) -> str:
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{i}" for i in range(ROWS)]})
    lance.write_dataset(table, uri, max_rows_per_file=400, data_storage_version="2.0")
    return uri


def test_the_module_for_discovery_offers_the_format_and_nothing_else() -> None:
    import pyspark_esker

    assert pyspark_esker.__all__ == ["DefaultSource"]
    assert pyspark_esker.DefaultSource.name() == "esker"


@pytest.mark.parametrize("missing", ["esker", "pyspark", "pyarrow"])
def test_discovery_survives_whatever_is_missing(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import pyspark_esker"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_names_are_there_though_none_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, esker.spark; from esker.spark import *\n"
        "import esker.spark.source, esker.spark.streaming.sink, esker.spark.streaming.upsert, esker.spark.table_read\n"
        "for name in esker.spark.__all__:\n"
        "    assert name in dir(esker.spark) and callable(getattr(esker.spark, name)), name\n"
        "    assert globals()[name] is getattr(esker.spark, name), name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="module 'esker.spark' has no attribute 'upsert'"):
        esker.spark.upsert  # noqa: B018


def test_processes_that_read_and_write_do_not_wait_for_what_they_do_not_use() -> None:
    """Spark starts processes for each plan and for each stream."""
    code = "import sys, esker.spark.source; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert "esker.spark.reader" in found
    rooms = {"cleanup", "compaction", "merge", "change"}
    unwanted = {f"esker.lance.{room}" for room in rooms} | {
        "esker.dataset",
        "esker.repo",
        "esker.delta.table",
        "pandas",
    }
    assert not {name for name in found if any(name == one or name.startswith(f"{one}.") for one in unwanted)}


def test_the_format_is_found_without_registration_and_by_hand(spark: SparkSession, numbers: str) -> None:
    # A registration on top of the discovery must do no harm.
    assert load(spark, numbers).count() == ROWS
    esker.spark.register(spark)
    esker.spark.register(spark)
    assert load(spark, numbers).count() == ROWS


def test_a_fresh_session_finds_the_format_by_itself(numbers: str) -> None:
    code = (
        "import os, sys; os.environ['PYSPARK_PYTHON'] = sys.executable\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        f"print('rows:', spark.read.format('esker').load({numbers!r}).count())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
    )
    assert f"rows: {ROWS}" in done.stdout, done.stderr[-3000:]


def test_read_gives_the_rows_of_the_format(spark: SparkSession, numbers: str) -> None:
    frame = esker.spark.read(spark, numbers)
    assert frame.schema == load(spark, numbers).schema
    assert [row.id for row in frame.collect()] == list(range(ROWS))
    chosen = esker.spark.read(spark, numbers, columns=["name", "id"], filter="id >= 398 AND id < 402")
    assert [tuple(row) for row in chosen.collect()] == [(f"n{i}", i) for i in range(398, 402)]


def test_read_keeps_its_version(spark: SparkSession, numbers: str) -> None:
    frame = esker.spark.read(spark, numbers, rows_per_partition=100)
    lance.write_dataset(pa.table({"id": [-1], "name": ["new"]}), numbers, mode="append")
    assert frame.count() == ROWS
    assert frame.rdd.getNumPartitions() == 10
    assert esker.spark.read(spark, numbers).count() == ROWS + 1
    assert esker.spark.read(spark, numbers, version=1).count() == ROWS


def test_a_table_is_never_broadcast_into_a_join_by_accident(spark: SparkSession, numbers: str) -> None:
    table = esker.spark.read(spark, numbers)
    plan = table.join(esker.spark.read(spark, numbers), "id")._jdf.queryExecution().executedPlan().toString()
    assert "Broadcast" not in plan
    assert table.join(table.limit(3), "id").count() == 3


def test_read_of_a_table_without_rows(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), uri, data_storage_version="2.0")
    assert esker.spark.read(spark, uri).collect() == []


def test_read_raises_the_errors_of_esker(spark: SparkSession, numbers: str) -> None:
    with pytest.raises(NotFoundError):
        esker.spark.read(spark, numbers + ".none")
    with pytest.raises(NotFoundError):
        esker.spark.read(spark, numbers, version=7)
    with pytest.raises(InvalidArgumentError):
        esker.spark.read(spark, numbers, columns=["nope"])
    with pytest.raises(InvalidArgumentError):
        esker.spark.read(spark, numbers, filter="id >")


def test_write_knows_all_save_modes(spark: SparkSession, uri: str) -> None:
    frame = spark.range(10)
    esker.spark.write(frame, uri)
    for mode in ("error", "errorifexists", "create"):
        with pytest.raises(AlreadyExistsError):
            esker.spark.write(frame, uri, mode=mode)
    esker.spark.write(frame, uri, mode="ignore")
    assert lance.dataset(uri).version == 1
    esker.spark.write(frame, uri, mode="append")
    assert by_pylance(uri).num_rows == 20
    esker.spark.write(frame, uri, mode="overwrite")
    assert by_pylance(uri).num_rows == 10
    with pytest.raises(InvalidArgumentError, match="mode"):
        esker.spark.write(frame, uri, mode="upsert")
    with pytest.raises(SchemaMismatchError):
        esker.spark.write(frame.withColumnRenamed("id", "other"), uri, mode="append")


def test_write_makes_vectors_and_files_as_told(spark: SparkSession, uri: str) -> None:
    frame = spark.range(0, 10, 1, 1).selectExpr("id", "array(1f, 2f) AS v")
    esker.spark.write(frame, uri, vectors={"v": 2}, max_rows_per_file=4)
    assert by_pylance(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    assert [fragment.count_rows() for fragment in lance.dataset(uri).get_fragments()] == [4, 4, 2]


def test_sparks_own_default_mode_says_what_to_do_instead(spark: SparkSession, uri: str) -> None:
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(1).write.format("esker").save(uri)
    assert not Path(uri).exists()


def test_save_and_load_agree_on_relative_paths(spark: SparkSession, tmp_path: Path) -> None:
    relative = os.path.relpath(tmp_path / "relative.lance")
    save(spark.range(3), relative)
    assert by_pylance(str(tmp_path / "relative.lance")).num_rows == 3


def test_tables_of_a_catalog_say_what_to_do_instead(spark: SparkSession, numbers: str) -> None:
    with pytest.raises(Exception, match="tables of a catalog .* are not there.*CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE refused USING esker OPTIONS (path '{numbers}')")
    with pytest.raises(Exception, match="tables of a catalog .* are not there.*CREATE TEMPORARY VIEW"):
        spark.range(3).write.format("esker").mode("append").saveAsTable("refused")
    # Spark asks no data source for a table whose columns are listed.
    spark.sql(f"CREATE TABLE listed (Id long, name string) USING esker LOCATION '{numbers}'")
    try:
        for statement in ("SELECT * FROM listed", "INSERT INTO listed VALUES (1, 'x')"):
            with pytest.raises(Exception, match="tables of a catalog .* are not there.*CREATE TEMPORARY VIEW"):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE listed")


def test_a_path_beside_a_name_of_the_catalog_is_what_is_written(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    save(spark.range(3), uri)
    names = {"error": "by_path_1", "ignore": "by_path_2"}
    try:
        for number, (mode, name) in enumerate(names.items(), start=2):
            spark.range(3).write.format("esker").option("path", uri).mode(mode).saveAsTable(name)
            assert esker.spark.read(spark, uri).count() == 3 * number
        # The name is there now.
        spark.range(3).write.format("esker").option("path", uri).mode("ignore").saveAsTable(name)
        with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            spark.range(3).write.format("esker").option("path", uri).mode("error").saveAsTable(name)
        assert esker.spark.read(spark, uri).count() == 9
        with pytest.raises(Exception, match="tables of a catalog .* are not there"):
            spark.table(name).collect()
    finally:
        for name in names.values():
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_read_takes_a_delta_table_too(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "delta")
    esker.spark.write(spark.range(10), uri, table_format="delta")
    assert sorted(row.id for row in esker.spark.read(spark, uri, filter="id > 6").collect()) == [7, 8, 9]
    with pytest.raises(InvalidArgumentError, match="option rows_per_partition is for Lance tables"):
        esker.spark.read(spark, uri, rows_per_partition=3)
    with pytest.raises(NotFoundError):
        esker.spark.read(spark, uri, version=7)


def test_what_is_for_delta_tables_is_imported_for_them_alone() -> None:
    # Each Python process of Spark imports it anew.
    of_delta = ("esker.delta.table", "esker.spark.delta_")
    code = f"import sys, esker.spark; print([name for name in sys.modules if name.startswith({of_delta})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
