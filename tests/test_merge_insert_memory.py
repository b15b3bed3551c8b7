"""A merge holds what it was allowed to, whatever the size of the source and of the table."""

from __future__ import annotations

import subprocess
import sys

import lance
import pytest

MERGE = """
import sys, threading, psutil, pyarrow as pa, esker
uri, batches, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows = 10_000
schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
def stream(first, mark):
    for number in range(batches):
        start = first + number * rows
        yield pa.RecordBatch.from_pydict({
            "id": pa.array(range(start, start + rows), pa.int64()),
            "text": pa.array([f"{mark}{i:0100d}" for i in range(start, start + rows)]),
        })
esker.write_dataset(stream(0, "t"), uri, schema=schema, memory_limit=limit, durable=False)
dataset = esker.dataset(uri)
process = psutil.Process()
before = process.memory_info().rss
peak = 0
done = threading.Event()
def watch():
    global peak
    while not done.wait(0.005):
        peak = max(peak, process.memory_info().rss)
thread = threading.Thread(target=watch); thread.start()
# Half of the keys are there, half are not.
merge = dataset.merge_insert("id").when_matched_update_all("source.text > target.text")
merge = merge.when_not_matched_insert_all().memory_limit(limit)
counts = merge.execute(stream(batches * rows // 2, "u"), schema=schema)
done.set(); thread.join()
assert tuple(counts.values()) == (batches * rows // 2, batches * rows // 2, 0), counts
print(peak - before)
"""


@pytest.mark.parametrize("limit", [8 << 20])
def test_an_upsert_of_many_times_its_limit_stays_near_it(limit: int, uri: str) -> None:
    batches = 200  # 2,000,000 rows of about 110 bytes: 220 MB, of which the keys alone are 30 times the limit
    done = subprocess.run(
        [sys.executable, "-c", MERGE, uri, str(batches), str(limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert lance.dataset(uri).count_rows() == batches * 15_000
    assert lance.dataset(uri).count_rows(filter="text LIKE 'u%'") == batches * 10_000
    growth = int(done.stdout)
    # Beside the limit: batches on their way, pages that are encoded, and what the allocators keep, as for a write.
    assert growth < limit + (160 << 20), f"{growth >> 20} MiB"
