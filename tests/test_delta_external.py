"""Delta tables whose entries an external manifest store orders: taken where the user says that only esker writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.commit.external import SqliteManifestStore
from esker.delta import CommitProperties, DeltaTable, write_deltalake
from esker.delta.log.external import ONLY_ESKER, STAGED
from esker.exceptions import AlreadyExistsError, CorruptFileError, EskerError, UnsupportedError
from tests.faulty import FAULTS, Faulty
from tests.held_up import hold_up_the_winner


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"manifest_store": f"sqlite://{tmp_path}/entries.db", ONLY_ESKER: "true"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(uri: str, options: dict[str, str]) -> list[int]:
    return sorted(DeltaTable(uri, storage_options=options).to_pyarrow_table()["id"].to_pylist())


def test_it_is_refused_unless_the_user_says_so(tmp_path: Path, options: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    with pytest.raises(UnsupportedError, match=ONLY_ESKER):
        write_deltalake(uri, rows(1), storage_options={"manifest_store": options["manifest_store"]})
    with pytest.raises(UnsupportedError, match="DynamoDB"):
        write_deltalake("s3://b/t", rows(1), storage_options={**options, "AWS_S3_LOCKING_PROVIDER": "dynamodb"})
    assert not (tmp_path / "entries.db").exists()


def test_a_table_lives_its_life(tmp_path: Path, options: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(1, 2), storage_options=options)
    with pytest.raises(AlreadyExistsError):
        write_deltalake(uri, rows(1), storage_options=options)
    write_deltalake(uri, rows(3), mode="append", storage_options=options)
    table = DeltaTable(uri, storage_options=options)
    table.alter.set_table_properties({"delta.checkpointInterval": "2"})
    write_deltalake(table, rows(4), mode="overwrite", predicate="id > 2")
    write_deltalake(table, rows(5), mode="append")
    assert (table.version(), ids(uri, options)) == (4, [1, 2, 4, 5])
    assert sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 4, 5]
    assert not list((tmp_path / "t" / STAGED).glob("*"))
    latest = SqliteManifestStore(str(tmp_path / "entries.db")).get_latest(uri)
    assert latest is not None
    assert latest.path.endswith(f"_delta_log/{4:020}.json")


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("is_anew", [False, True])
def test_a_table_whose_files_are_gone_and_whose_entries_are_not_is_told_as_such(
    tmp_path: Path, options: dict[str, str], mode: Any, is_anew: bool
) -> None:
    uri = str(tmp_path / "t")
    for number in range(2):
        write_deltalake(uri, rows(number), mode="append", storage_options=options)
    shutil.rmtree(uri)
    if is_anew:
        deltalake.write_deltalake(uri, rows(7))
    said = r"version 1 of .* is not there: the table was deleted, .* were left; .* delete them by the store's delete\("
    with pytest.raises(CorruptFileError, match=said):
        write_deltalake(uri, rows(9), mode=mode, storage_options=options)
    if is_anew:
        with pytest.raises(CorruptFileError, match=said):
            DeltaTable(uri, storage_options=options).delete("id = 7")
    SqliteManifestStore(str(tmp_path / "entries.db")).delete(uri)
    write_deltalake(uri, rows(9), mode="overwrite", storage_options=options)
    assert ids(uri, options) == [9]


def test_two_names_of_one_table_cannot_both_commit(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, link = str(tmp_path / "t"), tmp_path / "link"
    write_deltalake(uri, rows(1), storage_options=options)
    link.symlink_to(uri)
    hold_up_the_winner(monkeypatch, lambda: write_deltalake(str(link), rows(2), mode="append", storage_options=options))
    with pytest.raises(EskerError, match="or uses another name of the table"):
        write_deltalake(uri, rows(3), mode="append", storage_options=options)
    assert ids(str(link), options) == [1, 2]
    with pytest.raises(CorruptFileError, match="or uses another name of the table"):
        DeltaTable(uri, storage_options=options)


def test_a_table_that_was_written_before_goes_on(tmp_path: Path, options: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    deltalake.write_deltalake(uri, rows(1))
    stale = DeltaTable(uri, storage_options=options)
    deltalake.write_deltalake(uri, rows(2), mode="append")
    write_deltalake(stale, rows(3), mode="append")
    assert (stale.version(), ids(uri, options)) == (2, [1, 2, 3])


def test_writers_at_the_same_time(tmp_path: Path, options: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0), storage_options=options)

    def write(number: int) -> None:
        properties = CommitProperties(max_commit_retries=100)
        write_deltalake(uri, rows(number), mode="append", storage_options=options, commit_properties=properties)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 13)))
    assert ids(uri, options) == list(range(13))
    assert DeltaTable(uri, storage_options=options).version() == 12


def test_processes_at_the_same_time(tmp_path: Path, options: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0), storage_options=options)
    program = (
        "import sys, pyarrow as pa\n"
        "from esker.delta import write_deltalake, CommitProperties\n"
        "for n in range(4):\n"
        "    data = pa.table({'id': pa.array([int(sys.argv[2]) * 10 + n], pa.int64())})\n"
        "    write_deltalake(sys.argv[1], data, mode='append', storage_options=eval(sys.argv[3]),\n"
        "                    commit_properties=CommitProperties(max_commit_retries=100))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, uri, str(number), repr(options)]) for number in range(1, 4)
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(ids(uri, options)) == 13


@pytest.mark.parametrize("fault", FAULTS)
def test_every_operation_of_a_commit_may_be_the_last(
    tmp_path: Path, options: dict[str, str], faulty: Faulty, fault: str
) -> None:
    for number in range(1, 40):
        place = tmp_path / str(number)
        uri = f"fault://{place}"
        plain = {**options, "plan": ""}
        write_deltalake(uri, rows(1), storage_options=plain)
        try:
            write_deltalake(uri, rows(2), mode="append", storage_options={**options, "plan": f"{fault}@{number}"})
            said = True
        except EskerError:
            said = False
        operations = len(faulty.made[-1].operations)
        found = ids(uri, plain)
        assert found in ([1], [1, 2])
        assert not said or found == [1, 2]
        write_deltalake(uri, rows(3), mode="append", storage_options=plain)
        assert ids(uri, plain) == [*found, 3]
        theirs = deltalake.DeltaTable(place).to_pyarrow_table()["id"].to_pylist()
        assert sorted(theirs) == [*found, 3]
        if operations < number:
            break
    else:
        pytest.fail("expected fewer operations")
