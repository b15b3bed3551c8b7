"""Fixed-size lists of such lists that begin at an offset: pyarrow picks other rows of them than those asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker.arrow.picking import kept, taken

_PAIRS = pa.list_(pa.list_(pa.int8(), 2), 2)


def _values(numbers: list[int]) -> list[list[list[int]]]:
    return [[[number, 1], [2, number]] for number in numbers]


def _offset(numbers: list[int], type_: pa.DataType = _PAIRS) -> pa.Array:
    """The values of numbers, behind others that do not count."""
    before = [[[-1, -1], [-1, -1]]] * 3
    values = before + _values(numbers)
    if pa.types.is_struct(type_):
        return pa.array([{"x": value} for value in values], type_).slice(3)
    return pa.array(values, type_).slice(3)


@pytest.mark.parametrize("type_", [_PAIRS, pa.struct([("x", _PAIRS)])], ids=["list", "struct"])
def test_rows_are_those_asked_for(type_: pa.DataType) -> None:
    column = _offset([0, 1, 2, 3], type_)
    values = column.to_pylist()
    table = pa.table({"c": pa.chunked_array([column, column.slice(2)]), "n": range(6)})
    for rows in (column, pa.record_batch({"c": column}), table):
        places = pa.array([3, None, 0, 2])
        found = taken(rows, places)
        found = found if isinstance(found, pa.Array) else found["c"]
        assert found.to_pylist() == [values[3], None, values[0], values[2]]
        mask = pa.array([False, True, True, False] + [True] * (len(rows) - 4))
        found = kept(rows, mask)
        found = found if isinstance(found, pa.Array) else found["c"]
        assert found.to_pylist() == [values[1], values[2], *([values[2], values[3]] if len(rows) > 4 else [])]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_that_are_merged_have_their_values(tmp_path: Path, version: str) -> None:
    uri = tmp_path / "t"
    esker.write_dataset(pa.table({"id": [0, 1, 2, 3]}), uri, data_storage_version=version)
    numbers = [2, 0, 3, 1]
    esker.dataset(uri).merge(pa.table({"id": numbers, "m": _offset(numbers)}), "id")
    assert esker.dataset(uri).to_table()["m"].to_pylist() == _values([0, 1, 2, 3])
    changed = pa.table({"id": numbers[:2], "m": _offset([7, 8])})
    fragment = esker.dataset(uri).get_fragments()[0]
    updated, fields = fragment.update_columns(changed, "id", "id")
    operation = esker.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    esker.LanceDataset.commit(uri, operation, read_version=esker.dataset(uri).version)
    assert esker.dataset(uri).to_table()["m"].to_pylist() == _values([8, 1, 7, 3])


def test_columns_beside_deleted_rows_have_their_values(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    esker.write_dataset(pa.table({"id": range(12)}), uri, max_rows_per_file=6)
    esker.dataset(uri).delete("id in (1, 7)")
    rows = pa.record_batch({"m": _offset(list(range(10)))})
    esker.dataset(uri).add_columns(pa.RecordBatchReader.from_batches(rows.schema, [rows.slice(0, 5), rows.slice(5)]))
    assert esker.dataset(uri).to_table()["m"].to_pylist() == _values(list(range(10)))


def test_upserts_of_all_columns_and_of_some_have_their_values(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    first = pa.table({"id": [0, 1, 2, 3], "m": _offset([0, 0, 0, 0]), "v": range(4)})
    esker.write_dataset(first, uri, max_rows_per_file=2)
    for names in (["id", "m", "v"], ["id", "m"]):
        source = pa.table({"id": [3, 1], "m": _offset([5, 6]), "v": [8, 9]}).select(names)
        esker.dataset(uri).merge_insert("id").when_matched_update_all().execute(source)
        found = esker.dataset(uri).to_table().sort_by("id").to_pydict()
        assert found["m"] == _values([0, 6, 0, 5])
