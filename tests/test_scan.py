"""Scans with the same arguments as pylance's, and the same results."""

from __future__ import annotations

import copy
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker.dataset import ColumnOrdering, ScanStatistics
from esker.exceptions import InvalidArgumentError, UnsupportedError
from tests.samples import people, same

Pair = tuple[esker.LanceDataset, Any]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One table, written by pylance in 2.0 with several fragments, opened by both."""
    uri = str(tmp_path_factory.mktemp("scan") / "table.lance")
    lance.write_dataset(people(5000), uri, data_storage_version="2.0", max_rows_per_file=1300)
    return esker.dataset(uri), lance.dataset(uri)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["id"]},
        {"columns": ["tags", "id", "place"]},
        {"columns": ["place.city", "id"]},
        {"columns": ["place.zip"]},
        {"columns": []},
        {"columns": ["id"], "limit": 7},
        {"columns": ["id"], "offset": 1295, "limit": 10},
        {"columns": ["id"], "offset": 4998},
        {"columns": ["id"], "offset": 9999},
        {"limit": 0},
        {"columns": ["name"], "filter": "id % 1000 = 3"},
        {"filter": "id >= 1290 and id < 1310"},
        {"filter": "score is null", "limit": 5},
        {"filter": "name = 'name-3' or id in (1, 2, 4999)", "columns": ["id", "name"]},
        {"filter": "name like 'name-1%' and score > 100.5", "offset": 10, "limit": 20},
        {"filter": "place.zip = 7", "columns": ["id"]},
        {"filter": "id < 0"},
        {"filter": "not (id > 3)", "columns": ["vector"]},
        {"columns": ["id"], "with_row_id": True},
        {"columns": ["id"], "with_row_address": True, "filter": "id > 4990"},
        {"columns": ["_rowid", "id"], "limit": 3, "offset": 2600},
        {"columns": ["_rowoffset", "id", "_rowaddr"], "offset": 1295, "limit": 10},
        {"columns": ["_rowoffset"], "filter": "id % 700 = 1"},
        {"columns": ["_rowid"], "with_row_id": True, "limit": 3},
        {"columns": ["id"], "filter": "_rowid >= 4294967296 and id < 1310"},
        {"columns": ["id", "_rowid"], "filter": "_rowaddr = 7 or id = 4000"},
        {"columns": [], "with_row_id": True, "limit": 3},
        {"columns": {"twice": "id * 2", "name": "name"}, "limit": 4},
        {"columns": {"number": "id"}, "filter": "id > 4995"},
        {"columns": ["id", "score"], "order_by": ["score"], "limit": 10},
        {"columns": ["name", "id"], "order_by": [("name", False, True), ("id", False, False)], "offset": 3, "limit": 9},
        {"columns": ["id"], "batch_size": 100, "strict_batch_size": True},
        {"columns": ["id"], "fragments": [2, 0]},
        {"columns": ["id"], "fragments": [1], "filter": "id % 2 = 0", "limit": 3},
    ],
    ids=str,
)
def test_a_scan_returns_what_pylance_returns(options: dict[str, Any], pair: Pair) -> None:
    tables = []
    for module, dataset in zip((esker, lance), pair, strict=True):
        chosen = copy.deepcopy(options)
        if "fragments" in chosen:
            chosen["fragments"] = [dataset.get_fragment(number) for number in chosen["fragments"]]
        if chosen.get("order_by") and isinstance(chosen["order_by"][0], tuple):
            chosen["order_by"] = [_ordering(module, *key) for key in chosen["order_by"]]
        tables.append(dataset.scanner(**chosen).to_table())
    ours, theirs = tables
    assert ours.num_rows == theirs.num_rows or not options.get("columns", True)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_pylist() == theirs.to_pylist()


def _ordering(module: Any, name: str, ascending: bool, nulls_first: bool) -> Any:
    from lance.dataset import ColumnOrdering as PeerOrdering

    return (ColumnOrdering if module is esker else PeerOrdering)(name, ascending, nulls_first)


@pytest.mark.parametrize(
    "filter",
    [
        pc.field("id") > 4990,
        (pc.field("id") > 10) & (pc.field("score") < 5.0),
        pc.field("name").isin(["name-3", "name-4"]),
        pc.field("score").is_null(),
        ~(pc.field("id") < 4000) | (pc.field("name") == "name-1"),
    ],
    ids=str,
)
def test_pyarrow_expressions_filter_as_in_pylance(filter: pc.Expression, pair: Pair) -> None:
    ours, theirs = (dataset.to_table(columns=["id"], filter=filter) for dataset in pair)
    same(theirs, ours)
    assert pair[0].count_rows(filter) == pair[1].count_rows(filter)


def test_nested_fields_filter_where_pylance_cannot_yet(pair: Pair) -> None:
    expression = pc.field("place", "zip") == 7
    same(pair[1].to_table(filter="place.zip = 7"), pair[0].to_table(filter=expression))


def test_a_sort_key_need_not_be_returned(pair: Pair) -> None:
    table = pair[0].to_table(columns=["name"], order_by=[ColumnOrdering("id", ascending=False)], limit=2)
    assert table.to_pydict() == {"name": ["name-52", "name-51"]}


@pytest.mark.parametrize("filter", ["id > 10", "name is null", "place.city = 'c1' and score > 3"])
def test_count_is_the_same_by_all_ways(filter: str, pair: Pair) -> None:
    ours, theirs = pair
    expected = theirs.count_rows(filter)
    assert ours.count_rows(filter) == ours.scanner(filter=filter).count_rows() == expected
    assert sum(fragment.count_rows(filter) for fragment in ours.get_fragments()) == expected
    assert ours.scanner(filter=filter, offset=3, limit=10**6).count_rows() == expected - 3


def test_count_without_a_filter_reads_nothing(pair: Pair) -> None:
    dataset = esker.dataset(pair[0].uri)
    dataset.io_stats()
    assert (dataset.count_rows(), len(dataset), dataset.scanner(limit=9).count_rows()) == (5000, 5000, 9)
    assert dataset.io_stats().read_bytes == 0


def test_a_projection_reads_only_its_columns(pair: Pair) -> None:
    dataset = esker.dataset(pair[0].uri)
    dataset.to_table()
    whole = dataset.io_stats().read_bytes
    dataset.to_table(columns=["id"])
    assert dataset.io_stats().read_bytes < whole / 2


def test_batches_come_as_a_stream(pair: Pair) -> None:
    dataset = pair[0]
    batches = list(dataset.to_batches(columns=["id"], batch_size=500))
    assert max(batch.num_rows for batch in batches) <= 500
    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(5000))
    reader = dataset.scanner(columns=["id"], batch_size=64).to_reader()
    assert reader.read_next_batch()["id"].to_pylist() == list(range(64))
    reader.close()
    small = list(dataset.to_batches(columns=["vector"], batch_size_bytes=1200))
    assert max(batch.nbytes for batch in small) <= 1800
    assert sum(batch.num_rows for batch in small) == 5000


def test_an_unfinished_scan_leaves_the_dataset_usable(pair: Pair) -> None:
    for _ in range(20):
        next(iter(pair[0].to_batches(batch_size=10)))
    assert pair[0].head(1)["id"].to_pylist() == [0]


def test_head_slice_and_pandas(pair: Pair) -> None:
    ours, theirs = pair
    same(theirs.head(17), ours.head(17))
    same(theirs.head(17, columns=["id"], offset=4), ours.head(17, columns=["id"], offset=4))
    same(theirs.slice(1290, 1310), ours.slice(1290, 1310))
    assert ours.slice(5, 5).num_rows == 0
    same(ours.head(9), ours.scanner().head(9))
    assert ours.to_pandas(columns=["id", "name"]).equals(theirs.to_pandas(columns=["id", "name"]))
    for start, end in ((-1, 3), (4, 3)):
        with pytest.raises(InvalidArgumentError, match="start"):
            ours.slice(start, end)


def test_a_sample_has_rows_of_the_table_each_once(pair: Pair) -> None:
    sample = pair[0].sample(100, columns=["id"])["id"].to_pylist()
    assert len(set(sample)) == 100
    ordered = pair[0].sample(100, columns=["id"], randomize_order=False)["id"].to_pylist()
    assert ordered == sorted(ordered)
    with pytest.raises(InvalidArgumentError, match="at most 5000"):
        pair[0].sample(5001)


def test_fragments_scan_by_themselves(pair: Pair) -> None:
    ours, theirs = (dataset.get_fragments()[1] for dataset in pair)
    same(
        theirs.to_table(columns=["id", "name"], filter="id < 1310"),
        ours.to_table(columns=["id", "name"], filter="id < 1310"),
    )
    same(theirs.head(5), ours.head(5))
    assert pa.Table.from_batches(ours.to_batches(columns=["id"])) == theirs.to_table(columns=["id"])
    assert (ours.fragment_id, ours.physical_rows, ours.num_deletions, ours.count_rows()) == (1, 1300, 0, 1300)
    assert [file.path for file in ours.data_files()] == [file.path for file in theirs.data_files()]
    assert ours.schema == theirs.schema
    assert pair[0].get_fragment(99) is None
    assert list(pair[0].fragment_ids()) == [0, 1, 2, 3]


def test_slices_of_a_fragment_make_up_the_fragment(pair: Pair) -> None:
    fragment = pair[0].get_fragments()[2]
    parts = [
        fragment.to_table(columns=["id"], row_range=(start, min(start + 400, 1300)), filter="id % 3 = 0")
        for start in range(0, 1300, 400)
    ]
    same(fragment.to_table(columns=["id"], filter="id % 3 = 0"), pa.concat_tables(parts).combine_chunks())


def test_default_scan_options_apply_to_every_scan(pair: Pair) -> None:
    options = {"columns": ["id"], "with_row_id": True, "batch_size": 10}
    ours = esker.dataset(pair[0].uri, default_scan_options=options)
    theirs = lance.dataset(pair[0].uri, default_scan_options=options)
    assert ours.schema == theirs.schema
    same(theirs.to_table(limit=5), ours.to_table(limit=5))
    assert ours.to_table(columns=["name"], limit=1).column_names == ["name", "_rowid"]


def test_the_stream_interface_hands_out_all_rows(pair: Pair) -> None:
    same(pair[1].to_table(), pa.table(pair[0]))


def test_plans_say_what_a_scan_does(pair: Pair) -> None:
    scanner = pair[0].scanner(columns=["id"], filter="score > 3", limit=5)
    plan = scanner.explain_plan()
    assert "projection=[id, score]" in plan
    assert "score" in plan
    assert "limit=5" in plan
    assert "rows=5" in scanner.analyze_plan()


def test_scan_statistics_are_reported(pair: Pair) -> None:
    seen: list[ScanStatistics] = []
    assert pair[0].scanner(columns=["id"], scan_stats_callback=seen.append).to_table().num_rows == 5000
    assert (seen[0].rows, seen[0].bytes_read > 0, seen[0].iops > 0) == (5000, True, True)


def test_progress_counts_the_rows_that_have_come(pair: Pair) -> None:
    seen: list[int] = []
    pair[0].to_table(columns=["id"], batch_size=600, progress=seen.append)
    assert seen == sorted(seen)
    assert (seen[-1], len(seen) >= 8) == (5000, True)


def test_hints_of_pylance_are_accepted(pair: Pair) -> None:
    table = pair[0].to_table(
        columns=["id"],
        batch_readahead=4,
        fragment_readahead=2,
        prefilter=True,
        use_stats=False,
        late_materialization=True,
        io_buffer_size=1 << 20,
        scan_in_order=False,
    )
    assert sorted(table["id"].to_pylist()) == list(range(5000))


@pytest.mark.parametrize(
    "options",
    [
        {"nearest": {"column": "vector", "q": [1.0, 2.0, 3.0]}},
        {"full_text_query": "word"},
        {"index_segments": ["x"]},
        {"row_addr_allowlist": b""},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_not_supported_is_refused_and_never_ignored(options: dict[str, Any], pair: Pair) -> None:
    with pytest.raises(UnsupportedError, match=next(iter(options))):
        pair[0].scanner(**options)


@pytest.mark.parametrize("name", ["create_index", "create_scalar_index"])
def test_methods_that_are_not_there_yet_say_so(name: str, pair: Pair) -> None:
    with pytest.raises(UnsupportedError, match=name):
        getattr(pair[0], name)()


def test_deleted_rows_are_not_seen(uri: str) -> None:
    lance.write_dataset(people(3000), uri, data_storage_version="2.0", max_rows_per_file=1000)
    lance.dataset(uri).delete("id % 3 = 0 and id < 2500")
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    assert ours.count_rows() == theirs.count_rows()
    same(theirs.to_table(), ours.to_table())
    same(theirs.to_table(columns=["id"], offset=600, limit=100), ours.to_table(columns=["id"], offset=600, limit=100))
    same(theirs.take([0, 700, 1500]), ours.take([0, 700, 1500]))
    assert ours.count_rows("id > 100") == theirs.count_rows("id > 100")
    cases: list[dict[str, Any]] = [
        {},
        {"filter": "id > 1500", "columns": ["id"]},
        {"limit": 4, "offset": 998, "with_row_address": True},
    ]
    for options in cases:
        options |= {"include_deleted_rows": True, "with_row_id": True}
        same(theirs.to_table(**options), ours.to_table(**options))
        assert ours.scanner(**options).count_rows() == ours.to_table(**options).num_rows
    with pytest.raises(InvalidArgumentError, match="with_row_id"):
        ours.scanner(include_deleted_rows=True)
    assert [f.num_deletions for f in ours.get_fragments()] == [f.num_deletions for f in theirs.get_fragments()]


def test_pyarrow_expressions_filter_beside_lists_of_structs() -> None:
    rows = pa.table(
        {
            "a": [1, 2, 3],
            "points": pa.array([[{"x": 1, "y": "p"}], None, [{"x": 2, "y": "q"}, None]]),
            "s": pa.array([{"n": n, "within": [{"deep": n}], "last": str(n)} for n in range(3)]),
            "b": ["u", "v", "w"],
        }
    )
    dataset = esker.write_dataset(rows, "memory://beside-lists")
    for condition, expected in (
        (pc.field("a") == 2, [2]),
        (pc.field("b") == "w", [3]),
        (pc.field("points").is_null(), [2]),
        (pc.field("s", "last") == "1", [2]),
        ((pc.field("s", "n") > 0) & (pc.field("b") != "w"), [2]),
    ):
        assert dataset.to_table(filter=condition)["a"].to_pylist() == expected
        assert rows.filter(condition)["a"].to_pylist() == expected


@pytest.mark.parametrize("text", ['"name"', '"nothing"', '"place.zip"', "'name'"])
def test_quoted_texts_are_no_columns(text: str, pair: Pair) -> None:
    found = [dataset.to_table(columns={"id": "id", "x": text}, limit=3).to_pydict() for dataset in pair]
    assert found[0] == found[1]
    assert found[0]["x"] == [text.strip("\"'")] * 3
    assert pair[0].take([1], columns={"x": text})["x"].to_pylist() == [text.strip("\"'")]


def test_what_backticks_quote_is_one_name(pair: Pair) -> None:
    assert pair[0].to_table(columns={"x": "`id`"}, limit=1) == pair[1].to_table(columns={"x": "`id`"}, limit=1)
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        pair[0].to_table(columns={"x": "`place.zip`"})
    with pytest.raises(ValueError, match="place.zip"):
        pair[1].to_table(columns={"x": "`place.zip`"})


@pytest.mark.parametrize(
    "columns", [["_rowid", "id"], ["_rowaddr", "_rowid", "id"], ["id", "_rowid", "name"], ["_rowid"]]
)
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("addresses", [False, True])
def test_system_columns_that_are_asked_for_twice_come_last(
    columns: list[str], ids: bool, addresses: bool, pair: Pair
) -> None:
    options: dict[str, Any] = {"with_row_id": ids, "with_row_address": addresses, "limit": 3}
    found, expected = (dataset.to_table(columns, **options) for dataset in pair)
    assert found == expected
    assert pair[0].scanner(columns, **options).projected_schema.names == expected.column_names


def test_a_row_range_behind_the_end_is_empty(uri: str) -> None:
    # A panic here would end the process.
    dataset = esker.write_dataset(pa.table({"id": range(10)}), uri, max_rows_per_file=5)
    dataset.delete("id = 3")
    for start, end in ((20, 30), (5, 5), (5, 9)):
        for fragments in (None, dataset.get_fragments()[:1]):
            found = dataset.to_table(row_range=(start, end), fragments=fragments)
            assert found.num_rows == 0
    assert dataset.to_table(row_range=(2, 9), fragments=dataset.get_fragments()[:1])["id"].to_pylist() == [2, 4]
