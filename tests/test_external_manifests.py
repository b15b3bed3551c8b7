"""Commits and reads through an external manifest store: the four steps of each, cut off after every one of them."""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.store import Store
from esker.commit.external import ManifestEntry, SqliteManifestStore, parse_staged_manifest
from esker.exceptions import CorruptFileError, EskerError, IOFailedError, NotFoundError
from esker.lance import LanceLog
from tests.external import KINDS, Failing, Killed, make_store
from tests.faulty import Faulty


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return make_store(request.param, request, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteManifestStore:
    return SqliteManifestStore(tmp_path / "manifests.db")


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _rows(uri: str, store: Any, **options: Any) -> list[int]:
    try:
        return sorted(esker.dataset(uri, manifest_store=store, **options).to_table()["id"].to_pylist())
    except NotFoundError:
        return []


def _new() -> str:
    return f"fault://memory://{secrets.token_hex(8)}"


def _names(uri: str) -> list[str]:
    return [path.removeprefix("_versions/") for path in Store(uri.removeprefix("fault://")).list_paths("_versions/")]


@pytest.mark.parametrize("v2", [True, False])
def test_a_commit_takes_the_four_steps_and_leaves_a_plain_table(uri: str, store: Any, v2: bool) -> None:
    watched = Failing(store)
    esker.write_dataset(_ids(0, 2), uri, manifest_store=watched, enable_v2_manifest_paths=v2)
    assert watched.calls == [("get_latest", None), ("get_latest", None), ("put_if_not_exists", 1), ("put_if_exists", 1)]
    dataset = esker.write_dataset(_ids(2, 2), uri, mode="append", manifest_store=store)
    dataset.delete("id = 0")
    assert dataset.version == 3
    name = "18446744073709551612.manifest" if v2 else "3.manifest"
    assert store.get(uri, 3) == ManifestEntry(3, f"{uri}/_versions/{name}", Path(uri, "_versions", name).stat().st_size)
    assert len(_names(uri)) == 3
    # Whoever knows nothing of the store reads the same.
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == _rows(uri, None) == _rows(uri, store) == [1, 2, 3]


OBJECT_FAULTS = ["crash_before", "crash_after", "lose_reply", "fail"]
EXTERNAL_FAULTS = ["kill_before", "kill_after", "lose_reply", "fail"]
# Appends on every kind of store; the other ways to write on one that is quick.
CASES = [*((kind, "append") for kind in KINDS), ("redis", "create"), ("redis", "overwrite")]


def _prepared(store: Any, mode: str) -> tuple[str, list[int], list[int]]:
    """A table, its rows, and its rows after `_write`."""
    uri = _new()
    if mode == "create":
        return uri, [], [100, 101]
    esker.write_dataset(_ids(0, 3), uri, manifest_store=store, durable=False)
    return uri, [0, 1, 2], [0, 1, 2, 100, 101] if mode == "append" else [100, 101]


def _write(uri: str, mode: str, store: Any, plan: str = "") -> str:
    """Writes; what the writer lived to say of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            esker.write_dataset(_ids(100, 2), uri, mode=mode, manifest_store=store, storage_options={"plan": plan})
    except Killed:
        return "killed"
    except EskerError:
        return "failed"
    return "written"


def _check(uri: str, store: Any, old: list[int], new: list[int], said: str) -> None:
    """The table is at the old version or the new one, wholly; what the external store took is there; all goes on."""
    entry = store.get_latest(uri)
    version = 2 if old else 1
    committed = entry is not None and entry.version == version
    found = _rows(uri, store)
    assert found == (new if committed else old)
    assert committed or said != "written"
    if committed:
        # The reader has finished what the writer did not live to do.
        final = store.get(uri, version).path.removeprefix(f"{uri}/_versions/")
        assert parse_staged_manifest(final) is None
        assert final in _names(uri)
        # The object store alone tells it now.
        assert _rows(uri, None) == new
    staged = [name for name in _names(uri) if parse_staged_manifest(name)]
    # One may stay behind, also of a writer that tried twice: a put without an answer may land later.
    assert len(staged) <= 1
    mode = "append" if found else "create"
    again = esker.write_dataset(_ids(500, 1), uri, mode=mode, manifest_store=store)
    assert again.version == (version if committed else version - 1) + 1
    assert _rows(uri, store) == [*found, 500]
    assert [v["version"] for v in again.versions()] == list(range(1, again.version + 1))


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_the_writer_stops_at_every_operation_of_the_object_store(
    kind: str, mode: str, request: pytest.FixtureRequest, tmp_path: Path, faulty: Faulty
) -> None:
    store = make_store(kind, request, tmp_path)
    uri, _, _ = _prepared(store, mode)
    assert _write(uri, mode, store) == "written"
    operations = faulty.made[-1].operations
    puts = [path for _, verb, path in operations if verb.startswith("put")]
    assert len(puts) == 3, "transaction, staged manifest, its copy"
    for fault in OBJECT_FAULTS:
        for number, verb, _ in operations:
            uri, old, new = _prepared(store, mode)
            dying = Failing(store, dead=lambda: faulty.made[-1].cause_of_death is not None)
            said = _write(uri, mode, dying, f"{fault}@{number}")
            if fault.startswith("crash") and verb != "delete":
                # The last operation of all may strike when everything is done.
                assert said != "written" or number == operations[-1][0] or store.get_latest(uri) is not None
            _check(uri, store, old, new, said)


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_the_writer_stops_at_every_call_of_the_external_store(
    kind: str, mode: str, request: pytest.FixtureRequest, tmp_path: Path, faulty: Faulty
) -> None:
    store = make_store(kind, request, tmp_path)
    uri, _, _ = _prepared(store, mode)
    watched = Failing(store)
    assert _write(uri, mode, watched) == "written"
    for fault in EXTERNAL_FAULTS:
        for number in range(len(watched.calls)):
            uri, old, new = _prepared(store, mode)
            said = _write(uri, mode, Failing(store, fault, number))
            assert (said == "killed") == fault.startswith("kill")
            if said == "failed":
                # Only before anything was put, where nobody asks again.
                assert watched.calls[number][0] in ("get_latest", "get")
            _check(uri, store, old, new, said)


def test_readers_stop_at_every_step_and_the_next_one_goes_on(store: Any, faulty: Faulty) -> None:
    def staged() -> str:
        uri, _, _ = _prepared(store, "append")
        # Dies when the external store has taken the version: before the copy.
        assert _write(uri, "append", Failing(store, "kill_after", "put_if_not_exists")) == "killed"
        assert parse_staged_manifest(store.get(uri, 2).path.rpartition("/")[2]) is not None
        return uri

    uri, watched = staged(), Failing(store)
    assert _rows(uri, watched) == [0, 1, 2, 100, 101]
    operations = [*faulty.made[-1].operations]
    assert [verb for verb, _ in watched.calls] == ["get_latest", "get", "get", "put_if_exists"]
    for fault in OBJECT_FAULTS:
        for number, _, _ in operations:
            uri = staged()
            dying = Failing(store, dead=lambda: faulty.made[-1].cause_of_death is not None)
            with suppress(Killed, IOFailedError):
                assert _rows(uri, dying, storage_options={"plan": f"{fault}@{number}"}) == [0, 1, 2, 100, 101]
            _check(uri, store, [0, 1, 2], [0, 1, 2, 100, 101], "killed")
    for fault in EXTERNAL_FAULTS:
        for number in range(len(watched.calls)):
            uri = staged()
            try:
                assert _rows(uri, Failing(store, fault, number)) == [0, 1, 2, 100, 101]
            except (Killed, IOFailedError):
                assert fault != "lose_reply" or watched.calls[number][0] != "put_if_exists"
            _check(uri, store, [0, 1, 2], [0, 1, 2, 100, 101], "killed")


def _staged(uri: str, store: Any) -> Path:
    """Leaves a table whose version 2 is staged only; the staged manifest."""
    esker.write_dataset(_ids(0, 1), uri, manifest_store=store)
    dying = Failing(store, "kill_after", "put_if_not_exists")
    with pytest.raises(Killed):
        esker.write_dataset(_ids(1, 1), uri, mode="append", manifest_store=dying)
    return Path(store.get(uri, 2).path)


def test_a_reader_that_cannot_finish_the_copy_refuses_to_load(
    uri: str, sqlite: SqliteManifestStore, faulty: Faulty
) -> None:
    uri, _, _ = _prepared(sqlite, "append")
    assert _write(uri, "append", Failing(sqlite, "kill_after", "put_if_not_exists")) == "killed"
    assert _rows(uri, None) == [0, 1, 2], "one version behind, for who does not know the external store"
    read = esker.dataset(uri, manifest_store=sqlite, version=1)
    assert read.version == 1
    for fault in ("fail", "disk_full"):
        with pytest.raises(IOFailedError, match="version 2 .* is committed, but its manifest could not be copied"):
            esker.dataset(uri, manifest_store=sqlite, storage_options={"plan": f"{fault}@2"})
    with pytest.raises(IOFailedError, match="planned: no reply"):
        esker.dataset(uri, manifest_store=Failing(sqlite, "fail", 2)).to_table()
    assert _rows(uri, sqlite) == [0, 1, 2, 100, 101]


def test_the_staged_manifest_is_gone_and_nothing_is_in_its_place(uri: str, sqlite: SqliteManifestStore) -> None:
    _staged(uri, sqlite).unlink()
    with pytest.raises(CorruptFileError, match=r"version 2 of .* is committed, but neither .* is there"):
        esker.dataset(uri, manifest_store=sqlite)


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_table_whose_files_are_gone_and_whose_entries_are_not_is_told_as_such(
    uri: str, sqlite: SqliteManifestStore, tmp_path: Path, mode: str
) -> None:
    esker.write_dataset(_ids(0, 1), uri, manifest_store=sqlite)
    shutil.rmtree(uri)
    said = r"version 1 of .* is not there: the files were deleted, .* by LanceDataset.drop with the same options"
    with pytest.raises(NotFoundError, match=said):
        esker.dataset(uri, manifest_store=sqlite)
    with pytest.raises(NotFoundError, match=said):
        esker.write_dataset(_ids(1, 1), uri, mode=mode, manifest_store=sqlite)
    esker.LanceDataset.drop(uri, storage_options={"manifest_store": f"sqlite://{tmp_path}/manifests.db"})
    esker.write_dataset(_ids(1, 1), uri, manifest_store=sqlite)
    assert _rows(uri, sqlite) == [1]


def test_another_finished_the_copy_but_died_before_it_said_so(uri: str, sqlite: SqliteManifestStore) -> None:
    staged = _staged(uri, sqlite)
    final = parse_staged_manifest(staged.name)
    assert final is not None
    staged.rename(staged.with_name(final.final))
    assert _rows(uri, sqlite) == [0, 1]
    assert sqlite.get(uri, 2).path.endswith(final.final)  # type: ignore[union-attr]


def test_a_writer_that_ignores_the_store_is_found_out(uri: str, sqlite: SqliteManifestStore) -> None:
    _staged(uri, sqlite)
    lance.write_dataset(_ids(7, 1), uri, mode="append")
    with pytest.raises(CorruptFileError, match="is not the manifest that the external store has for version 2"):
        esker.dataset(uri, manifest_store=sqlite)
    with pytest.raises(CorruptFileError, match="some writer does not use the external store"):
        esker.write_dataset(_ids(9, 1), uri, mode="append", manifest_store=sqlite)


def test_two_names_of_one_table_cannot_both_commit(uri: str, sqlite: SqliteManifestStore) -> None:
    esker.write_dataset(_ids(0, 1), uri, manifest_store=sqlite)
    link = Path(uri).with_name("link.lance")
    link.symlink_to(uri)
    here = LanceLog.at(uri, manifest_store=sqlite)
    one, other = (LanceLog.at(name, manifest_store=sqlite) for name in (uri, link))
    assert one.put(2, "V2", here.store.get("_versions/18446744073709551614.manifest"))
    assert other.put(2, "V2", b"another")
    one.landed(2)
    with pytest.raises(CorruptFileError, match="uses another name of the table"):
        other.landed(2)


def test_a_table_that_had_no_store_gets_one(uri: str, store: Any) -> None:
    lance.write_dataset(_ids(0, 1), uri)
    lance.write_dataset(_ids(1, 1), uri, mode="append")
    assert _rows(uri, store) == [0, 1]
    assert store.get_latest(uri) is None, "a reader puts nothing for what is final anyway"
    dataset = esker.write_dataset(_ids(2, 1), uri, mode="append", manifest_store=store)
    assert dataset.version == 3
    assert [v["version"] for v in dataset.versions()] == [1, 2, 3]
    assert _rows(uri, store) == [0, 1, 2]
    assert _rows(uri, store, version=1) == [0]
    # Without it for a while, and with it again.
    lance.write_dataset(_ids(3, 1), uri, mode="append")
    assert esker.write_dataset(_ids(4, 1), uri, mode="append", manifest_store=store).version == 5
    assert _rows(uri, store) == [0, 1, 2, 3, 4]


def test_detached_versions_stay_beside_the_history(uri: str, store: Any) -> None:
    dataset = esker.write_dataset(_ids(0, 1), uri, manifest_store=store)
    fragments = esker.fragment.write_fragments(_ids(1, 1), uri, manifest_store=store)
    operation = esker.LanceOperation.Append(fragments)
    detached = esker.LanceDataset.commit(dataset, operation, read_version=1, detached=True)
    assert detached.version >> 63
    assert detached.count_rows() == 2
    assert esker.dataset(uri, version=detached.version, manifest_store=store).count_rows() == 2
    assert esker.dataset(uri, manifest_store=store).version == 1


@pytest.mark.parametrize(
    "path",
    [
        "../other/_versions/{name}",
        "/etc/passwd",
        "{uri}/data/{name}",
        "{uri}/_versions/../{name}",
        "{uri}/_versions/18446744073709551613.manifest",
        "s3://b/_versions/{name}",
        "",
        "{uri}/_versions/",
    ],
)
def test_an_entry_that_leaves_the_table_is_refused(uri: str, sqlite: SqliteManifestStore, path: str) -> None:
    esker.write_dataset(_ids(0, 1), uri, manifest_store=sqlite)
    name = "18446744073709551614.manifest"
    assert sqlite.put_if_exists(uri, 1, path.format(uri=uri, name=name), 10)
    with pytest.raises(CorruptFileError, match="expected the path of its manifest in"):
        esker.dataset(uri, manifest_store=sqlite)


class Broken:
    """A user's class whose methods fail in their own way."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("no reply")

    get_latest = put_if_not_exists = put_if_exists = delete = get


def test_what_a_users_class_raises_says_where(uri: str) -> None:
    with pytest.raises(IOFailedError, match=r"external manifest store of .*table.lance failed in get_latest: no reply"):
        esker.write_dataset(_ids(0, 1), uri, manifest_store=Broken())
    with pytest.raises(TypeError, match="methods of ExternalManifestStore"):
        esker.dataset(uri, manifest_store=object())  # type: ignore[arg-type]


WRITER = """
import sys, pickle, pyarrow as pa, esker
uri, number, commits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = pickle.load(sys.stdin.buffer)
for turn in range(commits):
    rows = pa.table({"id": pa.array([number * 1000 + turn], pa.int64())})
    esker.write_dataset(rows, uri, mode="append", manifest_store=store, max_retries=500)
    assert number * 1000 + turn in esker.dataset(uri, manifest_store=store).to_table()["id"].to_pylist()
"""


def test_processes_race_and_every_commit_is_there_once(uri: str, store: Any) -> None:
    writers, commits = 4, 5
    commands = [[sys.executable, "-c", WRITER, uri, str(number), str(commits)] for number in range(writers)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for command in commands]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(store))
        process.stdin.close()
        process.stdin = None
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert _rows(uri, store) == sorted(number * 1000 + turn for number in range(writers) for turn in range(commits))
    assert esker.dataset(uri, manifest_store=store).version == writers * commits
    assert len(_names(uri)) == writers * commits, "nothing staged is left behind"
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == _rows(uri, store)


