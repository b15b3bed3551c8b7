"""Merges of tables: files beside the log (tags, checkpoints, copies, clean-ups), and tables in odd places."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import lance
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.delta.properties import Transaction
from esker.repo import Repository
from esker.repo.errors import TableConflictError
from tests.table_branches import Lake, rows_of


@pytest.fixture
def lances(tmp_path: Path) -> Lake:
    made = Lake(tmp_path / "lances", "lance")
    made.write(made.main, 1, mode="create")
    made.write(made.main, 2)
    return made


@pytest.fixture
def deltas(tmp_path: Path) -> Lake:
    made = Lake(tmp_path / "deltas", "delta")
    made.write(made.main, 1)
    made.write(made.main, 2)
    return made


def clean(uri: str) -> None:
    esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)


def conflict(lake: Lake, source: str = "f", dest: str = "main", **options: Any) -> tuple[str, int | None]:
    with pytest.raises(TableConflictError) as caught:
        lake.repo.ref(source).merge_into(dest, **options)
    (one,) = caught.value.tables
    assert one.table == lake.path
    return one.kind, one.version


def add_tag(name: str, version: int) -> Any:
    return lambda place: lance.dataset(place).tags.create(name, version)


def test_a_clean_up_takes_nothing_from_the_destination(lances: Lake) -> None:
    lances.write(lances.main, 3, mode="overwrite")
    f = lances.fork()
    lances.change(f, clean)
    assert len(lances.history("f")) == 1
    lances.change(lances.main, lambda uri: esker.dataset(uri, version=1).restore())
    f.merge_into("main")
    assert lances.read() == (4, [1])
    assert len(lances.history()) == 4


def test_a_fast_forward_over_a_clean_up_keeps_all_versions(lances: Lake) -> None:
    lances.write(lances.main, 3, mode="overwrite")
    f = lances.fork()
    lances.write(f, 4)
    before = lances.paths()
    lances.change(f, lambda uri: esker.dataset(uri).cleanup_old_versions(retain_versions=2, delete_unverified=True))
    assert not set(before) <= set(lances.paths("f"))
    f.merge_into("main")
    assert lances.read() == (4, [3, 4])
    assert set(before) <= set(lances.paths())
    uri = lances.repo.ref("main").store_uri(lances.path)
    assert sorted(esker.dataset(uri, version=2).to_table()["id"].to_pylist()) == [1, 2]


def test_what_a_new_version_needs_comes_back_after_a_clean_up_of_the_destination(lances: Lake) -> None:
    lances.write(lances.main, 3, mode="overwrite")
    f = lances.fork()
    lances.change(f, lambda uri: esker.dataset(uri, version=1).restore())
    lances.change(lances.main, clean)
    assert len(lances.history()) == 1
    f.merge_into("main")
    assert lances.read() == (4, [1])
    # The entries that were cleaned up, and the files of the second append, stay away.
    assert len(lances.history()) == 2
    assert len([path for path in lances.paths() if path.startswith("data/")]) == 2


def test_the_same_of_delta(deltas: Lake) -> None:
    first = [path for path in deltas.paths() if path.endswith(".parquet")]
    deltas.write(deltas.main, 3, mode="overwrite")
    f = deltas.fork()
    deltas.by_peer(f, lambda place: deltalake.DeltaTable(place).restore(0))

    def vacuum(place: str) -> None:
        deltalake.DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)

    deltas.by_peer(deltas.main, vacuum)
    assert not set(first) & set(deltas.paths())
    # deltalake notes a vacuum in the log, so that both sides went on.
    assert conflict(deltas) == ("diverged", 3)
    f.merge_into("main", strategy="source-wins")
    assert deltas.read()[1] == [1]


def test_a_vacuum_that_the_log_does_not_tell_of(deltas: Lake) -> None:
    first = [path for path in deltas.paths() if path.endswith(".parquet")]
    deltas.write(deltas.main, 3, mode="overwrite")
    f = deltas.fork()
    deltas.by_peer(f, lambda place: deltalake.DeltaTable(place).restore(0))
    deltas.main.delete_objects([f"{deltas.path}/{path}" for path in first])
    deltas.main.commit("vacuum")
    f.merge_into("main")
    assert deltas.read() == (3, [1])
    assert len(set(first) & set(deltas.paths())) == 1


def test_the_history_of_a_branch_tells_what_a_clean_up_there_removed(lances: Lake) -> None:
    f = lances.fork()
    for number in (3, 4):
        lances.write(f, number)
    lances.change(f, clean)
    lances.write(f, 5)
    lances.change(f, clean)
    assert len(lances.history("f")) == 1
    f.merge_into("main")
    assert lances.read() == (5, [1, 2, 3, 4, 5])
    # Main's own versions are all there; those between are nowhere.
    versions = esker.dataset(lances.repo.ref("main").store_uri(lances.path)).versions()
    assert [one["version"] for one in versions] == [1, 2, 5]
    lances.write(lances.main, 6)
    assert lances.read() == (6, [1, 2, 3, 4, 5, 6])


def test_and_where_the_sides_parted(lances: Lake) -> None:
    f = lances.fork()
    lances.write(f, 3)
    lances.change(f, clean)
    lances.write(lances.main, 4)
    lances.write(lances.main, 5)
    lances.change(lances.main, clean)
    assert conflict(lances) == ("diverged", 3)
    f.merge_into("main", strategy="source-wins")
    assert lances.read() == (5, [1, 2, 3])


def test_the_same_of_a_cleaned_delta_log(deltas: Lake) -> None:
    f = deltas.fork()
    for number in range(3, 12):
        deltas.write(f, number)
    expired = [path for path in deltas.paths("f") if path.endswith(".json") and path < f"_delta_log/{10:020}"]
    f.delete_objects([f"{deltas.path}/{path}" for path in expired])
    f.commit("clean up the log")
    assert deltas.read("f") == (10, list(range(1, 12)))
    g = deltas.fork("g")
    deltas.write(g, 99)
    f.merge_into("main")
    assert deltas.read() == (10, list(range(1, 12)))
    old = DeltaTable(deltas.main.store_uri(deltas.path), version=1)
    assert sorted(old.to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    deltas.write(deltas.main, 12)
    assert conflict(deltas, "g") == ("diverged", 2)
    g.merge_into("main", strategy="source-wins")
    assert deltas.read() == (12, [1, 2, 99])


def test_a_side_that_nothing_tells_from_another_table_is_a_conflict(lances: Lake) -> None:
    f = lances.fork()
    # In one commit: no content of the branch has the entry that main ends with, and the next one.
    with f.transact("write and clean up") as tx:
        for number in (3, 4):
            esker.write_dataset(rows_of(number), tx.store_uri(lances.path), mode="append")
        clean(tx.store_uri(lances.path))
    assert conflict(lances) == ("cleaned-up", 2)
    assert conflict(lances, strategy="source-wins") == ("cleaned-up", 2)
    f.merge_into("main", strategy="dest-wins")
    assert lances.read() == (2, [1, 2])


def test_a_table_made_anew_and_cleaned_up_is_not_taken_for_the_old_one(lances: Lake) -> None:
    f = lances.fork()
    lances.drop(f)
    lances.write(f, 7, mode="create")
    for number in (8, 9):
        lances.write(f, number)
    lances.change(f, clean)
    assert conflict(lances) == ("replaced", 1)
    assert conflict(lances, strategy="source-wins") == ("replaced", 1)
    assert lances.read() == (2, [1, 2])


def test_tags_come_along(lances: Lake) -> None:
    f = lances.fork()
    lances.by_peer(f, add_tag("old", 1))
    f.merge_into("main")
    lances.write(f, 3)
    lances.by_peer(f, add_tag("new", 3))
    lances.by_peer(lances.main, add_tag("ours", 2))
    lances.by_peer(f, lambda place: lance.dataset(place).tags.delete("old"))
    f.merge_into("main")
    assert lances.read() == (3, [1, 2, 3])
    out = str(Path(lances.repo.uri).parent / "out")
    lances.repo.ref("main").export(out)
    tags = lance.dataset(f"{out}/{lances.path}").tags.list()
    assert {name: tag["version"] for name, tag in tags.items()} == {"new": 3, "ours": 2}


def test_a_tag_that_both_sides_changed_is_a_conflict(lances: Lake) -> None:
    f = lances.fork()
    lances.by_peer(f, add_tag("it", 1))
    lances.by_peer(lances.main, add_tag("it", 2))
    assert conflict(lances) == ("changed", 2)
    f.merge_into("main", strategy="source-wins")
    tag = lances.repo.ref("main").object(f"{lances.path}/_refs/tags/it.json").reader().read()
    assert json.loads(tag)["version"] == 1


def test_a_tag_of_a_version_that_the_destination_cleaned_up_is_a_conflict(lances: Lake) -> None:
    f = lances.fork()
    lances.by_peer(f, add_tag("old", 1))
    lances.change(lances.main, clean)
    assert conflict(lances) == ("cleaned-up", 2)


@pytest.mark.parametrize("strategy", ["none", "source-wins", "dest-wins"])
def test_a_tag_of_another_table_s_version_does_not_come_along(lances: Lake, strategy: str) -> None:
    f = lances.fork()
    lances.by_peer(f, add_tag("good", 2))
    lances.drop(lances.main)
    lances.write(lances.main, 70, mode="create")
    lances.write(lances.main, 71)
    if strategy == "dest-wins":
        f.merge_into("main", strategy=strategy)
    else:
        assert conflict(lances, strategy=strategy) == ("replaced", 2)
    assert not any(path.startswith("_refs/") for path in lances.paths())
    assert lances.read() == (2, [70, 71])


def test_a_tag_holds_up_a_drop(lances: Lake) -> None:
    f = lances.fork()
    lances.drop(f)
    lances.by_peer(lances.main, add_tag("release", 2))
    assert conflict(lances) == ("dropped", 2)


def test_what_is_made_beside_a_table_that_the_destination_dropped_is_not_lost(lances: Lake) -> None:
    f = lances.fork()
    f.object(f"{lances.path}/README.md").upload("theirs")
    f.commit("readme")
    lances.by_peer(f, add_tag("release", 2))
    lances.drop(lances.main)
    assert conflict(lances) == ("dropped", None)
    lances.by_peer(f, lambda folder: lance.dataset(folder).tags.delete("release"))
    f.merge_into("main")
    assert lances.paths() == ["README.md"]


def test_a_drop_takes_what_the_destination_wrote_of_the_same_versions(deltas: Lake) -> None:
    f = deltas.fork()
    deltas.drop(f)
    deltas.change(deltas.main, lambda uri: DeltaTable(uri).create_checkpoint())
    deltas.main.object(f"{deltas.path}/README.md").upload("mine")
    deltas.main.commit("mine")
    f.merge_into("main")
    assert deltas.paths() == ["README.md"]


def test_checkpoints_and_the_hint_are_the_source_s(deltas: Lake) -> None:
    f = deltas.fork()
    for number in range(3, 12):
        deltas.write(f, number)
    assert "_delta_log/_last_checkpoint" in deltas.paths("f")
    deltas.change(deltas.main, lambda uri: DeltaTable(uri).create_checkpoint())
    f.merge_into("main")
    assert deltas.read() == (10, list(range(1, 12)))
    hint = f"{deltas.path}/_delta_log/_last_checkpoint"
    assert json.loads(deltas.repo.ref("main").object(hint).reader().read())["version"] == 10
    assert {f"_delta_log/{n:020}.checkpoint.parquet" for n in (1, 10)} <= set(deltas.paths())


def test_a_hint_never_goes_back(deltas: Lake) -> None:
    f = deltas.fork()
    deltas.change(f, lambda uri: DeltaTable(uri).create_checkpoint())
    deltas.write(f, 3)
    f.merge_into("main", squash_merge=True)
    deltas.change(deltas.main, lambda uri: DeltaTable(uri).create_checkpoint())
    deltas.write(f, 4)
    f.merge_into("main")
    assert deltas.read() == (3, [1, 2, 3, 4])
    hint = f"{deltas.path}/_delta_log/_last_checkpoint"
    assert json.loads(deltas.repo.ref("main").object(hint).reader().read())["version"] == 2


def v1_table(place: Path) -> Lake:
    lake = Lake(place, "lance")
    folder = place / "made"
    lance.write_dataset(rows_of(1), folder, enable_v2_manifest_paths=False)
    lance.write_dataset(rows_of(2), folder, mode="append")
    newest = (folder / "_versions" / "2.manifest").read_bytes()
    (folder / "_latest.manifest").write_bytes(newest)
    for path in folder.rglob("*"):
        if path.is_file():
            lake.main.object(f"{lake.path}/{path.relative_to(folder)}").upload(path.read_bytes())
    lake.main.commit("made")
    return lake


def latest_copy(lake: Lake) -> bytes:
    return bytes(lake.repo.ref("main").object(f"{lake.path}/_latest.manifest").reader().read())


def test_v1_names_and_the_copy_of_the_newest_manifest(tmp_path: Path) -> None:
    lake = v1_table(tmp_path)
    f = lake.fork()
    lake.write(f, 3)
    f.merge_into("main")
    assert lake.read() == (3, [1, 2, 3])
    assert latest_copy(lake) == lake.repo.ref("main").object(f"{lake.path}/_versions/3.manifest").reader().read()
    lake.write(f, 4)
    lake.write(lake.main, 5)
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (5, [1, 2, 3, 4])
    assert latest_copy(lake) == lake.repo.ref("main").object(f"{lake.path}/_versions/5.manifest").reader().read()


def test_names_of_two_schemes_do_not_mix(tmp_path: Path) -> None:
    lake = v1_table(tmp_path)
    lake.main.delete_objects([f"{lake.path}/_latest.manifest"])
    lake.main.commit("no copy")
    f = lake.fork()

    def migrate(place: str) -> None:
        lance.dataset(place).migrate_manifest_paths_v2()

    lake.by_peer(f, migrate)
    f.merge_into("main", allow_empty=True)
    assert lake.read() == (2, [1, 2])
    lake.write(f, 3)
    assert conflict(lake) == ("unsupported", 2)
    lake.by_peer(lake.main, migrate)
    f.merge_into("main")
    assert lake.read() == (3, [1, 2, 3])


def test_iceberg_metadata_beside_a_delta_log_goes_with_the_table(deltas: Lake) -> None:
    def iceberg(branch: Any, version: int) -> None:
        branch.object(f"{deltas.path}/metadata/v{version}.metadata.json").upload(f"{version}")
        branch.object(f"{deltas.path}/metadata/version-hint.text").upload(f"{version}")
        branch.commit(f"iceberg {version}")

    iceberg(deltas.main, 1)
    f = deltas.fork()
    deltas.write(f, 3)
    iceberg(f, 2)
    f.merge_into("main")
    assert deltas.read() == (2, [1, 2, 3])
    assert deltas.repo.ref("main").object(f"{deltas.path}/metadata/version-hint.text").reader().read() == b"2"
    assert [one.path for one in f.merge_plan("main").tables] == []
    # Both went on with it: it is part of the table, not a path of its own.
    deltas.write(f, 4)
    iceberg(f, 3)
    deltas.write(deltas.main, 5)
    iceberg(deltas.main, 4)
    assert conflict(deltas) == ("diverged", 3)


def test_a_path_belongs_to_the_innermost_table(lances: Lake) -> None:
    inner = f"{lances.path}/inner"
    lances.write(lances.main, 10, mode="create", path=inner)
    f = lances.fork()
    lances.write(f, 3)
    lances.write(f, 11, path=inner)
    lances.write(lances.main, 4)
    assert [(one.table, one.kind) for one in tables_in_the_way(lances)] == [(lances.path, "diverged")]
    f.merge_into("main", strategy="source-wins")
    assert lances.read() == (4, [1, 2, 3])
    lances.path = inner
    assert lances.read() == (2, [10, 11])


def test_a_dropped_table_leaves_those_below_it(lances: Lake) -> None:
    inner = f"{lances.path}/inner"
    lances.write(lances.main, 10, mode="create", path=inner)
    f = lances.fork()
    f.delete_objects([one.path for one in f.objects(prefix=lances.path + "/") if "/inner/" not in one.path])
    f.commit("drop the outer one")
    lances.write(lances.main, 11, path=inner)
    f.merge_into("main")
    lances.path = inner
    assert lances.read() == (2, [10, 11])
    assert all(path.startswith(inner) for path in (one.path for one in lances.repo.ref("main").objects()))


def tables_in_the_way(lake: Lake) -> list[Any]:
    with pytest.raises(TableConflictError) as caught:
        lake.repo.ref("f").merge_into("main")
    return caught.value.tables


def test_tables_of_two_formats_in_one_folder(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    main = repo.branch("main")
    with main.transact("both") as tx:
        esker.write_dataset(rows_of(1), tx.store_uri("t"))
        write_deltalake(tx.store_uri("t"), rows_of(1))
    f = repo.branch("f").create("main")
    with f.transact("lance") as tx:
        esker.write_dataset(rows_of(2), tx.store_uri("t"), mode="append")
    f.merge_into("main")
    with f.transact("both") as tx:
        esker.write_dataset(rows_of(3), tx.store_uri("t"), mode="append")
        write_deltalake(tx.store_uri("t"), rows_of(3), mode="append")
    f.merge_into("main")
    assert sorted(esker.dataset(repo.ref("main").store_uri("t")).to_table()["id"].to_pylist()) == [1, 2, 3]
    assert sorted(DeltaTable(repo.ref("main").store_uri("t")).to_pyarrow_table()["id"].to_pylist()) == [1, 3]
    with f.transact("both") as tx:
        esker.write_dataset(rows_of(4), tx.store_uri("t"), mode="append")
        write_deltalake(tx.store_uri("t"), rows_of(4), mode="append")
    with main.transact("delta") as tx:
        write_deltalake(tx.store_uri("t"), rows_of(5), mode="append")
    with pytest.raises(TableConflictError):
        f.merge_into("main")
    before = repo.ref("main").get_commit().meta_range_id
    f.merge_into("main", strategy="dest-wins")
    assert repo.ref("main").get_commit().meta_range_id == before


def test_a_table_in_the_repository_s_root(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    main = repo.branch("main")
    with main.transact("a") as tx:
        esker.write_dataset(rows_of(1), tx.store_uri())
    f = repo.branch("f").create("main")
    for branch, number in ((f, 2), (main, 3)):
        with branch.transact("b") as tx:
            esker.write_dataset(rows_of(number), tx.store_uri(), mode="append")
    with pytest.raises(TableConflictError, match="root") as caught:
        f.merge_into("main")
    assert caught.value.tables[0].table == ""
    f.merge_into("main", strategy="source-wins")
    assert sorted(esker.dataset(repo.ref("main").store_uri()).to_table()["id"].to_pylist()) == [1, 2]


def test_files_of_others_in_a_table_s_folder(lances: Lake) -> None:
    f = lances.fork()
    f.object(f"{lances.path}/README.md").upload("theirs")
    f.commit("readme")
    lances.write(lances.main, 3)
    f.merge_into("main")
    assert lances.repo.ref("main").object(f"{lances.path}/README.md").reader().read() == b"theirs"
    for branch, text in ((f, "a"), (lances.main, "b")):
        branch.object(f"{lances.path}/README.md").upload(text)
        branch.commit(text)
    assert conflict(lances) == ("changed", 3)
    assert lances.read() == (3, [1, 2, 3])


def test_without_a_common_base(lances: Lake) -> None:
    other = lances.repo.branch("other").create(list(lances.main.log())[-1].id)
    other.object("x").upload("x")
    other.commit("x")
    f = lances.fork()
    lances.write(f, 3)
    f.merge_into("other")
    assert lances.read("other") == (3, [1, 2, 3])


@pytest.mark.parametrize("strategy", [None, "source-wins"])
def test_applications_numbers_come_along(lances: Lake, deltas: Lake, strategy: str | None) -> None:
    for lake in (lances, deltas):
        f = lake.fork()

        def noted(lake: Lake, branch: Any, app: str, number: int, id: int) -> None:
            if lake.format == "lance":
                lake.change(branch, lambda uri: append_as(uri, app, number, id))
            else:
                lake.write(branch, id, commit_properties=properties(app, number))

        noted(lake, lake.main, "kept", 7, 30) if strategy else None
        noted(lake, lake.main, "higher here", 9, 31) if strategy else None
        noted(lake, f, "stream", 5, 40)
        noted(lake, f, "second", 6, 41)
        noted(lake, f, "higher here", 3, 42)
        f.merge_into("main", strategy=strategy)
        assert lake.read()[1] == [1, 2, 40, 41, 42]
        expected = {"stream": 5, "second": 6, "higher here": 9 if strategy else 3} | ({"kept": 7} if strategy else {})
        assert applications(lake) == expected


def append_as(uri: str, app: str, number: int, id: int) -> None:
    esker.write_dataset(rows_of(id), uri, mode="append", application=(app, number))


def properties(app: str, number: int) -> Any:
    from esker.delta import CommitProperties

    return CommitProperties(app_transactions=[Transaction(app, number)])


def applications(lake: Lake) -> dict[str, int]:
    uri = lake.repo.ref("main").store_uri(lake.path)
    if lake.format == "delta":
        table = DeltaTable(uri)
        found = {name: table.transaction_version(name) for name in ("stream", "second", "higher here", "kept")}
        return {name: number for name, number in found.items() if number is not None}
    prefix = "esker.application."
    config = esker.dataset(uri).config()
    return {key.removeprefix(prefix): int(number) for key, number in config.items() if key.startswith(prefix)}


def test_crossed_and_squashed_merges_double_no_row(lances: Lake, deltas: Lake) -> None:
    for lake in (lances, deltas):
        f = lake.fork()
        lake.write(f, 10)
        f.merge_into("main", squash_merge=True)
        rewrite(lake)
        lake.write(f, 11)
        assert conflict(lake) == ("diverged", lake.first + 3)
        assert lake.read()[1] == [1, 2, 10]
        # Crossed: what main had before goes to the branch while the branch goes to main.
        g, before = lake.fork("g"), lake.main.get_commit().id
        lake.write(g, 20)
        g.merge_into("main")
        lake.repo.ref(before).merge_into("g", allow_empty=True)
        delete(lake)
        lake.write(g, 21)
        assert conflict(lake, "g")[0] == "diverged"
        assert lake.read()[1] == [1, 2, 20]


def rewrite(lake: Lake) -> None:
    if lake.format == "lance":
        lake.by_peer(lake.main, lambda place: lance.dataset(place).optimize.compact_files())
    else:
        lake.by_peer(lake.main, lambda place: deltalake.DeltaTable(place).optimize.compact())


def delete(lake: Lake) -> None:
    if lake.format == "lance":
        lake.change(lake.main, lambda uri: esker.dataset(uri).delete("id = 10"))
    else:
        lake.by_peer(lake.main, lambda place: deltalake.DeltaTable(place).delete("id = 10"))


def test_a_merge_back_renumbers_nothing(lances: Lake, deltas: Lake) -> None:
    for lake in (lances, deltas):
        f = lake.fork()
        lake.write(f, 10)
        lake.write(lake.main, 20)
        f.merge_into("main", strategy="dest-wins")
        lake.write(lake.main, 10)
        assert lake.read()[1] == [1, 2, 10, 20]
        history = lake.history("f")
        assert conflict(lake, "main", "f") == ("diverged", lake.first + 2)
        lake.repo.ref("main").merge_into("f", strategy="source-wins")
        assert lake.read("f") == (lake.first + 3, [1, 2, 10, 20])
        assert history.items() <= lake.history("f").items()


def test_row_ids_and_vectors_survive_a_restore(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "lance")
    lake.write(lake.main, *range(10), mode="create", enable_stable_row_ids=True)
    f = lake.fork()
    lake.change(f, lambda uri: esker.dataset(uri).delete("id = 3"))
    lake.write(f, 100)
    lake.change(lake.main, lambda uri: esker.dataset(uri).delete("id = 4"))
    lake.write(lake.main, *range(200, 205))
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (4, [0, 1, 2, 4, 5, 6, 7, 8, 9, 100])
    lake.write(lake.main, 300)
    uri = lake.repo.ref("main").store_uri(lake.path)
    table = esker.dataset(uri).to_table(with_row_id=True)
    found = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
    # The ids that the destination gave to other rows meanwhile are not given again.
    assert found[300] == 15
    assert lake.read()[1][-1] == 300


def test_a_merge_goes_on_after_a_garbage_collection(lances: Lake) -> None:
    f = lances.fork()
    lances.write(f, 3)
    lances.write(lances.main, 4)
    f.merge_into("main", strategy="source-wins")
    lances.repo.branch("f").delete()
    lances.repo.gc(dry_run=False, grace_s=-3600)
    assert lances.read() == (4, [1, 2, 3])
    assert list(lances.repo.fsck(tables=True)) == []
