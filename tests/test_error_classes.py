"""Errors beside pylance's: whatever builtin class its error has, ours has too."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest

import esker
import esker.file
from esker.exceptions import CorruptFileError, DamagedFileError, EskerError, UnsupportedError

CLASSES = (OSError, ValueError, TypeError, IndexError, KeyError, RuntimeError, NotImplementedError)
ROWS = pa.table({"id": [1, 2], "s": ["a", None]})
NO_JSON = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["tru"]))
INTERVALS = pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([1])], ["a", "a"])


def _data_file(uri: str) -> str:
    return str(next(Path(uri, "data").glob("*.lance")))


Call = Callable[[Any, Any, str], Any]


def _setting(name: str, values: Any) -> Call:
    return lambda m, ds, uri: getattr(ds, name)(values)


CALLS: dict[str, Call] = {
    "delete, no such column": lambda m, ds, uri: ds.delete("nope = 1"),
    "delete, no SQL": lambda m, ds, uri: ds.delete("id = = 1"),
    "delete, no condition": lambda m, ds, uri: ds.delete("s + 1"),
    "update, no such column": lambda m, ds, uri: ds.update({"nope": "1"}),
    "update, no such value": lambda m, ds, uri: ds.update({"id": "nope"}),
    "update, no condition": lambda m, ds, uri: ds.update({"id": "1"}, where="nope=1"),
    "alter, no such column": lambda m, ds, uri: ds.alter_columns({"path": "zz", "name": "q"}),
    "alter, a name that is taken": lambda m, ds, uri: ds.alter_columns({"path": "id", "name": "s"}),
    "alter, nulls": lambda m, ds, uri: ds.alter_columns({"path": "s", "nullable": False}),
    "drop, no such column": lambda m, ds, uri: ds.drop_columns(["zz"]),
    "alter nothing": lambda m, ds, uri: ds.alter_columns({"path": "id"}),
    "alter nothing, one of two": lambda m, ds, uri: ds.alter_columns({"path": "id", "name": "x"}, {"path": "s"}),
    "write a type that no file holds": lambda m, ds, uri: m.write_dataset(INTERVALS, uri + "i"),
    "append a null struct to files of 2.0": lambda m, ds, uri: m.write_dataset(
        pa.table({"t": [{"a": 1}, None]}), uri + "n", data_storage_version="2.0"
    ),
    "delete of a fragment, no such column": lambda m, ds, uri: ds.get_fragments()[0].delete("nope = 1"),
    "drop all": lambda m, ds, uri: ds.drop_columns(["id", "s"]),
    "add what is there": lambda m, ds, uri: ds.add_columns({"id": "1"}),
    "add, no such column": lambda m, ds, uri: ds.add_columns({"x": "nope+1"}),
    "add, no SQL": lambda m, ds, uri: ds.add_columns({"x": "1 +"}),
    "merge what is there": lambda m, ds, uri: ds.merge(ROWS, "id"),
    "merge without the key": lambda m, ds, uri: ds.merge(pa.table({"q": [1], "z": ["a"]}), "id"),
    "upsert, twice": lambda m, ds, uri: (
        ds.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1, 1], "s": ["x", "y"]}))
    ),
    "upsert that must not match": lambda m, ds, uri: ds.merge_insert("id").when_matched_fail().execute(ROWS),
    "upsert, no such condition": lambda m, ds, uri: (
        ds.merge_insert("id").when_matched_update_all("source.nope = 1").execute(ROWS)
    ),
    "upsert, no such key": lambda m, ds, uri: ds.merge_insert("nope"),
    "upsert of nothing": lambda m, ds, uri: ds.merge_insert("id").execute(ROWS),
    "filter, no such column": lambda m, ds, uri: ds.to_table(filter="nope=1"),
    "count, no such column": lambda m, ds, uri: ds.count_rows("nope = 1"),
    "scan, no such column": lambda m, ds, uri: ds.to_table(columns=["nope"]),
    "take beyond the end": lambda m, ds, uri: ds.take([99]),
    "write what is no JSON": lambda m, ds, uri: m.write_dataset(pa.table({"j": NO_JSON}), uri + "j"),
    "write a name of the system": lambda m, ds, uri: m.write_dataset(pa.table({"_rowid": [1]}), uri + "r"),
    "write a name twice": lambda m, ds, uri: m.write_dataset(TWICE, uri + "d"),
    "write a name with a dot": lambda m, ds, uri: m.write_dataset(pa.table({"a.b": [1]}), uri + "e"),
    "append other columns": lambda m, ds, uri: ds.insert(pa.table({"zz": [1]})),
    "clean up no versions": lambda m, ds, uri: ds.cleanup_old_versions(versions=[]),
    "no such version": lambda m, ds, uri: m.dataset(uri, version=99),
    "no table": lambda m, ds, uri: m.dataset(uri + "none"),
    "check out no version": lambda m, ds, uri: ds.checkout_version(99),
    "a file with no such column": lambda m, ds, uri: m.file.LanceFileReader(_data_file(uri), columns=["zz"]),
    "a file that is missing": lambda m, ds, uri: m.file.LanceFileReader(uri + ".lance"),
    "no such tag": lambda m, ds, uri: ds.tags.delete("nope"),
    "alter by a text": lambda m, ds, uri: ds.alter_columns("id"),
    "alter to a name of a type": lambda m, ds, uri: ds.alter_columns({"path": "id", "data_type": "int32"}),
    "add by batches without rows": lambda m, ds, uri: ds.add_columns(
        lambda batch: pa.record_batch([batch["id"]], ["q"]), batch_size=0
    ),
    "blobs of no column": lambda m, ds, uri: ds.take_blobs("nope", indices=[0]),
    "blobs of texts": lambda m, ds, uri: ds.take_blobs("s", indices=[0]),
    "read blobs of no column": lambda m, ds, uri: ds.read_blobs("nope", indices=[0]),
    "read ranges of no column": lambda m, ds, uri: ds.read_blob_ranges("nope", [(0, 0, 1)], selector="indices"),
    "take of a fragment, no such column": lambda m, ds, uri: ds.get_fragments()[0].take([0], columns=["nope"]),
    "count of a fragment, no such column": lambda m, ds, uri: ds.get_fragments()[0].count_rows("nope = 1"),
    "count of a fragment, no condition": lambda m, ds, uri: ds.get_fragments()[0].count_rows("s"),
    "key-values of no column": lambda m, ds, uri: ds.update_field_metadata({"nope": {"a": "b"}}),
    "other key-values of no column": lambda m, ds, uri: ds.replace_field_metadata("nope", {"a": "b"}),
    **{
        f"{name}({values!r})": _setting(name, values)
        for name in ("update_config", "update_metadata", "update_schema_metadata", "replace_schema_metadata")
        for values in (None, "x", [("a", "b")], {"a": 1}, {1: "a"})
    },
    "a batch of commits with a delete": lambda m, ds, uri: m.LanceDataset.commit_batch(
        ds, [m.Transaction(1, m.LanceOperation.Delete([], [0], "true"))]
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_is_of_pylances_builtin_class(tmp_path: Path, name: str) -> None:
    raised = []
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(ROWS, uri)
        with pytest.raises(CLASSES) as caught:
            CALLS[name](library, dataset, uri)
        raised.append(caught.value)
        assert library.dataset(uri).version == 1
    theirs, ours = raised
    assert isinstance(ours, EskerError)
    wanted = [one for one in CLASSES if isinstance(theirs, one)]
    assert all(isinstance(ours, one) for one in wanted), (wanted, type(ours).__mro__)


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "one byte": lambda whole: b"x",
    "no footer": lambda whole: b"x" * 39,
    "junk": lambda whole: b"junk" * 100,
    "half": lambda whole: whole[: len(whole) // 2],
    "without its end": lambda whole: whole[:-1],
    "without its start": lambda whole: whole[10:],
    "junk with the magic": lambda whole: b"j" * 100 + b"LANC",
    "another version": lambda whole: whole[:-8] + b"\x09\0\x09\0LANC",
    "offsets beyond the end": lambda whole: whole[:-40] + b"\xff" * 32 + whole[-8:],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_file_of_lance_is_an_os_error_to_a_reader_of_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f.lance"
    with esker.file.LanceFileWriter(path) as writer:
        writer.write_batch(ROWS)
    path.write_bytes(WRONG[name](path.read_bytes()))
    for library in (lance, esker):
        with pytest.raises(OSError, match="f.lance|metadata") as caught:
            library.file.LanceFileReader(str(path))
        assert not isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, CorruptFileError | UnsupportedError)


def test_a_file_without_bytes_is_an_os_error(tmp_path: Path) -> None:
    """pylance panics."""
    path = tmp_path / "f.lance"
    path.touch()
    with pytest.raises(DamagedFileError, match="corrupt file f.lance") as caught:
        esker.file.LanceFileReader(path)
    assert isinstance(caught.value, OSError)
    assert (caught.value.kind, caught.value.path) == ("corrupt", "f.lance")
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), DamagedFileError)


@pytest.mark.parametrize("name", ["junk", "half", "without its end"])
@pytest.mark.parametrize(
    "call",
    [
        lambda ds: ds.take([0]),
        lambda ds: ds._take_rows([0]),
        lambda ds: ds.delete("id > 1"),
        lambda ds: ds.update({"id": "1"}),
        lambda ds: ds.validate(),
        lambda ds: ds.get_fragments()[0].take([0]),
        lambda ds: ds.to_table(),
        lambda ds: ds.to_table(filter="id > 1"),
    ],
    ids=["take", "take by id", "delete", "update", "validate", "take of a fragment", "scan", "filter"],
)
def test_a_damaged_data_file_is_of_pylances_class(tmp_path: Path, name: str, call: Callable[[Any], object]) -> None:
    raised: list[BaseException] = []
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        library.write_dataset(ROWS, uri)
        path = Path(_data_file(uri))
        path.write_bytes(WRONG[name](path.read_bytes()))
        with pytest.raises(CLASSES) as caught:
            call(library.dataset(uri))
        raised.append(caught.value)
    theirs, ours = raised
    assert isinstance(ours, CorruptFileError)
    wanted = [one for one in CLASSES if isinstance(theirs, one)]
    assert all(isinstance(ours, one) for one in wanted), (wanted, type(ours).__mro__)
