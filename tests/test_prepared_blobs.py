"""Blobs that are written before their data file, beside pylance."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.file import LanceFileSession as PeerSession

import esker
from esker.exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.file import LanceFileReader, LanceFileSession, blob_writers
from esker.fragment import DataFile
from esker.repo import Repository

IDS = pa.field("id", pa.int32())


def table_of(path: Path, payloads: list[bytes | None]) -> esker.LanceDataset:
    """A table of blobs by esker."""
    rows = pa.table({"id": pa.array(range(len(payloads)), pa.int32()), "blob": esker.blob_array(payloads)})
    return esker.write_dataset(rows, path, data_storage_version="2.2")


def replace(module: Any, path: Path, name: str, version: int) -> Any:
    """Puts a data file in the place of the only one."""
    dataset = module.dataset(str(path))
    group = module.LanceOperation.DataReplacementGroup(0, module.fragment.DataFile.create(dataset, name))
    operation = module.LanceOperation.DataReplacement([group])
    return module.LanceDataset.commit(dataset, operation, read_version=version)


def values(dataset: Any, count: int) -> list[bytes | None]:
    """The blobs of the first rows."""
    return [data for _, data in dataset.read_blobs("blob", indices=list(range(count)))]


@pytest.mark.parametrize("reader", [esker, lance])
@pytest.mark.parametrize("writer", [(esker, LanceFileSession), (lance, PeerSession)])
def test_a_file_with_all_kinds_of_prepared_blobs_is_read_by_both(writer: Any, reader: Any, tmp_path: Path) -> None:
    module, session_of = writer
    table_of(tmp_path, [b"old"] * 6)
    name = f"{uuid.uuid4()}.lance"
    session = session_of(str(tmp_path / "data"))
    packed = session.open_packed_blob_writer(name, 1)
    packed.write_blob(b"first")
    packed.write_blobs(pa.array([None, b"", b"third"], pa.large_binary()))
    dedicated = session.open_dedicated_blob_writer(name, 2)
    dedicated.write(b"in ")
    dedicated.write(b"pieces")
    builder = module.BlobDescriptorArrayBuilder("blob")
    builder.extend(packed.finish())
    builder.append(dedicated.finish())
    builder.append_inline(b"within")
    schema = pa.schema([IDS, builder.field])
    batch = pa.record_batch([pa.array(range(6), pa.int32()), builder.finish()], schema=schema)
    with session.open_writer(name, schema=schema, version="2.2") as file:
        file.write_batch(batch)
    dataset = replace(reader, tmp_path, name, 1)
    assert values(dataset, 6) == [b"first", None, b"", b"third", b"in pieces", b"within"]
    kinds = [row and row["kind"] for row in dataset.to_table(columns=["blob"])["blob"].to_pylist()]
    assert kinds == [1, None, 1, 1, 2, 0]
    # What comes after reads them like any other: a compaction carries them, a clean-up leaves them.
    esker.dataset(tmp_path).delete("id = 0")
    dataset = esker.dataset(tmp_path)
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    dataset = esker.dataset(tmp_path)
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert values(reader.dataset(str(tmp_path)), 5) == [None, b"", b"third", b"in pieces", b"within"]


def test_a_file_with_other_columns_than_blobs_in_their_place_is_refused(tmp_path: Path) -> None:
    dataset = table_of(tmp_path, [b"old"])
    schema = pa.schema([IDS, pa.field("blob", pa.struct([("kind", pa.uint8())]))])
    with LanceFileSession(tmp_path / "data").open_writer("a.lance", schema=schema, version="2.2") as file:
        file.write_batch(pa.table({"id": pa.array([1], pa.int32()), "blob": [{"kind": 1}]}).cast(schema))
    with pytest.raises(SchemaMismatchError, match="expected columns of the table"):
        DataFile.create(dataset, "a.lance")


@pytest.mark.parametrize("around", ["struct", "list"])
def test_prepared_blobs_lie_in_structs_and_lists(tmp_path: Path, around: str) -> None:
    """pylance's own writer makes nothing readable of them in its 14.0.2; its reader reads ours."""
    logical = esker.blob_array([b"old", None])
    rows: pa.Array
    session, name = LanceFileSession(tmp_path / "data"), "a.lance"
    with session.open_packed_blob_writer(name, 1) as packed:
        packed.write_blobs(pa.array([b"new", b"x" * 100]))
        blobs = packed.finish_array("item" if around == "list" else "b")
    if around == "list":
        rows = pa.ListArray.from_arrays([0, 2], logical, type=pa.list_(pa.field("item", logical.type)))
        prepared = pa.ListArray.from_arrays([0, 2], blobs, type=pa.list_(packed.field))
    else:
        rows = pa.StructArray.from_arrays([logical.slice(0, 1)], fields=[pa.field("b", logical.type)])
        prepared = pa.StructArray.from_arrays([blobs.slice(0, 1)], fields=[packed.field])
    dataset = esker.write_dataset(pa.table([rows], names=["column"]), tmp_path, data_storage_version="2.2")
    schema = pa.schema([pa.field("column", prepared.type)])
    with session.open_writer(name, schema=schema, version="2.2") as file:
        file.write_batch(pa.record_batch([prepared], schema=schema))
    replace(esker, tmp_path, name, dataset.version)
    expected: list[Any] = [[b"new", b"x" * 100]] if around == "list" else [{"b": b"new"}]
    for reader in (esker, lance):
        found = reader.dataset(str(tmp_path)).to_table(blob_handling="all_binary")["column"]
        assert found.to_pylist() == expected


