"""Ctrl-C in the middle of a verb: the table is as it was or as it is to be, and no thread or file is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

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
