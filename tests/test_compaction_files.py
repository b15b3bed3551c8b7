"""What a rewrite of fragments writes: every type in every version, pages that are copied, row ids, blobs, faults."""

from __future__ import annotations

import contextlib
import random
import signal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.blob import blob_array, blob_field
from esker.exceptions import CorruptFileError, EskerError, InvalidArgumentError, UnsupportedError
from tests.matrix import LEAVES, NULLS, SHAPES, shaped
from tests.random_columns import RandomColumns
from tests.rewriting import data_files, read_everywhere, rewritten, same, staged
from tests.test_version_matrix import gap

VERSIONS = ["2.0", "2.1", "2.2"]
ALL_VERSIONS = ["0.1", *VERSIONS]
SMALL_PAGES: dict[str, Any] = {"page_bytes": 1024}
"""So small that pages of a few rows are large."""
ROWS = 400


def write(uri: str, table: pa.Table, version: str, *, rows: int, stable: bool = False) -> None:
    """Fragments of `rows` rows each."""
    options: dict[str, Any] = {"enable_stable_row_ids": True} if stable else {}
    esker.write_dataset(
        table, uri, data_storage_version=version, max_rows_per_file=rows, max_rows_per_group=64, **options
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_every_type_in_every_shape_is_rewritten(version: str, leaf: str, tmp_path: Path) -> None:
    failures = []
    # Beside structs without fields, pylance loses the neighbouring column (see the gaps of test_version_matrix).
    readers = ["esker"] if leaf == "empty_struct" else ["esker", "pylance"]
    for shape in SHAPES:
        columns, nulls_of = {}, [nulls for nulls in NULLS if not gap(version, leaf, shape, nulls)]
        for nulls in nulls_of:
            columns[nulls] = shaped(leaf, shape, nulls, rows=ROWS, null_structs=version != "2.0")
        if not columns:
            continue
        table = pa.table({**columns, "id": pa.array(range(ROWS), pa.int64())})
        uri = str(tmp_path / shape)
        try:
            write(uri, table, version, rows=150)
        except UnsupportedError:
            continue
        esker.dataset(uri).delete("id % 11 = 3 and id > 150")
        kept = [i for i in range(ROWS) if not (i % 11 == 3 and i > 150)]
        expected = table.take(kept)
        outcome = rewritten(uri, **SMALL_PAGES)
        assert outcome.num_rows == len(kept)
        found = read_everywhere(uri, expected, random.Random(shape), readers)
        if found:
            failures.append(f"{shape}: {found}")
        # Once more, with all pages full and all rows alive.
        rewritten(uri, max_rows_per_file=300, **SMALL_PAGES)
        found = read_everywhere(uri, expected, random.Random(shape), readers)
        if found:
            failures.append(f"{shape}, again: {found}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("leaf", ["int64", "utf8_few", "float32", "bool", "timestamp_zone", "vector_wide"])
def test_tables_of_version_0_1_stay_so(leaf: str, uri: str) -> None:
    table = pa.table({"c": shaped(leaf, "flat", "none", rows=ROWS), "id": pa.array(range(ROWS), pa.int64())})
    write(uri, table, "0.1", rows=150)
    esker.dataset(uri).delete("id % 7 = 3")
    rewritten(uri, max_rows_per_group=100)
    expected = table.take([i for i in range(ROWS) if i % 7 != 3])
    assert read_everywhere(uri, expected, random.Random(leaf)) is None
    assert lance.dataset(uri).data_storage_version == "0.1"


def random_table(source: RandomColumns, rng: random.Random, version: str, rows: int) -> pa.Table:
    """Some random columns of types that the version can hold, and a column of numbers."""
    fields, arrays = [pa.field("id", pa.int64())], [pa.array(range(rows), pa.int64())]
    wanted = rng.randint(2, 6)
    while len(fields) < wanted:
        type_ = source.type(version, rng.randint(0, 3))
        field = pa.field(f"c{len(fields)}", type_, metadata=source.metadata(type_))
        array = source.values(type_, rows, rng.choice([0.0, 0.2]), rng.choice(["any", "runs", "few", "one"]))
        column = pa.table([array], schema=pa.schema([field]))
        with contextlib.suppress(UnsupportedError):
            esker.write_dataset(column, "memory://random-columns", mode="overwrite", data_storage_version=version)
            fields.append(field)
            arrays.append(array)
    return pa.table(arrays, schema=pa.schema(fields))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_random_schemas_pages_splits_and_deletions(version: str, seed: int, tmp_path: Path) -> None:
    source = RandomColumns(seed)
    rng = random.Random(seed)
    rows = rng.choice([1, 50, 700, 3000])
    uri = str(tmp_path / "t")
    table = random_table(source, rng, version, rows)
    write(uri, table, version, rows=rng.choice([40, 333, 5000]))
    gone = sorted(rng.sample(range(rows), rng.choice([0, 0, min(1, rows - 1), rows // 3])))
    if gone:
        esker.dataset(uri).delete(f"id in ({', '.join(map(str, gone))})")
    kept = table.take(sorted(set(range(rows)) - set(gone)))
    for _ in range(2):
        options: dict[str, Any] = {"page_bytes": rng.choice([64, 1024, 1 << 20])}
        rewritten(uri, max_rows_per_file=rng.choice([100, 1000, 1 << 20]), **options)
        assert read_everywhere(uri, kept, rng) is None


def numbers(rows: int) -> pa.Table:
    ids = np.arange(rows)
    return pa.table({"id": ids, "x": ids * 3.5, "s": [f"text {i * 7919 % rows}" for i in range(rows)]})


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_large_pages_are_copied_and_others_encoded(version: str, uri: str) -> None:
    table = numbers(600_000)
    write(uri, table, version, rows=200_000)
    whole = staged(uri)
    assert (whole.pages_copied, whole.pages_encoded) == (9, 0)
    assert whole.bytes_copied > 0.9 * whole.bytes_written
    none = staged(uri, copy_pages=False)
    assert none.pages_copied == 0
    assert none.pages_encoded > 0
    esker.dataset(uri).delete("id = 250000")
    outcome = rewritten(uri)
    # The fragment with a deleted row is encoded anew, those beside it are copied.
    assert (outcome.pages_copied, outcome.pages_encoded) == (6, 3)
    expected = table.take([i for i in range(600_000) if i != 250_000])
    assert read_everywhere(uri, expected, random.Random(0)) is None
    found = lance.dataset(uri).to_table(filter="id >= 249999 and id < 250003")
    assert same(found, expected.slice(249_999, 3)) is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_end_by_rows(version: str, uri: str) -> None:
    table = numbers(1000)
    write(uri, table, version, rows=300)
    outcome = rewritten(uri, max_rows_per_file=400)
    assert [fragment.physical_rows for fragment in outcome.fragments] == [400, 400, 200]
    assert read_everywhere(uri, table, random.Random(0)) is None
    sizes = [(Path(uri) / path).stat().st_size for path in outcome.files]
    assert sizes == [file.file_size_bytes for fragment in outcome.fragments for file in fragment.files]
    assert sum(sizes) == outcome.bytes_written


def test_files_end_by_bytes(uri: str) -> None:
    write(uri, pa.table({"x": np.random.default_rng(0).random(100_000)}), "2.2", rows=10_000)
    outcome = staged(uri, max_bytes_per_file=200_000)
    sizes = [(Path(uri) / path).stat().st_size for path in outcome.files]
    assert 4 <= len(sizes) <= 6
    assert all(size < 260_000 for size in sizes)


@pytest.mark.parametrize("old", ALL_VERSIONS)
@pytest.mark.parametrize("new", VERSIONS)
def test_files_take_another_version(old: str, new: str, uri: str) -> None:
    table = numbers(2000)
    write(uri, table, old, rows=700)
    outcome = staged(uri, data_storage_version=new, **SMALL_PAGES)
    files = [file for fragment in outcome.fragments for file in fragment.files]
    assert {f"{file.file_major_version}.{file.file_minor_version}" for file in files} == {new}
    if old == new:
        rewritten(uri, **SMALL_PAGES)
        assert read_everywhere(uri, table, random.Random(0)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_row_ids_and_versions_are_carried(version: str, uri: str) -> None:
    write(uri, numbers(1000), version, rows=300, stable=True)
    esker.dataset(uri).update({"x": "x + 1"}, where="id % 5 = 0")
    esker.dataset(uri).delete("id % 7 = 1")
    columns = ["id", "x", "s", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = esker.dataset(uri).to_table(columns=columns)
    rewritten(uri, max_rows_per_file=350, **SMALL_PAGES)
    readers: list[Any] = [esker.dataset(uri), lance.dataset(uri)]
    for dataset in readers:
        assert same(dataset.to_table(columns=columns), before) is None
    ids = before["_rowid"].to_pylist()
    assert esker.dataset(uri)._take_rows(ids[5:9])["id"].to_pylist() == before["id"].to_pylist()[5:9]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_added_dropped_and_renamed_columns(version: str, uri: str) -> None:
    table = pa.table(
        {
            "a": range(1000),
            "n": [{"x": i, "y": f"y{i}"} for i in range(1000)],
            "gone": ["gone"] * 1000,
        }
    )
    write(uri, table, version, rows=400)
    dataset = esker.dataset(uri)
    dataset.add_columns({"b": "a * 2"})
    dataset.drop_columns(["gone"])
    dataset.alter_columns({"path": "a", "name": "c"})
    if version != "2.0":
        # Structs of which some fields lie in another file.
        lance.dataset(uri).add_columns(pa.field("later", pa.int32()))
    more: dict[str, Any] = {} if version == "2.0" else {"later": pa.array([1], pa.int32())}
    esker.write_dataset(
        pa.table({"c": [1000], "n": [{"x": 1, "y": "z"}], "b": [5], **more}).cast(esker.dataset(uri).schema),
        uri,
        mode="append",
    )
    expected = lance.dataset(uri).to_table()
    rewritten(uri, **SMALL_PAGES)
    assert read_everywhere(uri, expected, random.Random(0)) is None
    fragment = esker.dataset(uri).get_fragments()[0].metadata
    assert len(fragment.files) == 1
    assert -2 not in fragment.files[0].fields


def test_structs_whose_fields_lie_in_several_files(uri: str) -> None:
    rows = 500
    write(uri, pa.table({"id": range(rows), "n": [{"x": i} for i in range(rows)]}), "2.2", rows=200)
    with contextlib.suppress(Exception):
        lance.dataset(uri).add_columns(pa.schema([pa.field("n", pa.struct([pa.field("y", pa.string())]))]))
    dataset = esker.dataset(uri)
    dataset.merge_insert("id").when_matched_update_all().execute(
        pa.table({"id": [3, 300], "n": [{"x": -1}, {"x": -2}]})
        if len(dataset.schema.field("n").type) == 1
        else pa.table({"id": [3, 300], "n": [{"x": -1, "y": "a"}, {"x": -2, "y": None}]})
    )
    expected = lance.dataset(uri).to_table()
    rewritten(uri, **SMALL_PAGES)
    assert read_everywhere(uri, expected, random.Random(0)) is None


SIZES = [3, 0, 70_000, 5_000_000, 9_000_000, 65_536]


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_of_the_first_kind(version: str, uri: str) -> None:
    payloads = [None if i % 6 == 4 else bytes([i]) * (i * 37_000) for i in range(40)] + [b"x" * 20_000_000]
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array(payloads, pa.large_binary()), range(41)], schema=pa.schema([field, ("id", pa.int64())]))
    write(uri, table, version, rows=15)
    esker.dataset(uri).delete("id % 5 = 2")
    kept = [i for i in range(41) if i % 5 != 2]
    rewritten(uri, max_rows_per_file=20)
    readers: list[Any] = [esker.dataset(uri), lance.dataset(uri)]
    for dataset in readers:
        assert dataset.to_table(columns=["id"])["id"].to_pylist() == kept
        blobs = dataset.take_blobs("b", indices=[kept.index(i) for i in kept if payloads[i]])
        assert [blob.read() for blob in blobs] == [payloads[i] for i in kept if payloads[i]]
    nulls = esker.dataset(uri).to_table(blob_handling="all_binary")["b"].to_pylist()
    assert nulls == [payloads[i] for i in kept]


def test_blobs_of_the_second_kind_with_their_files(tmp_path: Path) -> None:
    uri, outside = str(tmp_path / "t"), tmp_path / "outside.bin"
    outside.write_bytes(b"outside of the table")
    payloads: list[Any] = [None, *(bytes([i]) * size for i, size in enumerate(SIZES)), f"file://{outside}"]
    schema = pa.schema([blob_field("b"), pa.field("id", pa.int64())])
    for start in (0, 8):
        table = pa.table([blob_array(payloads), range(start, start + 8)], schema=schema)
        esker.write_dataset(
            table, uri, mode="append", data_storage_version="2.2", allow_external_blob_outside_bases=True
        )
    esker.dataset(uri).delete("id = 3")
    expected = esker.dataset(uri).to_table(blob_handling="all_binary")
    before = data_files(uri)
    outcome = rewritten(uri)
    assert {path.removeprefix("data/") for path in outcome.files} == data_files(uri) - before
    assert len(outcome.files) > 4
    readers: list[Any] = [esker.dataset(uri), lance.dataset(uri)]
    for dataset in readers:
        found = dataset.to_table(blob_handling="all_binary")
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        assert found["b"].to_pylist() == expected["b"].to_pylist()
    # The one outside of the table stays there.
    outside.write_bytes(b"changed")
    assert esker.dataset(uri).to_table(blob_handling="all_binary")["b"].to_pylist()[-1] == b"changed"


def test_no_live_rows_make_no_file(uri: str) -> None:
    write(uri, numbers(100), "2.2", rows=100)
    with_rows = staged(uri)
    assert len(with_rows.fragments) == 1
    before = data_files(uri)
    outcome = staged(uri, [])
    assert (outcome.fragments, outcome.files, outcome.num_rows) == ([], [], 0)
    assert data_files(uri) == before


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("copy", [True, False])
def test_a_truncated_file_is_an_error_and_leaves_no_file(version: str, copy: bool, uri: str) -> None:
    write(uri, numbers(3000), version, rows=1000)
    broken = sorted((Path(uri) / "data").glob("*.lance"))[1]
    whole = broken.read_bytes()
    before = data_files(uri)
    for damaged in (whole[: len(whole) // 2], b"", whole[: len(whole) // 2] + b"\0" * (len(whole) - len(whole) // 2)):
        broken.write_bytes(damaged)
        with pytest.raises(EskerError) as error:
            staged(uri, copy_pages=copy, max_rows_per_file=900, **SMALL_PAGES)
        assert broken.name in str(error.value)
        assert data_files(uri) == before


def test_a_page_beyond_its_file_is_an_error_and_leaves_no_file(uri: str) -> None:
    write(uri, numbers(3000), "2.2", rows=1000)
    broken = sorted((Path(uri) / "data").glob("*.lance"))[-1]
    whole = broken.read_bytes()
    before = data_files(uri)
    # The pages go, the metadata stay: positions in it lie beyond the file's end, or in other bytes.
    broken.write_bytes(whole[-2000:])
    with pytest.raises(EskerError):
        staged(uri, **SMALL_PAGES)
    assert data_files(uri) == before


def test_a_missing_file_is_an_error_and_leaves_no_file(uri: str) -> None:
    write(uri, numbers(3000), "2.2", rows=1000)
    sorted((Path(uri) / "data").glob("*.lance"))[2].unlink()
    before = data_files(uri)
    with pytest.raises((FileNotFoundError, CorruptFileError)):
        staged(uri)
    assert data_files(uri) == before


def test_arguments_are_checked(uri: str) -> None:
    write(uri, numbers(100), "2.2", rows=50)
    for option in ("max_rows_per_file", "max_bytes_per_file", "memory_limit"):
        options: dict[str, Any] = {option: 0}
        with pytest.raises(InvalidArgumentError, match="above 0"):
            staged(uri, **options)
    with pytest.raises(InvalidArgumentError, match="fragment 1 twice"):
        staged(uri, [1, 1])
    with pytest.raises(InvalidArgumentError, match="found id 9"):
        staged(uri, [9])


def test_a_table_in_memory() -> None:
    uri = "memory://rewrite"
    esker.write_dataset(numbers(2000), uri, max_rows_per_file=500)
    rewritten(uri)
    assert len(esker.dataset(uri).get_fragments()) == 1
    assert same(esker.dataset(uri).to_table(), numbers(2000)) is None


def test_ctrl_c_ends_a_rewrite_and_leaves_no_file(uri: str) -> None:
    write(uri, numbers(1_500_000), "2.2", rows=500_000)
    before = data_files(uri)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            staged(uri, copy_pages=False, memory_limit=1 << 20, max_rows_per_file=100_000)
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert data_files(uri) == before
