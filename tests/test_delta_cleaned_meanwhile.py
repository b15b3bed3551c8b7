"""Versions that a clean-up of the log takes away while a change is under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.delta.log.target import WriteTarget
from esker.exceptions import CommitConflictError, NotFoundError
from tests.delta_rows import rows
from tests.test_delta_delete import read_by_theirs

NONE_KEPT: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.checkpointInterval": "1000",
}


def clean(path: Path) -> None:
    """Leaves nothing of the log below the newest version."""
    DeltaTable(path).create_checkpoint()
    time.sleep(0.01)
    DeltaTable(path).cleanup_metadata()


def append(path: Path, *ids: int) -> None:
    deltalake.write_deltalake(path, pa.table({"id": list(ids)}), mode="append")


CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "update": lambda table: table.update({"id": "id + 100"}, predicate="id < 3"),
    "delete": lambda table: table.delete("id < 3"),
    "merge": lambda table: (
        table.merge(pa.table({"id": [1, 2]}), "s.id = t.id", source_alias="s", target_alias="t")
        .when_matched_update({"id": "s.id + 100"})
        .execute()
    ),
    "replace": lambda table: write_deltalake(table, pa.table({"id": [1]}), mode="overwrite", predicate="id < 3"),
}
LEFT = {"update": [7, 8, 101, 102, 102], "delete": [7, 8], "merge": [7, 8, 101, 102, 102], "replace": [1, 7, 8]}


@pytest.mark.parametrize("verb", list(CHANGES))
def test_a_lost_race_is_run_again_from_a_version_that_is_left(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 7]}), configuration=NONE_KEPT)
    stale = DeltaTable(tmp_path)
    append(tmp_path, 2)
    later = WriteTarget.later
    seen: list[tuple[int, int]] = []

    def cleaned(self: WriteTarget, version: int) -> WriteTarget:
        if not seen:
            append(tmp_path, 8)
            clean(tmp_path)
        found = later(self, version)
        seen.append((version, found.base.version))
        return found

    monkeypatch.setattr(WriteTarget, "later", cleaned)
    CHANGES[verb](stale)
    assert seen == [(1, 2)]
    table = DeltaTable(tmp_path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == LEFT[verb]
    assert table.version() == stale.version() == 3
    assert rows(table.to_pyarrow_table()) == rows(read_by_theirs(tmp_path))


def test_a_checkpoint_of_a_version_that_is_gone_says_so(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=NONE_KEPT)
    DeltaTable(tmp_path).create_checkpoint()
    append(tmp_path, 2)
    stale = DeltaTable(tmp_path)
    append(tmp_path, 3)
    clean(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(NotFoundError, match="version 1 of .* was cleaned up: the oldest that can be opened is 2"):
        stale.create_checkpoint()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    stale.update({"id": "id + 100"}, predicate="id = 1")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [2, 3, 101]


def test_a_checkpoint_of_a_version_that_another_checkpoint_has_by_now_is_written(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=NONE_KEPT)
    DeltaTable(tmp_path).create_checkpoint()
    append(tmp_path, 2)
    stale = DeltaTable(tmp_path)
    clean(tmp_path)
    stale.create_checkpoint()
    assert sorted(read_by_theirs(tmp_path)["id"].to_pylist()) == [1, 2]


def test_a_change_beside_an_entry_that_is_gone_is_told_to_start_anew(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), configuration=NONE_KEPT)
    stale = DeltaTable(tmp_path)
    append(tmp_path, 3)
    append(tmp_path, 4)
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(
        CommitConflictError,
        match="version 1 of .*the entry is there no more that another writer committed.*open the table again",
    ):
        stale.update({"id": "id + 100"}, predicate="id < 3")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3, 4]
