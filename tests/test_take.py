"""Rows by number: order and duplicates kept, compared with pylance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import esker
import esker.file
from esker.exceptions import InvalidArgumentError, OutOfRangeError
from tests.samples import TYPES, column, people, same

Pair = tuple[esker.LanceDataset, Any]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    uri = str(tmp_path_factory.mktemp("take") / "table.lance")
    table = pa.table({"id": range(3000), **{name: column(name, 3000, nulls=0.25) for name in TYPES}})
    esker.write_dataset(table, uri, max_rows_per_file=800)
    return esker.dataset(uri), lance.dataset(uri)


@pytest.mark.parametrize("indices", [[0, 1], [2999, 0], [5, 5, 5], [2, 900, 2], []], ids=str)
def test_rows_without_columns_are_counted_in_any_order(indices: list[int], pair: Pair) -> None:
    assert pair[0].take(indices, columns=[]).num_rows == len(indices)
    ids = pair[0].take(indices, columns=["_rowid"])["_rowid"].to_pylist()
    assert pair[0]._take_rows(ids, columns=[]).num_rows == len(indices)
    fragment = [index for index in indices if index < 800]
    assert pair[0].get_fragments()[0].take(fragment, columns=[]).num_rows == len(fragment)


@pytest.mark.parametrize(
    "indices",
    [
        [0],
        [2999],
        [5, 5, 5],
        [2999, 0, 799, 800, 801, 1600, 0],
        list(range(790, 810)),
        [],
        random.Random(3).choices(range(3000), k=500),
    ],
    ids=lambda indices: f"{len(indices)} rows",
)
def test_take_returns_what_pylance_returns(indices: list[int], pair: Pair) -> None:
    same(pair[1].take(indices), pair[0].take(indices))


def test_indices_come_in_many_kinds(pair: Pair) -> None:
    expected = pair[1].take([4, 2, 4], columns=["id"])
    for indices in (
        [4, 2, 4],
        (4, 2, 4),
        np.array([4, 2, 4]),
        np.array([4, 2, 4], np.uint8),
        pa.array([4, 2, 4], pa.uint64()),
        pa.array([4, 2, 4], pa.int32()),
        pa.chunked_array([[4, 2], [4]]),
    ):
        same(expected, pair[0].take(indices, columns=["id"]))
    assert pair[0].take(range(3), columns=["id"])["id"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    "columns", [["id"], ["utf8", "id"], ["vector", "list_list"], {"n": "id"}, ["_rowid"], ["_rowaddr", "id"]]
)
def test_take_projects(columns: Any, pair: Pair) -> None:
    same(pair[1].take([7, 1500, 7], columns=columns), pair[0].take([7, 1500, 7], columns=columns))


def test_system_columns_go_around_deleted_rows(uri: str) -> None:
    esker.write_dataset(pa.table({"id": range(100)}), uri, max_rows_per_file=40)
    lance.dataset(uri).delete("id % 3 = 0 or id between 50 and 60")
    ours, names = esker.dataset(uri), ["_rowoffset", "id", "_rowid"]
    scanned = ours.to_table(columns=names)
    same(lance.dataset(uri).to_table(columns=["id", "_rowid"]), scanned.select(["id", "_rowid"]))
    assert scanned["_rowoffset"].to_pylist() == list(range(ours.count_rows()))
    wanted = [5, 0, ours.count_rows() - 1, 5]
    assert ours.take(wanted, columns=names).to_pylist() == scanned.take(wanted).to_pylist()
    assert ours.to_table(columns=["id"], filter="_rowoffset = 5")["id"].to_pylist() == [scanned["id"][5].as_py()]


@pytest.mark.parametrize("indices", [[3000], [0, 10**12], [-1], [0, 2**64], (0, -(2**70))])
def test_rows_that_do_not_exist_are_refused(indices: list[int], pair: Pair) -> None:
    with pytest.raises(OutOfRangeError, match="out of range") as caught:
        pair[0].take(indices)
    assert isinstance(caught.value, IndexError)
    assert (caught.value.found, caught.value.expected) == (indices[-1], 3000)


@pytest.mark.parametrize("indices", [["x"], [None], [1.5], pa.array([1.0])])
def test_row_numbers_must_be_integers(indices: Any, pair: Pair) -> None:
    with pytest.raises(InvalidArgumentError, match="row numbers"):
        pair[0].take(indices)


@pytest.mark.parametrize(
    ("indices", "found"),
    [
        (["x"], "found 'x' among them"),
        ([0, None], "found None among them"),
        ([1, 2.5], "found 2.5 among them"),
        ((True, False), "found True among them"),
        ("12", "found '1' among them"),
        (3, "a list of integers, found int"),
        (None, "a list of integers, found NoneType"),
        (np.int64(3), "in one dimension, found 0 dimensions"),
        (np.array([[0, 1]]), "in one dimension, found 2 dimensions"),
        (np.array([0, "x"], object), "found 'x' among them"),
        (pa.array([1.0]), "as integers, found double"),
        (pa.array([0, None], pa.int64()), "as integers, found 1 nulls among them"),
    ],
    ids=lambda value: repr(value) if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_row_number_is_told(indices: Any, found: str, pair: Pair) -> None:
    for take in (pair[0].take, pair[0].take_rows, pair[0].get_fragments()[0].take):
        with pytest.raises(InvalidArgumentError, match=f"row numbers .*{found}"):
            take(indices)


def test_no_rows_and_integers_of_other_libraries_are_row_numbers(pair: Pair) -> None:
    for nothing in (pa.array([]), pa.chunked_array([], pa.null()), np.array([]), range(0)):
        assert pair[0].take(nothing, columns=["id"]).num_rows == 0
    scalars = [pa.scalar(2, pa.uint8()), np.int16(7)]
    assert pair[0].take(scalars, columns=["id"])["id"].to_pylist() == [2, 7]


def test_take_of_an_unknown_column_is_an_error_of_ours(pair: Pair) -> None:
    with pytest.raises(InvalidArgumentError, match="nope") as caught:
        pair[0].take([1], columns=["nope"])
    assert caught.value.column == "nope"


def test_a_fragment_takes_by_its_own_numbers(pair: Pair) -> None:
    for number in (0, 2, 3):
        ours, theirs = (dataset.get_fragments()[number] for dataset in pair)
        # The peer's fragments take rising numbers only.
        columns = ["id", "utf8", "list_list"]
        same(theirs.take([0, 5, 99], columns=columns), ours.take([0, 5, 99], columns=columns))
        assert ours.take([5, 0, 5], columns=["id"])["id"].to_pylist() == [number * 800 + row for row in (5, 0, 5)]
    with pytest.raises(OutOfRangeError):
        pair[0].get_fragments()[3].take([600])


def test_take_from_tables_of_pylance(uri: str) -> None:
    lance.write_dataset(people(4000), uri, data_storage_version="2.0", max_rows_per_file=1500)
    indices = random.Random(5).choices(range(4000), k=1000)
    same(lance.dataset(uri).take(indices), esker.dataset(uri).take(indices))


def test_one_row_costs_a_few_small_reads(uri: str) -> None:
    esker.write_dataset(pa.table({"v": pa.array(range(1_000_000), pa.int64())}), uri)
    dataset = esker.dataset(uri)
    dataset.take([5])
    dataset.io_stats()
    assert dataset.take([777_777])["v"].to_pylist() == [777_777]
    stats = dataset.io_stats()
    assert stats.read_iops <= 4
    assert stats.read_bytes < 100_000


@pytest.mark.parametrize(
    "columns", [["_rowoffset"], ["id", "_rowid", "_rowaddr", "_rowoffset"], {"x": "_rowoffset"}], ids=str
)
def test_row_numbers_are_never_null_in_a_take(columns: Any, pair: Pair) -> None:
    ours, theirs = (dataset.take([3, 900], columns=columns) for dataset in pair)
    assert ours.equals(theirs)
    assert ours.schema == theirs.schema
    assert pair[0].to_table(columns=columns).schema == pair[1].to_table(columns=columns).schema


NAMED: dict[str, Callable[[Any, Any], object]] = {
    "take": lambda dataset, columns: dataset.take([0], columns=columns),
    "take_rows": lambda dataset, columns: getattr(dataset, "take_rows", dataset._take_rows)([0], columns=columns),
    "to_table": lambda dataset, columns: dataset.to_table(columns=columns),
    "scanner": lambda dataset, columns: dataset.scanner(columns=columns),
    "head": lambda dataset, columns: dataset.head(1, columns=columns),
    "sample": lambda dataset, columns: dataset.sample(1, columns=columns),
    "fragment": lambda dataset, columns: dataset.get_fragment(0).take([0], columns=columns),
    "session": lambda dataset, columns: dataset.get_fragment(0).open_session(columns),
    "file": lambda dataset, columns: _file_reader(dataset)(_data_file(dataset), columns=columns),
}


def _file_reader(dataset: Any) -> Any:
    return esker.file.LanceFileReader if isinstance(dataset, esker.LanceDataset) else lance.file.LanceFileReader


def _data_file(dataset: Any) -> str:
    return f"{dataset.uri}/data/{dataset.get_fragment(0).data_files()[0].path}"


@pytest.mark.parametrize("columns", ["id", "i", 3], ids=repr)
@pytest.mark.parametrize("verb", NAMED)
def test_one_name_is_not_a_list_of_columns(verb: str, columns: Any, pair: Pair) -> None:
    for dataset in pair:
        with pytest.raises(TypeError):
            NAMED[verb](dataset, columns)
