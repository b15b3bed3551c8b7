"""A store that fails on purpose at every operation of a Delta commit, and writers that race each other.

Whatever fails and whenever: a table shows its old version or the new one, and the next writer, esker or deltalake, goes
on from there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import EskerError, NotFoundError
from esker.store import stores
from tests.faulty import FAULTS, Faulty

MODES = ["create", "append", "overwrite", "replace", "checkpoint"]
PLANS = [(fault, mode) for mode in MODES for fault in FAULTS if mode in MODES[:2] or fault in FAULTS[1:3]]


def _data(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "p": [i % 3 for i in range(count)]})


def _prepare(uri: str, mode: str) -> list[int]:
    if mode == "create":
        return []
    write_deltalake(uri, _data(0, 10), partition_by=["p"], configuration={"delta.checkpointInterval": "2"})
    if mode == "checkpoint":
        write_deltalake(uri, _data(10, 1), mode="append")
        return list(range(11))
    return list(range(10))


def _write(uri: str, mode: str, plan: str) -> bool:
    """Writes rows 100 to 129 over the failing store; whether it said that it did."""
    kind = {"create": "error", "overwrite": "overwrite", "replace": "overwrite"}.get(mode, "append")
    predicate = "id >= 5" if mode == "replace" else None
    try:
        write_deltalake(
            f"fault://{uri}",
            _data(100, 30),
            mode=kind,  # type: ignore[arg-type]
            partition_by=["p"],
            predicate=predicate,
            storage_options={"plan": plan},
        )
    except EskerError:
        return False
    return True


def _rows(uri: str) -> list[int]:
    try:
        return sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())
    except NotFoundError:
        return []


def _check(uri: str, mode: str, old: list[int], *, reported: bool) -> None:
    kept = {"overwrite": [], "replace": old[:5]}.get(mode, old)
    new = [*kept, *range(100, 130)]
    found = _rows(uri)
    assert found in (old, new)
    assert found == new or not reported, "what was reported as done is there"
    write_deltalake(uri, _data(500, 5), mode="append", partition_by=["p"])
    if not uri.startswith("memory:"):
        deltalake.write_deltalake(uri, _data(600, 1), mode="append")
        theirs = sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())
        assert theirs == [*found, *range(500, 505), 600]
        assert _rows(uri) == theirs


@pytest.mark.filterwarnings("ignore:version .* is committed")
@pytest.mark.parametrize(("fault", "mode"), PLANS)
def test_every_operation_may_be_the_last(fault: str, mode: str, faulty: Faulty, tmp_path: Path) -> None:
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


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([50, 200, 500]),
    st.sampled_from(["crash", "lose_reply+fail+delay", "crash+lose_reply+fail+tear+disk_full+reorder+age"]),
    st.sampled_from(MODES),
)
@pytest.mark.filterwarnings("ignore:version .* is committed")
def test_any_mixture_of_faults_leaves_one_of_two_versions(seed: int, per_mille: int, kinds: str, mode: str) -> None:
    stores.register("fault", Faulty())
    uri = f"memory://delta-crash-{seed}-{per_mille}-{kinds}-{mode}"
    for left in Store(uri).list():
        Store(uri).delete(left.path)
    old = _prepare(uri, mode)
    reported = _write(uri, mode, f"seed:{seed}:{per_mille}:{kinds}")
    _check(uri, mode, old, reported=reported)


RACER = """
import sys, pyarrow as pa
from {module} import write_deltalake
for i in range(int(sys.argv[3])):
    row = pa.table({{"id": pa.array([int(sys.argv[2]) * 1000 + i], pa.int64()), "p": pa.array([i % 3], pa.int64())}})
    write_deltalake(sys.argv[1], row, mode="append")
"""


def test_racing_writers_of_both_lose_nothing(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _data(0, 3), partition_by=["p"])
    each, racers = 6, []
    for number, module in enumerate(["esker.delta", "deltalake", "esker.delta"], 1):
        script = RACER.format(module=module)
        command = [sys.executable, "-c", script, str(tmp_path), str(number), str(each)]
        racers.append(subprocess.Popen(command, stderr=subprocess.PIPE))
    for racer in racers:
        assert racer.wait() == 0, racer.stderr.read() if racer.stderr else b""
    want = sorted([0, 1, 2, *(number * 1000 + i for number in (1, 2, 3) for i in range(each))])
    assert _rows(str(tmp_path)) == want
    assert sorted(deltalake.DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == want
    assert DeltaTable(tmp_path).version() == 3 * each
