"""`alter` of a handle that another thread moves to a later version meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, Field, PrimitiveType, alter, write_deltalake
from esker.exceptions import CommitConflictError

NOTE = Field("note", PrimitiveType("string"))
OTHERS: dict[str, Callable[[DeltaTable], object]] = {
    "a column": lambda table: table.alter.add_columns(NOTE),
    "a property": lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
    "a constraint": lambda table: table.alter.add_constraint({"small": "id < 100"}),
    "rows": lambda table: write_deltalake(table, pa.table({"id": [-5]}), mode="append"),
}


def other_thread(work: Callable[[], object]) -> None:
    thread = Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("other", OTHERS)
def test_what_another_thread_of_the_handle_commits_while_rows_are_checked_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    table = DeltaTable(tmp_path)
    read = alter._rows

    def beside(target: Any) -> Iterator[pa.RecordBatch]:
        yield from read(target)
        monkeypatch.setattr(alter, "_rows", read)
        other_thread(lambda: OTHERS[other](table))

    monkeypatch.setattr(alter, "_rows", beside)
    with pytest.raises(CommitConflictError, match="computed from"):
        table.alter.add_constraint({"positive": "id > 0"})
    assert table.version() == DeltaTable(tmp_path).version() == 1
    assert "delta.constraints.positive" not in table.metadata().configuration


def test_a_change_of_columns_is_of_the_version_that_it_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    table = DeltaTable(tmp_path)
    described = alter._described

    def beside(known: Field, given: Field | None) -> Field:
        monkeypatch.setattr(alter, "_described", described)
        other_thread(lambda: OTHERS["a property"](table))
        return described(known, given)

    monkeypatch.setattr(alter, "_described", beside)
    with pytest.raises(CommitConflictError, match="computed from"):
        table.alter.add_columns(NOTE)
    table.alter.add_columns(NOTE)
    found = DeltaTable(tmp_path)
    assert [field.name for field in found.schema().fields] == ["id", "note"]
    assert found.metadata().configuration == {"delta.appendOnly": "true"}
