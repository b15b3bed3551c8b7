"""Deletion vectors, made byte by byte: inline and in files, right and broken; in reads and in the change feed."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import DeltaTable
from tests.delta_logs import add, commit, metadata, remove

MAGIC = 1681511377
ROWS = 200_000
FEATURES = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}


def bitmap(rows: list[int]) -> bytes:
    """The rows as the protocol has them: a magic number, then Roaring bitmaps of arrays in their portable form."""
    high: dict[int, dict[int, list[int]]] = {}
    for row in sorted(rows):
        high.setdefault(row >> 32, {}).setdefault(row >> 16 & 0xFFFF, []).append(row & 0xFFFF)
    out = struct.pack("<IQ", MAGIC, len(high))
    for key, containers in high.items():
        out += struct.pack("<III", key, 12346, len(containers))
        out += b"".join(struct.pack("<HH", k, len(values) - 1) for k, values in containers.items())
        at = 8 + 8 * len(containers)
        for values in containers.values():
            out += struct.pack("<I", at)
            at += 2 * len(values)
        out += b"".join(struct.pack(f"<{len(v)}H", *v) for v in containers.values())
    return out


def z85(data: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = ""
    for (value,) in struct.iter_unpack(">I", data + b"\0" * (-len(data) % 4)):
        text += "".join(digits[value // 85**power % 85] for power in range(4, -1, -1))
    return text


def inline(rows: list[int], **changes: Any) -> dict[str, Any]:
    data = bitmap(rows)
    fields = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(rows)}
    return {"deletionVector": {**fields, **changes}}


def stored(table: Path, rows: list[int], *, storage: str = "u") -> dict[str, Any]:
    data = bitmap(rows)
    name = uuid.uuid4()
    path = table / f"deletion_vector_{name}.bin"
    framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path.write_bytes(b"\x01" + b"other" + framed)
    place = z85(name.bytes) if storage == "u" else str(path)
    fields = {"storageType": storage, "pathOrInlineDv": place, "offset": 6, "sizeInBytes": len(data)}
    return {"deletionVector": {**fields, "cardinality": len(rows)}}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": range(ROWS), "p": ["x"] * ROWS}), tmp_path / "f.parquet", row_group_size=70_000)
    commit(tmp_path, 0, [FEATURES, metadata(configuration={"delta.enableChangeDataFeed": "true"})])
    return tmp_path


GONE = [0, 1, 65_535, 65_536, 69_999, 70_000, 131_072, ROWS - 1]


@pytest.mark.parametrize("kind", ["inline", "uuid", "path"])
def test_deleted_rows_are_gone_in_every_way_of_reading(table: Path, kind: str) -> None:
    vector = inline(GONE) if kind == "inline" else stored(table, GONE, storage="u" if kind == "uuid" else "p")
    statistics = {"numRecords": ROWS, "minValues": {"id": 0}, "maxValues": {"id": ROWS}, "nullCount": {"id": 0}}
    commit(table, 1, [add("f.parquet", stats=json.dumps(statistics), **vector)])
    opened = DeltaTable(table)
    expected = sorted(set(range(ROWS)) - set(GONE))
    assert opened.to_pyarrow_table()["id"].to_pylist() == expected
    assert opened.scan(columns=["id"]).read_all()["id"].to_pylist() == expected
    assert opened.to_pyarrow_dataset().to_table(columns=["id"])["id"].to_pylist() == expected
    assert opened.count() == len(expected)
    assert opened.to_pyarrow_table(filters=[("id", "<", 3)])["id"].to_pylist() == [2]
    assert opened.scan(columns=["p"], predicate="id >= 199997").read_all().num_rows == 2


@settings(max_examples=25, deadline=None)
@given(gone=st.sets(st.integers(0, 99)))
def test_any_set_of_rows_may_be_gone(tmp_path_factory: pytest.TempPathFactory, gone: set[int]) -> None:
    path = tmp_path_factory.mktemp("t")
    pq.write_table(pa.table({"id": range(100), "p": ["x"] * 100}), path / "f.parquet", row_group_size=30)
    vector = inline(sorted(gone)) if gone else {}
    commit(path, 0, [FEATURES, metadata(), add("f.parquet", **vector)])
    assert DeltaTable(path).to_pyarrow_table()["id"].to_pylist() == sorted(set(range(100)) - gone)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"cardinality": 5}, exceptions.CorruptFileError, "5 rows, found 8"),
        ({"pathOrInlineDv": "00000"}, exceptions.CorruptFileError, "magic number"),
        ({"pathOrInlineDv": "~"}, exceptions.CorruptFileError, "deletion vector's place"),
        ({"storageType": "z"}, exceptions.UnsupportedError, "storage type u, p or i, found z"),
        ({"storageType": "p", "pathOrInlineDv": "/elsewhere/v.bin"}, exceptions.NotFoundError, "v.bin"),
        ({"storageType": "u", "pathOrInlineDv": z85(bytes(16))}, exceptions.NotFoundError, "deletion_vector_0000"),
        ({"storageType": "u", "pathOrInlineDv": "x"}, exceptions.CorruptFileError, "deletion vector's place"),
    ],
)
def test_a_vector_that_cannot_be_read_is_an_error_and_never_all_rows(
    table: Path, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    commit(table, 1, [add("f.parquet", **inline(GONE, **change))])
    with pytest.raises(error, match=words):
        DeltaTable(table).to_pyarrow_table()


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_shallow_clone_reads_files_and_vectors_of_the_other_table(table: Path, tmp_path: Path, scheme: str) -> None:
    other = tmp_path / "clone"
    vector = stored(table, GONE, storage="p")
    vector["deletionVector"]["pathOrInlineDv"] = scheme + vector["deletionVector"]["pathOrInlineDv"]
    commit(other, 0, [FEATURES, metadata(), add(f"{scheme}{table}/f.parquet", **vector)])
    assert DeltaTable(other).to_pyarrow_table()["id"].to_pylist() == sorted(set(range(ROWS)) - set(GONE))


def test_a_vector_whose_bytes_changed_is_an_error(table: Path) -> None:
    commit(table, 1, [add("f.parquet", **stored(table, GONE))])
    (path,) = table.glob("deletion_vector_*.bin")
    whole = path.read_bytes()
    for at in range(6, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(exceptions.CorruptFileError):
            DeltaTable(table).to_pyarrow_table(columns=["id"])
    path.write_bytes(whole[:-3])
    with pytest.raises(exceptions.EskerError):
        DeltaTable(table).to_pyarrow_table(columns=["id"])


def test_the_change_feed_tells_of_rows_between_two_vectors(table: Path) -> None:
    old, new = inline([1, 5]), inline([5, 7])
    commit(table, 1, [add("f.parquet", **old)])
    commit(table, 2, [remove("f.parquet", **old), add("f.parquet", **new)])
    commit(table, 3, [remove("f.parquet", **new)])
    found = DeltaTable(table).load_cdf(starting_version=2, ending_version=2).read_all()
    assert sorted(zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True)) == [
        (1, "insert"),
        (7, "delete"),
    ]
    first = DeltaTable(table).load_cdf(starting_version=1, ending_version=1).read_all()
    assert first.num_rows == ROWS - 2
    last = DeltaTable(table).load_cdf(starting_version=3).read_all()
    assert (last.num_rows, set(last["_change_type"].to_pylist())) == (ROWS - 2, {"delete"})


def test_z85_is_that_of_python() -> None:
    data = bytes(range(16))
    # Python's has other digits: only their order is the same.
    python = base64.a85encode(data).decode()
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    assert "".join(chr(digits.index(letter) + 33) for letter in z85(data)) == python
