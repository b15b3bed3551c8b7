"""Commits of prepared changes: each operation, batches, detached versions, numbered commits, transactions read back."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import CommitConflictError, InvalidArgumentError, NotFoundError, UnsupportedError
from esker.fragment import write_fragments
from esker.lance.log import LATEST_COPY
from tests.samples import people, same


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _values(uri: str) -> list[int]:
    ours = esker.dataset(uri).to_table()["id"].to_pylist()
    assert ours == lance.dataset(uri).to_table()["id"].to_pylist()
    return ours


def test_a_batch_of_appends_is_one_version(uri: str) -> None:
    esker.write_dataset(_ids(0, 2), uri)
    parts = [write_fragments(_ids(n * 10, 2), uri, return_transaction=True) for n in (1, 2)]
    parts[0].transaction_properties = {"a": "1"}
    result = LanceDataset.commit_batch(uri, [pickle.loads(pickle.dumps(part)) for part in parts])
    assert result["dataset"].version == 2
    assert isinstance(result["merged"].operation, LanceOperation.Append)
    assert _values(uri) == [0, 1, 10, 11, 20, 21]
    read = esker.dataset(uri).read_transaction(2)
    assert read is not None
    assert (read.uuid, read.transaction_properties) == (result["merged"].uuid, {"a": "1"})
    with pytest.raises(InvalidArgumentError, match="found none"):
        LanceDataset.commit_batch(uri, [])
    with pytest.raises(UnsupportedError, match="found Restore"):
        LanceDataset.commit_batch(uri, [esker.Transaction(1, LanceOperation.Restore(1))])


def test_fragments_written_elsewhere_are_committed_here(uri: str, tmp_path: Path) -> None:
    esker.write_dataset(_ids(0, 2), uri)
    elsewhere = str(tmp_path / "elsewhere")
    fragments = write_fragments(_ids(5, 2), elsewhere, mode="create")
    for file in Path(elsewhere, "data").iterdir():
        shutil.move(str(file), Path(uri, "data"))
    LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=1)
    assert _values(uri) == [0, 1, 5, 6]


def test_a_detached_version_is_no_part_of_the_history(uri: str) -> None:
    esker.write_dataset(_ids(0, 2), uri)
    fragments = write_fragments(_ids(5, 2), uri)
    detached = LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=1, detached=True)
    assert detached.version >> 63 == 1
    assert detached.to_table()["id"].to_pylist() == [0, 1, 5, 6]
    assert esker.dataset(uri).version == 1
    assert _values(uri) == [0, 1]
    again = esker.dataset(uri, version=detached.version)
    assert again.to_table().equals(detached.to_table())
    assert lance.dataset(uri, version=detached.version).to_table().equals(detached.to_table())
    assert esker.write_dataset(_ids(9, 1), uri, mode="append").version == 2
    with pytest.raises(InvalidArgumentError, match="detached version"):
        again.update_config({"a": "1"})
    with pytest.raises(InvalidArgumentError, match="detached version"):
        esker.write_dataset(_ids(9, 1), again, mode="append")
    again.restore()
    assert (again.version, _values(uri)) == (3, [0, 1, 5, 6])


def test_a_change_of_a_detached_version_is_none_of_the_history(uri: str) -> None:
    esker.write_dataset(_ids(0, 2), uri)
    append = LanceOperation.Append(write_fragments(_ids(5, 2), uri))
    detached = LanceDataset.commit(uri, append, read_version=1, detached=True)
    overwrite = LanceOperation.Overwrite(_ids(7, 1).schema, write_fragments(_ids(7, 1), uri, mode="overwrite"))
    before = sorted(path.name for path in Path(uri, "_versions").iterdir())
    for operation in (append, overwrite, LanceOperation.Delete([], [0], "id < 2"), LanceOperation.Restore(1)):
        with pytest.raises(InvalidArgumentError, match="found the detached version"):
            LanceDataset.commit(uri, operation, read_version=detached.version)
    with pytest.raises(InvalidArgumentError, match="found the detached version"):
        LanceDataset.commit_batch(uri, [esker.Transaction(detached.version, append)])
    assert sorted(path.name for path in Path(uri, "_versions").iterdir()) == before
    more = LanceDataset.commit(uri, append, read_version=detached.version, detached=True)
    assert more.to_table()["id"].to_pylist() == [0, 1, 5, 6, 5, 6]
    assert _values(uri) == [0, 1]


def test_a_detached_version_may_restore_an_old_one(uri: str) -> None:
    esker.write_dataset(_ids(0, 2), uri)
    esker.write_dataset(_ids(5, 2), uri, mode="overwrite")
    detached = LanceDataset.commit(uri, LanceOperation.Restore(1), read_version=2, detached=True)
    assert detached.version >> 63 == 1
    assert detached.to_table() == _ids(0, 2)
    assert lance.dataset(uri, version=detached.version).to_table() == _ids(0, 2)
    assert (esker.dataset(uri).version, _values(uri)) == (2, [5, 6])
    with pytest.raises(NotFoundError):
        LanceDataset.commit(uri, LanceOperation.Restore(9), read_version=2, detached=True)


def test_a_detached_version_of_the_peer_is_read(uri: str) -> None:
    lance.write_dataset(_ids(0, 2), uri, data_storage_version="2.0")
    fragments = lance.fragment.write_fragments(_ids(5, 2), uri, data_storage_version="2.0")
    made = lance.LanceDataset.commit(uri, lance.LanceOperation.Append(fragments), read_version=1, detached=True)
    assert esker.dataset(uri, version=made.version).to_table().equals(made.to_table())
    assert esker.dataset(uri).version == 1


def test_transactions_carry_a_message_and_properties(uri: str) -> None:
    esker.write_dataset(_ids(0, 1), uri, commit_message="first")
    fragments = write_fragments(_ids(1, 1), uri)
    operation = LanceOperation.Append(fragments)
    LanceDataset.commit(uri, operation, read_version=1, commit_message="why", transaction_properties={"k": "v"})
    for dataset in (esker.dataset(uri), lance.dataset(uri)):
        found = dataset.read_transaction(2)
        assert found is not None
        assert found.transaction_properties == {esker.dataset.__module__ and "__lance_commit_message": "why", "k": "v"}
        assert [it and it.operation.__class__.__name__ for it in dataset.get_transactions()] == ["Append", "Overwrite"]


def test_a_numbered_commit_happens_once(uri: str) -> None:
    esker.write_dataset(_ids(0, 1), uri, application=("job", 0))
    for _ in range(2):
        written = esker.write_dataset(_ids(1, 1), uri, mode="append", application=("job", 7))
        assert written.version == 2
    assert esker.write_dataset(_ids(2, 1), uri, mode="append", application=("job", 6)).version == 2
    assert esker.write_dataset(_ids(2, 1), uri, mode="append", application=("other", 6)).version == 3
    assert esker.write_dataset(_ids(3, 1), uri, mode="append", application=("job", 8)).version == 4
    assert _values(uri) == [0, 1, 2, 3]
    fragments = write_fragments(_ids(9, 1), uri)
    operation = LanceOperation.Append(fragments)
    assert LanceDataset.commit(uri, operation, read_version=4, application=("job", 8)).version == 4
    assert LanceDataset.commit(uri, operation, read_version=1, application=("job", 9)).version == 5
    assert esker.dataset(uri).config() == {"esker.application.job": "9", "esker.application.other": "6"}


def test_a_create_that_an_earlier_run_made_is_no_error(uri: str) -> None:
    esker.write_dataset(_ids(0, 1), uri, application=("job", 1))
    assert esker.write_dataset(_ids(0, 1), uri, application=("job", 1)).version == 1
    with pytest.raises(esker.exceptions.AlreadyExistsError):
        esker.write_dataset(_ids(0, 1), uri, application=("job", 2))


def test_numbers_outlive_every_writer_but_a_restore_by_the_peer(uri: str) -> None:
    esker.write_dataset(_ids(0, 3), uri, data_storage_version="2.0")
    esker.write_dataset(_ids(3, 1), uri, mode="append", application=("job", 1))
    peer = lance.dataset(uri)
    peer.delete("id = 0")
    peer.update_config({"x": "1"})
    lance.write_dataset(_ids(4, 1), uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    lance.write_dataset(_ids(5, 1), uri, mode="overwrite")
    assert (
        esker.write_dataset(_ids(3, 1), uri, mode="append", application=("job", 1)).version
        == lance.dataset(uri).version
    )
    esker.dataset(uri, version=1).restore()
    assert esker.dataset(uri).config() == {"esker.application.job": "1"}
    before = esker.dataset(uri).version
    assert esker.write_dataset(_ids(3, 1), uri, mode="append", application=("job", 1)).version == before
    lance.dataset(uri, version=1).restore()
    assert esker.dataset(uri).config() == {}


@pytest.mark.parametrize(
    "application",
    [("", 1), ("job", -1), ("job", "1"), ("job", 1.5), ("job", True), ("job", 2**63), (1, 1), ("job",), "jo"],
)
def test_an_application_has_a_name_and_a_number(application: Any, uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected application"):
        esker.write_dataset(_ids(0, 1), uri, application=application)


def test_the_copy_of_the_latest_manifest_follows(uri: str) -> None:
    esker.write_dataset(_ids(0, 1), uri, enable_v2_manifest_paths=False)
    copy = Path(uri, LATEST_COPY)
    assert not copy.exists()
    shutil.copy(Path(uri, "_versions", "1.manifest"), copy)
    esker.write_dataset(_ids(1, 1), uri, mode="append")
    assert copy.read_bytes() == Path(uri, "_versions", "2.manifest").read_bytes()
    esker.dataset(uri).update_config({"a": "1"})
    assert copy.read_bytes() == Path(uri, "_versions", "3.manifest").read_bytes()


def test_a_transaction_that_is_gone_is_a_conflict(uri: str) -> None:
    esker.write_dataset(_ids(0, 1), uri)
    stale = esker.dataset(uri)
    # Too large to stand in the manifest.
    esker.write_dataset(_ids(1, 1), uri, mode="append", transaction_properties={"why": "x" * 70_000})
    for file in Path(uri, "_transactions").iterdir():
        file.unlink()
    fragments = write_fragments(_ids(2, 1), stale)
    with pytest.raises(CommitConflictError, match="unknown") as caught:
        LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=1)
    assert (caught.value.other_version, caught.value.retryable) == (2, False)
    LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=2)


@pytest.mark.parametrize("after_power_cut", ["gone", "empty"])
@pytest.mark.parametrize("writer", [esker, lance])
def test_a_transaction_within_the_manifest_is_enough(writer: Any, after_power_cut: str, uri: str) -> None:
    writer.write_dataset(_ids(0, 1), uri, data_storage_version="2.0")
    writer.write_dataset(_ids(1, 1), uri, mode="append", commit_message="why")
    before = lance.dataset(uri)
    for file in Path(uri, "_transactions").iterdir():
        file.unlink() if after_power_cut == "gone" else file.write_bytes(b"")
    fragments = write_fragments(_ids(2, 1), uri, data_storage_version="2.0")
    LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=1)
    # pylance reads it there, too: a delete of an older version is compared with it.
    before.delete("id = 0")
    assert _values(uri) == [1, 2]
    for library in (esker, lance):
        dataset: Any = library.dataset(uri, version=2)
        assert dataset.read_transaction(2).transaction_properties == {"__lance_commit_message": "why"}
    esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert _values(uri) == [1, 2]


def test_a_rewrite_takes_reserved_ids(uri: str) -> None:
    esker.write_dataset(_ids(0, 30), uri, max_rows_per_file=10)
    LanceDataset.commit(uri, LanceOperation.ReserveFragments(1), read_version=1)
    old = [fragment.metadata for fragment in esker.dataset(uri).get_fragments()[:2]]
    new = write_fragments(_ids(0, 20), uri)
    native = [esker.FragmentMetadata.from_native(fragment.to_native().with_id(3)) for fragment in new]
    operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, native)], [])
    made = LanceDataset.commit(uri, operation, read_version=2)
    assert made.fragment_ids() == [2, 3]
    assert sorted(_values(uri)) == list(range(30))
    assert lance.dataset(uri).count_rows() == 30


def test_every_operation_of_the_peer_is_read_back(uri: str) -> None:
    peer = lance.write_dataset(people(30), uri, data_storage_version="2.0", max_rows_per_file=10)
    peer.delete("id = 1")
    peer.update({"id": "100"}, where="id = 2")
    peer.alter_columns({"path": "id", "name": "key"})
    peer.add_columns({"twice": "key * 2"})
    peer.drop_columns(["twice"])
    peer.create_scalar_index("key", "BTREE")
    peer.update_config({"a": "1"})
    peer.update_field_metadata({"key": {"b": "2"}})
    peer.optimize.compact_files()
    peer.checkout_version(2).restore()
    dataset = esker.dataset(uri)
    names = [it.operation.name for it in dataset.get_transactions(100) if it is not None]
    assert names == [
        "Restore",
        "Rewrite",
        "ReserveFragments",
        "UpdateConfig",
        "UpdateConfig",
        "CreateIndex",
        "Project",
        "Merge",
        "Project",
        "Update",
        "Delete",
        "Overwrite",
    ]
    for found in dataset.get_transactions(100):
        assert found is not None
        # What was read can be committed again: the bytes say the same.
        native = found.operation.to_native(found.read_version, found.transaction_properties, uuid=found.uuid)
        assert esker.Transaction.from_native(native) == found
    same(dataset.to_table(), lance.dataset(uri).to_table())


def test_operations_are_checked_before_they_are_committed(uri: str) -> None:
    dataset = esker.write_dataset(_ids(0, 3), uri)
    fragment = dataset.get_fragments()[0].metadata
    elsewhere = esker.FragmentMetadata.from_native(fragment.to_native().with_id(9))
    for operation, match in [
        (LanceOperation.Delete([elsewhere], [], ""), "found fragment 9"),
        (LanceOperation.Update(removed_fragment_ids=[9]), "found fragment 9"),
        (LanceOperation.Merge([], dataset.lance_schema), "found none of id 0"),
        (LanceOperation.Restore(7), "no version 7"),
        (LanceOperation.Update(update_mode="nonsense"), "nonsense"),
    ]:
        with pytest.raises(ValueError, match=match):
            LanceDataset.commit(uri, operation, read_version=1)
    for unsupported in (LanceOperation.Other("DataOverlay"), LanceOperation.Clone(True, None, 1, "x", None)):
        with pytest.raises(UnsupportedError, match="can only be read back"):
            LanceDataset.commit(uri, unsupported, read_version=1)
    with pytest.raises(InvalidArgumentError, match="read_version is required"):
        LanceDataset.commit(uri, LanceOperation.ReserveFragments(1))
    assert esker.dataset(uri).version == 1


def _vectors() -> pa.Table:
    values = [float((n * 37) % 101) for n in range(4 * 2000)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 4)
    return pa.table({"a": pa.array(range(2000), pa.int64()), "v": vectors})


def _indexed(uri: str) -> lance.LanceDataset:
    dataset = lance.write_dataset(_vectors(), uri, max_rows_per_file=500, data_storage_version="2.0")
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    return dataset


def _found(uri: str, wanted: list[float], *, by_index: bool = True) -> tuple[list[list[int]], list[float]]:
    """What the peer finds by its indices, or without them."""
    dataset = lance.dataset(uri)
    rows = []
    for n in (5, 700, 999, 1000, 1600):
        scanner = dataset.scanner(columns=["a"], filter=f"a = {n}", use_scalar_index=by_index)
        assert ("ScalarIndexQuery" in scanner.explain_plan()) is by_index
        rows.append(scanner.to_table()["a"].to_pylist())
    nearest = {"column": "v", "q": wanted, "k": 5, "nprobes": 2, "use_index": by_index}
    scanner = dataset.scanner(columns=["_distance"], nearest=nearest)
    assert ("ANNSubIndex" in scanner.explain_plan()) is by_index
    return rows, scanner.to_table()["_distance"].to_pylist()


def test_the_peer_finds_rows_that_a_rewrite_moved_from_under_its_indices(uri: str) -> None:
    wanted = _indexed(uri).to_table(filter="a = 7")["v"].to_pylist()[0]
    before = _found(uri, wanted)
    dataset = esker.dataset(uri)
    old = [fragment.metadata for fragment in dataset.get_fragments()[:2]]
    new = write_fragments(dataset.to_table(filter="a < 1000"), uri)
    operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], [])
    made = LanceDataset.commit(uri, operation, read_version=dataset.version)
    # Both keep old addresses, which the fragment reuse index translates, as after a deferred compaction of the peer's.
    listed = {index.name: index.fragment_ids for index in made._manifest.indices}
    assert listed == {"a_idx": [0, 1, 2, 3], "v_idx": [0, 1, 2, 3], "__lance_frag_reuse": [4]}
    covered = {index["name"]: set(index["fragment_ids"]) for index in lance.dataset(uri).list_indices()}
    assert covered["a_idx"] == covered["v_idx"] == {2, 3, 4}
    assert _found(uri, wanted) == _found(uri, wanted, by_index=False) == before
    assert before[0] == [[5], [700], [999], [1000], [1600]]


def test_the_peer_no_longer_trusts_its_indices_where_columns_were_replaced(uri: str) -> None:
    _indexed(uri)
    dataset = esker.dataset(uri)
    changed = _vectors().slice(0, 500).set_column(0, "a", pa.array(range(9000, 9500), pa.int64()))
    file = write_fragments(changed, uri, mode="overwrite")[0].files[0]
    operation = LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, file)])
    made = LanceDataset.commit(uri, operation, read_version=dataset.version)
    assert [index.fragment_ids for index in made._manifest.indices] == [[1, 2, 3], [1, 2, 3]]
    peer = lance.dataset(uri)
    assert [peer.count_rows(f"a = {n}") for n in (5, 700, 9005)] == [0, 1, 1]


@pytest.mark.parametrize("stable", [False, True])
def test_the_peer_no_longer_trusts_its_indices_where_a_merge_changed_columns_in_place(uri: str, stable: bool) -> None:
    table = pa.table({"k": range(1000), "a": range(0, 2000, 2), "b": range(1000)})
    lance.write_dataset(table, uri, max_rows_per_file=500, enable_stable_row_ids=stable)
    for column in ("a", "b"):
        lance.dataset(uri).create_scalar_index(column, "BTREE")
    dataset = esker.dataset(uri)
    first, second = dataset.get_fragments()
    changed, _ = first.update_columns(pa.table({"k": [7], "a": [99_999]}), "k")
    merge = LanceOperation.Merge([changed, second.metadata], dataset.lance_schema)
    LanceDataset.commit(uri, merge, read_version=dataset.version)
    peer = lance.dataset(uri)
    assert [peer.to_table(filter=where)["k"].to_pylist() for where in ("a = 99999", "a = 14", "b = 7")] == [
        [7],
        [],
        [7],
    ]
    covered = {index["name"]: sorted(index["fragment_ids"]) for index in peer.list_indices()}
    assert covered == {"a_idx": [1], "b_idx": [0, 1]}


@pytest.mark.parametrize(
    "other",
    [
        lambda dataset: dataset.insert(_ids(5, 1)),
        lambda dataset: dataset.delete("id = 0"),
        lambda dataset: dataset.update_config({"a": "b"}),
        lambda dataset: dataset.optimize.compact_files(),
        None,
    ],
    ids=["insert", "delete", "config", "compact", "nothing"],
)
@pytest.mark.parametrize("library", ["esker", "pylance"])
def test_an_overwrite_without_retries_is_one_of_the_version_that_it_names(
    uri: str, other: Callable[[Any], object] | None, library: str
) -> None:
    module: Any = esker if library == "esker" else lance
    for start in (0, 10):
        esker.write_dataset(_ids(start, 5), uri, mode="append" if start else "create")
    files = [module.fragment.LanceFragment.create(uri, _ids(20, 3))]
    overwrite = module.LanceOperation.Overwrite(_ids(20, 3).schema, files)
    if other is None:
        module.LanceDataset.commit(uri, overwrite, read_version=2, max_retries=0)
        assert esker.dataset(uri).count_rows() == 3
    else:
        other(module.dataset(uri))
    version = esker.dataset(uri).version
    for base in ({"read_version": 2}, {}):
        with pytest.raises(OSError, match=r"[Cc]onflict|0.manifest was not found"):
            module.LanceDataset.commit(uri, overwrite, **base, max_retries=0)
    assert esker.dataset(uri).version == version
    if other is not None:
        LanceDataset.commit(uri, LanceOperation.Overwrite(_ids(20, 3).schema, []), read_version=2, max_retries=1)
        assert esker.dataset(uri).count_rows() == 0


def _indexed_elsewhere(uri: str, stable: bool) -> LanceOperation.BaseOperation:
    """A table, and the operation that adds an index of its first version, which a worker built on a copy."""
    table = pa.table({"k": range(20), "a": range(100, 120)})
    lance.write_dataset(table, uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    shutil.copytree(uri, f"{uri}-copy")
    lance.dataset(f"{uri}-copy").create_scalar_index("a", "BTREE")
    shutil.copytree(f"{uri}-copy/_indices", f"{uri}/_indices")
    made = esker.dataset(f"{uri}-copy").read_transaction(2)
    assert made is not None
    return made.operation


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("between", ["Update", "Merge", "other column"])
def test_an_index_does_not_cover_columns_that_changed_in_place_meanwhile(uri: str, between: str, stable: bool) -> None:
    create = _indexed_elsewhere(uri, stable)
    dataset = esker.dataset(uri)
    first, second = dataset.get_fragments()
    new = pa.table({"a": [103], "k": [999]} if between == "other column" else {"k": [3], "a": [999]})
    changed, fields = first.update_columns(new, new.column_names[0])
    change: LanceOperation.BaseOperation = LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    if between == "Merge":
        change = LanceOperation.Merge([changed, second.metadata], dataset.lance_schema)
    LanceDataset.commit(uri, change, read_version=1)
    LanceDataset.commit(uri, create, read_version=1)
    peer = lance.dataset(uri)
    assert [sorted(index["fragment_ids"]) for index in peer.list_indices()] == [
        [0, 1] if between == "other column" else [1]
    ]
    expected = [[], [999]] if between == "other column" else [[3], []]
    assert [peer.to_table(filter=where)["k"].to_pylist() for where in ("a = 999", "a = 103")] == expected


@pytest.mark.parametrize("how", ["dropped", "cast"])
def test_an_index_of_a_column_that_is_gone_meanwhile_is_a_conflict(uri: str, how: str) -> None:
    create = _indexed_elsewhere(uri, stable=False)
    if how == "dropped":
        lance.dataset(uri).drop_columns(["a"])
    else:
        lance.dataset(uri).alter_columns({"path": "a", "data_type": pa.int32()})
    with pytest.raises(CommitConflictError, match="was made of version 1") as caught:
        LanceDataset.commit(uri, create, read_version=1)
    assert caught.value.retryable
    assert esker.dataset(uri).version == 2


def test_an_index_of_a_version_that_is_gone_is_refused(uri: str) -> None:
    create = _indexed_elsewhere(uri, stable=False)
    dataset = esker.dataset(uri)
    changed, fields = dataset.get_fragments()[0].update_columns(pa.table({"k": [3], "a": [999]}), "k")
    update = LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    LanceDataset.commit(uri, update, read_version=1)
    Path(uri, "_versions", f"{2**64 - 1 - 1}.manifest").unlink()
    with pytest.raises(CommitConflictError, match="a clean-up has removed"):
        LanceDataset.commit(uri, create, read_version=1)
    assert esker.dataset(uri).version == 2


def test_an_index_of_a_version_that_is_gone_is_taken_where_nothing_moved(uri: str) -> None:
    create = _indexed_elsewhere(uri, stable=False)
    esker.dataset(uri).insert(pa.table({"k": [20], "a": [103]}))
    esker.dataset(uri).delete("k = 5")
    Path(uri, "_versions", f"{2**64 - 1 - 1}.manifest").unlink()
    LanceDataset.commit(uri, create, read_version=1)
    assert lance.dataset(uri).to_table(filter="a = 103")["k"].to_pylist() == [3, 20]


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.insert(_ids(5, 1)),
        lambda dataset: esker.write_dataset(_ids(5, 1), dataset, mode="append"),
        lambda dataset: esker.write_dataset(_ids(5, 1), dataset, mode="overwrite"),
        lambda dataset: LanceDataset.commit(dataset, LanceOperation.Append([]), read_version=1),
        lambda dataset: LanceDataset.commit_batch(
            dataset, [write_fragments(_ids(5, 1), dataset, mode="append", return_transaction=True)]
        ),
        lambda dataset: dataset.delete("id = 0"),
        lambda dataset: dataset.update({"id": "id + 1"}),
        lambda dataset: dataset.merge_insert("id").when_not_matched_insert_all().execute(_ids(7, 1)),
        lambda dataset: dataset.add_columns({"twice": "id * 2"}),
        lambda dataset: dataset.restore(),
    ],
    ids=["insert", "append", "overwrite", "commit", "batch", "delete", "update", "merge_insert", "add", "restore"],
)
def test_the_lock_that_a_dataset_was_opened_with_is_held_by_each_of_its_commits(
    change: Callable[[LanceDataset], object], uri: str
) -> None:
    held: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        held.append(version)
        yield

    esker.write_dataset(_ids(0, 2), uri)
    dataset = esker.dataset(uri, commit_lock=lock)
    made = change(dataset)
    assert held == [2]
    # What a write returns goes on as it was opened.
    made = made["dataset"] if isinstance(made, dict) and "dataset" in made else made
    (made if isinstance(made, LanceDataset) else dataset).delete("true")
    assert held == [2, 3]


def test_a_lock_that_is_given_goes_before_that_of_the_dataset(uri: str) -> None:
    held: list[str] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        held.append("dataset's")
        yield

    @contextmanager
    def given(version: int) -> Iterator[None]:
        held.append("given")
        yield

    dataset = esker.write_dataset(_ids(0, 2), uri, commit_lock=lock)
    LanceDataset.commit(dataset, LanceOperation.Append([]), read_version=1, commit_lock=given)
    assert held == ["dataset's", "given"]
