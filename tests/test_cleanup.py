"""Clean-up beside pylance's: both remove the same files, and neither one that a version to keep is made of."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker._native.table import Transaction
from esker.exceptions import (
    CorruptFileError,
    InvalidArgumentError,
    InvalidTypeError,
    IOFailedError,
    NotFoundError,
    TaggedVersionsError,
    UnsupportedError,
)
from esker.fragment import write_fragments
from esker.lance.change.run import commit_change
from esker.lance.cleanup import CleanupPolicy, CleanupStats, cleanup
from esker.lance.cleanup.inspection import Inspection
from esker.lance.cleanup.policy import UNDER_WAY_AGE
from esker.lance.commit import STAGED_TIME_S, LanceCommit
from esker.lance.log import LanceLog

ALL: dict[str, Any] = {"older_than": timedelta(0), "error_if_tagged_old_versions": False}


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "t": ["x"] * count})


def _history(library: Any, uri: str) -> None:
    """Nine versions of all that leaves files: deletions, updates, columns, an overwrite, an index, a restore."""
    library.write_dataset(_ids(0, 20), uri, max_rows_per_file=8)
    library.write_dataset(_ids(20, 5), uri, mode="append")
    library.dataset(uri).delete("id in (3, 21)")
    library.dataset(uri).update({"t": "'y'"}, where="id < 5")
    library.dataset(uri).add_columns({"twice": "id * 2"})
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    library.write_dataset(_ids(100, 5), uri, mode="overwrite")
    library.dataset(uri, version=3).restore()
    library.dataset(uri).delete("id = 7")


def _files(uri: str) -> dict[str, int]:
    found = (path for path in Path(uri).rglob("*") if path.is_file() and path.name != "latest_version_hint.json")
    return {str(path.relative_to(uri)): path.stat().st_size for path in found}


def _named(explanation: Any, uri: str, *, verified: bool = True) -> set[tuple[str, str, bool, int]]:
    root = uri.lstrip("/") + "/"
    return {
        (file.kind, file.path.removeprefix(root), file.unverified and verified, file.size_bytes)
        for file in explanation.candidate_files
    }


def _stats(stats: Any) -> dict[str, int]:
    names = ["bytes_removed", "old_versions", "failed_deletes"]
    names += [f"{kind}_files_removed" for kind in ("data", "transaction", "index", "deletion")]
    return {name: getattr(stats, name) for name in names}


def _meanwhile(work: Callable[[], object]) -> None:
    """Another writer's work, from within a store operation: on a thread of its own, as another writer's."""
    other = threading.Thread(target=work)
    other.start()
    other.join()


def _age(path: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(path, (then, then))


def _strays(uri: str, days: float) -> None:
    """What lost tries and dead writers leave, and what is nobody's."""
    for name in [
        "data/stray.lance",
        "data/stray/1.blob",
        "data/.tmp-1",
        "data/notes.txt",
        "_versions/.tmp_9.manifest_1",
        "_versions/notes.txt",
        "_transactions/2-lost.txn",
        "_deletions/0-1-7.arrow",
        "_indices/6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0/page.idx",
        "elsewhere/x.lance",
    ]:
        path = Path(uri, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"stray")
        _age(path, days)