def test_the_option_goes_wherever_storage_options_go(
    uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from esker.cli import main

    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    store = SqliteManifestStore(tmp_path / "manifests.db")
    dataset = esker.write_dataset(_ids(0, 3), uri, storage_options=options)
    fragments = esker.fragment.write_fragments(_ids(3, 1), uri, storage_options=options)
    esker.LanceDataset.commit(uri, esker.LanceOperation.Append(fragments), read_version=1, storage_options=options)
    dataset.checkout_latest()
    dataset.update({"id": "id + 10"}, where="id = 3")
    assert store.get_latest(uri).version == 3  # type: ignore[union-attr]
    _ = dataset.get_fragments()[0].to_table()
    assert main(["info", uri, "--storage-option", f"manifest_store={options['manifest_store']}"]) == 0
    capsys.readouterr()


MORTAL = """
import os, pickle, random, signal, sys, threading
import pyarrow as pa, esker
uri, number, acknowledged = sys.argv[1], int(sys.argv[2]), os.open(sys.argv[3], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
store = pickle.load(sys.stdin.buffer)
for turn in range(10_000):
    rows = pa.table({"id": pa.array([number * 100_000 + turn], pa.int64())})
    esker.write_dataset(rows, uri, mode="append", manifest_store=store, max_retries=500)
    os.write(acknowledged, b"%d\\n" % (number * 100_000 + turn))
    if turn == 0:
        threading.Timer(random.uniform(0.0, 0.4), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
"""


def test_writers_that_are_killed_lose_and_double_nothing(uri: str, store: Any, tmp_path: Path) -> None:
    # ESKER_KILLED says how many rounds of writers are killed, for a long run by hand.
    writers = 4 * int(os.environ.get("ESKER_KILLED", "1"))
    for first in range(0, writers, 4):
        running = []
        for number in range(first, first + 4):
            command = [sys.executable, "-c", MORTAL, uri, str(number), str(tmp_path / f"{number}.txt")]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(store))
            process.stdin.close()
            process.stdin = None
            running.append(process)
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == -signal.SIGKILL, errors.decode()
    acknowledged = {int(line) for path in tmp_path.glob("*.txt") for line in path.read_text().split()}
    found = _rows(uri, store)
    assert len(set(found)) == len(found)
    # The last commit of each writer may have landed without a word.
    assert acknowledged <= set(found)
    assert len(set(found) - acknowledged) <= writers
    assert esker.dataset(uri, manifest_store=store).version == len(found)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == found
    left = [name for name in _names(uri) if parse_staged_manifest(name)]
    assert len(left) <= writers


def test_a_clean_up_keeps_what_is_committed_but_not_copied(uri: str, store: Any) -> None:
    esker.write_dataset(_ids(0, 2), uri, manifest_store=store)
    esker.write_dataset(_ids(2, 2), uri, mode="append", manifest_store=store)
    cleaner = esker.dataset(uri, manifest_store=store)
    for fault, first in (("kill_before", 100), ("kill_after", 4)):
        dying = Failing(store, fault, "put_if_not_exists")
        with pytest.raises(Killed):
            esker.write_dataset(_ids(first, 1), uri, mode="append", manifest_store=dying)
    # One is a commit, the other what a dead writer left: their names do not tell.
    assert len([name for name in _names(uri) if parse_staged_manifest(name)]) == 2
    assert store.get_latest(uri).version == 3
    cleaner.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert not [name for name in _names(uri) if parse_staged_manifest(name)]
    assert _rows(uri, store) == _rows(uri, None) == [0, 1, 2, 3, 4]
    assert len(list(Path(uri, "data").iterdir())) == 3
    assert esker.write_dataset(_ids(5, 1), uri, mode="append", manifest_store=store).version == 4
