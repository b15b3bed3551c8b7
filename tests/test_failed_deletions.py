"""A deletion file that cannot be written ends the change, and none of those of other fragments stays behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import EskerError
from esker.store import stores


def _upsert(dataset: esker.LanceDataset) -> object:
    rows = pa.table({"id": pa.array([1, 6, 11, 16], pa.int64())})
    return dataset.merge_insert("id").when_matched_update_all().execute(rows)


CHANGES: dict[str, Callable[[esker.LanceDataset], object]] = {
    "delete": lambda dataset: dataset.delete("id % 5 = 1"),
    "update": lambda dataset: dataset.update({"id": "id + 1000"}, where="id % 5 = 1"),
    "merge": _upsert,
}


@pytest.mark.parametrize("fault", ["fail", "lose_reply", "disk_full"])
@pytest.mark.parametrize("change", CHANGES)
def test_no_deletion_file_is_left(uri: str, change: str, fault: str) -> None:
    esker.write_dataset(pa.table({"id": pa.array(range(200), pa.int64())}), uri, max_rows_per_file=5)
    before = {path for path in Path(uri).rglob("*") if path.is_file()}
    seen: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if path.startswith("_deletions/") and verb == "put":
            seen.append(path)
            return fault if len(seen) == 3 else None
        return None

    def failing(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("fault://"), durable=False), watch=watch).store

    stores.register("fault", failing)
    try:
        with pytest.raises(EskerError):
            CHANGES[change](esker.dataset(f"fault://{uri}"))
    finally:
        del stores._factories["fault"]
    assert len(seen) >= 3
    assert {path for path in Path(uri).rglob("*") if path.is_file()} == before
    assert lance.dataset(uri).count_rows() == 200
    CHANGES[change](esker.dataset(uri))
    assert lance.dataset(uri).version == 2