POLICIES: list[dict[str, Any]] = [
    {"older_than": timedelta(0)},
    {"older_than": timedelta(days=1)},
    {"retain_versions": 1},
    {"retain_versions": 4},
    {"retain_versions": 50},
    {"retain_versions": 3, "older_than": timedelta(0)},
    {"retain_versions": 3, "older_than": timedelta(days=1)},
    {"versions": [1, 3, 9, 77]},
    {"versions": [2, 8], "retain_versions": 4},
    {"older_than": timedelta(0), "delete_unverified": True},
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("tagged", [False, True], ids=["", "tagged"])
@pytest.mark.parametrize("writer", [esker, lance], ids=["ours", "pylance's"])
def test_both_libraries_leave_the_same_files(writer: Any, tagged: bool, policy: dict[str, Any], tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    _history(writer, uri)
    if tagged:
        lance.dataset(uri).tags.create("kept", 2)
        lance.dataset(uri).tags.create("kept-too", 5)
    _strays(uri, 1)
    policy = {**policy, "error_if_tagged_old_versions": False}
    theirs = str(tmp_path / "copy" / "table")
    shutil.copytree(uri, theirs)
    before = _files(uri)
    expected = lance.dataset(theirs).explain_cleanup_old_versions(**policy, include_files=True)
    found = esker.dataset(uri).explain_cleanup_old_versions(**policy, include_files=True)
    # Who removes unverified files tells no longer, in pylance, which they are.
    verified = "delete_unverified" not in policy
    assert _named(found, uri, verified=verified) == _named(expected, theirs, verified=verified)
    assert _stats(found.stats) == _stats(expected.stats)
    assert (found.read_version, found.candidate_files_truncated) == (expected.read_version, False)
    assert _files(uri) == before
    stats = esker.dataset(uri).cleanup_old_versions(**policy)
    assert stats == found.stats
    assert _stats(lance.dataset(theirs).cleanup_old_versions(**policy)) == _stats(stats)
    assert _files(uri) == _files(theirs)
    assert {path for _, path, _, _ in _named(found, uri)} == set(before) - set(_files(uri))
    for version in esker.dataset(uri).version_refs():
        rows = esker.dataset(uri, version=version["version"]).to_table()
        assert rows == lance.dataset(uri, version=version["version"]).to_table()
    # What the other one left is nothing to either.
    assert lance.dataset(uri).cleanup_old_versions(**policy).bytes_removed == 0
    assert esker.dataset(theirs).cleanup_old_versions(**policy).bytes_removed == 0
    assert esker.write_dataset(lance.dataset(uri).to_table().slice(0, 1), uri, mode="append").version == 10


@pytest.mark.parametrize("days", [6.9, 7.1])
def test_what_no_version_refers_to_stays_for_a_week(days: float, uri: str) -> None:
    esker.write_dataset(_ids(0, 5), uri)
    _strays(uri, days)
    found = esker.dataset(uri).explain_cleanup_old_versions(include_files=True)
    gone = [file.path for file in found.candidate_files]
    if days < 7:
        assert gone == []
        assert esker.dataset(uri).cleanup_old_versions() == CleanupStats()
        return
    strays = [name for name in _files(uri) if Path(uri, name).read_bytes() == b"stray"]
    kept = ["_versions/notes.txt", "data/notes.txt", "elsewhere/x.lance"]
    assert sorted(gone) == sorted(set(strays) - set(kept))
    assert all(file.unverified and "7.1 days" in file.reason for file in found.candidate_files)
    assert esker.dataset(uri).cleanup_old_versions() == found.stats
    assert sorted(name for name in _files(uri) if name in strays) == kept


def test_what_a_killed_writer_left_half_written_is_named_and_removed(uri: str) -> None:
    esker.write_dataset(_ids(0, 5), uri)
    dead = FaultStore(Store(uri), "tear:3000000@0")
    with pytest.raises(OSError, match="injected"):
        dead.store.put("data/half.lance", b"x" * 4_000_000)
    left = next(path for path in Path(uri, "data").iterdir() if path.name.startswith(".tmp-"))
    assert esker.dataset(uri).explain_cleanup_old_versions(include_files=True).candidate_files == []
    found = esker.dataset(uri).explain_cleanup_old_versions(delete_unverified=True, include_files=True)
    assert [(file.path, file.kind, file.size_bytes) for file in found.candidate_files] == [
        (f"data/{left.name}", "data", left.stat().st_size)
    ]
    assert found.stats.bytes_removed > 2_000_000
    _age(left, 8)
    assert esker.dataset(uri).cleanup_old_versions() == found.stats
    assert not left.exists()


def test_a_tagged_version_is_an_error_unless_it_is_to_be_kept_silently(uri: str) -> None:
    _history(esker, uri)
    lance.dataset(uri).tags.create("kept", 2)
    before = _files(uri)
    with pytest.raises(TaggedVersionsError, match=r"1 tagged versions would be removed: \{'kept': 2\}") as caught:
        esker.dataset(uri).cleanup_old_versions(timedelta(0))
    assert (caught.value.uri, caught.value.version) == (uri, 2)
    with pytest.raises(OSError, match="tagged"):
        esker.dataset(uri).explain_cleanup_old_versions(timedelta(0))
    assert _files(uri) == before
    # A tag of a version that stays anyway is in nobody's way.
    assert esker.dataset(uri).cleanup_old_versions(versions=[1]).old_versions == 1


def test_what_is_older_than_the_version_that_the_dataset_shows(uri: str) -> None:
    _history(esker, uri)
    assert esker.dataset(uri, version=4).cleanup_old_versions(timedelta(0)).old_versions == 3
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == list(range(4, 10))


@pytest.mark.parametrize("damaged", ["tag", "branch", "manifest", "detached"])
def test_nothing_goes_as_long_as_it_is_unknown_what_is_needed(damaged: str, uri: str) -> None:
    _history(esker, uri)
    path = {
        "tag": "_refs/tags/a.json",
        "branch": "_refs/branches/a.json",
        "manifest": "_versions/18446744073709551610.manifest",
        "detached": "_versions/d9223372036854775809.manifest",
    }[damaged]
    Path(uri, path).parent.mkdir(parents=True, exist_ok=True)
    Path(uri, path).write_bytes(b"[]")
    before = _files(uri)
    with pytest.raises(CorruptFileError, match=Path(path).name):
        esker.dataset(uri).cleanup_old_versions(**ALL, delete_unverified=True)
    assert _files(uri) == before


def test_branches_and_detached_versions_keep_what_they_are_made_of(uri: str) -> None:
    _history(esker, uri)
    branch = lance.dataset(uri).create_branch("feature/x", 4)
    branched = branch.to_table()
    append = LanceOperation.Append(write_fragments(_ids(500, 3), uri))
    detached = LanceDataset.commit(uri, append, read_version=2, detached=True)
    rows = detached.to_table()
    assert rows.num_rows == 28
    found = esker.dataset(uri).explain_cleanup_old_versions(**ALL, delete_unverified=True)
    assert [(branch.name, branch.referenced_version) for branch in found.referenced_branches] == [("feature/x", 4)]
    assert "make sure" in found.warnings[0]
    esker.dataset(uri).cleanup_old_versions(**ALL, delete_unverified=True)
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == [4, 9]
    assert esker.dataset(uri, version=detached.version).to_table() == rows
    assert lance.dataset(branch.uri).to_table() == branched


@pytest.mark.parametrize(
    "wrong",
    [{"retain_versions": 0}, {"versions": []}, {"delete_rate_limit": 0}, {"delete_concurrency": 0}],
    ids=str,
)
def test_numbers_that_make_no_sense(wrong: dict[str, Any], uri: str) -> None:
    dataset = esker.write_dataset(_ids(0, 1), uri)
    with pytest.raises(InvalidArgumentError, match=f"expected.*{next(iter(wrong))}"):
        dataset.cleanup_old_versions(**wrong)
    with pytest.raises(OSError, match="must"):
        lance.dataset(uri).cleanup_old_versions(**wrong)
    with pytest.raises(InvalidArgumentError, match="max_files"):
        dataset.explain_cleanup_old_versions(max_files=0)


def test_files_are_named_up_to_a_limit_and_counted_beyond(uri: str) -> None:
    _history(esker, uri)
    found = esker.dataset(uri).explain_cleanup_old_versions(**ALL, include_files=True, max_files=3)
    assert (len(found.candidate_files), found.candidate_files_truncated, found.candidate_file_limit) == (3, True, 3)
    everything = esker.dataset(uri).explain_cleanup_old_versions(**ALL, include_files=True, max_files=None)
    assert everything.stats == found.stats
    assert sum(file.size_bytes for file in everything.candidate_files) == found.stats.bytes_removed
    assert not everything.candidate_files_truncated


def test_deletions_keep_to_a_rate(uri: str) -> None:
    for _ in range(4):
        esker.write_dataset(_ids(0, 1), uri, mode="overwrite")
    start = time.monotonic()
    stats = esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_rate_limit=30)
    assert (stats.old_versions, stats.data_files_removed, stats.transaction_files_removed) == (3, 3, 3)
    assert time.monotonic() - start >= 8 / 30


def test_a_version_that_is_brought_back_at_the_same_moment_keeps_its_files(uri: str) -> None:
    """The restore stages its transaction, the clean-up runs to its end, and then the restore puts its manifest."""
    _history(esker, uri)
    rows = esker.dataset(uri, version=5).to_table()
    reached, go_on = threading.Event(), threading.Event()
    result: list[object] = []

    def hold(verb: str, path: str) -> None:
        if verb == "put_if_absent":
            reached.set()
            assert go_on.wait(10)

    old = esker.dataset(uri, version=5)
    log = LanceLog(FaultStore(Store(uri), watch=hold).store, uri)

    def restore() -> None:
        latest = old._table.at(log.open()[0])
        result.append(commit_change(latest, lambda _: LanceOperation.Restore(5), log=log).manifest.version)

    writer = threading.Thread(target=restore)
    writer.start()
    assert reached.wait(10)
    stats = esker.dataset(uri).cleanup_old_versions(**ALL)
    assert stats.old_versions == 7
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == [5, 9]
    go_on.set()
    writer.join()
    assert result == [10]
    assert esker.dataset(uri).to_table() == rows == lance.dataset(uri).to_table()


def test_a_version_that_is_tagged_while_the_clean_up_looks_stays(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in range(4):
        esker.write_dataset(pa.table({"id": [start]}), uri, mode="overwrite")
    real = Inspection.keep_waiting

    def tagged(self: Inspection) -> object:
        monkeypatch.undo()
        lance.dataset(uri).tags.create("late", 2)
        return real(self)

    monkeypatch.setattr(Inspection, "keep_waiting", tagged)
    assert esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0)).old_versions == 2
    assert lance.dataset(uri, version="late").to_table()["id"].to_pylist() == [1]


