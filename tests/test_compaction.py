"""Compaction: what it rewrites and what it leaves, beside pylance; options, plans, tasks and results."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.optimize
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.lance.compaction.planning import GROWTH
from esker.optimize import Compaction, CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _written(uri: str, sizes: list[int], **options: Any) -> esker.LanceDataset:
    """A table with a fragment of each size."""
    start = 0
    for number, size in enumerate(sizes):
        esker.write_dataset(_ids(start, size), uri, mode="append" if number else "create", **options)
        start += size
    return esker.dataset(uri)


def _values(dataset: Any) -> list[int]:
    return dataset.to_table(columns=["id"])["id"].to_pylist()


def test_small_fragments_become_one(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(_ids(0, 1000), uri, max_rows_per_file=100)
    metrics = dataset.optimize.compact_files(
        target_rows_per_fragment=1000, materialize_deletions=False, num_threads=1, max_source_rows=100_000
    )
    assert metrics == CompactionMetrics(10, 1, 10, 1)
    assert (
        repr(metrics) == "CompactionMetrics(fragments_removed=10, fragments_added=1, files_removed=10, files_added=1)"
    )
    # As in pylance one version reserves ids, and one moves the rows.
    assert dataset.version == 3
    made = [dataset.read_transaction(version) for version in (2, 3)]
    assert [one.operation.name for one in made if one is not None] == ["ReserveFragments", "Rewrite"]
    assert _values(dataset) == list(range(1000)) == _values(lance.dataset(uri))


def test_a_table_with_nothing_to_do_gets_no_version() -> None:
    for number, sizes in enumerate([[0], [50], [100, 100], [500, 10]]):
        dataset = _written(f"memory://compact-nothing-{number}", sizes)
        version = dataset.version
        assert dataset.optimize.compact_files(target_rows_per_fragment=100) == CompactionMetrics()
        assert dataset.version == version


CASES: dict[str, tuple[list[int], str | None, dict[str, Any]]] = {
    "all": ([10] * 7, None, {}),
    "by rows": ([10] * 9, None, {"target_rows_per_fragment": 30}),
    "rest": ([10] * 8, None, {"target_rows_per_fragment": 30}),
    "not neighbours": ([10, 100, 10, 100, 10], None, {"target_rows_per_fragment": 50}),
    "two runs": ([10, 10, 100, 10, 10], None, {"target_rows_per_fragment": 50}),
    "excluded": ([10] * 6, None, {"excluded_fragment_ids": [2, 2, 99], "target_rows_per_fragment": 20}),
    "deleted": ([100, 100, 100], "id % 5 = 0", {"target_rows_per_fragment": 100}),
    "few deleted": ([100, 100, 100], "id = 5", {"target_rows_per_fragment": 100}),
    "threshold": ([100, 100], "id < 10", {"target_rows_per_fragment": 100, "materialize_deletions_threshold": 0.05}),
    "at the threshold": ([100, 100], "id < 10", {"target_rows_per_fragment": 100}),
    "kept": ([100, 100], "id < 60", {"target_rows_per_fragment": 100, "materialize_deletions": False}),
    "one of them": ([100, 100, 100], "id >= 120 and id < 180", {"target_rows_per_fragment": 100}),
    "some fragments": ([10] * 9, None, {"target_rows_per_fragment": 30, "max_source_fragments": 6}),
    "some rows": ([10] * 9, None, {"target_rows_per_fragment": 30, "max_source_rows": 59}),
    "no byte": ([10] * 9, None, {"target_rows_per_fragment": 30, "max_source_bytes": 1}),
    "no target": ([10] * 3, None, {"target_rows_per_fragment": 0}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fragments_that_pylance_would_take(case: str, tmp_path: Path) -> None:
    sizes, deleted, options = CASES[case]
    uri = str(tmp_path / "t")
    dataset = _written(uri, sizes)
    if deleted:
        dataset.delete(deleted)
    ours = Compaction.plan(dataset, options)
    theirs = lance.optimize.Compaction.plan(lance.dataset(uri), options)

    def groups(plan: Any) -> list[list[int]]:
        return [[fragment.id for fragment in task.fragments] for task in plan.tasks]

    assert groups(ours) == groups(theirs)
    assert (ours.read_version, ours.num_tasks(), repr(ours)) == (theirs.read_version, theirs.num_tasks(), repr(theirs))
    expected = sorted(_values(dataset))
    metrics = dataset.optimize.compact_files(**options)
    copy = lance.dataset(uri, version=ours.read_version)
    copy.restore()
    theirs_done = copy.optimize.compact_files(**options)
    if case == "two runs":
        # What two runs became are neighbours: pylance leaves them to a second call.
        assert metrics.fragments_removed == theirs_done.fragments_removed + 2
    else:
        assert repr(theirs_done) == repr(metrics)
    assert sorted(_values(dataset)) == sorted(_values(copy)) == expected


def _indexed(uri: str, covered: list[int]) -> None:
    lance.dataset(uri).create_scalar_index("id", "BTREE", fragment_ids=covered) if covered else None


def test_groups_never_mix_what_an_index_covers_with_what_it_does_not(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _written(uri, [10, 10])
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    esker.write_dataset(_ids(20, 20), uri, mode="append", max_rows_per_file=10)
    dataset = esker.dataset(uri)
    plan = Compaction.plan(dataset, {})
    assert [[one.id for one in task.fragments] for task in plan.tasks] == [[0, 1], [2, 3]]
    theirs = lance.optimize.Compaction.plan(lance.dataset(uri), {})
    assert [[one.id for one in task.fragments] for task in theirs.tasks] == [[0, 1], [2, 3]]
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 2
    found = lance.dataset(uri)
    for value in range(40):
        assert found.to_table(filter=f"id = {value}")["id"].to_pylist() == [value]


@pytest.mark.parametrize("seed", range(12))
def test_a_second_run_finds_nothing_to_do(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([1, 2, 5, 10, 30, 80, 300]) for _ in range(chance.randrange(2, 14))]
    dataset = _written(f"memory://compact-twice-{seed}", sizes, durable=False)
    if chance.random() < 0.7:
        dataset.delete(f"id % {chance.choice([2, 3, 7, 20])} = 0", durable=False)
    expected = _values(dataset)
    options: dict[str, Any] = {"target_rows_per_fragment": chance.choice([20, 100, 1000])}
    dataset.optimize.compact_files(**options)
    version, ids = dataset.version, dataset.fragment_ids()
    assert sorted(_values(dataset)) == expected
    assert ids == sorted(ids)
    assert dataset.optimize.compact_files(**options) == CompactionMetrics()
    assert dataset.version == version


def test_a_second_run_with_a_size_of_files_finds_nothing_to_do(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(range(4 * 1024 * 1024)), 1024)})
    dataset = esker.write_dataset(rows, uri, max_rows_per_file=2048)
    options: dict[str, Any] = {"target_rows_per_fragment": 100 * 1024, "max_bytes_per_file": 1000}
    metrics = dataset.optimize.compact_files(**options)
    assert metrics.fragments_removed == 2
    assert metrics.fragments_added > 2
    assert dataset.optimize.compact_files(**options) == CompactionMetrics()
    # Small ones that together fill a file are joined, and then left.
    uri = str(tmp_path / "small")
    half = pa.table({"v": pa.array([bytes(random.Random(i).randbytes(1000)) for i in range(2000)])})
    for _ in range(7):
        dataset = esker.write_dataset(half, uri, mode="append")
    options = {"max_bytes_per_file": 5_000_000}
    metrics = dataset.optimize.compact_files(**options)
    assert metrics.fragments_removed >= 7
    assert metrics.fragments_added < 7
    assert dataset.optimize.compact_files(**options) == CompactionMetrics()
    assert dataset.count_rows() == 14_000


@pytest.mark.parametrize("by_config", [False, True])
def test_files_of_few_rows_are_joined_however_small_files_may_be(by_config: bool, tmp_path: Path) -> None:
    for module in (esker, lance):
        dataset: Any = module.write_dataset(_ids(0, 100), str(tmp_path / module.__name__), max_rows_per_file=10)
        options: dict[str, Any] = {} if by_config else {"max_bytes_per_file": 200}
        if by_config:
            dataset.update_config({"lance.compaction.max_bytes_per_file": "200"})
        metrics = dataset.optimize.compact_files(**options)
        assert (metrics.fragments_removed, metrics.fragments_added) == (10, 1)
        assert _values(dataset) == list(range(100))
        assert dataset.optimize.compact_files(**options).fragments_removed == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_second_run_finds_nothing_to_do_with_any_size_of_files(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([3, 40, 700, 1023, 1024, 3000]) for _ in range(12)]
    options: dict[str, Any] = {"max_bytes_per_file": chance.choice([100, 1000, 5000, 20_000])}
    dataset = _written(f"memory://compact-small-files-{seed}", sizes, durable=False)
    dataset.optimize.compact_files(**options)
    assert dataset.optimize.compact_files(**options) == CompactionMetrics()
    assert sorted(_values(dataset)) == list(range(sum(sizes)))


@pytest.mark.parametrize("rows", [1, 3])
def test_small_appends_rewrite_each_row_a_logarithmic_number_of_times(rows: int) -> None:
    """A compaction after each append: how often each row was rewritten in the end."""
    uri, appends = f"memory://compact-log-{rows}", 150
    rewritten = most = 0
    for number in range(appends):
        dataset = esker.write_dataset(_ids(number * rows, rows), uri, mode="append", durable=False)
        plan = Compaction.plan(dataset, {})
        rewritten += sum(fragment.num_rows for task in plan.tasks for fragment in task.fragments)
        dataset.optimize.compact_files()
        most = max(most, len(dataset.get_fragments()))
    assert _values(dataset) == list(range(appends * rows))
    # Each time its fragment grows by half: log(150) / log(1.5) is 12.4. pylance rewrites each row 75 times on average.
    assert rewritten / (appends * rows) <= 13
    assert most <= 9
    assert GROWTH == 1.5


def test_plans_tasks_and_results_as_json_and_pickles(tmp_path: Path) -> None:
    dataset = esker.write_dataset(_ids(0, 800), str(tmp_path / "t"), max_rows_per_file=200)
    fragments = dataset.get_fragments()
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 400, "num_threads": 1, "excluded_fragment_ids": None})
    assert (plan.read_version, plan.num_tasks()) == (1, 2)
    assert plan.tasks[0].fragments == [one.metadata for one in fragments[0:2]]
    assert plan.tasks[1].fragments == [one.metadata for one in fragments[2:4]]
    assert repr(plan) == "CompactionPlan(read_version=1, tasks=<2 compaction tasks>)"
    assert repr(plan.tasks[0]).startswith("CompactionTask(read_version=1, fragments=[FragmentMetadata(id=0, ")
    result = plan.tasks[0].execute(dataset)
    assert (result.read_version, result.metrics) == (1, CompactionMetrics(2, 1, 2, 1))
    assert result.original_fragments == plan.tasks[0].fragments
    assert [one.physical_rows for one in result.new_fragments] == [400]
    assert repr(result).startswith("RewriteResult(read_version=1, new_fragments=[FragmentMetadata(")
    for one, other in [(plan, Compaction.plan(dataset, {})), (plan.tasks[0], plan.tasks[1])]:
        assert one != other
    assert result != plan.tasks[1].execute(dataset)
    for value in (plan, plan.tasks[0], result):
        assert pickle.loads(pickle.dumps(value)) == value
        assert type(value).from_json(value.json()) == value
        assert isinstance(json.loads(value.json()), dict)
        with pytest.raises(TypeError):
            hash(value)
    # They hold fragments, not the table.
    assert len(pickle.dumps(plan.tasks[0])) < 2000
    assert Compaction.commit(dataset, [pickle.loads(pickle.dumps(result))]) == CompactionMetrics(2, 1, 2, 1)
    assert dataset.version == 3
    assert sorted(_values(dataset)) == list(range(800))


@pytest.mark.parametrize("made", [CompactionPlan, CompactionTask, RewriteResult])
@pytest.mark.parametrize("text", ["{}", "x", "[]"])
def test_json_of_something_else(made: Any, text: str) -> None:
    with pytest.raises(ValueError, match=f"Could not load {made.__name__} due to error"):
        made.from_json(text)


def _compact(**options: Any) -> Callable[[esker.LanceDataset], object]:
    return lambda dataset: Compaction.plan(dataset, options)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"foo": 1}, ValueError, "Invalid compaction option: foo"),
        ({"target_rows_per_fragment": "a"}, TypeError, "integer"),
        ({"compaction_mode": "x"}, ValueError, 'Invalid compaction mode "x"'),
        ({"max_source_fragments": 0}, OSError, "max_source_fragments must be greater than 0"),
        ({"max_source_rows": 0}, OSError, "max_source_rows must be greater than 0"),
        ({"max_source_bytes": 0}, OSError, "max_source_bytes must be greater than 0"),
        ({"data_storage_version": "legacy"}, OSError, "V1 and V2 storage versions cannot be mixed"),
        ({"materialize_deletions": 1}, TypeError, "materialize_deletions|bool"),
    ],
)
def test_options_that_pylance_refuses(
    options: dict[str, Any], error: type[Exception], told: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    dataset = _written(uri, [1])
    with pytest.raises(error, match=told):
        Compaction.plan(dataset, options)
    with pytest.raises(error, match=told):
        lance.optimize.Compaction.plan(lance.dataset(uri), options)


def test_no_rows_at_a_time_are_refused_as_in_pylance(tmp_path: Path) -> None:
    dataset = _written(str(tmp_path / "t"), [1, 1])
    for it in (dataset, lance.dataset(dataset.uri)):
        with pytest.raises(OSError, match="batch_size"):
            it.optimize.compact_files(batch_size=0)
    with pytest.raises(InvalidArgumentError, match="expected batch_size > 0, found 0"):
        Compaction.plan(dataset, {"batch_size": 0})


@pytest.mark.parametrize(
    "options",
    [
        {"target_rows_per_fragment": -1},
        {"memory_limit": 0},
        {"data_storage_version": "9"},
        {"excluded_fragment_ids": 5},
        {"materialize_deletions_threshold": "much"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises((InvalidArgumentError, UnsupportedError, TypeError, ValueError)):
        _compact(**options)(_written(str(tmp_path / "t"), [1]))


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("mode", ["reencode", "try_binary_copy", "force_binary_copy"])
@pytest.mark.parametrize("deleted", [False, True])
def test_modes_as_in_pylance(version: str, mode: str, deleted: bool, tmp_path: Path) -> None:
    found: list[str] = []
    for library, compaction in ((esker, Compaction), (lance, lance.optimize.Compaction)):
        uri = str(tmp_path / library.__name__)
        _written(uri, [10] * 3, data_storage_version=version)
        dataset = library.dataset(uri)
        if deleted:
            dataset.delete("id = 3")
        for options in ({}, {"data_storage_version": "2.1"}):
            try:
                plan = compaction.plan(dataset, {"compaction_mode": mode, **options})
                found.append(repr([task.execute(dataset).metrics for task in plan.tasks]))
            except OSError as error:
                told = ("binary copy is not supported", "binary copy target is 2.1, but data file", "cannot be mixed")
                found.append(next(part for part in told if part in str(error)))
        assert sorted(_values(dataset)) == [one for one in range(30) if one != 3 or not deleted]
    assert found[:2] == found[2:]


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("target_rows_per_fragment", "abc", r"'abc' \(expected a non-negative integer\)"),
        ("defer_index_remap", "yes", r"'yes' \(expected 'true' or 'false'\)"),
        ("compaction_mode", "x", 'Invalid compaction mode "x"'),
        ("data_storage_version", "9", "lance.compaction.data_storage_version: '9'"),
        ("io_buffer_size", "x", "lance.compaction.io_buffer_size: 'x'"),
    ],
)
def test_values_of_the_config_that_pylance_refuses(key: str, text: str, told: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _written(uri, [10, 10])
    dataset.update_config({f"lance.compaction.{key}": text})
    with pytest.raises(ValueError, match=told):
        dataset.optimize.compact_files()
    with pytest.raises(ValueError, match=told):
        lance.dataset(uri).optimize.compact_files()


def test_defaults_of_the_config(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _written(uri, [10] * 4)
    dataset.update_config(
        {
            "lance.compaction.target_rows_per_fragment": "20",
            "lance.compaction.materialize_deletions": "TRUE",
            "lance.compaction.num_threads": "many",
            "lance.compaction.unheard_of": "1",
        }
    )
    theirs = lance.optimize.Compaction.plan(lance.dataset(uri), {})
    assert Compaction.plan(dataset, {}).num_tasks() == theirs.num_tasks() == 2
    # What is given goes before it.
    assert Compaction.plan(dataset, {"target_rows_per_fragment": 100}).num_tasks() == 1
    dataset.update_config({"lance.compaction.max_source_fragments": "2"})
    assert dataset.optimize.compact_files() == CompactionMetrics(2, 1, 2, 1)


def test_a_dataset_of_an_old_version_compacts_the_newest() -> None:
    uri = "memory://compact-old-handle"
    old = _written(uri, [10, 10])
    esker.write_dataset(_ids(20, 10), uri, mode="append")
    assert old.optimize.compact_files().fragments_removed == 3
    assert _values(old) == list(range(30))


def test_a_detached_version_is_refused() -> None:
    uri = "memory://compact-detached"
    dataset = _written(uri, [10, 10])
    operation = esker.LanceOperation.Append([])
    detached = esker.LanceDataset.commit(uri, operation, read_version=dataset.version, detached=True)
    with pytest.raises(InvalidArgumentError, match="detached version"):
        detached.optimize.compact_files()
