"""Compaction wherever tables are: branches, repositories, clones, base paths; and of whatever they hold."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import DatasetBasePath
from esker.exceptions import ConflictError
from esker.optimize import Compaction, CompactionMetrics
from esker.repo import Repository
from tests.lineage import history, same_lineage
from tests.samples import people, same
from tests.servers import S3Server

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _values(dataset: Any) -> list[int]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("first", ["esker", "pylance"])
def test_file_versions_in_turns_with_pylance(version: str, first: str, uri: str) -> None:
    # Files of version 0.1 keep no nulls.
    names = [name for name in people(120).schema.names if version != "0.1" or not people(120)[name].null_count]
    for number in range(6):
        writer = esker if (number % 2 == 0) == (first == "esker") else lance
        writer.write_dataset(
            people(20, start=20 * number).select(names),
            uri,
            mode="append" if number else "create",
            data_storage_version=version,
        )
    esker.dataset(uri).delete("id % 3 = 1")
    expected = esker.dataset(uri).to_table()
    ours = esker.dataset(uri)
    assert ours.optimize.compact_files(target_rows_per_fragment=25).fragments_removed == 6
    same(ours.to_table(), expected)
    same(lance.dataset(uri).to_table(), expected)
    numbers = {
        (file.file_major_version, file.file_minor_version) for one in ours._table.fragments for file in one.files
    }
    assert len(numbers) == 1
    theirs = lance.dataset(uri)
    assert theirs.optimize.compact_files().fragments_added == 1
    same(esker.dataset(uri).to_table(), expected)
    assert esker.dataset(uri).data_storage_version == version
    esker.write_dataset(people(10, start=500).select(names), uri, mode="append")
    esker.write_dataset(people(10, start=600).select(names), uri, mode="append")
    esker.dataset(uri).optimize.compact_files()
    assert lance.dataset(uri).count_rows() == expected.num_rows + 20


@pytest.mark.parametrize("wanted", ["2.0", "2.1", "2.2"])
def test_new_files_of_another_version(wanted: str, uri: str) -> None:
    for number in range(3):
        esker.write_dataset(_ids(number * 10, 10), uri, mode="append" if number else "create")
    before = esker.dataset(uri).data_storage_version
    dataset = esker.dataset(uri)
    dataset.optimize.compact_files(data_storage_version=wanted)
    (fragment,) = dataset.get_fragments()
    (file,) = fragment.metadata.files
    assert f"{file.file_major_version}.{file.file_minor_version}" == wanted
    # Only those files: what is written next is as before.
    assert dataset.data_storage_version == before == lance.dataset(uri).data_storage_version
    assert _values(lance.dataset(uri)) == list(range(30))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_stable_row_ids_and_the_versions_of_rows_survive(version: str, uri: str) -> None:
    history(uri, version=version)
    # Without its last changes, an overwrite and an update.
    lance.dataset(uri, version=lance.dataset(uri).version - 2).restore()
    before = lance.dataset(uri)
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    expected = before.to_table(columns=[*before.schema.names, *columns]).sort_by("_rowid")
    dataset = esker.dataset(uri)
    assert dataset.optimize.compact_files(materialize_deletions_threshold=0.0).fragments_removed > 0
    same_lineage(lance.dataset(uri), dataset)
    found = lance.dataset(uri).to_table(columns=[*before.schema.names, *columns]).sort_by("_rowid")
    assert found.equals(expected)
    ids = expected["_rowid"].to_pylist()
    assert dataset.take_rows(ids)["k"].to_pylist() == expected["k"].to_pylist()
    # pylance goes on from there.
    lance.write_dataset(before.to_table().slice(0, 2), uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    same_lineage(lance.dataset(uri), esker.dataset(uri))


def _blobs(version: str, rows: int, start: int) -> pa.Table:
    sizes = [1 + 40_000 * (i % 3) for i in range(rows)]
    values = [None if i % 5 == 3 else b"" if i % 5 == 4 else bytes([i]) * size for i, size in enumerate(sizes)]
    ids = pa.array(range(start, start + rows), pa.int64())
    if version == "2.2":
        schema = pa.schema([pa.field("id", pa.int64()), esker.blob_field("blob")])
        return pa.table([ids, esker.blob_array(values)], schema=schema)
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    return pa.table([ids, pa.array(values, pa.large_binary())], pa.schema([pa.field("id", pa.int64()), field]))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs(version: str, uri: str) -> None:
    for number in range(3):
        rows = _blobs(version, 12, number * 12)
        esker.write_dataset(rows, uri, mode="append" if number else "create", data_storage_version=version)
    dataset = esker.dataset(uri)
    dataset.delete("id % 7 = 2")
    expected = dataset.to_table(blob_handling="all_binary")
    described = dataset.to_table()["blob"].is_null().to_pylist()
    assert dataset.optimize.compact_files().fragments_added == 1
    assert dataset.to_table(blob_handling="all_binary").equals(expected)
    assert dataset.to_table()["blob"].is_null().to_pylist() == described
    theirs = lance.dataset(uri)
    files = theirs.take_blobs("blob", indices=list(range(expected.num_rows)))
    found = [None if file is None else file.readall() for file in files]
    assert found == expected["blob"].to_pylist()


def test_a_branch_of_a_table(uri: str) -> None:
    for number in range(3):
        esker.write_dataset(_ids(number * 10, 10), uri, mode="append" if number else "create")
    dataset = esker.dataset(uri)
    dataset.tags.create("before", 3)
    branch = dataset.create_branch("feat/x")
    esker.write_dataset(_ids(30, 10), branch, mode="append")
    branch = esker.dataset(f"{uri}/tree/feat/x")
    assert branch.optimize.compact_files().fragments_removed == 4
    assert _values(branch) == _values(lance.dataset(f"{uri}/tree/feat/x")) == list(range(40))
    assert len(esker.dataset(uri).get_fragments()) == 3
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    for place, rows in [(esker.dataset(uri, version="before"), 30), (esker.dataset(f"{uri}/tree/feat/x"), 40)]:
        assert _values(place) == list(range(rows))
    assert _values(lance.dataset(uri, version="before")) == list(range(30))


def test_a_branch_of_a_repository(tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"), committer="me")
    place = repository.branch("main").store_uri("t")
    for number in range(4):
        esker.write_dataset(_ids(number * 10, 10), place, mode="append" if number else "create")
    dataset = esker.dataset(place)
    other = esker.dataset(place)
    plan = Compaction.plan(other, {"target_rows_per_fragment": 20})
    results = [task.execute(other) for task in plan.tasks]
    assert dataset.optimize.compact_files(excluded_fragment_ids=[2, 3]).fragments_removed == 2
    # One of the two groups is lost, the other one lands.
    metrics = Compaction.commit(other, results)
    assert (metrics.fragments_removed, [one.fragment_ids for one in metrics.lost]) == (2, [(0, 1)])
    assert _values(esker.dataset(place)) == list(range(40))
    dev = repository.branch("dev").create("main").store_uri("t")
    esker.write_dataset(_ids(40, 10), dev, mode="append")
    assert esker.dataset(dev).optimize.compact_files(target_rows_per_fragment=100).fragments_removed > 1
    assert _values(esker.dataset(place)) == list(range(40))
    repository.ref("dev").merge_into("main")
    assert _values(esker.dataset(place)) == list(range(50))


@pytest.mark.parametrize("stable", [False, True])
def test_a_transaction_of_a_repository_beside_others(stable: bool, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"), committer="me")
    place = repository.branch("main").store_uri("t")
    esker.write_dataset(_ids(0, 40), place, max_rows_per_file=10, enable_stable_row_ids=stable)
    with repository.branch("main").transact("compact") as tx:
        dataset = esker.dataset(tx.store_uri("t"))
        dataset.optimize.compact_files(target_rows_per_fragment=20)
        # Others take the ids that the transaction has reserved, and delete rows of what it rewrote.
        esker.write_dataset(_ids(40, 20), place, mode="append", max_rows_per_file=5)
        esker.dataset(place).delete("id = 7 or id = 22")
    expected = [one for one in range(60) if one not in (7, 22)]
    assert _values(esker.dataset(place)) == expected
    assert len(esker.dataset(place).get_fragments()) == 6
    repository.ref("main").export(str(tmp_path / "out"))
    assert _values(lance.dataset(str(tmp_path / "out" / "t"))) == expected


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("is_last_first", [False, True])
@pytest.mark.parametrize("gone", [range(10), range(30, 40), range(15)], ids=["first", "last", "more than one"])
def test_fragments_that_others_emptied_stay_gone_whichever_group_they_are_in(
    gone: range, is_last_first: bool, stable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.create(str(tmp_path / "lake"), committer="me")
    place = repository.branch("main").store_uri("t")
    esker.write_dataset(_ids(0, 40), place, max_rows_per_file=10, enable_stable_row_ids=stable)
    # The second group reads the version that the first one makes, with nothing between the two.
    monkeypatch.setattr(random, "shuffle", lambda groups: groups.reverse() if is_last_first else None)
    with repository.branch("main").transact("compact") as tx:
        metrics = esker.dataset(tx.store_uri("t")).optimize.compact_files(target_rows_per_fragment=20)
        assert (metrics.fragments_removed, metrics.fragments_added) == (4, 2)
        esker.dataset(place).delete(f"id >= {gone[0]} and id <= {gone[-1]}")
    kept = [one for one in range(40) if one not in gone]
    assert _values(esker.dataset(place)) == kept
    repository.ref("main").export(str(tmp_path / "out"))
    assert _values(lance.dataset(str(tmp_path / "out" / "t"))) == kept


@pytest.mark.parametrize("change", ["delete", "update", "add columns"])
def test_what_a_transaction_compacted_and_changed_is_refused_where_others_deleted(change: str, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"), committer="me")
    place = repository.branch("main").store_uri("t")
    esker.write_dataset(_ids(0, 40), place, max_rows_per_file=10)

    def compact_and_change(meanwhile: Callable[[], object]) -> None:
        with repository.branch("main").transact("compact") as tx:
            esker.dataset(tx.store_uri("t")).optimize.compact_files(target_rows_per_fragment=20)
            inside = esker.dataset(tx.store_uri("t"))
            match change:
                case "delete":
                    inside.delete("id = 9")
                case "update":
                    inside.update({"id": "90"}, where="id = 9")
                case _:
                    inside.add_columns({"twice": "id * 2"})
            meanwhile()

    # The deletes are carried into the new fragments, of which the later change knows only what it saw.
    with pytest.raises(ConflictError):
        compact_and_change(lambda: esker.dataset(place).delete("id = 7 or id = 22"))
    kept = [one for one in range(40) if one not in (7, 22)]
    assert _values(esker.dataset(place)) == kept
    compact_and_change(lambda: None)
    assert len(_values(esker.dataset(place))) == (37 if change == "delete" else 38)
    assert not {7, 22} & set(_values(esker.dataset(place)))


def test_clones_and_base_paths(tmp_path: Path) -> None:
    source, clone = str(tmp_path / "source"), str(tmp_path / "clone")
    for number in range(3):
        esker.write_dataset(_ids(number * 10, 10), source, mode="append" if number else "create")
    esker.dataset(source).delete("id = 5")
    cloned = esker.dataset(source).shallow_clone(clone, 4)
    esker.write_dataset(_ids(30, 10), clone, mode="append")
    cloned = esker.dataset(clone)
    expected = _values(cloned)
    assert cloned.optimize.compact_files().fragments_removed == 4
    assert [file.base_id for one in cloned.get_fragments() for file in one.metadata.files] == [None]
    assert _values(cloned) == _values(lance.dataset(clone)) == expected
    assert len(esker.dataset(source).get_fragments()) == 3
    # The clone needs its source no more, but for its old versions.
    uri = str(tmp_path / "based")
    bases = [DatasetBasePath(str(tmp_path / "cold"), "cold", False)]
    esker.write_dataset(_ids(0, 10), uri, initial_bases=bases, target_bases=["cold"])
    esker.write_dataset(_ids(10, 10), uri, mode="append")
    dataset = esker.dataset(uri)
    assert dataset.optimize.compact_files().fragments_removed == 2
    assert _values(dataset) == _values(lance.dataset(uri)) == list(range(20))


def test_a_table_that_cleans_itself_up(uri: str) -> None:
    options: Any = {"interval": 1, "older_than_seconds": 0}
    esker.write_dataset(_ids(0, 10), uri, auto_cleanup_options=options)
    for number in range(1, 6):
        esker.write_dataset(_ids(number * 10, 10), uri, mode="append")
    dataset = esker.dataset(uri)
    assert dataset.optimize.compact_files(target_rows_per_fragment=20).fragments_removed == 6
    assert _values(dataset) == list(range(60)) == _values(lance.dataset(uri))
    assert len(dataset.versions()) <= 3


def test_a_table_with_an_external_manifest_store(tmp_path: Path) -> None:
    uri, store = str(tmp_path / "t"), f"sqlite://{tmp_path}/manifests.db"
    for number in range(4):
        esker.write_dataset(_ids(number * 10, 10), uri, mode="append" if number else "create", manifest_store=store)
    dataset = esker.dataset(uri, manifest_store=store)
    assert dataset.optimize.compact_files().fragments_removed == 4
    assert _values(esker.dataset(uri, manifest_store=store)) == list(range(40))


def test_a_table_behind_a_lock(uri: str) -> None:

    held: list[int] = []

    @contextmanager
    def lock(version: int) -> Any:
        held.append(version)
        yield

    for number in range(4):
        esker.write_dataset(_ids(number * 10, 10), uri, mode="append" if number else "create", commit_lock=lock)
    held.clear()
    dataset = esker.dataset(uri, commit_lock=lock)
    dataset.optimize.compact_files()
    assert held == [5, 6]
    assert _values(dataset) == list(range(40))


def test_columns_that_were_added_renamed_and_dropped(uri: str) -> None:
    esker.write_dataset(_ids(0, 20), uri, max_rows_per_file=10)
    dataset = esker.dataset(uri)
    dataset.add_columns({"twice": "id * 2", "gone": "id"})
    dataset.alter_columns({"path": "twice", "name": "double"})
    esker.write_dataset(pa.table({"id": [20], "double": [40], "gone": [20]}), uri, mode="append")
    dataset = esker.dataset(uri)
    dataset.drop_columns(["gone"])
    expected = dataset.to_table()
    assert dataset.optimize.compact_files() == CompactionMetrics(3, 1, 5, 1)
    assert dataset.to_table().equals(expected)
    assert lance.dataset(uri).to_table().equals(expected)
    (fragment,) = dataset.get_fragments()
    assert len(fragment.metadata.files) == 1
    dataset.add_columns({"more": "id + 1"})
    assert lance.dataset(uri).to_table()["more"].to_pylist() == [one + 1 for one in range(21)]


@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_object_stores_in_turns_with_pylance(request: pytest.FixtureRequest, kind: str) -> None:
    server: Any = request.getfixturevalue(kind)
    root = f"s3://{server.bucket()}" if isinstance(server, S3Server) else f"az://{server.container()}"
    uri, options = f"{root}/t", server.storage_options
    for number in range(4):
        writer = esker if number % 2 else lance
        writer.write_dataset(_ids(number * 10, 10), uri, mode="append" if number else "create", storage_options=options)
    dataset = esker.dataset(uri, storage_options=options)
    dataset.delete("id = 3")
    plan = pickle.loads(pickle.dumps(Compaction.plan(dataset, {"target_rows_per_fragment": 20})))
    results = [task.execute(esker.dataset(uri, storage_options=options)) for task in plan.tasks]
    lance.dataset(uri, storage_options=options).delete("id = 30")
    assert Compaction.commit(dataset, results).fragments_removed == 4
    expected = [one for one in range(40) if one not in (3, 30)]
    assert _values(dataset) == _values(lance.dataset(uri, storage_options=options)) == expected
    lance.dataset(uri, storage_options=options).optimize.compact_files()
    assert _values(esker.dataset(uri, storage_options=options)) == expected
