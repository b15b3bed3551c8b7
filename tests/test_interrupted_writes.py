"""Ctrl-C ends a write while its rows are still coming, and leaves none of its files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import esker

PROGRAM = """
import sys, time
import pyarrow as pa, esker
uri, verb = sys.argv[1:]
schema = pa.schema({"id": pa.int64()})
def rows():
    while True:
        time.sleep(0.01)
        yield pa.record_batch([range(100)], schema=schema)
reader = pa.RecordBatchReader.from_batches(schema, rows())
if verb == "append":
    esker.write_dataset(reader, uri, mode="append", max_rows_per_file=100)
else:
    esker.fragment.write_fragments(reader, uri, max_rows_per_file=100)
"""


@pytest.mark.parametrize("verb", ["append", "write_fragments"])
def test_ctrl_c_ends_a_write_of_rows_without_end(uri: str, verb: str) -> None:
    esker.write_dataset(pa.table({"id": [1]}), uri)
    data = Path(uri, "data")
    writer = subprocess.Popen([sys.executable, "-c", PROGRAM, uri, verb], stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while len(list(data.iterdir())) < 10 and time.monotonic() < until:
            time.sleep(0.01)
        writer.send_signal(signal.SIGINT)
        _, errors = writer.communicate(timeout=60)
    finally:
        writer.kill()
    assert b"KeyboardInterrupt" in errors
    assert len(list(data.iterdir())) == 1
    assert esker.dataset(uri).to_table()["id"].to_pylist() == [1]
