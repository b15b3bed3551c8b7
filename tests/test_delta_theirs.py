"""Tables that deltalake creates with features of its own choice: they are read, appended to and overwritten."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

_ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "10"]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    properties: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
    deltalake.DeltaTable.create(tmp_path, _ROWS.schema, configuration=properties)
    return tmp_path


def test_a_table_with_vectors_lists_variants_and_is_no_other_for_it(table: Path) -> None:
    assert "variantType" in (DeltaTable(table).protocol().reader_features or [])
    write_deltalake(table, _ROWS, mode="append")
    deltalake.write_deltalake(table, _ROWS, mode="append")
    assert DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == [1, 2, 3] * 2
    write_deltalake(table, _ROWS, mode="overwrite")
    write_deltalake(table, _ROWS.slice(0, 1), mode="overwrite", predicate="id = 1")
    DeltaTable(table).create_checkpoint()
    deltalake.DeltaTable(table).delete("id = 2")
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == [1, 3]
    assert "variantType" in (DeltaTable(table).protocol().writer_features or [])


@pytest.mark.parametrize(
    "sql",
    [
        "s > 5",
        "s = 10",
        "10 = s",
        "s <> 10",
        "s in (1, 10)",
        "s between 1 and 5",
        "s > 5.5",
        "s = -1",
        "id = '1'",
        "id in ('1', '3')",
        "cast(id as string) = 1",
        "lower(s) = 10",
        "trunc(id) = 2",
        "TRUNC(id, 0) = 3",
    ],
)
def test_numbers_beside_text_mean_what_they_mean_in_deltalakes_delete(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, _ROWS)
    kept = DeltaTable(tmp_path).to_pyarrow_table(filters=sql)["id"].to_pylist()
    assert DeltaTable(tmp_path).scan(["id"], sql).read_all()["id"].to_pylist() == kept
    deltalake.DeltaTable(tmp_path).delete(sql)
    assert set(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == {1, 2, 3} - set(kept)


def test_they_mean_the_same_in_an_overwrite(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _ROWS)
    write_deltalake(tmp_path, _ROWS.slice(2), mode="overwrite", predicate="s = 10")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
