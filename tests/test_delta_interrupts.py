"""Ctrl-C in the middle of a verb: the table is as it was or as it is to be, and no thread or file is left behind."""

from __future__ import annotations

import dis
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import esker.delta.change.column_copies
import esker.delta.log.commit
import esker.store.staging
from esker._native.store import Store
from esker.commit.gate import Gate
from esker.commit.orphans import StagedFiles
from esker.delta import DeltaTable, write_deltalake
from esker.delta.change.column_copies import ColumnCopies
from esker.delta.schema import Schema
from esker.delta.write.data_files import DataFileWriter
from esker.delta.write.file_sink import FileSink

ROWS = 50_000
FILES = 4
ATTEMPTS = 12
LAYOUTS: dict[str, dict[str, str | None]] = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "copy": {},
    "feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
}
VERBS: dict[str, Callable[[DeltaTable, pa.Table], object]] = {
    "update": lambda table, _: table.update({"n": "n + 1000000", "s": "concat(s, '!')"}, predicate="id % 3 = 1"),
    "delete": lambda table, _: table.delete("id % 3 = 1"),
    "merge": lambda table, source: (
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"n": "s.n"}).execute()
    ),
    "replace": lambda table, source: write_deltalake(
        table, source, mode="overwrite", predicate="id % 3 = 1", schema_mode="merge"
    ),
}


def interruptible(path: str, verb: str, told: Connection) -> None:
    """Does a verb, and tells when it begins, what became of it, and which threads are left."""
    table = DeltaTable(path)
    ids = np.arange(1, ROWS * FILES, 3)
    source = pa.table({"id": ids, "n": ids + 1000000})
    # A shell has its background processes ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcome = "interrupted"
    try:
        told.send("begins")
        VERBS[verb](table, source)
        outcome = "done"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        pass
    told.send(outcome)
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("esker")]
    for thread in ours:
        # Ctrl-C may come while the verb waits for one that is about to begin or to end.
        if thread._started.wait(1):  # type: ignore[attr-defined]
            thread.join(10)
    told.send([thread.name for thread in ours if thread.is_alive()])