def test_a_dry_run_tells_of_versions_that_stay_for_the_sake_of_another_process(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(4):
        esker.write_dataset(pa.table({"id": [start]}), uri, mode="overwrite")
    monkeypatch.setattr("esker.lance.cleanup.inspection.is_acknowledged", lambda write_id: False)
    dataset = esker.dataset(uri)
    found = dataset.explain_cleanup_old_versions(older_than=timedelta(0))
    assert found.stats.old_versions == 0
    assert found.warnings[0].startswith("3 versions stay because another process committed them less than an hour ago")
    assert dataset.cleanup_old_versions(older_than=timedelta(0)).old_versions == 0
    assert dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True).old_versions == 3


def test_a_version_that_is_gone_is_not_brought_back(uri: str) -> None:
    _history(esker, uri)
    old = esker.dataset(uri, version=5)
    latest = esker.dataset(uri).version

    def clean(verb: str, path: str) -> None:
        # Between the look at the old version and the transaction.
        if verb == "put" and path.startswith("_transactions/"):
            _meanwhile(lambda: esker.dataset(uri).cleanup_old_versions(**ALL))

    log = LanceLog(FaultStore(Store(uri), watch=clean).store, uri)
    with pytest.raises(NotFoundError, match="no version 5, expected one of 9"):
        commit_change(old._table.at(log.open()[0]), lambda _: LanceOperation.Restore(5), log=log)
    assert esker.dataset(uri).version == latest
    assert esker.dataset(uri).count_rows() == lance.dataset(uri).count_rows()


