"""What takes the URI of a ref: tables of both formats, single files, fsspec, pickles."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import EskerError, InvalidArgumentError, NotFoundError, UnsupportedError
from esker.file import LanceFileReader, LanceFileSession, LanceFileWriter
from esker.repo import Repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.table_address import address
from esker.store.stores import resolve

ROWS = pa.table({"n": [1, 2, 3]})
STRANGE = "lake @ 100% ä~^"


def append(repo: Repository, rows: pa.Table = ROWS, branch: str = "main") -> None:
    with repo.branch(branch).transact("append") as tx:
        esker.write_dataset(rows, tx.store_uri("a b/lance"), mode="append")
        write_deltalake(tx.store_uri("a b/delta"), rows, mode="append")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Tables of both formats, on branches and tags with names of all kinds; main is one commit ahead of them."""
    made = Repository.create(tmp_path / STRANGE, committer="me")
    parquet = io.BytesIO()
    pq.write_table(ROWS, parquet)
    main = made.branch("main")
    main.object("a b/f.parquet").upload(parquet.getvalue())
    main.commit("file")
    with main.transact("tables") as tx:
        esker.write_dataset(ROWS, tx.store_uri("a b/lance"))
        write_deltalake(tx.store_uri("a b/delta"), ROWS)
        with LanceFileWriter(tx.store_uri("a b/one.lance"), ROWS.schema) as writer:
            writer.write_batch(ROWS)
    made.branch("feature/x").create("main")
    made.tag("v1/2.0").create("main")
    append(made)
    return made


REFS = ["feature/x", "v1/2.0", "main~1", "main@~1", "main^", "feature/x@"]


@pytest.mark.parametrize("ref", REFS)
def test_every_reader_takes_the_address_of_any_ref(repo: Repository, ref: str) -> None:
    def at(path: str) -> str:
        return address(repo.uri, ref, f"a b/{path}")

    assert esker.dataset(at("lance")).to_table() == ROWS
    assert esker.dataset(at("lance")).uri == at("lance")
    assert esker.dataset(at("lance")).take([2]) == ROWS.slice(2)
    table = DeltaTable(at("delta"))
    assert (table.table_uri, table.to_pyarrow_table()) == (at("delta"), ROWS)
    assert table.to_pyarrow_dataset().to_table() == ROWS
    assert DeltaTable.is_deltatable(at("delta"))
    (file,) = table.file_uris()
    assert pd.read_parquet(file).n.tolist() == [1, 2, 3]
    assert LanceFileReader(at("one.lance")).read_all().to_table() == ROWS
    assert LanceFileSession(at("")).contains("one.lance")
    assert pd.read_parquet(at("f.parquet")).n.tolist() == [1, 2, 3]
    with fsspec.open(at("f.parquet")) as opened:
        assert opened.read(4) == b"PAR1"


def test_what_a_handle_of_a_ref_says_opens_anywhere(repo: Repository) -> None:
    first = repo.ref("main").store_uri("a b/lance")
    assert first == address(repo.uri, repo.ref("main").get_commit().id, "a b/lance")
    append(repo)
    assert esker.dataset(first).count_rows() == 6
    assert esker.dataset(repo.tag("v1/2.0").store_uri("a b/lance")).count_rows() == 3


def test_addresses_of_releases_before_still_open(repo: Repository) -> None:
    from urllib.parse import quote

    before = f"esker-ref://{quote(repo.uri, safe='')}/feature%2Fx/a b/lance"
    assert esker.dataset(before).count_rows() == 3
    assert pickle.loads(pickle.dumps(esker.dataset(before))).count_rows() == 3


def test_what_never_changes_refuses_every_write(repo: Repository) -> None:
    at = address(repo.uri, "v1/2.0", "a b")
    dataset = esker.dataset(f"{at}/lance")
    refused: list[Callable[[], Any]] = [
        lambda: esker.write_dataset(ROWS, f"{at}/lance", mode="append"),
        lambda: esker.write_dataset(ROWS, f"{at}/new"),
        lambda: dataset.delete("n = 1"),
        lambda: dataset.merge_insert("n").when_matched_update_all().execute(ROWS),
        lambda: write_deltalake(f"{at}/delta", ROWS, mode="append"),
        lambda: write_deltalake(f"{at}/new", ROWS),
        lambda: resolve(at).put("x", b""),
    ]
    for write in refused:
        with pytest.raises(UnsupportedError, match="never changes"):
            write()
    assert dataset.count_rows() == 3


