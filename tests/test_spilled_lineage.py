"""Row ids and row versions in columns of data files (flag 2048), as pylance writes them if the config says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError
from esker.fragment import write_fragments
from tests.lineage import Part, change_fragments, fields, message, rows, same_lineage, versions
from tests.rewrites import land, rewrite

SPILLED = 2048
CONFIG: dict[str, str | None] = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "0"}


def _table(uri: str, version: str = "2.2") -> None:
    """A table of pylance's with spilled ids, spilled versions and inline ones."""
    lance.write_dataset(
        rows(0, 100), uri, max_rows_per_file=40, enable_stable_row_ids=True, data_storage_version=version
    )
    lance.dataset(uri).update_config(CONFIG)
    lance.write_dataset(rows(100, 140), uri, mode="append")
    lance.dataset(uri).update({"v": "'second'"}, where="k % 7 = 0")
    lance.dataset(uri).delete("k in (3, 50)")
    lance.dataset(uri).optimize.compact_files()
    merge = lance.dataset(uri).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"k": [5, 200], "v": ["m", "m"]}))
    assert esker.dataset(uri)._manifest.reader_feature_flags & SPILLED


def _same(uri: str) -> None:
    same_lineage(lance.dataset(uri), esker.dataset(uri))
    lance.dataset(uri).validate()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_each_version_reads_as_pylance_reads_it(uri: str, version: str) -> None:
    _table(uri, version)
    for theirs, ours in versions(uri):
        same_lineage(theirs, ours)


def test_rows_are_taken_by_their_spilled_ids(uri: str) -> None:
    _table(uri)
    found = lance.dataset(uri).to_table(columns=["k", "_rowid"]).to_pydict()
    taken = esker.dataset(uri)._take_rows(found["_rowid"][::3])
    assert taken["k"].to_pylist() == found["k"][::3]


def test_all_changes_keep_spilled_lineage_right(uri: str) -> None:
    _table(uri)
    esker.dataset(uri).delete("k = 10")
    _same(uri)
    esker.dataset(uri).update({"v": "'ours'"}, where="k in (5, 11, 120)")
    _same(uri)
    merge = esker.dataset(uri).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"k": [12, 201, 5], "v": ["n", "n", "n"]}))
    _same(uri)
    esker.write_dataset(rows(300, 310), uri, mode="append", durable=False)
    _same(uri)
    esker.dataset(uri).add_columns({"w": "k + 1"})
    _same(uri)
    esker.dataset(uri).drop_columns(["w"])
    _same(uri)
    manifest = esker.dataset(uri)._manifest
    assert manifest.reader_feature_flags & manifest.writer_feature_flags & SPILLED
    lance.dataset(uri).update({"v": "'theirs'"}, where="k = 12")
    _same(uri)
    before = {row["k"]: row for row in esker.dataset(uri).to_table(columns=["k", "_rowid"]).to_pylist()}
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()))
    _same(uri)
    assert {row["k"]: row for row in esker.dataset(uri).to_table(columns=["k", "_rowid"]).to_pylist()} == before
    lance.dataset(uri).optimize.compact_files()
    _same(uri)


def test_an_update_leaves_the_lineage_of_other_fragments_spilled(uri: str) -> None:
    _table(uri)

    def spilled() -> list[set[int]]:
        found = esker.dataset(uri)._manifest.fragments()
        return [{number for number, _ in fields(fragment.encode())} & {12, 13, 14} for fragment in found]

    before = spilled()
    assert {12, 13, 14} in before
    esker.dataset(uri).update({"v": "'ours'"}, where="k = 11")
    assert spilled()[: len(before)] == before


def test_a_clean_up_keeps_the_files_of_the_lineage(uri: str) -> None:
    _table(uri)
    esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
    _same(uri)


def test_a_table_of_ours_with_the_config_goes_both_ways(uri: str) -> None:
    esker.write_dataset(rows(0, 50), uri, enable_stable_row_ids=True, durable=False)
    esker.dataset(uri).update_config(CONFIG)
    esker.dataset(uri).update({"v": "'ours'"}, where="k in (5, 11)")
    _same(uri)
    lance.dataset(uri).update({"v": "'theirs'"}, where="k in (6, 11)")
    _same(uri)
    lance.dataset(uri).optimize.compact_files()
    esker.dataset(uri).update({"v": "'again'"}, where="k in (5, 6)")
    _same(uri)


