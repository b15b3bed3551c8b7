"""The conflict rules, cell by cell, and what they do to writers with stale handles beside deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, Transaction, write_deltalake
from esker.delta.log.conflict import CommitActions, ConflictReason, Isolation, ReadSet, conflict_of, effective_isolation

OLD = {"minReaderVersion": 1, "minWriterVersion": 2}
ADD = {"f": {"dataChange": True, "partitionValues": {"p": "a"}}}
MOVED = {"f": {"dataChange": False, "partitionValues": {"p": "a"}}}
REMOVE = {"g": {"dataChange": True}}
BLIND = {"isBlindAppend": True}

APPEND = (CommitActions(adds={"n": {}}), ReadSet())
OVERWRITE = (CommitActions(adds={"n": {}}, removes={"g": {}}), ReadSet(whole_table=True))
PARTITION = (
    CommitActions(adds={"n": {}}, removes={"h": {}}),
    ReadSet(files=frozenset("h"), matches=lambda add: add["partitionValues"]["p"] == "a"),
)
ELSEWHERE = (
    CommitActions(adds={"n": {}}, removes={"h": {}}),
    ReadSet(files=frozenset("h"), matches=lambda add: add["partitionValues"]["p"] == "b"),
)
REMOVAL = (CommitActions(removes={"g": {}}), ReadSet())
COMPACTION = (
    CommitActions(adds={"n": {"dataChange": False}}, removes={"h": {"dataChange": False}}),
    ReadSet(files=frozenset("h"), matches=lambda _: True),
)
NEW_METADATA = (CommitActions(metadata={}), ReadSet(whole_table=True))
NEW_PROTOCOL = (CommitActions(protocol=OLD), ReadSet())
JOB = (CommitActions(adds={"n": {}}, transactions={"job": 2}), ReadSet())
LOOKED = (CommitActions(adds={"n": {}}), ReadSet(applications=frozenset(["job"])))
DOMAIN = (CommitActions(adds={"n": {}}, domains=frozenset(["d"])), ReadSet())

S, W, N = Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE, Isolation.SNAPSHOT
APPENDED = ConflictReason.CONCURRENT_APPEND
DELETED = ConflictReason.CONCURRENT_DELETE_READ
UPGRADE = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []}
BETTER = {**UPGRADE, "writerFeatures": ["appendOnly", "invariants"]}
CELLS: list[tuple[Any, CommitActions, dict[Isolation, ConflictReason | None]]] = [
    (APPEND, CommitActions(adds=ADD, info=BLIND), dict.fromkeys(Isolation)),
    (APPEND, CommitActions(adds=ADD, removes=REMOVE), dict.fromkeys(Isolation)),
    (APPEND, CommitActions(metadata={}), dict.fromkeys(Isolation, ConflictReason.METADATA_CHANGED)),
    (OVERWRITE, CommitActions(adds=ADD, info=BLIND), {S: APPENDED, W: None, N: None}),
    (OVERWRITE, CommitActions(adds=ADD), {S: APPENDED, W: APPENDED, N: None}),
    (
        OVERWRITE,
        CommitActions(adds=MOVED, removes={"k": {"dataChange": False}}),
        dict.fromkeys(Isolation, DELETED),
    ),
    (OVERWRITE, CommitActions(transactions={"job": 1}), dict.fromkeys(Isolation)),
    (PARTITION, CommitActions(adds=ADD, info=BLIND), {S: APPENDED, W: None, N: None}),
    (PARTITION, CommitActions(adds=ADD), {S: APPENDED, W: APPENDED, N: None}),
    (ELSEWHERE, CommitActions(adds=ADD), dict.fromkeys(Isolation)),
    (ELSEWHERE, CommitActions(removes={"h": {}}), dict.fromkeys(Isolation, DELETED)),
    (ELSEWHERE, CommitActions(removes=REMOVE), dict.fromkeys(Isolation)),
    (REMOVAL, CommitActions(removes=REMOVE), dict.fromkeys(Isolation, ConflictReason.CONCURRENT_DELETE_DELETE)),
    (COMPACTION, CommitActions(adds=ADD), dict.fromkeys(Isolation)),
    (COMPACTION, CommitActions(removes={"h": {}}), dict.fromkeys(Isolation, DELETED)),
    (NEW_METADATA, CommitActions(adds=ADD, info=BLIND), {S: APPENDED, W: APPENDED, N: None}),
    (NEW_METADATA, CommitActions(metadata={}), dict.fromkeys(Isolation, ConflictReason.METADATA_CHANGED)),
    (NEW_PROTOCOL, CommitActions(protocol=OLD), dict.fromkeys(Isolation, ConflictReason.PROTOCOL_CHANGED)),
    (
        APPEND,
        CommitActions(protocol=BETTER),
        dict.fromkeys(Isolation),
    ),
    (APPEND, CommitActions(protocol=UPGRADE), dict.fromkeys(Isolation, ConflictReason.PROTOCOL_CHANGED)),
    (
        APPEND,
        CommitActions(protocol={**UPGRADE, "writerFeatures": ["appendOnly", "invariants", "rowTracking"]}),
        dict.fromkeys(Isolation, ConflictReason.PROTOCOL_CHANGED),
    ),
    (JOB, CommitActions(transactions={"job": 1}), dict.fromkeys(Isolation, ConflictReason.CONCURRENT_TRANSACTION)),
    (JOB, CommitActions(transactions={"other": 1}), dict.fromkeys(Isolation)),
    (LOOKED, CommitActions(transactions={"job": 1}), dict.fromkeys(Isolation, ConflictReason.CONCURRENT_TRANSACTION)),
    (DOMAIN, CommitActions(domains=frozenset(["d"])), dict.fromkeys(Isolation, ConflictReason.DOMAIN_METADATA)),
    (DOMAIN, CommitActions(domains=frozenset(["e"])), dict.fromkeys(Isolation)),
    (APPEND, CommitActions(known=False), dict.fromkeys(Isolation, ConflictReason.UNKNOWN)),
]


@pytest.mark.parametrize("number", range(len(CELLS)))
@pytest.mark.parametrize("level", Isolation)
def test_each_cell(number: int, level: Isolation) -> None:
    (ours, read), theirs, want = CELLS[number]
    assert conflict_of(ours, read, theirs, level, OLD) is want[level]


def test_a_change_of_no_rows_misses_nothing() -> None:
    assert effective_isolation(S, COMPACTION[0]) is N
    assert effective_isolation(S, CommitActions(metadata={})) is S
    assert effective_isolation(W, OVERWRITE[0]) is W


def _table(path: Path, **configuration: str) -> None:
    data = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(path, data, partition_by=["p"], configuration=configuration)


def _rows(p: str, *ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "p": [p] * len(ids)})


def _ids(path: Path) -> list[int]:
    found = sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
    assert found == sorted(deltalake.DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
    return found


def test_appends_go_on_top_of_each_other(tmp_path: Path) -> None:
    _table(tmp_path)
    stale = DeltaTable(tmp_path)
    deltalake.write_deltalake(tmp_path, _rows("a", 3), mode="append")
    write_deltalake(stale, _rows("a", 4), mode="append")
    theirs = deltalake.DeltaTable(tmp_path, version=0)
    deltalake.write_deltalake(theirs, _rows("a", 5), mode="append")
    assert _ids(tmp_path) == [1, 2, 3, 4, 5]


def test_an_overwrite_does_not_hide_what_it_did_not_see(tmp_path: Path) -> None:
    _table(tmp_path)
    stale = DeltaTable(tmp_path)
    deltalake.write_deltalake(tmp_path, _rows("a", 3), mode="append")
    with pytest.raises(exceptions.CommitConflictError, match="files were added") as caught:
        write_deltalake(stale, _rows("a", 4), mode="overwrite")
    assert (caught.value.retryable, caught.value.other_version) == (True, 1)
    # Another partition is none of its business.
    write_deltalake(stale, _rows("b", 4), mode="overwrite", predicate="p = 'b'")
    once = CommitProperties(max_commit_retries=0)
    old = DeltaTable(tmp_path, 0)
    with pytest.raises(exceptions.CommitConflictError, match="files were"):
        write_deltalake(old, _rows("b", 5), mode="overwrite", predicate="p = 'b'", commit_properties=once)
    assert _ids(tmp_path) == [1, 3, 4]
    # What was refused left no file behind.
    assert len(list(tmp_path.rglob("*.parquet"))) == 4


def test_write_serializable_lets_blind_appends_pass(tmp_path: Path) -> None:
    _table(tmp_path, **{"delta.isolationLevel": "WriteSerializable"})
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, _rows("a", 3), mode="append")
    write_deltalake(stale, _rows("a", 4), mode="overwrite")
    assert _ids(tmp_path) == [3, 4]


def test_a_change_of_metadata_stops_an_append(tmp_path: Path) -> None:
    _table(tmp_path)
    stale = DeltaTable(tmp_path)
    deltalake.DeltaTable(tmp_path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(exceptions.CommitConflictError, match="metadata"):
        write_deltalake(stale, _rows("a", 3), mode="append")
    assert _ids(tmp_path) == [1, 2]


def test_two_commits_of_one_application(tmp_path: Path) -> None:
    _table(tmp_path)
    stale = DeltaTable(tmp_path)
    job = CommitProperties(app_transactions=[Transaction("job", 1)])
    write_deltalake(tmp_path, _rows("a", 3), mode="append", commit_properties=job)
    with pytest.raises(exceptions.CommitConflictError, match="application"):
        write_deltalake(stale, _rows("a", 4), mode="append", commit_properties=job)


def test_a_table_that_another_creates_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esker.delta.log.target import WriteTarget

    found = WriteTarget.of(tmp_path, None)
    _table(tmp_path)
    monkeypatch.setattr(WriteTarget, "of", lambda *_, **__: found)
    with pytest.raises(exceptions.AlreadyExistsError, match="meanwhile"):
        write_deltalake(tmp_path, _rows("a", 3))
    assert _ids(tmp_path) == [1, 2]
