"""esker itself."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from benches.peers.lance_tables import LanceReader
from benches.peers.peer import Peer, Reader, Unavailable


class Esker(Peer):
    """esker, by default without fsync: none of the peers makes its files durable, so this compares like with like."""

    def __init__(self, *, file_version: str, durable: bool = False) -> None:
        try:
            import esker
        except ImportError as error:
            raise Unavailable(f"esker is not installed: {error}") from error
        if not hasattr(esker, "write_dataset"):
            raise Unavailable("esker has no write_dataset yet")
        self.module = esker
        self.durable = durable
        self.name = "esker, fsync" if durable else "esker"
        self.file_version = file_version
        self.settings = f"file version {file_version}; durable={durable}"

    @property
    def version(self) -> str:
        return version("esker")

    def write(self, table: pa.Table, path: Path) -> None:
        self.module.write_dataset(table, str(path), data_storage_version=self.file_version, durable=self.durable)

    def open(self, path: Path) -> Reader:
        return LanceReader(self.module, str(path))
