"""Tables on branches, small ones of both formats, and what esker and the peers read of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import deltalake
import lance
import pyarrow as pa

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError
from esker.repo import Branch, Commit, Repository
from esker.repo.tables.roots import logs_at
from esker.repo.tables.table_log import LogEntry

Format = Literal["lance", "delta"]
FORMATS: tuple[Format, Format] = ("lance", "delta")


def rows(*ids: int) -> pa.Table:
    """Rows of two columns."""
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([f"v{id}" for id in ids], pa.string())})


def append(branch: Branch, format: Format, *ids: int, path: str = "lake/t", **options: Any) -> Commit:
    """Appends rows in a commit, and makes the table if there is none."""
    with branch.transact(f"append {ids}") as tx:
        if format == "lance":
            try:
                esker.dataset(tx.store_uri(path))
                mode = "append"
            except NotFoundError:
                mode = "create"
            esker.write_dataset(rows(*ids), tx.store_uri(path), mode=mode, **options)
        else:
            write_deltalake(tx.store_uri(path), rows(*ids), mode="append", **options)
    return branch.get_commit()


def delete(branch: Branch, format: Format, *ids: int, path: str = "lake/t") -> Commit:
    """Deletes rows in a commit. Delta tables write files without them."""
    where = f"id in ({', '.join(map(str, ids))})"
    with branch.transact(f"delete {ids}") as tx:
        if format == "lance":
            esker.dataset(tx.store_uri(path)).delete(where)
        else:
            write_deltalake(tx.store_uri(path), rows(), mode="overwrite", predicate=where)
    return branch.get_commit()


def update(branch: Branch, format: Format, id: int, new: int, path: str = "lake/t") -> Commit:
    """Gives a row another id in a commit. Delta tables write files anew."""
    with branch.transact(f"update {id} to {new}") as tx:
        if format == "lance":
            esker.dataset(tx.store_uri(path)).update({"id": str(new), "v": f"'v{new}'"}, where=f"id = {id}")
        else:
            empty, where = rows(), f"id = {id}"
            write_deltalake(tx.store_uri(path), empty, mode="overwrite", predicate=where)
            write_deltalake(tx.store_uri(path), rows(new), mode="append")
    return branch.get_commit()


def drop(branch: Branch, path: str = "lake/t") -> Commit:
    """Drops a table in a commit."""
    with branch.transact("drop") as tx:
        for found in list(tx.objects(prefix=f"{path}/")):
            tx.object(found.path).delete()
    return branch.get_commit()


def ids_at(repo: Repository, ref: str, format: Format, path: str = "lake/t") -> list[int]:
    """The ids in a table at a ref, sorted."""
    uri = repo.ref(ref).store_uri(path)
    options = dict(repo._core.options or {}) or None
    if format == "lance":
        found = esker.dataset(uri, storage_options=options).to_table()
    else:
        found = DeltaTable(uri, storage_options=options).to_pyarrow_table()
    assert [f"v{id}" for id in found["id"].to_pylist()] == found["v"].to_pylist()
    return sorted(found["id"].to_pylist())


def ids_of_peers(repo: Repository, ref: str, format: Format, place: Path, path: str = "lake/t") -> list[int]:
    """The ids that pylance or deltalake reads of an exported ref, sorted."""
    repo.ref(ref).export(str(place))
    table = f"{place}/{path}"
    if format == "lance":
        return sorted(lance.dataset(table).to_table()["id"].to_pylist())
    return sorted(deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist())


def check_rows(repo: Repository, format: Format, place: Path, *ids: int, path: str = "lake/t") -> None:
    """Compares what esker and the peer read of `main`."""
    assert ids_at(repo, "main", format, path) == sorted(ids)
    assert ids_of_peers(repo, "main", format, place, path) == sorted(ids)
    assert list(repo.fsck()) == []


def entries(repo: Repository, ref: str, format: Format, path: str = "lake/t") -> dict[int, LogEntry]:
    """The entries of a table's log at a ref."""
    content = repo.ref(ref).get_commit().meta_range_id
    return dict(logs_at(repo._core.storage, content, f"{path}/")[format].entries)


def without(one: list[int], other: list[int]) -> list[int]:
    """A bag of ids less another one."""
    return sorted((Counter(one) - Counter(other)).elements())
