"""What a table asks of its writers: constraints, generated columns, append-only, features; and changes of metadata."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, write_deltalake
from esker.delta.definition.protocol import features_of, protocol_with
from esker.delta.schema import ArrayType, MapType, PrimitiveType, StructType
from tests.delta_logs import commit, metadata


def create(path: Path, fields: list[Field], protocol: dict[str, Any] | None = None, **configuration: str) -> DeltaTable:
    """A table that some other writer made."""
    schema = json.dumps(Schema(fields).json())
    action = {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 4}}
    (path / "_delta_log").mkdir(parents=True, exist_ok=True)
    commit(path, 0, [action, metadata(schemaString=schema, configuration=configuration)])
    return DeltaTable(path)


def append(path: Path, **columns: Any) -> None:
    write_deltalake(path, pa.table(columns), mode="append", schema_mode="merge")


def test_not_null_is_enforced_at_every_depth(tmp_path: Path) -> None:
    inner = StructType([Field("x", "long", False)])
    fields = [
        Field("id", "long", False),
        Field("s", inner),
        Field("l", ArrayType(PrimitiveType("long"), False)),
        Field("m", MapType(PrimitiveType("string"), inner, True)),
    ]
    create(tmp_path, fields)
    struct = pa.struct([("x", pa.int64())])

    def write(id: Any = 1, s: Any = None, l: Any = None, m: Any = None) -> None:  # noqa: E741
        arrays = [
            pa.array([id], pa.int64()),
            pa.array([s], struct),
            pa.array([l], pa.list_(pa.int64())),
            pa.array([m], pa.map_(pa.string(), struct)),
        ]
        write_deltalake(tmp_path, pa.table(arrays, names=["id", "s", "l", "m"]), mode="append")

    write()
    write(s={"x": 1}, l=[1], m=[("k", {"x": 1}), ("n", None)])
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"id": None}, "id"),
        ({"s": {"x": None}}, r"s\.x"),
        ({"l": [1, None]}, r"l\.element"),
        ({"m": [("k", {"x": None})]}, r"m\.value\.x"),
    ]
    for wrong, path in wrongs:
        with pytest.raises(exceptions.InvalidArgumentError, match=f"'{path}'.*NOT NULL"):
            write(**wrong)
    assert DeltaTable(tmp_path).count() == 2


def test_a_map_is_not_asked_for_the_values_of_rows_that_are_cut_off(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
    DeltaTable.create(tmp_path, pa.schema([("id", pa.int64()), ("m", kind)]))
    maps = [[("a", None)], [("b", 1)], None, [], [("c", 2), ("d", 3)], [("e", None)]]
    data = pa.table({"id": range(6), "m": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    # Without a null among them, and with one.
    for first, count in [(1, 1), (2, 2), (3, 0), (4, 1)]:
        write_deltalake(tmp_path, data.slice(first, count), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")["m"].to_pylist() == maps[1:5]
    for first, count in [(0, 2), (4, 2)]:
        with pytest.raises(exceptions.InvalidArgumentError, match="'m.value'.*NOT NULL"):
            write_deltalake(tmp_path, data.slice(first, count), mode="append")


@pytest.mark.parametrize("text", ['{"expression": {"expression": "id > 3"}}', "id > 3", "`id` > 3 AND id IS NOT NULL"])
def test_invariants_refuse_false_and_null(tmp_path: Path, text: str) -> None:
    create(tmp_path, [Field("id", "long", metadata={"delta.invariants": text})])
    append(tmp_path, id=[4, 5])
    for wrong in ([4, 3], [4, None]):
        with pytest.raises(exceptions.InvalidArgumentError, match="invariant of column 'id'"):
            append(tmp_path, id=pa.array(wrong, pa.int64()))
    assert DeltaTable(tmp_path).count() == 2


def test_an_invariant_of_a_nested_field(tmp_path: Path) -> None:
    inner = Field("x", "long", metadata={"delta.invariants": "s.x > 0"})
    create(tmp_path, [Field("s", StructType([inner]))])
    append(tmp_path, s=[{"x": 1}])
    for wrong in ({"x": 0}, {"x": None}, None):
        with pytest.raises(exceptions.InvalidArgumentError, match=r"invariant of column 's\.x'"):
            append(tmp_path, s=pa.array([wrong], pa.struct([("x", pa.int64())])))


def test_check_constraints(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "name": ["a"]}))
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"small": "id < 10 AND name IN ('a', 'b')"})
    assert table.protocol().min_writer_version == 3
    append(tmp_path, id=[2], name=["b"])
    for wrong in (
        {"id": [10], "name": ["a"]},
        {"id": [1], "name": ["c"]},
        {"id": [1], "name": pa.array([None], pa.string())},
    ):
        with pytest.raises(exceptions.InvalidArgumentError, match="constraint 'small'"):
            append(tmp_path, **wrong)
        with pytest.raises(Exception, match="small|failed validation"):
            deltalake.write_deltalake(tmp_path, pa.table(wrong), mode="append")
    with pytest.raises(exceptions.InvalidArgumentError, match="constraint 'big'"):
        table.alter.add_constraint({"big": "id > 1"})
    with pytest.raises(exceptions.InvalidArgumentError, match="drop it first"):
        table.alter.add_constraint({"Small": "id > 1"})
    table.update_incremental()
    table.alter.drop_constraint("small")
    append(tmp_path, id=[10], name=["z"])
    with pytest.raises(exceptions.NotFoundError):
        table.alter.drop_constraint("small")
    table.alter.drop_constraint("small", raise_if_not_exists=False)


FRACTIONS = ["f > 0.1", "f >= 0.1", "f = 0.1", "f <= 0.1", "f IN (0.5, 0.1)", "f BETWEEN 0.0 AND 0.1"]


@pytest.mark.parametrize("sql", FRACTIONS)
def test_a_fraction_is_no_float_in_a_constraint(tmp_path: Path, sql: str) -> None:
    schema = Schema([Field("f", "float"), Field("s", StructType([Field("f", "float")]))])
    for column in ("f", "s.f"):
        path = tmp_path / column
        DeltaTable.create(path, schema).alter.add_constraint({"c": sql.replace("f ", f"{column} ", 1)})
        taken: dict[Any, list[float]] = {write_deltalake: [], deltalake.write_deltalake: []}
        for write, found in taken.items():
            for value in (0.1, 0.09, 0.5):
                values = pa.array([value], pa.float32())
                rows = pa.table({"f": values, "s": pa.StructArray.from_arrays([values], names=["f"])})
                with suppress(exceptions.InvalidArgumentError, DeltaError):
                    write(path, rows, mode="append")
                    found.append(value)
        ours, theirs = taken.values()
        assert ours == theirs != [0.1, 0.09, 0.5]


def test_a_constraint_that_is_none_is_told_beside_those_that_are(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, Schema([Field("x", "long")]), configuration={"delta.appendOnly": "true"})
    with pytest.raises(exceptions.NotFoundError, match="no constraint 'nope'; the table has none$"):
        table.alter.drop_constraint("nope")
    table.alter.add_constraint({"small": "x < 9", "large": "x > 1"})
    with pytest.raises(exceptions.NotFoundError, match="no constraint 'nope'; the table has large, small$"):
        table.alter.drop_constraint("nope")


def test_constraints_hold_from_writer_version_3_on(tmp_path: Path) -> None:
    fields = [Field("id", "long")]
    create(tmp_path, fields, {"minReaderVersion": 1, "minWriterVersion": 2}, **{"delta.constraints.c": "id > 1"})
    append(tmp_path, id=[0])
    assert DeltaTable(tmp_path).count() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "id / 2 > 1",
        'name = "a"',
        "year(y) > 1",
        "regexp_like(name, 'a')",
        "date_trunc('day', y) > y",
        "name LIKE 'a\\\\%'",
    ],
)
def test_what_does_not_mean_the_same_as_in_spark_is_refused(tmp_path: Path, sql: str) -> None:
    fields = [Field("id", "long"), Field("name", "string"), Field("y", "timestamp")]
    create(tmp_path, fields, None, **{"delta.constraints.c": sql})
    with pytest.raises(exceptions.UnsupportedError, match="constraint 'c'"):
        append(tmp_path, id=[9], name=["a"])


ELSEWHERE = [
    "d * 1.5 > 1",
    "n * 0.1 > 1",
    "0.1 + 0.2 = 0.3",
    "n % 0.1 = 0",
    "f + n > 1",
    "(f - d) > 1",
    "wide * d > 1",
    "wide + n > 1",
    "x % y = 0",
    "coalesce(f, d) > 1",
    "coalesce(n, 1.5) > 1",
    "coalesce(s, 1) = 1",
    "CASE n WHEN 1 THEN n ELSE 0.5 END > 1",
    "n = 9007199254740993.0",
    "n < 100000000000000000000",
    "s || x = 'a'",
    "s || (t) = 'a'",
    "length(x) > 1",
    "length(b) > 1",
    "CAST(x AS DECIMAL(10, 2)) > 1",
    "cast(d as decimal) > 1",
    "CAST(n + 1 AS BINARY) = b",
    "CAST(1.005 AS DECIMAL(5, 2)) > 1",
    "day - day > 1",
    "day > n",
    "s SIMILAR TO 'a'",
    "st.y IS NULL AND NOT (d * 1.5 > 1)",
    "`d` BETWEEN 0 AND d * 1.5",
    "d IN (1, d * -1.5)",
    "year(s) > 1",
    "hour(day) > 1",
]
ALIKE = [
    "d * 2 > 1 AND d + d > d - n",
    "x * 0.1 > 1 OR f * 0.5 = x",
    "x % 2 = 0",
    "n * 2 + 1 > n % 3",
    "d > 0.1 AND n < 1.5 AND f > 0.1",
    "coalesce(d, 0.0) >= 0",
    "coalesce(n, 0) >= 0",
    "coalesce(x, 0.5) > 1",
    "CASE WHEN n > 1 THEN 1 ELSE 2.5 END > 1",
    "s || n || d || day <> 'f || t'",
    "length(s || 'x') > 1",
    "CAST(d AS DECIMAL(10, 1)) > CAST(0.1 AS DECIMAL(5, 1))",
    "d < 100000000000000000000",
    "day + 1 > DATE '2020-01-01' AND t > '2020-01-01'",
    "st.y IS NULL AND st.y + 1 > n",
]
KINDS: dict[str, Any] = {
    "n": "long",
    "d": "decimal(5,2)",
    "wide": "decimal(38,10)",
    "f": "float",
    "x": "double",
    "y": "double",
    "s": "string",
    "b": "binary",
    "t": "timestamp",
    "day": "date",
    "st": StructType([Field("y", "integer")]),
}


@pytest.mark.parametrize("sql", ELSEWHERE)
def test_operands_that_come_to_other_values_in_spark_are_refused(tmp_path: Path, sql: str) -> None:
    table = DeltaTable.create(tmp_path, Schema([Field(name, kind) for name, kind in KINDS.items()]))
    with pytest.raises(exceptions.UnsupportedError, match="as Spark does"):
        table.alter.add_constraint({"c": sql})
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("sql", ALIKE)
def test_operands_that_come_to_the_same_values_are_taken(tmp_path: Path, sql: str) -> None:
    table = DeltaTable.create(tmp_path, Schema([Field(name, kind) for name, kind in KINDS.items()]))
    table.alter.add_constraint({"c": sql})


GENERATED = [
    ("id * 2", "long", [2, 4, None]),
    ("CAST(t AS DATE)", "date", [date(2024, 5, 6), date(1969, 12, 31), None]),
    ("year(t)", "integer", [2024, 1969, None]),
    ("upper(name)", "string", ["A", "B", None]),
    ("CASE WHEN id > 1 THEN 'big' ELSE 'small' END", "string", ["small", "big", "small"]),
]


@pytest.mark.parametrize(("sql", "kind", "want"), GENERATED)
def test_generated_columns_are_computed_or_checked(tmp_path: Path, sql: str, kind: str, want: list[Any]) -> None:
    fields = [Field("id", "long"), Field("name", "string"), Field("t", "timestamp")]
    create(tmp_path, [*fields, Field("g", kind, metadata={"delta.generationExpression": sql})])
    data = pa.table(
        {
            "id": pa.array([1, 2, None], pa.int64()),
            "name": ["a", "b", None],
            "t": pa.array([datetime(2024, 5, 6, 7, tzinfo=UTC), datetime(1969, 12, 31, 23, tzinfo=UTC), None]),
        }
    )
    write_deltalake(tmp_path, data, mode="append")
    table = DeltaTable(tmp_path).to_pyarrow_table()
    assert table["g"].to_pylist() == want
    write_deltalake(tmp_path, table, mode="append")
    wrong = table.set_column(3, "g", pa.chunked_array([table["g"].combine_chunks().take([1, 0, 0])]))
    with pytest.raises(exceptions.InvalidArgumentError, match="generated column 'g'"):
        write_deltalake(tmp_path, wrong, mode="append")
    assert DeltaTable(tmp_path).count() == 6


CASTS = ["t AS STRING", "n AS string", "t AS BIGINT", "d AS INT", "id AS TIMESTAMP", "f AS STRING", "abs(f) AS STRING"]


@pytest.mark.parametrize("sql", [*(f"CAST({cast})" for cast in CASTS), "coalesce( cast (t\nas string), 'CAST(')"])
def test_casts_that_come_to_other_values_in_spark_are_refused(tmp_path: Path, sql: str) -> None:
    columns = {"id": "long", "t": "timestamp", "n": "timestamp_ntz", "d": "date", "f": "double"}
    fields = [Field(name, kind) for name, kind in columns.items()]
    generated = Field("g", "string", metadata={"delta.generationExpression": sql})
    with pytest.raises(exceptions.UnsupportedError, match="as Spark does"):
        DeltaTable.create(tmp_path / "a", Schema([*fields, generated]))
    assert not (tmp_path / "a").exists()
    table = DeltaTable.create(tmp_path / "b", Schema(fields))
    with pytest.raises(exceptions.UnsupportedError, match="as Spark does"):
        table.alter.add_constraint({"c": f"{sql} IS NOT NULL"})
    table.alter.add_constraint(
        {"c": "CAST(CAST(t AS DATE) AS STRING) <> 'cast(t as string)' AND CAST(f AS BIGINT) = 1"}
    )


def test_append_only(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    append(tmp_path, id=[2])
    for arguments in ({}, {"predicate": "id = 3"}):
        with pytest.raises(exceptions.InvalidArgumentError, match="append-only"):
            write_deltalake(tmp_path, pa.table({"id": [3]}), mode="overwrite", **arguments)  # type: ignore[arg-type]
    with pytest.raises(exceptions.InvalidArgumentError, match="append-only"):
        DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]), mode="overwrite")
    assert DeltaTable(tmp_path).count() == 2


@pytest.mark.parametrize(
    "feature",
    ["rowTracking", "clustering", "catalogManaged", "somethingNew"],
)
def test_features_that_are_not_written_are_refused_by_name(tmp_path: Path, feature: str) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", feature]}
    table = create(tmp_path, [Field("id", "long")], protocol)
    with pytest.raises(exceptions.UnsupportedError, match=feature):
        append(tmp_path, id=[1])
    with pytest.raises(exceptions.UnsupportedError, match=feature):
        table.alter.set_table_name("x")
    with pytest.raises(exceptions.UnsupportedError, match=feature):
        table.create_checkpoint()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_identity_columns_and_newer_writers_are_refused(tmp_path: Path) -> None:
    identity = Field("id", "long", metadata={"delta.identity.start": 1, "delta.identity.step": 1})
    create(tmp_path / "a", [identity], {"minReaderVersion": 1, "minWriterVersion": 6})
    with pytest.raises(exceptions.UnsupportedError, match="identity"):
        append(tmp_path / "a", id=[1])
    create(tmp_path / "b", [Field("id", "long")], {"minReaderVersion": 1, "minWriterVersion": 6})
    append(tmp_path / "b", id=[1])
    create(tmp_path / "c", [Field("id", "long")], {"minReaderVersion": 1, "minWriterVersion": 8})
    with pytest.raises(exceptions.UnsupportedError, match="upgrade"):
        append(tmp_path / "c", id=[1])
    with pytest.raises(exceptions.UnsupportedError, match="rowTracking"):
        write_deltalake(tmp_path / "d", pa.table({"id": [1]}), configuration={"delta.enableRowTracking": "true"})
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("before", "needed", "want"),
    [
        (None, set(), (1, 2, None, None)),
        (None, {"changeDataFeed"}, (1, 4, None, None)),
        (None, {"columnMapping"}, (2, 5, None, None)),
        (None, {"inCommitTimestamp"}, (1, 7, None, ["appendOnly", "inCommitTimestamp", "invariants"])),
        ((1, 2), {"deletionVectors"}, (3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])),
        ((1, 3), {"changeDataFeed"}, (1, 4, None, None)),
        ((1, 4), set(), (1, 4, None, None)),
    ],
)
def test_the_protocol_goes_up_no_further_than_needed(before: Any, needed: set[str], want: Any) -> None:
    old = {"minReaderVersion": before[0], "minWriterVersion": before[1]} if before else None
    made = protocol_with(old, needed)
    found = (made["minReaderVersion"], made["minWriterVersion"], made.get("readerFeatures"), made.get("writerFeatures"))
    assert found == want
    assert needed <= features_of(made)


def test_changes_of_metadata(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.set_table_name("n")
    table.alter.set_table_description("d")
    table.alter.add_columns([Field("s", "string", metadata={"comment": "new"})])
    table.alter.set_column_metadata("id", {"comment": "key"})
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true", "mine": "x"})
    assert table.version() == 5
    theirs = deltalake.DeltaTable(tmp_path)
    assert (theirs.metadata().name, theirs.metadata().description) == ("n", "d")
    assert theirs.metadata().configuration == {"delta.enableChangeDataFeed": "true", "mine": "x"}
    assert [field.metadata for field in theirs.schema().fields] == [{"comment": "key"}, {"comment": "new"}]
    assert theirs.protocol().min_writer_version == 4
    assert theirs.to_pyarrow_table().to_pylist() == [{"id": 1, "s": None}]
    with pytest.raises(exceptions.InvalidArgumentError, match="'ID'"):
        table.alter.add_columns(Field("ID", "long"))
    with pytest.raises(exceptions.InvalidArgumentError, match="not null"):
        table.alter.add_columns(Field("x", "long", False))
    with pytest.raises(exceptions.InvalidArgumentError, match="spelling"):
        table.alter.set_table_properties({"delta.apendOnly": "true"})
    with pytest.raises(exceptions.UnsupportedError, match="rowTracking"):
        table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    with pytest.raises(exceptions.UnsupportedError, match="columnMapping"):
        table.alter.set_table_properties({"delta.columnMapping.mode": "id"})
    for properties in ({"delta.appendOnly": "wrong"}, {"delta.minWriterVersion": "8"}):
        with pytest.raises(exceptions.InvalidArgumentError, match="expected delta"):
            table.alter.set_table_properties(properties)
    with pytest.raises(exceptions.InvalidArgumentError, match="255"):
        table.alter.set_table_name("x" * 256)
    with pytest.raises(exceptions.InvalidArgumentError, match="4000"):
        table.alter.set_table_description("x" * 4001)
    with pytest.raises(exceptions.InvalidArgumentError, match="no nulls"):
        table.alter.drop_column_not_null("s")
    with pytest.raises(exceptions.UnsupportedError, match=r"delta\.invariants"):
        table.alter.set_column_metadata("id", {"delta.invariants": "id > 0"})


def test_features_are_added_when_asked(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    with pytest.raises(exceptions.InvalidArgumentError, match="allow_protocol_versions_increase"):
        table.alter.add_feature("deletionVectors")
    table.alter.add_feature(["deletionVectors"], allow_protocol_versions_increase=True)
    assert table.protocol().reader_features == ["deletionVectors"]
    with pytest.raises(exceptions.UnsupportedError, match="rowTracking"):
        table.alter.add_feature("rowTracking")
    append(tmp_path, id=[2])
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    assert pa.table(query.execute("select id from t")).num_rows == 2


def test_a_column_may_become_nullable(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, pa.schema([pa.field("id", pa.int64(), False)]))
    with pytest.raises(exceptions.InvalidArgumentError, match="NOT NULL"):
        append(tmp_path, id=pa.array([None], pa.int64()))
    DeltaTable(tmp_path).alter.drop_column_not_null("id")
    append(tmp_path, id=pa.array([None], pa.int64()))
    assert DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist() == [None]


def test_no_commit_goes_through_what_other_writers_do_not_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.table({"id": [1]})
    for uri, options in [
        ("s3+ddb://bucket/t?ddbTableName=x", {}),
        (str(tmp_path), {"manifest_store": "sqlite:///x"}),
        ("s3://bucket/t", {"AWS_S3_LOCKING_PROVIDER": "dynamodb"}),
        ("s3://bucket/t", {"DELTA_DYNAMO_TABLE_NAME": "x"}),
    ]:
        with pytest.raises(exceptions.UnsupportedError, match="lose|lost"):
            write_deltalake(uri, data, storage_options=options)
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    with pytest.raises(exceptions.UnsupportedError, match="DynamoDB"):
        write_deltalake("s3://bucket/t", data)
    assert list(tmp_path.iterdir()) == []


def test_properties_of_the_callers_own_are_kept(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    with pytest.raises(deltalake.exceptions.DeltaError, match="Error parsing property 'mine':'1'"):
        deltalake.DeltaTable(tmp_path).alter.set_table_properties({"mine": "1"})
    DeltaTable(tmp_path).alter.set_table_properties({"mine": "1"})
    deltalake.DeltaTable(tmp_path).alter.set_table_properties({"theirs": "2"}, raise_if_not_exists=False)
    assert DeltaTable(tmp_path).metadata().configuration == {"mine": "1", "theirs": "2"}
    with pytest.raises(exceptions.InvalidArgumentError, match="delta.mine"):
        DeltaTable(tmp_path).alter.set_table_properties({"delta.mine": "1"})
