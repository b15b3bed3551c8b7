"""Deletes, updates and merges that lose a race, over a store that fails as well, at any of its operations.

What the other writer does is there in the end, once; what the verb told to be done is there on top of it, and what it
told to be refused is not. `ESKER_DOUBLE_FAULTS=1` tries all faults at all operations; else it is every 37th of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import CommitProperties, DeltaTable, Field, write_deltalake
from esker.delta.log.commit import DeltaCommit
from esker.delta.schema import PrimitiveType
from esker.exceptions import CommitConflictError, EskerError
from esker.store import stores
from tests.faulty import FAULTS, Faulty
from tests.test_delta_delete import read_by_theirs

COUNT = 900
EVERY = int(os.environ.get("ESKER_DOUBLE_FAULTS", "37"))
Rows = dict[int, int]
SOURCE = pa.table({"id": [0, 3, 777777], "n": [-5, 100, 7]})


def _delete(table: DeltaTable) -> None:
    table.delete("id % 3 = 0")


def _update(table: DeltaTable) -> None:
    table.update({"n": "n + 1"}, predicate="id % 3 = 0")


def _merge(table: DeltaTable) -> None:
    merger = table.merge(SOURCE, "t.id = s.id", "s", "t").when_matched_delete("s.n < 0")
    merger.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()


def _merged(found: Rows) -> Rows:
    for key, value in ((0, -5), (3, 100), (777777, 7)):
        if key in found and value < 0:
            del found[key]
        else:
            found[key] = found.get(key, 0) + value
    return found


def _replace(table: DeltaTable) -> None:
    data = SOURCE.to_reader(max_chunksize=2)
    write_deltalake(table, data, mode="overwrite", predicate="id % 3 = 0", schema_mode="merge")


VERBS: dict[str, tuple[Callable[[DeltaTable], None], Callable[[Rows], Rows]]] = {
    "delete": (_delete, lambda found: {key: value for key, value in found.items() if key % 3}),
    "update": (_update, lambda found: {key: value + (key % 3 == 0) for key, value in found.items()}),
    "merge": (_merge, lambda found: _merged(dict(found))),
    "replace": (
        _replace,
        lambda found: {**{key: value for key, value in found.items() if key % 3}, 0: -5, 3: 100, 777777: 7},
    ),
}


def _appended(path: Path) -> None:
    write_deltalake(path, pa.table({"id": [777777, 900000], "n": [1, 1]}), mode="append")


def _cleaned(path: Path) -> None:
    _appended(path)
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).cleanup_metadata()


def _went_back(path: Path) -> None:
    write_deltalake(path, DeltaTable(path, 0).to_pyarrow_table(), mode="overwrite")


def _altered(path: Path) -> None:
    DeltaTable(path).alter.add_columns([Field("more", PrimitiveType("string"))])


OTHERS: dict[str, tuple[Callable[[Path], object], Callable[[Rows], Rows]]] = {
    "append": (_appended, lambda found: {**found, 777777: 1, 900000: 1}),
    "append and clean-up": (_cleaned, lambda found: {**found, 777777: 1, 900000: 1}),
    "overwrite": (
        lambda path: write_deltalake(path, pa.table({"id": [3, 4], "n": [9, 9]}), mode="overwrite"),
        lambda _: {3: 9, 4: 9},
    ),
    "old rows again": (_went_back, lambda _: {key: key for key in range(COUNT)}),
    "column": (_altered, lambda found: found),
    "delete": (
        lambda path: DeltaTable(path).delete("id < 10"),
        lambda found: {key: value for key, value in found.items() if key >= 10},
    ),
}


def prepare(path: Path, layout: str) -> Rows:
    """A table of two versions, of which the second one has other rows; with vectors its file has one already."""
    on = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"} if layout == "vectors" else {}
    feed: dict[str, str | None] = {"delta.enableChangeDataFeed": "true", **on}
    write_deltalake(path, pa.table({"id": range(COUNT), "n": range(COUNT)}), configuration=feed)
    DeltaTable(path).delete("id = 5")
    return {key: key for key in range(COUNT) if key != 5}


def state(path: Path) -> Rows:
    table = DeltaTable(path).to_pyarrow_table()
    found = dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert len(found) == table.num_rows, "no row is there twice"
    return found


def changed(
    path: Path, verb: str, other: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[BaseException | None, bool]:
    """The verb, whose first entry loses to what another writer commits; its error, and whether there was a race."""
    raced = False
    entry = DeltaCommit.next_bytes

    def after_others(commit: DeltaCommit, version: int) -> bytes:
        nonlocal raced
        if not raced:
            raced = True
            with monkeypatch.context() as alone:
                alone.setattr(DeltaCommit, "next_bytes", entry)
                OTHERS[other][0](path)
        return entry(commit, version)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaCommit, "next_bytes", after_others)
        try:
            VERBS[verb][0](DeltaTable(f"fault://{path}", storage_options={"plan": plan}))
        except EskerError as error:
            return error, raced
    return None, raced


@pytest.mark.filterwarnings("ignore:version .* is committed")
@pytest.mark.parametrize("layout", ["copy", "vectors"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_lost_race_and_a_fault_leave_what_was_told(
    verb: str, other: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Faulty()
    stores.register("fault", made)
    before = prepare(tmp_path / "template", layout)
    shutil.copytree(tmp_path / "template", tmp_path / "counted")
    assert changed(tmp_path / "counted", verb, other, "", monkeypatch) == (None, True)
    assert state(tmp_path / "counted") == VERBS[verb][1](OTHERS[other][1](before))
    count = max(len(store.operations) for store in made.made)
    plans = [(fault, number) for number in range(1, count + 1) for fault in FAULTS]
    start = sum(map(ord, verb + other + layout)) % EVERY
    for fault, number in plans[start::EVERY]:
        path = tmp_path / f"{fault}-{number}".replace(":", "-")
        shutil.copytree(tmp_path / "template", path)
        told, raced = changed(path, verb, other, f"{fault}@{number}", monkeypatch)
        old = OTHERS[other][1](before) if raced else before
        new = VERBS[verb][1](old)
        found = state(path)
        what = f"{fault}@{number}: {told!r}"
        assert found in (old, new), what
        if told is None:
            assert found == new, what
        if isinstance(told, CommitConflictError):
            assert found == old, what
        theirs = read_by_theirs(path).sort_by("id")
        assert theirs == DeltaTable(path).to_pyarrow_table().cast(theirs.schema).sort_by("id"), what
        DeltaTable(path).delete("id = 3", commit_properties=CommitProperties(max_commit_retries=0))
        assert state(path) == {key: value for key, value in found.items() if key != 3}, what
