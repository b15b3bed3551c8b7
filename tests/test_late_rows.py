"""Rows that come late, after others changed the columns: they are computed again for the columns that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError, SchemaMismatchError, UnsupportedError

Alter = Callable[[lance.LanceDataset], object]
Verb = Callable[[esker.LanceDataset], object]


def _dropped_and_reused(dataset: lance.LanceDataset) -> None:
    """The id of a dropped column is given again once no file has it."""
    dataset.drop_columns(["c"])
    dataset.optimize.compact_files()
    lance.dataset(dataset.uri).add_columns({"d": "k * 100"})


ALTERED: dict[str, Alter] = {
    "cast": lambda d: d.alter_columns({"path": "c", "data_type": pa.int32()}),
    "cast and renamed": lambda d: d.alter_columns({"path": "c", "data_type": pa.int32(), "name": "d"}),
    "dropped and added": lambda d: (d.drop_columns(["c"]), d.add_columns({"c": "k * 100"})),
    "added, not null": lambda d: d.add_columns({"n": "1"}),
    "added": lambda d: d.add_columns({"n": "k + 1"}),
    "its id reused": _dropped_and_reused,
}
NEW = pa.table({"k": [9], "c": [5]})
INSERTS: dict[str, Verb] = {
    "insert": lambda d: d.merge_insert("k").when_not_matched_insert_all().execute(NEW),
    "upsert": lambda d: d.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(NEW),
    "fail": lambda d: d.merge_insert("k").when_matched_fail().when_not_matched_insert_all().execute(NEW),
    "by source": lambda d: (
        d.merge_insert("k").when_not_matched_insert_all().when_not_matched_by_source_delete("k = 1000").execute(NEW)
    ),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("insert", INSERTS.values(), ids=INSERTS)
@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_rows_that_are_only_inserted_keep_their_values(uri: str, alter: Alter, insert: Verb, stable: bool) -> None:
    rows = pa.table({"k": [1, 2, 3], "c": [10, 20, 30]})
    late = esker.write_dataset(rows, uri, data_storage_version="2.1", enable_stable_row_ids=stable)
    late.delete("k = 2")
    late = esker.dataset(uri)
    alter(lance.dataset(uri))
    before = esker.dataset(uri).to_table().to_pylist()
    try:
        insert(late)
    except EskerError:
        assert esker.dataset(uri).to_table().to_pylist() == before
    else:
        found = esker.dataset(uri).to_table().to_pylist()
        assert found[:-1] == before
        assert (found[-1]["k"], found[-1]["c"]) == (9, 5)
    assert lance.dataset(uri).to_table().to_pylist() == esker.dataset(uri).to_table().to_pylist()


NULLS: dict[str, Verb] = {
    "update": lambda d: d.update({"c": "NULL"}, where="k = 1"),
    "upsert": lambda d: (
        d.merge_insert("k").when_matched_update_all().execute(pa.table({"k": [1], "c": pa.array([None], pa.int64())}))
    ),
    "insert": lambda d: (
        d.merge_insert("k")
        .when_not_matched_insert_all()
        .execute(pa.table({"k": [9], "c": pa.array([None], pa.int64())}))
    ),
    "insert without it": lambda d: d.merge_insert("k").when_not_matched_insert_all().execute(pa.table({"k": [9]})),
}


@pytest.mark.parametrize("verb", NULLS.values(), ids=NULLS)
def test_a_column_that_is_required_meanwhile_gets_no_nulls(uri: str, verb: Verb) -> None:
    late = esker.write_dataset(pa.table({"k": [1, 2, 3], "c": [1, 2, 3]}), uri)
    lance.dataset(uri).alter_columns({"path": "c", "nullable": False})
    with pytest.raises(SchemaMismatchError):
        verb(late)
    for library in (esker, lance):
        assert library.dataset(uri).to_table()["c"].to_pylist() == [1, 2, 3]


def test_what_does_not_depend_on_the_columns_goes_on_top(uri: str) -> None:
    rows = pa.table({"k": range(10), "c": range(10)})
    late = esker.write_dataset(rows, uri)
    lance.dataset(uri).alter_columns({"path": "c", "nullable": False})
    late.delete("k < 3")
    late = esker.dataset(uri)
    lance.dataset(uri).add_columns({"n": "k + 1"})
    late.update({"c": "c + 100"}, where="k > 7")
    found = esker.dataset(uri).to_table().sort_by("k").to_pydict()
    expected: dict[str, Any] = {"k": list(range(3, 10)), "c": [3, 4, 5, 6, 7, 108, 109], "n": list(range(4, 11))}
    assert found == expected
    assert lance.dataset(uri).to_table().sort_by("k").to_pydict() == expected


def test_json_does_not_become_another_type(uri: str) -> None:
    made = esker.write_dataset(pa.table({"j": pa.array(['{"a":1}', None], pa.json_())}), uri)
    for kind in (pa.string(), pa.large_string(), pa.binary()):
        with pytest.raises(UnsupportedError, match="is JSON"):
            made.alter_columns({"path": "j", "data_type": kind})
    assert esker.dataset(uri).to_table()["j"].to_pylist() == ['{"a":1}', None]
