"""Tables whose files lie under several roots, and clones, beside pylance."""

import os
import pickle
import random
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import DatasetBasePath, LanceOperation
from esker._native.store import Store
from esker.dataset.merge_insert import MergeInsertBuilder
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError
from esker.fragment import write_fragments
from esker.store import stores

ROWS = pa.table({"id": list(range(10)), "name": [str(n) for n in range(10)]})

Writer = tuple[Any, Any]
"""A module that writes, and its class of base paths."""


def ids(dataset: Any) -> list[int]:
    """The ids of all rows, as both libraries read them."""
    uri = dataset.uri
    found = esker.dataset(uri).to_table()["id"].to_pylist()
    assert lance.dataset(uri).to_table()["id"].to_pylist() == found
    return found


def homes(uri: str) -> list[int | None]:
    """The base path of each data file."""
    found = [file.base_id for fragment in esker.dataset(uri).get_fragments() for file in fragment.data_files()]
    theirs = [file.base_id for fragment in lance.dataset(uri).get_fragments() for file in fragment.data_files()]
    assert found == theirs
    return found


def base(kind: Any, path: Path, name: str, root: bool = False) -> Any:
    return kind(str(path), name, root)


@pytest.fixture(params=["esker", "pylance"])
def writer(request: pytest.FixtureRequest) -> Writer:
    """Who writes: a module and its class of base paths."""
    return (esker, DatasetBasePath) if request.param == "esker" else (lance, lance.DatasetBasePath)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_files_go_to_base_paths_in_turn_and_both_read_them(tmp_path: Path, writer: Writer, version: str) -> None:
    module, kind = writer
    bases = [base(kind, tmp_path / "flat", "flat"), base(kind, tmp_path / "root", "root", True)]
    uri = str(tmp_path / "t")
    options = {"data_storage_version": version}
    module.write_dataset(ROWS, uri, initial_bases=bases, target_bases=["flat", "root"], max_rows_per_file=3, **options)
    assert homes(uri) == [1, 2, 1, 2]
    assert len(os.listdir(tmp_path / "flat")) == len(os.listdir(tmp_path / "root" / "data")) == 2
    assert not (tmp_path / "t" / "data").exists()
    module.write_dataset(ROWS, uri, mode="append")
    module.write_dataset(ROWS, uri, mode="append", target_bases=[str(tmp_path / "flat")])
    assert homes(uri) == [1, 2, 1, 2, None, 1]
    module.write_dataset(ROWS, uri, mode="append", target_all_bases=True, max_rows_per_file=4)
    assert homes(uri)[6:] == [None, 1, 2]
    dataset = esker.dataset(uri)
    assert ids(dataset) == list(range(10)) * 4
    assert dataset.base_paths() == {
        1: DatasetBasePath(str(tmp_path / "flat"), "flat", False, 1),
        2: DatasetBasePath(str(tmp_path / "root"), "root", True, 2),
    }
    assert dataset.take([0, 11, 39])["id"].to_pylist() == [0, 1, 9]
    assert dataset.count_rows("id < 3") == 12


def test_both_change_rows_that_lie_elsewhere(tmp_path: Path, writer: Writer) -> None:
    module, kind = writer
    uri = str(tmp_path / "t")
    module.write_dataset(
        ROWS, uri, initial_bases=[base(kind, tmp_path / "b", "b")], target_bases=["b"], max_rows_per_file=4
    )
    for number, turn in enumerate([esker, lance, esker]):
        dataset = turn.dataset(uri)
        dataset.delete(f"id = {number}")
        dataset = turn.dataset(uri)
        dataset.update({"name": "'changed'"}, where=f"id = {number + 5}")
        dataset = turn.dataset(uri)
        new = pa.table({"id": [number + 100], "name": ["new"]})
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
    assert sorted(ids(esker.dataset(uri))) == [3, 4, 5, 6, 7, 8, 9, 100, 101, 102]
    dataset = esker.dataset(uri)
    assert dataset.count_rows("name = 'changed'") == 3
    dataset.add_columns({"twice": "id * 2"})
    assert esker.dataset(uri).to_table(columns=["twice"]) == lance.dataset(uri).to_table(columns=["twice"])