def test_a_file_is_the_one_that_pylance_writes(tmp_path: Path) -> None:
    rows = [{"kind": 1, "blob_id": 7, "blob_size": 5, "position": 3}, None, {"kind": 0, "data": b"x" * 100_000}]
    rows += [{"kind": 2, "blob_id": 8, "blob_size": 9}]
    described = []
    for module, session_of in ((esker, LanceFileSession), (lance, PeerSession)):
        field = module.BlobDescriptorArrayBuilder("blob").field
        schema = pa.schema([field])
        folder = tmp_path / module.__name__
        with session_of(str(folder)).open_writer("a.lance", schema=schema, version="2.2") as file:
            file.write_batch(pa.record_batch([pa.array(rows, field.type)], schema=schema))
        described.append(LanceFileReader(folder / "a.lance").read_all().to_table()["blob"].to_pylist())
        assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["a.lance"]
    # The offset of what lies within the file is each writer's own.
    for blobs in described:
        blobs[2].pop("position")
    assert described[0] == described[1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kind": None}, "kind"),
        ({"kind": 0}, "data"),
        ({"kind": 1, "blob_id": 1}, "blob_size"),
        ({"kind": 1, "blob_id": 0, "blob_size": 1, "position": 0}, "blob_id above 0"),
        ({"kind": 1, "blob_id": 1, "blob_size": 2**64 - 1, "position": 9}, "ends before"),
        ({"kind": 2, "blob_id": 1}, "blob_size"),
        ({"kind": 3}, "uri"),
        ({"kind": 3, "uri": ""}, "uri"),
        ({"kind": 9}, "found 9"),
    ],
)
def test_prepared_blobs_that_cannot_be_are_refused_and_leave_no_file(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    field = esker.BlobDescriptorArrayBuilder("blob").field
    schema = pa.schema([field])
    session = LanceFileSession(tmp_path)
    with (
        pytest.raises(InvalidArgumentError, match=message),
        session.open_writer("a.lance", schema=schema, version="2.2") as file,
    ):
        file.write_batch(pa.record_batch([pa.array([row], field.type)], schema=schema))
    assert session.list() == []


def test_other_versions_have_no_prepared_blobs(tmp_path: Path) -> None:
    schema = pa.schema([esker.BlobDescriptorArrayBuilder("blob").field])
    for version in ("0.1", "2.0", "2.1"):
        with pytest.raises(UnsupportedError, match=r"2\.2"):
            LanceFileSession(tmp_path).open_writer("a.lance", schema=schema, version=version)


def test_large_values_of_other_columns_do_not_overwrite_prepared_files(tmp_path: Path) -> None:
    session = LanceFileSession(tmp_path)
    with session.open_packed_blob_writer("a.lance", 1) as packed:
        packed.write_blob(b"mine")
        mine = packed.finish_array("mine")
    schema = pa.schema([packed.field, esker.blob_field("other", inline_size_threshold=10)])
    with (
        pytest.raises(InvalidArgumentError, match="blob-inline-size-threshold"),
        session.open_writer("a.lance", schema=schema, version="2.2") as file,
    ):
        file.write_batch(pa.record_batch([mine, esker.blob_array([b"x" * 11])], schema=schema))
    [left] = session.list()
    assert (tmp_path / left).read_bytes() == b"mine"
    with session.open_writer("a.lance", schema=schema, version="2.2") as file:
        file.write_batch(pa.record_batch([mine, esker.blob_array([b"small"])], schema=schema))
    assert (tmp_path / left).read_bytes() == b"mine"


def test_a_table_takes_prepared_blobs_that_bring_their_bytes(tmp_path: Path) -> None:
    builder = esker.BlobDescriptorArrayBuilder("blob")
    builder.append_inline(b"one")
    builder.append_null()
    builder.append_inline(b"x" * 100_000)
    column = builder.finish()
    batch = pa.record_batch([column], schema=pa.schema([builder.field]))
    dataset = esker.write_dataset(batch, tmp_path / "new", data_storage_version="2.2")
    assert values(dataset, 3) == [b"one", None, b"x" * 100_000]
    dataset.insert(batch)
    assert values(lance.dataset(str(tmp_path / "new")), 6) == [b"one", None, b"x" * 100_000] * 2
    item = builder.field.with_name("item")
    lists = pa.ListArray.from_arrays([0, 2, 3], column, type=pa.list_(item))
    dataset = esker.write_dataset(pa.table([lists], names=["blobs"]), tmp_path / "lists", data_storage_version="2.2")
    shown = dataset.to_table(blob_handling="all_binary")["blobs"].to_pylist()
    assert shown == [[b"one", None], [b"x" * 100_000]]


def test_a_table_takes_no_blobs_beside_a_file_that_it_has_not_named(tmp_path: Path) -> None:
    builder = esker.BlobDescriptorArrayBuilder("blob")
    builder.append_dedicated(1, 5)
    batch = pa.record_batch([builder.finish()], schema=pa.schema([builder.field]))
    with pytest.raises(InvalidArgumentError, match="open_writer"):
        esker.write_dataset(batch, tmp_path / "table", data_storage_version="2.2")
    assert not list(tmp_path.rglob("*.lance"))


def test_a_builder_says_what_is_wrong_and_appends_nothing_then() -> None:
    builder = esker.BlobDescriptorArrayBuilder("blob")
    with pytest.raises(ValueError, match="Blob id 0 is reserved"):
        builder.append_dedicated(0, 5)
    with pytest.raises(ValueError, match="same length, got 1 and 2"):
        builder.extend_packed(1, [0], [1, 2])
    with pytest.raises(ValueError, match="overflows u64"):
        builder.extend_packed(1, [0, 2**64 - 1], [1, 5])
    with pytest.raises(TypeError, match="BlobDescriptor"):
        builder.append(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="encode text"):
        builder.append_inline("text")  # type: ignore[arg-type]
    for wrong in (-1, 2**32):
        with pytest.raises(ValueError, match="blob_id from 1"):
            builder.append_dedicated(wrong, 5)
    assert len(builder.finish()) == 0
    with pytest.raises(ValueError, match="already finished"):
        builder.append_null()


@pytest.mark.parametrize("verb", ["open_packed_blob_writer", "open_dedicated_blob_writer"])
def test_a_writer_that_is_not_finished_leaves_no_file(verb: str, tmp_path: Path) -> None:
    session = LanceFileSession(tmp_path)
    for path in ("a.txt", ".lance", "folder/.lance"):
        with pytest.raises(InvalidArgumentError, match=r"\.lance"):
            getattr(session, verb)(path, 1)
    with getattr(session, verb)("a.lance", 1) as writer:
        (writer.write_blob if verb == "open_packed_blob_writer" else writer.write)(b"some")
    with pytest.raises(InvalidArgumentError, match="already finished"):
        _ = writer.path
    lost = getattr(session, verb)("a.lance", 1)
    assert lost.path.endswith("/a/10000000000000000000000000000000.blob")
    del lost
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.lists(st.one_of(st.none(), st.binary(max_size=9)), max_size=12),
        ),
        max_size=8,
    ),
    st.integers(0, 3),
    st.booleans(),
)
def test_packed_blobs_lie_where_pylance_puts_them(calls: list[Any], cut: int, large: bool) -> None:
    type_ = pa.large_binary() if large else pa.binary()
    arrays, files = [], []
    name = uuid.uuid4().hex
    folder = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / name
    try:
        for module, session_of in ((esker, LanceFileSession), (lance, PeerSession)):
            root = folder / module.__name__
            packed = session_of(str(root)).open_packed_blob_writer("a.lance", 5)
            for call in calls:
                if isinstance(call, bytes):
                    packed.write_blob(call)
                else:
                    packed.write_blobs(pa.array(call, type_).slice(min(cut, len(call))))
            arrays.append(packed.finish_array("blob"))
            files.append([path.read_bytes() for path in root.rglob("*.blob")])
    finally:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
    assert arrays[0].equals(arrays[1])
    assert files[0] == files[1]


