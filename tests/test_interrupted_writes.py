"""Ctrl-C ends a write or a merge while its files are being made, and leaves none of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.lance.change import column_update
from esker.lance.merge import in_place

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
if verb == "merge":
    from esker.lance.merge import merge
    merge.DEFAULT_MAX_ROWS_PER_FILE = 100
    source = pa.table({"id": range(1_000_000)})
    esker.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
elif verb == "append":
    esker.write_dataset(reader, uri, mode="append", max_rows_per_file=100)
else:
    esker.fragment.write_fragments(reader, uri, max_rows_per_file=100)
"""


@pytest.mark.parametrize("verb", ["append", "write_fragments", "merge"])
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


def test_ctrl_c_ends_an_update_that_has_started_a_file(uri: str) -> None:
    rows = 2_000_000
    esker.write_dataset(pa.table({"id": range(rows), "t": [f"text {row} of some length" for row in range(rows)]}), uri)
    data = Path(uri, "data")
    before = sorted(data.iterdir())
    program = "import esker, sys; esker.dataset(sys.argv[1]).update({'t': \"concat(t, t)\"})"
    writer = subprocess.Popen([sys.executable, "-c", program, uri], stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while len(list(data.iterdir())) == len(before) and time.monotonic() < until:
            time.sleep(0.001)
        writer.send_signal(signal.SIGINT)
        _, errors = writer.communicate(timeout=60)
    finally:
        writer.kill()
    assert b"KeyboardInterrupt" in errors
    assert sorted(data.iterdir()) == before
    assert esker.dataset(uri).version == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_merge_in_place_that_ends_between_two_fragments_leaves_no_file(
    uri: str, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    table = pa.table({"id": range(80), "a": range(80), "b": range(80)})
    dataset = esker.write_dataset(table, uri, max_rows_per_file=10)
    before = sorted(Path(uri, "data").iterdir())
    done: list[int] = []

    def update(*given: Any) -> Any:
        if len(done) == 4:
            raise error
        done.append(1)
        return column_update.update_columns(*given)

    monkeypatch.setattr(in_place, "update_columns", update)
    merge = dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    with pytest.raises(error):
        merge.execute(pa.table({"id": range(80), "a": range(80)}))
    assert len(done) == 4
    assert sorted(Path(uri, "data").iterdir()) == before
    assert esker.dataset(uri).to_table().equals(table)