def run(path: Path, verb: str, after: float | None) -> tuple[str, list[str], float]:
    """Runs a verb in a process, with Ctrl-C so many seconds after its beginning: its outcome, threads, seconds."""
    # Processes come from one that has imported what they need, and does nothing else.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    told, tells = context.Pipe(duplex=False)
    process = context.Process(target=interruptible, args=(str(path), verb, tells))
    process.start()
    # Once it has died, nobody holds the other end.
    tells.close()
    assert told.recv() == "begins"
    start = time.monotonic()
    if after is not None:
        time.sleep(after)
        assert process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
    outcome = told.recv()
    seconds = time.monotonic() - start
    threads = told.recv()
    process.join(60)
    assert process.exitcode == 0
    return outcome, threads, seconds


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each layout; tests copy them."""
    root = tmp_path_factory.mktemp("tables")
    for layout, configuration in LAYOUTS.items():
        for number in range(FILES):
            ids = np.arange(number * ROWS, (number + 1) * ROWS)
            texts = pa.array([f"row {n}" for n in ids.tolist()])
            rows = pa.table({"id": ids, "n": ids, "s": texts})
            write_deltalake(root / layout, rows, mode="append", configuration=configuration)
    return root


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_in_the_middle_of_a_verb_leaves_all_or_nothing(
    verb: str, layout: str, tables: Path, tmp_path: Path
) -> None:
    def prepared(name: str) -> Path:
        return Path(shutil.copytree(tables / layout, tmp_path / name))

    path = prepared("whole")
    old = DeltaTable(path).to_pyarrow_table().sort_by("id")
    outcome, _, seconds = run(path, verb, None)
    assert outcome == "done"
    new = DeltaTable(path).to_pyarrow_table().sort_by("id")
    assert old != new
    interrupted, delays = 0, [seconds * part for part in (0.1, 0.4, 0.8)]
    for attempt in range(ATTEMPTS):
        if attempt >= len(delays):
            # The machine was slower before than it is now: earlier and earlier, from the middle on.
            delays.append(seconds / 2 ** (attempt - 1))
        path = prepared(f"attempt {attempt}")
        outcome, threads, _ = run(path, verb, delays[attempt])
        table = DeltaTable(path)
        assert table.to_pyarrow_table().sort_by("id") == (old if table.version() < FILES else new)
        assert outcome in ("done", "interrupted")
        assert table.version() == FILES or outcome == "interrupted"
        interrupted += outcome == "interrupted"
        assert threads == []
        if table.version() < FILES:
            assert files_of(path) == named(table)
        # The next one goes on from there.
        table.delete("id = 0")
        assert table.to_pyarrow_table().num_rows == (old if table.version() < FILES + 1 else new).num_rows - 1
        if interrupted and attempt >= 2:
            break
    assert interrupted, delays


def files_of(path: Path) -> set[str]:
    """The names of all files of a table but those of its log."""
    return {file.name for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts}


def named(table: DeltaTable) -> set[str]:
    """The names of the data files of a version."""
    return {Path(uri.removeprefix("file://")).name for uri in table.file_uris()}


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


def test_a_second_ctrl_c_while_a_file_is_put_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://put-late")
    batch = pa.record_batch({"id": np.arange(1000)})
    schema = Schema.from_arrow(batch.schema)
    is_putting, goes_on = threading.Event(), threading.Event()
    finish = FileSink.finish

    def late(sink: FileSink) -> None:
        is_putting.set()
        goes_on.wait(30)
        finish(sink)

    def waited(gate: Gate) -> None:
        gate._is_closed = True
        raise KeyboardInterrupt

    monkeypatch.setattr(FileSink, "finish", late)
    monkeypatch.setattr(Gate, "close", waited)

    def broken_off() -> None:
        with StagedFiles() as staged, DataFileWriter(store, schema, [], {}, staged=staged) as writer:
            writer.write(batch)
            writer._finish(writer._open.popitem()[1])
            assert is_putting.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("esker-delta-files"):
            thread.join(30)
    assert store.list_paths("") == []


def test_a_second_ctrl_c_while_a_copy_is_made_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path, pa.table({"id": np.arange(1000)}))
    there = files_of(tmp_path)
    part, close = ColumnCopies._part, Gate.close
    begun = threading.Event()

    def late(self: ColumnCopies, *given: Any) -> bytes:
        begun.set()
        time.sleep(0.5)
        return part(self, *given)

    def listed(made: Any) -> list[Any]:
        assert begun.wait(30)
        raise KeyboardInterrupt

    def waited(gate: Gate) -> None:
        gate._is_closed = True
        monkeypatch.setattr(Gate, "close", close)
        raise KeyboardInterrupt

    monkeypatch.setattr(ColumnCopies, "_part", late)
    monkeypatch.setattr(esker.delta.change.column_copies, "list", listed, raising=False)
    monkeypatch.setattr(Gate, "close", waited)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).update({"id": "id + 1"}, predicate="id = 3")
    assert files_of(tmp_path) == there
    assert DeltaTable(tmp_path).version() == 0


class Interrupted(Store):
    """A store at which Ctrl-C comes before the second of its deletions."""

    deletions = 0

    def delete(self, path: str) -> None:
        """Deletes an object."""
        self.deletions += 1
        if self.deletions == 2:
            raise KeyboardInterrupt
        super().delete(path)


def test_staged_files_whose_deletion_was_broken_off_are_deleted_with_the_next() -> None:
    store = Interrupted("memory://deletion-broken-off")

    def broken_off() -> None:
        with StagedFiles() as staged:
            for number in range(4):
                staged.add(store, f"part-{number}")
                store.put(f"part-{number}", b"rows")
            # As before a change is computed again.
            staged.discard()

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert store.list_paths("") == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ctrl_c_beside_the_put_of_the_entry_leaves_all_or_nothing(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"id": np.arange(1000)}), configuration=LAYOUTS[layout])
    there = files_of(tmp_path)
    put = esker.store.staging.put_entry

    def before(*_: Any) -> bool:
        raise KeyboardInterrupt

    def after(*given: Any) -> bool:
        put(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(esker.delta.log.commit, "put_entry", before)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).update({"id": "id + 1000"}, predicate="id < 10")
    assert DeltaTable(tmp_path).version() == 0
    assert files_of(tmp_path) == there
    monkeypatch.setattr(esker.delta.log.commit, "put_entry", after)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).update({"id": "id + 1000"}, predicate="id < 10")
    table = DeltaTable(tmp_path)
    assert table.version() == 1
    assert named(table) <= files_of(tmp_path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(10, 1000), *range(1000, 1010)]


def test_ctrl_c_after_a_put_whose_entry_a_clean_up_took_leaves_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"id": np.arange(1000)}))
    put = esker.store.staging.put_entry

    def late(*given: Any) -> bool:
        put(*given)
        # The machine sleeps here, and others go on.
        monkeypatch.setattr(esker.delta.log.commit, "put_entry", put)
        write_deltalake(tmp_path, pa.table({"id": [5000]}), mode="append")
        DeltaTable(tmp_path).create_checkpoint()
        (tmp_path / given[1]).unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(esker.delta.log.commit, "put_entry", late)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).update({"id": "id + 1000"}, predicate="id < 10")
    table = DeltaTable(tmp_path)
    assert table.version() == 2
    assert named(table) <= files_of(tmp_path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(10, 1010), 5000]


def test_ctrl_c_after_a_put_of_unknown_outcome_leaves_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first put fails and takes effect when the file system has it, the second one is broken off.
    write_deltalake(tmp_path, pa.table({"id": np.arange(1000)}))
    put, calls = esker.store.staging.put_entry, []

    def failing(*given: Any) -> bool:
        calls.append(given)
        if len(calls) == 1:
            raise OSError("no reply")
        raise KeyboardInterrupt

    monkeypatch.setattr(esker.delta.log.commit, "put_entry", failing)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(tmp_path).delete("id < 10")
    assert len(calls) == 2
    put(*calls[0])
    table = DeltaTable(tmp_path)
    assert table.version() == 1
    assert table.to_pyarrow_table()["id"].to_pylist() == list(range(10, 1000))


STEPS = 12
"""Steps of a verb at which Ctrl-C comes, of some 1,500."""
SMALL: dict[str, Callable[[DeltaTable, pa.Table], object]] = {
    "update": lambda table, _: table.update({"n": "n + 1000000"}, predicate="id % 3 = 1"),
    "delete": lambda table, _: table.delete("id % 3 = 1"),
    "merge": lambda table, rows: (
        table.merge(rows, "t.id = s.id", "s", "t")
        .when_matched_update({"n": "s.n"})
        .when_not_matched_insert_all()
        .execute()
    ),
    "append": lambda table, rows: write_deltalake(table, rows, mode="append"),
    "overwrite": lambda table, rows: write_deltalake(
        table, rows, mode="overwrite", predicate="id % 3 = 1 or id >= 3000"
    ),
}
Step = tuple[CodeType, int]


class Steps:
    """Where the main thread looks for Ctrl-C while a verb runs: after calls, at the beginning of functions and loops.

    Args:
        at: A step, and which of its turns: Ctrl-C comes then.
    """

    def __init__(self, at: tuple[Step, int] | None = None) -> None:
        self.seen: dict[Step, int] = {}
        self._at = at
        self._looks: dict[CodeType, set[int]] = {}

    def run(self, work: Callable[[], object]) -> str:
        """Runs a verb; `done` or `interrupted`."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            work()
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            sys.settrace(before)
        return "done"

    def _called(self, frame: FrameType, event: str, given: object) -> Any:
        # Not within the primitives of threading: there it leaves locks released that are released again.
        if not any(name in frame.f_code.co_filename for name in ("/esker/", "/concurrent/", "contextlib.py")):
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, given: object) -> Any:
        step = frame.f_code, frame.f_lasti
        if event == "opcode" and frame.f_lasti in self._looks_in(frame.f_code):
            self.seen[step] = self.seen.get(step, 0) + 1
            if self._at == (step, self.seen[step]):
                raise KeyboardInterrupt
        return self._stepped

    def _looks_in(self, code: CodeType) -> set[int]:
        if code not in self._looks:
            names = [(found.opname, found.offset) for found in dis.get_instructions(code) if found.opname != "CACHE"]
            looks = ("RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD")
            pairs = itertools.pairwise(names)
            # It does not look between a call and `with`.
            self._looks[code] = {at for (name, _), (next_, at) in pairs if name in looks and next_ != "BEFORE_WITH"}
        return self._looks[code]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("verb", SMALL)
