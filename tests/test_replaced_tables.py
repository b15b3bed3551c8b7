"""A table that was dropped, and perhaps made anew, below an open handle: a change of the handle's rows is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError
from esker.repo import Repository

_OLD = pa.table({"k": pa.array(range(100)), "v": pa.array([f"old {i}" for i in range(100)])})
_NEW = pa.table({"k": pa.array(range(1000, 1050)), "v": pa.array([f"new {i}" for i in range(50)])})
_OTHER = pa.table({"v": pa.array(range(50)), "k": pa.array([f"x{i}" for i in range(50)])})

_LANCE: dict[str, Callable[[Any], object]] = {
    "delete": lambda ds: ds.delete("k < 10"),
    "update": lambda ds: ds.update({"v": "'u'"}, where="k < 10"),
    "merge": lambda ds: (
        ds.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(_OLD.slice(0, 5))
    ),
    "add columns": lambda ds: ds.add_columns({"w": "k + 1"}),
    "drop columns": lambda ds: ds.drop_columns(["v"]),
    "insert": lambda ds: ds.insert(_OLD.slice(0, 5)),
}
_DELTA: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda dt: dt.delete("k < 10"),
    "update": lambda dt: dt.update({"v": "'u'"}, predicate="k < 10"),
    "merge": lambda dt: (
        dt.merge(_OLD.slice(0, 5), "t.k = s.k", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
    "append": lambda dt: write_deltalake(dt, _OLD.slice(0, 5), mode="append"),
    "constraint": lambda dt: dt.alter.add_constraint({"c": "k >= 0"}),
}


def _dropped(uri: str) -> Path:
    """Drops a table; where its files are kept, so that they can be read as if a store were slow to delete them."""
    return Path(shutil.move(uri, f"{uri}.old"))


def _keep_files(old: Path, uri: str) -> None:
    for path in old.rglob("*"):
        if path.suffix in (".lance", ".parquet") and path.is_file():
            shutil.copy(path, Path(uri) / path.relative_to(old))


def _lance(uri: str, table: pa.Table, versions: int) -> Any:
    esker.write_dataset(table.slice(0, 20), uri)
    for start in range(1, versions):
        esker.write_dataset(table.slice(20 + start, 1), uri, mode="append")
    return esker.dataset(uri)


def _delta(uri: str, table: pa.Table, versions: int) -> DeltaTable:
    write_deltalake(uri, table.slice(0, 20))
    for start in range(1, versions):
        write_deltalake(uri, table.slice(20 + start, 1), mode="append")
    return DeltaTable(uri)


@pytest.mark.parametrize("new", [_NEW, _OTHER], ids=["same columns", "other columns"])
@pytest.mark.parametrize("versions", [1, 3, 4, 6])
@pytest.mark.parametrize("verb", _LANCE)
def test_a_change_of_a_lance_table_that_was_made_anew_is_refused(
    tmp_path: Path, verb: str, versions: int, new: pa.Table
) -> None:
    uri = str(tmp_path / "t.lance")
    handle = _lance(uri, _OLD, 3)
    old = _dropped(uri)
    _lance(uri, new, versions)
    _keep_files(old, uri)
    before = esker.dataset(uri)
    with pytest.raises(CommitConflictError, match="replaced"):
        _LANCE[verb](handle)
    after = esker.dataset(uri)
    assert after.version == before.version
    assert after.to_table() == before.to_table()
    # Opened again, it works.
    assert esker.dataset(uri).delete("k IS NOT NULL") is not None


@pytest.mark.parametrize("new", [_NEW, _OTHER], ids=["same columns", "other columns"])
@pytest.mark.parametrize("versions", [3, 4, 6])
@pytest.mark.parametrize("verb", _DELTA)
def test_a_change_of_a_delta_table_that_was_made_anew_is_refused(
    tmp_path: Path, verb: str, versions: int, new: pa.Table
) -> None:
    uri = str(tmp_path / "t")
    handle = _delta(uri, _OLD, 3)
    old = _dropped(uri)
    _delta(uri, new, versions)
    _keep_files(old, uri)
    before = DeltaTable(uri)
    with pytest.raises(CommitConflictError, match="replaced"):
        _DELTA[verb](handle)
    after = DeltaTable(uri)
    assert after.version() == before.version()
    assert after.to_pyarrow_table() == before.to_pyarrow_table()


@pytest.mark.parametrize("versions", [3, 4, 6])
def test_a_delta_handle_goes_to_the_newest_version_of_the_table_that_is_there_now(
    tmp_path: Path, versions: int
) -> None:
    uri = str(tmp_path / "t")
    handle = _delta(uri, _OLD, 3)
    shutil.rmtree(uri)
    expected = _delta(uri, _NEW, versions)
    handle.update_incremental()
    assert handle.version() == expected.version()
    if versions > 3:
        assert handle.to_pyarrow_table() == expected.to_pyarrow_table()


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_handle_of_a_table_that_others_write_to_goes_on(tmp_path: Path, format: str) -> None:
    """Neither clean-ups, nor checkpoints, nor others' commits make a table another one."""
    uri = str(tmp_path / "t")
    if format == "lance":
        ours = _lance(uri, _OLD, 3)
        others = esker.dataset(uri)
        others.insert(_OLD.slice(50, 2))
        others.cleanup_old_versions(older_than=timedelta(0))
        ours.delete("k = 0")
        assert ours.count_rows() == 23
        return
    handle = _delta(uri, _OLD, 3)
    other = DeltaTable(uri)
    other.create_checkpoint()
    write_deltalake(uri, _OLD.slice(50, 2), mode="append")
    handle.delete("k = 0")
    assert len(DeltaTable(uri).to_pyarrow_table()) == 23


def test_a_table_that_was_made_anew_within_a_transaction_is_another(tmp_path: Path) -> None:
    main = Repository.create(str(tmp_path / "lake")).branch("main")
    with main.transact("twice") as tx:
        uri = tx.store_uri("t")
        stale = esker.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        esker.LanceDataset.drop(uri)
        esker.write_dataset(pa.table({"id": [10, 20, 30]}), uri)
        with pytest.raises(CommitConflictError, match="another manifest"):
            esker.write_dataset(pa.table({"id": [4]}), stale, mode="append")
    assert esker.dataset(main.store_uri("t")).to_table()["id"].to_pylist() == [10, 20, 30]
