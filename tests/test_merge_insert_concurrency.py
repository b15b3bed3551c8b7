"""Upserts at the same time: no row twice, none lost, whoever writes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native import table as native
from esker.exceptions import CommitConflictError
from esker.lance.log import LanceLog
from tests.merging import upsert

PRIMARY = {"lance-schema:unenforced-primary-key": "true"}


def _schema(type_: pa.DataType, *, primary: bool) -> pa.Schema:
    key = pa.field("id", type_, nullable=False, metadata=PRIMARY if primary else None)
    return pa.schema([key, pa.field("v", pa.int64())])


def _rows(ids: Any, v: int = 0, type_: pa.DataType | None = None, *, primary: bool = False) -> pa.Table:
    type_ = type_ or pa.int64()
    return pa.table(
        [pa.array(ids, type_), pa.array([v] * len(ids), pa.int64())], schema=_schema(type_, primary=primary)
    )


def _transaction(uri: str, version: int) -> native.Transaction:
    log: LanceLog = esker.dataset(uri)._log
    found = log.transaction(log.open(version)[0])
    assert found is not None
    return found


def _filter(uri: str, version: int) -> bytes:
    fields = _transaction(uri, version).decoded().fields()
    found = fields["inserted_rows"]
    assert isinstance(found, bytes)
    return found


KEYS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.int64(), [1, 2, 3], [3, 7, -8]),
    (pa.int32(), [1, 2, 3], [3, 7, -8]),
    (pa.uint32(), [1, 2, 3], [3, 7, 2**32 - 1]),
    (pa.uint64(), [1, 2, 3], [3, 7, 2**64 - 1]),
    (pa.string(), ["a", "b"], ["b", "cd", ""]),
    (pa.large_string(), ["a", "b"], ["b", "cd", ""]),
    (pa.binary(), [b"a", b"b"], [b"b", b"cd", b""]),
]


@pytest.mark.parametrize(("type_", "old", "new"), KEYS, ids=[str(key[0]) for key in KEYS])
def test_the_filter_over_inserted_keys_is_pylances_to_the_byte(
    tmp_path: Path, type_: pa.DataType, old: list[Any], new: list[Any]
) -> None:
    uris = [str(tmp_path / name) for name in ("ours", "theirs")]
    for uri in uris:
        lance.write_dataset(_rows(old, type_=type_, primary=True), uri)
    source = _rows(new, 1, type_, primary=True)
    for uri, module in zip(uris, (esker, lance), strict=True):
        dataset: Any = module.dataset(uri)
        upsert(dataset.merge_insert()).execute(source)
        dataset.merge_insert("id").when_matched_update_all().execute(source)
        dataset.merge_insert("id").when_matched_delete().execute(source.slice(0, 1))
    for version in (2, 3, 4):
        assert _filter(uris[0], version) == _filter(uris[1], version)
    assert _filter(uris[0], 2) != _filter(uris[0], 3) != _filter(uris[0], 4) == b""


def test_the_filter_of_a_key_of_two_columns_is_pylances(tmp_path: Path) -> None:
    fields = [pa.field("a", pa.string(), False, PRIMARY), pa.field("b", pa.int32(), False, PRIMARY)]
    made = []
    for name, module in (("ours", esker), ("theirs", lance)):
        uri = str(tmp_path / name)
        lance.write_dataset(pa.table([["x"], pa.array([1], pa.int32())], schema=pa.schema(fields)), uri)
        dataset: Any = module.dataset(uri)
        source = pa.table([["x", "y", ""], pa.array([1, 2, -3], pa.int32())], schema=pa.schema(fields))
        upsert(dataset.merge_insert(["a", "b"])).execute(source)
        made.append(_filter(uri, 2))
    assert made[0] == made[1]


def _race(uri: str, first: Callable[[], object], second: Callable[[], object]) -> None:
    """Runs `second`, with `first` done after it has read and before it commits."""
    newest = LanceLog.newest
    done = threading.Event()

    def look(self: LanceLog) -> Any:
        # What is there to be read is known by now: this look is for committing.
        if not done.is_set():
            done.set()
            first()
        return newest(self)

    LanceLog.newest = look  # type: ignore[method-assign]
    try:
        second()
    finally:
        LanceLog.newest = newest  # type: ignore[method-assign]
    assert done.is_set()


@pytest.mark.parametrize("primary", [True, False], ids=["primary key", "any key"])
@pytest.mark.parametrize("clauses", [upsert, lambda m: m.when_not_matched_insert_all()], ids=["upsert", "insert"])
@pytest.mark.parametrize("type_", [pa.int64(), pa.int16(), pa.float64(), pa.date32(), pa.string()], ids=str)
def test_keys_that_another_merge_inserted_meanwhile_are_not_inserted_again(
    uri: str, primary: bool, clauses: Any, type_: pa.DataType
) -> None:
    def rows(ids: list[int], v: int) -> pa.Table:
        return _rows(pa.array(ids).cast(pa.int32() if type_ == pa.date32() else type_).cast(type_), v, type_,
                     primary=primary)  # fmt: skip

    esker.write_dataset(rows([1, 2], 0), uri)
    ours, others = esker.dataset(uri), esker.dataset(uri)
    transaction, _ = clauses(ours.merge_insert("id")).execute_uncommitted(rows([2, 7, 9], 1))
    clauses(others.merge_insert("id")).execute(rows([7, 8], 2))
    with pytest.raises(CommitConflictError, match="our Update of version 1 .* conflicts with the Update"):
        esker.LanceDataset.commit(uri, transaction)
    clauses(ours.merge_insert("id")).execute(rows([2, 7, 9], 1))
    assert ours.version == 3
    assert sorted(map(str, ours.to_table()["id"].to_pylist())) == sorted(
        map(str, rows([1, 2, 7, 8, 9], 0)["id"].to_pylist())
    )


def test_other_keys_are_no_conflict(uri: str) -> None:
    for primary in (True, False):
        place = f"{uri}-{primary}"
        esker.write_dataset(_rows(list(range(10)), primary=primary), place)
        ours = esker.dataset(place)
        transaction, _ = upsert(ours.merge_insert("id")).execute_uncommitted(_rows([1, 20, 21], 1, primary=primary))
        upsert(esker.dataset(place).merge_insert("id")).execute(_rows([30, 31], 2, primary=primary))
        assert esker.LanceDataset.commit(place, transaction).count_rows() == 14


def test_a_merge_that_inserted_nothing_is_no_conflict(uri: str) -> None:
    esker.write_dataset(_rows([1, 2, 3]), uri, max_rows_per_file=1)
    transaction, _ = upsert(esker.dataset(uri).merge_insert("id")).execute_uncommitted(_rows([1], 1))
    esker.dataset(uri).update({"v": "5"}, where="id = 2")
    assert esker.LanceDataset.commit(uri, transaction).to_table().num_rows == 3


def test_an_update_that_does_not_say_which_keys_it_wrote_is_looked_at(uri: str) -> None:
    esker.write_dataset(_rows([1, 2, 3]), uri, max_rows_per_file=1)
    ours = esker.dataset(uri)
    transaction, _ = upsert(ours.merge_insert("id")).execute_uncommitted(_rows([7], 1))
    esker.dataset(uri).update({"id": "7"}, where="id = 2")
    with pytest.raises(CommitConflictError):
        esker.LanceDataset.commit(uri, transaction)
    assert upsert(ours.merge_insert("id")).execute(_rows([7], 1))["num_updated_rows"] == 1
    assert sorted(ours.to_table()["id"].to_pylist()) == [1, 3, 7]


def test_rows_of_one_fragment_that_two_merges_change_are_reconciled(uri: str) -> None:
    esker.write_dataset(_rows(list(range(100))), uri)
    ours = esker.dataset(uri)
    others = esker.dataset(uri)
    ours.merge_insert("id")
    _race(
        uri,
        lambda: others.merge_insert("id").when_matched_update_all().execute(_rows([1, 2], 2)),
        lambda: upsert(ours.merge_insert("id")).execute(_rows([3, 200], 1)),
    )
    found = dict(zip(*(ours.to_table()[name].to_pylist() for name in ("id", "v")), strict=True))
    assert found == {**dict.fromkeys(range(100), 0), 1: 2, 2: 2, 3: 1, 200: 1}


@pytest.mark.parametrize("retries", [0, 3])
def test_a_stream_is_merged_again_where_others_were_faster(uri: str, retries: int) -> None:
    esker.write_dataset(_rows([1, 2, 3]), uri)
    ours = esker.dataset(uri)
    esker.dataset(uri).merge_insert("id").when_matched_update_all().execute(_rows([2], 5))
    merge = upsert(ours.merge_insert("id")).conflict_retries(retries).memory_limit(1)
    batches = iter(_rows([2, 7], 9).to_batches())
    if retries == 0:
        with pytest.raises(CommitConflictError):
            merge.execute(batches, schema=_rows([]).schema)
        assert ours.version == 1
        return
    assert merge.execute(batches, schema=_rows([]).schema) == {
        "num_inserted_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert sorted(zip(*(ours.to_table()[n].to_pylist() for n in ("id", "v")), strict=True)) == [
        (1, 0), (2, 9), (3, 0), (7, 9),
    ]  # fmt: skip
    versions = [esker.dataset(uri, version=number) for number in (1, 2, 3)]
    named = {file.path for one in versions for fragment in one.get_fragments() for file in fragment.data_files()}
    assert {path.name for path in Path(uri, "data").iterdir()} == named, "what the first try wrote is left behind"


UPSERT = """
import sys, time, os, random, pyarrow as pa
library, uri, gate = sys.argv[1:4]
writer, writers, rounds = map(int, sys.argv[4:])
module = __import__(library)
open(gate + f"/{writer}", "w").close()
while len(os.listdir(gate)) < writers:
    time.sleep(0.005)
