"""What follows a Delta commit: it may fail, and the commit is there all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esker._native.delta import Snapshot
from esker.delta import AddAction, DeltaTable, Field, Schema, write_deltalake
from esker.delta.log import post_commit

ROWS = pa.table({"n": [1]})
EVERY = {"delta.checkpointInterval": "1"}


def _fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError("it cannot be done")


def _checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(post_commit, "write_checkpoint", _fails)


def _clean_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(post_commit, "clean_log", _fails)


def _refresh(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeltaTable, "update_incremental", _fails)


def _replay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Snapshot, "refresh", _fails)


FAILURES: list[Callable[[pytest.MonkeyPatch], None]] = [_checkpoint, _clean_up, _refresh, _replay]
WRITES: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, ROWS, mode="append"),
    "overwrite": lambda table: write_deltalake(table, ROWS, mode="overwrite"),
    "partial overwrite": lambda table: write_deltalake(table, ROWS, mode="overwrite", predicate="n = 1"),
    "alter": lambda table: table.alter.add_columns(Field("x", "long")),
    "transaction": lambda table: table.create_write_transaction(
        [AddAction(Path(table.file_uris()[0]).name + "-2", 1, {}, 0, True, "{}")], "append", table.schema()
    ),
    "create": lambda table: DeltaTable.create(
        table.table_uri, Schema([Field("n", "long")]), mode="overwrite", configuration=EVERY
    ),
}


@pytest.mark.parametrize("is_strict", [False, True], ids=["plain", "-W error"])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("kind", WRITES)
def test_what_fails_after_a_commit_does_not_fail_it(
    kind: str,
    failure: Callable[[pytest.MonkeyPatch], None],
    is_strict: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    write_deltalake(tmp_path, ROWS, configuration=EVERY)
    table = DeltaTable(tmp_path)
    failure(monkeypatch)
    with warnings.catch_warnings(record=not is_strict) as said:
        warnings.simplefilter("error" if is_strict else "always")
        WRITES[kind](table)
    monkeypatch.undo()
    assert DeltaTable(tmp_path).version() == 1
    uses_handle = kind != "create" or failure is not _refresh
    if not is_strict and said is not None and uses_handle:
        assert any("is committed, but what follows" in str(warning.message) for warning in said)
    # The handle goes on from where it is.
    table.update_incremental()
    assert table.version() == 1
    if kind not in ("transaction", "create", "overwrite"):
        assert table.count() == (2 if kind == "append" else 1)


def test_a_bad_property_does_not_fail_a_commit(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    path.write_text(path.read_text().replace('"configuration":{}', '"configuration":{"delta.checkpointInterval":"x"}'))
    with pytest.warns(UserWarning, match="is committed, but what follows"):
        write_deltalake(tmp_path, ROWS, mode="append")
    assert DeltaTable(tmp_path).count() == 2
