"""Row ids and row versions in columns of data files (flag 2048), as pylance writes them if the config says so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

import esker
from esker.exceptions import EskerError, InvalidArgumentError
from esker.fragment import write_fragments
from esker.store import stores
from tests.faulty import FAULTS, Faulty
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
    esker.dataset(uri).update_config({"lance.row_lineage.spill": "false"})
    esker.dataset(uri).update({"v": "'ours'"}, where="k < 5")
    assert not flags()
    _same(uri)
    esker.dataset(uri).checkout_version(spilled).restore()
    assert flags()
    _same(uri)
    esker.dataset(uri).update({"v": "'ours'"}, where="k < 5")
    assert flags()
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


Verb = Callable[[Any], Any]
"""A change, made by either library."""

VERBS: dict[str, Verb] = {
    "append": lambda dataset: dataset.insert(rows(1000, 1010)),
    "update": lambda dataset: dataset.update({"v": "'u'"}, where="k % 5 = 0"),
    "update of nothing": lambda dataset: dataset.update({"v": "'u'"}, where="k = 12345"),
    "delete": lambda dataset: dataset.delete("k % 7 = 0"),
    "upsert": lambda dataset: _upsert(dataset).when_not_matched_insert_all().execute(rows(20, 60)),
    "upsert of known rows": lambda dataset: _upsert(dataset).execute(rows(20, 21)),
    "insert of new rows": lambda dataset: (
        dataset.merge_insert("k").when_not_matched_insert_all().execute(rows(90, 300))
    ),
    "compaction": lambda dataset: dataset.optimize.compact_files(),
    "several files": lambda dataset: dataset.optimize.compact_files(target_rows_per_fragment=30),
    "new column": lambda dataset: dataset.add_columns({"w": "k + 1"}),
    "cast": lambda dataset: dataset.alter_columns({"path": "k", "data_type": pa.int32()}),
    "config": lambda dataset: dataset.update_config({"a": "b"}),
}


def _upsert(dataset: Any) -> Any:
    return dataset.merge_insert("k").when_matched_update_all()


def _layout(uri: str) -> list[Any]:
    """Of each fragment: its rows, the fields of its files, and how its lineage is stored."""
    names = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
    return [
        (
            fragment.physical_rows,
            [file.fields for file in fragment.files],
            [(stored := fragment.stored_lineage(name)) and stored[0] for name in names],
        )
        for fragment in esker.dataset(uri)._manifest.fragments()
    ]


def _rows(uri: str) -> list[dict[str, Any]]:
    names = ["k", "v", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found: list[dict[str, Any]] = esker.dataset(uri).to_table(columns=names).sort_by("_rowid").to_pylist()
    return found


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("limit", ["0", "9", "100000"])
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_spills_what_pylance_spills(uri: str, verb: str, limit: str, version: str) -> None:
    _table(uri, version)
    lance.dataset(uri).update_config({"lance.row_lineage.inline_max_bytes": limit})
    twin = f"{uri}.twin"
    shutil.copytree(uri, twin)
    VERBS[verb](lance.dataset(twin))
    VERBS[verb](esker.dataset(uri))
    _same(uri)
    assert _rows(uri) == _rows(twin)
    if verb in ("compaction", "several files"):
        # Which fragments are joined is another rule here.
        assert limit != "0" or {"spilled"} == set(_layout(uri)[-1][2])
        return
    assert _layout(uri) == _layout(twin)
    flags = [(found.reader_feature_flags, found.writer_feature_flags) for found in map(_manifest, (uri, twin))]
    assert flags[0] == flags[1]


def _manifest(uri: str) -> Any:
    return esker.dataset(uri)._manifest


def _columns(uri: str, path: str) -> list[tuple[str, str, bool]]:
    schema = LanceFileReader(f"{uri}/data/{path}").metadata().schema
    return [(field.name, str(field.type), field.nullable) for field in schema]


def test_spilled_columns_have_pylances_names_types_and_places(uri: str) -> None:
    _table(uri)
    ours, theirs = f"{uri}.ours", f"{uri}.theirs"
    shutil.copytree(uri, ours)
    shutil.copytree(uri, theirs)
    found = []
    for place, opened in ((ours, esker.dataset(ours)), (theirs, lance.dataset(theirs))):
        for verb in ("update", "compaction"):
            VERBS[verb](opened)
            files = esker.dataset(place)._manifest.fragments()[-1].files
            found.append([(file.fields, file.column_indices, _columns(place, file.path)) for file in files])
    assert found[:2] == found[2:]


@pytest.mark.parametrize(
    ("asked", "spills"),
    [("TRUE", True), ("1", False), ("yes", False), ("", False), (None, False)],
)
def test_the_config_is_read_as_pylance_reads_it(uri: str, asked: str | None, spills: bool) -> None:
    esker.write_dataset(rows(0, 20), uri, enable_stable_row_ids=True, durable=False)
    esker.dataset(uri).update_config({"lance.row_lineage.spill": asked, "lance.row_lineage.inline_max_bytes": "+0"})
    esker.dataset(uri).update({"v": "'ours'"}, where="k < 5")
    assert bool(_manifest(uri).reader_feature_flags & SPILLED) == spills
    _same(uri)


@pytest.mark.parametrize("limit", ["x", "", " 5", "-1", "99999999999999999999"])
@pytest.mark.parametrize("verb", ["update", "upsert", "compaction"])
def test_a_limit_that_is_no_number_is_refused_by_each_writer_and_leaves_nothing(
    uri: str, limit: str, verb: str
) -> None:
    esker.write_dataset(rows(0, 40), uri, enable_stable_row_ids=True, durable=False, max_rows_per_file=20)
    esker.dataset(uri).update_config({**CONFIG, "lance.row_lineage.inline_max_bytes": limit})
    words = "is not a byte count"
    with pytest.raises(OSError, match=words):
        VERBS[verb](lance.dataset(uri))
    before = sorted(Path(uri, "data").iterdir())
    with pytest.raises(InvalidArgumentError, match=words):
        VERBS[verb](esker.dataset(uri))
    assert sorted(Path(uri, "data").iterdir()) == before
    esker.dataset(uri).update_config({"lance.row_lineage.spill": "false"})
    VERBS[verb](esker.dataset(uri))
    _same(uri)


def test_long_ids_are_spilled_above_the_default_limit(uri: str) -> None:
    count = 120_000
    esker.write_dataset(rows(0, count), uri, enable_stable_row_ids=True, durable=False)
    esker.dataset(uri).update_config({"lance.row_lineage.spill": "true"})
    some = random.Random(3).sample(range(count), 100_000)
    merge = esker.dataset(uri).merge_insert("k").when_matched_update_all()
    merge.execute(pa.table({"k": some, "v": ["m"] * len(some)}))
    assert _layout(uri)[-1][2] == ["spilled", "inline", "inline"]
    _same(uri)


@pytest.mark.parametrize("seed", range(6))
def test_turns_with_pylance_on_one_table(uri: str, seed: int) -> None:
    """Random verbs of either library on one table and on a branch of it; each version reads the same in both."""
    chance = random.Random(seed)
    _table(uri, chance.choice(["2.0", "2.1", "2.2"]))
    twin = f"{uri}.twin"
    shutil.copytree(uri, twin)
    verbs = [verb for verb in VERBS if verb not in ("new column", "cast")]
    for _ in range(12):
        verb, ours = chance.choice(verbs), chance.random() < 0.6
        if chance.random() < 0.2:
            limit = chance.choice(["0", "9", "100000"])
            for place in (uri, twin):
                lance.dataset(place).update_config({"lance.row_lineage.inline_max_bytes": limit})
        VERBS[verb](esker.dataset(uri) if ours else lance.dataset(uri))
        VERBS[verb](lance.dataset(twin))
        _same(uri)
        assert _rows(uri) == _rows(twin), verb


def test_clones_and_branches_carry_spilled_lineage_and_spill_more(uri: str) -> None:
    _table(uri)
    before = _rows(uri)
    version = esker.dataset(uri).version
    esker.dataset(uri).deep_clone(f"{uri}.deep", version)
    esker.dataset(uri).shallow_clone(f"{uri}.shallow", version)
    branch = esker.dataset(uri).create_branch("feat")
    assert _rows(f"{uri}.deep") == _rows(f"{uri}.shallow") == before
    for place in (f"{uri}.deep", f"{uri}.shallow", branch.uri):
        esker.dataset(place).update({"v": "'ours'"}, where="k % 3 = 0")
        _same(place)
        lance.dataset(place).update({"v": "'theirs'"}, where="k % 4 = 0")
        _same(place)
        esker.dataset(place).optimize.compact_files()
        _same(place)
        assert "spilled" in _layout(place)[-1][2]
    assert _rows(uri) == before
    esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
    _same(branch.uri)
    _same(uri)


def test_a_compaction_carries_an_update_that_came_meanwhile(uri: str) -> None:
    _table(uri)
    plan = esker.optimize.Compaction.plan(esker.dataset(uri), {"target_rows_per_fragment": 1000})
    done = [task.execute(esker.dataset(uri)) for task in plan.tasks]
    assert done
    esker.dataset(uri).update({"v": "'meanwhile'"}, where="k % 9 = 0")
    esker.optimize.Compaction.commit(esker.dataset(uri), done)
    _same(uri)
    found = {row["k"]: row["v"] for row in _rows(uri)}
    assert all((value == "meanwhile") == (key % 9 == 0) for key, value in found.items())


def test_updates_of_different_rows_at_once_keep_all_ids(uri: str) -> None:
    _table(uri)
    before = {row["k"]: row["_rowid"] for row in _rows(uri)}
    handles = [esker.dataset(uri) for _ in range(4)]
    for number, handle in enumerate(handles):
        handle.update({"v": f"'{number}'"}, where=f"k % 4 = {number}")
    _same(uri)
    found = _rows(uri)
    assert {row["k"]: row["_rowid"] for row in found} == before
    assert all(row["v"] == str(row["k"] % 4) for row in found)
    assert all("spilled" in stored for _, _, stored in _layout(uri)[-4:])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("verb", ["update", "upsert", "compaction"])
def test_a_write_that_fails_anywhere_leaves_the_table_whole(
    uri: str, verb: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(uri)
    before, number = _rows(uri), 0
    while True:
        place = f"{uri}.{number}"
        shutil.copytree(uri, place)
        faulty = Faulty()
        monkeypatch.setitem(stores._factories, "fault", faulty)
        try:
            VERBS[verb](esker.dataset(f"fault://{place}", storage_options={"plan": f"{fault}@{number}"}))
            is_done = True
        except EskerError:
            is_done = False
        _same(place)
        moved = [_without_versions(row) for row in _rows(place)]
        assert is_done or moved == [_without_versions(row) for row in before] or esker.dataset(place).version > 7
        VERBS[verb](lance.dataset(place))
        _same(place)
        struck = any(len(made.operations) > number for made in faulty.made)
        shutil.rmtree(place)
        if not struck:
            assert is_done
            break
        number += 1 + number // 4
    assert number >= 3


def _without_versions(row: dict[str, Any]) -> tuple[int, str, int]:
    return row["k"], row["v"], row["_rowid"]
