"""Tables on branches, for the tests of merges: how they are changed, and what esker and the peers read of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import deltalake
import lance
import pyarrow as pa

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.repo import Branch, Reference, Repository

Format = Literal["lance", "delta"]
FORMATS: list[Format] = ["lance", "delta"]
FOLDERS = {"lance": "lake/t", "delta": "lake/d"}


def rows_of(*ids: int, value: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * len(ids)})


class Lake:
    """A repository with one table, in one of the formats, at the same path on all branches."""

    def __init__(self, place: Path, format: Format, path: str | None = None) -> None:
        self.repo = Repository.create(place / "repo", committer="me")
        self.format = format
        self.path = FOLDERS[format] if path is None else path
        self.main = self.repo.branch("main")

    def fork(self, name: str = "f", source: str = "main") -> Branch:
        return self.repo.branch(name).create(source)

    def write(self, branch: Branch, *ids: int, mode: Any = "append", path: str | None = None, **more: Any) -> None:
        with branch.transact(f"{mode} {ids}") as tx:
            uri = tx.store_uri(self.path if path is None else path)
            if self.format == "lance":
                if mode == "overwrite" and not list(tx.objects(1, prefix=f"{self.path}/_versions/")):
                    mode = "create"
                esker.write_dataset(rows_of(*ids), uri, mode=mode, **more)
            else:
                write_deltalake(uri, rows_of(*ids), mode=mode, **more)

    def change(self, branch: Branch, what: Any) -> None:
        """Runs a function of the table's URI in a transaction."""
        with branch.transact("change") as tx:
            what(tx.store_uri(self.path))

    def by_peer(self, branch: Branch, what: Callable[[str], object]) -> None:
        """Lets a peer change the table: what it left behind on disk is committed to the branch."""
        with tempfile.TemporaryDirectory() as folder:
            before = {found.path: found for found in branch.objects(prefix=self.path)}
            branch.export(folder, prefix=self.path)
            place = Path(folder) / self.path
            was = {path: (Path(folder) / path).read_bytes() for path in before}
            what(str(place))
            now = {str(p.relative_to(folder)): p.read_bytes() for p in place.rglob("*") if p.is_file()}
            for path, data in now.items():
                if was.get(path) != data:
                    branch.object(path).upload(data)
            branch.delete_objects([path for path in was if path not in now])
            branch.commit("by a peer")

    def drop(self, branch: Branch) -> None:
        branch.delete_objects([found.path for found in branch.objects(prefix=self.path + "/")])
        branch.commit("drop")

    def read(self, ref: str = "main") -> tuple[int, list[int]]:
        """The newest version and the ids, after the peers have read the same."""
        found = self.read_here(self.repo.ref(ref))
        assert self.read_by_peer(self.repo.ref(ref)) == found
        return found

    def read_here(self, ref: Reference) -> tuple[int, list[int]]:
        uri = ref.store_uri(self.path)
        if self.format == "lance":
            dataset = esker.dataset(uri)
            return dataset.version, sorted(dataset.to_table()["id"].to_pylist())
        table = DeltaTable(uri)
        return table.version(), sorted(table.to_pyarrow_table()["id"].to_pylist())

    def read_by_peer(self, ref: Reference) -> tuple[int, list[int]]:
        with tempfile.TemporaryDirectory() as folder:
            ref.export(folder, prefix=self.path)
            place = f"{folder}/{self.path}"
            if self.format == "lance":
                dataset = lance.dataset(place)
                return dataset.version, sorted(dataset.to_table()["id"].to_pylist())
            table = deltalake.DeltaTable(place)
            return table.version(), sorted(table.to_pyarrow_table()["id"].to_pylist())

    def history(self, ref: str = "main") -> dict[str, str]:
        """The entries of the log with their checksums."""
        folder = f"{self.path}/{'_versions' if self.format == 'lance' else '_delta_log'}/"
        return {one.path: one.checksum for one in self.repo.ref(ref).objects(prefix=folder)}  # type: ignore[union-attr]

    def paths(self, ref: str = "main") -> list[str]:
        return [one.path.removeprefix(self.path + "/") for one in self.repo.ref(ref).objects(prefix=self.path + "/")]

    @property
    def first(self) -> int:
        """The number of a table's first version."""
        return 1 if self.format == "lance" else 0
