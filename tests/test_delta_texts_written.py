"""`write_deltalake` of texts, and of bytes, for columns of other types, beside deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.exceptions import EskerError, SchemaMismatchError

NUMBERS = [
    "",
    "1",
    " 1",
    "1 ",
    "+1",
    "-1",
    "01",
    "1.5",
    "-.5",
    "1e3",
    "0x10",
    "0.1e1",
    "1.005",
    "999.995",
    "1_0",
    "inf",
]
WORDS = ["true", "TRUE", "t", "f", "yes", "no", "on", "off", "0", "y", "n", "maybe"]
DAYS = ["2024-01-01", "2024-1-1", "20240101", "2024-02-30", "10000-01-01"]
MOMENTS = ["2024-01-01T03:00:00Z", "2024-01-01T03:00:00+05:30", "2024-01-01T23:00:00-05:00", "2024-01-01 03:00:00 Z"]
CLOCKS = ["2024-01-01T03:00:00", "2024-01-01 03:00", "1969-12-31 23:59:59.9999999", "2024-01-01 24:00:00"]
ZONELESS = [text for text in CLOCKS if text != "2024-01-01 03:00" and "24:00:00" not in text]
KINDS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(5, 2),
    "date": pa.date32(),
    "local": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
}
REFUSALS: dict[Any, type[Exception]] = {esker.delta: EskerError, deltalake: Exception}
"""Of deltalake's errors some are of no class of its own."""


def _written(library: Any, place: Path, values: pa.Array, kind: pa.DataType) -> list[Any] | None:
    """What a column of a type holds after an append; None if that is refused."""
    library.write_deltalake(place, pa.table({"v": pa.nulls(0, kind)}))
    try:
        library.write_deltalake(place, pa.table({"v": values}), mode="append")
    except REFUSALS[library]:
        return None
    return esker.delta.DeltaTable(place).to_pyarrow_table()["v"].to_pylist()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_texts_become_what_deltalake_reads_in_them(tmp_path: Path, kind: pa.DataType) -> None:
    is_instant = pa.types.is_timestamp(kind) and kind.tz is not None
    texts = [*NUMBERS, *WORDS, *DAYS, *MOMENTS, *(() if is_instant else CLOCKS)]
    for number, text in enumerate(texts):
        ours = _written(esker.delta, tmp_path / f"ours{number}", pa.array([text]), kind)
        theirs = _written(deltalake, tmp_path / f"theirs{number}", pa.array([text]), kind)
        assert ours == theirs, text


@pytest.mark.parametrize("text", ZONELESS)
def test_a_text_without_a_zone_is_no_timestamp(tmp_path: Path, text: str) -> None:
    esker.delta.write_deltalake(tmp_path, pa.table({"v": pa.nulls(0, KINDS["instant"])}))
    with pytest.raises(SchemaMismatchError, match=r"Cannot cast string .* say which zone it is of"):
        esker.delta.write_deltalake(tmp_path, pa.table({"v": ["2024-01-01", None, text]}), mode="append")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("given", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)], ids=str)
def test_bytes_are_neither_numbers_nor_times(tmp_path: Path, kind: pa.DataType, given: pa.DataType) -> None:
    values = pa.array([b"1"], given)
    assert _written(esker.delta, tmp_path / "ours", values, kind) is None
    assert _written(deltalake, tmp_path / "theirs", values, kind) is None


@pytest.mark.parametrize("given", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_of_each_layout_and_in_lists_are_read(tmp_path: Path, given: pa.DataType) -> None:
    esker.delta.write_deltalake(tmp_path, pa.table({"v": pa.nulls(0, pa.list_(pa.bool_()))}))
    esker.delta.write_deltalake(
        tmp_path, pa.table({"v": pa.array([["yes", None], None], pa.list_(given))}), mode="append"
    )
    assert esker.delta.DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist() == [[True, None], None]
