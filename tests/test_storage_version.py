"""`data_storage_version`: the version that a write gives its files, and tables whose files are of several."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.fragment
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, UnsupportedError
from tests.samples import people, same

VERSIONS = ["2.0", "2.1", "2.2"]


def _facts(uri: str) -> tuple[str, list[tuple[int, int]], int, int]:
    """The table's version, that of each file, and the flags, as pylance and we find them."""
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    files = [(f.file_major_version, f.file_minor_version) for x in ours.get_fragments() for f in x.data_files()]
    assert files == [
        (f.file_major_version, f.file_minor_version) for x in theirs.get_fragments() for f in x.metadata.files
    ]
    assert ours.data_storage_version == theirs.data_storage_version
    manifest = ours._manifest
    return ours.data_storage_version, files, manifest.reader_feature_flags, manifest.writer_feature_flags


@pytest.mark.parametrize("asked", [None, *VERSIONS, "stable"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_gives_its_files_the_version_that_pylance_gives_them(
    mode: str, version: str, asked: str | None, tmp_path: Path
) -> None:
    first, second = people(100), people(50, start=100)
    found = []
    for peer in (esker, lance):
        uri = str(tmp_path / peer.__name__)
        peer.write_dataset(first, uri, data_storage_version=version)
        options = {} if asked is None else {"data_storage_version": asked}
        peer.write_dataset(second, uri, mode=mode, **options)
        found.append(_facts(uri))
        expected = pa.concat_tables([first, second]) if mode == "append" else second
        same(expected, esker.dataset(uri).to_table())
        same(expected, lance.dataset(uri).to_table())
    assert found[0] == found[1]


def test_a_table_of_many_versions_is_read_and_continued_by_both(uri: str) -> None:
    parts = [people(100, start=start) for start in range(0, 700, 100)]
    writers = [(esker, "2.0"), (lance, "2.1"), (esker, "2.2"), (lance, None), (esker, None), (esker, "2.1")]
    for part, (peer, version) in zip(parts, writers, strict=False):
        options = {} if version is None else {"data_storage_version": version}
        mode = "create" if part is parts[0] else "append"
        peer.write_dataset(part, uri, mode=mode, **options)
    files = [(2, 0), (2, 1), (2, 2), (2, 0), (2, 0), (2, 1)]
    assert _facts(uri) == ("2.0", files, 256, 256)
    whole = pa.concat_tables(parts[:6])
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    same(whole, ours.to_table())
    same(whole, theirs.to_table())
    rows = [0, 99, 100, 250, 301, 455, 599]
    same(whole.take(rows), ours.take(rows))
    wanted = "id >= 150 and id < 520 and score > 60"
    same(theirs.to_table(filter=wanted, columns=["id", "tags"]), ours.to_table(filter=wanted, columns=["id", "tags"]))
    theirs.delete("id = 150")
    assert _facts(uri)[2:] == (257, 257)
    assert esker.write_dataset(parts[6], uri, mode="append").count_rows() == 699
    assert _facts(uri)[2:] == (257, 257)
    assert lance.dataset(uri).count_rows() == 699


def test_an_overwrite_without_other_versions_clears_the_flag(uri: str) -> None:
    esker.write_dataset(people(10), uri, data_storage_version="2.0")
    esker.write_dataset(people(10), uri, mode="append", data_storage_version="2.1")
    assert _facts(uri)[2:] == (256, 256)
    esker.write_dataset(people(10), uri, mode="overwrite")
    assert _facts(uri) == ("2.0", [(2, 0)], 0, 0)


def test_prepared_fragments_of_several_versions_are_committed(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    esker.write_dataset(people(10), uri, data_storage_version="2.1")
    prepared = [
        fragment
        for version in ("2.0", "2.2")
        for fragment in esker.fragment.write_fragments(people(10), uri, mode="append", data_storage_version=version)
    ]
    appended = esker.LanceDataset.commit(uri, esker.LanceOperation.Append(prepared), read_version=1)
    assert appended.count_rows() == 30
    assert _facts(uri) == ("2.1", [(2, 1), (2, 0), (2, 2)], 256, 256)
    esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(people(0).schema, prepared), read_version=2)
    assert _facts(uri) == ("2.1", [(2, 0), (2, 2)], 256, 256)
    with pytest.raises(InvalidArgumentError, match=r"one file version for a new table, found \['2.0', '2.2'\]"):
        esker.LanceDataset.commit(
            str(tmp_path / "other"), esker.LanceOperation.Overwrite(people(0).schema, prepared), read_version=0
        )


@pytest.mark.parametrize("name", ["2.3", "next"])
def test_the_unstable_version_is_refused_by_name(name: str, uri: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'{name}' is not stable yet: .* use '2.2'"):
        esker.write_dataset(people(1), uri, data_storage_version=name)
    lance.write_dataset(people(1), uri, data_storage_version=name)
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        esker.dataset(uri).to_table()


def test_an_unknown_version_is_refused_with_those_there_are(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected one of \[.*'2.2'.*\], found '9.9'"):
        esker.write_dataset(people(1), uri, data_storage_version="9.9")
