"""A store that fails on purpose, at every operation of a create, an append and an overwrite.

Whatever fails and whenever: the table shows its old version or the new one, never anything between, and the next writer
goes on from there. A plan that fails is in the test's id, and replays by it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker._native.store import Store
from esker.exceptions import EskerError, NotFoundError
from esker.store import stores
from tests.faulty import FAULTS, Faulty
from tests.leftovers import check_leftovers
from tests.rounds import rounds

MODES = ["create", "append", "overwrite"]


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _prepare(uri: str, mode: str) -> list[int]:
    """The rows before the write."""
    if mode == "create":
        return []
    esker.write_dataset(_ids(0, 10), uri, durable=False)
    return list(range(10))


def _write(uri: str, mode: str, plan: str) -> bool:
    """Writes rows 100 to 129 in three files over the failing store; whether it said that it did."""
    try:
        esker.write_dataset(
            _ids(100, 30), f"fault://{uri}", mode=mode, max_rows_per_file=10, storage_options={"plan": plan}
        )
    except EskerError:
        return False
    return True


def _rows(uri: str) -> list[int]:
    try:
        return sorted(esker.dataset(uri).to_table()["id"].to_pylist())
    except NotFoundError:
        return []


def _check(uri: str, mode: str, old: list[int], *, reported: bool) -> None:
    new = [*(old if mode == "append" else []), *range(100, 130)]
    found = _rows(uri)
    assert found in (old, new)
    assert found == new or not reported, "what was reported as done is there"
    if found:
        check_leftovers(uri)
    # The next writer knows nothing of it all.
    esker.write_dataset(_ids(500, 5), uri, mode="append", durable=False)
    assert _rows(uri) == [*found, *range(500, 505)]
    if not uri.startswith("memory:"):
        assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [*found, *range(500, 505)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_operation_may_be_the_last(mode: str, fault: str, faulty: Faulty, tmp_path: Path) -> None:
    uri = str(tmp_path / "counted")
    _prepare(uri, mode)
    assert _write(uri, mode, "")
    operations = faulty.made[-1].operations
    assert len(operations) >= 6, operations
    for number, verb, path in operations:
        uri = str(tmp_path / str(number))
        old = _prepare(uri, mode)
        reported = _write(uri, mode, f"{fault}@{number}")
        try:
            _check(uri, mode, old, reported=reported)
        except AssertionError as error:
            raise AssertionError(f"plan {fault}@{number} ({verb} {path}), mode {mode}: {error}") from error


@settings(max_examples=rounds(30))
@given(
    st.integers(0, 2**32),
    st.sampled_from([50, 200, 500]),
    st.sampled_from(
        ["crash", "lose_reply+fail+delay", "reorder+age", "crash+lose_reply+fail+tear+disk_full+reorder+age"]
    ),
    st.sampled_from(MODES),
)
def test_any_mixture_of_faults_leaves_one_of_two_versions(seed: int, per_mille: int, kinds: str, mode: str) -> None:
    stores.register("fault", Faulty())
    uri = f"memory://crash-{seed}-{per_mille}-{kinds}-{mode}"
    Store(uri)
    for left in Store(uri).list():
        Store(uri).delete(left.path)
    old = _prepare(uri, mode)
    reported = _write(uri, mode, f"seed:{seed}:{per_mille}:{kinds}")
    _check(uri, mode, old, reported=reported)


KILLED = """
import sys, pyarrow as pa, esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.commit import register
register("fault", lambda uri, options, durable: FaultStore(Store(uri.removeprefix("fault://")), sys.argv[3]).store)
table = pa.table({"id": pa.array(range(100, 130), pa.int64())})
esker.write_dataset(table, "fault://" + sys.argv[1], mode=sys.argv[2], max_rows_per_file=10)
"""


@pytest.mark.parametrize("mode", ["create", "append"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_an_operation(mode: str, when: str, faulty: Faulty, tmp_path: Path) -> None:
    uri = str(tmp_path / "counted")
    _prepare(uri, mode)
    assert _write(uri, mode, "")
    for number in range(0, len(faulty.made[-1].operations), 5):
        uri = str(tmp_path / str(number))
        old = _prepare(uri, mode)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, uri, mode, f"kill_{when}@{number}"], capture_output=True, check=False
        )
        assert done.returncode == -9
        _check(uri, mode, old, reported=False)
