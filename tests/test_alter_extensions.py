"""`alter_columns(data_type=)` of extension columns: an extension is a type of its own, its storage type another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import UnsupportedError

UUID = b"0123456789abcdef"
VECTOR = pa.list_(pa.float32(), 2)


class Celsius(pa.ExtensionType):
    """A type of a user's own."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    pa.register_extension_type(Celsius())
    yield
    pa.unregister_extension_type("tests.celsius")


COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "uuid": (pa.uuid(), pa.array([UUID, None], pa.binary(16))),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1, 2], None], VECTOR)),
    "bool8": (pa.bool8(), pa.array([1, None], pa.int8())),
    "of a user's own": (Celsius(), pa.array([5, None])),
}


def _table(uri: str, name: str) -> esker.LanceDataset:
    type_, storage = COLUMNS[name]
    return esker.write_dataset(pa.table({"c": pa.ExtensionArray.from_storage(type_, storage)}), uri)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_storage_type_takes_the_extension_away(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri, name)
    storage = COLUMNS[name][1]
    dataset.alter_columns({"path": "c", "data_type": storage.type})
    for library in (esker, lance):
        found = library.dataset(uri).to_table()
        assert found.schema.field("c").type == storage.type
        assert not found.schema.field("c").metadata
        assert found["c"].to_pylist() == storage.to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_the_same_extension_changes_nothing_and_comes_back_over_its_storage(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri, name)
    type_, storage = COLUMNS[name]
    before = dataset.to_table()
    files = sorted((tmp_path / "t" / "data").iterdir())
    dataset.alter_columns({"path": "c", "data_type": type_})
    assert sorted((tmp_path / "t" / "data").iterdir()) == files
    dataset.alter_columns({"path": "c", "data_type": storage.type})
    dataset.alter_columns({"path": "c", "data_type": type_})
    assert esker.dataset(uri).to_table() == before
    assert lance.dataset(uri).to_table() == before


def test_an_extension_that_nobody_registered_goes_too_and_leaves_other_key_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    metadata = {"ARROW:extension:name": "unknown", "ARROW:extension:metadata": "m", "unit": "m"}
    schema = pa.schema([pa.field("c", pa.int64(), metadata=metadata)])
    dataset = esker.write_dataset(pa.table([[5]], schema=schema), uri)
    dataset.alter_columns({"path": "c", "data_type": pa.int64()})
    assert esker.dataset(uri).schema.field("c").metadata == {b"unit": b"m"}
    assert lance.dataset(uri).schema.field("c").metadata == {b"unit": b"m"}


def test_another_type_than_the_storage_type_casts_the_storage(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _table(uri, "of a user's own").alter_columns({"path": "c", "data_type": pa.int8()})
    assert lance.dataset(uri).to_table() == pa.table({"c": pa.array([5, None], pa.int8())})


def test_a_view_is_the_type_that_files_have(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(pa.table({"c": ["a"], "l": [[1]]}), uri)
    dataset.alter_columns({"path": "c", "data_type": pa.string_view()})
    dataset.alter_columns(
        {"path": "c", "data_type": pa.binary_view()}, {"path": "l", "data_type": pa.list_view(pa.int8())}
    )
    expected = pa.schema([("c", pa.binary()), ("l", pa.list_(pa.int8()))])
    assert esker.dataset(uri).schema == lance.dataset(uri).schema == expected


@pytest.mark.parametrize("name", ["uuid", "bool8", "of a user's own"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_items_of_fixed_size_lists_have_no_extension(name: str, version: str, tmp_path: Path) -> None:
    """As with pylance: the format says of them only how they are stored."""
    type_, storage = COLUMNS[name]
    items = pa.ExtensionArray.from_storage(type_, storage)
    fixed = pa.FixedSizeListArray.from_arrays(items, 2)
    for column in (fixed, pa.StructArray.from_arrays([fixed], ["f"]), pa.ListArray.from_arrays([0, 1], fixed)):
        table = pa.table({"c": column})
        with pytest.raises(UnsupportedError, match=r"column 'c.*come back as"):
            esker.write_dataset(table, str(tmp_path / "t"), data_storage_version=version)
        assert not (tmp_path / "t").exists()
        with pytest.raises(OSError, match="does not match the file schema"):
            lance.write_dataset(table, str(tmp_path / "peer"), data_storage_version=version)
    lists = pa.table({"c": pa.ListArray.from_arrays([0, 2], items)})
    assert esker.write_dataset(lists, str(tmp_path / "t")).to_table() == lists
