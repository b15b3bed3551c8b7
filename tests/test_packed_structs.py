"""Packed structs in every version: what pylance writes and reads back we write and read too, all else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance.file
import pyarrow as pa
import pytest

from esker.exceptions import EskerError, UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter

VERSIONS = ["2.0", "2.1", "2.2"]
PACKED = {"packed": "true"}


def _pair(type_: pa.DataType) -> pa.DataType:
    return pa.struct([("x", type_), ("y", pa.float64())])


_NUMBERS = _pair(pa.int32())
_VECTORS = _pair(pa.list_(pa.int16(), 3))
_TEXT = _pair(pa.string())

CASES: dict[str, tuple[pa.Field, list[Any]]] = {
    "numbers": (pa.field("c", _NUMBERS, metadata=PACKED), [{"x": 1, "y": 2.0}, {"x": 3, "y": 4.0}]),
    "null structs": (pa.field("c", _NUMBERS, metadata=PACKED), [None, {"x": 3, "y": 4.0}]),
    "only null structs": (pa.field("c", _NUMBERS, metadata=PACKED), [None, None]),
    "null fields": (pa.field("c", _NUMBERS, metadata=PACKED), [{"x": 1, "y": None}, {"x": 3, "y": 4.0}]),
    "strings": (pa.field("c", _TEXT, metadata=PACKED), [{"x": "a", "y": 2.0}, {"x": "", "y": 4.0}]),
    "null strings": (pa.field("c", _TEXT, metadata=PACKED), [{"x": None, "y": 2.0}, {"x": "b", "y": 4.0}]),
    "vectors": (pa.field("c", _VECTORS, metadata=PACKED), [{"x": [1, 2, 3], "y": 2.0}, {"x": [4, 5, 6], "y": 4.0}]),
    "null items": (
        pa.field("c", _VECTORS, metadata=PACKED),
        [{"x": [1, None, 3], "y": 2.0}, {"x": [None] * 3, "y": 4}],
    ),
    "null vectors": (pa.field("c", _VECTORS, metadata=PACKED), [{"x": None, "y": 2.0}, {"x": [1, 2, 3], "y": 4.0}]),
    "bools": (pa.field("c", _pair(pa.bool_()), metadata=PACKED), [{"x": True, "y": 2.0}, {"x": False, "y": 4.0}]),
    "nulls": (pa.field("c", _pair(pa.null()), metadata=PACKED), [{"x": None, "y": 2.0}, {"x": None, "y": 4.0}]),
    "lists": (pa.field("c", _pair(pa.list_(pa.int8())), metadata=PACKED), [{"x": [1], "y": 2.0}, {"x": [], "y": 4.0}]),
    "structs": (
        pa.field("c", _pair(pa.struct([("a", pa.int8())])), metadata=PACKED),
        [{"x": {"a": 1}, "y": 2.0}, {"x": {"a": 2}, "y": 4.0}],
    ),
    "dictionaries": (
        pa.field("c", _pair(pa.dictionary(pa.int8(), pa.string())), metadata=PACKED),
        [{"x": "a", "y": 2.0}, {"x": "b", "y": 4.0}],
    ),
    "in a list": (
        pa.field("c", pa.list_(pa.field("item", _NUMBERS, metadata=PACKED))),
        [[{"x": 1, "y": 2.0}], [], [{"x": 3, "y": 4.0}, {"x": 5, "y": 6.0}]],
    ),
    "in a struct": (
        pa.field("c", pa.struct([pa.field("p", _NUMBERS, metadata=PACKED), pa.field("q", pa.string())])),
        [{"p": {"x": 1, "y": 2.0}, "q": "a"}, {"p": {"x": 3, "y": 4.0}, "q": None}],
    ),
    "a marked list of structs": (pa.field("c", pa.list_(_NUMBERS), metadata=PACKED), [[{"x": 1, "y": 2.0}], []]),
    "a marked list": (pa.field("c", pa.list_(pa.int32()), metadata=PACKED), [[1], []]),
    "a marked number": (pa.field("c", pa.int32(), metadata=PACKED), [1, None]),
}


DEADLY = ("nulls", "lists", "structs", "dictionaries")
"""Cases at which pylance panics, which may end the process later: it is not asked."""


def _table(case: str) -> pa.Table:
    field, values = CASES[case]
    return pa.table([pa.array(values * 50, field.type)], schema=pa.schema([field]))


def _brings_back(writer: Any, reader: Any, path: Path, table: pa.Table, version: str) -> bool:
    """Whether the reader finds what the writer wrote."""
    try:
        with writer(str(path), table.schema, version=version) as out:
            out.write_batch(table)
        found = reader(str(path)).read_all().to_table()["c"]
    except EskerError:
        raise
    except Exception:
        return False
    return bool(found.to_pylist() == table["c"].to_pylist())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_we_write_what_pylance_brings_back_and_refuse_the_rest(version: str, case: str, tmp_path: Path) -> None:
    table = _table(case)
    theirs, ours = lance.file.LanceFileWriter, LanceFileWriter
    if case not in DEADLY and _brings_back(
        theirs, lance.file.LanceFileReader, tmp_path / "theirs.lance", table, version
    ):
        for writer in (theirs, ours):
            for reader in (LanceFileReader, lance.file.LanceFileReader):
                assert _brings_back(writer, reader, tmp_path / "a.lance", table, version), (writer, reader)
    else:
        with pytest.raises(UnsupportedError), ours(str(tmp_path / "ours.lance"), table.schema, version=version) as out:
            out.write_batch(table)


@pytest.mark.parametrize("mark", ["true", "TRUE", "1", "yes", "On", "y", "no", "t", "", "false", "0"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_marks_mean_packed(version: str, mark: str, tmp_path: Path) -> None:
    field, values = CASES["numbers"]
    schema = pa.schema([field.with_metadata({"packed": mark})])
    table = pa.table([pa.array(values, field.type)], schema=schema)
    theirs, ours = str(tmp_path / "theirs.lance"), str(tmp_path / "ours.lance")
    with lance.file.LanceFileWriter(theirs, schema, version=version) as writer:
        writer.write_batch(table)
    assert LanceFileReader(theirs).read_all().to_table()["c"].to_pylist() == values
    if version != "2.0" and mark in ("1", "yes", "On", "y"):
        # Pylance's writer packs it; its reader looks for two columns, and the process ends.
        with pytest.raises(UnsupportedError, match="'true'"), LanceFileWriter(ours, schema, version=version) as own:
            own.write_batch(table)
        return
    with LanceFileWriter(ours, schema, version=version) as own:
        own.write_batch(table)
    columns = []
    for path in (theirs, ours):
        peer = lance.file.LanceFileReader(path)
        assert peer.read_all().to_table()["c"].to_pylist() == values
        assert LanceFileReader(path).read_all().to_table()["c"].to_pylist() == values
        columns.append(len(peer.metadata().columns))
    assert columns[0] == columns[1]


def _texts(count: int) -> list[str]:
    return [f"user {i % 97} of group {i % 13} wrote this line" if i % 7 else "" for i in range(count)]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        pytest.param(_TEXT, [{"x": text, "y": float(i)} for i, text in enumerate(_texts(20_000))], id="texts"),
        pytest.param(
            _TEXT, [{"x": text, "y": 1.0} if i % 5 else None for i, text in enumerate(_texts(5_000))], id="null structs"
        ),
        pytest.param(
            _pair(pa.large_binary()), [{"x": text.encode() * 3, "y": 0.5} for text in _texts(5_000)], id="large binary"
        ),
        pytest.param(_TEXT, [{"x": "alpha beta " * 100_000, "y": 1.0}], id="one long text"),
        pytest.param(
            _TEXT,
            [*[{"x": "x", "y": 1.0}] * 4000, *[{"x": "ab" * 50_000, "y": 1.0}] * 21],
            id="few long texts behind short ones",
        ),
        pytest.param(
            _TEXT,
            [{"x": "x" if i % 97 else "ab" * (i % 1000 * 200), "y": 1.0} for i in range(4097)],
            id="few long texts among short ones",
        ),
        pytest.param(
            _TEXT, [{"x": f"alpha beta {i} " * (5_000 * (i % 3)), "y": 1.0} for i in range(40)], id="long texts"
        ),
        pytest.param(
            pa.struct([("a", pa.string()), ("n", pa.int64()), ("b", pa.large_string())]),
            [{"a": text, "n": i, "b": text[::-1] * 2} for i, text in enumerate(_texts(4_000))],
            id="two texts",
        ),
    ],
)
@pytest.mark.parametrize("in_lists", [False, True])
def test_texts_within_packed_structs_are_compressed_as_by_pylance(
    type_: pa.DataType, values: list[Any], in_lists: bool, tmp_path: Path
) -> None:
    field = pa.field("c", type_, metadata=PACKED)
    if in_lists:
        field = pa.field("c", pa.list_(field.with_name("item")))
        values = [values[at : at + 3] for at in range(0, len(values), 3)]
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    sizes = []
    for name, library in (("theirs", lance.file.LanceFileWriter), ("ours", LanceFileWriter)):
        path = tmp_path / name
        with library(str(path), table.schema, version="2.2") as writer:
            writer.write_batch(table)
        sizes.append(path.stat().st_size)
        for reader in (LanceFileReader, lance.file.LanceFileReader):
            assert reader(str(path)).read_all().to_table()["c"].to_pylist() == values
        ours = LanceFileReader(str(path))
        picked = sorted({0, len(values) // 2, len(values) - 1})
        assert ours.take_rows(picked).to_table()["c"].to_pylist() == [values[at] for at in picked]
    assert sizes[1] <= sizes[0] * 1.05
