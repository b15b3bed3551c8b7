"""Dictionary columns by the type of their values: what pylance cannot open is not written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import UnsupportedError

DAY = dt.date(2020, 1, 2)
REFUSED: dict[str, pa.Array] = {
    "date32": pa.array([DAY]),
    "date64": pa.array([DAY], pa.date64()),
    "time32": pa.array([dt.time(1)], pa.time32("s")),
    "time64": pa.array([dt.time(1)], pa.time64("us")),
    "timestamp": pa.array([dt.datetime(2020, 1, 2)], pa.timestamp("us")),
    "duration": pa.array([5], pa.duration("us")),
    "decimal": pa.array([Decimal("1.1")]),
    "decimal256": pa.array([Decimal("1.1")], pa.decimal256(40, 1)),
    "fixed_size_binary": pa.array([b"ab"], pa.binary(2)),
}
WRITTEN: dict[str, Any] = {
    "text": ["a", "b"],
    "binary": [b"a", b"b"],
    "int8": pa.array([1, 2], pa.int8()),
    "uint64": pa.array([1, 2**64 - 1], pa.uint64()),
    "float16": pa.array([1.5, 2], pa.float16()),
    "float64": [1.5, 2],
    "bool": [False, True],
}


def _column(values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), values)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_values_that_pylance_cannot_open_are_refused(tmp_path: Path, version: str, name: str) -> None:
    column = _column(REFUSED[name])
    within = pa.StructArray.from_arrays([column], ["d"])
    for number, table in enumerate((pa.table({"d": column}), pa.table({"s": within}))):
        uri = str(tmp_path / f"t{number}")
        with pytest.raises(UnsupportedError, match=r"'(s\.)?d'.*plain values"):
            esker.write_dataset(table, uri, data_storage_version=version)
        assert not Path(uri).exists()
        with pytest.raises(OSError):  # noqa: PT011 - pylance's own words
            lance.write_dataset(table, f"{uri}-peer", data_storage_version="legacy" if version == "0.1" else version)


def test_columns_of_them_are_not_added(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [1]}), uri)
    column = _column(REFUSED["date32"])
    dataset = esker.dataset(uri)
    with pytest.raises(UnsupportedError, match="'d'.*plain values"):
        dataset.add_columns(lambda batch: pa.record_batch([column], ["d"]))
    with pytest.raises(UnsupportedError, match="'d'.*plain values"):
        dataset.merge(pa.table({"id": [1], "d": column}), "id")
    assert lance.dataset(uri).version == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_tables_that_have_them_are_changed_as_others_are(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As releases before wrote them."""
    days = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([DAY, dt.date(2021, 1, 1)]))
    rows, uri = pa.table({"id": [1, 2, 3], "d": days}), str(tmp_path / "t")
    with monkeypatch.context() as patched:
        patched.setattr("esker.lance.write.staging.check_new_columns", lambda schema: None)
        esker.write_dataset(rows, uri, data_storage_version=version)
    dataset = esker.dataset(uri)
    dataset.insert(rows)
    dataset.update({"id": "id + 10"}, where="id = 2")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows.slice(2))
    dataset.optimize.compact_files()
    assert dataset.count_rows() == 6
    assert set(dataset.to_table()["d"].to_pylist()) == {DAY, dt.date(2021, 1, 1)}
    dataset.alter_columns({"path": "d", "data_type": pa.date32()})
    dataset.optimize.compact_files()
    assert lance.dataset(uri).to_table() == dataset.to_table()


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_other_values_are_read_by_both(tmp_path: Path, version: str, name: str) -> None:
    values = pa.array(WRITTEN[name])
    keys = pa.array([row % 2 if row % 7 else None for row in range(5_000)], pa.int16())
    table = pa.table({"d": pa.DictionaryArray.from_arrays(keys, values), "n": range(5_000)})
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(table, uri, data_storage_version=version)
    dataset.delete("n % 3 = 0")
    expected = [value for row, value in enumerate(table["d"].to_pylist()) if row % 3]
    for library in (esker, lance):
        found = library.dataset(uri).to_table()
        assert found.schema.field("d").type == table.schema.field("d").type
        assert found["d"].to_pylist() == expected
        assert library.dataset(uri).take([0, 3_000])["d"].to_pylist() == [expected[0], expected[3_000]]