def test_a_clean_up_removes_blob_files_that_no_data_file_names_and_no_others(tmp_path: Path) -> None:
    dataset = table_of(tmp_path, [b"old" * 50_000])
    session = LanceFileSession(tmp_path / "data")
    for name in ("dead.lance", "used.lance"):
        with session.open_packed_blob_writer(name, 1) as packed:
            packed.write_blob(b"new")
            blobs = packed.finish_array("blob")
    schema = pa.schema([IDS, packed.field])
    with session.open_writer("used.lance", schema=schema, version="2.2") as file:
        file.write_batch(pa.record_batch([pa.array([0], pa.int32()), blobs], schema=schema))
    # Both may be of somebody who is at work, until they are old.
    dataset.cleanup_old_versions(older_than=timedelta(0))
    assert len(list(tmp_path.rglob("*.blob"))) == 3
    dataset = replace(esker, tmp_path, "used.lance", dataset.version)
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert [path.parent.name for path in tmp_path.rglob("*.blob")] == ["used"]
    assert values(lance.dataset(str(tmp_path)), 1) == [b"new"]


def test_prepared_blobs_go_into_a_table_of_a_branch(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "lake")
    uri = repo.branch("main").store_uri("photos")
    dataset = esker.write_dataset(pa.table({"blob": esker.blob_array([b"old"])}), uri, data_storage_version="2.2")
    with repo.branch("main").transact("blobs of a loader") as tx:
        inside = tx.store_uri("photos")
        session = LanceFileSession(f"{inside}/data")
        with session.open_dedicated_blob_writer("a.lance", 1) as writer:
            writer.write(b"new" * 10)
            builder = esker.BlobDescriptorArrayBuilder("blob")
            builder.append(writer.finish())
        schema = pa.schema([builder.field])
        with session.open_writer("a.lance", schema=schema, version="2.2") as file:
            file.write_batch(pa.record_batch([builder.finish()], schema=schema))
        dataset = esker.dataset(inside)
        group = esker.LanceOperation.DataReplacementGroup(0, DataFile.create(dataset, "a.lance"))
        operation = esker.LanceOperation.DataReplacement([group])
        esker.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    repo.gc(dry_run=False, grace_s=-3600)
    assert values(esker.dataset(uri), 1) == [b"new" * 10]
    assert list(repo.fsck(tables=True)) == []


def test_a_write_of_blobs_that_was_broken_off_ends_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = LanceFileSession(tmp_path).open_packed_blob_writer("a.lance", 1)
    packed.write_blob(b"first")

    def broken_off(*_: Any) -> Any:
        raise KeyboardInterrupt

    # The bytes are written, and not yet told.
    monkeypatch.setattr(blob_writers, "BlobDescriptor", broken_off)
    with pytest.raises(KeyboardInterrupt):
        packed.write_blobs(pa.array([b"second"]))
    with pytest.raises(InvalidArgumentError, match="already finished"):
        packed.finish()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
