"""Columns that come by key, where the two sides' keys are of other types: equal values match, and nothing else does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import SchemaMismatchError, UnsupportedError

US, S = pa.timestamp("us"), pa.timestamp("s")
NAN = float("nan")

EQUAL = [
    (pa.array([1, 300, None]), pa.array([44, 1, 300], pa.int16()), [1, 2, None]),
    # 300 cut to eight bits is 44.
    (pa.array([1, 44, None], pa.uint8()), pa.array([300, 1, None], pa.int64()), [1, None, 2]),
    (pa.array([1, 2**63], pa.uint64()), pa.array([-1, 1]), [1, None]),
    (pa.array([-1, 1]), pa.array([2**64 - 1, 1], pa.uint64()), [None, 1]),
    (pa.array([1, 2]), pa.array([1.5, 2.0, NAN]), [None, 1]),
    (pa.array([2**53, 2**53 + 1]), pa.array([2.0**53]), [0, None]),
    (pa.array([1.5, NAN, -0.0]), pa.array([NAN, 1.5, 0.0]), [1, 0, None]),
    (pa.array([1.5, 0.1], pa.float32()), pa.array([1.5, 0.1]), [0, None]),
    (pa.array(["a", "b", None]), pa.array(["b", "c"], pa.large_string()), [None, 0, None]),
    (pa.array(["a", "b", None]), pa.array(["b", "c", None]).dictionary_encode(), [None, 0, 2]),
    (pa.array(["a", None]).dictionary_encode(), pa.array([None, "a", None, "b"]), [1, 2]),
    (pa.array([1, None, 300]), pa.array([None, 1], pa.int8()), [1, 0, None]),
    # A key that no key of the other type equals is no null.
    (pa.array([None, 2], pa.uint64()), pa.array([-1, None]), [1, None]),
    (pa.array([None, 2.5]), pa.array([None, 2]), [0, None]),
    (pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"], pa.string_view()), [None, 0]),
    (pa.array([b"a", b"b"]), pa.array([b"b", b"c"], pa.binary(1)), [None, 0]),
    (pa.array([1, 2_000_000], US), pa.array([2, 1], S), [None, 0]),
    (pa.array([2, 2**62], S), pa.array([2_000_000_000, 2_000_000_001], pa.timestamp("ns")), [0, None]),
    (pa.array([2], pa.timestamp("s", "UTC")), pa.array([2000], pa.timestamp("ms", "Europe/Paris")), [0]),
    (pa.array([1, 2], pa.date32()), pa.array([86_400, 172_801], S), [0, None]),
    (pa.array([1], pa.date32()), pa.array([86_400_000], pa.date64()), [0]),
    (pa.array([1, 2], pa.time32("s")), pa.array([2_000_000, 1], pa.time64("us")), [None, 0]),
    (pa.array([1], pa.duration("ms")), pa.array([1000], pa.duration("us")), [0]),
    (pa.array([Decimal("1.50"), Decimal("2.00")]), pa.array([2, 3]), [None, 0]),
    (pa.array([Decimal("1.50")]), pa.array([Decimal("1.5")], pa.decimal128(38, 20)), [0]),
    (pa.array([1]), pa.nulls(2), [None]),
    (pa.array([1]), pa.array([], pa.int8()), [None]),
]


@pytest.mark.parametrize(("left", "right", "found"), EQUAL, ids=lambda it: str(getattr(it, "type", "")))
def test_keys_of_other_types_match_where_their_values_are_equal(
    left: pa.Array, right: pa.Array, found: list[int | None], uri: str
) -> None:
    dataset = esker.write_dataset(pa.table({"k": left}), uri)
    dataset.merge(pa.table({"k": right, "v": pa.array(range(len(right)), pa.int64())}), "k")
    assert dataset.to_table()["v"].to_pylist() == found


@pytest.mark.parametrize(("left", "right", "found"), EQUAL, ids=lambda it: str(getattr(it, "type", "")))
def test_columns_of_a_fragment_are_updated_by_keys_of_other_types(
    left: pa.Array, right: pa.Array, found: list[int | None], uri: str
) -> None:
    rows = pa.table({"k": left, "v": pa.array([-1] * len(left), pa.int64())})
    dataset = esker.write_dataset(rows, uri)
    other = pa.table({"k": right, "v": pa.array(range(len(right)), pa.int64())})
    fragment, fields = dataset.get_fragments()[0].update_columns(other, "k")
    operation = esker.LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    made = esker.LanceDataset.commit(dataset, operation, read_version=1)
    assert made.to_table()["v"].to_pylist() == [-1 if value is None else value for value in found]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.timestamp("us")], ids=str)
def test_a_null_key_matches_a_null_key_as_in_pylance(kind: pa.DataType, tmp_path: Path) -> None:
    found = []
    for library in (lance, esker):
        module: Any = library
        uri = str(tmp_path / module.__name__)
        keys = pa.array([1, None, 2, None]).cast(kind)
        dataset = module.write_dataset(pa.table({"k": keys, "x": [0, 0, 0, 0]}), uri)
        other = pa.table({"k": pa.array([None, 2, None]).cast(kind), "x": [7, 8, 9]})
        fragment, fields = dataset.get_fragments()[0].update_columns(other, "k")
        operation = module.LanceOperation.Update(
            updated_fragments=[fragment], fields_modified=fields, update_mode="rewrite_columns"
        )
        dataset = module.LanceDataset.commit(uri, operation, read_version=1)
        dataset.merge(other.rename_columns(["k", "v"]), "k")
        found.append(dataset.to_table().to_pydict())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array(["1"]), pa.array([1])),
        (pa.array([True]), pa.array([1])),
        (pa.array([1], pa.timestamp("s", "UTC")), pa.array([1], S)),
        (pa.array([1], S), pa.array([1])),
        (pa.array([Decimal(1)], pa.decimal256(76, 0)), pa.array([Decimal(1)], pa.decimal256(76, 70))),
    ],
    ids=str,
)
def test_keys_that_no_type_holds_both_of_are_refused(left: pa.Array, right: pa.Array, uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"k": left}), uri)
    with pytest.raises(SchemaMismatchError, match="key 'k' cannot be compared: expected .* cast it first"):
        dataset.merge(pa.table({"k": right, "v": [1]}), "k")
    assert (dataset.version, len(list(dataset._store.list("data/")))) == (1, 1)


def test_keys_of_structs_are_refused(uri: str) -> None:
    key: Any = pa.array([{"a": 1}])
    dataset = esker.write_dataset(pa.table({"k": key}), uri)
    with pytest.raises(UnsupportedError, match="use a plain column"):
        dataset.merge(pa.table({"k": key, "v": [1]}), "k")


def test_row_ids_match_signed_numbers(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"a": [5, 6]}), uri)
    dataset.merge(pa.table({"id": [1, -1], "v": ["one", "none"]}), "_rowid", "id")
    assert dataset.to_table()["v"].to_pylist() == [None, "one"]


@pytest.mark.parametrize("options", [{"columns": ["w"]}, {"columns": {"k": "'text'"}}, {"filter": "k > 1", "limit": 1}])
def test_scan_options_of_a_user_hide_no_key(options: dict[str, Any], uri: str) -> None:
    esker.write_dataset(pa.table({"k": [1, 2], "w": [5, 6]}), uri)
    dataset = esker.dataset(uri, default_scan_options=options)
    dataset.merge(pa.table({"k": pa.array([2, 1], pa.int8()), "v": ["two", "one"]}), "k")
    assert esker.dataset(uri).to_table()["v"].to_pylist() == ["one", "two"]
