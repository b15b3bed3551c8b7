"""Stable row ids: read as pylance reads them, in tables that it changed in every way it has."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.exceptions import CorruptFileError, InvalidArgumentError, NotFoundError
from tests.lineage import SYSTEM, Part, change_fragments, history, message, rows, same_lineage, versions


@pytest.mark.parametrize("stable", [True, False])
def test_every_version_of_a_table_has_the_ids_and_versions_that_pylance_reads(uri: str, stable: bool) -> None:
    history(uri, stable=stable)
    for theirs, ours in versions(uri):
        assert ours.has_stable_row_ids == stable
        same_lineage(theirs, ours)


def test_the_schema_of_system_columns_is_pylances(uri: str) -> None:
    history(uri)
    columns = ["k", *SYSTEM]
    assert esker.dataset(uri).scanner(columns=columns).projected_schema == pa.schema(
        lance.dataset(uri).to_table(columns=columns).schema
    )


def test_rows_are_taken_by_id_in_every_version(uri: str) -> None:
    history(uri)
    chance = random.Random(7)
    for theirs, ours in versions(uri):
        ids = theirs.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
        wanted = [*chance.sample(ids, 25), *chance.sample(range(1500), 25)] * 2
        assert ours.take_rows(wanted).to_pydict() == theirs._take_rows(wanted).to_pydict()
        assert ours._take_rows(pa.array(ids, pa.uint64())).equals(ours.to_table())
    assert ours.take_rows([]).to_pydict() == {"k": [], "v": []}
    assert ours.take_rows(np.array([10**9, 2**63], np.uint64)).num_rows == 0


def test_an_updated_row_is_found_in_its_new_place_only(uri: str) -> None:
    lance.write_dataset(rows(0, 100), uri, enable_stable_row_ids=True, data_storage_version="2.0")
    lance.dataset(uri).update({"v": "'new'"}, where="k in (40, 41)")
    lance.dataset(uri).update({"v": "'newer'"}, where="k = 41")
    lance.dataset(uri).delete("k = 40")
    ours = esker.dataset(uri)
    found = ours.take_rows([41, 40, 39], columns=["v", "_rowaddr", "_rowid"]).to_pydict()
    assert found == {"v": ["newer", "v39"], "_rowaddr": [2 << 32, 39], "_rowid": [41, 39]}
    before = ours.checkout_version(2).take_rows([41, 40], columns=["v"])
    assert before["v"].to_pylist() == ["new", "new"]


def test_taken_rows_bring_system_columns_and_expressions(uri: str) -> None:
    history(uri)
    ours = esker.dataset(uri, version=7)
    everything = {row["_rowid"]: row for row in ours.to_table(columns=["k", *SYSTEM]).to_pylist()}
    ids = random.Random(1).sample(sorted(everything), 40)
    assert ours.take_rows(ids, columns=["k", *SYSTEM]).to_pylist() == [everything[row_id] for row_id in ids]
    computed = ours.take_rows(ids, columns={"twice": "k * 2", "id": "_rowid"}).to_pydict()
    assert computed == {"twice": [2 * everything[i]["k"] for i in ids], "id": ids}
    numbers = [3, 0, 700]
    by_number = ours.take(numbers, columns=SYSTEM).to_pylist()
    assert by_number == [
        {name: row[name] for name in SYSTEM}
        for row in ours.take_rows([row["_rowid"] for row in by_number], columns=SYSTEM).to_pylist()
    ]
    assert [row["_rowoffset"] for row in by_number] == numbers


@pytest.mark.parametrize(
    "filter",
    [
        "_rowid = 9",
        "_rowid in (9, 8, 1001, 7, 5000)",
        "_rowid > 500 and k < 700",
        "_row_created_at_version > 1",
        "_row_last_updated_at_version > _row_created_at_version",
        "_row_last_updated_at_version between 4 and 6 and v = 'third'",
    ],
)
def test_filters_on_ids_and_versions_keep_what_pylance_keeps(uri: str, filter: str) -> None:
    history(uri)
    for theirs, ours in versions(uri):
        expected = theirs.to_table(filter=filter).to_pydict()
        assert ours.to_table(filter=filter).to_pydict() == expected
        assert ours.count_rows(filter) == len(expected["k"])


def test_a_pyarrow_filter_may_name_the_id(uri: str) -> None:
    history(uri)
    ours = esker.dataset(uri, version=5)
    assert ours.to_table(filter=pc.field("_rowid") == pa.scalar(1001, pa.uint64()))["v"].to_pylist() == ["third"]


def test_deleted_rows_come_without_id_but_with_their_versions(uri: str) -> None:
    history(uri)
    for theirs, ours in versions(uri):
        options = {"with_row_id": True, "include_deleted_rows": True, "columns": ["k", *SYSTEM[3:]]}
        assert ours.to_table(**options).to_pydict() == theirs.scanner(**options).to_table().to_pydict()


def test_parts_of_a_scan_have_the_ids_of_their_rows(uri: str) -> None:
    history(uri)
    ours = esker.dataset(uri, version=6)
    everything = ours.to_table(columns=["k", *SYSTEM]).to_pylist()
    part = ours.to_table(columns=["k", *SYSTEM], offset=313, limit=200).to_pylist()
    assert part == everything[313:513]
    batches = ours.to_batches(columns=["k", *SYSTEM], batch_size=33)
    assert [row for batch in batches for row in batch.to_pylist()] == everything
    fragment = ours.get_fragments()[1]
    found = fragment.to_table(columns=["_rowid"])["_rowid"].to_pylist()
    assert found == [row["_rowid"] for row in everything if row["_rowaddr"] >> 32 == fragment.fragment_id]


@pytest.mark.parametrize("wanted", [[-1], [1, None], ["a"], [1.5]])
def test_ids_that_are_none_are_refused(uri: str, wanted: list[object]) -> None:
    esker.write_dataset(rows(0, 3), uri)
    with pytest.raises(InvalidArgumentError):
        esker.dataset(uri).take_rows(wanted)


def test_without_stable_ids_an_id_is_an_address(uri: str) -> None:
    history(uri, stable=False)
    ours = esker.dataset(uri, version=4)
    found = ours.to_table(columns=["k", "_rowid", "_rowaddr"])
    assert found["_rowid"].equals(found["_rowaddr"])
    ids = found["_rowid"].to_pylist()[::37]
    # The address of a deleted row, of one behind the end of its fragment, and of no fragment.
    nowhere = [7, 300 + (2 << 32), 77 << 32]
    expected = lance.dataset(uri, version=4)._take_rows(ids)
    assert ours.take_rows([*ids, *nowhere]).equals(expected)


def test_ids_survive_what_moves_rows(uri: str) -> None:
    history(uri)
    keys: dict[int, dict[str, int]] = {}
    for theirs, ours in versions(uri):
        if theirs.version < 11:
            for row in ours.to_table(columns=["k", "_rowid", "_row_created_at_version"]).to_pylist():
                assert keys.setdefault(row["_rowid"], row) == row


Step = tuple[str, int]


@settings(max_examples=12)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "delete", "update", "upsert", "compact", "restore"]), st.integers(2, 40)),
        max_size=9,
    )
)
def test_any_history_reads_as_pylance_reads_it(steps: list[Step], tmp_path_factory: pytest.TempPathFactory) -> None:
    uri = str(tmp_path_factory.mktemp("history") / "table.lance")
    theirs = lance.write_dataset(
        rows(0, 100), uri, enable_stable_row_ids=True, data_storage_version="2.0", max_rows_per_file=30
    )
    for step, number in steps:
        theirs = lance.dataset(uri)
        if step == "append":
            lance.write_dataset(rows(1000 + number, 1050), uri, mode="append")
        elif step == "delete":
            theirs.delete(f"k % {number} = 1")
        elif step == "update":
            theirs.update({"v": f"'{number}'"}, where=f"k % {number} = 0")
        elif step == "upsert":
            merge = theirs.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(rows(90 - number, 90 + number).take(random.Random(number).sample(range(2 * number), number)))
        elif step == "compact":
            theirs.optimize.compact_files()
        else:
            lance.dataset(uri, version=max(1, theirs.version - number % 4)).restore()
    theirs, ours = lance.dataset(uri), esker.dataset(uri)
    same_lineage(theirs, ours)
    ids = ours.to_table(columns=["_rowid"])["_rowid"]
    assert ours.take_rows(ids).equals(ours.to_table())
    begin = max(1, theirs.version - 3)
    same_delta(uri, compared_against=begin)


def same_delta(uri: str, **arguments: int) -> None:
    """Checks that both libraries see the same rows come, change and go."""
    expected, found = lance.dataset(uri).delta(**arguments), esker.dataset(uri).delta(**arguments)
    assert found.get_inserted_rows().read_all().to_pydict() == expected.get_inserted_rows().read_all().to_pydict()
    assert found.get_updated_rows().read_all().to_pydict() == expected.get_updated_rows().read_all().to_pydict()
    gone = [sorted(d.get_deleted_row_ids().read_all()["_rowid"].to_pylist()) for d in (found, expected)]
    assert gone[0] == gone[1]
    assert len(found.list_transactions()) == len(expected.list_transactions())


def test_deltas_between_all_versions_are_pylances(uri: str) -> None:
    history(uri)
    last = esker.dataset(uri).version
    for begin in range(1, last + 1):
        same_delta(uri, compared_against=begin)
        for end in range(begin, last + 1, 3):
            same_delta(uri, begin_version=begin, end_version=end)
    same_delta(uri, begin_version=0, end_version=last)


def test_a_delta_opens_the_fragments_that_changed_and_no_other(uri: str) -> None:
    lance.write_dataset(
        rows(0, 1000), uri, enable_stable_row_ids=True, data_storage_version="2.0", max_rows_per_file=10
    )
    lance.write_dataset(rows(1000, 1003), uri, mode="append")
    ours = esker.dataset(uri)
    ours.io_stats()
    assert ours.delta(compared_against=1).get_inserted_rows().read_all()["k"].to_pylist() == [1000, 1001, 1002]
    assert ours.delta(compared_against=1).get_updated_rows().read_all().num_rows == 0
    assert ours.io_stats().read_iops < 10


def test_blobs_are_found_by_stable_id(uri: str) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    columns = [pa.array(range(20), pa.int64()), pa.array([bytes([n]) * n for n in range(20)], pa.large_binary())]
    table = pa.table(columns, schema=pa.schema([("k", pa.int64()), field]))
    lance.write_dataset(table, uri, enable_stable_row_ids=True, data_storage_version="2.0", max_rows_per_file=6)
    lance.dataset(uri).delete("k % 5 = 0")
    lance.dataset(uri).optimize.compact_files()
    wanted = [19, 3, 7, 3]
    theirs = lance.dataset(uri).take_blobs("b", ids=wanted)
    ours = esker.dataset(uri).take_blobs("b", ids=wanted)
    assert (
        [blob and blob.read() for blob in ours] == [blob.read() for blob in theirs] == [bytes([n]) * n for n in wanted]
    )
    with pytest.raises(InvalidArgumentError, match="expected a row with id 5"):
        esker.dataset(uri).take_blobs("b", ids=[5])


def test_a_delta_says_what_it_needs(uri: str) -> None:
    history(uri)
    dataset = esker.dataset(uri, version=3)
    for arguments in ({}, {"begin_version": 1}, {"end_version": 2}, {"compared_against": 1, "end_version": 2}):
        with pytest.raises(InvalidArgumentError, match="compared_against"):
            dataset.delta(**arguments)
    newer = dataset.delta(compared_against=5)
    assert (newer.begin_version, newer.end_version) == (3, 5)
    assert [transaction.read_version for transaction in newer.list_transactions()] == [3, 4]
    with pytest.raises(NotFoundError, match="version 100"):
        dataset.delta(begin_version=99, end_version=100).list_transactions()
    with pytest.raises(NotFoundError):
        dataset.delta(begin_version=3, end_version=100).get_deleted_row_ids()
    with pytest.raises(InvalidArgumentError, match="begin_version <= end_version"):
        dataset.delta(begin_version=3, end_version=2).get_deleted_row_ids()


def test_deleted_ids_need_stable_ones(uri: str) -> None:
    esker.write_dataset(rows(0, 3), uri)
    esker.write_dataset(rows(3, 5), uri, mode="append")
    with pytest.raises(InvalidArgumentError, match="stable row ids"):
        esker.dataset(uri).delta(compared_against=1).get_deleted_row_ids()


def _external(uri: str) -> None:
    """Moves the row ids and versions of the latest version into a file of their own."""
    path = Path(uri, "_rowids.bin")
    path.write_bytes(b"head")

    def move(parts: list[Part]) -> list[Part]:
        out: list[Part] = []
        for number, value in parts:
            if number in (5, 7, 9) and isinstance(value, bytes):
                offset = path.stat().st_size
                path.write_bytes(path.read_bytes() + value)
                value, number = message([(1, b"_rowids.bin"), (2, offset), (3, len(value))]), number + 1
            out.append((number, value))
        return out

    change_fragments(uri, move)


def test_ids_in_a_file_of_their_own_are_read(uri: str) -> None:
    history(uri)
    expected = esker.dataset(uri).to_table(columns=["k", "v", *SYSTEM])
    _external(uri)
    with pytest.raises(ValueError, match="row ids"):
        lance.dataset(uri).to_table(with_row_id=True)
    ours = esker.dataset(uri)
    assert ours.to_table(columns=["k", "v", *SYSTEM]).equals(expected)
    ids = expected["_rowid"].to_pylist()
    assert ours.take_rows(ids).equals(ours.to_table())
    Path(uri, "_rowids.bin").write_bytes(b"short")
    with pytest.raises(CorruptFileError, match=r"_rowids\.bin"):
        esker.dataset(uri).take_rows(ids)


def test_spilled_lineage_without_its_column_is_corrupt(uri: str) -> None:
    history(uri)
    expected = esker.dataset(uri).to_table(columns=["k"])
    change_fragments(uri, lambda parts: [*(p for p in parts if p[0] not in (7, 9)), (12, b"\x0a\x01x")])
    ours = esker.dataset(uri)
    # The rows themselves need no ids.
    assert ours.to_table(columns=["k"]).equals(expected)
    with pytest.raises(CorruptFileError, match="expected a data file with field -3, which is spilled, found none"):
        ours.to_table(columns=["_rowid"])


def test_ids_that_do_not_fit_their_fragment_are_corrupt(uri: str) -> None:
    history(uri)
    change_fragments(uri, lambda parts: [(n, b"\x0a\x04\x0a\x02\x10\x05" if n == 5 else v) for n, v in parts])
    for use in (lambda d: d.to_table(with_row_id=True), lambda d: d.take_rows([1])):
        with pytest.raises(CorruptFileError, match="row ids of fragment"):
            use(esker.dataset(uri))
    assert esker.dataset(uri).count_rows() == 30
    change_fragments(uri, lambda parts: [(n, v) for n, v in parts if n != 5])
    for use in (lambda d: d.to_table(with_row_id=True), lambda d: d.take_rows([1])):
        with pytest.raises(CorruptFileError, match="expected its row ids"):
            use(esker.dataset(uri))
