"""Strings of 2.0 files that field metadata want compressed: both ways with pylance, and no larger than its own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

TYPES = [pa.utf8(), pa.large_utf8(), pa.binary(), pa.large_binary()]
SCHEMES = [
    {"lance-encoding:compression": "zstd"},
    {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "19"},
    {"lance-encoding:compression": "lz4"},
    {"lance-encoding:compression": "fsst"},
    {"lance-encoding:compression": "none"},
    {"lance-encoding:compression": "snappy"},
]


def texts(metadata: dict[str, str], type_: pa.DataType) -> pa.Table:
    """Addresses, one column plain and one in lists."""
    chance = random.Random(5)
    words = [f"https://example.com/{chance.randrange(10**6)}/{chance.choice('abc')}" for _ in range(4000)]
    values: list[Any] = [None if i % 7 == 0 else word for i, word in enumerate(words)]
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        values = [value and value.encode() for value in values]
    lists = pa.list_(pa.field("item", type_, metadata=metadata))
    schema = pa.schema([pa.field("word", type_, metadata=metadata), pa.field("words", lists)])
    return pa.table(
        [pa.array(values, type_), pa.array([values[i : i + i % 3] for i in range(4000)], lists)], schema=schema
    )


def file_size(uri: Path) -> int:
    return sum(file.stat().st_size for file in (uri / "data").iterdir())


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("metadata", SCHEMES, ids=lambda metadata: "-".join(metadata.values()))
def test_compressed_texts_come_back_from_both_writers(
    tmp_path: Path, metadata: dict[str, str], type_: pa.DataType
) -> None:
    if "fsst" in metadata.values() and "large" in str(type_):
        pytest.skip("pylance panics on it, and esker refuses it")
    table = texts(metadata, type_)
    writers: dict[str, Any] = {"esker": esker.write_dataset, "pylance": lance.write_dataset}
    for name, write in writers.items():
        write(table, str(tmp_path / name), data_storage_version="2.0")
        assert esker.dataset(tmp_path / name).to_table().equals(table)
        assert esker.dataset(tmp_path / name).take([3999, 17, 0]).equals(table.take([3999, 17, 0]))
        assert lance.dataset(str(tmp_path / name)).to_table().equals(table)
    assert file_size(tmp_path / "esker") <= file_size(tmp_path / "pylance") * 1.001 + 64
