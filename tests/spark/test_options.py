"""Options: where each one counts, what is said of one that does not, and paths that are none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import esker
from esker.delta import DeltaTable
from esker.exceptions import EskerError, InvalidArgumentError, UnsupportedError
from esker.spark import EskerSource
from esker.spark.options import table_address
from tests.spark.jobs import planned, read, wrote

FRAME = T.StructType().add("id", T.LongType()).add("p", T.StringType())
FLOATS = T.ArrayType(T.FloatType())
ROWS = [{"id": n, "p": "ab"[n % 2]} for n in range(10)]
READ = {
    "columns": "id",
    "filter": "id = 1",
    "version": "1",
    "versionAsOf": "1",
    "nanoseconds": "truncate",
    "rowsPerPartition": "5",
    "bytesPerPartition": "5",
    "timestampAsOf": "2999-01-01",
    "partitionTimezone": "UTC",
    "readChangeFeed": "true",
    "startingVersion": "0",
}
WRITE = {
    "maxRowsPerFile": "3",
    "maxBytesPerFile": "100000",
    "dataStorageVersion": "2.1",
    "vectors": "v=3",
    "overwriteSchema": "true",
    "tableFormat": "delta",
    "replaceWhere": "id = 1",
    "mergeSchema": "true",
    "txnAppId": "a",
    "txnVersion": "1",
    "userMetadata": "x",
    "partitionOverwriteMode": "dynamic",
    "partitionColumns": "p",
}
LANCE_ONLY = ("nanoseconds", "rowsPerPartition", "dataStorageVersion", "vectors")
DELTA_ONLY = (
    *("timestampAsOf", "partitionTimezone", "replaceWhere", "mergeSchema", "userMetadata"),
    *("partitionOverwriteMode", "partitionColumns"),
)


@pytest.fixture(params=["lance", "delta"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat=request.param)
    return uri, request.param


@pytest.mark.parametrize("name", READ)
def test_an_option_of_reads_is_refused_on_a_write(name: str, table: tuple[str, str]) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"option {name.removesuffix('AsOf') if 'version' in name else name} is for reads"
    ):
        wrote(table[0], FRAME, ROWS, **{name.lower(): READ[name]})
    assert len(read(table[0])) == 10


@pytest.mark.parametrize("name", WRITE)
def test_an_option_of_writes_is_refused_on_a_read(name: str, table: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"option {name} is for writes, found it on a read: "):
        read(table[0], **{name.lower(): WRITE[name]})


@pytest.mark.parametrize("name", [*LANCE_ONLY, *DELTA_ONLY, "delta.appendOnly"])
def test_an_option_of_one_format_is_refused_by_the_other(name: str, tmp_path: Path) -> None:
    table_format = "delta" if name in LANCE_ONLY else "lance"
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat=table_format)
    kind = "Lance" if name in LANCE_ONLY else "Delta"
    spelled = name.lower() if "." in name else name
    given = {name.lower(): {**READ, **WRITE}.get(name, "true")}
    refused = partial(read, uri, **given) if name in READ else partial(wrote, uri, FRAME, ROWS, overwrite=True, **given)
    with pytest.raises(InvalidArgumentError, match=f"option {spelled} is for {kind} tables"):
        refused()


def test_a_change_feed_of_a_lance_table_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS)
    with pytest.raises(InvalidArgumentError, match="option readChangeFeed is for Delta tables"):
        read(uri, readChangeFeed="true", startingVersion="1")


def test_what_an_append_would_not_do_is_refused(table: tuple[str, str]) -> None:
    for options in ({"overwriteSchema": "true"}, {"replaceWhere": "id = 1"}):
        with pytest.raises(InvalidArgumentError, match=r'expected mode\("overwrite"\)'):
            wrote(table[0], FRAME, ROWS, **options)
    wrote(table[0], FRAME, ROWS, overwriteSchema="false")


def test_vectors_of_an_append_are_those_of_the_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = T.StructType().add("id", T.LongType()).add("v", FLOATS).add("w", FLOATS)
    rows = [{"id": 1, "v": [1.0, 2.0], "w": [3.0]}]
    wrote(uri, frame, rows, vectors="v=2")
    wrote(uri, frame, rows, vectors="V=2")
    for given, message in (
        ("nope=2", r"columns of the table \(id, v, w\), found nope"),
        ("v=3", "'v' to be fixed_size_list<.*, found v=3; leave it out"),
        ("v=2,w=1", "'w' to be list<.* as in the table, found w=1; leave it out"),
        ("id=2", "'id' to be int64 as in the table, found id=2; leave it out"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"option vectors: expected {message}"):
            wrote(uri, frame, rows, vectors=given)
    assert len(read(uri)) == 2


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat="delta", partitionColumns="p")
    for options, message in (
        (
            {"partitionOverwriteMode": "dynamic", "overwriteSchema": "true"},
            "overwriteSchema=true or partitionOverwriteMode",
        ),
        ({"replaceWhere": "p = 'a'", "overwriteSchema": "true"}, "overwriteSchema=true or replaceWhere"),
        ({"partitionColumns": "id"}, "option partitionColumns: expected those of the table, p, found id"),
        ({"replaceWhere": "p = 'a'"}, "option replaceWhere: .*predicate"),
        ({"replaceWhere": ""}, "option replaceWhere: expected the text .*, found none; leave it out to replace all"),
        ({"replaceWhere": " \n"}, "option replaceWhere: expected the text .*, found none; leave it out to replace all"),
        ({"tableFormat": "lance"}, "tableFormat=lance, found a Delta table"),
    ):
        with pytest.raises(EskerError, match=message):
            wrote(uri, FRAME, ROWS, overwrite=True, **options)
    assert len(read(uri)) == 10


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("fliter", "filter"),
        ("column", "columns"),
        ("rows_per_partitions", "rowsPerPartition"),
        ("version_as_off", "version"),
        ("timestamp", "timestampAsOf"),
        ("storageoption", "storageOptions"),
        ("maxRowPerFile", "maxRowsPerFile"),
        ("schema_mode", "mergeSchema=true or overwriteSchema=true"),
        ("partition_by", "partitionColumns"),
    ],
)
def test_an_unknown_option_offers_the_nearest(given: str, meant: str, table: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"unknown option '{given}', did you mean {meant}\\?"):
        read(table[0], **{given: "1"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataStorageVersion": "9.9"}, "unknown dataStorageVersion: expected one of"),
        ({"maxRowsPerFile": "0"}, "option maxRowsPerFile: expected a whole number from 1"),
        ({"maxrecordsperfile": "x"}, "option maxRowsPerFile: expected a whole number from 1"),
        ({"max_rows_per_file": "0"}, "option max_rows_per_file: expected"),
        ({"storageoptions": "["}, "option storageOptions: expected a JSON object"),
        ({"vectors": "p=3"}, "option vectors: expected an array column"),
        ({"tableFormat": "iceberg"}, "option tableFormat: expected one of lance, delta"),
        ({"tableFormat": "delta", "txnAppId": "x"}, "options txnAppId and txnVersion together"),
        ({"tableFormat": "delta", "partitionColumns": "zz"}, "'zz'"),
        # With a number of more than 64 bits in its log a Delta table could be read by nobody.
        ({"tableFormat": "delta", "txnAppId": "x", "txnVersion": str(2**63)}, "option txnVersion: .* up to 9223372036"),
        ({"tableFormat": "delta", "txnAppId": "x", "txnVersion": str(-(2**63) - 1)}, "option txnVersion: .* from -922"),
        ({"maxBytesPerFile": str(10**30)}, "option maxBytesPerFile: expected a whole number up to 9223372036854775807"),
    ],
)
def test_a_wrong_value_is_told_of_by_the_name_of_the_option(
    options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(EskerError, match=message):
        planned(str(tmp_path / "t"), FRAME, **options)


def test_an_unknown_option_that_is_near_to_none_lists_those_of_its_side(table: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected one of bytesPerPartition, columns, ") as raised:
        read(table[0], xyzzy="1")
    assert "replaceWhere" not in str(raised.value)


@pytest.mark.parametrize("mode", ["lance", "delta"])
def test_files_have_as_many_rows_as_told(mode: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat=mode, maxRecordsPerFile=3)
    if mode == "lance":
        assert [f.count_rows() for f in esker.dataset(uri).get_fragments()] == [3, 3, 3, 1]
        return
    assert sorted(DeltaTable(uri).get_add_actions(flatten=True)["num_records"].to_pylist()) == [1, 3, 3, 3]
    wrote(uri, FRAME, ROWS, overwrite=True, overwriteSchema=True, partitionColumns="p", maxRowsPerFile=3)
    assert sorted(DeltaTable(uri).get_add_actions(flatten=True)["num_records"].to_pylist()) == [2, 2, 3, 3]
    assert sorted(row["id"] for row in read(uri)) == list(range(10))


def test_a_tables_own_size_of_files_holds_unless_an_option_says_otherwise(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat="delta", **{"delta.targetFileSize": "1000"})
    assert planned(uri, FRAME)._plan.request.target_file_size is None
    assert planned(uri, FRAME, maxBytesPerFile=10**9)._plan.request.target_file_size == 10**9


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("dbfs:/tmp/x", "say /dbfs/tmp/x"),
        ("s3:/bucket/x", "s3://bucket/x"),
        ("s3a:/bucket/x", "s3a://bucket/x"),
        ("hdfs:/x", "hdfs://x"),
        ("gs:bucket/x", "gs://bucket/x"),
        ("anything:/x", "anything://x"),
        ("file:x", "file:///"),
    ],
)
def test_a_path_that_looks_like_a_uri_is_no_folder(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for act in (lambda: planned(path, FRAME), lambda: EskerSource({"path": path}).schema()):
        with pytest.raises(InvalidArgumentError, match=message):
            act()
    assert list(tmp_path.iterdir()) == []


def test_a_scheme_that_nobody_answers_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="hdfs://"):
        planned("hdfs://name/x", FRAME)


def test_files_of_this_machine_may_be_spelled_as_in_hadoop(tmp_path: Path) -> None:
    wrote(f"file:{tmp_path}/t", FRAME, ROWS)
    assert len(read(f"file://{tmp_path}/t")) == 10
    assert table_address({"path": "C:/x"}).uri.endswith("C:/x")
    assert table_address({"path": f"{tmp_path}/a:b/t"}).uri == f"{tmp_path}/a:b/t"


@pytest.mark.parametrize("options", [{"owner": "me", "path": "t"}, {"provider": "esker"}, {}])
def test_tables_of_a_catalog_are_refused_in_a_line_that_says_what_to_do(options: dict[str, str]) -> None:
    for act in (EskerSource(options).schema, lambda: EskerSource(options).writer(FRAME, False)):
        with pytest.raises(InvalidArgumentError, match="CREATE TEMPORARY VIEW") as raised:
            act()
        assert len(str(raised.value).splitlines()) == 1


def test_a_map_is_refused_before_any_task_by_the_option_that_allows_it(tmp_path: Path) -> None:
    uri, frame = str(tmp_path / "t"), T.StructType().add("m", T.MapType(T.StringType(), T.LongType()))
    with pytest.raises(UnsupportedError, match="'m' has a map.*dataStorageVersion to 2.2"):
        planned(uri, frame, dataStorageVersion="2.1")
    wrote(uri, frame, [{"m": [("a", 1)]}])
    assert read(uri) == [{"m": [("a", 1)]}]


@pytest.mark.parametrize("name", ["a.b", "a`b", "", "_rowid", "_rowaddr", "_rowoffset"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_name_that_a_table_cannot_have_is_refused_before_any_task_runs(tmp_path: Path, name: str, mode: str) -> None:
    uri = tmp_path / "t.lance"
    if mode == "overwrite":
        esker.write_dataset(pa.table({"id": [1]}), uri)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidArgumentError, match="expected a column name that can be read back"):
        EskerSource({"path": str(uri)}).writer(T.StructType().add(name, T.LongType()), mode == "overwrite")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_type_that_no_file_can_hold_is_refused_before_any_task_runs(tmp_path: Path) -> None:
    schema = T.StructType().add("items", T.ArrayType(T.StructType()))
    with pytest.raises(UnsupportedError, match=r"'items.item' .* structs without fields in a list"):
        EskerSource({"path": str(tmp_path / "t.lance")}).writer(schema, False)
    assert not list(tmp_path.iterdir())
