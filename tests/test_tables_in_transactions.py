"""Transactions over tables of which others have committed to the branch meanwhile: replayed whole, or refused whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import deltalake
import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import esker
from esker.delta import CommitProperties, DeltaTable, Transaction, write_deltalake
from esker.exceptions import CommitConflictError, InvalidArgumentError
from esker.repo import Repository
from esker.repo.errors import MergeConflictError, TableConflictError


def rows(*ids: int, value: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([value] * len(ids), pa.string())})


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(str(tmp_path / "lake"), committer="me")
    with made.branch("main").transact("begin") as tx:
        esker.write_dataset(rows(1, 2, 3), tx.store_uri("t"))
        write_deltalake(tx.store_uri("d"), rows(1, 2, 3))
    return made


def ids(repo: Repository, path: str) -> list[int]:
    uri = repo.ref("main").store_uri(path)
    table = esker.dataset(uri).to_table() if path.startswith("t") else DeltaTable(uri).to_pyarrow_table()
    return sorted(table["id"].to_pylist())


def same_to_peers(repo: Repository, folder: Path) -> None:
    repo.ref("main").export(str(folder))
    assert sorted(lance.dataset(str(folder / "t")).to_table()["id"].to_pylist()) == ids(repo, "t")
    assert sorted(deltalake.DeltaTable(str(folder / "d")).to_pyarrow_table()["id"].to_pylist()) == ids(repo, "d")
    assert list(repo.fsck()) == []


Work = Callable[[Any], object]


def lance_append(*wanted: int) -> Work:
    return lambda tx: esker.write_dataset(rows(*wanted), tx.store_uri("t"), mode="append")


def written(value: int, mode: str) -> Work:
    return lambda tx: esker.write_dataset(rows(value), tx.store_uri("t"), mode=mode)


def lance_delete(where: str) -> Work:
    return lambda tx: esker.dataset(tx.store_uri("t")).delete(where)


def delta_append(*wanted: int, **options: Any) -> Work:
    return lambda tx: write_deltalake(tx.store_uri("d"), rows(*wanted), mode="append", **options)


def run(repo: Repository, ours: list[Work], theirs: list[Work], **options: Any) -> Any:
    """A transaction during which another one lands."""
    with repo.branch("main").transact("ours", **options) as tx:
        for work in ours:
            work(tx)
        with Repository(repo.uri).branch("main").transact("theirs") as other:
            for work in theirs:
                work(other)
    return tx


def refused(repo: Repository, ours: list[Work], theirs: list[Work], **options: Any) -> TableConflictError:
    """The same, where ours has to be refused: only theirs is there then."""
    with pytest.raises(TableConflictError) as caught:
        run(repo, ours, theirs, **options)
    assert repo.branch("main").get_commit().message == "theirs"
    return caught.value


def test_many_versions_of_many_tables_go_on_top_together(repo: Repository, tmp_path: Path) -> None:
    ours = [lance_append(10), delta_append(10), lance_append(11), delta_append(11), delta_append(12)]
    tx = run(repo, ours, [lance_append(20), delta_append(20), delta_append(21)])
    assert (ids(repo, "t"), ids(repo, "d")) == ([1, 2, 3, 10, 11, 20], [1, 2, 3, 10, 11, 12, 20, 21])
    assert tx.versions == {"t": (3, 4), "d": (3, 4, 5)}
    assert [commit.message for commit in repo.branch("main").log(2)] == ["ours", "theirs"]
    same_to_peers(repo, tmp_path / "out")


def test_without_a_race_versions_are_those_that_were_staged(repo: Repository) -> None:
    with repo.branch("main").transact("ours") as tx:
        lance_append(10)(tx)
        delta_append(10)(tx)
        assert tx.versions == {"t": (2,), "d": (1,)}
    assert tx.versions == {"t": (2,), "d": (1,)}


def test_a_table_that_others_left_alone_is_not_replayed(repo: Repository) -> None:
    tx = run(repo, [lance_append(10), delta_append(10)], [lance_append(20)])
    assert tx.versions == {"t": (3,), "d": (1,)}
    assert (ids(repo, "t"), ids(repo, "d")) == ([1, 2, 3, 10, 20], [1, 2, 3, 10])


def test_rows_that_the_transaction_wrote_itself_are_deleted_though_their_fragment_has_another_id(
    repo: Repository, tmp_path: Path
) -> None:
    ours = [lance_append(10, 11, 12), lance_delete("id in (1, 11)"), lance_append(13), lance_delete("id = 13")]
    tx = run(repo, ours, [lance_append(20), lance_append(21)])
    assert ids(repo, "t") == [2, 3, 10, 12, 20, 21]
    assert tx.versions == {"t": (4, 5, 6, 7)}
    same_to_peers(repo, tmp_path / "out")


def test_deletes_of_one_fragment_unite_and_of_one_row_do_not(repo: Repository, tmp_path: Path) -> None:
    run(repo, [lance_delete("id = 1")], [lance_delete("id = 2")])
    assert ids(repo, "t") == [3]
    error = refused(repo, [lance_delete("id = 3")], [lance_delete("id = 3"), lance_append(4)])
    assert error.retryable
    assert [one.kind for one in error.tables] == ["lost"]
    same_to_peers(repo, tmp_path / "out")


def test_updates_and_upserts_are_replayed_where_the_rows_are_others(repo: Repository, tmp_path: Path) -> None:
    def upsert(tx: Any) -> None:
        table = esker.dataset(tx.store_uri("t"))
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(2, 9, value="u"))

    run(repo, [upsert], [lance_append(20)])
    found = esker.dataset(repo.ref("main").store_uri("t")).to_table()
    assert Counter(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == Counter(
        {(1, "x"): 1, (2, "u"): 1, (3, "x"): 1, (9, "u"): 1, (20, "x"): 1}
    )
    refused(repo, [upsert], [lambda tx: esker.dataset(tx.store_uri("t")).update({"v": "'w'"}, where="id = 2")])
    same_to_peers(repo, tmp_path / "out")


def test_a_version_of_the_transaction_itself_is_restored(repo: Repository) -> None:
    def restore(tx: Any) -> None:
        version = tx.versions["t"][0]
        esker.dataset(tx.store_uri("t"), version=version).restore()

    tx = run(repo, [lance_append(10), lance_delete("id > 2"), restore], [lance_append(20)])
    # The restored version is the one that the transaction's first commit became.
    assert tx.versions == {"t": (3, 4, 5)}
    assert ids(repo, "t") == [1, 2, 3, 10, 20]


def test_what_the_tables_own_rules_refuse_leaves_nothing_of_any_table(repo: Repository) -> None:
    def overwrite(tx: Any) -> None:
        write_deltalake(tx.store_uri("d"), rows(100), mode="overwrite")

    error = refused(repo, [lance_append(10), overwrite], [delta_append(20)])
    assert [(one.table, one.kind) for one in error.tables] == [("d", "lost")]
    assert (ids(repo, "t"), ids(repo, "d")) == ([1, 2, 3], [1, 2, 3, 20])


def test_an_overwrite_of_another_partition_is_replayed(repo: Repository) -> None:
    def write(
        *wanted: int, value: str, mode: Literal["append", "overwrite"] = "append", predicate: str | None = None
    ) -> Work:
        return lambda tx: write_deltalake(
            tx.store_uri("dp"), rows(*wanted, value=value), mode=mode, partition_by=["v"], predicate=predicate
        )

    with repo.branch("main").transact("partitions") as tx:
        write(1, value="a")(tx)
        write(2, value="b")(tx)
    run(repo, [write(10, value="a", mode="overwrite", predicate="v = 'a'")], [write(20, value="b")])
    assert ids(repo, "dp") == [2, 10, 20]
    refused(repo, [write(11, value="a", mode="overwrite", predicate="v = 'a'")], [write(30, value="a")])


def test_a_change_of_columns_beside_an_append_is_refused(repo: Repository) -> None:
    refused(repo, [lambda tx: esker.dataset(tx.store_uri("t")).add_columns({"w": "id"})], [lance_append(20)])
    refused(repo, [delta_append(10)], [lambda tx: DeltaTable(tx.store_uri("d")).alter.set_table_name("other")])


def test_an_application_commits_each_of_its_numbers_once(repo: Repository) -> None:
    job = CommitProperties(app_transactions=[Transaction("job", 7)])
    refused(repo, [delta_append(10, commit_properties=job)], [delta_append(20, commit_properties=job)])
    assert ids(repo, "d") == [1, 2, 3, 20]
    assert DeltaTable(repo.ref("main").store_uri("d")).transaction_version("job") == 7


def test_checkpoints_of_numbers_that_others_took_are_dropped(repo: Repository, tmp_path: Path) -> None:
    ours = [delta_append(number) for number in range(100, 112)]
    run(repo, ours, [delta_append(20)])
    assert ids(repo, "d") == [1, 2, 3, 20, *range(100, 112)]
    logged = [found.path for found in repo.ref("main").objects(prefix="d/_delta_log/")]
    assert not [path for path in logged if "checkpoint" in path]
    with repo.branch("main").transact("more") as tx:
        for number in range(200, 220):
            delta_append(number)(tx)
    same_to_peers(repo, tmp_path / "out")


def test_commit_times_go_on_rising(repo: Repository, tmp_path: Path) -> None:
    ict = {"delta.enableInCommitTimestamps": "true"}
    with repo.branch("main").transact("times") as tx:
        write_deltalake(tx.store_uri("d"), rows(1), mode="overwrite", configuration=ict, schema_mode="overwrite")
        DeltaTable(tx.store_uri("d")).alter.set_table_properties(ict)
    run(repo, [delta_append(10), delta_append(11)], [delta_append(20)])
    uri = repo.ref("main").store_uri("d")
    times = [entry["inCommitTimestamp"] for entry in DeltaTable(uri).history() if "inCommitTimestamp" in entry]
    assert times == sorted(set(times), reverse=True)
    assert len(times) >= 3


def test_stable_row_ids_of_both_sides_are_unique(tmp_path: Path) -> None:
    repo = Repository.create(str(tmp_path / "stable"))
    with repo.branch("main").transact("begin") as tx:
        esker.write_dataset(rows(1, 2, 3), tx.store_uri("t"), enable_stable_row_ids=True)
    run(repo, [lance_append(10, 11), lance_delete("id = 10")], [lance_append(20)])
    found = esker.dataset(repo.ref("main").store_uri("t")).to_table(with_row_id=True)
    assert sorted(found["id"].to_pylist()) == [1, 2, 3, 11, 20]
    assert len(set(found["_rowid"].to_pylist())) == 5


def test_old_names_of_manifests_go_on(tmp_path: Path) -> None:
    place, repo = tmp_path / "old", Repository.create(str(tmp_path / "lake"))
    lance.write_dataset(rows(1), str(place), enable_v2_manifest_paths=False)
    with repo.branch("main").transact("bring") as tx:
        for path in place.rglob("*"):
            if path.is_file():
                tx.object(f"t/{path.relative_to(place)}").upload(path.read_bytes())
    run(repo, [lance_append(10)], [lance_append(20)])
    assert ids(repo, "t") == [1, 10, 20]
    versions = [found.path for found in repo.ref("main").objects(prefix="t/_versions/")]
    assert [path for path in versions if path.endswith(".manifest")] == [
        "t/_versions/1.manifest",
        "t/_versions/2.manifest",
        "t/_versions/3.manifest",
    ]


def test_two_that_create_one_table_do_not_mix(repo: Repository) -> None:
    def create(*wanted: int) -> Work:
        return lambda tx: esker.write_dataset(rows(*wanted), tx.store_uri("t2"))

    error = refused(repo, [create(1)], [create(2)])
    assert error.tables[0].kind == "both-created"
    assert ids(repo, "t2") == [2]


def test_a_table_that_was_made_and_dropped_again_is_not_told_nor_made_again_after_others(repo: Repository) -> None:
    with repo.branch("main").transact("another format in its place") as tx:
        write_deltalake(tx.store_uri("new"), rows(1))
        write_deltalake(tx.store_uri("gone"), rows(1))
        for table in ("new", "gone"):
            tx.delete_objects([one.path for one in tx.objects(prefix=f"{table}/")])
        assert tx.versions == {}
        esker.write_dataset(rows(2), tx.store_uri("new"))
        lance_append(5)(tx)
        assert tx.versions == {"new": (1,), "t": (2,)}
        # Others are faster: what is left is made again on top of theirs.
        with repo.branch("main").transact("others") as other:
            lance_append(4)(other)
    assert tx.versions == {"new": (1,), "t": (3,)}
    assert ids(repo, "t") == [1, 2, 3, 4, 5]
    assert esker.dataset(repo.ref("main").store_uri("new")).to_table()["id"].to_pylist() == [2]
    assert not [one.path for one in repo.ref("main").objects(prefix="gone/")]
    assert list(repo.fsck(tables=True)) == []


def test_on_lost_error_refuses_what_would_be_replayed_and_nothing_else(repo: Repository) -> None:
    error = refused(repo, [lance_append(10)], [lance_append(20)], on_lost="error")
    assert error.retryable
    run(repo, [lance_append(11)], [delta_append(21)], on_lost="error")
    assert ids(repo, "t") == [1, 2, 3, 11, 20]
    with pytest.raises(InvalidArgumentError, match="on_lost"):
        repo.branch("main").transact("x", on_lost="maybe")


@pytest.mark.parametrize("path", ["d", "d/", "", "notes/a"])
def test_what_was_expected_unchanged_is_a_condition(repo: Repository, path: str) -> None:
    def note(tx: Any) -> None:
        tx.object("notes/a").upload("changed")

    def expect(tx: Any) -> None:
        tx.expect_unchanged(path)
        lance_append(10)(tx)

    theirs = note if path == "notes/a" else delta_append(20)
    error = refused(repo, [expect], [theirs])
    assert error.retryable
    assert error.tables[0].kind == "changed"
    if path:
        run(repo, [expect], [lance_append(30)])
        assert ids(repo, "t") == [1, 2, 3, 10, 30]


def test_objects_beside_tables_still_conflict_by_their_paths(repo: Repository) -> None:
    def note(text: str) -> Work:
        return lambda tx: tx.object("notes/a").upload(text)

    with pytest.raises(MergeConflictError) as caught:
        run(repo, [note("ours"), lance_append(10)], [note("theirs"), lance_append(20)])
    assert [conflict.path for conflict in caught.value.conflicts] == ["notes/a"]
    assert ids(repo, "t") == [1, 2, 3, 20]


def test_objects_within_a_table_that_both_changed_are_a_conflict(repo: Repository) -> None:
    def note(text: str) -> Work:
        return lambda tx: tx.object("t/README").upload(text)

    with pytest.raises(MergeConflictError) as caught:
        run(repo, [note("ours")], [note("theirs"), lance_append(20)])
    assert [conflict.path for conflict in caught.value.conflicts] == ["t/README"]
    run(repo, [note("ours")], [lance_append(21)])
    assert ids(repo, "t") == [1, 2, 3, 20, 21]
    assert repo.ref("main").object("t/README").reader().read() == b"ours"


def test_entries_that_were_uploaded_as_objects_are_never_mixed_in(repo: Repository) -> None:
    def by_hand(tx: Any) -> None:
        manifest = next(found.path for found in tx.objects(prefix="t/_versions/"))
        data = tx.object(manifest).reader().read()
        tx.object("t/_versions/18446744073709551613.manifest").upload(data)

    error = refused(repo, [by_hand], [lance_append(20)])
    assert error.tables[0].kind == "diverged"
    assert ids(repo, "t") == [1, 2, 3, 20]


def test_a_transaction_in_two_parts(repo: Repository) -> None:
    with repo.branch("main").transact("second") as tx:
        lance_append(10)(tx)
        tx.commit("first")
        assert tx.versions == {"t": (2,)}
        lance_append(11)(tx)
        run(repo, [lance_append(20)], [])
    assert ids(repo, "t") == [1, 2, 3, 10, 11, 20]
    assert tx.versions == {"t": (4,)}


STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.integers(0, 5)),
    st.tuples(st.just("overwrite"), st.just(0)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ours=st.lists(STEP, min_size=1, max_size=4), theirs=st.lists(STEP, min_size=1, max_size=3))
def test_the_rows_are_those_of_theirs_and_then_ours_or_of_theirs_alone(
    tmp_path_factory: pytest.TempPathFactory, ours: list[tuple[str, int]], theirs: list[tuple[str, int]]
) -> None:
    repo = Repository.create(f"memory://replay-{tmp_path_factory.mktemp('x').name}-{id(ours)}", exist_ok=True)
    with repo.branch("main").transact("begin") as tx:
        esker.write_dataset(rows(0, 1, 2, 3, 4, 5), tx.store_uri("t"), max_rows_per_file=3, mode="overwrite")
    number = iter(range(100, 1000))

    def apply(model: list[int], steps: list[tuple[str, int]], made: list[int]) -> list[int]:
        values = iter(made)
        for kind, operand in steps:
            if kind == "append":
                model = [*model, next(values)]
            elif kind == "delete":
                model = [value for value in model if value % 6 != operand]
            else:
                model = [next(values)]
        return model

    def work(steps: list[tuple[str, int]], made: list[int]) -> list[Work]:
        found: list[Work] = []
        for kind, operand in steps:
            if kind == "delete":
                found.append(lance_delete(f"id % 6 = {operand}"))
                continue
            made.append(next(number))
            mode = "append" if kind == "append" else "overwrite"
            found.append(written(made[-1], mode))
        return found

    our_values: list[int] = []
    their_values: list[int] = []
    our_work, their_work = work(ours, our_values), work(theirs, their_values)
    after_theirs = apply([0, 1, 2, 3, 4, 5], theirs, their_values)
    try:
        run(repo, our_work, their_work)
    except CommitConflictError:
        event("refused")
        assert ids(repo, "t") == sorted(after_theirs)
    else:
        event("replayed")
        # A delete was computed from the rows that it saw: those that others add meanwhile stay.
        seen = apply([0, 1, 2, 3, 4, 5], ours, our_values)
        base = {0, 1, 2, 3, 4, 5}
        if any(kind == "overwrite" for kind, _ in ours):
            expected = seen
        else:
            gone = base - set(seen)
            expected = [value for value in after_theirs if value not in gone] + [v for v in seen if v not in base]
        assert ids(repo, "t") == sorted(expected)
    assert list(repo.fsck()) == []
