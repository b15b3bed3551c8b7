"""The address of a branch is live: it reads the last commit and takes writes; pickles stay where they are."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import esker
from esker.cli.main import main
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError, UnsupportedError
from esker.file import LanceFileReader, LanceFileSession, LanceFileWriter
from esker.repo import Repository
from esker.repo.errors import TableConflictError
from esker.repo.table_address import address

BRANCH = "feature/x"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(found: Any) -> list[int]:
    return sorted(pa.table(found)["id"].to_pylist())


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "the lake @ 100%", committer="me")
    with made.branch("main").transact("tables") as tx:
        esker.write_dataset(rows(1, 2), tx.store_uri("lake/lance"))
        write_deltalake(tx.store_uri("lake/delta"), rows(1, 2))
    made.branch(BRANCH).create("main")
    return made


@pytest.fixture
def at(repo: Repository) -> str:
    """The folder of the tables on the branch."""
    return address(repo.uri, BRANCH, "lake")


def test_a_branch_gives_its_address_and_what_opens_it_writes_there(repo: Repository, at: str) -> None:
    assert repo.branch(BRANCH).store_uri("lake") == at
    esker.write_dataset(rows(3), f"{at}/lance", mode="append")
    write_deltalake(f"{at}/delta", rows(3), mode="append")
    esker.write_dataset(rows(4), f"{at}/new")
    DeltaTable.create(f"{at}/created", rows().schema)
    assert ids(esker.dataset(f"{at}/lance")) == ids(DeltaTable(f"{at}/delta")) == [1, 2, 3]
    assert sum(len(pd.read_parquet(file)) for file in DeltaTable(f"{at}/delta").file_uris()) == 3
    assert ids(esker.dataset(repo.branch("main").store_uri("lake/lance"))) == [1, 2]
    assert len(list(repo.ref(BRANCH).log(stop_at="main"))) == 5
    assert list(repo.fsck(tables=True)) == []


def test_each_file_that_is_written_alone_is_a_commit(repo: Repository, tmp_path: Path) -> None:
    at = repo.branch(BRANCH).store_uri("files")
    with LanceFileWriter(f"{at}/a.lance", rows().schema) as writer:
        writer.write_batch(rows(1, 2))
    session = LanceFileSession(at)
    with session.open_writer("b.lance", schema=rows().schema) as writer:
        writer.write_batch(rows(3))
    (tmp_path / "note").write_text("note")
    session.upload_file(tmp_path / "note", "note")
    assert [found.path for found in repo.ref(BRANCH).objects(prefix="files/")] == [
        "files/a.lance",
        "files/b.lance",
        "files/note",
    ]
    session.delete_file("note")
    assert not repo.ref(BRANCH).object("files/note").exists()
    assert [commit.message for commit in repo.ref(BRANCH).log(stop_at=f"{BRANCH}~3")][:2] == [
        "Delete note from files",
        "Upload note to files",
    ]
    assert LanceFileReader(f"{at}/a.lance").num_rows() == 2


def test_lists_of_files_for_other_engines_are_refused_on_a_branch(repo: Repository, at: str) -> None:
    with pytest.raises(UnsupportedError, match="export"):
        DeltaTable(f"{at}/delta").generate()
    with repo.branch(BRANCH).transact("list") as tx, pytest.raises(UnsupportedError, match="export"):
        DeltaTable(tx.store_uri("lake/delta")).generate()
    repo.ref(BRANCH).export(f"{repo.uri}-exported")
    DeltaTable(f"{repo.uri}-exported/lake/delta").generate()


def test_external_manifest_stores_and_locks_are_refused_by_name_on_a_branch(at: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/m.db"}
    alone = {**options, "delta_only_esker_writes": "true"}
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("manifest_store", lambda: esker.dataset(f"{at}/lance", manifest_store=options["manifest_store"])),
        ("manifest_store", lambda: esker.write_dataset(rows(3), f"{at}/lance", mode="append", storage_options=options)),
        ("manifest store", lambda: write_deltalake(f"{at}/delta", rows(3), mode="append", storage_options=options)),
        ("manifest_store", lambda: write_deltalake(f"{at}/delta", rows(3), mode="append", storage_options=alone)),
        ("commit_lock", lambda: esker.dataset(f"{at}/lance", commit_lock=_lock).insert(rows(3))),
        ("commit_lock", lambda: esker.write_dataset(rows(3), f"{at}/lance", mode="append", commit_lock=_lock)),
    ]
    for named, use in refused:
        with pytest.raises(UnsupportedError, match=named):
            use()


def _lock(version: int) -> Any:
    raise AssertionError(version)


def elsewhere(script: str, carried: object, folder: Path) -> str:
    """What a script prints in another process, which finds what is carried as `carried`."""
    (folder / "carried").write_bytes(pickle.dumps(carried))
    program = f"import pickle, sys\ncarried = pickle.load(open(sys.argv[1], 'rb'))\n{script}"
    command = [sys.executable, "-c", program, str(folder / "carried")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("what", ["goes on", "reset", "dropped"])
def test_a_pickle_of_a_branch_reads_what_was_read_whatever_becomes_of_it(
    repo: Repository, at: str, tmp_path: Path, what: str
) -> None:
    esker.write_dataset(rows(3), f"{at}/lance", mode="append")
    write_deltalake(f"{at}/delta", rows(3), mode="append")
    dataset, table = esker.dataset(f"{at}/lance"), DeltaTable(f"{at}/delta")
    fragments = dataset.get_fragments()
    carried = [dataset, dataset.scanner(), table, table.to_pyarrow_dataset(), fragments[1]]
    saved = pickle.dumps(carried)
    if what == "goes on":
        dataset.delete("true")
        write_deltalake(f"{at}/delta", rows(8), mode="overwrite")
    else:
        repo.branch(BRANCH).reset_to("main" if what == "reset" else "main~1")
    read = "d, s, t, p, f = carried; print(d.version, *map(len, (d.to_table(), s.to_table())), t.version(), "
    read += "len(t.to_pyarrow_table()), p.count_rows(), f.count_rows())"
    told = elsewhere(f"carried = pickle.loads(carried)\n{read}", saved, tmp_path)
    assert told == "2 3 3 1 3 3 1"


def test_a_pickle_of_a_branch_writes_on_from_there_or_is_told_why_not(
    repo: Repository, at: str, tmp_path: Path
) -> None:
    carried = (esker.dataset(f"{at}/lance"), DeltaTable(f"{at}/delta"))
    esker.write_dataset(rows(3), f"{at}/lance", mode="append")
    write_deltalake(f"{at}/delta", rows(3), mode="append")
    write = """