def test_a_slow_writer_does_not_take_the_number_of_a_version_that_is_gone(uri: str) -> None:
    """It has looked at the versions, others go on and clean up, and then it puts its manifest."""
    esker.write_dataset(_ids(0, 3), uri)
    base = esker.dataset(uri)
    done: list[int] = []

    def others(verb: str, path: str) -> None:
        if verb == "put_if_absent" and not done:
            done.append(1)
            for start in (10, 20, 30):
                _meanwhile(partial(esker.write_dataset, _ids(start, 1), uri, mode="append"))
            _meanwhile(lambda: esker.dataset(uri).cleanup_old_versions(**ALL))

    fragments = write_fragments(_ids(100, 2), uri)
    log = LanceLog(FaultStore(Store(uri), watch=others).store, uri)
    made = commit_change(base._table, lambda _: LanceOperation.Append(fragments), log=log)
    assert done
    assert made.manifest.version == 5 == esker.dataset(uri).version
    assert sorted(esker.dataset(uri).to_table()["id"].to_pylist()) == [0, 1, 2, 10, 20, 30, 100, 101]
    assert esker.dataset(uri).to_table() == lance.dataset(uri).to_table()


def test_a_transaction_that_was_staged_long_ago_is_staged_again_before_the_put(uri: str) -> None:
    esker.write_dataset(_ids(0, 3), uri)
    fault = FaultStore(Store(uri))
    log = LanceLog(fault.store, uri)
    transaction = Transaction.append(1, [fragment.to_native() for fragment in write_fragments(_ids(9, 1), uri)])
    change = LanceCommit(log, transaction)
    assert change.latest() == 1
    data = change.next_bytes(2)
    change._staged_at -= STAGED_TIME_S + 1
    assert not change.put(2, data)
    assert esker.dataset(uri).version == 1
    assert change.put(2, data)
    verbs = [verb for _, verb, _ in fault.operations if verb.startswith("put")]
    assert verbs == ["put", "put", "put_if_absent"]
    assert timedelta(seconds=2 * STAGED_TIME_S) < UNDER_WAY_AGE


