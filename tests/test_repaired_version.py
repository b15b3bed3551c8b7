"""Lance 0.16 could note file version 0.1 for a table of 2.0: the next commit notes what the files are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CorruptFileError
from esker.fragment import write_fragments
from esker.lance.refs.marking import _field, _fields

_WRITER = 13
_FORMAT = 15
_FOOTER = 16


def _rows(start: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + 5), pa.int64())})


def _as_noted_by(uri: str, release: str, version: str) -> None:
    """Rewrites the newest manifest, as if that release of Lance had noted that file version."""
    newest = min(Path(uri, "_versions").glob("*.manifest"))
    data = newest.read_bytes()
    start = int.from_bytes(data[-_FOOTER:][:8], "little")
    size = int.from_bytes(data[start : start + 4], "little")
    message = data[start + 4 : start + 4 + size]
    kept = b"".join(field for number, field, _ in _fields(message) if number not in (_WRITER, _FORMAT))
    kept += _field(_WRITER, _field(1, b"lance") + _field(2, release.encode()))
    kept += _field(_FORMAT, _field(1, b"lance") + _field(2, version.encode()))
    newest.write_bytes(data[:start] + len(kept).to_bytes(4, "little") + kept + data[start + 4 + size :])


def _wrong(uri: str, release: str = "0.16.0") -> None:
    for start in (0, 5):
        mode = "append" if start else "create"
        esker.write_dataset(_rows(start), uri, mode=mode, data_storage_version="2.0")
    _as_noted_by(uri, release, "0.1")
    assert esker.dataset(uri).data_storage_version == lance.dataset(uri).data_storage_version == "0.1"


def _mixed(uri: str) -> None:
    _wrong(uri, "0.17.0")
    old = write_fragments(_rows(10), f"{uri}-old", mode="create", data_storage_version="legacy")
    for file in Path(f"{uri}-old", "data").iterdir():
        file.rename(Path(uri, "data", file.name))
    esker.LanceDataset.commit(uri, esker.LanceOperation.Append(old), read_version=esker.dataset(uri).version)
    _as_noted_by(uri, "0.16.0", "0.1")


CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda uri: esker.write_dataset(_rows(10), uri, mode="append"),
    "delete of nothing": lambda uri: esker.dataset(uri).delete("false"),
    "delete": lambda uri: esker.dataset(uri).delete("id = 3"),
    "update": lambda uri: esker.dataset(uri).update({"id": "id + 100"}, where="id = 4"),
    "settings": lambda uri: esker.dataset(uri).update_config({"a": "b"}),
    "compaction": lambda uri: esker.dataset(uri).optimize.compact_files(),
    "columns": lambda uri: esker.dataset(uri).add_columns({"twice": "id * 2"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_commit_notes_the_version_of_the_files(change: str, uri: str) -> None:
    _wrong(uri)
    CHANGES[change](uri)
    assert esker.dataset(uri).data_storage_version == lance.dataset(uri).data_storage_version == "2.0"
    files = [file for fragment in esker.dataset(uri).get_fragments() for file in fragment.data_files()]
    assert {(file.file_major_version, file.file_minor_version) for file in files} == {(2, 0)}
    assert esker.dataset(uri).to_table().equals(lance.dataset(uri).to_table())


def test_a_release_that_noted_it_rightly_is_believed(uri: str) -> None:
    _wrong(uri, "0.17.0")
    esker.dataset(uri).update_config({"a": "b"})
    assert esker.dataset(uri).data_storage_version == "0.1"


@pytest.mark.parametrize("change", ["append", "delete of nothing", "settings"])
def test_a_table_with_files_of_both_formats_is_refused_with_advice(change: str, uri: str) -> None:
    _mixed(uri)
    before = esker.dataset(uri).version
    with pytest.raises(CorruptFileError, match="contains a mixture of file versions"):
        CHANGES[change](uri)
    assert esker.dataset(uri).version == before
    # As advised.
    esker.dataset(uri, version=2).restore()
    assert esker.dataset(uri).to_table()["id"].to_pylist() == list(range(10))
    esker.write_dataset(_rows(10), uri, mode="append")
    assert esker.dataset(uri).count_rows() == lance.dataset(uri).count_rows() == 15


def test_a_table_with_files_of_both_formats_is_overwritten(uri: str) -> None:
    _mixed(uri)
    esker.write_dataset(_rows(7), uri, mode="overwrite", data_storage_version="2.0")
    assert esker.dataset(uri).to_table().equals(_rows(7))
    assert lance.dataset(uri).to_table().equals(_rows(7))