def test_ctrl_c_at_any_step_leaves_all_or_nothing(
    verb: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(esker.delta.change.column_copies, "LEAST_COPIED", 0)
    for number in range(3):
        ids = np.arange(number * 1000, (number + 1) * 1000)
        rows = pa.table({"id": ids, "n": ids})
        write_deltalake(tmp_path / "before", rows, mode="append", configuration=LAYOUTS[layout])
    chosen = np.arange(1, 3000, 3)
    rows = pa.table({"id": np.concatenate([chosen, [5000]]), "n": np.append(chosen, 0) + 1000000})
    if verb == "append":
        rows = rows.set_column(0, "id", pa.array(np.arange(9000, 9000 + len(rows))))
    elif verb == "overwrite":
        rows = rows.set_column(0, "id", pa.array(np.arange(3000, 3000 + len(rows))))

    def run(steps: Steps) -> tuple[str, Path]:
        path = tmp_path / "table"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(tmp_path / "before", path)
        table = DeltaTable(path)
        outcome = steps.run(lambda: SMALL[verb](table, rows))
        for thread in threading.enumerate():
            if thread.name.startswith("esker") and thread.ident is not None:
                thread.join(30)
        return outcome, path

    # What is imported late, and made once, is there then.
    run(Steps())
    every = Steps()
    _, path = run(every)
    new = DeltaTable(path).to_pyarrow_table().sort_by("id")
    old = DeltaTable(tmp_path / "before").to_pyarrow_table().sort_by("id")
    assert old != new
    turns = [(step, turn) for step, count in every.seen.items() for turn in sorted({1, count})]
    # The order of threads differs from run to run: a step may not come again.
    interrupted = 0
    for at in random.Random(f"{verb} {layout}").sample(turns, STEPS):
        outcome, path = run(Steps(at))
        table, where = DeltaTable(path), f"{at[0][0].co_qualname} at {at[0][1]}, turn {at[1]}"
        interrupted += outcome == "interrupted"
        assert table.version() == 3 or outcome == "interrupted", where
        if table.version() < 3:
            assert files_of(path) == named(table), where
            assert table.to_pyarrow_table().sort_by("id") == old, where
        else:
            assert table.to_pyarrow_table().sort_by("id") == new, where
    assert interrupted > STEPS // 2
