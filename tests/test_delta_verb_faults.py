"""Deletes, updates and merges over a store that fails at every operation, and by several processes at once.

Whatever fails and whenever: a table shows its old rows or the new ones, no file of a version is missing, and the next
writer goes on from there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError, EskerError
from esker.store import stores
from tests.delta_rows import rows
from tests.faulty import FAULTS, Faulty
from tests.test_delta_delete import read_by_theirs

FEED: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "2", **FEED}
# Enough rows that a vector of every third one has a file of its own.
COUNT = 1200
OLD = {n: n for n in range(COUNT)}
CASES = [(verb, layout) for verb in ("delete", "update", "merge", "replace") for layout in ("copy", "vectors")]
WRITES = ("put", "put_if_absent", "delete")
NO_READS = ("tear:40", "disk_full")
"""Faults of writes: what reads is not met by them."""
SAME_FOR_READS = dict.fromkeys(CASES[1:3] + CASES[5:], (*NO_READS, "crash_after", "lose_reply"))
"""Where all faults are tried: those that are others' same where nothing is written."""
PLANS = [(fault, *case) for case in CASES for fault in FAULTS if case in CASES[1:3] + CASES[5:] or fault in FAULTS[1:3]]


@pytest.fixture
def faulty() -> Faulty:
    made = Faulty()
    stores.register("fault", made)
    return made


def prepare(uri: str, layout: str) -> None:
    """Versions 0 and 1; with vectors there is one already, and the next version has a checkpoint."""
    data = pa.table({"id": range(COUNT), "n": range(COUNT)})
    write_deltalake(uri, data, configuration=ON if layout == "vectors" else FEED)
    write_deltalake(uri, pa.table({"id": [COUNT], "n": [COUNT]}), mode="append")
    DeltaTable(uri).delete(f"id = {COUNT}")


