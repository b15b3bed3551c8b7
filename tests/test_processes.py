"""Datasets in other processes: pickled to spawned ones, inherited by forked ones after use."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Literal

import pytest

import esker
from tests.samples import people


@pytest.fixture
def dataset(uri: str) -> esker.LanceDataset:
    return esker.write_dataset(people(10_000), uri, max_rows_per_file=3000)


def _rows(dataset: esker.LanceDataset, start: int) -> tuple[int, list[int], int]:
    taken = dataset.take([start, start + 1], columns=["id"])["id"].to_pylist()
    return os.getpid(), taken, dataset.count_rows(f"id >= {start}")


_inherited: list[esker.LanceDataset] = []


def _inherited_rows(start: int) -> tuple[int, list[int], int]:
    return _rows(_inherited[0], start)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_read_a_pickled_dataset(
    method: Literal["fork", "spawn", "forkserver"], dataset: esker.LanceDataset
) -> None:
    dataset.to_table()
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(_rows, [dataset] * 4, range(0, 4000, 1000), timeout=60))
    for start, (pid, taken, count) in zip(range(0, 4000, 1000), found, strict=True):
        assert pid != os.getpid()
        assert (taken, count) == ([start, start + 1], 10_000 - start)


def test_a_forked_worker_uses_the_dataset_that_its_parent_used(dataset: esker.LanceDataset) -> None:
    # As the workers of a PyTorch DataLoader do: the parent has read, and its threads are not there in the child.
    assert dataset.to_table().num_rows == 10_000
    assert dataset.take([5], columns=["id"])["id"].to_pylist() == [5]
    _inherited[:] = [dataset]
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
        found = list(pool.map(_inherited_rows, range(0, 6000, 1000), timeout=60))
    assert [taken[0] for _, taken, _ in found] == list(range(0, 6000, 1000))
    assert dataset.count_rows("id < 10") == 10


def _append(uri: str, start: int) -> int:
    return esker.write_dataset(people(10, start=start), uri, mode="append").version


def test_a_forked_worker_writes_after_its_parent_wrote(dataset: esker.LanceDataset) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        versions = list(pool.map(_append, [dataset.uri] * 4, range(20_000, 20_040, 10), timeout=60))
    assert sorted(versions) == [2, 3, 4, 5]
    assert esker.dataset(dataset.uri).count_rows() == 10_040


def test_pickled_copies_keep_version_and_options(dataset: esker.LanceDataset) -> None:
    with_options = esker.dataset(dataset.uri, default_scan_options={"columns": ["id"]})
    esker.write_dataset(people(5), dataset.uri, mode="overwrite")
    copy = pickle.loads(pickle.dumps(with_options))
    assert (copy.version, copy.count_rows(), copy.to_table().column_names) == (1, 10_000, ["id"])
    fragment = pickle.loads(pickle.dumps(copy.get_fragments()[3]))
    assert (fragment.fragment_id, fragment.count_rows()) == (3, 1000)
    metadata = pickle.loads(pickle.dumps(fragment.metadata))
    assert metadata == fragment.metadata
