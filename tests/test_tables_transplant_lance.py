"""Reverts and cherry-picks of commits that touched Lance tables: what only that format has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.repo import Branch, Repository
from esker.repo.errors import NoChangesError, TableConflictError
from esker.repo.objects.object_info import ObjectInfo
from tests.branch_tables import append, check_rows, delete, entries, ids_at, rows

PLACE = "lake/t"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


@pytest.fixture
def main(repo: Repository) -> Branch:
    return repo.branch("main")


def opened(repo: Repository, ref: str = "main") -> esker.LanceDataset:
    return esker.dataset(repo.ref(ref).store_uri(PLACE))


def changed(branch: Branch, change: Callable[[str], object]) -> None:
    with branch.transact("change") as tx:
        change(tx.store_uri(PLACE))


def refused(repo: Repository, kind: str, act: Callable[[str], object], commit: str) -> None:
    before = repo.ref("main").get_commit()
    with pytest.raises(TableConflictError) as caught:
        act(commit)
    assert [(found.table, found.kind) for found in caught.value.tables] == [(PLACE, kind)]
    assert repo.ref("main").get_commit() == before


def test_a_fragment_is_found_by_its_files_where_its_id_is_another(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    for n in (2, 3):
        append(main, "lance", n)
    added = append(dev, "lance", 4, 5, 6)
    gone = delete(dev, "lance", 5)
    more = delete(dev, "lance", 6)
    main.cherry_pick(added.id)
    assert ids_at(repo, "main", "lance") == [1, 2, 3, 4, 5, 6]
    main.cherry_pick(gone.id)
    check_rows(repo, "lance", tmp_path / "one", 1, 2, 3, 4, 6)
    assert [fragment.fragment_id for fragment in opened(repo).get_fragments()] == [0, 1, 2, 3]
    main.cherry_pick(more.id)
    check_rows(repo, "lance", tmp_path / "two", 1, 2, 3, 4)
    main.revert("main")
    check_rows(repo, "lance", tmp_path / "three", 1, 2, 3, 4, 6)
    append(main, "lance", 7)
    delete(main, "lance", 4)
    assert ids_at(repo, "main", "lance") == [1, 2, 3, 6, 7]


def test_an_append_whose_commit_deletes_rows_again_comes_without_them(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    append(main, "lance", 9)
    with dev.transact("both") as tx:
        esker.write_dataset(rows(2, 3, 4), tx.store_uri(PLACE), mode="append")
        esker.dataset(tx.store_uri(PLACE)).delete("id = 3")
    main.cherry_pick("dev")
    check_rows(repo, "lance", tmp_path / "out", 1, 2, 4, 9)
    append(main, "lance", 10)
    main.revert("main~1")
    check_rows(repo, "lance", tmp_path / "back", 1, 9, 10)


def test_rows_that_come_back_survive_a_delete_that_knew_them_as_deleted(repo: Repository, main: Branch) -> None:
    append(main, "lance", 1, 2, 3)
    gone = delete(main, "lance", 2)
    append(main, "lance", 4)
    numbers = [fragment.fragment_id for fragment in opened(repo).get_fragments()]
    main.revert(gone.id)
    # A new fragment: nobody's larger deletion file of the old one can be put over it.
    after = [fragment.fragment_id for fragment in opened(repo).get_fragments()]
    assert ids_at(repo, "main", "lance") == [1, 2, 3, 4]
    assert not set(after) & {numbers[0]}


@pytest.mark.parametrize("later", [False, True])
def test_stable_row_ids_come_back_with_their_rows(later: bool, repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1, 2, 3, enable_stable_row_ids=True)
    before = opened(repo).to_table(with_row_id=True).sort_by("id")
    gone = delete(main, "lance", 2)
    if later:
        append(main, "lance", 8)
    main.revert(gone.id)
    check_rows(repo, "lance", tmp_path / "out", 1, 2, 3, *([8] if later else []))
    after = opened(repo).to_table(with_row_id=True, filter="id < 4").sort_by("id")
    assert after["_rowid"] == before["_rowid"]
    append(main, "lance", 9)
    ids = opened(repo).to_table(with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids)
    taken = opened(repo).take_rows(before["_rowid"].to_pylist())
    assert taken["id"].to_pylist() == [1, 2, 3]


def test_stable_row_ids_of_a_whole_fragment_come_back(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1, 2, enable_stable_row_ids=True)
    append(main, "lance", 3, 4)
    before = opened(repo).to_table(with_row_id=True).sort_by("id")
    gone = delete(main, "lance", 3, 4)
    append(main, "lance", 5)
    main.revert(gone.id)
    check_rows(repo, "lance", tmp_path / "out", 1, 2, 3, 4, 5)
    assert opened(repo).to_table(with_row_id=True, filter="id < 5").sort_by("id") == before
    peer = lance.dataset(tmp_path / "out" / PLACE).to_table(with_row_id=True, filter="id < 5")
    assert sorted(peer["_rowid"].to_pylist()) == before["_rowid"].to_pylist()


def test_rows_that_are_picked_get_stable_row_ids_of_the_branch(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1, enable_stable_row_ids=True)
    dev = repo.branch("dev").create("main")
    append(main, "lance", 2)
    picked = append(dev, "lance", 3)
    main.cherry_pick(picked.id)
    check_rows(repo, "lance", tmp_path / "out", 1, 2, 3)
    assert opened(repo).to_table(with_row_id=True).sort_by("id")["_rowid"].to_pylist() == [0, 1, 2]
    assert opened(repo, "dev").to_table(with_row_id=True)["_rowid"].to_pylist() == [0, 1]


def test_an_update_of_rows_with_stable_ids_is_reverted_and_not_picked(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1, 2, enable_stable_row_ids=True)
    before = opened(repo).to_table(with_row_id=True).sort_by("id")
    dev = repo.branch("dev").create("main")
    changed(dev, lambda uri: esker.dataset(uri).update({"id": "7", "v": "'v7'"}, where="id = 2"))
    append(main, "lance", 3)
    refused(repo, "unsupported", main.cherry_pick, "dev")
    append(dev, "lance", 4)
    dev.revert("dev~1")
    assert ids_at(repo, "dev", "lance") == [1, 2, 4]
    after = opened(repo, "dev").to_table(with_row_id=True, filter="id < 4").sort_by("id")
    assert after["_rowid"] == before["_rowid"]


def test_an_update_is_picked_and_reverted(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1, 2)
    dev = repo.branch("dev").create("main")
    changed(dev, lambda uri: esker.dataset(uri).update({"id": "7", "v": "'v7'"}, where="id = 2"))
    append(main, "lance", 3)
    main.cherry_pick("dev")
    check_rows(repo, "lance", tmp_path / "out", 1, 3, 7)
    with pytest.raises(NoChangesError):
        main.cherry_pick("dev")
    append(main, "lance", 4)
    main.revert("main~1")
    check_rows(repo, "lance", tmp_path / "back", 1, 2, 3, 4)


def test_a_version_is_restored_whose_entry_a_clean_up_took_in_the_same_commit(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1, 2)
    with main.transact("overwrite and clean up") as tx:
        esker.write_dataset(rows(7), tx.store_uri(PLACE), mode="overwrite")
        esker.write_dataset(rows(8), tx.store_uri(PLACE), mode="append")
        old = {found.path for found in repo.ref("main").objects(prefix=f"{PLACE}/") if isinstance(found, ObjectInfo)}
        for path in old:
            tx.object(path).delete()
    log = entries(repo, "main", "lance")
    assert sorted(log) == [2, 3]
    # Nothing tells that it is the same table: neither an entry nor a file is in both.
    refused(repo, "cleaned-up", main.revert, main.get_commit().id)
    main.reset_to("main~1")
    with main.transact("append and clean up") as tx:
        esker.write_dataset(rows(8), tx.store_uri(PLACE), mode="append")
        tx.object(entries(repo, "main", "lance")[1].path).delete()
    main.revert("main")
    check_rows(repo, "lance", tmp_path / "out", 1, 2)
    assert sorted(entries(repo, "main", "lance")) == [2, 3]


def test_files_that_a_clean_up_took_come_along_from_where_they_are(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1, 2)
    append(main, "lance", 3)
    gone = delete(main, "lance", 1, 2)
    referred = {found.path for found in repo.ref(gone.id).objects(prefix=f"{PLACE}/data/")}
    append(main, "lance", 4)
    with main.transact("clean up") as tx:
        newest = {file.path for one in opened(repo).get_fragments() for file in one.metadata.files}
        for path in referred:
            if path.rpartition("/")[2] not in newest:
                tx.object(path).delete()
    assert len(list(repo.ref("main").objects(prefix=f"{PLACE}/data/"))) == 2
    refused_clean_up = main.get_commit()
    main.revert(gone.id)
    check_rows(repo, "lance", tmp_path / "out", 1, 2, 3, 4)
    refused(repo, "unsupported", main.revert, refused_clean_up.id)


def test_a_commit_that_built_an_index_goes_with_the_table_as_it_was_alone(
    repo: Repository, main: Branch, tmp_path: Path
) -> None:
    place = tmp_path / "indexed"
    append(main, "lance", 1, 2)
    repo.ref("main").export(str(place))
    lance.dataset(str(place / PLACE)).create_scalar_index("id", "BTREE")
    with main.transact("index") as tx:
        for file in sorted(path for path in place.rglob("*") if path.is_file()):
            path = str(file.relative_to(place))
            if not repo.ref("main").object(path).exists():
                tx.object(path).upload(file.read_bytes())
    built = main.get_commit()
    assert len(entries(repo, "main", "lance")) == 2
    dev = repo.branch("dev").create("main~1")
    main.revert(built.id)
    check_rows(repo, "lance", tmp_path / "out", 1, 2)
    assert lance.dataset(str(tmp_path / "out" / PLACE)).list_indices() == []
    dev.cherry_pick(built.id)
    append(main, "lance", 3)
    refused(repo, "unsupported", main.cherry_pick, built.id)


def test_settings_are_reverted_where_nothing_came_after(repo: Repository, main: Branch) -> None:
    append(main, "lance", 1)
    changed(main, lambda uri: esker.dataset(uri).update_config({"a": "b"}))
    commit = main.get_commit()
    main.revert(commit.id)
    assert opened(repo).config() == {}
    main.cherry_pick(commit.id)
    assert opened(repo).config() == {"a": "b"}
    append(main, "lance", 2)
    refused(repo, "unsupported", main.revert, commit.id)


@pytest.mark.parametrize("scheme", [True, False])
@pytest.mark.parametrize("storage", ["0.1", "2.0", "2.2"])
def test_all_names_and_file_versions(
    storage: str, scheme: bool, repo: Repository, main: Branch, tmp_path: Path
) -> None:
    append(main, "lance", 1, 2, data_storage_version=storage, enable_v2_manifest_paths=scheme)
    dev = repo.branch("dev").create("main")
    picked = append(dev, "lance", 3)
    gone = append(main, "lance", 4)
    main.cherry_pick(picked.id)
    delete(main, "lance", 1)
    main.revert(gone.id)
    check_rows(repo, "lance", tmp_path / "out", 2, 3)
    main.revert("main~1")
    check_rows(repo, "lance", tmp_path / "back", 1, 2, 3)


def test_blobs_come_along(repo: Repository, main: Branch, tmp_path: Path) -> None:
    def blobs(*ids: int) -> pa.Table:
        values = [b"x" * (200_000 + id) for id in ids]
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema([pa.field("id", pa.int64()), field])
        return pa.table([pa.array(ids, pa.int64()), pa.array(values, pa.large_binary())], schema=schema)

    changed(main, lambda uri: esker.write_dataset(blobs(1), uri))
    dev = repo.branch("dev").create("main")
    changed(dev, lambda uri: esker.write_dataset(blobs(2, 3), uri, mode="append"))
    changed(main, lambda uri: esker.write_dataset(blobs(4), uri, mode="append"))
    main.cherry_pick("dev")
    taken = opened(repo).take_blobs("b", indices=[0, 1, 2, 3])
    assert [blob and blob.size() for blob in taken] == [200_001, 200_004, 200_002, 200_003]
    repo.ref("main").export(str(tmp_path / "out"))
    peer = lance.dataset(str(tmp_path / "out" / PLACE))
    assert [blob.size() for blob in peer.take_blobs("b", indices=[0, 1, 2, 3])] == [200_001, 200_004, 200_002, 200_003]


def test_what_the_table_says_of_the_change(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1)
    one = append(main, "lance", 2)
    append(main, "lance", 3)
    main.revert(one.id)
    repo.ref("main").export(str(tmp_path / "out"))
    peer = lance.dataset(str(tmp_path / "out" / PLACE))
    (said,) = peer.get_transactions(1)
    assert type(said.operation).__name__ == "Delete"
    assert said.transaction_properties == {"esker.reverted": one.id}
    main.revert("main")
    repo.ref("main").export(str(tmp_path / "back"))
    (said,) = lance.dataset(str(tmp_path / "back" / PLACE)).get_transactions(1)
    # Nothing came after: it restores the version that had the row.
    assert type(said.operation).__name__ == "Restore"


def test_a_collection_spares_what_a_pick_has_taken(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    picked = append(dev, "lance", 2, 3)
    delete(dev, "lance", 2)
    append(main, "lance", 4)
    main.cherry_pick(picked.id)
    main.cherry_pick("dev")
    dev.delete()
    repo.change_settings(retention_days=0, grace_s=0)
    repo.gc()
    check_rows(repo, "lance", tmp_path / "out", 1, 3, 4)


def test_tags_are_not_picked_and_files_of_no_version_are_nothing(repo: Repository, main: Branch) -> None:
    append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    dev.object(f"{PLACE}/_refs/tags/good.json").upload(b'{"version": 1, "manifestSize": 1}')
    tagged = dev.commit("a tag")
    dev.object(f"{PLACE}/data/left-behind.lance").upload(b"x")
    orphan = dev.commit("a file of no version")
    append(main, "lance", 2)
    refused(repo, "unsupported", main.cherry_pick, tagged.id)
    with pytest.raises(NoChangesError):
        main.cherry_pick(orphan.id)


def test_a_tag_that_comes_with_versions_names_one_that_the_branch_has(repo: Repository, main: Branch) -> None:
    for id in (1, 2):
        append(main, "lance", id)
    for version in (1, 2, 3):
        dev = repo.branch(f"dev{version}").create("main")
        with dev.transact("a row and a tag") as tx:
            esker.write_dataset(rows(version + 10), tx.store_uri(PLACE), mode="append")
            esker.dataset(tx.store_uri(PLACE)).tags.create(f"of-{version}", version)
    esker.dataset(main.store_uri(PLACE)).cleanup_old_versions(older_than=timedelta(0))
    refused(repo, "cleaned-up", main.cherry_pick, repo.branch("dev1").get_commit().id)
    before = main.get_commit()
    for version in (2, 3):
        main.reset_to(before)
        main.cherry_pick(repo.branch(f"dev{version}").get_commit().id)
        assert opened(repo).tags.list()[f"of-{version}"]["version"] == version
        assert opened(repo).checkout_version(f"of-{version}").version == version


def test_manifests_of_two_naming_schemes_do_not_come_together(repo: Repository, main: Branch) -> None:
    esker.write_dataset(rows(1), main.store_uri(PLACE), enable_v2_manifest_paths=False)
    dev = repo.branch("dev").create("main")
    with dev.transact("names and a row") as tx:
        esker.dataset(tx.store_uri(PLACE)).migrate_manifest_paths_v2()
        esker.write_dataset(rows(2), tx.store_uri(PLACE), mode="append")
    refused(repo, "unsupported", main.cherry_pick, dev.get_commit().id)
    esker.dataset(main.store_uri(PLACE)).migrate_manifest_paths_v2()
    main.cherry_pick(dev.get_commit().id)
    assert ids_at(repo, "main", "lance") == [1, 2]


def test_tags_and_notes_beside_picked_rows_stay_where_they_are(repo: Repository, main: Branch) -> None:
    append(main, "lance", 1)
    dev = repo.branch("dev").create("main")
    append(main, "lance", 2)
    with dev.transact("rows, a tag and a note") as tx:
        esker.write_dataset(rows(3), tx.store_uri(PLACE), mode="append")
        esker.dataset(tx.store_uri(PLACE)).tags.create("third", 2)
        tx.object(f"{PLACE}/README").upload("note")
        tx.object("other").upload("else")
    picked = main.cherry_pick(dev.get_commit().id)
    assert ids_at(repo, "main", "lance") == [1, 2, 3]
    assert main.object("other").exists()
    assert list(opened(repo).tags.list()) == []
    assert not main.object(f"{PLACE}/README").exists()
    main.object(f"{PLACE}/README").upload("own")
    main.commit("a note")
    main.revert(picked.id)
    assert ids_at(repo, "main", "lance") == [1, 2]
    assert main.object(f"{PLACE}/README").reader().read() == b"own"
