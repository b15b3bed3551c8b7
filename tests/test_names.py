"""Names of columns that no reader could ask for are refused before they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import EskerError, InvalidArgumentError
from esker.file import LanceFileReader, LanceFileWriter
from esker.schema import LanceSchema

ADDED = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
REFUSED = ["", ".", "a.b", "a.", "`", "`q`", "a\0b", "\0", *ADDED]
TAKEN = [
    "a b",
    "ü",
    "x'y",
    'x"y',
    "[0]",
    "a\nb",
    "\u2028",
    "\u0085",
    "_ROWID",
    "_distance",
    "_fragid",
    "%",
    "\\",
    "X",
]


def _new(name: str) -> pa.Table:
    return pa.table({name: [1]})


def _create(uri: str, name: str) -> None:
    esker.write_dataset(_new(name), uri)


def _overwrite(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri)
    esker.write_dataset(_new(name), uri, mode="overwrite")


def _fragments(uri: str, name: str) -> None:
    fragments = esker.fragment.write_fragments(_new(name), uri, mode="create")
    LanceDataset.commit(uri, LanceOperation.Overwrite(_new(name).schema, fragments))


def _sql(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).add_columns({name: "x + 1"})


def _null(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).add_columns(pa.field(name, pa.int64()))


def _values(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).add_columns(_new(name))


def _function(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).add_columns(lambda batch: pa.record_batch([batch["x"]], [name]))


def _join(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).merge(pa.table({"x": [1], name: [2]}), "x")


def _rename(uri: str, name: str) -> None:
    esker.write_dataset(_new("x"), uri).alter_columns({"path": "x", "name": name})


def _commit_merge(uri: str, name: str) -> None:
    dataset = esker.write_dataset(_new("x"), uri)
    schema = pa.schema([("x", pa.int64()), (name, pa.int64())])
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    LanceDataset.commit(uri, LanceOperation.Merge(fragments, LanceSchema.from_pyarrow(schema)), read_version=1)


WAYS: dict[str, Callable[[str, str], None]] = {
    "create": _create,
    "overwrite": _overwrite,
    "fragments": _fragments,
    "sql": _sql,
    "null": _null,
    "values": _values,
    "function": _function,
    "join": _join,
    "rename": _rename,
    "a commit of one's own": _commit_merge,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_read_back_is_refused(name: str, way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    if "\0" in name and way == "a commit of one's own":
        # Arrow's C interface ends the name there: what comes through is another one.
        return
    with pytest.raises(EskerError):
        WAYS[way](uri, name)
    if list(tmp_path.rglob("*.manifest")):
        assert esker.dataset(uri).schema.names == ["x"]
        assert lance.dataset(uri).to_table() == _new("x")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TAKEN)
def test_all_other_names_are_taken_and_read_by_both(name: str, way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    WAYS[way](uri, name)
    for library in (esker, lance):
        dataset = library.dataset(uri)
        assert dataset.schema.names[-1] == name
        assert dataset.to_table(columns=[name]).schema.names == [name]
        assert dataset.to_table().num_rows == 1


@pytest.mark.parametrize("name", ["", ".", "a.b", "`q`", *ADDED])
def test_within_a_struct_such_names_are_taken(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"s": pa.array([{name: 1}], pa.struct([pa.field(name, pa.int64())]))})
    esker.write_dataset(rows, uri)
    assert esker.dataset(uri).to_table() == lance.dataset(uri).to_table() == rows


def test_two_fields_of_one_name_are_refused_at_every_depth(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for rows in (
        pa.table([[1], [2]], names=["a", "a"]),
        pa.table({"s": twice}),
        pa.table({"l": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), twice)}),
    ):
        with pytest.raises(InvalidArgumentError, match="expected different names"):
            esker.write_dataset(rows, uri)
        with pytest.raises(InvalidArgumentError, match="expected different names"):
            LanceFileWriter(uri, rows.schema)
    assert not list(tmp_path.rglob("*.lance"))
    esker.write_dataset(pa.table([[1], [2]], names=["a", "A"]), uri)
    assert lance.dataset(uri).to_table() == esker.dataset(uri).to_table()


def test_a_nul_within_a_struct_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"s": pa.array([{"a\0b": 1}], pa.struct([pa.field("a\0b", pa.int64())]))})
    with pytest.raises(InvalidArgumentError, match="NUL"):
        esker.write_dataset(rows, str(tmp_path / "t"))


@pytest.mark.parametrize("name", ["a.b", ".", "a\0b"])
def test_a_file_refuses_what_pylance_refuses(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        LanceFileWriter(str(tmp_path / "f.lance"), _new(name).schema)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "`q`", *ADDED])
def test_a_file_takes_names_that_a_table_has_no_room_for(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "f.lance")
    with LanceFileWriter(path, _new(name).schema) as writer:
        writer.write_batch(_new(name))
    assert LanceFileReader(path).read_all().to_table() == _new(name)


def test_a_computed_name_with_a_nul_does_not_end_the_process(tmp_path: Path) -> None:
    dataset = esker.write_dataset(_new("x"), str(tmp_path / "t"))
    assert dataset.to_table(columns={"a\0b": "x"})["a\0b"].to_pylist() == [1]