def test_the_flag_goes_with_the_last_spilled_sequence(uri: str) -> None:
    esker.write_dataset(rows(0, 20), uri, enable_stable_row_ids=True, durable=False)
    esker.dataset(uri).update_config(CONFIG)
    lance.dataset(uri).update({"v": "'theirs'"}, where="k < 5")

    def flags() -> int:
        manifest = esker.dataset(uri)._manifest
        assert manifest.reader_feature_flags & SPILLED == manifest.writer_feature_flags & SPILLED
        return manifest.reader_feature_flags & SPILLED

    assert flags()
    esker.dataset(uri).delete("k = 9")
    assert flags()
    spilled = esker.dataset(uri).version
    esker.dataset(uri).update({"v": "'ours'"}, where="k < 5")
    assert not flags()
    _same(uri)
    esker.dataset(uri).checkout_version(spilled).restore()
    assert flags()
    _same(uri)
    esker.write_dataset(rows(0, 5), uri, mode="overwrite", durable=False)
    assert not flags()
    _same(uri)


@pytest.mark.parametrize("verb", ["append", "update", "merge"])
def test_a_change_that_pylance_computed_is_committed_with_its_spilled_lineage(uri: str, verb: str) -> None:
    lance.write_dataset(rows(0, 40), uri, enable_stable_row_ids=True, max_rows_per_file=20)
    lance.dataset(uri).update_config(CONFIG)
    twin = f"{uri}.twin"
    shutil.copytree(uri, twin)
    dataset = lance.dataset(uri)
    if verb == "append":
        lance.write_dataset(rows(50, 60), uri, mode="append")
    elif verb == "update":
        dataset.update({"v": "'theirs'"}, where="k % 3 = 0")
    else:
        dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(rows(35, 45))
    shutil.copytree(Path(uri, "data"), Path(twin, "data"), dirs_exist_ok=True)
    if Path(uri, "_deletions").exists():
        shutil.copytree(Path(uri, "_deletions"), Path(twin, "_deletions"), dirs_exist_ok=True)
    made = esker.dataset(uri).read_transaction(esker.dataset(uri).version)
    assert made is not None
    esker.LanceDataset.commit(twin, made.operation, read_version=2)
    _same(twin)
    expected = esker.dataset(uri).to_table(columns=["k", "v", "_rowid"]).sort_by("k")
    assert esker.dataset(twin).to_table(columns=["k", "v", "_rowid"]).sort_by("k").equals(expected)
    esker.dataset(twin).delete("k = 1")
    _same(twin)


def test_a_detached_version_and_a_replaced_column_get_their_lineage(uri: str) -> None:
    _table(uri)
    dataset = esker.dataset(uri)
    old = dataset.get_fragments()[-1].metadata
    changed = dataset.get_fragments()[-1].to_table().set_column(1, "v", pa.array(["new"] * old.physical_rows))
    file = write_fragments(changed.select(["k", "v"]), uri, mode="overwrite")[0].files[0]
    operation = esker.LanceOperation.DataReplacement([esker.LanceOperation.DataReplacementGroup(old.id, file)])
    detached = esker.LanceDataset.commit(uri, operation, read_version=dataset.version, detached=True)
    same_lineage(lance.dataset(uri, version=detached.version), detached)
    esker.LanceDataset.commit(uri, operation, read_version=dataset.version)
    _same(uri)


def _without_fields(parts: list[Part]) -> list[Part]:
    """The fragment with files that do not name the spilled columns."""
    changed: list[Part] = []
    for number, value in parts:
        if number == 2 and isinstance(value, bytes):
            kept = [part for part in fields(value) if part[0] != 2]
            value = message([*kept, (2, b"\x00\x01\x02\x03\x04")])
        changed.append((number, value))
    return changed


def _longer(parts: list[Part]) -> list[Part]:
    return [(number, value - 1 if number == 4 and isinstance(value, int) else value) for number, value in parts]


@pytest.mark.parametrize(
    ("change", "words"),
    [(_without_fields, "which is spilled, found none"), (_longer, "expected row")],
)
def test_damaged_lineage_is_an_error(uri: str, change: object, words: str) -> None:
    lance.write_dataset(rows(0, 30), uri, enable_stable_row_ids=True)
    lance.dataset(uri).update_config(CONFIG)
    lance.dataset(uri).update({"v": "'u'"}, where="k % 2 = 0")
    lance.dataset(uri).optimize.compact_files()
    change_fragments(uri, change)  # type: ignore[arg-type]
    for column in ("_rowid", "_row_created_at_version", "_row_last_updated_at_version"):
        with pytest.raises(EskerError, match=words):
            esker.dataset(uri).to_table(columns=["k", column])


def test_a_file_of_the_lineage_that_is_gone_is_an_error(uri: str) -> None:
    _table(uri)
    before = {path.name for path in Path(uri, "data").glob("*")}
    lance.dataset(uri).update({"v": "'x'"}, where="k % 2 = 0")
    for fragment in esker.dataset(uri)._manifest.fragments():
        for file in fragment.files:
            if -3 in file.fields and 0 not in file.fields and file.path not in before:
                Path(uri, "data", file.path).unlink()
    with pytest.raises(EskerError):
        esker.dataset(uri).to_table(columns=["k", "_rowid"])