def test_files_that_cannot_be_removed_are_counted_and_found_again(uri: str) -> None:
    _history(esker, uri)
    failing: list[str] = []

    def fail(verb: str, path: str) -> str | None:
        if verb == "delete" and path.startswith("data/") and len(failing) < 2:
            failing.append(path)
            return "fail"
        return None

    log = LanceLog(FaultStore(Store(uri), watch=fail).store, uri)
    policy = CleanupPolicy(retain_versions=1)
    with pytest.warns(UserWarning, match="2 files of .* could not be removed, the next clean-up finds them again"):
        stats = cleanup(log, esker.dataset(uri)._manifest, policy)
    assert (stats.failed_deletes, stats.old_versions) == (2, 8)
    assert all(Path(uri, path).exists() for path in failing)
    again = esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert (again.data_files_removed, again.failed_deletes) == (2, 0)


def test_a_version_that_cannot_be_removed_keeps_its_files(uri: str) -> None:
    _history(esker, uri)
    before = esker.dataset(uri, version=1).to_table()

    def fail(verb: str, path: str) -> str | None:
        return "fail" if verb == "delete" and path.endswith("614.manifest") else None

    log = LanceLog(FaultStore(Store(uri), watch=fail).store, uri)
    with pytest.raises(IOFailedError, match="injected"):
        cleanup(log, esker.dataset(uri)._manifest, CleanupPolicy(retain_versions=1))
    assert esker.dataset(uri, version=1).to_table() == before


def test_a_commit_between_the_two_listings_keeps_its_files(uri: str) -> None:
    _history(esker, uri)
    done: list[int] = []

    def write(verb: str, path: str) -> None:
        # Files are listed, versions are not: what is committed now was no part of the first listing.
        if verb == "list" and path == "_versions/" and not done:
            done.append(1)
            _meanwhile(lambda: esker.write_dataset(_ids(900, 3), uri, mode="append"))
            _meanwhile(lambda: esker.dataset(uri, version=2).restore())

    log = LanceLog(FaultStore(Store(uri), watch=write).store, uri)
    policy = CleanupPolicy(older_than=timedelta(0), delete_unverified=True)
    cleanup(log, esker.dataset(uri)._manifest, policy)
    assert esker.dataset(uri).version == 11
    assert esker.dataset(uri).to_table() == lance.dataset(uri).to_table()
    assert esker.dataset(uri, version=10).to_table() == lance.dataset(uri, version=10).to_table()


def test_a_clock_that_is_ahead_of_the_stores_takes_no_file_for_old(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    esker.write_dataset(_ids(0, 5), uri)
    esker.write_dataset(_ids(0, 5), uri, mode="overwrite")
    _strays(uri, 0)
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 30 * 86_400 * 10**9)
    stats = esker.dataset(uri).cleanup_old_versions(timedelta(days=14))
    assert (stats.old_versions, stats.data_files_removed) == (0, 0)
    assert Path(uri, "data/stray.lance").exists()
    assert not [name for name in _files(uri) if "clock" in name]
    # What the dry run's own clock says is old is so only where the store's clock agrees.
    assert esker.dataset(uri).explain_cleanup_old_versions(timedelta(days=14)).stats.old_versions == 1


def test_tags_are_read_as_pylance_writes_them(uri: str) -> None:
    _history(lance, uri)
    lance.dataset(uri).tags.create("ä-1.0-rc", 2)
    [path] = Path(uri, "_refs/tags").iterdir()
    assert json.loads(path.read_text())["version"] == 2
    with pytest.raises(TaggedVersionsError, match=r"\{'ä-1.0-rc': 2\}"):
        esker.dataset(uri).cleanup_old_versions(timedelta(0))


def test_tables_of_old_names_take_no_detached_version(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"a": [1]}), uri, enable_v2_manifest_paths=False)
    append = LanceOperation.Append([esker.LanceFragment.create(uri, pa.table({"a": [2]}))])
    for kind in (UnsupportedError, OSError):
        with pytest.raises(kind, match="v1 manifest paths; call migrate_manifest_paths_v2"):
            LanceDataset.commit(uri, append, read_version=1, detached=True)
    dataset.migrate_manifest_paths_v2()
    assert LanceDataset.commit(uri, append, read_version=1, detached=True).count_rows() == 2


@pytest.mark.parametrize("given", [{"older_than": "7 days"}, {"older_than": 7}, {"retain_versions": "2"}], ids=str)
def test_conditions_of_another_type_are_refused_before_there_is_an_old_version(tmp_path: Path, given: Any) -> None:
    for library in (esker, lance):
        made = library.write_dataset(pa.table({"x": [1]}), str(tmp_path / library.__name__))
        with pytest.raises(TypeError):
            made.cleanup_old_versions(**given)
    with pytest.raises(InvalidTypeError, match="expected (older_than|retain_versions) as a"):
        esker.dataset(str(tmp_path / "esker")).explain_cleanup_old_versions(**given)
