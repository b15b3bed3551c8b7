"""Columns that come, go and change: against what pylance makes of the same calls, and read by both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker import LanceDataset
from esker.exceptions import CommitConflictError, InvalidArgumentError, SchemaMismatchError
from tests.samples import same

VERSIONS = ["2.0", "2.1", "2.2"]


def _rows(start: int, count: int) -> pa.Table:
    numbers = list(range(start, start + count))
    return pa.table(
        {
            "a": pa.array(numbers, pa.int64()),
            "n": pa.array([None if n % 3 == 0 else n for n in numbers], pa.int64()),
            "s": pa.array([{"x": n, "y": str(n)} for n in numbers]),
            "t": pa.array([f"t{n}" for n in numbers]),
            "l": pa.array([[n, n + 1] for n in numbers], pa.list_(pa.int32())),
        }
    )


def _table(uri: str, version: str = "2.0", *, deleted: bool = True) -> LanceDataset:
    """30 rows in 3 fragments; of each some rows are deleted: at the start, within, at the end, and all but the last."""
    lance.write_dataset(_rows(0, 30), uri, max_rows_per_file=10, data_storage_version=version)
    if deleted:
        lance.dataset(uri).delete("a in (0, 1, 4, 9, 10, 19) or (a >= 20 and a < 29)")
    return esker.dataset(uri)


def _both(uri: str) -> pa.Table:
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    same(ours.to_table(), theirs.to_table())
    theirs.validate()
    return ours.to_table()


Change = Callable[[Any], object]

CHANGES: dict[str, Change] = {
    "rename": lambda ds: ds.alter_columns({"path": "a", "name": "b"}),
    "rename within": lambda ds: ds.alter_columns({"path": "s.x", "name": "z"}),
    "two at once": lambda ds: ds.alter_columns({"path": "a", "name": "b"}, {"path": "t", "nullable": True}),
    "not null": lambda ds: ds.alter_columns({"path": "a", "nullable": False}),
    "narrower": lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int32()}),
    "narrower and renamed": lambda ds: ds.alter_columns({"path": "n", "name": "m", "data_type": pa.int16()}),
    "large text": lambda ds: ds.alter_columns({"path": "t", "data_type": pa.large_string()}),
    "drop": lambda ds: ds.drop_columns(["t"]),
    "drop within": lambda ds: ds.drop_columns(["s.x"]),
    "drop several": lambda ds: ds.drop_columns(["a", "s", "l"]),
    "drop and add again": lambda ds: (ds.drop_columns(["a"]), ds.add_columns({"a": "n + 1"})),
    "expressions": lambda ds: ds.add_columns({"e": "a * 2", "f": "t || 'x'"}),
    "a null column": lambda ds: ds.add_columns(pa.field("z", pa.int32())),
    "null columns": lambda ds: ds.add_columns([pa.field("z", pa.int32()), pa.field("w", pa.list_(pa.int8()))]),
    "a schema of nulls": lambda ds: ds.add_columns(pa.schema([pa.field("z", pa.struct([pa.field("q", pa.int32())]))])),
    "values": lambda ds: ds.add_columns(pa.table({"v": pa.array(range(ds.count_rows()), pa.int64())}).to_reader(4)),
    "function": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch([pc.add(batch["a"], 1)], ["u"]), read_columns=["a"]
    ),
    "join": lambda ds: ds.merge(pa.table({"a": [3, 11, 3], "w": ["x", "y", "z"]}), "a"),
    "join by another name": lambda ds: ds.merge(pa.table({"k": [3, 99], "w": [[1], []]}), "a", "k"),
    "into a struct": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch([pa.array([{"q": n} for n in batch["a"].to_pylist()])], ["other"])
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_makes_what_the_peer_makes(change: str, version: str, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    dataset = _table(ours, version)
    _table(theirs, version)
    CHANGES[change](dataset)
    CHANGES[change](lance.dataset(theirs))
    found = _both(ours)
    expected = lance.dataset(theirs)
    assert dataset.version == esker.dataset(ours).version
    assert found.schema.equals(expected.schema, check_metadata=True)
    same(found, expected.to_table())
    if version == "2.0" and change == "a schema of nulls":
        return  # Files of 2.0 hold no null structs: nobody can write the rows again.
    # Both go on writing.
    esker.write_dataset(found.slice(0, 2), ours, mode="append")
    lance.write_dataset(found.slice(2, 2), ours, mode="append")
    same(_both(ours), pa.concat_tables([found, found.slice(0, 4)]).combine_chunks())


WRONG: dict[str, tuple[Change, type[Exception], str]] = {
    "unknown to rename": (lambda ds: ds.alter_columns({"path": "zz", "name": "b"}), InvalidArgumentError, "zz"),
    "unknown to cast": (
        lambda ds: ds.alter_columns({"path": "zz", "data_type": pa.int8()}),
        InvalidArgumentError,
        "zz",
    ),
    "taken name": (lambda ds: ds.alter_columns({"path": "a", "name": "n"}), InvalidArgumentError, "two columns 'n'"),
    "dotted name": (lambda ds: ds.alter_columns({"path": "a", "name": "s.q"}), InvalidArgumentError, "with a dot"),
    "nulls": (lambda ds: ds.alter_columns({"path": "n", "nullable": False}), InvalidArgumentError, "no nulls"),
    "too small": (lambda ds: ds.alter_columns({"path": "t", "data_type": pa.int8()}), SchemaMismatchError, "'t'"),
    "a field and what is in it": (
        lambda ds: ds.alter_columns({"path": "s", "data_type": pa.int8()}, {"path": "s.x", "data_type": pa.int8()}),
        InvalidArgumentError,
        "apart from each other",
    ),
    "no path": (lambda ds: ds.alter_columns({"name": "b"}), InvalidArgumentError, "expected path"),
    "unknown to drop": (lambda ds: ds.drop_columns(["a", "zz"]), InvalidArgumentError, "zz"),
    "all": (lambda ds: ds.drop_columns(ds.schema.names), InvalidArgumentError, "all columns"),
    "there already": (lambda ds: ds.add_columns({"t": "a"}), InvalidArgumentError, "'t'"),
    "no expression": (lambda ds: ds.add_columns({"b": "nope + 1"}), InvalidArgumentError, "nope"),
    "nulls where none may be": (
        lambda ds: ds.add_columns(pa.field("z", pa.int32(), nullable=False)),
        InvalidArgumentError,
        "nullable",
    ),
    "fewer values": (lambda ds: ds.add_columns(pa.table({"v": [1]})), InvalidArgumentError, "Stream ended before"),
    "more values": (lambda ds: ds.add_columns(pa.table({"v": list(range(99))})), InvalidArgumentError, "more"),
    "rows of a function": (
        lambda ds: ds.add_columns(lambda batch: pa.record_batch([pa.array([1])], ["u"])),
        InvalidArgumentError,
        "return",
    ),
    "no batch": (lambda ds: ds.add_columns(lambda batch: 7), InvalidArgumentError, "record batch"),
    "no key": (lambda ds: ds.merge(pa.table({"k": [1]}), "a"), InvalidArgumentError, "'a'"),
    "joined already": (lambda ds: ds.merge(pa.table({"a": [1], "t": [1]}), "a"), InvalidArgumentError, "'t'"),
}


@pytest.mark.parametrize("change", list(WRONG))
def test_what_cannot_be_is_refused_and_leaves_nothing(change: str, uri: str) -> None:
    dataset = _table(uri)
    files = sorted(Path(uri, "data").iterdir())
    call, error, match = WRONG[change]
    with pytest.raises(error, match=match):
        call(dataset)
    assert (dataset.version, esker.dataset(uri).version) == (2, 2)
    assert sorted(Path(uri, "data").iterdir()) == files


def test_metadata_alone_writes_no_file(uri: str) -> None:
    dataset = _table(uri, deleted=False)
    files = sorted(Path(uri, "data").iterdir())
    dataset.alter_columns({"path": "a", "name": "b"})
    dataset.drop_columns(["n"])
    dataset.add_columns(pa.field("z", pa.int32()))
    assert sorted(Path(uri, "data").iterdir()) == files
    assert _both(uri)["z"].null_count == 30


def test_nothing_to_do_makes_a_version_as_with_pylance(tmp_path: Path) -> None:
    made = []
    for library in (lance, esker):
        _table(str(tmp_path / library.__name__))
        dataset = library.dataset(tmp_path / library.__name__)
        dataset.drop_columns([])
        dataset.add_columns({})
        dataset.add_columns(pa.schema([]))
        dataset.alter_columns()
        operations = [type(it.operation).__name__ for it in dataset.get_transactions(4)]
        files = [len(fragment.data_files()) for fragment in dataset.get_fragments()]
        made.append((dataset.version, dataset.schema, dataset.count_rows(), operations, files))
    assert made[0] == made[1]


PARTS: dict[str, Change] = {
    "expression": lambda ds: ds.add_columns({"s": "named_struct('z', a)"}),
    "function": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch([pa.StructArray.from_arrays([batch["a"]], ["z"])], ["s"])
    ),
    "values": lambda ds: ds.add_columns(pa.table({"s": [{"z": n} for n in ds.to_table()["a"].to_pylist()]})),
    "join": lambda ds: ds.merge(pa.table({"a": [2, 3], "s": [{"z": 2}, {"z": 3}]}), "a"),
}


@pytest.mark.parametrize("version", ["0.1", *VERSIONS])
@pytest.mark.parametrize("part", PARTS)
def test_fields_are_added_to_structs_where_files_may_hold_parts_of_them(part: str, version: str, uri: str) -> None:
    rows = _rows(0, 9).drop_columns(["n"])
    dataset = esker.write_dataset(rows, uri, data_storage_version=version)
    if version in ("0.1", "2.0"):
        with pytest.raises(OSError, match=f"add sub column is not supported in Lance file version {version}"):
            PARTS[part](dataset)
        with pytest.raises(OSError, match="add sub column is not supported|exists in both sides"):
            PARTS[part](lance.dataset(uri))
        assert _both(uri).equals(rows)
        return
    PARTS[part](dataset)
    found = _both(uri)
    wanted = [n if part != "join" or n in (2, 3) else None for n in range(9)]
    assert [row["z"] for row in found["s"].to_pylist()] == wanted
    assert [row["x"] for row in found["s"].to_pylist()] == list(range(9))


def test_a_new_column_never_shows_the_values_of_a_dropped_one(uri: str) -> None:
    dataset = _table(uri, deleted=False)
    dataset.drop_columns(["l"])
    dataset.add_columns(pa.field("l", pa.list_(pa.int32())))
    assert _both(uri)["l"].null_count == 30


def test_appends_meanwhile_are_no_conflict_and_keep_their_nulls(uri: str) -> None:
    stale = _table(uri, deleted=False)
    esker.write_dataset(_rows(100, 2), uri, mode="append")
    stale.add_columns(pa.field("z", pa.int32()))
    esker.write_dataset(_rows(200, 2), uri, mode="append")
    other = esker.dataset(uri, version=1)
    other.drop_columns(["l"])
    assert _both(uri).num_rows == 34
    assert _both(uri).schema.names == ["a", "n", "s", "t", "z"]


def test_columns_are_computed_for_rows_that_came_meanwhile(uri: str) -> None:
    stale = _table(uri, deleted=False)
    esker.write_dataset(_rows(100, 2), uri, mode="append")
    files = len(list(Path(uri, "data").iterdir()))
    stale.add_columns({"twice": "a * 2"})
    found = _both(uri)
    assert found["twice"].to_pylist() == [n * 2 for n in found["a"].to_pylist()]
    # One file for each fragment: those that were computed before the conflict was seen are not computed again.
    assert len(list(Path(uri, "data").iterdir())) == files + 4


def test_values_that_cannot_be_read_again_conflict(uri: str) -> None:
    stale = _table(uri, deleted=False)
    esker.write_dataset(_rows(100, 2), uri, mode="append")
    files = sorted(Path(uri, "data").iterdir())
    with pytest.raises(CommitConflictError) as caught:
        stale.add_columns(pa.table({"v": list(range(30))}))
    assert (caught.value.retryable, caught.value.operation) == (True, "Merge")
    assert sorted(Path(uri, "data").iterdir()) == files


def test_a_required_column_is_checked_again_after_an_append(uri: str) -> None:
    stale = _table(uri, deleted=False)
    extra = _rows(100, 2).set_column(0, "a", pa.array([None, 1], pa.int64()))
    esker.write_dataset(extra, uri, mode="append")
    with pytest.raises(InvalidArgumentError, match="no nulls"):
        stale.alter_columns({"path": "a", "nullable": False})
    lance.dataset(uri).delete("a is null")
    stale.alter_columns({"path": "a", "nullable": False})
    assert not _both(uri).schema.field("a").nullable


def test_an_index_follows_its_column(uri: str) -> None:
    _table(uri, deleted=False)
    peer = lance.dataset(uri)
    peer.create_scalar_index("a", "BTREE")
    peer.create_scalar_index("t", "BTREE")
    dataset = esker.dataset(uri)
    dataset.alter_columns({"path": "a", "name": "b"})
    assert [index["fields"] for index in lance.dataset(uri).list_indices()] == [["b"], ["t"]]
    assert lance.dataset(uri).to_table(filter="b = 7")["t"].to_pylist() == ["t7"]
    dataset.drop_columns(["t"])
    assert [index["fields"] for index in lance.dataset(uri).list_indices()] == [["b"]]
    dataset.alter_columns({"path": "b", "data_type": pa.int32()})
    assert lance.dataset(uri).list_indices() == []
    assert lance.dataset(uri).to_table(filter="b = 7").num_rows == 1


def test_a_declared_function_casts_its_output(uri: str) -> None:
    dataset = _table(uri)

    @esker.batch_udf(output_schema=pa.schema([pa.field("u", pa.float32())]))
    def half(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pc.divide(batch["a"].cast(pa.float64()), 2.0)], ["u"])

    dataset.add_columns(half, read_columns=["a"], batch_size=3)
    assert _both(uri)["u"].type == pa.float32()
    assert _both(uri)["u"].to_pylist() == [n / 2 for n in _both(uri)["a"].to_pylist()]


def test_values_may_be_required(uri: str) -> None:
    dataset = _table(uri)
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    dataset.add_columns(pa.table({"v": list(range(dataset.count_rows()))}, schema=schema))
    assert not _both(uri).schema.field("v").nullable
    assert _both(uri)["v"].to_pylist() == list(range(dataset.count_rows()))


def test_the_error_of_a_function_is_the_users_own(uri: str) -> None:
    dataset = _table(uri)
    calls: Iterator[int] = iter(range(9))

    def fails(batch: pa.RecordBatch) -> pa.RecordBatch:
        if next(calls) > 2:
            raise KeyError("mine")
        return pa.record_batch([batch["a"]], ["u"])

    with pytest.raises(KeyError, match="mine"):
        dataset.add_columns(fails, read_columns=["a"])
    assert len(list(Path(uri, "data").iterdir())) == 3


EXPRESSIONS = [
    *("1", "'x'", "null", "a", "b", "a + 1", "a + b", "cast(a as bigint)", "cast(b as bigint)", "a > 1", "b > 1"),
    *("b is null", "coalesce(b, 1)", "a in (1, 2)", "-a", "not (a > 1)", "a between 1 and 2", "a % 2", "nullif(a, 1)"),
    *("length('abc')", "upper('a')", "upper(t)", "s.x", "s", "named_struct('q', a)"),
]


def test_new_columns_may_be_null_as_those_of_pylance_may(tmp_path: Path) -> None:
    fields = [("a", pa.int64(), False), ("b", pa.int64(), True), ("t", pa.string(), False)]
    schema = pa.schema([pa.field(*field) for field in fields]).append(
        pa.field("s", pa.struct([pa.field("x", pa.int64(), False)]))
    )
    rows = pa.Table.from_pylist(
        [{"a": 1, "b": 2, "t": "u", "s": {"x": 1}}, {"a": 3, "b": None, "t": "v", "s": None}], schema=schema
    )
    transforms = {f"c{number}": text for number, text in enumerate(EXPRESSIONS)}
    found = []
    for library in (esker, lance):
        dataset = library.write_dataset(rows, tmp_path / library.__name__)
        projected = dataset.to_table(columns=transforms).schema
        dataset.add_columns(transforms)
        added = dataset.schema
        assert [added.field(name).nullable for name in transforms] == [projected.field(n).nullable for n in transforms]
        operation = dataset.read_transaction(2).operation
        found.append(({EXPRESSIONS[int(n[1:])]: added.field(n).nullable for n in transforms}, operation))
    ours, theirs = found
    assert ours[0] == theirs[0]
    assert ours[1].preserves_nullability is theirs[1].preserves_nullability is False
    assert lance.dataset(tmp_path / "esker").to_table().equals(esker.dataset(tmp_path / "esker").to_table())


@pytest.mark.parametrize("library", [esker, lance])
def test_an_append_that_lacks_a_new_required_column_is_refused(library: Any, tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2]})
    library.write_dataset(rows, tmp_path)
    fragments = esker.fragment.write_fragments(rows, tmp_path, mode="append")
    library.dataset(tmp_path).add_columns({"one": "1"})
    with pytest.raises(CommitConflictError):
        esker.LanceDataset.commit(tmp_path, esker.LanceOperation.Append(fragments), read_version=1)
    # One that may be null is filled.
    library.dataset(tmp_path).drop_columns(["one"])
    library.dataset(tmp_path).add_columns({"copied": "a"})
    esker.LanceDataset.commit(tmp_path, esker.LanceOperation.Append(fragments), read_version=3)
    assert lance.dataset(tmp_path).to_table()["copied"].to_pylist() == [1, 2, None, None]


def test_arithmetic_with_a_number_is_of_the_columns_type_and_does_not_wrap(tmp_path: Path) -> None:
    """Stated in docs/from-pylance.md: pylance wraps."""
    rows = pa.table({"a": pa.array([2**31 - 1], pa.int32())})
    dataset = esker.write_dataset(rows, tmp_path)
    with pytest.raises(InvalidArgumentError, match="[Oo]verflow"):
        dataset.to_table(columns={"b": "a + 1"})
    theirs = lance.dataset(tmp_path).to_table(columns={"b": "a + 1"})
    assert (theirs.schema.field("b").type, theirs["b"].to_pylist()) == (pa.int32(), [-(2**31)])
    assert dataset.to_table(columns={"b": "a - 1"}).schema.field("b").type == pa.int32()
    assert dataset.to_table(columns={"b": "a + cast(1 as bigint)"})["b"].to_pylist() == [2**31]


@pytest.mark.parametrize(
    "add",
    [
        lambda dataset: dataset.merge(pa.table({"a": [1]}), "a"),
        lambda dataset: dataset.merge(pa.table({"b": [1]}), "a", "b"),
        lambda dataset: dataset.get_fragments()[0].merge(pa.table({"a": [1]}), "a"),
        lambda dataset: dataset.add_columns(pa.table({"a": [1]}).select([])),
        lambda dataset: dataset.add_columns(lambda batch: batch.select([])),
    ],
    ids=["merge", "merge by another name", "merge into a fragment", "stream", "function"],
)
def test_no_columns_are_not_added(add: Change, uri: str) -> None:
    dataset = _table(uri)
    with pytest.raises(InvalidArgumentError, match="expected columns to add"):
        add(dataset)
    # pylance loses a thread where values are joined, and says elsewhere that a file has no fields.
    with pytest.raises((RuntimeError, OSError)):
        add(lance.dataset(uri))
    assert esker.dataset(uri).version == dataset.version


@pytest.mark.parametrize(
    "add",
    [
        lambda ds, new: ds.add_columns(new.to_reader()),
        lambda ds, new: ds.add_columns(new.schema),
        lambda ds, new: ds.merge(new.append_column("key", pa.array(range(30))), "a", "key"),
    ],
    ids=["reader", "schema", "merge"],
)
def test_metadata_of_new_columns_come_to_those_of_the_table(add: Callable[..., object], tmp_path: Path) -> None:
    new = pa.table({"q": list(range(30))}).replace_schema_metadata({"k": "new", "of both": "new"})
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        add(library.write_dataset(_rows(0, 30).replace_schema_metadata({"of both": "old"}), uri), new)
    ours, theirs = (lance.dataset(str(tmp_path / name)).schema for name in ("esker", "lance"))
    assert ours.equals(theirs, check_metadata=True)
    assert ours.metadata == {b"k": b"new", b"of both": b"old"}


@pytest.mark.parametrize("verb", ["merge", "fragment.merge", "fragment.update_columns"])
@pytest.mark.parametrize("shape", ["plain", "struct", "list"])
def test_chunks_with_other_dictionaries_and_nulls_among_their_items(tmp_path: Path, verb: str, shape: str) -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", "b"]))
    second = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array(["x", None]))
    chunks = [first, second]
    if shape == "struct":
        chunks = [pa.StructArray.from_arrays([chunk], ["w"]) for chunk in chunks]
    elif shape == "list":
        chunks = [pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), chunk) for chunk in chunks]
    rows = pa.table({"id": range(6), "c": pa.chunked_array(chunks)})
    for library in (esker, lance):
        uri = str(tmp_path / library.__name__)
        library.write_dataset(
            rows if verb.endswith("columns") else rows.select(["id"]), uri, data_storage_version="2.2"
        )
        dataset = library.dataset(uri)
        if verb == "merge":
            dataset.merge(rows, "id")
            found = library.dataset(uri).to_table()
        else:
            fragment = dataset.get_fragments()[0]
            if verb == "fragment.merge":
                changed, schema = fragment.merge(rows.to_reader(), "id")
                operation = library.LanceOperation.Merge([changed], schema)
            else:
                changed, fields = fragment.update_columns(rows.to_reader(), left_on="id", right_on="id")
                operation = library.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
            found = library.LanceDataset.commit(uri, operation, read_version=dataset.version).to_table()
        assert found.to_pydict() == rows.to_pydict(), library.__name__
