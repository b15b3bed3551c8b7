"""The cache of ranges on disk: shared by processes, bounded, and never believed where it is damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import Store
from esker.exceptions import InvalidArgumentError
from esker.repo.objects.batches import rows

RULE = SplitRule()
READER = """
import sys
from esker._native.graveler import Storage
from esker._native.store import Store
from esker.repo.objects.batches import rows
root, cache, size, *contents = sys.argv[1:]
for turn in range(3):
    storage = Storage(Store(root), cache_bytes=0, cache_dir=cache, cache_dir_bytes=int(size))
    for content in contents:
        name, wanted = content.split("=")
        differences = storage.diff(None, name)
        found = sum(1 for _ in rows(differences, 1000))
        assert found == int(wanted), (found, wanted)
"""


def entries(numbers: range, checksum: str = "c") -> pa.Table:
    return pa.table(
        {
            "path": [f"data/{n:08}" for n in numbers],
            "physical_address": [f"data/x/{n}" for n in numbers],
            "size_bytes": pa.array(numbers, pa.int64()),
            "checksum": [f"{checksum}{n}" for n in numbers],
        }
    )


def content(store: Store, numbers: range, checksum: str = "c") -> str:
    found = Storage(store).apply(None, Changes.of_entries(entries(numbers, checksum)), rule=RULE).metarange_id
    assert found is not None
    return found


def read(store: Store, cache: Path, name: str, size: int = 1 << 30) -> int:
    """Differences from nothing, which reads whole ranges."""
    storage = Storage(store, cache_bytes=0, cache_dir=cache, cache_dir_bytes=size)
    return sum(1 for _ in rows(storage.diff(None, name), 1000))


@pytest.mark.parametrize("damage", ["flipped", "cut", "another's", "longer", "empty"])
def test_a_damaged_file_of_the_cache_is_fetched_again(tmp_path: Path, damage: str) -> None:
    store, cache = Store(str(tmp_path / "repo")), tmp_path / "cache"
    name = content(store, range(3000))
    assert read(store, cache, name) == 3000
    whole = {path: path.read_bytes() for path in cache.iterdir()}
    assert len(whole) == 2
    other = list(reversed(whole.values()))
    for (path, data), another in zip(whole.items(), other, strict=True):
        flipped = bytes([*data[:100], data[100] ^ 4, *data[101:]])
        path.write_bytes(
            {"flipped": flipped, "cut": data[:-1], "another's": another, "longer": data + b"x", "empty": b""}[damage]
        )
    store.io_stats()
    assert read(store, cache, name) == 3000
    assert store.io_stats().read_iops == 2
    assert {path: path.read_bytes() for path in cache.iterdir()} == whole
    assert read(store, cache, name) == 3000
    assert store.io_stats().read_iops == 0


def test_processes_share_a_folder_that_stays_within_its_bounds(tmp_path: Path) -> None:
    store, cache = Store(str(tmp_path / "repo")), tmp_path / "cache"
    counts = [1000 + 100 * n for n in range(10)]
    contents = [f"{content(store, range(count), str(count))}={count}" for count in counts]
    ranges = sum(path.stat().st_size for path in (tmp_path / "repo" / "_lakefs").iterdir())
    size = ranges // 3
    words = [sys.executable, "-c", READER, str(tmp_path / "repo"), str(cache), str(size), *contents]
    running = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    kept = sum(path.stat().st_size for path in cache.iterdir())
    # Each process looks again after an eighth of the bound at the latest.
    assert 0 < kept <= size * 3 // 2


def test_a_folder_that_cannot_be_written_costs_reads_and_nothing_else(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "repo"))
    name = content(store, range(2000))
    (tmp_path / "cache").write_text("in the way")
    for _ in range(2):
        store.io_stats()
        assert read(store, tmp_path / "cache", name) == 2000
        assert store.io_stats().read_iops == 2


def test_a_stream_of_entries_is_committed_as_it_comes(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    expected = content(store, range(10_000))
    table = entries(range(10_000))
    asked: list[int] = []

    def batches() -> object:
        for start in range(0, 10_000, 900):
            asked.append(start)
            yield from table.slice(start, 900).combine_chunks().to_batches()

    stream = pa.RecordBatchReader.from_batches(table.schema, batches())
    applied = Storage(store).apply(None, stream, rule=RULE)
    assert (applied.metarange_id, applied.added) == (expected, 10_000)
    assert asked == list(range(0, 10_000, 900))
    assert Storage(store).apply(expected, table, rule=RULE).metarange_id is None
    backwards = pa.concat_tables([table.slice(5000), table.slice(0, 5000)])
    with pytest.raises(InvalidArgumentError, match="sorted by path"):
        Storage(store).apply(None, backwards, rule=RULE)
    with pytest.raises(InvalidArgumentError, match="path"):
        Storage(store).apply(None, table.drop_columns(["path"]), rule=RULE)