import pyarrow as pa
from esker.delta import write_deltalake
rows = pa.table({"id": pa.array([9], pa.int64())})
carried[0].insert(rows)
write_deltalake(carried[1], rows, mode="append")
print(carried[0].version, carried[1].version())
"""
    assert elsewhere(write, carried, tmp_path) == "3 2"
    assert ids(esker.dataset(f"{at}/lance")) == ids(DeltaTable(f"{at}/delta")) == [1, 2, 3, 9]
    dataset, table = pickle.loads(pickle.dumps((esker.dataset(f"{at}/lance"), DeltaTable(f"{at}/delta"))))
    repo.branch(BRANCH).reset_to("main")
    for change in (
        lambda: dataset.insert(rows(7)),
        lambda: write_deltalake(table, rows(7), mode="append"),
    ):
        with pytest.raises(TableConflictError, match="open the table again"):
            change()
    assert ids(esker.dataset(f"{at}/lance")) == ids(DeltaTable(f"{at}/delta")) == [1, 2]


def test_the_command_line_takes_addresses(repo: Repository, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*given: str) -> Any:
        assert main([*given, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    esker.write_dataset(rows(3), f"{at}/lance", mode="append")
    assert run("info", f"{at}/lance")["rows"] == 3
    assert run("info", f"{at}/lance", "--at", "1")["rows"] == 2
    assert run("info", f"{at}/delta")["kind"] == "delta"
    assert run("head", address(repo.uri, f"{BRANCH}~1", "lake/lance")) == [{"id": 1}, {"id": 2}]
    assert [one["version"] for one in run("versions", f"{at}/lance")] == [1, 2]
    assert run("count", f"{at}/lance") == {"rows": 3}
    file = esker.dataset(f"{at}/lance").get_fragments()[0].data_files()[0].path
    assert main(["inspect", f"{at}/lance/data/{file}"]) == 0
    assert main(["schema", f"{at}/lance"]) == 0
    capsys.readouterr()
    assert main(["info", f"esker://{BRANCH}/lake/lance"]) == 1
    assert "percent-encoded" in capsys.readouterr().err


@pytest.fixture
def outside(repo: Repository, tmp_path: Path) -> Path:
    """A folder with a table of each format, all of which is imported into the branch."""
    folder = tmp_path / "out side"
    esker.write_dataset(rows(1, 2), folder / "lance")
    esker.write_dataset(rows(3), folder / "lance", mode="append").delete("id = 1")
    write_deltalake(folder / "delta", rows(2))
    write_deltalake(folder / "delta", rows(3), mode="append")
    repo.branch(BRANCH).import_data("outside").prefix(f"{folder}/", "in/").run()
    return folder


def test_imported_tables_are_read_in_every_way(repo: Repository, outside: Path) -> None:
    for at in (repo.branch(BRANCH).store_uri("in"), repo.ref(BRANCH).store_uri("in")):
        dataset, table = esker.dataset(f"{at}/lance"), DeltaTable(f"{at}/delta")
        assert ids(dataset) == ids(table) == ids(table.to_pyarrow_table()) == [2, 3]
        assert dataset.take([1]) == rows(3)
        assert dataset.to_table(filter="id > 2") == rows(3)
        assert table.to_pyarrow_dataset().to_table(filter=pads.field("id") > 2) == rows(3)
        assert ids(pickle.loads(pickle.dumps(table)).to_pyarrow_dataset().to_table()) == [2, 3]
        name = dataset.get_fragments()[0].data_files()[0].path
        assert LanceFileReader(f"{at}/lance/data/{name}").num_rows() == 2
        assert LanceFileSession(f"{at}/lance").contains(f"data/{name}")


def test_imported_tables_are_written_on_without_a_change_outside(repo: Repository, outside: Path) -> None:
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    at = repo.branch(BRANCH).store_uri("in")
    esker.write_dataset(rows(4), f"{at}/lance", mode="append")
    esker.dataset(f"{at}/lance").delete("id = 2")
    esker.dataset(f"{at}/lance").merge_insert("id").when_not_matched_insert_all().execute(rows(3, 5))
    write_deltalake(f"{at}/delta", rows(4), mode="append")
    write_deltalake(f"{at}/delta", rows(2), mode="overwrite", predicate="id = 2")
    with repo.branch(BRANCH).transact("both") as tx:
        esker.write_dataset(rows(6), tx.store_uri("in/lance"), mode="append")
        write_deltalake(tx.store_uri("in/delta"), rows(5), mode="append")
    repo.branch(BRANCH).merge_into("main")
    merged = repo.branch("main").store_uri("in")
    assert ids(esker.dataset(f"{merged}/lance")) == [3, 4, 5, 6]
    assert ids(DeltaTable(f"{merged}/delta")) == [2, 3, 4, 5]
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert list(repo.fsck(tables=True, imports=True)) == []


def test_an_imported_file_that_is_gone_is_named(repo: Repository, outside: Path) -> None:
    at = repo.branch(BRANCH).store_uri("in")
    (gone, *_) = sorted((outside / "lance" / "data").iterdir())
    (other, *_) = sorted(outside.glob("delta/*.parquet"))
    gone.unlink()
    other.unlink()
    with pytest.raises(NotFoundError, match=gone.name):
        esker.dataset(f"{at}/lance").to_table()
    with pytest.raises(NotFoundError, match=other.name):
        DeltaTable(f"{at}/delta").to_pyarrow_table()
    # They are entries still; that what they refer to is gone, a look at imports tells.
    assert list(repo.fsck(tables=True)) == []
    told = "\n".join(repo.fsck(imports=True))
    assert gone.name in told
    assert other.name in told
