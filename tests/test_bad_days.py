"""A full disk, a folder that cannot be written, a file that is gone or is no file, a clock that jumps: a clear error,
and nothing is lost.

The real full disk by hand: `ESKER_FULL_DISK=/folder/on/a/small/file/system pytest` and this file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CorruptFileError, EskerError, IOFailedError, NotFoundError
from tests.leftovers import check_leftovers


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "t": ["x"] * count})


CHANGES: dict[str, Callable[[esker.LanceDataset], object]] = {
    "append": lambda dataset: dataset.insert(_ids(50, 5)),
    "overwrite": lambda dataset: dataset.insert(_ids(50, 5), mode="overwrite"),
    "delete": lambda dataset: dataset.delete("id = 3"),
    "update": lambda dataset: dataset.update({"t": "'y'"}, where="id = 3"),
    "upsert": lambda dataset: (
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_ids(8, 4))
    ),
    "add columns": lambda dataset: dataset.add_columns({"twice": "id * 2"}),
    "restore": lambda dataset: dataset.checkout_version(1).restore(),
    "config": lambda dataset: dataset.update_config({"k": "v"}),
}


@pytest.fixture
def table(uri: str) -> str:
    esker.write_dataset(_ids(0, 10), uri, max_rows_per_file=5)
    esker.write_dataset(_ids(10, 2), uri, mode="append")
    return uri


def _unharmed(uri: str, *, version: int = 2, rows: int = 12) -> None:
    """The table is as before, for both libraries, and goes on."""
    assert esker.dataset(uri).version == version
    assert esker.dataset(uri).to_table().equals(lance.dataset(uri).to_table())
    assert esker.dataset(uri).count_rows() == rows
    assert esker.write_dataset(_ids(900, 1), uri, mode="append").version == version + 1
    check_leftovers(uri)


# No writer of these may write a file of more than so many bytes; that is what a full disk does to the next one.
SMALL_FILES = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import pyarrow as pa, esker
from esker.exceptions import IOFailedError
esker.dataset(sys.argv[1]).to_table()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    rows = pa.table({"id": pa.array(range(200_000), pa.int64()), "t": [str(i) for i in range(200_000)]})
    esker.write_dataset(rows, sys.argv[1], mode=sys.argv[3])
except IOFailedError as error:
    print(error)
    raise SystemExit(7)
"""


@pytest.mark.parametrize("limit", [0, 100, 100_000])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_that_the_system_refuses_in_the_middle(mode: str, limit: int, table: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, table, str(limit), mode], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert "File too large" in done.stdout
    assert table in done.stdout
    # Nothing half-written stays where the writer lives to remove it.
    assert not list(Path(table).rglob(".tmp-*"))
    _unharmed(table)


# As above, but only the manifest is too large: all that it refers to is there by then.
SMALL_MANIFESTS = """
import errno, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import pyarrow as pa, esker
from esker.exceptions import IOFailedError
dataset = esker.dataset(sys.argv[1])
dataset.to_table()
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
try:
    if sys.argv[2] == "append":
        esker.write_dataset(pa.table({"id": [9], "t": ["x"]}), dataset, mode="append")
    elif sys.argv[2] == "delete":
        dataset.delete("id = 3")
    else:
        dataset.update_config({"k": "v"})
except IOFailedError as error:
    print(type(error).__name__, error.errno == errno.EFBIG, error)
"""


@pytest.mark.parametrize("change", ["append", "delete", "config"])
def test_a_manifest_that_the_system_refuses(change: str, table: str) -> None:
    esker.dataset(table).update_config({"long": "x" * 4000})
    before = {path for path in Path(table).rglob("*") if path.is_file()}
    done = subprocess.run([sys.executable, "-c", SMALL_MANIFESTS, table, change], capture_output=True, text=True)
    assert done.stdout.startswith("IOFailedError True"), done.stdout + done.stderr
    assert "File too large" in done.stdout
    left = {path for path in Path(table).rglob("*") if path.is_file()} - before
    assert {path.parent.name for path in left} <= {"_transactions"}
    _unharmed(table, version=3)


@pytest.mark.skipif("ESKER_FULL_DISK" not in os.environ, reason="by hand: needs a small file system")
@pytest.mark.parametrize("change", CHANGES)
def test_a_disk_that_is_really_full(change: str) -> None:
    folder = Path(os.environ["ESKER_FULL_DISK"], "table")
    shutil.rmtree(folder, ignore_errors=True)
    uri = str(folder)
    esker.write_dataset(_ids(0, 10), uri, max_rows_per_file=5)
    esker.write_dataset(_ids(10, 2), uri, mode="append")
    filler = folder.parent / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    try:
        with pytest.raises(IOFailedError, match="No space left on device.*free some space"):
            CHANGES[change](esker.dataset(uri))
        assert esker.dataset(uri).to_table().num_rows == 12
    finally:
        filler.unlink()
    _unharmed(uri)
    shutil.rmtree(folder)


