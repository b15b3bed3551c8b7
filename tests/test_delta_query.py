"""`QueryBuilder`: SQL over versions of tables, beside deltalake's."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker import exceptions
from esker.delta import DeltaTable, Field, PrimitiveType, QueryBuilder, Schema, VariantType, write_deltalake

DATA = pa.table(
    {
        "id": pa.array([3, 1, 2, None], pa.int32()),
        "p": ["x", "x", "y", "y"],
        "name": ["c", "a", None, "d"],
        "raw": [b"3", b"1", b"2", None],
        "tags": [["t"], [], None, ["u", "v"]],
        "at": pa.array([1, 2, 3, None], pa.timestamp("us", "UTC")),
        "inner": [{"s": "z"}, {"s": None}, None, {"s": "w"}],
        "map": pa.array([[("k", "v")], [], None, [("l", None)]], pa.map_(pa.string(), pa.string())),
        "cost": pa.array([None, 1, 2, 3], pa.decimal128(10, 2)),
        "x": [1.5, float("nan"), None, -0.0],
    }
)
SAME = [
    'select id, p, name, raw, tags, "at", "inner", cost from t order by id',
    "select name, id from t where id > 1 order by id",
    "select count(*) as n, sum(id) as s, max(name) as m from t",
    "select p, count(*) as n from t group by p order by p",
    "select a.id, b.name from t as a join t as b on a.id = b.id order by a.id",
    "select id from t where \"at\" > '1970-01-01 00:00:00.000001' order by id",
    "select id from t where \"at\" = '1970-01-01T00:00:00.000002Z'",
    "select id from t where p = 'y' and id is null",
    "with u as (select id as j from t) select j from u where j is not null order by j",
    "select id, name from t order by id desc, name desc",
    "select name, cast(row_number() over (order by name desc) as bigint) as n from t order by name",
    "select cast(id as bigint) / 2 as half, -cast(id as bigint) / 2 as negative from t order by id",
    "select sum(id) / count(id) as mean, sum(id) / 2.0 as half, avg(id) as y from t",
    "select x / cast(id as bigint) as part, -1.5 / id as less from t where id <> 1 order by id desc",
]
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["p"]},
    "vectors": {"configuration": {"delta.enableDeletionVectors": "true"}},
}


def both(path: Path) -> tuple[QueryBuilder, deltalake.QueryBuilder]:
    return (
        QueryBuilder().register("t", DeltaTable(path)),
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_queries_return_what_deltalakes_return(tmp_path: Path, layout: str) -> None:
    write_deltalake(tmp_path, DATA, **LAYOUTS[layout])
    write_deltalake(tmp_path, DATA.slice(1, 2), mode="append")
    DeltaTable(tmp_path).delete("name = 'd'")
    ours, theirs = both(tmp_path)
    for sql in SAME:
        found, expected = ours.execute(sql).read_all(), pa.table(theirs.execute(sql))
        assert found.to_pylist() == expected.to_pylist(), sql
        assert found.schema.types == expected.schema.types, sql


def test_types_of_a_result_are_those_of_deltalake(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    ours, theirs = both(tmp_path)
    found, expected = (builder.execute("select * from t").read_all().schema for builder in (ours, theirs))
    assert found.equals(pa.schema(expected))


def test_columns_of_the_table_keep_what_it_says_of_them(tmp_path: Path) -> None:
    schema = Schema(
        [
            Field("id", PrimitiveType("long"), nullable=False),
            Field("two", "long", metadata={"delta.generationExpression": "id * 2"}),
        ]
    )
    DeltaTable.create(tmp_path, schema)
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), mode="append")
    builder = QueryBuilder().register("t", DeltaTable(tmp_path))
    kept = builder.execute("select two, id from t as u where id > 0 order by id limit 5").read_all().schema
    assert not kept.field("id").nullable
    assert kept.field("two").metadata == {b"delta.generationExpression": b"id * 2"}
    for sql in (
        "select id + 0 as id from t",
        "select b.id from t a left join t b on a.id = b.id + 1",
        "select id from t group by cube (id)",
        "select id from (select null as id) t",
        "with t as (select null as id) select id from t",
        "select id from t union all select null",
    ):
        result = builder.execute(sql).read_all()
        assert result.schema.field("id").nullable, sql
        result.validate(full=True)


def test_the_version_that_is_registered_stays(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    builder = QueryBuilder().register("t", table)
    write_deltalake(table, pa.table({"id": [2]}), mode="append")
    assert table.version() == 1
    assert builder.execute("select count(*) as n from t").read_all().to_pylist() == [{"n": 1}]
    builder.register("new", table)
    assert builder.execute("select (select count(*) from new) as n from t").read_all().to_pylist() == [{"n": 2}]


def test_results_are_read_side_by_side_and_by_halves(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": list(range(5000))}))
    builder = QueryBuilder({"datafusion.execution.batch_size": "1000"}).register("t", DeltaTable(tmp_path))
    first, second = (builder.execute(f"select id from t where id % 2 = {odd}") for odd in (0, 1))
    batches = [batch.num_rows for batch in (first.read_next_batch(), second.read_next_batch())]
    assert all(0 < rows <= 2048 for rows in batches)
    rest = first.read_all().num_rows + second.read_all().num_rows
    assert sum(batches) + rest == 5000
    builder.execute("select * from t").read_next_batch()


def test_filters_and_columns_reach_the_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, partition_by="p")
    for path in tmp_path.glob("p=x/*.parquet"):
        path.write_bytes(b"no Parquet")
    builder = QueryBuilder().register("t", DeltaTable(tmp_path))
    assert builder.execute("select id from t where p = 'y' and id is not null").read_all()["id"].to_pylist() == [2]
    with pytest.raises(exceptions.EskerError, match="parquet"):
        builder.execute("select id from t").read_all()


def test_columns_of_type_variant_are_refused_by_name_when_they_are_asked_for(tmp_path: Path) -> None:
    deltalake.DeltaTable.create(
        tmp_path,
        deltalake.Schema(
            [
                deltalake.Field("id", "long"),
                deltalake.Field("v", deltalake.schema.VariantType()),
            ]
        ),
    )
    table = DeltaTable(tmp_path)
    assert table.schema().fields[1].type == VariantType()
    builder = QueryBuilder().register("t", table)
    assert builder.execute("select id from t").read_all().num_rows == 0
    with pytest.raises(exceptions.UnsupportedError, match="column 'v' is of type variant"):
        builder.execute("select * from t").read_all()


@pytest.mark.parametrize(
    "sql",
    [
        "selec",
        "select * from nowhere",
        "select nothing from t",
        "",
        "select 1; select 2",
        "insert into t select * from t",
    ],
)
def test_what_cannot_be_run_is_an_error_of_ours(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    ours, theirs = both(tmp_path)
    with pytest.raises(deltalake.exceptions.DeltaError):
        theirs.execute(sql).read_all()
    with pytest.raises(exceptions.InvalidArgumentError):
        ours.execute(sql)


def test_an_error_within_the_stream_is_one_of_ours_too(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"s": ["1", "x"]}))
    with pytest.raises(exceptions.InvalidArgumentError, match="'x'"):
        QueryBuilder().register("t", DeltaTable(tmp_path)).execute("select cast(s as int) from t").read_all()


def test_a_variable_of_the_caller_is_no_table(tmp_path: Path) -> None:
    secret = pa.table({"id": [1]})
    assert secret.num_rows == 1
    with pytest.raises(exceptions.InvalidArgumentError, match="secret does not exist"):
        QueryBuilder().execute("select * from secret")


def test_names_are_registered_once_and_for_tables_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    builder = QueryBuilder().register("t", table)
    with pytest.raises(exceptions.AlreadyExistsError, match="the table T already exists"):
        builder.register("T", table)
    with pytest.raises(TypeError, match="expected a DeltaTable, found str"):
        builder.register("u", str(tmp_path))  # type: ignore[arg-type]


def test_what_is_created_is_there_for_later_statements() -> None:
    builder = QueryBuilder()
    assert builder.execute("create table made as select 7 as n").read_all().num_columns == 0
    assert builder.execute("select n from made").read_all().to_pylist() == [{"n": 7}]


def test_times_are_of_utc_wherever_the_program_runs() -> None:
    code = (
        "from esker.delta import QueryBuilder\n"
        "print(QueryBuilder().execute(\"select cast('2024-07-01' as timestamptz) as t\").read_all()['t'][0].as_py())"
    )
    environment = {**os.environ, "TZ": "America/New_York"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    assert told.stdout.strip() == str(datetime.datetime(2024, 7, 1, tzinfo=datetime.UTC))


def test_settings_of_datafusion_are_refused_by_name() -> None:
    with pytest.raises(exceptions.UnsupportedError, match=r"datafusion\.execution\.target_partitions"):
        QueryBuilder({"datafusion.execution.target_partitions": "1"})
    with pytest.raises(exceptions.InvalidArgumentError, match="could not find config namespace"):
        QueryBuilder({"memory": "1"})
    for rows in ("0", "-1", "many"):
        with pytest.raises(exceptions.InvalidArgumentError, match="batch_size"):
            QueryBuilder({"datafusion.execution.batch_size": rows})


def test_without_duckdb_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(exceptions.UnsupportedError, match=r"pip install 'esker\[duckdb\]'"):
        QueryBuilder()