def files(path: Path) -> dict[str, bytes]:
    """All files of a table."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def state(uri: str) -> dict[int, int]:
    table = DeltaTable(uri).to_pyarrow_table()
    return dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))


def change(uri: str, verb: str, plan: str) -> BaseException | None:
    """The verb over the failing store; the error, if it told one."""
    try:
        table = DeltaTable(f"fault://{uri}", storage_options={"plan": plan})
        if verb == "delete":
            table.delete("id % 3 = 0")
        elif verb == "update":
            table.update({"n": "n + 1"}, predicate="id % 3 = 0")
        elif verb == "replace":
            data = SOURCE.slice(0, 2).to_reader(max_chunksize=1)
            write_deltalake(table, data, mode="overwrite", predicate="id % 3 = 0")
        else:
            merger = table.merge(SOURCE, "t.id = s.id and t.id < 1000", "s", "t").when_matched_delete("s.n < 0")
            merger = merger.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all("s.id > 5000")
            merger.when_not_matched_by_source_update({"n": "0"}, "t.id = 1").execute()
    except EskerError as error:
        return error
    return None


SOURCE = pa.table({"id": [*range(0, COUNT, 3), 9999], "n": [*(n % 2 or -1 for n in range(0, COUNT, 3)), 7]})


def _merged() -> dict[int, int]:
    found = {n: n + (n % 3 == 0 and n < 1000) for n in OLD if n % 6 or n >= 1000}
    return {**found, 1: 0, 9999: 7}


NEW = {
    "merge": _merged(),
    "delete": {n: n for n in OLD if n % 3},
    "update": {n: n if n % 3 else n + 1 for n in OLD},
    "replace": {**{n: n for n in OLD if n % 3}, 0: -1, 3: 1},
}


def check(uri: str, verb: str, told: BaseException | None) -> None:
    found = state(uri)
    assert found in (OLD, NEW[verb])
    if told is None:
        assert found == NEW[verb], "what was told to be done is there"
    if isinstance(told, CommitConflictError):
        assert found == OLD, "what was told to be refused is not there"
    table = DeltaTable(uri)
    assert pa.table(table.load_cdf(1)).num_rows
    table.delete("id = 1")
    del found[1]
    assert state(uri) == found
    if not uri.startswith("memory:"):
        theirs = read_by_theirs(Path(uri)).sort_by("id")
        assert theirs == DeltaTable(uri).to_pyarrow_table().cast(theirs.schema).sort_by("id")


@pytest.mark.filterwarnings("ignore:version .* is committed")
@pytest.mark.parametrize(("fault", "verb", "layout"), PLANS)
def test_every_operation_may_be_the_last(fault: str, verb: str, layout: str, faulty: Faulty, tmp_path: Path) -> None:
    template, counted = tmp_path / "template", tmp_path / "counted"
    prepare(str(template), layout)
    shutil.copytree(template, counted)
    assert change(str(counted), verb, "") is None
    operations = max((made.operations for made in faulty.made), key=len)
    assert len(operations) >= 6, operations
    before = files(template)
    for number, kind, path in operations:
        if kind not in WRITES and fault in SAME_FOR_READS.get((verb, layout), NO_READS):
            continue
        place = tmp_path / str(number)
        shutil.copytree(template, place)
        told = change(str(place), verb, f"{fault}@{number}")
        if files(place) == before:
            # The table is what it was, whatever else may be asked of it.
            assert told is not None, f"plan {fault}@{number} ({kind} {path}): told as done"
            continue
        try:
            check(str(place), verb, told)
        except AssertionError as error:
            raise AssertionError(f"plan {fault}@{number} ({kind} {path}): {error}") from error


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([50, 200, 500]),
    st.sampled_from(["crash", "lose_reply+fail+delay", "crash+lose_reply+fail+tear+disk_full+reorder+age"]),
    st.sampled_from(CASES),
)
@pytest.mark.filterwarnings("ignore:version .* is committed")
def test_any_mixture_of_faults_leaves_one_of_two_versions(
    seed: int, per_mille: int, kinds: str, case: tuple[str, str]
) -> None:
    verb, layout = case
    stores.register("fault", Faulty())
    uri = f"memory://delta-verbs-{seed}-{per_mille}-{kinds}-{verb}-{layout}"
    for left in Store(uri).list():
        Store(uri).delete(left.path)
    prepare(uri, layout)
    check(uri, verb, change(uri, verb, f"seed:{seed}:{per_mille}:{kinds}"))


RACER = """
import sys, pyarrow as pa
from esker.delta import CommitProperties, DeltaTable, write_deltalake
path, racer, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
many = CommitProperties(max_commit_retries=1000)
for i in range(rounds):
    kind = (racer + i) % 4
    if kind == 2 and racer % 2:
        rows = pa.table({"id": [-9999, 500000 + racer * 100 + i], "n": [1, 0]})
        merger = DeltaTable(path).merge(rows, "t.id = s.id", "s", "t", commit_properties=many)
        found = merger.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()
        print("plus", found["num_target_rows_updated"])
        print("add", 500000 + racer * 100 + i)
        assert found["num_target_rows_inserted"] == 1
    elif kind == 0:
        row = pa.table({"id": pa.array([racer * 1000 + i], pa.int64()), "n": pa.array([0], pa.int64())})
        write_deltalake(path, row, mode="append", commit_properties=many)
        print("add", racer * 1000 + i)
    elif kind == 1:
        found = DeltaTable(path).delete(f"id = {-1 - racer * 10 - i}", commit_properties=many)
        print("gone", -1 - racer * 10 - i, found["num_deleted_rows"])
    else:
        where = "id = -9999" if kind == 2 else "id <= -9000"
        found = DeltaTable(path).update({"n": "n + 1"}, predicate=where, commit_properties=many)
        print("plus", found["num_updated_rows"])
"""


@pytest.mark.parametrize("layout", ["copy", "vectors"])
def test_eight_processes_of_mixed_verbs_do_what_they_told(tmp_path: Path, layout: str) -> None:
    start = [-9999, -9000, *range(-100, 0)]
    data = pa.table({"id": pa.array(start, pa.int64()), "n": pa.array([0] * len(start), pa.int64())})
    write_deltalake(tmp_path, data, configuration=ON if layout == "vectors" else FEED)
    rounds, racers = 6, []
    for number in range(8):
        command = [sys.executable, "-c", RACER, str(tmp_path), str(number), str(rounds)]
        racers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    expected, increments = set(start), 0
    for racer in racers:
        out, err = racer.communicate()
        assert racer.returncode == 0, err
        for line in out.splitlines():
            told: list[Any] = line.split()
            if told[0] == "add":
                expected.add(int(told[1]))
            elif told[0] == "gone":
                assert told[2] == "1"
                expected.remove(int(told[1]))
            else:
                increments += int(told[1])
    found = state(str(tmp_path))
    assert set(found) == expected
    assert found[-9999] + found[-9000] == increments > 0
    assert rows(read_by_theirs(tmp_path)) == rows(DeltaTable(tmp_path).to_pyarrow_table())
