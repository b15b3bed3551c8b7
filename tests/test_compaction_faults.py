"""Compaction over a store that fails at every operation, under Ctrl-C at every call, and killed.

Whatever happens: the rows are those that were there, what was reported as done is done, nothing that a version needs is
gone, and the next compaction goes on from there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker._native.store import Store
from esker.exceptions import CommitConflictError, CommitStateUnknownError, EskerError
from esker.optimize import Compaction, RewriteResult
from esker.store import stores
from tests.faulty import FAULTS, Faulty
from tests.interrupts import Interrupt
from tests.leftovers import check_leftovers, leftovers
from tests.rounds import rounds


def _prepare(uri: str) -> list[int]:
    """Rows in four fragments, some of them deleted: two groups to rewrite."""
    rows = pa.table({"id": pa.array(range(40), pa.int64())})
    dataset = esker.write_dataset(rows, uri, max_rows_per_file=10, durable=False)
    dataset.delete("id % 7 = 3", durable=False)
    return sorted(dataset.to_table()["id"].to_pylist())


def _at_once(uri: str) -> None:
    esker.dataset(uri).optimize.compact_files(target_rows_per_fragment=15)


def _in_steps(uri: str) -> None:
    dataset = esker.dataset(uri)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 15})
    Compaction.commit(dataset, [task.execute(dataset) for task in plan.tasks])


WAYS: dict[str, Callable[[str], None]] = {"at once": _at_once, "in steps": _in_steps}


def _compact(uri: str, way: str, plan: str) -> bool:
    """Compacts over the failing store; whether it said that it did."""
    stores_of = f"fault://{uri}"
    try:
        with _planned(plan):
            WAYS[way](stores_of)
    except EskerError:
        return False
    return True


class _planned:
    """Gives the stores that are opened within it a plan of faults."""

    def __init__(self, plan: str) -> None:
        self.plan = plan

    def __enter__(self) -> None:
        self.before = stores._factories["fault"]
        inner = self.before
        stores._factories["fault"] = lambda uri, options, durable: inner(uri, {"plan": self.plan}, durable)

    def __exit__(self, *error: object) -> None:
        stores._factories["fault"] = self.before


def _check(uri: str, expected: list[int], *, reported: bool) -> None:
    dataset = esker.dataset(uri)
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    assert len(dataset.get_fragments()) == 2 or not reported
    check_leftovers(uri)
    dataset = esker.dataset(uri)
    dataset.optimize.compact_files(target_rows_per_fragment=15)
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    assert len(dataset.get_fragments()) == 2
    assert not leftovers(Store(uri))
    if not uri.startswith("memory:"):
        assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_operation_may_be_the_last(way: str, fault: str, faulty: Faulty, tmp_path: Path) -> None:
    uri = str(tmp_path / "counted")
    expected = _prepare(uri)
    assert _compact(uri, way, "")
    operations = [store.operations for store in faulty.made]
    _check(uri, expected, reported=True)
    longest = max(operations, key=len)
    assert len(longest) >= 12, operations
    for number, verb, path in longest:
        uri = str(tmp_path / str(number))
        _prepare(uri)
        reported = _compact(uri, way, f"{fault}@{number}")
        try:
            _check(uri, expected, reported=reported)
        except AssertionError as error:
            raise AssertionError(f"plan {fault}@{number} ({verb} {path}): {error}") from error


@settings(max_examples=rounds(30))
@given(
    st.integers(0, 2**32),
    st.sampled_from([50, 200, 500]),
    st.sampled_from(["lose_reply+fail+delay", "reorder+age", "crash+lose_reply+fail+tear+disk_full+reorder+age"]),
    st.sampled_from(sorted(WAYS)),
)
def test_any_mixture_of_faults_keeps_all_rows(seed: int, per_mille: int, kinds: str, way: str) -> None:
    stores.register("fault", Faulty())
    uri = f"memory://compaction-{seed}-{per_mille}-{kinds}-{way.replace(' ', '-')}"
    for left in Store(uri).list():
        Store(uri).delete(left.path)
    expected = _prepare(uri)
    reported = _compact(uri, way, f"seed:{seed}:{per_mille}:{kinds}")
    _check(uri, expected, reported=reported and kinds != "reorder+age" and "age" not in kinds)


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_at_every_call_of_the_store(way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "counted")
    expected = _prepare(uri)
    with Interrupt() as counted:
        WAYS[way](uri)
    assert len(counted.events) > 20
    for number in range(len(counted.events)):
        uri = str(tmp_path / str(number))
        _prepare(uri)
        try:
            with Interrupt(number):
                WAYS[way](uri)
        except (KeyboardInterrupt, CommitStateUnknownError):
            reported = False
        else:
            reported = True
        _check(uri, expected, reported=reported)


def _results(uri: str) -> list[str]:
    dataset = esker.dataset(uri)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 15})
    return [task.execute(dataset).json() for task in plan.tasks]


def _commit_over(uri: str, plan: str, texts: list[str]) -> None:
    with _planned(plan):
        Compaction.commit(esker.dataset(f"fault://{uri}"), [RewriteResult.from_json(text) for text in texts])


def test_a_commit_whose_outcome_is_unknown_may_be_made_again(faulty: Faulty, tmp_path: Path) -> None:
    """The commit is there; the process that made it saw only errors from then on, and another one repeats it."""
    uri = str(tmp_path / "counted")
    _prepare(uri)
    _commit_over(uri, "", _results(uri))
    operations = max((store.operations for store in faulty.made), key=len)
    put = [number for number, verb, path in operations if verb == "put_if_absent" and path.startswith("_versions/")][-1]
    uri = str(tmp_path / "t")
    expected = _prepare(uri)
    texts = _results(uri)
    with pytest.raises(CommitStateUnknownError):
        _commit_over(uri, ",".join([f"lose_reply@{put}", *(f"fail@{put + i}" for i in range(1, 60))]), texts)
    version = esker.dataset(uri).version
    assert len(esker.dataset(uri).get_fragments()) == 2
    for part in (texts, texts[1:], texts[:1]):
        metrics = Compaction.commit(esker.dataset(uri), [RewriteResult.from_json(text) for text in part])
        assert (metrics.fragments_removed, metrics.lost) == (2 * len(part), ())
    # Ids that were reserved for nothing are all that came of it.
    made = [esker.dataset(uri).read_transaction(it) for it in range(version + 1, esker.dataset(uri).version + 1)]
    assert {one.operation.name for one in made if one is not None} == {"ReserveFragments"}
    _check(uri, expected, reported=True)


@pytest.mark.parametrize("fault", ["lose_reply", "crash_after", "fail"])
def test_two_things_go_wrong_at_once(fault: str, faulty: Faulty, tmp_path: Path) -> None:
    """Others deleted rows of both groups, and rewrote one, since they were read; and the commit's store fails."""

    def prepare(uri: str) -> tuple[list[int], list[str]]:
        _prepare(uri)
        texts = _results(uri)
        esker.dataset(uri).delete("id = 8 or id = 22")
        other = esker.dataset(uri)
        other.optimize.compact_files(excluded_fragment_ids=[0, 1])
        return sorted(other.to_table()["id"].to_pylist()), texts

    uri = str(tmp_path / "counted")
    expected, texts = prepare(uri)
    _commit_over(uri, "", texts)
    assert len(esker.dataset(uri).get_fragments()) == 2
    operations = max((store.operations for store in faulty.made), key=len)
    for number, verb, path in operations:
        uri = str(tmp_path / str(number))
        found, texts = prepare(uri)
        assert found == expected
        reported = True
        try:
            _commit_over(uri, f"{fault}@{number}", texts)
        except EskerError:
            reported = False
        try:
            _check(uri, expected, reported=reported)
        except AssertionError as error:
            raise AssertionError(f"plan {fault}@{number} ({verb} {path}): {error}") from error


