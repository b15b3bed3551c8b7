"""Constraints and properties as callers give them: what means nothing is refused when it is given."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake

WRONG = [
    ("1", "expected a condition.*of type int64"),
    ("'text'", "expected a condition.*of type string"),
    ("a + 1", "expected a condition.*found 'a \\+ 1'"),
    ("null", "expected a condition"),
    ("year(d)", "expected a condition"),
    ("nope > 1", "expected a column, found nope: there are a, "),
    ('"nope" > 1', '"nope" > 1'),
    ("a >", "cannot parse"),
    ("a > 0 and", "cannot parse"),
    ("a = 'x'", "expected a literal"),
    ("(select 1) = a", "subquery"),
]


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(("sql", "words"), WRONG)
def test_a_constraint_that_is_no_condition_is_refused(tmp_path: Path, rows: int, sql: str, words: str) -> None:
    data = pa.table({"a": pa.array([1], pa.int64()), "d": pa.array([0], pa.date32()), "s": ["x"]}).slice(0, rows)
    write_deltalake(tmp_path / "t", data)
    with pytest.raises(exceptions.InvalidArgumentError, match=f"constraint 'c': .*{words}"):
        DeltaTable(tmp_path / "t").alter.add_constraint({"c": sql})
    with pytest.raises(exceptions.InvalidArgumentError, match=words.replace('"', "`")):
        write_deltalake(tmp_path / "new", data, configuration={"delta.constraints.c": sql.replace('"', "`")})
    assert DeltaTable(tmp_path / "t").version() == 0
    assert not DeltaTable.is_deltatable(tmp_path / "new")


def test_a_constraint_of_another_writer_that_is_no_condition_stops_a_write(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    log = tmp_path / "t" / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace('"configuration":{}', '"configuration":{"delta.constraints.c":"a + 1"}'))
    log.write_text(log.read_text().replace('"minWriterVersion":2', '"minWriterVersion":3'))
    with pytest.raises(exceptions.InvalidArgumentError, match="constraint 'c': expected a condition"):
        write_deltalake(tmp_path / "t", pa.table({"a": [1]}), mode="append")


PROPERTIES = [
    ({"delta.appendOnly": "maybe"}, "delta.appendOnly as true or false, found 'maybe'"),
    ({"delta.appendOnly": True}, "delta.appendOnly as a text, found True"),
    ({"delta.enableChangeDataFed": "true"}, "did you mean delta.enableChangeDataFeed"),
    ({"delta.appendonly": "true"}, "did you mean delta.appendOnly"),
    ({"delta.foo": "1"}, "found 'delta.foo'"),
    ({"delta.logRetentionDuration": "soon"}, "a duration such as 'interval 7 days', found 'soon'"),
    ({"delta.deletedFileRetentionDuration": "interval 1 month"}, "a duration"),
    ({"delta.setTransactionRetentionDuration": "interval -1 days"}, "a duration"),
    ({"delta.checkpointInterval": "abc"}, "a number from 1 on"),
    ({"delta.checkpointInterval": "0"}, "a number from 1 on"),
    ({"delta.dataSkippingNumIndexedCols": "-2"}, "a number from -1 on"),
    ({"delta.targetFileSize": "100mb"}, "a number of bytes"),
    ({"delta.checkpointPolicy": "v3"}, "classic or v2"),
    ({"delta.columnMapping.mode": "names"}, "none, name or id"),
    ({"delta.isolationLevel": "Snapshot"}, "Serializable"),
    ({"delta.minReaderVersion": "9"}, "from 1 to 3"),
]


@pytest.mark.parametrize(("properties", "words"), PROPERTIES, ids=str)
def test_a_property_that_means_nothing_is_refused(tmp_path: Path, properties: dict[str, str], words: str) -> None:
    rows = pa.table({"a": [1]})
    write_deltalake(tmp_path / "t", rows)
    for write in (
        lambda: write_deltalake(tmp_path / "new", rows, configuration=properties),
        lambda: DeltaTable.create(tmp_path / "new", rows.schema, configuration=properties),
        lambda: convert_to_deltalake(tmp_path / "new", configuration=properties),
        lambda: DeltaTable(tmp_path / "t").alter.set_table_properties(properties),
    ):
        with pytest.raises(exceptions.InvalidArgumentError, match=words):
            write()
    assert not DeltaTable.is_deltatable(tmp_path / "new")


def test_properties_that_mean_something_are_kept_as_they_are_given(tmp_path: Path) -> None:
    given = {
        "delta.appendOnly": "TRUE",
        "delta.logRetentionDuration": "interval 2 weeks",
        "delta.deletedFileRetentionDuration": "1 day",
        "delta.checkpointInterval": "5",
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.isolationLevel": "WriteSerializable",
        "delta.constraints.small": "a < 10",
        "mine": "anything",
    }
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}), configuration={**given, "left out": None})
    assert DeltaTable(tmp_path / "t").metadata().configuration == given
    made = DeltaTable.create(
        tmp_path / "u", Schema([Field("a", "long")]), configuration={"delta.foo": "1"}, raise_if_key_not_exists=False
    )
    assert made.metadata().configuration == {"delta.foo": "1"}


def test_messages_speak_of_filters_as_they_were_given(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1], "b c": ["x"]}))
    table = DeltaTable(tmp_path / "t")
    sql = '"b c" + 1 > 1 and "a" = 2'
    for act in (
        lambda: table.to_pyarrow_table(filters=sql),
        lambda: table.file_uris(file_pruning_predicate=sql),
        lambda: write_deltalake(tmp_path / "t", pa.table({"a": [1], "b c": ["x"]}), mode="overwrite", predicate=sql),
        lambda: table.alter.add_constraint({"c": sql}),
    ):
        with pytest.raises(exceptions.InvalidArgumentError) as caught:
            act()
        assert sql in str(caught.value)
