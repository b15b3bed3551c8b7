"""Create, append, overwrite: what each does alone, and what becomes of two writers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.commit import CommitLock
from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedError,
)
from esker.fragment import write_fragments
from esker.lance.log import LanceLog
from esker.storage_version import DEFAULT_STORAGE_VERSION
from tests.samples import people, same


def interrupted_by(other: Callable[[], object]) -> CommitLock:
    """A commit lock that lets another writer commit first, once: right before our own put."""
    calls: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        calls.append(version)
        if len(calls) == 1:
            other()
        yield

    return lock


def test_append_puts_rows_behind_and_overwrite_replaces_them(uri: str) -> None:
    esker.write_dataset(people(5), uri)
    appended = esker.write_dataset(people(3, start=5), uri, mode="append")
    same(people(8), appended.to_table())
    other = pa.table({"b": [1, 2], "id": ["x", "y"]})
    replaced = esker.write_dataset(other, uri, mode="overwrite")
    assert (replaced.version, replaced.data_storage_version) == (3, DEFAULT_STORAGE_VERSION)
    same(other, replaced.to_table())
    same(other, lance.dataset(uri).to_table())
    assert [fragment.fragment_id for fragment in replaced.get_fragments()] == [2]
    assert replaced.lance_schema.field("b").id() == lance.dataset(uri).lance_schema.field("b").id()  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_append_and_overwrite_create_where_nothing_is(mode: str, uri: str) -> None:
    assert esker.write_dataset(people(5), uri, mode=mode).version == 1
    assert lance.dataset(uri).count_rows() == 5


def test_appending_nothing_makes_a_version_as_in_pylance(uri: str) -> None:
    esker.write_dataset(people(5), uri)
    assert esker.write_dataset(people(0), uri, mode="append").version == 2
    assert lance.dataset(uri).count_rows() == 5


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_rows_without_columns_are_refused_as_by_pylance(mode: str, uri: str) -> None:
    rows = pa.table({"id": [1, 2]})
    if mode != "create":
        esker.write_dataset(rows, uri)
    batches = rows.select([]).to_batches()
    for library, message in ((lance, "does not contain any fields"), (esker, "found 2 rows of an empty schema")):
        with pytest.raises(OSError, match=message):
            library.write_dataset(rows.select([]), uri, mode=mode)
        with pytest.raises(OSError, match=message):
            library.write_dataset(pa.RecordBatchReader.from_batches(pa.schema([]), batches), uri, mode=mode)
    if mode == "create":
        assert not list(Path(uri, "_versions").glob("*"))
    else:
        assert lance.dataset(uri).to_table() == rows
    # A table may begin without columns, and get some.
    esker.write_dataset(pa.table({}), uri, mode="overwrite")
    assert lance.dataset(uri).schema == pa.schema([])


def test_columns_are_matched_by_name(uri: str) -> None:
    esker.write_dataset(people(2), uri)
    shuffled = people(2, start=2).select(["tags", "place", "name", "id", "vector", "score"])
    same(people(4), esker.write_dataset(shuffled, uri, mode="append").to_table())
    swapped = pa.table({"place": [{"zip": 1, "city": "x"}], "id": [99]})
    row = esker.write_dataset(swapped, uri, mode="append").to_table().to_pylist()[-1]
    assert row == {
        "id": 99,
        "score": None,
        "name": None,
        "vector": None,
        "place": {"city": "x", "zip": 1},
        "tags": None,
    }
    assert lance.dataset(uri).to_table().to_pylist()[-1] == row
    # A column that the data lack is in no file: even a struct, which 2.0 could not hold as a null, reads as one.
    partial = esker.write_dataset(pa.table({"tags": [["x"]], "id": [100]}), uri, mode="append")
    assert partial.get_fragments()[-1].data_files()[0].fields == [0, 7, 8]
    same(lance.dataset(uri).to_table(), partial.to_table())
    assert partial.take([5]).to_pylist()[0]["place"] is None
    assert partial.count_rows("place is null") == 1


@pytest.mark.parametrize(
    ("columns", "column", "words"),
    [
        ({"id": pa.array([1], pa.int32())}, "id", "expected int64, found int32"),
        ({"id": [1], "unknown": [1]}, "unknown", "not in the table"),
        ({"name": pa.array(["x"], pa.large_string())}, "name", "expected string, found large_string"),
        ({"id": [1], "place": [{"city": 1}]}, "place.city", "expected string, found int64"),
        ({"tags": pa.array([[1]], pa.list_(pa.int8()))}, "tags.item", "expected string, found int8"),
        ({"vector": pa.array([[1.0]], pa.list_(pa.float32(), 1))}, "vector", r"expected fixed_size_list"),
    ],
)
def test_a_schema_that_does_not_match_names_column_and_types(
    columns: dict[str, object], column: str, words: str, uri: str
) -> None:
    esker.write_dataset(people(2), uri)
    with pytest.raises(SchemaMismatchError, match=words) as caught:
        esker.write_dataset(pa.table(columns), uri, mode="append")
    assert caught.value.column == column
    assert isinstance(caught.value, ValueError | OSError)
    assert esker.dataset(uri).version == 1


def test_nulls_for_a_column_without_nulls_are_refused(uri: str) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    esker.write_dataset(pa.table({"a": [1], "b": ["x"]}, schema=schema), uri)
    assert esker.write_dataset(pa.table({"a": [2], "b": ["y"]}), uri, mode="append").count_rows() == 2
    with pytest.raises(SchemaMismatchError, match="a"):
        esker.write_dataset(pa.table({"a": pa.array([None], pa.int64()), "b": ["y"]}), uri, mode="append")
    with pytest.raises(SchemaMismatchError, match="missing") as caught:
        esker.write_dataset(pa.table({"b": ["y"]}), uri, mode="append")
    assert caught.value.column == "a"
    assert lance.dataset(uri).count_rows() == 2


def test_appends_that_race_both_land(uri: str) -> None:
    esker.write_dataset(people(5), uri)

    def other() -> None:
        esker.write_dataset(people(3, start=5), uri, mode="append")

    ours = esker.write_dataset(people(2, start=8), uri, mode="append", commit_lock=interrupted_by(other))
    assert ours.version == 3
    same(people(10), ours.to_table())
    same(people(10), lance.dataset(uri).to_table())
    assert [fragment.fragment_id for fragment in ours.get_fragments()] == [0, 1, 2]


@pytest.mark.parametrize("peer", [esker, lance])
def test_an_append_that_races_an_overwrite_is_refused(peer: object, uri: str) -> None:
    esker.write_dataset(people(5), uri)

    def other() -> None:
        peer.write_dataset(people(1), uri, mode="overwrite", data_storage_version="2.0")  # type: ignore[attr-defined]

    with pytest.raises(CommitConflictError, match="Append.*Overwrite") as caught:
        esker.write_dataset(people(2), uri, mode="append", commit_lock=interrupted_by(other))
    error = caught.value
    assert (error.operation, error.version, error.other_operation, error.other_version) == ("Append", 1, "Overwrite", 2)
    assert error.retryable is False
    assert esker.dataset(uri).count_rows() == 1


def test_an_overwrite_that_races_an_append_wins(uri: str) -> None:
    esker.write_dataset(people(5), uri)

    def other() -> None:
        lance.write_dataset(people(3), uri, mode="append")

    ours = esker.write_dataset(people(2), uri, mode="overwrite", commit_lock=interrupted_by(other))
    assert (ours.version, ours.count_rows()) == (3, 2)
    assert lance.dataset(uri, version=2).count_rows() == 8


def test_overwrites_that_race_end_in_a_conflict_that_can_be_retried(uri: str) -> None:
    esker.write_dataset(people(5), uri)

    def other() -> None:
        esker.write_dataset(people(3), uri, mode="overwrite")

    with pytest.raises(CommitConflictError) as caught:
        esker.write_dataset(people(2), uri, mode="overwrite", commit_lock=interrupted_by(other))
    assert caught.value.retryable is True
    assert esker.dataset(uri).count_rows() == 3


def test_of_two_creations_one_is_told_that_the_table_exists(uri: str) -> None:
    def other() -> None:
        esker.write_dataset(people(3), uri)

    with pytest.raises(AlreadyExistsError, match="exists already") as caught:
        esker.write_dataset(people(2), uri, commit_lock=interrupted_by(other))
    assert isinstance(caught.value, OSError)
    assert esker.dataset(uri).count_rows() == 3


def test_an_append_that_loses_the_creation_becomes_an_append(uri: str) -> None:
    def other() -> None:
        esker.write_dataset(people(3), uri)

    ours = esker.write_dataset(people(2, start=3), uri, mode="append", commit_lock=interrupted_by(other))
    assert ours.version == 2
    same(people(5), lance.dataset(uri).to_table())


def test_an_append_that_loses_the_creation_to_another_schema_is_refused(uri: str) -> None:
    def other() -> None:
        esker.write_dataset(pa.table({"x": [1]}), uri)

    with pytest.raises(SchemaMismatchError, match="meanwhile"):
        esker.write_dataset(people(2), uri, mode="append", commit_lock=interrupted_by(other))


def test_an_append_that_loses_the_creation_to_blobs_is_refused(tmp_path: Path) -> None:
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    plain, blobs = pa.table({"b": pa.array([b"x"], pa.large_binary())}), pa.table([[b"x"]], schema=pa.schema([marked]))
    for number, (ours, theirs) in enumerate(((plain, blobs), (blobs, plain))):
        uri = str(tmp_path / f"{number}.lance")
        # Arrow's types are equal, what the files hold is not.
        lock = interrupted_by(lambda theirs=theirs, uri=uri: esker.write_dataset(theirs, uri))  # type: ignore[misc]
        with pytest.raises(SchemaMismatchError, match="meanwhile"):
            esker.write_dataset(ours, uri, mode="append", commit_lock=lock)
        assert esker.dataset(uri).to_table(blob_handling="all_binary").to_pydict() == {"b": [b"x"]}


def test_an_append_that_loses_the_creation_to_a_clone_goes_on_top_of_it(tmp_path: Path) -> None:
    source = esker.write_dataset(people(2), tmp_path / "source.lance")
    source.insert(people(1, start=2))
    uri = str(tmp_path / "clone.lance")
    # A clone of version 2 begins with version 2.
    lock = interrupted_by(lambda: source.shallow_clone(uri, 2))
    ours = esker.write_dataset(people(2, start=3), uri, mode="append", commit_lock=lock)
    assert ours.version == 3
    same(people(5), lance.dataset(uri).to_table())


def test_threads_that_append_lose_no_row(uri: str) -> None:
    esker.write_dataset(people(1), uri)
    threads = [
        threading.Thread(target=lambda n=n: esker.write_dataset(people(10, start=n * 10), uri, mode="append"))
        for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist()
    assert sorted(ids) == [0, *range(10, 90)]


def test_retries_are_bounded(uri: str) -> None:
    esker.write_dataset(people(1), uri)

    @contextmanager
    def always_late(version: int) -> Iterator[None]:
        esker.write_dataset(people(1), uri, mode="append")
        yield

    with pytest.raises(CommitConflictError, match="lost the race 3 times") as caught:
        esker.write_dataset(people(1), uri, mode="append", commit_lock=always_late, max_retries=2)
    assert caught.value.retryable is True
    assert esker.dataset(uri).count_rows() == 4


def test_a_table_keeps_its_file_version_unless_it_is_overwritten_in_another(uri: str) -> None:
    lance.write_dataset(people(1), uri, data_storage_version="legacy")
    for mode in ("append", "overwrite"):
        assert esker.write_dataset(people(5, start=1), uri, mode=mode).data_storage_version == "0.1"
    with pytest.raises(UnsupportedError, match=r"0\.1"):
        esker.write_dataset(people(1), uri, mode="append", data_storage_version="2.0")
    assert esker.write_dataset(people(4), uri, mode="overwrite", data_storage_version="2.0").count_rows() == 4
    assert lance.dataset(uri).data_storage_version == "2.0"


def test_indices_and_tags_of_pylance_survive_an_append(uri: str) -> None:
    lance.write_dataset(people(100), uri, data_storage_version="2.0")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).tags.create("first", 1)
    esker.write_dataset(people(10, start=100), uri, mode="append")
    peer = lance.dataset(uri)
    assert [index.name for index in peer.describe_indices()] == ["id_idx"]
    assert peer.to_table(filter="id = 105").num_rows == peer.to_table(filter="id = 5").num_rows == 1
    assert list(peer.tags.list()) == ["first"]
    esker.write_dataset(people(10), uri, mode="overwrite")
    assert lance.dataset(uri).to_table(filter="id = 5").num_rows == 1


def test_tables_that_pylance_evolved_are_read_and_appended_to(uri: str) -> None:
    lance.write_dataset(people(10), uri, data_storage_version="2.0")
    lance.dataset(uri).add_columns({"double": "id * 2"})
    lance.dataset(uri).drop_columns(["score", "place"])
    lance.dataset(uri).alter_columns({"path": "double", "name": "two"})
    same(lance.dataset(uri).to_table(), esker.dataset(uri).to_table())
    dataset = esker.write_dataset(pa.table({"two": [7], "id": [100]}), uri, mode="append")
    same(lance.dataset(uri).to_table(), dataset.to_table())
    assert dataset.max_field_id == lance.dataset(uri).max_field_id
    lance.dataset(uri).optimize.compact_files()
    dataset = esker.dataset(uri)
    assert len(dataset.get_fragments()) == 1
    same(lance.dataset(uri).to_table(), dataset.to_table())


def test_config_survives_append_and_overwrite(uri: str) -> None:
    esker.write_dataset(people(1), uri)
    lance.dataset(uri).update_config({"team": "ice"})
    esker.write_dataset(people(1, start=1), uri, mode="append")
    assert esker.write_dataset(people(1), uri, mode="overwrite").config() == {"team": "ice"}
    assert lance.dataset(uri).config()["team"] == "ice"


def test_fragments_written_apart_are_committed_at_once(uri: str) -> None:
    table = people(6)
    fragments = [f for start in (0, 3) for f in write_fragments(table.slice(start, 3), uri, mode="create")]
    assert not Path(uri, "_versions").exists()
    created = esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(table.schema, fragments))
    same(table, created.to_table())
    more = write_fragments(people(2, start=6), created)
    operation = esker.LanceOperation.Append(more)
    with pytest.raises(InvalidArgumentError, match="read_version"):
        esker.LanceDataset.commit(uri, operation)
    appended = esker.LanceDataset.commit(uri, operation, read_version=1, commit_message="more")
    same(people(8), lance.dataset(uri).to_table())
    transaction = appended.read_transaction(2)
    assert transaction is not None
    assert transaction.transaction_properties == {"__lance_commit_message": "more"}


@pytest.mark.parametrize("library", [lance, esker])
def test_an_overwrite_by_what_is_no_schema_is_refused(library: Any, uri: str) -> None:
    esker.write_dataset(people(3), uri)
    for schema in (people(1), "id", None):
        with pytest.raises(TypeError, match=r"pyarrow\..*Schema"):
            library.LanceDataset.commit(uri, library.LanceOperation.Overwrite(schema, []))
    assert lance.dataset(uri).version == 1


def test_a_transaction_committed_twice_lands_once(uri: str) -> None:
    esker.write_dataset(people(3), uri)
    transaction = write_fragments(people(2, start=3), uri, return_transaction=True)
    assert esker.LanceDataset.commit(uri, transaction).version == 2
    again = esker.LanceDataset.commit(uri, transaction)
    assert (again.version, again.count_rows()) == (2, 5)
    assert esker.dataset(uri).latest_version == 2


def test_fragment_metadata_crosses_as_json(uri: str) -> None:
    import json

    dataset = esker.write_dataset(people(3), uri)
    metadata = dataset.get_fragments()[0].metadata
    assert esker.FragmentMetadata.from_json(json.dumps(metadata.to_json())) == metadata
    peer = lance.FragmentMetadata.from_json(json.dumps(metadata.to_json()))
    assert (peer.id, peer.physical_rows, peer.files[0].path) == (0, 3, metadata.files[0].path)
    back = esker.FragmentMetadata.from_json(json.dumps(peer.to_json()))
    assert (back.files, back.physical_rows) == (metadata.files, metadata.physical_rows)


def test_insert_moves_the_dataset_on(uri: str) -> None:
    dataset = esker.write_dataset(people(3), uri)
    dataset.insert(people(2, start=3))
    assert (dataset.version, dataset.count_rows()) == (2, 5)


def test_a_lock_that_is_not_released_leaves_the_commit_as_it_is(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(people(2), uri)

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        raise ConnectionError("the lease is gone")

    with pytest.raises(CommitStateUnknownError, match=r"version 2 .* lock could not be released \(the lease is gone"):
        esker.write_dataset(people(1, start=2), uri, mode="append", commit_lock=lock)
    assert esker.dataset(uri).version == 2
    assert esker.dataset(uri).count_rows() == 3


def test_a_lock_that_swallows_errors_hides_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(people(2), uri)

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        with suppress(Exception):
            yield

    def fail(*args: object, **options: object) -> bool:
        raise PermissionError("no")

    monkeypatch.setattr(LanceLog, "put", fail)
    with pytest.raises(Exception, match="no"):
        esker.write_dataset(people(1, start=2), uri, mode="append", commit_lock=lock, max_retries=0)


def test_a_lock_that_raises_without_a_word_is_told_by_the_name_of_its_error(uri: str) -> None:
    def taken(_version: int) -> Any:
        raise CommitConflictError

    for library in (lance, esker):
        with pytest.raises(Exception, match="CommitConflictError"):
            library.write_dataset(people(2), f"{uri}-{library.__name__}", commit_lock=taken)
