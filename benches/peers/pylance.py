"""pylance, the reference implementation of the Lance format."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from benches.peers.lance_tables import LanceReader
from benches.peers.peer import Peer, Reader, Unavailable


class Pylance(Peer):
    """pylance, by default with the file version that esker writes."""

    def __init__(self, *, file_version: str, name: str = "pylance") -> None:
        try:
            import lance
        except ImportError as error:
            raise Unavailable(f"pylance is not installed: {error}") from error
        self.module = lance
        self.name = name
        self.file_version = file_version
        self.settings = f"file version {file_version}; does not fsync"

    @property
    def version(self) -> str:
        return version("pylance")

    def write(self, table: pa.Table, path: Path) -> None:
        self.module.write_dataset(table, str(path), data_storage_version=self.file_version)

    def open(self, path: Path) -> Reader:
        return LanceReader(self.module, str(path))
