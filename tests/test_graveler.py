"""The core of repositories at its door: changes in, contents, differences and merges out, in batches."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from esker._native.graveler import Changes, Commit, SplitRule, Storage, entry_identity
from esker._native.store import Store
from esker.exceptions import CorruptFileError, InvalidArgumentError, NotFoundError
from esker.repo.objects.batches import ENTRY_SCHEMA, rows, table

RULE = SplitRule()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(Store(str(tmp_path)))


def entries(count: int, *, checksum: str = "c", start: int = 0, deleted: bool = False) -> Changes:
    numbers = range(start, start + count)
    columns = {
        "path": [f"data/{n:08}" for n in numbers],
        "deleted": [deleted] * count,
        "physical_address": [f"data/x/{n}" for n in numbers],
        "size_bytes": list(numbers),
        "checksum": [f"{checksum}{n}" for n in numbers],
        "metadata": [[("n", str(n))] for n in numbers],
    }
    schema = pa.schema([field for field in ENTRY_SCHEMA if field.name in columns])
    return Changes.of_entries(pa.Table.from_pydict(columns, schema=schema))


def paths(storage: Storage, metarange: str | None, **options: str) -> list[str]:
    return [row["path"] for row in rows(storage.list(metarange, **options), 100)]


def test_a_content_comes_back_in_batches(storage: Storage) -> None:
    applied = storage.apply(None, entries(1000), rule=RULE)
    assert (applied.added, applied.changed, applied.removed, applied.ranges_written) == (1000, 0, 0, 1)
    assert applied.metarange_id is not None
    listed = list(rows(storage.list(applied.metarange_id), 64))
    assert [row["entry"]["size_bytes"] for row in listed] == list(range(1000))
    assert listed[7]["entry"]["metadata"] == {"n": "7"}
    identity = entry_identity(size_bytes=7, checksum="c7", metadata={"n": "7"})
    assert listed[7]["entry"]["identity"] == identity
    found = table(storage.get(applied.metarange_id, ["data/00000007", "missing"])).to_pylist()
    assert [row["path"] for row in found] == ["data/00000007"]
    (described,) = table(storage.ranges(applied.metarange_id)).to_pylist()
    assert described["count"] == 1000
    assert table(storage.verify(described["id"])).to_pylist() == [described]


def test_what_changes_nothing_writes_nothing(storage: Storage) -> None:
    first = storage.apply(None, entries(10), rule=RULE).metarange_id
    assert storage.apply(first, entries(10), rule=RULE).metarange_id is None
    assert storage.apply(first, entries(5, start=100, deleted=True), rule=RULE).metarange_id is None
    assert storage.apply("", entries(0), rule=RULE).metarange_id is None


def test_differences_and_merges_tell_all_sides(storage: Storage) -> None:
    base = storage.apply(None, entries(10), rule=RULE).metarange_id
    left = storage.apply(base, entries(3, checksum="l"), rule=RULE).metarange_id
    right = storage.apply(base, entries(3, checksum="r", start=2), rule=RULE).metarange_id
    kinds = [(row["path"][-1], row["type"]) for row in rows(storage.diff(left, right))]
    assert kinds == [(str(n), "changed") for n in range(5)]
    counts = storage.diff_summary(base, None)
    assert (counts.removed, counts.added) == (10, 0)
    merged = storage.merge(base, left, right, rule=RULE)
    assert not merged.merged
    (conflict,) = table(merged.conflicts()).to_pylist()
    assert [conflict[side]["checksum"] for side in ("base", "source", "dest")] == ["c2", "l2", "r2"]
    decided = storage.merge(base, left, right, rule=RULE, strategy="source-wins")
    checksums = [row["entry"]["checksum"] for row in rows(storage.list(decided.metarange_id))]
    assert checksums == ["l0", "l1", "l2", "r3", "r4", "c5", "c6", "c7", "c8", "c9"]


def test_a_listing_folds_at_a_delimiter(storage: Storage) -> None:
    content = storage.apply(None, entries(3), rule=RULE).metarange_id
    assert paths(storage, content, delimiter="/") == ["data/"]
    assert paths(storage, content, prefix="data/", from_path="data/00000001") == ["data/00000001", "data/00000002"]
    assert paths(storage, None) == []


def test_records_go_in_and_out_as_they_are(storage: Storage) -> None:
    said = pa.table(
        {"key": [b"a", b"b"], "identity": [b"1", b"2"], "data": [b"x", b""]},
        pa.schema([("key", pa.binary()), ("identity", pa.binary()), ("data", pa.binary())]),
    )
    written = storage.write(Changes.of_records(said), rule=RULE, properties={"entity": "tags"})
    assert written.metarange_id is not None
    (described,) = table(storage.ranges(written.metarange_id)).to_pylist()
    records = storage.records(described["id"])
    assert records.properties["entity"] == b"tags"
    assert records.properties["type"] == b"ranges"
    assert list(rows(records)) == said.to_pylist()


def test_wrong_calls_and_damaged_files_are_told_apart(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="64 lower-case hex digits"):
        storage.list("../../etc/passwd")
    with pytest.raises(NotFoundError):
        storage.list("0" * 64)
    with pytest.raises(InvalidArgumentError, match="sorted by path"):
        Changes.of_entries(pa.table({"path": ["b", "a"]}))
    with pytest.raises(InvalidArgumentError, match='column "size_bytes"'):
        Changes.of_entries(pa.table({"path": ["a"], "size_bytes": ["1"]}))
    with pytest.raises(InvalidArgumentError, match="min_size"):
        SplitRule(min_size=2, max_size=1)
    content = storage.apply(None, entries(10), rule=RULE).metarange_id
    assert content is not None
    file = tmp_path / "_lakefs" / content
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match=content):
        Storage(Store(str(tmp_path))).list(content)


def test_a_commits_id_is_that_of_lakefs() -> None:
    """SHA-256 over the canonical bytes, made here by hand."""
    commit = Commit(
        committer="a",
        message="m",
        metarange_id="",
        creation_date=0,
        metadata={"b": "2", "a": "1"},
        parents=[],
        generation=1,
    )
    assert Commit.decode(commit.encode()).id == commit.id

    def integer(n: int) -> bytes:
        return b"\x02\x08" + n.to_bytes(8, "big")

    def text(s: str) -> bytes:
        return b"\x01" + integer(len(s)) + s.encode()

    parents = hashlib.sha256(b"\x03" + integer(0)).digest()
    said = text("commit:v1") + text("a") + text("m") + text("") + integer(0)
    said += b"\x04" + integer(2) + text("a") + text("1") + text("b") + text("2")
    said += b"\x05\x00" + integer(32) + parents
    assert commit.id == hashlib.sha256(said).hexdigest()
    with pytest.raises(CorruptFileError, match="expected the id"):
        Commit.decode(commit.encode().replace(b"a", b"x", 1))


def test_a_folder_of_this_machine_spares_reads(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "repo"))
    content = Storage(store).apply(None, entries(1000), rule=RULE).metarange_id
    for reads in (2, 0):
        storage = Storage(store, cache_bytes=0, cache_dir=tmp_path / "cache")
        store.io_stats()
        found = storage.apply(content, entries(1, checksum="z", start=500), rule=RULE)
        assert store.io_stats().read_iops == reads
        assert found.changed == 1
