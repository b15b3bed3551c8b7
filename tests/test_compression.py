"""How small files are to be: `compression=` in writes, what a table keeps of it, and that pylance reads it all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
import esker.fragment
from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter
from tests.page_encodings import page_encodings
from tests.random_columns import STYLES, RandomColumns
from tests.rounds import rounds
from tests.samples import same

GOALS = ("fast", "balanced", "small")
Goal = Literal["fast", "balanced", "small"]
ROWS = 40_000


def _columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(500)])
    decimals = np.round(rng.lognormal(3, 1, ROWS), 2)
    texts = pa.array([" ".join(words[rng.integers(0, 500, 6)]) for _ in range(ROWS // 4)] * 4)
    return {
        "int64_time": pa.array(np.cumsum(rng.integers(0, 10_000, ROWS)), pa.timestamp("us")),
        "int64_repeated": pa.array(np.repeat(np.arange(ROWS // 8), 8)[:ROWS] * 1_000_003),
        "int32": pa.array(rng.integers(0, 100_000, ROWS).astype(np.int32) // 1000 * 1000),
        "int16_few": pa.array(rng.choice([200, 301, 404, 30_000], ROWS).astype(np.int16)),
        "int8": pa.array(np.tile(np.arange(10, dtype=np.int8), ROWS // 10)),
        "float64_decimal": pa.array(decimals),
        "float32": pa.array((rng.integers(0, 1000, ROWS) / 8).astype(np.float32)),
        "float16": pa.array((rng.integers(0, 50, ROWS) / 4).astype(np.float16)),
        "decimal128": pa.array(np.arange(ROWS) % 1000, pa.int64()).cast(pa.decimal128(30, 2)),
        "bool": pa.array(np.arange(ROWS) % 64 < 32),
        "text": texts,
        "large_text": texts.cast(pa.large_string()),
        "text_few": pa.array([f"category {n % 300:05}" for n in range(ROWS)]),
        "text_wide": pa.array([f"{n:04} " + "lorem ipsum dolor " * 25 for n in range(ROWS // 40)] * 40),
        "binary_huge": pa.array([bytes([n % 7]) * 40_000 + bytes(range(256)) for n in range(40)] * 5, pa.binary()),
    }


COLUMNS = _columns()


def _nulled(values: pa.Array, nulls: float) -> pa.Array:
    if nulls == 0:
        return values
    mask = np.random.default_rng(1).random(len(values)) < nulls
    return pa.compute.if_else(pa.array(mask), pa.scalar(None, values.type), values)


def _written(table: pa.Table, path: Path, **options: Any) -> Path:
    with LanceFileWriter(path, table.schema, **options) as writer:
        writer.write_batch(table)
    return path


def _check(path: Path, table: pa.Table) -> None:
    rows = [0, 1, 1023, 1024, 4097, table.num_rows // 2, table.num_rows - 1]
    rows = sorted({row for row in rows if row < table.num_rows})
    for reader in (LanceFileReader(str(path)), lance.file.LanceFileReader(str(path))):
        same(table, reader.read_all().to_table())
        same(table.take(pa.array(rows)), reader.take_rows(rows).to_table())
        same(table.slice(rows[-2], 700), reader.read_range(rows[-2], min(700, table.num_rows - rows[-2])).to_table())


@pytest.mark.parametrize("nulls", [0, 0.2])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", COLUMNS)
def test_both_read_what_is_written_for_each_goal(
    name: str, goal: Goal, version: str, nulls: float, tmp_path: Path
) -> None:
    table = pa.table({"c": _nulled(COLUMNS[name], nulls)})
    _check(_written(table, tmp_path / "a.lance", version=version, compression=goal), table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", ["int64_time", "int16_few", "float64_decimal", "text", "text_few", "binary_huge"])
def test_both_read_lists_and_structs_of_each_goal(name: str, goal: Goal, version: str, tmp_path: Path) -> None:
    values = _nulled(COLUMNS[name], 0.1)
    rows = len(values) // 4
    offsets = pa.array(np.arange(0, 4 * rows + 1, 4, dtype=np.int32))
    lists = pa.ListArray.from_arrays(offsets, values)
    structs = pa.StructArray.from_arrays([values.slice(0, rows)], names=["x"])
    table = pa.table(
        {
            "lists": lists,
            "structs": structs,
            "of_structs": pa.ListArray.from_arrays(pa.array(np.arange(0, rows + 1, dtype=np.int32)), structs),
        }
    )
    _check(_written(table, tmp_path / "a.lance", version=version, compression=goal), table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
@pytest.mark.parametrize("name", COLUMNS)
def test_both_read_what_a_field_asks_for(name: str, scheme: str, version: str, tmp_path: Path) -> None:
    values = COLUMNS[name]
    field = pa.field("c", values.type, metadata={"lance-encoding:compression": scheme})
    table = pa.Table.from_arrays([values], schema=pa.schema([field]))
    _check(_written(table, tmp_path / "a.lance", version=version), table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_smaller_goal_makes_a_smaller_file(version: str, tmp_path: Path) -> None:
    smaller = 0
    for name, values in COLUMNS.items():
        table = pa.table({"c": values})
        sizes = [
            _written(table, tmp_path / f"{name}-{goal}.lance", version=version, compression=goal).stat().st_size
            for goal in GOALS
        ]
        assert sizes[2] <= sizes[1] * 1.01, (name, sizes)
        assert sizes[1] <= sizes[0] * 1.01, (name, sizes)
        smaller += sizes[2] < sizes[0] * 0.9
    assert smaller >= 5


def test_without_a_goal_a_file_is_balanced(tmp_path: Path) -> None:
    table = pa.table({"c": COLUMNS["int64_time"]})
    plain = _written(table, tmp_path / "a.lance").read_bytes()
    assert plain == _written(table, tmp_path / "b.lance", compression="balanced").read_bytes()
    assert "lz4" in page_encodings(_written(table, tmp_path / "c.lance", compression="balanced"))
    assert "lz4" not in page_encodings(_written(table, tmp_path / "d.lance", compression="fast"))


def test_field_metadata_go_before_the_goal(tmp_path: Path) -> None:
    values = COLUMNS["int64_time"]
    field = pa.field("c", values.type, metadata={"lance-encoding:compression": "none"})
    table = pa.Table.from_arrays([values], schema=pa.schema([field]))
    path = _written(table, tmp_path / "a.lance", compression="small")
    assert "zstd" not in page_encodings(path)
    assert "lz4" not in page_encodings(path)


def _table(uri: Path, goal: Goal | None = None, **options: Any) -> esker.LanceDataset:
    rows = pa.table({"id": np.arange(ROWS), "time": COLUMNS["int64_time"], "text": COLUMNS["text"]})
    return esker.write_dataset(rows, uri, compression=goal, **options)


def _files(dataset: esker.LanceDataset) -> dict[str, str]:
    folder = Path(dataset.uri) / "data"
    return {path.name: page_encodings(path) for path in folder.glob("*.lance")}


def test_a_table_keeps_the_goal_and_all_later_writes_follow_it(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", "small")
    assert dataset.config()["esker.compression"] == "small"
    known = set(_files(dataset))

    def new_files(after: esker.LanceDataset) -> list[str]:
        files = _files(after)
        fresh = [files[name] for name in set(files) - known]
        known.update(files)
        return fresh

    dataset = esker.write_dataset(dataset.to_table(), dataset, mode="append")
    assert all("zstd" in found for found in new_files(dataset))
    dataset.add_columns({"again": "text"})
    assert all("zstd" in found for found in new_files(dataset))
    source = dataset.to_table(limit=5000)
    dataset.merge_insert("id").when_matched_update_all().execute(source)
    assert any("zstd" in found for found in new_files(dataset))
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files()
    assert all("zstd" in found for found in new_files(esker.dataset(dataset.uri)))
    same(lance.dataset(dataset.uri).to_table(), esker.dataset(dataset.uri).to_table())


def test_fragments_that_are_written_apart_follow_the_goal_of_their_table(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", "small")
    known = set(_files(dataset))
    fragments = esker.fragment.write_fragments(dataset.to_table(), dataset, mode="append")
    written = {name: found for name, found in _files(dataset).items() if name not in known}
    assert written
    assert all("zstd" in found for found in written.values())
    committed = esker.LanceDataset.commit(
        dataset.uri, esker.LanceOperation.Append(fragments), read_version=dataset.version
    )
    assert committed.config()["esker.compression"] == "small"
    same(lance.dataset(dataset.uri).to_table(), committed.to_table())
    known.update(written)
    esker.fragment.write_fragments(dataset.to_table(), dataset, mode="append", compression="fast")
    assert all("zstd" not in found for name, found in _files(dataset).items() if name not in known)


@pytest.mark.parametrize("copied", ["shallow", "deep", "branch"])
def test_clones_and_branches_keep_the_goal(copied: str, tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", "small")
    if copied == "branch":
        other = dataset.create_branch("b")
    else:
        other = getattr(dataset, f"{copied}_clone")(str(tmp_path / "c"), dataset.version)
    assert other.config()["esker.compression"] == "small"
    known = set((tmp_path).rglob("*.lance"))
    appended = esker.write_dataset(dataset.to_table(), other, mode="append")
    written = [path for path in tmp_path.rglob("*.lance") if path not in known and path.is_file()]
    assert written
    assert all("zstd" in page_encodings(path) for path in written)
    assert appended.count_rows() == 2 * ROWS


def test_an_append_may_have_a_goal_of_its_own(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", "fast")
    first = set(_files(dataset))
    dataset = esker.write_dataset(dataset.to_table(), dataset, mode="append", compression="small")
    assert dataset.config()["esker.compression"] == "fast"
    assert all("zstd" in found for name, found in _files(dataset).items() if name not in first)


def test_an_overwrite_changes_the_goal_and_keeps_other_keys(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t")
    assert "esker.compression" not in dataset.config()
    dataset.update_config({"mine": "1"})
    dataset = esker.write_dataset(dataset.to_table(), dataset, mode="overwrite", compression="fast")
    assert dataset.config() == {"mine": "1", "esker.compression": "fast"}
    dataset = esker.write_dataset(dataset.to_table(), dataset, mode="overwrite")
    assert dataset.config() == {"mine": "1", "esker.compression": "fast"}


def test_a_goal_that_nobody_knows_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    with pytest.raises(InvalidArgumentError, match="'tiny'"):
        esker.write_dataset(rows, tmp_path / "t", compression="tiny")  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()
    with pytest.raises(InvalidArgumentError, match="'tiny'"):
        LanceFileWriter(tmp_path / "a.lance", rows.schema, compression="tiny")  # type: ignore[arg-type]
    dataset = esker.write_dataset(rows, tmp_path / "u")
    dataset.update_config({"esker.compression": "tiny"})
    with pytest.raises(InvalidArgumentError, match="update_config"):
        esker.write_dataset(rows, dataset, mode="append")


@pytest.mark.parametrize("verb", ["append", "merge_insert", "add_columns", "update", "compaction"])
def test_a_goal_that_others_put_into_the_config_is_refused_by_whatever_writes_files(verb: str, tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(100), "x": np.arange(100)})
    esker.write_dataset(rows, tmp_path / "t")
    esker.write_dataset(rows, tmp_path / "t", mode="append")
    lance.dataset(str(tmp_path / "t")).update_config({"esker.compression": "tiny"})
    dataset = esker.dataset(tmp_path / "t")
    before = (dataset.version, sorted(Path(dataset.uri, "data").iterdir()))

    def write() -> None:
        match verb:
            case "append":
                esker.write_dataset(rows, dataset, mode="append")
            case "merge_insert":
                dataset.merge_insert("id").when_matched_update_all().execute(rows)
            case "add_columns":
                dataset.add_columns({"y": "x + 1"})
            case "update":
                dataset.update({"x": "x + 1"})
            case _:
                dataset.optimize.compact_files()

    with pytest.raises(InvalidArgumentError, match=r"esker\.compression: .*'tiny'.*update_config"):
        write()
    found = esker.dataset(tmp_path / "t")
    assert (found.version, sorted(Path(found.uri, "data").iterdir())) == before
    # What writes no file goes on, and so does a write that says itself how small files are to be.
    found.delete("id = 3")
    esker.write_dataset(rows, tmp_path / "t", mode="append", compression="fast")
    esker.dataset(tmp_path / "t").update_config({"esker.compression": "small"})
    dataset = esker.dataset(tmp_path / "t")
    write()
    same(lance.dataset(dataset.uri).to_table(), esker.dataset(dataset.uri).to_table())


def test_version_0_1_takes_any_goal_and_ignores_it(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", "small", data_storage_version="0.1")
    same(lance.dataset(str(tmp_path / "t")).to_table(), dataset.to_table())


def test_of_2_0_only_small_compresses(tmp_path: Path) -> None:
    table = pa.table({"c": COLUMNS["text"]})
    sizes = {goal: _written(table, tmp_path / f"{goal}.lance", version="2.0", compression=goal) for goal in GOALS}
    assert sizes["fast"].read_bytes() == sizes["balanced"].read_bytes()
    assert sizes["small"].stat().st_size < sizes["fast"].stat().st_size * 0.6


@settings(max_examples=rounds(25), deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(GOALS), st.sampled_from(["2.1", "2.2"]), st.sampled_from(STYLES))
def test_both_read_random_columns_of_each_goal(seed: int, goal: Goal, version: str, style: str) -> None:
    source = RandomColumns(seed)
    type_ = source.type(version, depth=2)
    values = source.values(type_, source.random.choice([1, 300, 6000]), source.random.choice([0.0, 0.1, 0.9]), style)
    table = pa.table({"c": values})
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = _written(table, Path(folder, "a.lance"), version=version, compression=goal)
        except UnsupportedError:
            return
        expected = repr(values.to_pylist())
        for reader in (LanceFileReader(str(path)), lance.file.LanceFileReader(str(path))):
            # As text, so that no NaN differs from itself.
            assert repr(reader.read_all().to_table()["c"].to_pylist()) == expected
