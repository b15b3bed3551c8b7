"""Text that trips up parsers, wherever a Lance table takes text: what one library writes, both read as it was.

Names of columns have rules of their own, see `test_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, IOFailedError

TEXTS = {
    "line separator": "a\u2028b",
    "next line": "a\u0085b",
    "right to left": "a\u202e\u05d0b",
    "emoji": "a\U0001f600\u200db",
    "combining": "e\u0301 \u00e9",
    "percent": "a%20b%",
    "quote": "it's",
    "double quote": 'a"b',
    "backslash": "a\\b\\u0041",
    "line ends": "a\nb\r\n",
    "tab": "\t a ",
    "control": "\x01\x7f\x1b[0m",
    "braces": "{a} ${b} {{c}}",
    "marks": "a#b?c&d=e;f:g@h",
    "byte order mark": "\ufeffa",
    "last": "\U0010ffff\uffff",
    "slash": "a/b",
    "comment": "a -- b /* c */",
    "megabyte": "x" * (1 << 20),
}
"""What a name, a key and a value may be."""

LIBRARIES = {"esker": esker, "pylance": lance}
WRITERS = pytest.mark.parametrize("writer", LIBRARIES)
EVERY_TEXT = pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
BASE = pa.table({"x": [1]})


def _pairs(text: str) -> dict[str, str]:
    return {text: "v", "k": text}


def _bytes(text: str) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in _pairs(text).items()}


Step = Callable[[Any, str, str], object]

PLACES: dict[str, tuple[Step, Step]] = {
    "column": (
        lambda library, uri, text: library.write_dataset(pa.table({text: [1], "x": [2]}), uri),
        lambda dataset, uri, text: dataset.to_table(columns=[text]).to_pylist() == [{text: 1}],
    ),
    "renamed column": (
        lambda library, uri, text: library.write_dataset(BASE, uri).alter_columns({"path": "x", "name": text}),
        lambda dataset, uri, text: dataset.to_table().to_pylist() == [{text: 1}],
    ),
    "added column": (
        lambda library, uri, text: library.write_dataset(BASE, uri).add_columns({text: "x + 1"}),
        lambda dataset, uri, text: dataset.to_table().to_pylist() == [{"x": 1, text: 2}],
    ),
    "field of a struct": (
        lambda library, uri, text: library.write_dataset(pa.table({"s": pa.array([{text: 1}])}), uri),
        lambda dataset, uri, text: dataset.to_table().to_pylist() == [{"s": {text: 1}}],
    ),
    "schema metadata": (
        lambda library, uri, text: library.write_dataset(BASE.replace_schema_metadata(_pairs(text)), uri),
        lambda dataset, uri, text: dataset.schema.metadata == _bytes(text),
    ),
    "updated schema metadata": (
        lambda library, uri, text: library.write_dataset(BASE, uri).update_schema_metadata(_pairs(text)),
        lambda dataset, uri, text: dataset.schema.metadata == _bytes(text),
    ),
    "field metadata": (
        lambda library, uri, text: library.write_dataset(
            pa.table([[1]], schema=pa.schema([pa.field("x", pa.int64(), metadata=_pairs(text))])), uri
        ),
        lambda dataset, uri, text: dataset.schema.field("x").metadata == _bytes(text),
    ),
    "updated field metadata": (
        lambda library, uri, text: library.write_dataset(BASE, uri).update_field_metadata({"x": _pairs(text)}),
        lambda dataset, uri, text: dataset.schema.field("x").metadata == _bytes(text),
    ),
    "config": (
        lambda library, uri, text: library.write_dataset(BASE, uri).update_config(_pairs(text)),
        lambda dataset, uri, text: dataset.config() == _pairs(text),
    ),
    "table metadata": (
        lambda library, uri, text: library.write_dataset(BASE, uri).update_metadata(_pairs(text)),
        lambda dataset, uri, text: dataset.metadata == _pairs(text),
    ),
    "properties": (
        lambda library, uri, text: library.write_dataset(BASE, uri, transaction_properties=_pairs(text)),
        lambda dataset, uri, text: dict(dataset.read_transaction(1).transaction_properties) == _pairs(text),
    ),
    "message": (
        lambda library, uri, text: library.write_dataset(BASE, uri, commit_message=text),
        lambda dataset, uri, text: text in dict(dataset.read_transaction(1).transaction_properties).values(),
    ),
    "value and predicate": (
        lambda library, uri, text: library.write_dataset(pa.table({"x": [text, "y"]}), uri),
        lambda dataset, uri, text: (
            dataset.to_table(filter=f"x = '{text.replace(chr(39), chr(39) * 2)}'").to_pylist() == [{"x": text}]
        ),
    ),
    "predicate of a delete": (
        lambda library, uri, text: library.write_dataset(pa.table({"x": [text, "y"]}), uri).delete(
            f"x = '{text.replace(chr(39), chr(39) * 2)}'"
        ),
        lambda dataset, uri, text: dataset.to_table().to_pylist() == [{"x": "y"}],
    ),
    "dictionary": (
        lambda library, uri, text: library.write_dataset(
            pa.table({"x": pa.array([text, "y"]).dictionary_encode()}), uri
        ),
        lambda dataset, uri, text: dataset.to_table()["x"].to_pylist() == [text, "y"],
    ),
}


@WRITERS
@EVERY_TEXT
@pytest.mark.parametrize("place", PLACES)
def test_text_comes_back_as_it_was(place: str, text: str, writer: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write, is_there = PLACES[place]
    write(LIBRARIES[writer], uri, text)
    for library in LIBRARIES.values():
        assert is_there(library.dataset(uri), uri, text)


NUL_ALLOWED = [
    *("schema metadata", "updated schema metadata", "field metadata", "updated field metadata", "config"),
    *("table metadata", "properties", "message", "value and predicate", "predicate of a delete", "dictionary"),
]


@pytest.mark.parametrize("place", NUL_ALLOWED)
def test_a_nul_is_text_like_any_other_where_it_ends_no_name(place: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write, is_there = PLACES[place]
    write(esker, uri, "a\0b")
    for library in LIBRARIES.values():
        assert is_there(library.dataset(uri), uri, "a\0b")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["a\ud800b", "\udcff"])
def test_half_a_character_is_refused_and_nothing_is_committed(place: str, text: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    with pytest.raises(ValueError, match="surrogates not allowed"):
        PLACES[place][0](esker, uri, text)
    assert [*tmp_path.rglob("*.lance")] == [] or esker.dataset(uri).version == 1


PATHS = [name for name in TEXTS if name not in ("megabyte", "line ends", "tab", "control")]
"""What object_store, beneath both libraries, takes for a path."""


@WRITERS
@pytest.mark.parametrize("name", PATHS)
def test_a_table_lies_where_its_path_says(name: str, writer: str, tmp_path: Path) -> None:
    path = tmp_path / f"t-{TEXTS[name]}"
    library = LIBRARIES[writer]
    library.write_dataset(BASE, str(path))
    library.write_dataset(BASE, str(path), mode="append")
    library.dataset(str(path)).delete("x = 2")
    assert (path / "_versions").is_dir()
    for reader in LIBRARIES.values():
        assert reader.dataset(str(path)).count_rows() == 2
        assert reader.dataset("file://" + quote(str(path))).count_rows() == 2


@pytest.mark.parametrize("name", ["line ends", "tab", "control"])
def test_a_path_that_pylance_cannot_open_is_a_table_nonetheless(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"t-{TEXTS[name]}")
    esker.write_dataset(BASE, path)
    esker.write_dataset(BASE, path, mode="append")
    assert esker.dataset(path).count_rows() == 2


def test_a_path_that_no_system_has_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="NUL"):
        esker.write_dataset(BASE, str(tmp_path / "a\0b"))
    with pytest.raises(IOFailedError, match="too long"):
        esker.write_dataset(BASE, str(tmp_path / TEXTS["megabyte"]))