chosen = random.Random(writer)
for number in range(rounds):
    ids = sorted(chosen.sample(range(60), 12))
    dataset = module.dataset(uri)
    source = pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([writer * 1000 + number] * 12, pa.int64())},
                      schema=dataset.schema)
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    from datetime import timedelta
    merge.conflict_retries(200).retry_timeout(timedelta(seconds=110)).execute(source)
    print(*ids)
"""


@pytest.mark.parametrize("libraries", [["esker"], ["esker", "lance"]], ids=["esker", "with pylance"])
def test_processes_that_upsert_the_same_keys_lose_and_double_none(libraries: list[str], tmp_path: Path) -> None:
    # Among ourselves any key will do; pylance looks at declared ones only.
    uri, gate = str(tmp_path / "table"), tmp_path / "gate"
    gate.mkdir()
    primary = len(libraries) > 1
    lance.write_dataset(_rows([1], primary=primary), uri)
    writers, rounds = 6, 5
    running = [
        subprocess.Popen(
            [sys.executable, "-c", UPSERT, libraries[number % len(libraries)], uri, str(gate), str(number),
             str(writers), str(rounds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(writers)
    ]  # fmt: skip
    results = [process.communicate(timeout=180) for process in running]
    assert not any(process.returncode for process in running), "\n".join(error for _, error in results)
    expected = {1, *(int(word) for out, _ in results for word in out.split())}
    dataset = esker.dataset(uri)
    ids = dataset.to_table()["id"].to_pylist()
    assert sorted(ids) == sorted(expected)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == sorted(expected)
    assert dataset.version == 1 + writers * rounds
    last = {writer * 1000 + rounds - 1 for writer in range(writers)}
    assert last & set(dataset.to_table()["v"].to_pylist())


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("appender", [esker, lance])
def test_a_declared_key_that_was_appended_meanwhile_is_updated(uri: str, appender: Any, stable: bool) -> None:
    def upserted(library: Any, uri: str) -> Any:
        rows = _rows([0, 1], primary=True)
        dataset = library.write_dataset(rows, uri, mode="overwrite", enable_stable_row_ids=stable)
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        appender.write_dataset(_rows([2], v=5, primary=True), uri, mode="append")
        counts = merge.execute(_rows([1, 2], v=9, primary=True))
        found = library.dataset(uri).to_table().sort_by("id").to_pydict()
        return found, counts["num_updated_rows"], counts["num_inserted_rows"]

    ours = upserted(esker, uri + "/ours")
    assert ours == ({"id": [0, 1, 2], "v": [0, 9, 9]}, 2, 0)
    assert ours == upserted(lance, uri + "/theirs")
