"""Random tables, sources and clauses: the same rows and the same counts as pylance's, whatever the memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from tests.merging import multiset, pair, same_rows
from tests.rounds import rounds

IDS = st.one_of(st.none(), st.integers(0, 12))
NAMES = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab"]))
VALUES = st.integers(-5, 5)
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int32()), ("w", pa.list_(pa.int32()))])
CONDITIONS = [
    None,
    "source.v > target.v",
    "source.id IS NULL OR target.v < 0",
    "target.w IS NULL",
    "source.name = 'a' AND source.v <> target.v",
]
DELETES = [None, "v > 0", "name = 'a' OR w IS NULL", "id IN (1, 2, 3)"]


def tables(size: int) -> st.SearchStrategy[pa.Table]:
    """Rows of `SCHEMA`, keys among few."""
    lists = st.one_of(st.none(), st.lists(VALUES, max_size=2))
    row = st.fixed_dictionaries({"id": IDS, "name": NAMES, "v": VALUES, "w": lists})
    return st.lists(row, max_size=size).map(lambda rows: pa.Table.from_pylist(rows, schema=SCHEMA))


@st.composite
def clauses(draw: st.DrawFn, full: bool) -> list[tuple[str, list[Any]]]:
    """Calls of a builder's methods that change something."""
    matched = draw(st.sampled_from(["keep", "update", "update", "update", "delete"]))
    calls: list[tuple[str, list[Any]]] = []
    if matched == "update":
        condition = draw(st.sampled_from(CONDITIONS if full else [None]))
        calls.append(("when_matched_update_all", [condition]))
    elif matched == "delete":
        calls.append(("when_matched_delete", []))
    if draw(st.booleans()) or not calls:
        calls.append(("when_not_matched_insert_all", []))
    # pylance 14 cannot plan one delete beside the other.
    if matched != "delete" and draw(st.booleans()):
        calls.append(("when_not_matched_by_source_delete", [draw(st.sampled_from(DELETES))]))
    return calls


def _merge(dataset: Any, on: list[str], calls: list[tuple[str, list[Any]]]) -> Any:
    merge = dataset.merge_insert(on)
    for name, arguments in calls:
        getattr(merge, name)(*arguments)
    return merge


@settings(max_examples=rounds(60))
@given(st.data())
def test_any_merge_makes_what_pylances_makes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    uri = str(tmp_path_factory.mktemp("merge") / "table")
    on = data.draw(st.sampled_from([["id"], ["id", "name"], ["name", "id"], ["v"]]))
    columns = data.draw(st.sampled_from([SCHEMA.names, SCHEMA.names, ["id", "name", "v"], ["v", "name", "id"]]))
    calls = data.draw(clauses(full=True))
    table, source = data.draw(tables(25)), data.draw(tables(12)).select(columns)
    stable, rows = data.draw(st.booleans()), data.draw(st.sampled_from([3, 10, 100]))
    ours, theirs = pair(uri, table, enable_stable_row_ids=stable, max_rows_per_file=rows)
    if data.draw(st.booleans()) and table.num_rows > 3:
        assert ours.delete("v = 1") == theirs.delete("v = 1")
    try:
        expected = _merge(theirs, on, calls).execute(source)
    except OSError as error:
        assert "Ambiguous merge inserts" in str(error)  # noqa: PT017
        with pytest.raises(ValueError, match="ambiguous merge"):
            _merge(ours, on, calls).execute(source)
        same_rows(ours, theirs)
        return
    assert _merge(ours, on, calls).execute(source) == expected
    same_rows(ours, theirs)


@settings(max_examples=40)
@given(st.data())
def test_what_does_not_fit_in_memory_is_merged_alike(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """With hardly any memory all goes through files, in as many parts as it takes."""
    folder = tmp_path_factory.mktemp("parts")
    calls = data.draw(clauses(full=True))
    table, source = data.draw(tables(25)), data.draw(tables(12))
    stable = data.draw(st.booleans())
    outcomes = []
    for limit in (1, 4000, 1 << 20):
        dataset = esker.write_dataset(
            table, str(folder / str(limit)), enable_stable_row_ids=stable, max_rows_per_file=7, durable=False
        )
        merge = _merge(dataset, ["id", "name"], calls).memory_limit(limit)
        try:
            counts = merge.execute(source.to_reader(max_chunksize=3))
        except ValueError as error:
            counts = str(error)
        rows = dataset.to_table(columns=[*SCHEMA.names, "_row_created_at_version"] if stable else None)
        outcomes.append((counts if isinstance(counts, dict) else counts[:20], multiset(rows), dataset.version))
    assert outcomes[0] == outcomes[1] == outcomes[2]
