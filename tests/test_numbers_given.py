"""Numbers as arguments: those of numpy, None for what is there without it, and what no number of the kind can be."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import EskerError, InvalidArgumentError, InvalidTypeError
from esker.fragment import write_fragments

ROWS = pa.table({"id": range(5)})


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    esker.write_dataset(ROWS, uri)
    esker.write_dataset(ROWS, uri, mode="append")
    return uri


def test_versions_may_be_integers_of_numpy(table: str, tmp_path: Path) -> None:
    one: Any = numpy.int64(1)
    dataset = esker.dataset(table, version=one)
    assert type(dataset.version) is int
    assert dataset.checkout_version(one).version == dataset.checkout_version((None, one)).version == 1
    dataset.tags.create("first", one)
    assert lance.dataset(table).tags.get_version("first") == 1
    assert dataset.create_branch("branch", one).count_rows() == dataset.shallow_clone(tmp_path / "c", one).count_rows()
    assert dataset.read_transaction(one) == dataset.read_transaction(1)
    assert len(esker.dataset(table).get_transactions(one)) == 1
    assert LanceDataset.commit(table, LanceOperation.UpdateConfig(), read_version=one).version == 3
    options: Any = {"interval": numpy.int64(5), "older_than_seconds": numpy.uint8(60)}
    esker.dataset(table).optimize.enable_auto_cleanup(options)
    assert esker.dataset(table).config()["lance.auto_cleanup.interval"] == "5"
    write_deltalake(tmp_path / "d", ROWS, target_file_size=one * 10_000)
    assert DeltaTable(tmp_path / "d", version=one - 1).version() == 0


def test_none_is_what_is_there_without_it_as_in_pylance(tmp_path: Path) -> None:
    for module in (lance, esker):
        given: Any = dict.fromkeys(("max_rows_per_file", "max_rows_per_group", "max_bytes_per_file"))
        uri = str(tmp_path / module.__name__)
        assert len(module.write_dataset(ROWS, uri, **given).get_fragments()) == 1
    nothing: Any = None
    assert len(write_fragments(ROWS, uri, max_rows_per_file=nothing)) == 1


CALLS: dict[str, Callable[[LanceDataset, Any], object]] = {
    "open": lambda it, given: esker.dataset(it.uri, version=given),
    "check out": lambda it, given: it.checkout_version((None, given)),
    "tag": lambda it, given: it.tags.create("x", given),
    "clone": lambda it, given: it.shallow_clone(f"{it.uri}-clone", given),
    "transaction": lambda it, given: it.read_transaction(given),
    "transactions": lambda it, given: it.get_transactions(given),
    "commit": lambda it, given: LanceDataset.commit(it, LanceOperation.UpdateConfig(), read_version=given),
    "rows of a file": lambda it, given: esker.write_dataset(ROWS, it, mode="append", max_rows_per_file=given),
    "memory": lambda it, given: esker.write_dataset(ROWS, it, mode="append", memory_limit=given),
    "limit": lambda it, given: it.to_table(limit=given),
    "Delta": lambda it, given: DeltaTable(f"{it.uri}-delta", version=given),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("given", [-1, 2**64, 1.5])
def test_what_is_no_such_number_is_an_error_of_its_own(call: str, given: object, table: str) -> None:
    write_deltalake(f"{table}-delta", ROWS)
    dataset = esker.dataset(table)
    kinds: tuple[type[EskerError], ...] = (InvalidArgumentError, InvalidTypeError)
    with pytest.raises(kinds, match=r"(expected|must be) .*found (-1|18446744073709551616|1\.5|float)"):
        CALLS[call](dataset, given)
    assert esker.dataset(table).version == 2
    assert esker.dataset(table).tags.list() == {}


def test_clean_ups_keep_as_many_versions_as_numpy_says(table: str) -> None:
    one: Any = numpy.int64(1)
    stats = esker.dataset(table).cleanup_old_versions(older_than=timedelta(0), retain_versions=one)
    assert stats.old_versions == 1