def test_external_manifest_stores_and_locks_are_refused_by_name(repo: Repository, tmp_path: Path) -> None:
    at = address(repo.uri, "feature/x", "a b")
    external = f"sqlite://{tmp_path}/manifests.db"
    options = {"manifest_store": external}
    alone = {**options, "delta_only_esker_writes": "true"}
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("manifest_store", lambda: esker.dataset(f"{at}/lance", manifest_store=external)),
        ("manifest_store", lambda: esker.dataset(f"{at}/lance", storage_options=options)),
        ("manifest_store", lambda: esker.write_dataset(ROWS, f"{at}/new", storage_options=options)),
        ("manifest store", lambda: write_deltalake(f"{at}/delta", ROWS, mode="append", storage_options=options)),
        ("manifest_store", lambda: write_deltalake(f"{at}/delta", ROWS, mode="append", storage_options=alone)),
        ("manifest_store", lambda: DeltaTable(f"{at}/delta", storage_options=alone)),
        ("commit_lock", lambda: esker.dataset(f"{at}/lance", commit_lock=_lock).update_config({"a": "b"})),
    ]
    for named, use in refused:
        with pytest.raises(UnsupportedError, match=named):
            use()


def _lock(version: int) -> Any:
    raise AssertionError(version)


def test_fsspec_takes_both_spellings_and_tells_repositories_apart(repo: Repository, tmp_path: Path) -> None:
    at = address(repo.uri, "feature/x", "a b/f.parquet")
    other = Repository.create(tmp_path / "other")
    with pytest.raises(InvalidArgumentError, match="expected a path of the repository"):
        fsspec.open(at, repository=other.uri).open()
    with pytest.raises(InvalidArgumentError, match="expected the option 'repository'"):
        fsspec.open("esker://feature/x/a b/f.parquet").open()
    with fsspec.open("esker://main@~1/a b/f.parquet", repository=repo.uri) as opened:
        assert opened.read(4) == b"PAR1"
    fs, path = fsspec.core.url_to_fs(address(repo.uri, "feature/x", "a b"))
    assert isinstance(fs, RepositoryFileSystem)
    names = fs.ls(path, detail=False)
    assert f"{path}/f.parquet" in names
    assert set(fs.find(path)) >= {f"{path}/f.parquet", f"{path}/one.lance"}
    assert fs.glob(f"{path}/*.parquet") == [f"{path}/f.parquet"]
    assert fs.unstrip_protocol(f"{path}/f.parquet") == at
    fs.pipe(f"{path}/new", b"staged")
    assert fs.cat(f"{path}/new") == fs.cat("feature/x/a b/new") == b"staged"


def test_a_pickle_reads_what_was_read_whatever_became_of_the_ref(repo: Repository, tmp_path: Path) -> None:
    repo.branch("side").create("main~1")
    at = address(repo.uri, "main~1", "a b")
    dataset, table = esker.dataset(f"{at}/lance"), DeltaTable(f"{at}/delta")
    fragment = dataset.get_fragments()[0]
    carried = [dataset, dataset.scanner(filter="n > 0"), fragment, table, table.to_pyarrow_dataset(), resolve(at)]
    saved = tmp_path / "saved"
    saved.write_bytes(pickle.dumps(carried))
    append(repo)
    append(repo)
    script = """
import pickle, sys
dataset, scanner, fragment, table, arrow, store = pickle.load(open(sys.argv[1], "rb"))
print(dataset.version, dataset.count_rows(), scanner.to_table().num_rows, fragment.count_rows(), table.version(),
      table.to_pyarrow_table().num_rows, arrow.to_table().num_rows, len(store.list_paths("lance/_versions/")))
print(dataset.uri)
"""
    told = subprocess.run([sys.executable, "-c", script, str(saved)], capture_output=True, text=True, check=True).stdout
    assert told.strip() == f"1 3 3 3 0 3 3 1\n{at}/lance"


def test_what_is_no_address_or_leads_nowhere_says_what_was_expected(repo: Repository) -> None:
    told: list[tuple[str, type[EskerError], str]] = [
        ("esker://main/t", InvalidArgumentError, "percent-encoded"),
        ("esker://lake@main/t", InvalidArgumentError, "absolute path"),
        (address(repo.uri, "nowhere", "t"), NotFoundError, "'nowhere'"),
        (address(repo.uri + "-not", "main", "t"), NotFoundError, "no repository"),
        (address(repo.uri, "main", "a b/delta"), NotFoundError, "DeltaTable"),
        (address(repo.uri, "main", "a b"), NotFoundError, "_versions"),
    ]
    for uri, kind, words in told:
        with pytest.raises(kind, match=words):
            esker.dataset(uri)


def test_physical_paths_have_no_escapes_as_spark_takes_them(tmp_path: Path) -> None:
    repo = Repository.create(f"file://{tmp_path}/a%20lake")
    main = repo.branch("main")
    main.object("a b%20").upload("1")
    main.commit("1")
    (path,) = main.physical_paths()
    assert path.startswith(f"file://{tmp_path}/a lake/data/")
    assert Path(path.removeprefix("file://")).read_text() == "1"
