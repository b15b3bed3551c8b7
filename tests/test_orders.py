"""Orders of rows: one rule for all types, the same for all rows and for the first of them, as pylance has it."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering as PeerOrdering

import esker
from esker.dataset import ColumnOrdering
from esker.exceptions import InvalidArgumentError, InvalidTypeError
from tests.fuzzing.orders import Key, in_order
from tests.samples import TYPES, column, same

WAYS = [(ascending, nulls_first) for ascending in (True, False) for nulls_first in (True, False)]
VERSIONS = ["0.1", "2.0", "2.1", "2.2"]
NAN = float("nan")
FLOATS = [1.0, NAN, None, -1.0, 0.0, -0.0, 0.0, -0.0, math.inf, -math.inf, math.copysign(NAN, -1), 5e-324, -5e-324]


def _bits(values: Any) -> list[bytes | None]:
    return [None if value is None else struct.pack(">d", value) for value in values.to_pylist()]


@pytest.mark.parametrize(("ascending", "nulls_first"), WAYS)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_numbers_go_by_their_total_order_as_in_pylance(
    width: int, ascending: bool, nulls_first: bool, uri: str
) -> None:
    kind = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    mask = np.array([value is None for value in FLOATS])
    values = pa.array(np.array([0 if value is None else value for value in FLOATS], kind.to_pandas_dtype()), mask=mask)
    lance.write_dataset(pa.table({"x": values, "id": range(len(FLOATS))}), uri, max_rows_per_file=4)
    peer = lance.dataset(uri).to_table(order_by=[PeerOrdering("x", ascending, nulls_first)])
    ours = esker.dataset(uri).to_table(order_by=[ColumnOrdering("x", ascending, nulls_first)])
    assert _bits(ours["x"]) == _bits(peer["x"])
    for limit in range(len(FLOATS)):
        first = esker.dataset(uri).to_table(order_by=[ColumnOrdering("x", ascending, nulls_first)], limit=limit)
        assert first["id"].to_pylist() == ours["id"].to_pylist()[:limit]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_rows_go_by_a_column_of_any_type_as_in_pylance(name: str, version: str, uri: str) -> None:
    rng = random.Random(name)
    pool = column(name, 25, nulls=0.2)
    values = pool.take(pa.array([rng.randrange(25) for _ in range(60)]))
    lance.write_dataset(
        pa.table({"x": values, "id": range(60)}), uri, max_rows_per_file=13, data_storage_version=version
    )
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    for ascending, nulls_first in WAYS:
        key = ColumnOrdering("x", ascending, nulls_first)
        whole = ours.to_table(order_by=[key])
        assert (
            whole["x"].to_pylist()
            == theirs.to_table(order_by=[PeerOrdering("x", ascending, nulls_first)])["x"].to_pylist()
        )
        for options in ({"limit": 7}, {"limit": 30, "offset": 7}, {"offset": 40}, {"limit": 100}):
            start = options.get("offset", 0)
            same(whole.slice(start, options.get("limit")), ours.to_table(order_by=[key], **options))


MORE: dict[str, pa.Array] = {
    "dictionary": pa.array(["b", None, "a", "c", "a", None]).dictionary_encode(),
    "dictionary_i8": pa.array(["b", None, "a", "c", "a", None]).dictionary_encode().cast(
        pa.dictionary(pa.int8(), pa.string())
    ),
    "struct": pa.array([{"a": 2, "b": "x"}, {"a": 1, "b": None}, None, {"a": None, "b": "y"}, {"a": 1, "b": "b"}] * 2),
    "list": pa.array([[2], [1, 2], None, [], [1], [None], [1, None]]),
    "list of structs": pa.array([[{"x": 2}], [{"x": 1}], None, [], [None]]),
    "list of lists": pa.array([[[2], [1]], [[1]], None, [], [None], [[]]]),
    "large list": pa.array([["b"], ["a", "b"], None, [], ["a"]], pa.large_list(pa.string())),
    "fixed-size list": pa.array([[2, 1], [1, 2], None, [1, 1]], pa.list_(pa.int16(), 2)),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"b" * 16, b"a" * 16, None], pa.binary(16))),
    "string view": pa.array(["b", None, "a", "a longer text than fits"], pa.string_view()),
    "binary view": pa.array([b"b", None, b"a", b"\0"], pa.binary_view()),
    "null": pa.nulls(4),
    "bool": pa.array([True, None, False, True]),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nested_and_encoded_columns_have_an_order(name: str, version: str, uri: str) -> None:
    values = MORE[name]
    table = pa.table({"id": range(len(values)), "x": values})
    dataset = esker.write_dataset(table, uri, max_rows_per_file=2, data_storage_version=version)
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    rows = [{"id": number, "x": value} for number, value in enumerate(storage.to_pylist())]
    for ascending, nulls_first in WAYS:
        expected = [row["id"] for row in in_order(rows, [Key("x", ascending, nulls_first)])]
        key = ColumnOrdering("x", ascending, nulls_first)
        assert dataset.to_table(order_by=[key])["id"].to_pylist() == expected
        assert dataset.to_table(order_by=[key], columns=["id"], limit=3, offset=1)["id"].to_pylist() == expected[1:4]


@pytest.mark.parametrize("name", ["struct", "list of structs", "list of lists", "dictionary", "null"])
def test_what_pylance_says_of_such_an_order_is_the_same_or_nothing(name: str, uri: str) -> None:
    values = MORE[name]
    esker.write_dataset(pa.table({"id": range(len(values)), "x": values}), uri, max_rows_per_file=2)
    for ascending, nulls_first in WAYS:
        try:
            theirs = lance.dataset(uri).to_table(order_by=[PeerOrdering("x", ascending, nulls_first)])
        except (ValueError, OSError, NotImplementedError):
            continue
        ours = esker.dataset(uri).to_table(order_by=[ColumnOrdering("x", ascending, nulls_first)])
        assert ours["x"].to_pylist() == theirs["x"].to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_of_structs_are_keys(version: str, uri: str) -> None:
    places = [{"x": {"y": number % 3}, "z": str(number)} for number in range(9)]
    table = pa.table({"id": range(9), "s": places})
    dataset = esker.write_dataset(table, uri, max_rows_per_file=4, data_storage_version=version)
    keys: list[Any] = [ColumnOrdering("s.x.y", ascending=False), "s.z"]
    assert dataset.to_table(order_by=keys)["id"].to_pylist() == [2, 5, 8, 1, 4, 7, 0, 3, 6]
    assert dataset.to_table(order_by=keys, columns=["id"], limit=2).to_pydict() == {"id": [2, 5]}
    assert dataset.to_table(order_by=keys, columns=["s.z", "s.x.y"], limit=2).to_pydict() == {
        "s.z": ["2", "5"],
        "s.x.y": [2, 2],
    }
    assert dataset.to_table(order_by=keys, columns={"n": "id * 10"}, limit=2).to_pydict() == {"n": [20, 50]}


def test_system_columns_are_keys(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(6)}), uri, max_rows_per_file=2)
    key = ColumnOrdering("_rowaddr", ascending=False)
    assert dataset.to_table(order_by=[key], limit=3)["id"].to_pylist() == [5, 4, 3]
    assert dataset.to_table(order_by=[key], columns=[], with_row_id=True, limit=1).to_pydict() == {
        "_rowid": [(2 << 32) + 1]
    }


def test_a_key_that_is_no_column_is_refused(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(6), "s": [{"a": 1}] * 6}), uri)
    for key in ("nothing", "s.b", "id.x"):
        with pytest.raises(InvalidArgumentError, match=key) as caught:
            dataset.to_table(order_by=[key])
        assert caught.value.column == key


@pytest.mark.parametrize("size", [1, 3, 4, 10, 100])
@pytest.mark.parametrize("strict", [True, False])
def test_batches_of_an_order_have_the_size_that_is_asked_for(size: int, strict: bool, uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(10)}), uri, max_rows_per_file=3)
    batches = list(dataset.to_batches(order_by=["id"], batch_size=size, strict_batch_size=strict))
    assert [batch.num_rows for batch in batches] == [min(size, 10 - start) for start in range(0, 10, size)]
    assert [number for batch in batches for number in batch["id"].to_pylist()] == list(range(10))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_dictionaries_that_differ_by_file_are_ordered_and_carried(version: str, uri: str) -> None:
    narrow = pa.dictionary(pa.int8(), pa.string())
    for part in range(4):
        texts = [f"{number:03}-{part}" for number in range(90)]
        values = pa.array(texts).dictionary_encode().cast(narrow)
        table = pa.table({"id": [number * 4 + part for number in range(90)], "d": values})
        esker.write_dataset(table, uri, mode="append" if part else "create", data_storage_version=version)
    dataset = esker.dataset(uri)
    # Together they have more values than eight bits name: batches are as small as it takes.
    for key in ("id", "d"):
        found = dataset.to_table(order_by=[key])
        assert found["id"].to_pylist() == list(range(360))
        assert found["d"].to_pylist() == [f"{number:03}-{part}" for number in range(90) for part in range(4)]
        assert found.schema.field("d").type == narrow
        assert dataset.to_table(order_by=[key], limit=200, offset=100)["id"].to_pylist() == list(range(100, 300))


def test_rows_with_equal_keys_stay_in_the_tables_order(uri: str) -> None:
    rng = random.Random(7)
    keys = [rng.choice([None, 1, 2]) for _ in range(5000)]
    dataset = esker.write_dataset(pa.table({"k": keys, "id": range(5000)}), uri, max_rows_per_file=700)
    rows = [{"k": key, "id": number} for number, key in enumerate(keys)]
    for ascending, nulls_first in WAYS:
        expected = [row["id"] for row in in_order(rows, [Key("k", ascending, nulls_first)])]
        order = [ColumnOrdering("k", ascending, nulls_first)]
        assert dataset.to_table(order_by=order)["id"].to_pylist() == expected
        for limit in (1, 100, 1700, 4999):
            assert dataset.to_table(order_by=order, limit=limit)["id"].to_pylist() == expected[:limit]
            assert (
                dataset.to_table(order_by=order, limit=limit, scan_in_order=False)["id"].to_pylist() == expected[:limit]
            )


def test_the_first_of_many_rows_are_found_without_holding_all(uri: str) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.permutation(400_000)
    dataset = esker.write_dataset(pa.table({"n": numbers, "text": numbers.astype(str)}), uri, max_rows_per_file=90_000)
    found = dataset.to_table(order_by=["n"], limit=1000, offset=500)
    assert found["n"].to_pylist() == list(range(500, 1500))
    assert found["text"].to_pylist() == [str(number) for number in range(500, 1500)]
    reader = dataset.scanner(order_by=["n"]).to_reader()
    assert reader.read_next_batch()["n"].to_pylist()[:3] == [0, 1, 2]


def test_an_order_of_no_columns_counts_rows(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(10)}), uri, max_rows_per_file=3)
    scanner = dataset.scanner(columns=[], order_by=["id"], limit=7)
    assert sum(batch.num_rows for batch in scanner.to_batches()) == scanner.count_rows() == 7


@pytest.mark.parametrize("predicate", [None, "a > 1"])
def test_rows_in_an_order_that_is_not_there_are_not_counted(predicate: str | None, uri: str) -> None:
    esker.write_dataset(pa.table({"a": [2, 1]}), uri)
    # pylance counts in no order at all.
    assert esker.dataset(uri).scanner(order_by=["a"], filter=predicate).count_rows() == (1 if predicate else 2)
    for library in (lance, esker):
        with pytest.raises(ValueError, match="zz"):
            library.dataset(uri).scanner(order_by=["zz"], filter=predicate).count_rows()


@pytest.mark.parametrize("order", ["ab", ColumnOrdering("a")], ids=type)
def test_an_order_that_is_no_list_is_refused(order: Any, uri: str) -> None:
    # The letters of a text are names, too.
    dataset = esker.write_dataset(pa.table({"a": [2, 1], "b": [1, 2], "ab": [1, 2]}), uri)
    with pytest.raises(InvalidTypeError, match="order_by must be a list of columns, found .*a"):
        dataset.to_table(order_by=order)
