"""Operations that were prepared before others changed the table, committed by either library: the same rows result.

An operation is committed to a copy first, by pylance; then others change the table, and it comes late. Where both
libraries take it, rows, schema and row ids are the same; what pylance answers from its indices is what it finds without
them, and its `validate` finds nothing.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CommitConflictError

Verb = Callable[[random.Random, lance.LanceDataset], object]


def _rows(rng: random.Random, ids: Any) -> pa.Table:
    columns = {
        "k": pa.array(ids, pa.int64()),
        "a": pa.array([rng.randrange(30) for _ in ids], pa.int64()),
        "t": [rng.choice("xyz") * rng.randrange(1, 4) for _ in ids],
        "s": [{"p": rng.randrange(5), "q": "u"} for _ in ids],
    }
    return pa.table(columns)


def _append(rng: random.Random, dataset: lance.LanceDataset) -> None:
    first = rng.randrange(100, 10_000)
    lance.write_dataset(_rows(rng, range(first, first + 6)), dataset.uri, mode="append", max_rows_per_file=4)


def _upsert(rng: random.Random, dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(_rows(rng, rng.sample(range(25), 7)))


def _in_place(rng: random.Random, dataset: lance.LanceDataset, kind: str) -> None:
    fragments = dataset.get_fragments()
    chosen = rng.choice(fragments)
    keys = chosen.to_table(columns=["k"])["k"].to_pylist()
    new = _rows(rng, rng.sample(keys, min(3, len(keys)))).select(["k", rng.choice(["a", "t"])])
    changed, fields = chosen.update_columns(new, left_on="k", right_on="k")
    operation: Any = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    if kind == "merge":
        all_of_them = [changed if one.fragment_id == chosen.fragment_id else one.metadata for one in fragments]
        operation = lance.LanceOperation.Merge(all_of_them, dataset.lance_schema)
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def _compact(rng: random.Random, dataset: lance.LanceDataset) -> None:
    size = rng.choice([8, 100])
    dataset.optimize.compact_files(target_rows_per_fragment=size, materialize_deletions_threshold=0)


VERBS: dict[str, Verb] = {
    "append": _append,
    "delete": lambda rng, dataset: dataset.delete(f"k % {rng.randrange(2, 7)} = {rng.randrange(2)}"),
    "update": lambda rng, dataset: dataset.update({"a": "a + 100"}, where=f"k % {rng.randrange(2, 7)} = 0"),
    "upsert": _upsert,
    "in place": lambda rng, dataset: _in_place(rng, dataset, "update"),
    "in place, by a merge": lambda rng, dataset: _in_place(rng, dataset, "merge"),
    "add": lambda rng, dataset: dataset.add_columns({f"u{rng.randrange(2)}": "k + 1"}),
    "drop": lambda rng, dataset: dataset.drop_columns([rng.choice(["a", "t", "s"])]),
    "cast": lambda rng, dataset: dataset.alter_columns({"path": "a", "data_type": pa.int32()}),
    "rename": lambda rng, dataset: dataset.alter_columns({"path": "t", "name": "tt"}),
    "require": lambda rng, dataset: dataset.alter_columns({"path": "a", "nullable": False}),
    "compact": _compact,
    "index": lambda rng, dataset: dataset.create_scalar_index(
        rng.choice(["k", "a", "t"]), rng.choice(["BTREE", "BITMAP", "ZONEMAP"])
    ),
    "configure": lambda rng, dataset: dataset.update_config({"x": str(rng.randrange(3))}),
    "overwrite": lambda rng, dataset: lance.write_dataset(_rows(rng, range(500, 505)), dataset.uri, mode="overwrite"),
    "restore": lambda rng, dataset: dataset.checkout_version(1).restore(),
}
STRICTER = {("append", "cast"), ("append", "drop"), ("index", "cast"), ("index", "drop"), ("index", "compact")}
"""What esker refuses and pylance takes: rows that would be nulls, indices on what is gone or rows that moved."""


def _check(place: Path) -> dict[str, Any]:
    """What both libraries find, after pylance has found the same with its indices as without them."""
    dataset = lance.dataset(str(place))
    dataset.validate()
    table = dataset.to_table(with_row_id=dataset.has_stable_row_ids)
    rows = sorted(map(str, table.to_pylist()))
    ours = esker.dataset(str(place)).to_table(with_row_id=dataset.has_stable_row_ids)
    assert sorted(map(str, ours.to_pylist())) == rows
    wanted = {"a": ["= 3", "= 7", "= 103", "IS NULL"], "k": ["= 3", ">= 500"], "t": ["= 'x'"]}
    for column, conditions in wanted.items():
        for condition in conditions if column in dataset.schema.names else []:
            answers = [
                sorted(map(str, dataset.to_table(filter=f"{column} {condition}", use_scalar_index=use).to_pylist()))
                for use in (True, False)
            ]
            assert answers[0] == answers[1], f"{column} {condition}"
    return {"rows": rows, "schema": dataset.schema}


def _try(verb: str, rng: random.Random, place: Path) -> bool:
    before = lance.dataset(str(place)).version
    with suppress(Exception):
        VERBS[verb](rng, lance.dataset(str(place)))
    return bool(lance.dataset(str(place)).version > before)


# A compaction reserves ids of fragments by a version of its own.
@pytest.mark.parametrize("late", [verb for verb in VERBS if verb != "compact"])
@pytest.mark.parametrize("seed", range(6))
def test_an_operation_that_comes_late_does_what_it_does_by_pylance(tmp_path: Path, late: str, seed: int) -> None:
    rng = random.Random(f"{late} {seed}")
    table, copy = tmp_path / "t", tmp_path / "copy"
    options: dict[str, Any] = {
        "enable_stable_row_ids": seed % 2 == 0,
        "data_storage_version": ["2.0", "2.1", "2.2"][seed % 3],
    }
    lance.write_dataset(_rows(rng, range(20)), str(table), max_rows_per_file=6, **options)
    for verb in rng.choices(["delete", "append", "index", "compact", "add"], k=rng.randrange(3)):
        _try(verb, rng, table)
    read = lance.dataset(str(table)).version
    shutil.copytree(table, copy)
    for _ in range(20):
        if _try(late, rng, copy):
            break
        # It had nothing to do, or could not: in another state it has and can.
        shutil.rmtree(copy)
        _try(rng.choice(["delete", "append"]), rng, table)
        read = lance.dataset(str(table)).version
        shutil.copytree(table, copy)
    else:
        pytest.fail(f"{late} did nothing, whatever the table was")
    for folder in ("data", "_indices", "_deletions", "_transactions"):
        if (copy / folder).is_dir():
            shutil.copytree(copy / folder, table / folder, dirs_exist_ok=True)
    others = [verb for verb in rng.choices(list(VERBS), k=rng.randrange(1, 4)) if _try(verb, rng, table)]
    found: dict[str, dict[str, Any] | None] = {}
    for name, module in {"esker": esker, "pylance": lance}.items():
        place = tmp_path / name
        shutil.copytree(table, place)
        library: Any = module
        transaction = library.dataset(str(copy)).read_transaction(read + 1)
        try:
            library.LanceDataset.commit(str(place), transaction.operation, read_version=read)
        except (CommitConflictError, OSError):
            found[name] = None
            continue
        found[name] = (
            _check(place)
            if name == "esker"
            else {
                "rows": sorted(
                    map(
                        str,
                        lance.dataset(str(place)).to_table(with_row_id=options["enable_stable_row_ids"]).to_pylist(),
                    )
                ),
                "schema": lance.dataset(str(place)).schema,
            }
        )
    told = f"{late} after {others}"
    if found["esker"] is not None and found["pylance"] is not None:
        assert found["esker"] == found["pylance"], told
    elif found["esker"] is None and found["pylance"] is not None:
        assert any((late, verb) in STRICTER for verb in others), told
