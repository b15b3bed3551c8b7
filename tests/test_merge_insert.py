"""Merges by one library make what the other's would have made, whatever the clauses, the keys and the columns."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pandas
import polars
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from tests.merging import Clauses, merge_both, multiset, pair, same_rows, upsert

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None], pa.int64()),
        "v": pa.array([10, 20, 30, 40, 50], pa.int64()),
        "s": ["a", "b", "c", "d", "e"],
    }
)
SOURCE = pa.table({"id": pa.array([2, 3, 7, None], pa.int64()), "v": [200, 300, 700, 900], "s": ["B", "C", "G", "N"]})

CLAUSES: dict[str, Clauses] = {
    "upsert": upsert,
    "update": lambda m: m.when_matched_update_all(),
    "insert": lambda m: m.when_not_matched_insert_all(),
    "delete": lambda m: m.when_matched_delete(),
    "delete and insert": lambda m: m.when_matched_delete().when_not_matched_insert_all(),
    "delete of what the source lacks": lambda m: m.when_not_matched_by_source_delete(),
    "replace": lambda m: upsert(m).when_not_matched_by_source_delete(),
    "replace some": lambda m: upsert(m).when_not_matched_by_source_delete("v > 10 and s <> 'd'"),
    "if source": lambda m: m.when_matched_update_all("source.v > 200").when_not_matched_insert_all(),
    "if target": lambda m: m.when_matched_update_all("target.v = 20 AND source.s = 'B'"),
    "if newer": lambda m: m.when_matched_update_all("source.v > target.v * 10 - 1 OR source.id = target.id - 1"),
    "if null": lambda m: m.when_matched_update_all("source.s IS NULL OR NOT (source.s <> target.s AND target.v > 20)"),
    "if never": lambda m: m.when_matched_update_all("target.v > 1000").when_not_matched_insert_all(),
    "the last clause counts": lambda m: m.when_matched_delete().when_matched_update_all(),
}


@pytest.mark.parametrize("clauses", CLAUSES.values(), ids=CLAUSES)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_a_merge_makes_what_pylances_makes(uri: str, clauses: Clauses, stable: bool) -> None:
    merge_both(uri, ROWS, SOURCE, "id", clauses, max_rows_per_file=2, enable_stable_row_ids=stable)


SOME_COLUMNS = [["id", "v"], ["v", "id"], ["id"], ["s", "id", "v"]]
"""Parts of the source."""
ANY_COLUMNS = ["upsert", "update", "insert", "delete", "replace"]
"""Clauses that read no column but the key; "if source" reads ``v``."""


@pytest.mark.parametrize(
    ("clauses", "columns"),
    [
        *((clauses, columns) for clauses in ANY_COLUMNS for columns in SOME_COLUMNS),
        *(("if source", columns) for columns in SOME_COLUMNS if "v" in columns),
    ],
    ids=str,
)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_columns_that_the_source_lacks_keep_their_values(
    uri: str, clauses: str, columns: list[str], stable: bool
) -> None:
    merge_both(uri, ROWS, SOURCE.select(columns), "id", CLAUSES[clauses], enable_stable_row_ids=stable)


def test_nothing_that_changes_is_a_version_all_the_same(uri: str) -> None:
    ours, theirs = merge_both(uri, ROWS, SOURCE.slice(0, 0), "id", upsert)
    assert ours.version == theirs.version == 2


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_transaction_is_like_pylances(uri: str, version: str) -> None:
    for clauses in CLAUSES.values():
        for stable in (False, True):
            ours, theirs = pair(uri + str(id(clauses)) + str(stable), ROWS, data_storage_version=version,
                                enable_stable_row_ids=stable, max_rows_per_file=3)  # fmt: skip
            clauses(ours.merge_insert("id")).execute(SOURCE)
            clauses(theirs.merge_insert("id")).execute(SOURCE)
            own, other = (lance.dataset(d.uri).read_transaction(2).operation for d in (ours, theirs))
            assert own.update_mode == other.update_mode == "rewrite_rows"
            assert own.fields_modified == other.fields_modified == []
            assert sorted(own.fields_for_preserving_frag_bitmap) == sorted(other.fields_for_preserving_frag_bitmap)
            assert sorted(own.removed_fragment_ids) == sorted(other.removed_fragment_ids)
            deletions = [{f.id: f.num_deletions for f in o.updated_fragments} for o in (own, other)]
            assert deletions[0] == deletions[1]
            assert sum(f.num_rows for f in own.new_fragments) == sum(f.num_rows for f in other.new_fragments)


NAN = math.nan
KEYS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.float64(), [NAN, 0.0, 1.5, None], [NAN, -0.0, 1.5, None]),
    (pa.float32(), [1.5, 2.5], [2.5, 3.5]),
    (pa.float16(), [1.0, 2.0], [2.0, 3.0]),
    (pa.bool_(), [True, None], [True, False, None]),
    (pa.string(), ["a", "", None], ["", "b", None]),
    (pa.large_string(), ["a", ""], ["", "b"]),
    (pa.binary(), [b"a", b""], [b"", b"b"]),
    (pa.binary(2), [b"aa"], [b"aa", b"bb"]),
    (pa.int8(), [1, -2], [-2, 3]),
    (pa.uint64(), [1, 2**64 - 1], [2**64 - 1, 3]),
    (pa.date32(), [1, 2], [2, 3]),
    (pa.time64("us"), [1, 2], [2, 3]),
    (pa.timestamp("us"), [1, 2], [2, 3]),
    (pa.timestamp("ns", "UTC"), [1, 2], [2, 3]),
    (pa.duration("us"), [1, 2], [2, 3]),
    (pa.decimal128(10, 2), [decimal.Decimal("1.00")], [decimal.Decimal("1.00"), decimal.Decimal("2.00")]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}, None, {"a": None}], [{"a": 1}, None, {"a": None}, {"a": 2}]),
    (pa.list_(pa.int64()), [[1, 2], None, [], [None]], [[1, 2], None, [], [3], [None]]),
    (pa.list_(pa.float32(), 2), [[1, 2]], [[1, 2], [3, 4]]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], ["b", "c"]),
]


@pytest.mark.parametrize(("type_", "old", "new"), KEYS, ids=[str(key[0]) for key in KEYS])
def test_keys_of_all_types_match_as_they_do_for_pylance(uri: str, type_: pa.DataType, old: Any, new: Any) -> None:
    table = pa.table({"k": pa.array(old, type_), "v": list(range(len(old)))})
    source = pa.table({"k": pa.array(new, type_), "v": list(range(100, 100 + len(new)))})
    merge_both(uri, table, source, "k", upsert)


@pytest.mark.parametrize("clauses", ["upsert", "delete", "replace", "delete of what the source lacks"])
def test_a_key_of_several_columns_matches_where_all_do_and_none_is_null(uri: str, clauses: str) -> None:
    old = {"a": pa.array([1, 1, None, 2, 3], pa.int64()), "b": ["x", None, "x", None, "y"], "v": [0, 1, 2, 3, 4]}
    new = {"b": ["x", None, "x", None, "z"], "a": pa.array([1, 1, None, 2, 9], pa.int64()), "v": [5, 6, 7, 8, 9]}
    merge_both(uri, pa.table(old), pa.table(new), ["b", "a"], CLAUSES[clauses])


def test_key_names_may_differ_in_case(uri: str) -> None:
    table, source = pa.table({"Id": [1, 2], "v": [0, 1]}), pa.table({"Id": [2, 3], "v": [7, 8]})
    merge_both(uri, table, source, "id", upsert)


@pytest.mark.parametrize("clauses", CLAUSES.values(), ids=CLAUSES)
def test_rows_of_the_table_that_share_a_key_are_all_changed(uri: str, clauses: Clauses) -> None:
    table = pa.table({"id": [2, 2, 3], "v": [20, 21, 30], "s": ["a", "b", "c"]})
    merge_both(uri, table, SOURCE, "id", clauses)


def test_what_pylance_cannot_plan(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    merge = dataset.merge_insert("id").when_matched_delete().when_not_matched_by_source_delete("v < 20")
    assert tuple(merge.execute(SOURCE).values()) == (0, 0, 3)
    assert dataset.to_table()["v"].to_pylist() == [40, 50]
    merge = dataset.merge_insert("v").when_matched_update_all("length(source.s) + target.v > 41")
    source = pa.table({"v": [40, 50], "s": ["x", "yy"]})
    assert tuple(merge.execute(source).values()) == (0, 1, 0)
    assert dataset.to_table()["s"].to_pylist() == ["d", "yy"]


DOUBLED = pa.table({"id": [2, 2, 7, 7], "v": [200, 300, 700, 900], "s": ["B", "C", "G", "N"]})


@pytest.mark.parametrize("clauses", ["upsert", "update", "delete", "delete and insert"])
def test_several_rows_for_one_are_refused(uri: str, clauses: str) -> None:
    ours, theirs = pair(uri, ROWS)
    with pytest.raises(InvalidArgumentError, match="ambiguous merge: .* found several on \\(id = 2\\)"):
        CLAUSES[clauses](ours.merge_insert("id")).execute(DOUBLED)
    with pytest.raises(OSError, match="Ambiguous merge inserts are prohibited"):
        CLAUSES[clauses](theirs.merge_insert("id")).execute(DOUBLED)
    same_rows(ours, theirs)
    assert len(list((ours._log.store).list("data/"))) == 1, "files that no version has"


@pytest.mark.parametrize("condition", ["source.v > 250", "source.v > 950"])
def test_several_rows_for_one_are_fine_where_a_condition_leaves_one(uri: str, condition: str) -> None:
    merge_both(uri, ROWS, DOUBLED, "id", lambda m: m.when_matched_update_all(condition).when_not_matched_insert_all())


def test_rows_that_share_a_key_are_inserted_all(uri: str) -> None:
    merge_both(uri, ROWS, DOUBLED, "id", CLAUSES["insert"])


def test_a_match_may_be_an_error(uri: str) -> None:
    ours, theirs = pair(uri, ROWS)
    with pytest.raises(InvalidArgumentError, match="found a match on \\(id = 2\\); nothing was changed"):
        ours.merge_insert("id").when_matched_fail().when_not_matched_insert_all().execute(SOURCE)
    for dataset in (ours, theirs):
        merge = dataset.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
        assert merge.execute(SOURCE.slice(2))["num_inserted_rows"] == 2
    same_rows(ours, theirs)


def test_a_builder_goes_on_from_where_it_brought_the_table(uri: str) -> None:
    ours, theirs = pair(uri, ROWS)
    for merge in (upsert(ours.merge_insert("id")), upsert(theirs.merge_insert("id"))):
        assert [tuple(merge.execute(SOURCE).values()) for _ in range(2)] == [(2, 2, 0), (1, 3, 0)]
    same_rows(ours, theirs)


def test_a_source_may_be_anything_that_a_write_takes(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    other = esker.write_dataset(SOURCE, uri + "-source")
    frame = SOURCE.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    for source in (SOURCE, SOURCE.to_reader(), SOURCE.to_batches()[0], other, SOURCE.to_pydict()):
        assert upsert(dataset.merge_insert("id")).execute(source)["num_updated_rows"] >= 2
    assert upsert(dataset.merge_insert("id")).execute(frame, schema=SOURCE.schema)["num_updated_rows"] >= 2
    counted = upsert(dataset.merge_insert("id")).execute(iter(SOURCE.to_batches()), schema=SOURCE.schema)
    assert counted == {"num_inserted_rows": 1, "num_updated_rows": 3, "num_deleted_rows": 0}


def test_a_failing_source_fails_with_its_own_error(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)

    def broken() -> Any:
        yield SOURCE.to_batches()[0]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        upsert(dataset.merge_insert("id")).execute(broken(), schema=SOURCE.schema)
    assert esker.dataset(uri).version == 1


def test_an_uncommitted_merge_is_committed_by_either_library(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    transaction, counts = upsert(dataset.merge_insert("id")).execute_uncommitted(SOURCE)
    assert counts == {"num_inserted_rows": 2, "num_updated_rows": 2, "num_deleted_rows": 0}
    assert esker.dataset(uri).version == 1
    assert esker.LanceDataset.commit(uri, transaction).count_rows() == 7
    made, _ = upsert(lance.dataset(uri).merge_insert("v")).execute_uncommitted(SOURCE)
    assert lance.LanceDataset.commit(uri, made).count_rows() == 7
    assert multiset(esker.dataset(uri).to_table()) == multiset(lance.dataset(uri).to_table())


def test_rows_of_tables_with_deletions_and_added_columns_merge(uri: str) -> None:
    ours, theirs = pair(uri, ROWS, max_rows_per_file=2)
    for dataset in (ours, theirs):
        dataset.delete("id = 2")
        dataset.add_columns({"twice": "v * 2"})
        source = SOURCE.append_column("twice", pa.array([1, 2, 3, 4]))
        assert tuple(upsert(dataset.merge_insert("id")).execute(source).values()) == (3, 1, 0)
        assert tuple(dataset.merge_insert("id").when_matched_update_all().execute(SOURCE).values()) == (0, 3, 0)
    same_rows(ours, theirs)


def test_nested_values_move_whole(uri: str) -> None:
    rows = pa.table({"id": [1, 2, 3], "st": [{"a": 1, "b": [2]}, None, {"a": None, "b": []}], "v": [1.5, 2.5, None]})
    source = pa.table({"id": [3, 1, 9], "v": [3.5, 1.25, 9.5]})
    merge_both(uri, rows, source, "id", lambda m: m.when_matched_update_all("target.st.a = 1"))
    full = pa.table({"id": [3, 4], "st": [{"a": 7, "b": [8, 9]}, {"a": 4, "b": None}], "v": [0.5, 4.5]})
    merge_both(uri + "-full", rows, full, "id", upsert)


def test_columns_that_cannot_be_null_must_come_with_rows_that_are_inserted(uri: str) -> None:
    schema = pa.schema([("id", pa.int64()), pa.field("n", pa.int64(), nullable=False)])
    ours, theirs = pair(uri, pa.table([[1], [2]], schema=schema))
    ids = pa.table({"id": [1]})
    with pytest.raises(SchemaMismatchError, match="column 'n' is missing in the source"):
        upsert(ours.merge_insert("id")).execute(ids)
    with pytest.raises(SchemaMismatchError, match="column 'n'.*null"):
        upsert(ours.merge_insert("id")).execute(pa.table({"id": [7], "n": pa.array([None], pa.int64())}))
    for dataset in (ours, theirs):
        assert dataset.merge_insert("id").when_matched_update_all().execute(ids)["num_updated_rows"] == 1
    same_rows(ours, theirs)


def test_mistakes_are_told_before_anything_is_read(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    narrow = SOURCE.set_column(0, "id", SOURCE["id"].cast(pa.int32()))
    mistakes: list[tuple[Callable[[Any], object], type[Exception], str]] = [
        (lambda m: m.execute(SOURCE), InvalidArgumentError, "expected a clause that changes rows"),
        (lambda _: dataset.merge_insert(), InvalidArgumentError, "expected key columns, found none"),
        (lambda _: dataset.merge_insert([]), InvalidArgumentError, "expected key columns, found none"),
        (lambda _: dataset.merge_insert("zz"), InvalidArgumentError, "expected a key among the table's columns"),
        (lambda _: dataset.merge_insert(["id", "ID"]), InvalidArgumentError, "duplicate key column"),
        (lambda m: m.conflict_retries(-1), InvalidArgumentError, "expected conflict_retries >= 0"),
        (lambda m: m.retry_timeout("1s"), TypeError, "expected a timedelta"),
        (lambda m: m.retry_timeout(datetime.timedelta(0)), InvalidArgumentError, "expected a positive"),
        (lambda m: m.memory_limit(0), InvalidArgumentError, "expected memory_limit > 0"),
        (lambda m: m.write_mode("x"), InvalidArgumentError, "invalid write_mode"),
        (lambda m: m.data_storage_version("9.9"), InvalidArgumentError, "unknown data_storage_version"),
        (lambda m: m.target_bases(["x"]), InvalidArgumentError, "base path 'x' not found"),
        (lambda m: m.mark_sstables_as_compacted([]), UnsupportedError, "mark_sstables_as_compacted"),
        (lambda m: m.when_not_matched_by_source_delete("zz > 1"), InvalidArgumentError, "found zz"),
        (lambda m: m.when_not_matched_by_source_delete("target.v > 1"), InvalidArgumentError, "found target"),
        (lambda m: upsert(m).execute(SOURCE.drop_columns(["id"])), SchemaMismatchError, "key column 'id' is missing"),
        (lambda m: upsert(m).execute(SOURCE.append_column("x", SOURCE["v"])), SchemaMismatchError, "'x' is not in"),
        (lambda m: upsert(m).execute(narrow), SchemaMismatchError, "'id' has another type"),
    ]
    for wrong, error, text in mistakes:
        with pytest.raises(error, match=text):
            wrong(dataset.merge_insert("id"))
    for condition, text in [
        ("source.q > 10", "expected a field in source, found q: there are"),
        ("v > 10", "expected a column, found v"),
        ("source.v", "expected a filter that is true or false"),
        ("source.v >>> ", "cannot parse"),
    ]:
        with pytest.raises(InvalidArgumentError, match=text):
            dataset.merge_insert("id").when_matched_update_all(condition).execute(SOURCE)
    assert esker.dataset(uri).version == 1


def test_plans_tell_the_clauses_as_pylances_do(uri: str) -> None:
    ours, theirs = pair(uri, ROWS)
    for name, clauses in CLAUSES.items():
        if name != "delete":  # There it has a plan of another name.
            plans = [clauses(dataset.merge_insert("id")).explain_plan() for dataset in (ours, theirs)]
            own, other = (plan.split("\n")[0] for plan in plans)
            if "UpdateIf(MergeCondition)" in other:  # Of some conditions it says only that there is one.
                own = re.sub(r"UpdateIf\(.*\), when_not", "UpdateIf(MergeCondition), when_not", own)
            assert own == other
    plan = ours.merge_insert("id").when_matched_update_all("source.v > target.v").explain_plan(SOURCE.schema.remove(2))
    assert "TakeRows: columns=[s]" in plan
    assert "columns=[v] of the rows that match" in plan
    told = upsert(ours.merge_insert("id")).analyze_plan(SOURCE)
    assert "num_inserted_rows=2, num_updated_rows=2, num_deleted_rows=0" in told
    assert "partitions=1, rows_scanned=5, spilled_bytes=0" in told
    assert esker.dataset(ours.uri).version == 1
    assert len(list((ours._log.store).list("data/"))) == 1
    assert not list((ours._log.store).list("_deletions/"))


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_tables_of_all_file_versions_merge(uri: str, version: str) -> None:
    rows = pa.table({"id": [1, 2, 3], "v": [1, 2, 3], "s": ["a", "b", "c"]})
    ours, theirs = pair(uri, rows, data_storage_version=version, max_rows_per_file=2)
    for dataset in (ours, theirs):
        full = pa.table({"id": [2, 9], "v": [20, 90], "s": ["B", "N"]})
        assert tuple(upsert(dataset.merge_insert("id")).execute(full).values()) == (1, 1, 0)
        part = pa.table({"id": [3, 2], "v": [31, 21]})
        assert tuple(dataset.merge_insert("id").when_matched_update_all().execute(part).values()) == (0, 2, 0)
    same_rows(ours, theirs)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_come_along_whether_the_source_has_them_or_not(uri: str, version: str) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), blob, ("v", pa.int64())])
    old = pa.table([[1, 2, 3], [b"x" * 10, None, b"z"], [1, 2, 3]], schema=schema)
    dataset = esker.write_dataset(old, uri, data_storage_version=version)
    upsert(dataset.merge_insert("id")).execute(pa.table([[2, 7], [b"new", b"in"], [20, 70]], schema=schema))
    dataset.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1, 3, 2], "v": [7, 8, 9]}))
    rows = dataset.to_table(columns=["id", "b", "v"], blob_handling="all_binary").to_pylist()
    assert {row["id"]: (row["b"], row["v"]) for row in rows} == {
        1: (b"x" * 10, 7),
        2: (b"new", 9),
        3: (b"z", 8),
        7: (b"in", 70),
    }
    assert (
        lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist()
        == dataset.to_table(columns=["id"])["id"].to_pylist()
    )
    with pytest.raises(UnsupportedError, match="column 'b' holds blobs"):
        upsert(dataset.merge_insert("b")).execute(pa.table([[1], [b"x"], [1]], schema=schema))


def test_a_numbered_merge_happens_once(uri: str) -> None:
    esker.write_dataset(ROWS, uri)
    counts = []
    for _ in range(2):
        merge = upsert(esker.dataset(uri).merge_insert("id"))
        counts.append(merge.execute(SOURCE, application=("nightly", 4), commit_message="again", durable=False))
    assert [tuple(count.values()) for count in counts] == [(2, 2, 0), (0, 0, 0)]
    dataset = esker.dataset(uri)
    assert (dataset.version, dataset.count_rows()) == (2, 7)
    transaction = dataset.read_transaction(2)
    assert transaction is not None
    assert (transaction.transaction_properties or {})["__lance_commit_message"] == "again"


@pytest.mark.parametrize(
    "condition", ["source.v > 1 and source.v < 0", "target.s = 'a' and target.s = 'b'", "true or source.v > target.v"]
)
def test_a_condition_may_name_columns_that_make_no_difference(uri: str, condition: str) -> None:
    merge_both(uri, ROWS, SOURCE, "id", lambda m: m.when_matched_update_all(condition))


def _no_rows() -> dict[str, Any]:
    return {
        "table": pa.table({"id": [], "x": []}),
        "batch": pa.record_batch({"id": pa.array([], pa.float64()), "x": pa.array([], pa.binary())}),
        "pandas": pandas.DataFrame({"id": [], "x": []}),
        "polars": polars.DataFrame({"id": [], "x": []}),
    }


@pytest.mark.parametrize("kind", _no_rows())
def test_a_source_without_rows_has_columns_of_any_types(tmp_path: Path, kind: str) -> None:
    """Empty data frames have types by chance."""
    table = pa.table({"id": [1, 2], "x": ["a", "b"]})
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        dataset: Any = library.write_dataset(table, uri)
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        assert not any(
            merge.execute(_no_rows()[kind])[f"num_{what}_rows"] for what in ("inserted", "updated", "deleted")
        )
        assert library.dataset(uri).to_table() == table
        library.dataset(uri).merge_insert("id").when_not_matched_by_source_delete("id = 2").execute(_no_rows()[kind])
        assert library.dataset(uri).to_table() == table.slice(0, 1)
    # A stream may have rows yet.
    reader = pa.RecordBatchReader.from_batches(_no_rows()["table"].schema, [])
    with pytest.raises(SchemaMismatchError, match="cast it first"):
        esker.dataset(uri).merge_insert("id").when_matched_update_all().execute(reader)
