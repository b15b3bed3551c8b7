"""A Delta table that is deleted, and perhaps made anew, while a change of it is put: the change is a conflict."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError
from tests.tree_branches import Watch, files_below, meanwhile, rows_of, watched_stores

CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, rows_of(9), mode="append"),
    "overwrite": lambda table: write_deltalake(table, rows_of(9), mode="overwrite"),
    "delete": lambda table: table.delete("id < 2"),
    "update": lambda table: table.update({"id": "id + 100"}, predicate="id < 2"),
    "property": lambda table: table.alter.set_table_properties({"delta.checkpointInterval": "5"}),
}


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


def _table(uri: str, versions: int, start: int = 0) -> None:
    for number in range(versions):
        write_deltalake(uri, rows_of(start + number), mode="append")


def _ids(uri: str) -> list[int]:
    found: pa.Table = DeltaTable(uri).to_pyarrow_table()
    return sorted(found["id"].to_pylist())


@pytest.mark.parametrize("versions", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_table_that_is_deleted_right_before_the_put_is_refused(
    uri: str, watched: dict[str, Watch], change: str, versions: int
) -> None:
    """It is put on nothing, or its number is another table's, which stays as it is."""
    _table(uri, 3)

    def make_anew() -> None:
        shutil.rmtree(uri)
        _table(uri, versions, 50)

    table = DeltaTable(uri)
    watched["f"] = meanwhile(make_anew, verb="put_if_absent", part="_delta_log/")
    with pytest.raises(CommitConflictError, match="the table was deleted or replaced") as caught:
        CHANGES[change](table)
    watched.clear()
    assert not caught.value.retryable
    if versions:
        assert DeltaTable(uri).version() == versions - 1
        assert _ids(uri) == [*range(50, 50 + versions)]
    else:
        assert not [path for path in files_below(uri) if path.startswith("_delta_log/")]
        _table(uri, 1)
        assert _ids(uri) == [0]


def test_an_entry_that_a_checkpoint_stands_for_is_not_missed(uri: str) -> None:
    _table(uri, 3)
    DeltaTable(uri).create_checkpoint()
    for path in Path(uri, "_delta_log").glob("*.json"):
        path.unlink()
    write_deltalake(uri, rows_of(9), mode="append")
    assert _ids(uri) == [0, 1, 2, 9]