# Of a process of the superuser modes ask nothing: it gives that up first.
POWERLESS = """
import ctypes, os, sys
if os.geteuid() == 0:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, data) == 0
import esker
from tests.test_bad_days import CHANGES
dataset = esker.dataset(sys.argv[1])
print(dataset.to_table().num_rows, flush=True)
try:
    CHANGES[sys.argv[2]](dataset)
except esker.exceptions.IOFailedError as error:
    print(error)
    raise SystemExit(7)
"""


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_cannot_be_written_can_be_read(change: str, table: str) -> None:
    folders = [Path(table), *(path for path in Path(table).iterdir() if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", POWERLESS, table, change], capture_output=True, text=True, check=False
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 7, done.stderr
    rows, _, message = done.stdout.partition("\n")
    assert rows == "12"
    assert "Permission denied" in message
    assert "check who owns it and its mode" in message
    assert table in message
    _unharmed(table)


@pytest.mark.parametrize("gone", ["data", "_deletions", "_versions", "_transactions"])
def test_a_file_that_is_gone(gone: str, table: str) -> None:
    esker.dataset(table).delete("id = 3")
    path = min(Path(table, gone).iterdir())
    if gone == "_versions":
        # The latest: what is left is the table of before, to both libraries.
        path.unlink()
        (Path(table, gone) / "latest_version_hint.json").unlink(missing_ok=True)
        _unharmed(table)
        return
    kept = path.read_bytes()
    path.unlink()
    if gone == "_transactions":
        assert esker.dataset(table).count_rows() == lance.dataset(table).count_rows() == 11
    else:
        with pytest.raises(NotFoundError, match=path.name):
            esker.dataset(table).to_table()
    # Others still write, and the rest is still read.
    version = esker.write_dataset(_ids(900, 1), table, mode="append").version
    assert version == 4
    path.write_bytes(kept)
    assert esker.dataset(table).count_rows() == 12
    assert esker.dataset(table).to_table().equals(lance.dataset(table).to_table())


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("_deletions", "delete"),
        ("_deletions", "update"),
        ("_indices", "append"),
        ("_latest.manifest", "append"),
    ],
)
def test_a_file_stands_where_a_folder_should_be(place: str, change: str, table: str) -> None:
    Path(table, place).write_bytes(b"x")
    if place == "_deletions":
        with pytest.raises(IOFailedError, match="expected a folder, found a file|stands where a folder"):
            CHANGES[change](esker.dataset(table))
        Path(table, place).unlink()
        _unharmed(table)
    else:
        CHANGES[change](esker.dataset(table))
        assert esker.dataset(table).version == 3


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_stands_where_the_next_manifest_should_be(change: str, table: str) -> None:
    folder = Path(table, "_versions", f"{2**64 - 1 - 3:020}.manifest")
    folder.mkdir()
    started = time.monotonic()
    with pytest.raises(EskerError, match=r"folder|directory"):
        CHANGES[change](esker.dataset(table))
    assert time.monotonic() - started < 20
    assert esker.dataset(table).version == 2
    folder.rmdir()
    _unharmed(table)


@pytest.mark.parametrize("what", ["data", "manifest"])
def test_a_folder_stands_where_a_file_was(what: str, table: str) -> None:
    path = min(Path(table, "data" if what == "data" else "_versions").iterdir())
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    if what == "data":
        with pytest.raises(EskerError, match=path.name):
            esker.dataset(table).to_table()
    path.rmdir()
    path.write_bytes(kept)
    _unharmed(table)


@pytest.mark.parametrize("days", [-400, 400])
@pytest.mark.parametrize("change", CHANGES)
def test_a_clock_that_jumps_between_two_commits(
    change: str, days: int, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + days * 86_400 * 10**9)
    dataset = esker.dataset(table)
    CHANGES[change](dataset)
    monkeypatch.undo()
    assert esker.dataset(table).version == 3 == lance.dataset(table).version
    assert esker.dataset(table).to_table().equals(lance.dataset(table).to_table())
    committed = [version["timestamp"] for version in esker.dataset(table).versions()]
    assert abs(committed[2] - committed[1] - timedelta(days=days)) < timedelta(minutes=5)
    esker.dataset(table).delete("id = 0")
    assert lance.dataset(table).version == 4
    # The latest version stays whatever its time, and only what is older than the caller says goes.
    stats = esker.dataset(table).cleanup_old_versions(timedelta(days=300))
    assert stats.old_versions == (1 if days < 0 else 0)
    assert esker.dataset(table).version == 4
    check_leftovers(table)
    assert esker.dataset(table).to_table().equals(lance.dataset(table).to_table())


def test_versions_by_time_are_those_that_were_committed_before_it(table: str) -> None:
    future = (datetime.now() + timedelta(days=1)).isoformat()
    assert esker.dataset(table, asof=future).version == 2


def test_a_manifest_that_is_cut_short_stops_readers_and_writers(table: str) -> None:
    path = min(Path(table, "_versions").glob("*.manifest"))
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 2])
    for act in (lambda: esker.dataset(table), lambda: esker.write_dataset(_ids(0, 1), table, mode="append")):
        with pytest.raises(CorruptFileError, match=path.name):
            act()
    path.write_bytes(kept)
    _unharmed(table)
