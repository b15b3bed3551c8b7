"""Options of scans: what counts rows is an integer, a fragment that is named twice comes twice, batches know theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError, InvalidArgumentError, UnsupportedError

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]
NUMBERS = [
    "limit",
    "offset",
    "batch_size",
    "batch_size_bytes",
    "batch_readahead",
    "fragment_readahead",
    "io_buffer_size",
]


@pytest.fixture(params=VERSIONS)
def dataset(request: pytest.FixtureRequest, uri: str) -> esker.LanceDataset:
    return esker.write_dataset(
        pa.table({"id": range(9), "back": [8 - i for i in range(9)]}),
        uri,
        max_rows_per_file=3,
        data_storage_version=request.param,
    )


def _ids(rows: Any) -> list[int]:
    return list(rows["id"].to_pylist())


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("value", [1.7, 2.0, "3", np.float64(2), [1], b"1"], ids=repr)
def test_what_is_no_integer_is_refused_as_in_pylance(option: str, value: Any, uri: str) -> None:
    esker.write_dataset(pa.table({"id": range(4)}), uri)
    for module in (esker, lance):
        with pytest.raises(TypeError):
            module.dataset(uri).scanner(**{option: value}).to_table()
    with pytest.raises(TypeError, match=f"expected {option} as an integer, found {type(value).__name__}"):
        esker.dataset(uri).scanner(**{option: value})


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("value", [-1, -(2**70), 2**63, 2**70])
def test_a_number_out_of_range_is_refused(option: str, value: int, uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(4)}), uri)
    with pytest.raises(InvalidArgumentError, match=f"(?i){option}"):
        dataset.scanner(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["batch_size", "batch_readahead"])
def test_no_rows_in_a_batch_are_refused_as_in_pylance(option: str, uri: str) -> None:
    esker.write_dataset(pa.table({"id": range(4)}), uri)
    for module in (esker, lance):
        with pytest.raises(ValueError, match=option):
            module.dataset(uri).scanner(**{option: 0}).to_table()


@pytest.mark.parametrize("columns", ["x", "id", 1, [3], {"id": 1}, ["nope"], ["ID"]], ids=repr)
def test_columns_to_be_read_late_are_a_switch_or_names_of_the_table(columns: Any, uri: str) -> None:
    esker.write_dataset(pa.table({"id": range(4), "s": [{"a": 1}] * 4}), uri)
    for module in (esker, lance):
        with pytest.raises((ValueError, RuntimeError), match="late_materialization must be|nope|ID"):
            module.dataset(uri).scanner(late_materialization=columns)
        for taken in (True, False, [], ["id"], ("s.a",), ["_rowid"]):
            assert module.dataset(uri).to_table(filter="id > 1", late_materialization=taken).num_rows == 2
    with pytest.raises(InvalidArgumentError):
        esker.dataset(uri).scanner(late_materialization=columns)


@pytest.mark.parametrize("three", [3, np.int8(3), np.uint64(3), np.array(3)], ids=repr)
def test_whatever_python_takes_for_an_index_counts_rows(three: Any, dataset: esker.LanceDataset) -> None:
    assert _ids(dataset.to_table(limit=three)) == [0, 1, 2]
    assert _ids(dataset.to_table(offset=three, limit=True)) == [3]
    assert [batch.num_rows for batch in dataset.to_batches(batch_size=three)] == [3, 3, 3]
    assert _ids(dataset.head(three)) == _ids(dataset.scanner().head(three)) == [0, 1, 2]
    assert _ids(dataset.slice(three, three + 1)) == [3]
    assert dataset.sample(three).num_rows == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda dataset: dataset.head(1.5),
        lambda dataset: dataset.scanner().head(1.5),
        lambda dataset: dataset.slice(0, 1.5),
        lambda dataset: dataset.slice(0.5, 2),
        lambda dataset: dataset.sample(1.5),
        lambda dataset: dataset.get_fragment(0).head(1.5),
        lambda dataset: dataset.scanner(fragments=dataset.get_fragments()[:1], row_range=(0, 1.5)),
        lambda dataset: dataset.count_rows(limit=1.5),
    ],
)
def test_half_rows_are_refused_wherever_rows_are_counted(call: Callable[[Any], Any], uri: str) -> None:
    with pytest.raises(TypeError, match="as an integer, found float"):
        call(esker.write_dataset(pa.table({"id": range(4)}), uri))


@pytest.mark.parametrize("rows", [(2, 1), (-1, 2)])
def test_a_range_of_rows_goes_forward(rows: tuple[int, int], uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": range(4)}), uri)
    with pytest.raises(InvalidArgumentError, match="row_range"):
        dataset.scanner(fragments=dataset.get_fragments(), row_range=rows)
    with pytest.raises(InvalidArgumentError, match="num_rows must be non-negative"):
        dataset.sample(-1)


def test_a_fragment_that_is_named_twice_comes_twice_as_in_pylance(dataset: esker.LanceDataset) -> None:
    dataset.delete("id = 1")
    for module in (esker, lance):
        found = module.dataset(dataset.uri)
        one, two, _ = found.get_fragments()
        assert _ids(found.scanner(fragments=[one, one]).to_table()) == [0, 2, 0, 2]
        assert _ids(found.scanner(fragments=[two, one, two]).to_table()) == [3, 4, 5, 0, 2, 3, 4, 5]
        if module is esker or dataset.data_storage_version != "0.1":  # The peer finds no data file of 0.1 to count.
            assert found.scanner(fragments=[one, one]).count_rows() == 4
        assert found.scanner(fragments=[one, one], filter="id > 0").count_rows() == 2
        assert _ids(found.scanner(fragments=[one, one], filter="id > 0").to_table()) == [2, 2]
        assert _ids(found.scanner(fragments=[one, one], order_by=["id"]).to_table()) == [0, 0, 2, 2]
        assert _ids(found.scanner(fragments=[one, one], order_by=["back"], limit=3).to_table()) == [2, 2, 0]


def test_limits_hold_for_fragments_that_are_named_twice(dataset: esker.LanceDataset) -> None:
    # pylance takes the same rows of each.
    one = dataset.get_fragments()[0]
    scanner = dataset.scanner(fragments=[one, one], offset=1, limit=4)
    assert _ids(scanner.to_table()) == [1, 2, 0, 1]
    assert scanner.count_rows() == 4
    assert [_ids(batch.record_batch) for batch in scanner.scan_batches()] in ([[1, 2], [0, 1]], [[1, 2, 0, 1]])


TAGGED: list[dict[str, Any]] = [
    {},
    {"limit": 2},
    {"limit": 4},
    {"offset": 7},
    {"offset": 2, "limit": 5},
    {"offset": 9},
    {"limit": 0},
    {"filter": "id % 2 = 0", "limit": 3},
    {"filter": "id % 2 = 0", "offset": 2, "limit": 2},
    {"order_by": ["back"]},
    {"order_by": ["back"], "limit": 4},
    {"order_by": ["back"], "offset": 4, "limit": 2},
    {"columns": ["back"], "order_by": ["id"], "limit": 5},
    {"columns": [], "with_row_address": True, "limit": 4},
    {"columns": ["id", "_rowaddr"], "limit": 4},
    {"columns": {"twice": "id * 2"}, "offset": 4},
    {"with_row_id": True, "with_row_address": True, "limit": 5},
    {"batch_size": 2},
    {"batch_size": 2, "strict_batch_size": True, "limit": 7},
    {"with_row_id": True, "include_deleted_rows": True, "offset": 1, "limit": 6},
    {"with_row_id": True, "include_deleted_rows": True, "filter": "id != 4", "offset": 2},
]


@pytest.mark.parametrize("options", TAGGED, ids=str)
def test_batches_with_their_fragments_are_those_of_the_whole_scan(
    options: dict[str, Any], dataset: esker.LanceDataset
) -> None:
    dataset.delete("id in (1, 8)")
    for chosen in (options, {**options, "fragments": [dataset.get_fragments()[at] for at in (2, 0)]}):
        scanner = dataset.scanner(**chosen)
        tagged = list(scanner.scan_batches())
        assert all(batch.schema == scanner.projected_schema for batch, _ in tagged)
        found = pa.Table.from_batches([batch for batch, _ in tagged], scanner.projected_schema)
        assert found.to_pylist() == scanner.to_table().to_pylist()
        if "id" in found.column_names:
            for batch, fragment in tagged:
                assert {number // 3 for number in batch["id"].to_pylist()} == {fragment.fragment_id}


def test_fragments_of_deleted_rows_in_an_order_are_not_told(dataset: esker.LanceDataset) -> None:
    scanner = dataset.scanner(with_row_id=True, include_deleted_rows=True, order_by=["id"])
    with pytest.raises(UnsupportedError, match="leave include_deleted_rows or order_by out"):
        scanner.scan_batches()


def test_progress_and_costs_are_of_the_whole_scan(dataset: esker.LanceDataset) -> None:
    seen: list[int] = []
    costs: list[Any] = []
    list(dataset.scanner(progress=seen.append, scan_stats_callback=costs.append, limit=7).scan_batches())
    assert (seen[-1], [cost.rows for cost in costs]) == (7, [7])


@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_exact_batches_are_joined_where_dictionaries_differ(size: int, dataset: esker.LanceDataset) -> None:
    if dataset.data_storage_version == "0.1":
        return
    uri = f"{dataset.uri}-{size}"
    wide = pa.dictionary(pa.int32(), pa.string())
    rows: list[list[str | None]] = [["a", None, "b"], ["c", "a", "c"], [None, "d", "b"], ["e"]]
    for number, part in enumerate(rows):
        column = pa.array(part, wide)
        nested = pa.array([{"x": value} for value in part], pa.struct([("x", wide)]))
        table = pa.table({"id": range(len(part)), "d": column, "s": nested})
        mode = "append" if number else "create"
        esker.write_dataset(table, uri, mode=mode, data_storage_version=dataset.data_storage_version)
    batches = list(esker.dataset(uri).to_batches(batch_size=size, strict_batch_size=True))
    assert all(batch.num_rows == size for batch in batches[:-1])
    values = [value for part in rows for value in part]
    assert [value for batch in batches for value in batch["d"].to_pylist()] == values
    assert [value["x"] for batch in batches for value in batch["s"].to_pylist()] == values


def test_exact_batches_that_keys_cannot_name_say_so(uri: str) -> None:
    narrow = pa.dictionary(pa.int8(), pa.string())
    for part in range(3):
        values = pa.array([f"{part}-{number}" for number in range(100)]).dictionary_encode().cast(narrow)
        esker.write_dataset(
            pa.table({"d": values}), uri, mode="append" if part else "create", data_storage_version="2.0"
        )
    with pytest.raises(EskerError, match="leave strict_batch_size out"):
        esker.dataset(uri).to_table(batch_size=250, strict_batch_size=True)
    ordered = esker.dataset(uri).to_table(order_by=["d"])["d"].to_pylist()
    assert ordered == sorted(f"{part}-{number}" for part in range(3) for number in range(100))


def test_names_of_the_system_may_be_given_twice(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"a": [1, 2, 3]}), uri)
    theirs = lance.dataset(uri).take([2, 0], columns=["_rowid", "_rowid"])
    assert dataset.take([2, 0], columns=["_rowid", "_rowid"]).to_pydict() == theirs.to_pydict()
    assert dataset.take([2, 0], columns=["_rowid", "_rowid"]).schema.names == ["_rowid", "_rowid"]
    assert dataset.to_table(columns=["_rowaddr", "a", "_rowaddr"]).num_columns == 3
    with pytest.raises(InvalidArgumentError, match="duplicate column name 'a'"):
        dataset.to_table(columns=["a", "a"])
