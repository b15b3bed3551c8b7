"""Predicates that are the same for every row, such as `true`, or another one each time; beside deltalake's."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError

DATA = pa.table({"id": [1, 2, 3], "p": ["a", "b", None]})


def ids(path: Path) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["whole", "partitions"])
@pytest.mark.parametrize("predicate", ["true", "1 = 1", "not false", "id = id", "p = 'a' or true"])
@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_predicate_that_is_always_true_replaces_all(
    predicate: str, partition_by: list[str] | None, feed: str, tmp_path: Path
) -> None:
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        properties: dict[str, str | None] = {"delta.enableChangeDataFeed": feed}
        write_deltalake(path, DATA, partition_by=partition_by, configuration=properties)
    write_deltalake(tmp_path / "ours", DATA.slice(1, 1), mode="overwrite", predicate=predicate)
    deltalake.write_deltalake(tmp_path / "theirs", DATA.slice(1, 1), mode="overwrite", predicate=predicate)
    assert ids(tmp_path / "ours") == ids(tmp_path / "theirs") == [2]
    if feed == "true":
        told = pa.table(DeltaTable(tmp_path / "ours").load_cdf(1, 1))
        assert sorted(zip(told["_change_type"].to_pylist(), told["id"].to_pylist(), strict=True)) == [
            ("delete", 1),
            ("delete", 2),
            ("delete", 3),
            ("insert", 2),
        ]


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["whole", "partitions"])
@pytest.mark.parametrize("predicate", ["false", "null", "1 > 2"])
def test_a_predicate_that_is_never_true_takes_no_rows(
    predicate: str, partition_by: list[str] | None, tmp_path: Path
) -> None:
    write_deltalake(tmp_path, DATA, partition_by=partition_by)
    with pytest.raises(InvalidArgumentError, match="predicate is true"):
        write_deltalake(tmp_path, DATA.slice(1, 1), mode="overwrite", predicate=predicate)
    write_deltalake(tmp_path, DATA.slice(0, 0), mode="overwrite", predicate=predicate)
    assert ids(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["whole", "partitions"])
def test_what_is_appended_meanwhile_is_replaced_as_well(partition_by: list[str] | None, tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA, partition_by=partition_by)
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, DATA.slice(0, 1), mode="append")
    write_deltalake(stale, DATA.slice(1, 1), mode="overwrite", predicate="true")
    assert ids(tmp_path) == [2]


@pytest.mark.parametrize("predicate", ["random() < 0.5", "id > 0 and RAND ( ) < 2", "p <> uuid()"])
def test_a_predicate_of_chance_is_refused(predicate: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    for table, write in ((DeltaTable, write_deltalake), (deltalake.DeltaTable, deltalake.write_deltalake)):
        words = "contains nondeterministic function (rand|RAND|uuid)|Unable to convert expression to string"
        with pytest.raises(Exception, match=words):
            table(tmp_path).delete(predicate)
        with pytest.raises(Exception, match=words):
            table(tmp_path).update({"p": "'z'"}, predicate=predicate)
        with pytest.raises(Exception, match=words):
            write(tmp_path, DATA, mode="overwrite", predicate=predicate)
    assert DeltaTable(tmp_path).version() == 0


def test_what_only_looks_like_chance_is_none(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    assert table.delete("p = 'random()' /* rand() */ or date '2020-01-01' > current_date")["num_deleted_rows"] == 0
    assert table.update({"id": "cast(random() as bigint)"}, predicate="now() > '2020-01-01'")["num_updated_rows"] == 3
