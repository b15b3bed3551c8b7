"""What a table is made of: statistics, files, names of manifests; and its end."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import (
    CorruptFileError,
    EskerError,
    InvalidArgumentError,
    IOFailedError,
    NotFoundError,
    UnsupportedError,
)
from esker.lance.log import LanceLog
from esker.lance.migration import migrate_manifest_paths_v2
from esker.store import stores


def _rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [{"a": n, "b": f"text {n}"} for n in ids],
            "l": pa.array([[n] * (n % 4) for n in ids], pa.list_(pa.int64())),
        }
    )


@pytest.fixture(params=[esker, lance], ids=["esker", "lance"])
def several(request: pytest.FixtureRequest, uri: str) -> str:
    """A table with deletions, an added column, an index, a branch and a tag."""
    library: Any = request.param
    library.write_dataset(_rows(0, 3000), uri, max_rows_per_file=1500)
    library.write_dataset(_rows(3000, 10), uri, mode="append")
    dataset = library.dataset(uri)
    dataset.delete("id % 7 = 1")
    dataset.add_columns({"z": "id * 3"})
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    branch = library.dataset(uri).create_branch("feat", 3)
    branch.delete("id < 100")
    library.dataset(uri).tags.create("t", 2)
    return uri


def test_statistics_are_those_of_pylance(several: str) -> None:
    for place in (several, f"{several}/tree/feat"):
        ours, theirs = esker.dataset(place).stats, lance.dataset(place).stats
        assert ours.dataset_stats() == theirs.dataset_stats()
        assert ours.dataset_stats(2000) == theirs.dataset_stats(2000)
        found = [(field.id, field.bytes_on_disk) for field in ours.data_stats().fields]
        assert found == [(field.id, field.bytes_on_disk) for field in theirs.data_stats().fields]
        assert sum(size for _, size in found) > 1000


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_bytes_of_fields_in_every_file_version(uri: str, version: str) -> None:
    rows = pa.table({"id": range(100), "t": [str(n) for n in range(100)]})
    lance.write_dataset(rows, uri, data_storage_version="legacy" if version == "0.1" else version)
    found = [(field.id, field.bytes_on_disk) for field in esker.dataset(uri).stats.data_stats().fields]
    assert found == [(field.id, field.bytes_on_disk) for field in lance.dataset(uri).stats.data_stats().fields]


def _sorted(reader: pa.RecordBatchReader) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = reader.read_all().to_pylist()
    return sorted(rows, key=lambda row: tuple(str(row[key]) for key in row if key != "last_modified"))


def test_tracked_files_are_those_of_pylance(several: str) -> None:
    for place in (several, f"{several}/tree/feat"):
        ours, theirs = esker.dataset(place), lance.dataset(place)
        assert ours.tracked_files().schema == theirs.tracked_files().schema
        assert _sorted(ours.tracked_files()) == _sorted(theirs.tracked_files())
        assert _sorted(ours.tracked_files(min_version=4)) == _sorted(theirs.tracked_files(min_version=4))
        seen: list[tuple[int, int | None]] = []
        ours.tracked_files(progress=lambda *counts: seen.append(counts)).read_all()  # noqa: B023
        count = len(ours.versions())
        assert seen == [(number, count) for number in range(1, count + 1)]
    assert set(esker.dataset(several).tracked_files().read_all()["type"].to_pylist()) == {
        "manifest",
        "data file",
        "deletion file",
        "transaction file",
        "index file",
    }


def test_all_files_are_those_of_pylance(several: str) -> None:
    for place in (several, f"{several}/tree/feat"):
        ours, theirs = esker.dataset(place), lance.dataset(place)
        assert ours.all_files().schema == theirs.all_files().schema
        assert _sorted(ours.all_files()) == _sorted(theirs.all_files())
        there = {path.relative_to(place).as_posix() for path in Path(place).rglob("*") if path.is_file()}
        assert set(ours.all_files().read_all()["path"].to_pylist()) == there


def test_files_under_base_paths_are_told_with_their_roots(uri: str, tmp_path: Path) -> None:
    bases = [esker.DatasetBasePath(str(tmp_path / "flat"), "flat")]
    esker.write_dataset(_rows(0, 5), uri, initial_bases=bases)
    esker.write_dataset(_rows(5, 5), uri, mode="append", target_bases=["flat"])
    assert _sorted(esker.dataset(uri).tracked_files()) == _sorted(lance.dataset(uri).tracked_files())


def test_a_version_that_is_cleaned_up_meanwhile_is_left_out(uri: str) -> None:
    for number in range(3):
        esker.write_dataset(_rows(number, 1), uri, mode="append" if number else "create")
    reader = esker.dataset(uri).tracked_files()
    esker.dataset(uri).cleanup_old_versions(retain_versions=1)
    assert set(reader.read_all()["version"].to_pylist()) == {3}


def test_a_dropped_table_is_gone_with_its_branches(several: str, tmp_path: Path) -> None:
    Path(several, "notes.txt").write_text("mine")
    neighbour = tmp_path / "neighbour.lance"
    esker.write_dataset(_rows(0, 1), neighbour)
    esker.LanceDataset.drop(several)
    assert not Path(several).exists()
    assert esker.dataset(neighbour).count_rows() == 1
    with pytest.raises(OSError, match="Not found"):
        esker.LanceDataset.drop(several)
    esker.LanceDataset.drop(several, ignore_not_found=True)
    assert esker.write_dataset(_rows(0, 2), several).version == 1
    assert esker.dataset(several).branches.list() == {}


def test_what_is_no_table_is_not_dropped(uri: str, tmp_path: Path) -> None:
    esker.write_dataset(_rows(0, 1), uri).create_branch("feat")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("mine")
    for library in (esker, lance):
        for options in ({}, {"ignore_not_found": True}):
            # The folder above the table, and one without manifests.
            for place in (tmp_path, tmp_path / "data"):
                with pytest.raises(ValueError, match="Refusing to drop"):
                    library.LanceDataset.drop(place, **options)
    with pytest.raises(InvalidArgumentError, match=r"its branch feat; delete it by branches.delete\('feat'\)"):
        esker.LanceDataset.drop(f"{uri}/tree/feat")
    for path in Path(uri, "_versions").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(InvalidArgumentError, match="Refusing to drop"):
        esker.LanceDataset.drop(uri)
    assert (tmp_path / "data" / "x").exists()


def test_a_table_with_an_external_manifest_store_is_dropped_with_its_entries(uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    for _ in range(2):
        dataset = esker.write_dataset(_rows(0, 1), uri, storage_options=options)
        dataset.create_branch("feat").insert(_rows(1, 1))
        esker.LanceDataset.drop(uri, options)
        assert not Path(uri).exists()


def test_a_drop_that_fails_can_be_done_again(uri: str) -> None:
    def make(place: str, options: Any, durable: bool) -> Store:
        return FaultStore(Store(place.removeprefix("fault://"), durable=False), options["plan"]).store

    stores.register("fault", make)
    try:
        for at in range(40):
            esker.write_dataset(_rows(0, 1), uri).create_branch("feat")
            try:
                esker.LanceDataset.drop(f"fault://{uri}", {"plan": f"crash_before@{at}"})
                break
            except IOFailedError:
                # A store that does not answer says nothing against the table.
                esker.LanceDataset.drop(uri, ignore_not_found=True)
            assert not Path(uri).exists()
        else:
            raise AssertionError("expected fewer operations")
    finally:
        del stores._factories["fault"]
    assert at > 3


def _old_names(uri: str) -> None:
    for number in range(3):
        esker.write_dataset(
            _rows(number, 1), uri, mode="append" if number else "create", enable_v2_manifest_paths=False
        )


@pytest.mark.parametrize("library", [esker, lance])
def test_manifests_get_v2_names(uri: str, library: Any) -> None:
    _old_names(uri)
    dataset = library.dataset(uri)
    dataset.tags.create("t", 2)
    for _ in range(2):
        dataset.migrate_manifest_paths_v2()
        names = {path.name for path in Path(uri, "_versions").glob("*.manifest")}
        assert names == {f"{2**64 - 1 - number:020}.manifest" for number in (1, 2, 3)}
    for other in (esker, lance):
        opened = other.dataset(uri)
        assert [version["version"] for version in opened.versions()] == [1, 2, 3]
        assert opened.checkout_version("t").count_rows() == 2
    assert esker.write_dataset(_rows(9, 1), uri, mode="append").version == 4
    assert lance.write_dataset(_rows(10, 1), uri, mode="append").version == 5
    assert esker.dataset(uri).count_rows() == 5


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("fault", ["crash_before", "fail", "lose_reply"])
def test_a_migration_that_fails_can_be_finished(uri: str, fault: str, at: int) -> None:
    _old_names(uri)
    log = LanceLog(FaultStore(Store(uri), f"{fault}@{at}").store, uri)
    advice = r"finish it by esker\.lance\.migration\.migrate_manifest_paths_v2\(uri\)"
    told = ""
    try:
        migrate_manifest_paths_v2(log)
        assert at > 8
    except EskerError as error:
        told = str(error)
    assert at in (0, 10, 11) or re.search(advice, told)
    names = {"V1" if len(path.stem) < 20 else "V2" for path in Path(uri, "_versions").glob("*.manifest")}
    if len(names) > 1:
        with pytest.raises(CorruptFileError, match=advice):
            esker.dataset(uri)
    migrate_manifest_paths_v2(uri)
    assert [version["version"] for version in esker.dataset(uri).versions()] == [1, 2, 3]
    assert lance.dataset(uri).count_rows() == 3


def test_a_migration_replaces_no_other_manifest_of_the_same_number(uri: str) -> None:
    _old_names(uri)
    other = Path(uri, "_versions", f"{2**64 - 1 - 3:020}.manifest")
    other.write_bytes(Path(uri, "_versions/2.manifest").read_bytes())
    with pytest.raises(CorruptFileError, match="differ, expected one manifest for each version"):
        migrate_manifest_paths_v2(LanceLog.at(uri))
    other.unlink()
    assert esker.dataset(uri).version == 3


def test_a_migration_of_no_table_is_an_error(uri: str) -> None:
    with pytest.raises(NotFoundError, match=f"no table at {uri}.*check the path"):
        migrate_manifest_paths_v2(uri)


def test_a_table_with_an_external_manifest_store_is_not_migrated(uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    dataset = esker.write_dataset(_rows(0, 1), uri, storage_options=options, enable_v2_manifest_paths=False)
    with pytest.raises(UnsupportedError, match="whose entries hold the names"):
        dataset.migrate_manifest_paths_v2()


def test_one_fragment_is_validated(uri: str) -> None:
    dataset = esker.write_dataset(_rows(0, 20), uri, max_rows_per_file=10)
    dataset.delete("id = 3")
    first, second = dataset.get_fragments()
    first.validate()
    path = Path(uri, "data", second.data_files()[0].path)
    data = path.read_bytes()
    path.write_bytes(data + b"more")
    with pytest.raises(CorruptFileError):
        second.validate()
    path.unlink()
    with pytest.raises(NotFoundError):
        second.validate()
    pickle.loads(pickle.dumps(first)).validate()


def test_read_params_and_storage_options(uri: str) -> None:
    esker.write_dataset(_rows(0, 2), uri)
    hints = {"cache_repetition_index": False, "validate_on_decode": True}
    assert esker.dataset(uri, read_params=hints).count_rows() == 2
    assert esker.LanceDataset(uri, read_params=hints).count_rows() == 2
    with pytest.raises(TypeError, match="expected read_params as a dict"):
        esker.dataset(uri, read_params=5)  # type: ignore[arg-type]
    for library in (esker, lance):
        plain = library.dataset(uri)
        assert (plain.initial_storage_options, plain.latest_storage_options()) == (None, None)
        given = library.dataset(uri, storage_options={"timeout": "60s"})
        found = [given.initial_storage_options, given.latest_storage_options()]
        # pylance adds one of its own.
        assert [{**options, "user_agent": 0} for options in found] == [{"timeout": "60s", "user_agent": 0}] * 2


@pytest.mark.parametrize("given", ["table", "batches", "reader"])
def test_merges_of_rows_in_memory(uri: str, given: str) -> None:
    rows = pa.table({"id": [1, 2], "v": ["a", "b"]})
    news = pa.table({"id": [2, 3], "v": ["B", "C"]})
    forms = {"table": lambda: news, "batches": news.to_batches, "reader": news.to_reader}
    dataset = esker.write_dataset(rows, uri)

    def merge() -> Any:
        return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()

    assert "MergeInsert" in merge().analyze_plan_batches(forms[given]())
    transaction, stats = merge().execute_uncommitted_batches(forms[given]())
    assert (stats["num_updated_rows"], stats["num_inserted_rows"], dataset.latest_version) == (1, 1, 1)
    assert esker.LanceDataset.commit(uri, transaction).count_rows() == 3
    dataset.checkout_latest()
    assert merge().execute_batches(forms[given]())["num_updated_rows"] == 2
    assert lance.dataset(uri).to_table().sort_by("id").to_pydict() == {"id": [1, 2, 3], "v": ["a", "B", "C"]}
