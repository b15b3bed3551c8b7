"""A compaction is not thrown away because others wrote: their deleted rows are carried into its new fragments."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.exceptions import CommitConflictError, InvalidArgumentError
from tests.lineage import SYSTEM
from tests.rewrites import land, landed_groups, rewrite

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]


def _table(uri: str, stable: bool = False, version: str = "2.1") -> None:
    rows = pa.table({"id": list(range(40)), "v": [f"v{number}" for number in range(40)]})
    esker.write_dataset(
        rows, uri, max_rows_per_file=10, enable_stable_row_ids=stable, data_storage_version=version, durable=False
    )


def _ids(uri: str) -> list[int]:
    """The ids of the rows, the same in both libraries."""
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    theirs.validate()
    found = sorted(ours.to_table()["id"].to_pylist())
    assert found == sorted(theirs.to_table()["id"].to_pylist())
    assert ours.count_rows() == theirs.count_rows() == len(found)
    return found


def _lineage(uri: str) -> dict[int, tuple[int, ...]]:
    """What is known of each row, the same in both libraries."""
    columns = ["id", SYSTEM[0], *SYSTEM[3:]]
    found = []
    for dataset in (esker.dataset(uri), lance.dataset(uri)):
        rows = dataset.to_table(columns=columns).to_pydict()
        found.append({key: tuple(rows[name][place] for name in columns) for place, key in enumerate(rows["id"])})
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("theirs", ["pylance", "esker"])
def test_rows_that_others_deleted_stay_deleted(uri: str, theirs: str, version: str) -> None:
    _table(uri, version=version)
    esker.dataset(uri).delete("id in (3, 12)")
    prepared = rewrite(uri, [0, 1], [2, 3], rows_per_file=15)
    (lance if theirs == "pylance" else esker).dataset(uri).delete("id in (0, 4, 19, 25)")
    change = land(uri, prepared)
    assert landed_groups(change) == [[0, 1], [2, 3]]
    assert _ids(uri) == [number for number in range(40) if number not in (0, 3, 4, 12, 19, 25)]
    assert esker.dataset(uri).fragment_ids() == [4, 5, 6, 7]


def test_rows_that_others_moved_are_carried_with_their_ids_and_versions(uri: str) -> None:
    _table(uri, stable=True)
    lance.dataset(uri).update({"v": "'first'"}, where="id in (1, 22)")
    prepared = rewrite(uri, [0, 1], [2, 3, 4])
    lance.dataset(uri).update({"v": "'second'"}, where="id in (2, 22)")
    merge = lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [7, 100], "v": ["m", "m"]}))
    before = _lineage(uri)
    assert len(landed_groups(land(uri, prepared))) == 2
    assert _lineage(uri) == before
    assert _ids(uri) == [*range(40), 100]
    rows = esker.dataset(uri).to_table(columns=["id", "_rowid"]).to_pydict()
    for key, row in zip(rows["id"], rows["_rowid"], strict=True):
        assert esker.dataset(uri)._take_rows([row])["id"].to_pylist() == [key]


def test_fragments_and_groups_that_lost_all_rows_meanwhile(uri: str) -> None:
    _table(uri)
    prepared = rewrite(uri, [0, 1, 2], rows_per_file=10)
    lance.dataset(uri).delete("id < 10")
    lance.dataset(uri).delete("id >= 20 and id < 27")
    land(uri, prepared)
    assert _ids(uri) == [*range(10, 20), *range(27, 40)]
    assert esker.dataset(uri).fragment_ids() == [3, 4, 5]


def test_deletes_one_after_the_other_are_all_carried(uri: str) -> None:
    _table(uri)
    prepared = rewrite(uri, [0, 1, 2, 3], rows_per_file=7)
    for number in (5, 6, 39, 0, 20):
        lance.dataset(uri).delete(f"id = {number}")
        esker.write_dataset(pa.table({"id": [100 + number], "v": ["a"]}), uri, mode="append", durable=False)
    land(uri, prepared)
    assert _ids(uri) == sorted([*(set(range(40)) - {5, 6, 39, 0, 20}), 105, 106, 139, 100, 120])


def test_a_rewrite_of_columns_costs_its_group_only(uri: str) -> None:
    _table(uri)
    prepared = rewrite(uri, [0, 1], [2, 3])
    fragment = lance.dataset(uri).get_fragment(2)
    assert fragment is not None
    changed, fields = fragment.update_columns(
        pa.table({"_rowaddr": pa.array([2 << 32], pa.uint64()), "v": ["new"]}), left_on="_rowaddr", right_on="_rowaddr"
    )
    update = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    lance.LanceDataset.commit(uri, update, read_version=1)
    assert landed_groups(land(uri, prepared)) == [[0, 1]]
    assert _ids(uri) == list(range(40))
    assert esker.dataset(uri).to_table(filter="v = 'new'")["id"].to_pylist() == [20]


def test_another_compaction_and_a_changed_column_cost_the_group(uri: str) -> None:
    _table(uri)
    first, second, third = (rewrite(uri, ids) for ids in ([0, 1], [1, 2], [3]))
    land(uri, first)
    with pytest.raises(CommitConflictError):
        land(uri, second)
    lance.dataset(uri).alter_columns({"path": "id", "data_type": pa.int32()})
    with pytest.raises(CommitConflictError):
        land(uri, third)
    assert _ids(uri) == list(range(40))


def test_an_index_that_others_made_meanwhile_is_no_conflict(uri: str) -> None:
    _table(uri)
    prepared = rewrite(uri, [0, 1], [2])
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    land(uri, prepared)
    assert _ids(uri) == list(range(40))
    for number in (3, 25, 39):
        assert lance.dataset(uri).to_table(filter=f"id = {number}")["id"].to_pylist() == [number]


@pytest.mark.parametrize("stable", [False, True])
def test_deletes_updates_and_merges_of_compacted_fragments_run_again(uri: str, stable: bool) -> None:
    _table(uri, stable)
    stale = [esker.dataset(uri) for _ in range(3)]
    land(uri, rewrite(uri, [0, 1], [2, 3]))
    stale[0].delete("id in (3, 35)")
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()))
    stale[1].update({"v": "'new'"}, where="id in (4, 30)")
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()))
    merge = stale[2].merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [5, 100], "v": ["new", "new"]}))
    assert _ids(uri) == [number for number in [*range(40), 100] if number not in (3, 35)]
    assert sorted(esker.dataset(uri).to_table(filter="v = 'new'")["id"].to_pylist()) == [4, 5, 30, 100]


def test_a_rewrite_that_is_committed_by_itself_does_not_bring_rows_back(uri: str) -> None:
    _table(uri)
    version, operation = rewrite(uri, [0, 1])
    esker.dataset(uri).delete("id = 3")
    with pytest.raises(CommitConflictError):
        esker.LanceDataset.commit(uri, operation, read_version=version)
    assert _ids(uri) == [number for number in range(40) if number != 3]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("gone", ["id < 10", "id < 20"])
def test_a_rewrite_that_says_it_read_the_newest_version_does_not_bring_fragments_back(
    uri: str, stable: bool, gone: str
) -> None:
    _table(uri, stable=stable)
    prepared = rewrite(uri, [0, 1])[1]
    esker.dataset(uri).delete(gone)
    kept = _ids(uri)
    with pytest.raises(InvalidArgumentError, match="found fragment 0, which it does not have"):
        land(uri, (esker.dataset(uri).version, prepared))
    assert _ids(uri) == kept


@settings(max_examples=12, deadline=None)
@given(
    before=st.sets(st.integers(0, 39), max_size=12),
    meanwhile=st.lists(st.sets(st.integers(0, 39), max_size=20), max_size=3),
    rows_per_file=st.integers(1, 20),
    stable=st.booleans(),
)
def test_any_deletes_are_carried(
    tmp_path_factory: pytest.TempPathFactory,
    before: set[int],
    meanwhile: list[set[int]],
    rows_per_file: int,
    stable: bool,
) -> None:
    uri = str(tmp_path_factory.mktemp("carried") / "t.lance")
    _table(uri, stable)
    esker.dataset(uri).delete(f"id in ({', '.join(map(str, [*before, -1]))})")
    left = [number for number in esker.dataset(uri).fragment_ids() if number != 3]
    prepared = rewrite(uri, left, rows_per_file=rows_per_file)
    gone = set(before)
    for numbers in meanwhile:
        lance.dataset(uri).delete(f"id in ({', '.join(map(str, [*numbers, -1]))})")
        gone |= numbers
    if left and set(range(30)) - gone:
        land(uri, prepared)
    assert _ids(uri) == [number for number in range(40) if number not in gone]