def test_an_upsert_goes_where_it_is_told(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    bases = [DatasetBasePath(str(tmp_path / "b"), "b"), DatasetBasePath(str(tmp_path / "c"), "c")]
    dataset = esker.write_dataset(ROWS, uri, initial_bases=bases)
    change = pa.table({"id": [1, 50], "name": ["x", "y"]})

    def upsert() -> MergeInsertBuilder:
        return esker.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()

    upsert().target_bases(["c"]).execute(change)
    assert homes(uri) == [None, 2]
    upsert().target_all_bases(include_primary=False).execute(change)
    assert homes(uri)[-1] == 1
    assert sorted(ids(dataset)) == [*range(10), 50]
    with pytest.raises(InvalidArgumentError, match="'d' not found"):
        upsert().target_bases(["d"])


def test_bases_are_added_and_refused(tmp_path: Path, writer: Writer) -> None:
    module, kind = writer
    uri = str(tmp_path / "t")
    module.write_dataset(ROWS, uri)
    dataset = module.dataset(uri)
    dataset.add_bases([base(kind, tmp_path / "b", "b"), base(kind, tmp_path / "c", "c", True)])
    assert [(one.id, one.name) for one in esker.dataset(uri).base_paths().values()] == [(1, "b"), (2, "c")]
    assert {id_: one.path for id_, one in lance.dataset(uri).base_paths().items()} == {
        id_: one.path for id_, one in esker.dataset(uri).base_paths().items()
    }
    for again in [DatasetBasePath(str(tmp_path / "d"), "b"), DatasetBasePath(str(tmp_path / "b"), "e")]:
        with pytest.raises(InvalidArgumentError, match="has already"):
            esker.dataset(uri).add_bases([again])
    transaction = esker.dataset(uri).read_transaction(2)
    assert transaction is not None
    operation = transaction.operation
    assert isinstance(operation, LanceOperation.UpdateBases)
    assert [one.name for one in operation.new_bases] == ["b", "c"]
    version = esker.write_dataset(ROWS, uri, mode="append", target_bases=["c"]).version
    assert homes(uri) == [None, 2]
    assert version == 3


def test_bases_that_two_writers_add_are_kept_apart(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    first = esker.write_dataset(ROWS, uri)
    second = esker.dataset(uri)
    first.add_bases([DatasetBasePath(str(tmp_path / "b"), "b")])
    # Another one goes on top and gets another id; the same one does not.
    with pytest.raises(esker.exceptions.CommitConflictError, match="UpdateBases"):
        second.add_bases([DatasetBasePath(str(tmp_path / "b"), "b")])
    third = esker.dataset(uri, version=1)
    third.add_bases([DatasetBasePath(str(tmp_path / "c"), "c")])
    assert {id_: one.name for id_, one in esker.dataset(uri).base_paths().items()} == {1: "b", 2: "c"}


@pytest.mark.parametrize("stable", [False, True])
def test_a_shallow_clone_reads_what_it_borrows_and_writes_its_own(tmp_path: Path, writer: Writer, stable: bool) -> None:
    module, _ = writer
    source = module.write_dataset(ROWS, str(tmp_path / "s"), enable_stable_row_ids=stable, max_rows_per_file=4)
    source.delete("id = 3")
    source = module.write_dataset(ROWS, str(tmp_path / "s"), mode="append")
    uri = str(tmp_path / "clone")
    clone = module.dataset(str(tmp_path / "s")).shallow_clone(uri, 2)
    assert clone.version == 2
    assert not (tmp_path / "clone" / "data").exists()
    assert ids(clone) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert homes(uri) == [0, 0, 0]
    for turn in [esker, lance]:
        turn.dataset(uri).delete("id = 4 or id = 2")
        turn.write_dataset(ROWS, uri, mode="append")
        turn.dataset(uri).update({"name": "'x'"}, where="id = 5")
    assert len(ids(clone)) == 25
    assert esker.dataset(uri).count_rows("name = 'x'") == 3
    # The source is as it was, and a clone of the clone reads through both.
    assert len(ids(source)) == 19
    again = esker.dataset(uri).shallow_clone(str(tmp_path / "again"), esker.dataset(uri).version)
    assert sorted(ids(again)) == sorted(ids(clone))
    assert set(again.base_paths()) == {0, 1}
    if stable:
        wanted = again.to_table(columns=["id"], with_row_id=True)
        taken = (
            again._take_rows(wanted["_rowid"]) if hasattr(again, "_take_rows") else again.take_rows(wanted["_rowid"])
        )
        assert taken["id"] == wanted["id"]


def test_a_clone_keeps_its_transaction_and_indices(tmp_path: Path) -> None:
    source = lance.write_dataset(ROWS, str(tmp_path / "s"))
    source.create_scalar_index("id", "BTREE")
    ours = esker.dataset(str(tmp_path / "s")).shallow_clone(str(tmp_path / "c"), (None, None))
    transaction = ours.read_transaction(ours.version)
    assert transaction is not None
    assert transaction.operation == LanceOperation.Clone(True, None, 2, str(tmp_path / "s"), None)
    theirs = lance.dataset(str(tmp_path / "c"))
    assert theirs.to_table(filter="id = 7")["id"].to_pylist() == [7]
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 7").explain_plan()
    assert [index["name"] for index in theirs.list_indices()] == ["id_idx"]


def test_a_deep_clone_stands_alone(tmp_path: Path) -> None:
    import shutil

    blobs = pa.table({"id": [1, 2], "b": esker.blob_array([b"x" * 300_000, b"small"])})
    source = esker.write_dataset(
        blobs,
        str(tmp_path / "s"),
        data_storage_version="2.2",
        initial_bases=[DatasetBasePath(str(tmp_path / "b"), "b")],
        target_bases=["b"],
    )
    source = esker.write_dataset(blobs, source, mode="append")
    source.delete("id = 1 and _rowid < 1")
    lance.dataset(source.uri).create_scalar_index("id", "BTREE")
    source = esker.dataset(source.uri)
    copy = source.deep_clone(str(tmp_path / "copy"), source.version)
    shutil.rmtree(tmp_path / "s")
    shutil.rmtree(tmp_path / "b")
    copy = esker.dataset(copy.uri)
    assert ids(copy) == [2, 1, 2]
    assert copy.base_paths() == {}
    assert homes(copy.uri) == [None, None]
    taken = copy.read_blobs("b", indices=[0, 1, 2])
    assert [value and value[:1] for _, value in taken] == [b"s", b"x", b"s"]
    theirs = lance.dataset(copy.uri)
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 2").explain_plan()
    assert theirs.to_table(columns=["id"], filter="id = 2").num_rows == 2


def test_what_cannot_be_cloned_is_refused(tmp_path: Path) -> None:
    source = esker.write_dataset(ROWS, str(tmp_path / "s"))
    with pytest.raises(AlreadyExistsError, match="expected none where a clone goes"):
        source.shallow_clone(str(tmp_path / "s"), 1)
    with pytest.raises(NotFoundError, match="no version 7"):
        source.shallow_clone(str(tmp_path / "c"), 7)
    with pytest.raises(NotFoundError, match="tag tag does not exist"):
        source.shallow_clone(str(tmp_path / "c"), "tag")
    with pytest.raises(NotFoundError, match="branch b of"):
        source.shallow_clone(str(tmp_path / "c"), ("b", 1))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("verb", ["shallow_clone", "deep_clone"])
def test_detached_versions_are_not_cloned(verb: str, tmp_path: Path) -> None:
    # A table that has no other version cannot be opened.
    uri, target = str(tmp_path / "s"), str(tmp_path / "c")
    esker.write_dataset(ROWS, uri)
    append = LanceOperation.Append(write_fragments(ROWS, uri))
    detached = esker.LanceDataset.commit(uri, append, read_version=1, detached=True)
    detached.tags.create("aside")
    for source, reference in ((detached, detached.version), (esker.dataset(uri), "aside")):
        with pytest.raises(InvalidArgumentError, match="to clone, found the detached version"):
            getattr(source, verb)(target, reference)
    assert not (tmp_path / "c").exists()
    detached.restore()
    assert getattr(esker.dataset(uri), verb)(target, 2).count_rows() == 20


@pytest.mark.parametrize("is_external", [False, True])
def test_a_version_that_was_cleaned_up_is_not_cloned(tmp_path: Path, is_external: bool) -> None:
    options: dict[str, Any] = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"} if is_external else {}
    esker.write_dataset(ROWS, str(tmp_path / "s"), **options)
    shown = esker.dataset(str(tmp_path / "s"), **options)
    newest = esker.write_dataset(ROWS, shown, mode="overwrite")
    newest.cleanup_old_versions(older_than=timedelta(0))
    for clone in (shown.shallow_clone, shown.deep_clone):
        with pytest.raises(NotFoundError, match="no version 1 to clone: it was cleaned up"):
            clone(str(tmp_path / "c"), 1)
    assert not (tmp_path / "c").exists()
    assert shown.shallow_clone(str(tmp_path / "c"), ("main", None)).version == 2


def test_targets_that_are_not_there_are_refused(tmp_path: Path, writer: Writer) -> None:
    module, kind = writer
    uri = str(tmp_path / "t")
    module.write_dataset(ROWS, uri, initial_bases=[base(kind, tmp_path / "b", "b")])
    wrong: list[dict[str, Any]] = [
        {"target_bases": ["c"]},
        {"target_bases": ["b"], "target_all_bases": True},
        {"initial_bases": [base(kind, tmp_path / "d", "d")]},
    ]
    for options in wrong:
        with pytest.raises((InvalidArgumentError, OSError)):
            module.write_dataset(ROWS, uri, mode="append", **options)
    assert esker.dataset(uri).version == 1
    assert len(list(Path(uri).glob("data/*"))) == 1


def test_a_pickle_and_versions_on_both_sides_of_a_restore_find_their_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ROWS, uri)
    for name in ("b", "c"):
        dataset = esker.dataset(uri)
        dataset.add_bases([DatasetBasePath(str(tmp_path / name), name)])
        esker.write_dataset(pa.table({"id": [ord(name)], "name": [name]}), uri, mode="append", target_bases=[name])
        # pylance's restore forgets base paths: the next one gets the same id again.
        lance.dataset(uri, version=1).restore()
    found = {}
    dataset = esker.dataset(uri)
    for version in range(1, dataset.version + 1):
        at = dataset.checkout_version(version)
        assert at.to_table() == lance.dataset(uri, version=version).to_table()
        assert pickle.loads(pickle.dumps(at)).to_table() == at.to_table()
        found[version] = {id_: one.name for id_, one in at.base_paths().items()}
    assert found == {1: {}, 2: {1: "b"}, 3: {1: "b"}, 4: {}, 5: {1: "c"}, 6: {1: "c"}, 7: {}}


def test_low_level_commits_name_their_bases(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    bases = [DatasetBasePath(str(tmp_path / "b"), "b")]
    fragments = esker.fragment.write_fragments(
        ROWS, uri, mode="create", initial_bases=bases, target_bases=["b"], max_rows_per_file=5
    )
    with pytest.raises(InvalidArgumentError, match="expected a base path that the table declares, found 1"):
        esker.LanceDataset.commit(uri, LanceOperation.Overwrite(ROWS.schema, fragments))
    esker.LanceDataset.commit(uri, LanceOperation.Overwrite(ROWS.schema, fragments, bases))
    assert homes(uri) == [1, 1]
    more = esker.fragment.write_fragments(ROWS, uri, target_bases=["b"])
    esker.LanceDataset.commit(uri, LanceOperation.Append(more), read_version=1)
    assert ids(esker.dataset(uri)) == list(range(10)) * 2


def test_a_branch_of_pylance_is_read_and_written(tmp_path: Path) -> None:
    source = lance.write_dataset(ROWS, str(tmp_path / "s"))
    branch = source.create_branch("b1")
    lance.write_dataset(ROWS, branch.uri, mode="append")
    ours = esker.dataset(branch.uri)
    assert ours.to_table()["id"].to_pylist() == list(range(10)) * 2
    ours.delete("id = 1")
    assert lance.dataset(branch.uri).count_rows() == 18
    assert source.checkout_version(("b1", None)).count_rows() == 18
    assert lance.dataset(str(tmp_path / "s")).count_rows() == 10


def test_a_base_path_that_is_not_declared_is_an_error(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ROWS, uri)
    dataset = esker.dataset(uri)
    fragment = dataset.get_fragments()[0].metadata
    file = fragment.files[0]
    file = esker.fragment.DataFile(
        file.path, file.fields, file.column_indices, file.file_major_version, file.file_minor_version, None, 9
    )
    fragment = esker.FragmentMetadata(0, [file], fragment.physical_rows)
    with pytest.raises(InvalidArgumentError, match="declares, found 9"):
        esker.LanceDataset.commit(uri, LanceOperation.Append([fragment]), read_version=1)


def test_options_of_a_base_path_are_its_own(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    where = str(tmp_path / "b")
    seen: dict[str, dict[str, str]] = {}

    def factory(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        seen[uri] = dict(options)
        return stores._native_store(uri.replace("probe://", "file://"), {}, durable)

    stores.register("probe", factory)
    options = {"a": "1", "base_1.a": "2", "base_2.a": "3"}
    bases = [DatasetBasePath(f"probe://{where}1", "one"), DatasetBasePath(f"probe://{where}2", "two")]
    params = {f"probe://{where}2": {"b": "4"}}
    esker.write_dataset(
        ROWS, uri, initial_bases=bases, target_bases=["one"], storage_options=options, base_store_params=params
    )
    expected = {f"probe://{where}1": {"a": "2"}, f"probe://{where}2": {"b": "4"}}
    assert seen == expected
    seen.clear()
    dataset = esker.dataset(uri, storage_options=options, base_store_params=params)
    assert dataset.count_rows() == 10
    assert pickle.loads(pickle.dumps(dataset)).to_table() == ROWS
    assert seen == expected


def test_random_turns_over_several_roots(tmp_path: Path) -> None:
    draw = random.Random(5)
    uri = str(tmp_path / "t")
    names = ["b", "c", "d"]
    bases = [DatasetBasePath(str(tmp_path / name), name, name == "c") for name in names]
    esker.write_dataset(ROWS.slice(0, 0), uri, initial_bases=bases)
    model: dict[int, str] = {}
    for step in range(30):
        module = draw.choice([esker, lance])
        kind = draw.choice(["append", "delete", "update"])
        if kind == "append":
            rows = {step * 100 + n: str(n) for n in range(draw.randint(1, 6))}
            table = pa.table({"id": list(rows), "name": list(rows.values())})
            targets = draw.choice([None, *([name] for name in names), names])
            module.write_dataset(table, uri, mode="append", target_bases=targets, max_rows_per_file=2)
            model |= rows
        elif kind == "delete":
            rest = draw.randint(0, 4)
            module.dataset(uri).delete(f"id % 5 = {rest}")
            model = {id_: name for id_, name in model.items() if id_ % 5 != rest}
        else:
            rest = draw.randint(0, 3)
            module.dataset(uri).update({"name": f"'u{step}'"}, where=f"id % 4 = {rest}")
            model = {id_: f"u{step}" if id_ % 4 == rest else name for id_, name in model.items()}
        for reader in (esker, lance):
            found = reader.dataset(uri).to_table()
            assert dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True)) == model
