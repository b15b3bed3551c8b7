"""A Delta log that others write to, and clean up, while it is read: only what is gone for good is lost."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

from esker._native.delta import Snapshot
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.delta.log.cleanup import clean_log
from esker.exceptions import CorruptFileError, NotFoundError
from tests.delta_logs import checkpoint

ROWS = pa.table({"n": [1]})
AT_ONCE = {"delta.logRetentionDuration": "interval 0 seconds"}


def _fill(path: Path, versions: int, **configuration: str) -> None:
    for number in range(versions):
        write_deltalake(path, ROWS, mode="append", configuration=configuration if number == 0 else None)


def _entry(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _watched(path: Path, when: Callable[[str, str], bool], work: Callable[[], object]) -> Store:
    """The table's store, whose first operation of a kind others come before."""
    done: list[int] = []

    def watch(verb: str, name: str) -> None:
        if when(verb, name) and not done:
            done.append(1)
            thread = Thread(target=work)
            thread.start()
            thread.join()

    return FaultStore(Store(str(path)), "", watch=watch).store


def test_a_checkpoint_that_comes_after_the_listing_is_no_loss(tmp_path: Path) -> None:
    _fill(tmp_path, 19)
    store = _watched(tmp_path, lambda verb, name: name.endswith("_last_checkpoint"), lambda: _fill(tmp_path, 2))
    assert Snapshot.load(store).version == 20


@pytest.mark.parametrize("version", [None, 18])
def test_a_clean_up_that_comes_after_the_listing_is_no_loss(version: int | None, tmp_path: Path) -> None:
    _fill(tmp_path, 19, **AT_ONCE)

    # The checkpoint of 10 goes, and what follows it, once there is one of 20.
    def others() -> None:
        time.sleep(0.01)
        _fill(tmp_path, 2)

    store = _watched(tmp_path, lambda verb, name: name.endswith(".checkpoint.parquet"), others)
    if version is None:
        assert Snapshot.load(store).version == 20
    else:
        with pytest.raises(NotFoundError, match="cleaned up"):
            Snapshot.load(store, version=version)


def test_what_is_lost_for_good_is_said(tmp_path: Path) -> None:
    _fill(tmp_path, 12)
    os.remove(tmp_path / _entry(11))
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":11}')
    with pytest.raises(CorruptFileError, match="newer entries are lost"):
        DeltaTable(tmp_path)


def test_a_handle_whose_next_entry_was_cleaned_up_opens_the_table_anew(tmp_path: Path) -> None:
    _fill(tmp_path, 1, **AT_ONCE)
    table = DeltaTable(tmp_path)
    for _ in range(12):
        _fill(tmp_path, 1)
        time.sleep(0.005)
    assert not (tmp_path / _entry(1)).exists()
    table.update_incremental()
    assert (table.version(), table.count()) == (12, 13)
    table.update_incremental()
    assert table.version() == 12


def test_a_clean_up_between_two_entries_of_a_refresh_is_noticed(tmp_path: Path) -> None:
    _fill(tmp_path, 9, **AT_ONCE)
    table = DeltaTable(tmp_path, version=5)

    def clean_up() -> None:
        time.sleep(0.01)
        _fill(tmp_path, 4)

    store = _watched(tmp_path, lambda verb, name: name == _entry(7), clean_up)
    assert table._snapshot.refresh(store).version == 12


