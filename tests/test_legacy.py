"""Files and tables of version 0.1 ("legacy"), in both directions: pylance writes the same, and reads what we write."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.fragment import write_fragments
from tests.samples import TYPES, column, nested_column, people, same

LEGACY = "legacy"


def theirs(table: pa.Table, uri: str, **options: object) -> pa.Table:
    """What pylance reads of a table that it wrote, opened anew."""
    lance.write_dataset(table, uri, data_storage_version=LEGACY, **options)
    return lance.dataset(uri).to_table()


def both_ways(table: pa.Table, folder: Path, *, group: int) -> None:
    peer, ours = str(folder / "peer.lance"), str(folder / "ours.lance")
    expected = theirs(table, peer, max_rows_per_group=group)
    same(expected, esker.dataset(peer).to_table())
    esker.write_dataset(table, ours, data_storage_version=LEGACY, max_rows_per_group=group, allow_null_loss=True)
    same(expected, lance.dataset(ours).to_table())
    same(expected, esker.dataset(ours).to_table())
    one_file = [next((Path(uri) / "data").iterdir()).read_bytes() for uri in (peer, ours)]
    assert up_to_manifest(one_file[1]) == up_to_manifest(one_file[0]), "pages, page table and statistics are the peer's"


def up_to_manifest(data: bytes) -> bytes:
    """The bytes of a file before its manifest, which names the writer."""
    (position,) = struct.unpack("<Q", data[-16:-8])
    (tag, shift, at) = (data[position + 4], 0, position + 5)
    assert tag == 0x08, "the first field is where the manifest starts"
    start = 0
    while True:
        start |= (data[at] & 127) << shift
        if data[at] < 128:
            return data[:start]
        shift, at = shift + 7, at + 1


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_written_and_read_as_by_pylance(name: str, nulls: float, tmp_path: Path) -> None:
    rows = 60
    table = pa.table({"before": range(rows), "it": column(name, rows, nulls=nulls), "behind": ["x"] * rows})
    for group in (7, 1024):
        both_ways(table, tmp_path / str(group), group=group)


@pytest.mark.parametrize("seed", range(12))
def test_nested_types_are_written_and_read_as_by_pylance(seed: int, tmp_path: Path) -> None:
    table = pa.table({"it": nested_column(40, nulls=[0.0, 0.3][seed % 2], seed=seed), "id": range(40)})
    both_ways(table, tmp_path, group=9)


@pytest.mark.parametrize("rows", [1, 8, 9, 1024, 1025])
def test_rows_and_takes_around_group_edges(rows: int, tmp_path: Path) -> None:
    table = people(rows, start=1)
    esker.write_dataset(
        table,
        tmp_path / "t",
        data_storage_version=LEGACY,
        max_rows_per_group=8,
        max_rows_per_file=500,
        allow_null_loss=True,
    )
    dataset, peer = esker.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))
    rng = random.Random(rows)
    edges = [row for edge in range(0, rows + 1, 8) for row in (edge - 1, edge, edge + 1) if 0 <= row < rows]
    for wanted in (edges[:40], [rng.randrange(rows) for _ in range(20)], [0], [rows - 1]):
        same(peer.take(wanted), dataset.take(wanted))
    for start in (0, rows // 3, rows - 1):
        same(peer.to_table(offset=start, limit=11), dataset.to_table(offset=start, limit=11))
    same(peer.to_table(columns=["place.city"]), dataset.to_table(columns=["place.city"]))


def test_a_take_reads_the_rows_and_not_the_pages(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    rows = 200_000
    table = pa.table({"id": range(rows), "text": [f"{i:0100}" for i in range(rows)]})
    dataset = esker.write_dataset(table, uri, data_storage_version=LEGACY, max_rows_per_group=50_000)
    dataset.take([5])
    dataset.io_stats_incremental()
    assert dataset.take([123_456], columns=["id"])["id"].to_pylist() == [123_456]
    plain = dataset.io_stats_incremental()
    assert (plain.read_iops, plain.read_bytes) == (1, 8)
    dataset.take([123_456], columns=["text"])
    text = dataset.io_stats_incremental()
    assert (text.read_iops, text.read_bytes) == (2, 116)


LOSSES = {
    "int": (pa.array([1, None]), "zeros"),
    "float": (pa.array([1.5, None], pa.float32()), "zeros"),
    "bool": (pa.array([True, None]), "false"),
    "timestamp": (pa.array([1, None], pa.timestamp("us")), "zeros"),
    "fixed_size_binary": (pa.array([b"ab", None], pa.binary(2)), "zero bytes"),
    "vector": (pa.array([[1.0], None], pa.list_(pa.float32(), 1)), "lists of zeros"),
    "item of a vector": (pa.array([[1.0], [None]], pa.list_(pa.float32(), 1)), "zeros"),
    "empty text": (pa.array(["a", ""]), "nulls"),
    "empty bytes": (pa.array([b"a", b""], pa.large_binary()), "nulls"),
    "list": (pa.array([[1], None]), "empty lists"),
    "item of a list": (pa.array([[1], [None]]), "zeros"),
    "struct": (pa.array([{"x": "a"}, None]), "structs of zeros and nulls"),
    "field of a struct": (pa.array([{"x": 1}, {"x": None}]), "zeros"),
    "key to a number": (pa.array([1, None]).dictionary_encode(), "the first value"),
    "empty text of a dictionary": (pa.array(["a", ""]).dictionary_encode(), "nulls"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_value_that_would_be_lost_is_refused_unless_that_is_wanted(name: str, tmp_path: Path) -> None:
    values, becomes = LOSSES[name]
    table = pa.table({"it": values})
    with pytest.raises(UnsupportedError, match=f"'it.*0\\.1 .*read as {becomes}.*allow_null_loss=True") as caught:
        esker.write_dataset(table, tmp_path / "t", data_storage_version=LEGACY)
    assert caught.value.file_version == "0.1"
    assert not [*tmp_path.rglob("*.lance"), *tmp_path.rglob("*.manifest")]
    written = esker.write_dataset(table, tmp_path / "t", data_storage_version=LEGACY, allow_null_loss=True)
    assert not written.to_table().equals(table)


KEPT = {
    "null texts": pa.array(["a", None]),
    "null bytes": pa.array([b"a", None]),
    "null items": pa.array([["a", None], []]),
    "nothing but nulls": pa.nulls(2),
    "null keys to texts": pa.array(["a", None]).dictionary_encode(),
    "null fields": pa.array([{"x": "a"}, {"x": None}]),
}


@pytest.mark.parametrize("name", KEPT)
def test_nulls_that_a_file_keeps_are_written_without_a_word(name: str, tmp_path: Path) -> None:
    table = pa.table({"it": KEPT[name]})
    esker.write_dataset(table, tmp_path / "t", data_storage_version=LEGACY)
    assert esker.dataset(tmp_path / "t").to_table().to_pydict() == table.to_pydict()
    assert lance.dataset(str(tmp_path / "t")).to_table().to_pydict() == table.to_pydict()


def test_empty_texts_of_a_column_without_nulls_are_kept(tmp_path: Path) -> None:
    table = pa.table({"it": ["", "a", ""]}, schema=pa.schema([pa.field("it", pa.string(), nullable=False)]))
    both_ways(table, tmp_path, group=2)
    assert esker.dataset(tmp_path / "ours.lance").to_table()["it"].to_pylist() == ["", "a", ""]


REFUSED = {
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
    "interval": pa.array([None], pa.month_day_nano_interval()),
    "struct without fields": pa.array([{}], pa.struct([])),
    "width 0": pa.array([b""], pa.binary(0)),
    "vector of texts": pa.array([["a"]], pa.list_(pa.string(), 1)),
    "dictionary of times": pa.array([1], pa.timestamp("us")).dictionary_encode(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_a_file_cannot_hold_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="'it'"):
        esker.write_dataset(pa.table({"it": REFUSED[name]}), tmp_path / "t", data_storage_version=LEGACY)
    blob = pa.schema([pa.field("it", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    with pytest.raises(UnsupportedError, match="blobs"):
        esker.write_dataset(pa.table({"it": [b"a"]}, schema=blob), tmp_path / "t", data_storage_version=LEGACY)


def test_the_manifest_is_as_pylance_writes_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"a": [1]}), uri, data_storage_version=LEGACY)
    peer = lance.dataset(uri)
    assert peer.data_storage_version == esker.dataset(uri).data_storage_version == "0.1"
    file = peer.get_fragments()[0].data_files()[0]
    assert (file.fields, file.column_indices) == ([0], [])
    assert (file.file_major_version, file.file_minor_version) == (0, 2)
    assert peer.count_rows() == 1
    peer.validate()


def test_both_append_to_the_table_of_the_other(tmp_path: Path) -> None:
    table = people(30, start=1).drop_columns(["score"])
    ours, peer = str(tmp_path / "ours"), str(tmp_path / "peer")
    esker.write_dataset(table, ours, data_storage_version=LEGACY)
    lance.write_dataset(table, ours, mode="append", data_storage_version=LEGACY)
    lance.write_dataset(table, peer, data_storage_version=LEGACY)
    esker.write_dataset(table, peer, mode="append")
    for uri in (ours, peer):
        same(pa.concat_tables([table, table]), esker.dataset(uri).to_table())
        same(pa.concat_tables([table, table]), lance.dataset(uri).to_table())
    with pytest.raises(UnsupportedError, match=r"0\.1"):
        esker.write_dataset(table, ours, mode="append", data_storage_version="2.0")


def test_tables_whose_columns_pylance_added_and_dropped_are_read(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(people(50, start=1), uri, data_storage_version=LEGACY, max_rows_per_group=16)
    peer = lance.dataset(uri)
    peer.add_columns({"twice": "id * 2", "word": "concat('w', cast(id as string))"})
    peer.drop_columns(["name", "vector"])
    peer.delete("id % 5 = 0")
    peer.alter_columns({"path": "tags", "name": "labels"})
    lance.write_dataset(lance.dataset(uri).to_table(), uri, mode="append", data_storage_version=LEGACY)
    same(lance.dataset(uri).to_table(), esker.dataset(uri).to_table())
    wanted = ["word", "place.zip", "twice"]
    condition = "twice > 30 AND word LIKE 'w1%'"
    expected = lance.dataset(uri).to_table(columns=wanted, filter=condition)
    same(expected, esker.dataset(uri).to_table(columns=wanted, filter=condition))
    esker.write_dataset(esker.dataset(uri).to_table(), uri, mode="append", allow_null_loss=True)
    same(lance.dataset(uri).to_table(), esker.dataset(uri).to_table())


def keyed(*values: str | None, keys: pa.DataType | None = None) -> pa.Array:
    return pa.array(values).dictionary_encode().cast(pa.dictionary(keys or pa.int8(), pa.string()))


def test_batches_with_dictionaries_of_their_own_share_one(tmp_path: Path) -> None:
    parts = [keyed("a", "b"), keyed("c", "b", None), keyed("b", "c")]
    table = pa.table({"it": pa.chunked_array(parts), "n": range(7)})
    for uri, most in ((str(tmp_path / "one"), 100), (str(tmp_path / "many"), 2)):
        esker.write_dataset(table, uri, data_storage_version=LEGACY, max_rows_per_file=most)
        expected = ["a", "b", "c", "b", None, "b", "c"]
        assert esker.dataset(uri).to_table()["it"].to_pylist() == expected
        assert lance.dataset(uri).to_table()["it"].to_pylist() == expected
        assert esker.dataset(uri).to_table(filter="it = 'c'")["n"].to_pylist() == [2, 6]


def test_an_append_knows_the_values_of_the_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"it": keyed("x", "y", "z")}), uri, data_storage_version=LEGACY)
    esker.write_dataset(pa.table({"it": keyed("z", "y")}), uri, mode="append")
    esker.write_dataset(pa.table({"it": keyed("y")}), uri, mode="append")
    with pytest.raises(UnsupportedError, match="dictionary of the table"):
        esker.write_dataset(pa.table({"it": keyed("z", "new")}), uri, mode="append")
    lance.write_dataset(pa.table({"it": keyed("x", "y", "z")}), uri, mode="append", data_storage_version=LEGACY)
    expected = ["x", "y", "z", "z", "y", "y", "x", "y", "z"]
    assert esker.dataset(uri).to_table()["it"].to_pylist() == expected
    assert lance.dataset(uri).to_table()["it"].to_pylist() == expected
    esker.write_dataset(pa.table({"it": keyed("z", "new")}), uri, mode="overwrite")
    assert lance.dataset(uri).to_table()["it"].to_pylist() == ["z", "new"]


def test_fragments_written_apart_are_committed_if_their_dictionaries_fit(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = pa.table({"it": keyed("a", "b")})
    options: dict[str, Any] = {"mode": "create", "data_storage_version": LEGACY}
    fragments = [*write_fragments(table, uri, **options), *write_fragments(table.slice(0, 1), uri, **options)]
    other = write_fragments(pa.table({"it": keyed("b", "a")}), uri, **options)
    with pytest.raises(ValueError, match="share the dictionary"):
        esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(table.schema, [*fragments, *other]))
    esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(table.schema, fragments))
    assert lance.dataset(uri).to_table()["it"].to_pylist() == ["a", "b", "a"]


def test_a_dictionary_outgrows_its_keys_with_a_clear_error(tmp_path: Path) -> None:
    parts = [keyed(*(f"{batch}-{i}" for i in range(100))) for batch in range(2)]
    with pytest.raises(UnsupportedError, match="more than 128 distinct values"):
        esker.write_dataset(pa.table({"it": pa.chunked_array(parts)}), tmp_path / "t", data_storage_version=LEGACY)


def test_dictionaries_of_numbers(tmp_path: Path) -> None:
    table = pa.table(
        {"i": pa.array([10, 30, 10]).dictionary_encode(), "u": pa.array([1, 2, 2], pa.uint8()).dictionary_encode()}
    )
    both_ways(table, tmp_path, group=2)


def test_a_column_that_is_not_nullable_takes_no_null(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("it", pa.int64(), nullable=False)])
    table = pa.Table.from_arrays([pa.array([1, None])], schema=schema)
    with pytest.raises((SchemaMismatchError, InvalidArgumentError), match="non-nullable|not nullable"):
        esker.write_dataset(table, tmp_path / "t", data_storage_version=LEGACY, allow_null_loss=True)


@pytest.mark.parametrize("verb", ["add", "cast", "join", "update", "upsert"])
@pytest.mark.parametrize(("groups", "rows"), [(7, 30), (800, 2400), (50, 30)])
@pytest.mark.parametrize("writer", [esker, lance])
def test_new_columns_have_the_groups_of_those_before(
    writer: Any, groups: int, rows: int, verb: str, tmp_path: Path
) -> None:
    # pylance reads the groups of several files side by side.
    uri, ids = str(tmp_path / "t"), list(range(rows))
    data = pa.table({"s": [{"a": [n, n]} for n in ids], "id": ids, "v": [n + 1 for n in ids]})
    writer.write_dataset(data, uri, data_storage_version="0.1", max_rows_per_group=groups)
    dataset, new, column = esker.dataset(uri), pa.table({"id": [3], "v": [4]}), "v"
    dataset.delete("id IN (0, 9)")
    if verb == "add":
        column = "w"
        dataset.add_columns({column: "id + 1"})
    elif verb == "cast":
        dataset.alter_columns({"path": "v", "data_type": pa.int32()})
    elif verb == "join":
        column = "w"
        dataset.merge(pa.table({"id": ids, column: [n + 1 for n in ids]}), "id")
    elif verb == "update":
        (first, *_) = dataset.get_fragments()
        fragment, fields = first.update_columns(new, "id")
        operation = esker.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
        esker.LanceDataset.commit(uri, operation, read_version=dataset.version)
    else:
        dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(new)
    peer = lance.dataset(uri)
    left = peer.to_table(columns=["id"], filter=f"{column} > 5 AND id < {rows - 2} AND id <> 9")
    assert left["id"].to_pylist() == [n for n in ids if 4 < n < rows - 2 and n != 9]
    peer.delete(f"{column} = {rows} OR id = 4")
    peer.update({column: "0"}, where=f"{column} = 6 AND id = 5")
    for module in (esker, lance):
        found = module.dataset(uri).to_table(columns=["id", column])
        values = dict(zip(*found.to_pydict().values(), strict=True))
        assert values == {n: 0 if n == 5 else n + 1 for n in ids if n not in (0, 4, 9, rows - 1)}


def test_a_column_that_no_file_has_is_read_by_pylance_but_not_filtered(tmp_path: Path) -> None:
    """The guide says so: pylance makes no such files of this version."""
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"id": [1, 2], "n": [1, 2]}), uri, data_storage_version="0.1")
    esker.dataset(uri).insert(pa.table({"id": [3]}))
    expected = pa.table({"id": [1, 2, 3], "n": [1, 2, None]})
    assert esker.dataset(uri).to_table() == lance.dataset(uri).to_table() == expected
    assert esker.dataset(uri).count_rows("n is null") == 1
    with pytest.raises(ValueError, match="Cannot merge empty batches"):
        lance.dataset(uri).to_table(columns=["id"], filter="n = 1")
