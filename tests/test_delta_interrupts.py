"""Ctrl-C in the middle of a verb: the table is as it was or as it is to be, and no thread or file is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.delta.change.column_copies import ColumnCopies
from esker.delta.schema import Schema
from esker.delta.write.data_files import DataFileWriter
from esker.delta.write.file_sink import FileSink

ROWS = 200_000
FILES = 4
LAYOUTS: dict[str, dict[str, str | None]] = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "copy": {},
    "feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
}
VERBS = {
    "update": "table.update({'n': 'n + 1000000', 's': \"concat(s, '!')\"}, predicate='id % 3 = 1')",
    "delete": "table.delete('id % 3 = 1')",
    "merge": "table.merge(source, 't.id = s.id', 's', 't').when_matched_update({'n': 's.n'}).execute()",
}
CHILD = """
import sys, threading
import numpy as np
import pyarrow as pa
import pyarrow.dataset, pyarrow.parquet
from esker.delta import DeltaTable

table = DeltaTable(sys.argv[1])
ids = np.arange(1, {rows}, 3)
source = pa.table({{"id": ids, "n": ids + 1000000}})
print("begins", flush=True)
try:
    {verb}
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
ours = [thread for thread in threading.enumerate() if thread.name.startswith("esker")]
for thread in ours:
    # Ctrl-C may come while the verb waits for one that is about to end.
    thread.join(10)
print([thread.name for thread in ours if thread.is_alive()], flush=True)
"""


def run(path: Path, verb: str, after: float | None) -> tuple[str, str, float]:
    """Runs a verb in a process, with Ctrl-C so many seconds after its beginning: its outcome, threads, seconds."""
    command = [sys.executable, "-c", CHILD.format(rows=ROWS * FILES, verb=VERBS[verb])]
    process = subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    start = time.monotonic()
    if after is not None:
        time.sleep(after)
        process.send_signal(signal.SIGINT)
    outcome = process.stdout.readline().strip()
    seconds = time.monotonic() - start
    threads = process.stdout.readline().strip()
    assert process.wait(60) in (0, -signal.SIGINT, 1)
    return outcome, threads, seconds


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_in_the_middle_of_a_verb_leaves_all_or_nothing(verb: str, layout: str, tmp_path: Path) -> None:
    def prepared(name: str) -> Path:
        path = tmp_path / name
        for number in range(FILES):
            ids = np.arange(number * ROWS, (number + 1) * ROWS)
            texts = pa.array([f"row {n}" for n in ids.tolist()])
            rows = pa.table({"id": ids, "n": ids, "s": texts})
            write_deltalake(path, rows, mode="append", configuration=LAYOUTS[layout])
        return path

    path = prepared("whole")
    old = DeltaTable(path).to_pyarrow_table().sort_by("id")
    outcome, _, seconds = run(path, verb, None)
    assert outcome == "done"
    new = DeltaTable(path).to_pyarrow_table().sort_by("id")
    assert old != new
    interrupted = 0
    for part in (0.1, 0.4, 0.8):
        path = prepared(f"part {part}")
        outcome, threads, _ = run(path, verb, seconds * part)
        table = DeltaTable(path)
        assert table.to_pyarrow_table().sort_by("id") == (old if table.version() < FILES else new)
        assert outcome in ("done", "interrupted")
        assert table.version() == FILES or outcome == "interrupted"
        interrupted += outcome == "interrupted"
        assert threads == "[]"
        if table.version() < FILES:
            named = {Path(uri.removeprefix("file://")).name for uri in table.file_uris()}
            assert {file.name for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts} == named
        # The next one goes on from there.
        table.delete("id = 0")
        assert table.to_pyarrow_table().num_rows == (old if table.version() < FILES + 1 else new).num_rows - 1
    assert interrupted


class Starts:
    """Breaks the start of a thread off, as Ctrl-C may, before its pool knows of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
        self.threads: list[threading.Thread] = []
        start = threading.Thread.start

        def broken(thread: threading.Thread) -> None:
            start(thread)
            if thread.name.startswith(name):
                self.threads.append(thread)
                if len(self.threads) == number:
                    raise KeyboardInterrupt

        monkeypatch.setattr(threading.Thread, "start", broken)

    def join(self) -> None:
        assert self.threads
        for thread in self.threads:
            thread.join(30)


def slow(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Has a method wait before it begins."""
    method = getattr(owner, name)

    def late(self: Any, *given: Any) -> Any:
        time.sleep(0.3)
        return method(self, *given)

    monkeypatch.setattr(owner, name, late)


def test_a_copy_whose_thread_was_broken_off_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Texts that do not shrink: files of more than 4 MiB are copied column by column.
    ids = np.arange(400_000)
    noise = np.random.default_rng(1).bytes(16 * len(ids)).hex()
    texts = pa.array([noise[32 * n : 32 * n + 32] for n in range(len(ids))])
    for part in range(2):
        write_deltalake(tmp_path, pa.table({"id": ids + part * len(ids), "s": texts}), mode="append")
    there = {file.name for file in tmp_path.rglob("*.parquet")}
    starts = Starts(monkeypatch, "esker-delta-copies", 1)
    slow(monkeypatch, ColumnCopies, "_part")
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).delete("id % 3 = 1")
    starts.join()
    assert {file.name for file in tmp_path.rglob("*.parquet")} == there
    assert DeltaTable(tmp_path).version() == 1


def test_a_new_file_whose_thread_was_broken_off_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://broken-off")
    batch = pa.record_batch({"id": np.arange(1000)})
    writer = DataFileWriter(store, Schema.from_arrow(batch.schema), [], {})
    writer.write(batch)
    # The second thread is that of the put.
    starts = Starts(monkeypatch, "esker-delta-files", 2)
    slow(monkeypatch, DataFileWriter, "_encode")
    slow(monkeypatch, FileSink, "finish")
    with pytest.raises(KeyboardInterrupt):
        writer.close()
    writer.abandon()
    starts.join()
    assert store.list_paths("") == []