KILLED = """
import sys, esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.commit import register
register("fault", lambda uri, options, durable: FaultStore(Store(uri.removeprefix("fault://")), sys.argv[2]).store)
esker.dataset("fault://" + sys.argv[1]).optimize.compact_files(target_rows_per_fragment=15)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_an_operation(when: str, faulty: Faulty, tmp_path: Path) -> None:
    uri = str(tmp_path / "counted")
    expected = _prepare(uri)
    assert _compact(uri, "at once", "")
    operations = max((store.operations for store in faulty.made), key=len)
    for number in range(2, len(operations), 9):
        uri = str(tmp_path / str(number))
        _prepare(uri)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, uri, f"kill_{when}@{number}"], capture_output=True, check=False
        )
        assert done.returncode == -9
        _check(uri, expected, reported=False)


def test_files_of_a_conflict_go_and_those_of_an_unknown_outcome_stay(faulty: Faulty, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _prepare(uri)
    dataset = esker.dataset(uri)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    files = {place for result in results for place in result.files}
    store = Store(uri)
    assert files <= {meta.path for meta in store.list("data/")}
    with pytest.raises(EskerError), _planned("fail@3,fail@4,fail@5,fail@6,fail@7,fail@8,fail@9,fail@10,fail@11"):
        Compaction.commit(esker.dataset(f"fault://{uri}"), results)
    # Whoever has the results may commit them yet.
    assert files <= {meta.path for meta in store.list("data/")}
    esker.dataset(uri).optimize.compact_files()
    with pytest.raises(CommitConflictError):
        Compaction.commit(dataset, results)
    assert not files & {meta.path for meta in store.list("data/")}