@pytest.mark.parametrize("versions", [1, 5])
def test_a_handle_of_a_table_that_was_made_anew_goes_to_that(versions: int, tmp_path: Path) -> None:
    _fill(tmp_path / "t", 6)
    table = DeltaTable(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    _fill(tmp_path / "t", versions)
    table.update_incremental()
    assert (table.version(), table.count()) == (versions - 1, versions)


def test_a_handle_of_a_table_that_is_gone_says_so(tmp_path: Path) -> None:
    _fill(tmp_path / "t", 2)
    table = DeltaTable(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(NotFoundError, match="no Delta table"):
        table.update_incremental()


def test_a_gap_is_no_end(tmp_path: Path) -> None:
    _fill(tmp_path, 4)
    table = DeltaTable(tmp_path, version=1)
    shutil.move(tmp_path / _entry(2), tmp_path / "kept")
    with pytest.raises(CorruptFileError, match="version 2"):
        table.update_incremental()
    shutil.move(tmp_path / "kept", tmp_path / _entry(2))
    table.update_incremental()
    assert table.version() == 3


def test_the_end_of_a_hundred_versions_is_no_gap(tmp_path: Path) -> None:
    _fill(tmp_path, 100)
    table = DeltaTable(tmp_path)
    table.update_incremental()
    assert table.version() == 99
    _fill(tmp_path, 1)
    table.update_incremental()
    assert table.version() == 100


def _age(path: Path, days: float) -> None:
    then = time.time() - days * 86_400
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def _v2(path: Path, versions: int) -> None:
    _fill(path, versions, **{"delta.checkpointPolicy": "v2"})


def _sidecars(path: Path) -> set[str]:
    return {file.name for file in (path / "_delta_log" / "_sidecars").iterdir()}


def test_sidecars_go_with_their_checkpoint(tmp_path: Path) -> None:
    _v2(tmp_path, 15)
    old = _sidecars(tmp_path)
    _age(tmp_path, 40)
    _v2(tmp_path, 6)
    assert len(_sidecars(tmp_path)) == 2 or not old & _sidecars(tmp_path)
    table = DeltaTable(tmp_path)
    _age(tmp_path, 40)
    gone = clean_log(table._store, {}, table.version())
    assert old.isdisjoint(_sidecars(tmp_path))
    assert any("_sidecars" in path for path in gone) or not old & _sidecars(tmp_path)
    assert DeltaTable(tmp_path).count() == 21


def test_a_second_checkpoint_of_a_version_keeps_its_sidecars(tmp_path: Path) -> None:
    _v2(tmp_path, 12)
    DeltaTable(tmp_path, version=10).create_checkpoint()
    assert len(_sidecars(tmp_path)) == 2
    _age(tmp_path, 40)
    before = _sidecars(tmp_path)
    table = DeltaTable(tmp_path)
    clean_log(table._store, {}, table.version())
    assert not (tmp_path / _entry(9)).exists()
    assert _sidecars(tmp_path) == before
    for kept in (tmp_path / "_delta_log").glob("*.checkpoint.*"):
        # Each of the two is enough.
        other = [file for file in (tmp_path / "_delta_log").glob("*.checkpoint.*") if file != kept]
        for file in other:
            shutil.move(file, tmp_path / "kept")
        assert DeltaTable(tmp_path).count() == 12
        for file in other:
            shutil.move(tmp_path / "kept", file)


def test_a_checkpoint_that_cannot_be_read_keeps_all_sidecars(tmp_path: Path) -> None:
    _v2(tmp_path, 12)
    (newest,) = (tmp_path / "_delta_log").glob("*.checkpoint.*")
    second = tmp_path / "_delta_log" / f"{11:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    second.write_bytes(b"PAR1 of a later release PAR1")
    (tmp_path / "_delta_log" / "_sidecars" / "of-the-second.parquet").write_bytes(b"x")
    before = _sidecars(tmp_path)
    _age(tmp_path, 40)
    table = DeltaTable(tmp_path)
    for _ in range(2):
        clean_log(table._store, {}, table.version())
        assert _sidecars(tmp_path) == before
    assert not (tmp_path / _entry(9)).exists()
    assert newest.exists()


def test_a_broken_checkpoint_is_not_what_the_log_is_cut_by(tmp_path: Path) -> None:
    _fill(tmp_path, 12)
    parts = [tmp_path / "_delta_log" / f"{11:020}.checkpoint.{part:010}.{2:010}.parquet" for part in (1, 2)]
    checkpoint(tmp_path, parts[0].name, [])
    parts[1].write_bytes(b"")
    _age(tmp_path, 40)
    table = DeltaTable(tmp_path)
    clean_log(table._store, {}, table.version())
    assert not (tmp_path / _entry(9)).exists()
    assert (tmp_path / _entry(10)).exists()
    assert DeltaTable(tmp_path).count() == 12


def test_a_sidecar_of_a_checkpoint_in_the_making_stays(tmp_path: Path) -> None:
    _fill(tmp_path, 12, **AT_ONCE, **{"delta.checkpointPolicy": "v2"})
    young = tmp_path / "_delta_log" / "_sidecars" / "young.parquet"
    young.write_bytes(b"x")
    _fill(tmp_path, 10)
    assert not (tmp_path / _entry(3)).exists()
    assert young.exists()


def test_an_entry_that_comes_between_two_looks_is_read(tmp_path: Path) -> None:
    _fill(tmp_path, 3)
    table = DeltaTable(tmp_path)
    store = _watched(tmp_path, lambda verb, name: verb.startswith("list"), lambda: _fill(tmp_path, 1))
    found = table._snapshot.refresh(store)
    assert (found.version, found.num_files) == (3, 4)


@pytest.mark.parametrize("name", ["json#1", "json.tmp", "checkpoint.parquet#1", "checkpoint.parquet.tmp"])
def test_a_put_at_work_is_no_version_to_writers(name: str, tmp_path: Path) -> None:
    _fill(tmp_path, 2)
    # What deltalake links to the entry's name, or leaves there when it is killed before.
    shutil.copy(tmp_path / _entry(1), tmp_path / "_delta_log" / f"{2:020}.{name}")
    _fill(tmp_path, 1)
    table = DeltaTable(tmp_path)
    assert table.version() == 2
    assert (table.delete("n = 1")["num_deleted_rows"], table.version()) == (3, 3)


def test_a_table_is_made_where_another_was_about_to_be(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / f"{_entry(0)}#1").write_bytes(b"{")
    _fill(tmp_path, 1)
    assert (DeltaTable(tmp_path).version(), DeltaTable(tmp_path).count()) == (0, 1)
