"""`DeltaTable._table`: what programs ask of deltalake's table in Rust, though its name says that it is private."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

DEFAULT_BUFFER = 4 * (os.cpu_count() or 1)
"""How many log files deltalake reads at once if it is not told."""


class DeltaTableConfig(NamedTuple):
    """How a table was opened, as deltalake tells it; here it changes nothing."""

    without_files: bool
    log_buffer_size: int
    skip_stats: bool = False


class RawTable:
    """A table that is open.

    Args:
        opened: The table, a `DeltaTable`.
    """

    def __init__(self, opened: Any) -> None:
        self.opened = opened

    def table_uri(self) -> str:
        """Where the table is, as a URL with a `/` at its end: `file://` where it is a folder."""
        uri: str = self.opened.table_uri
        return (Path(uri).as_uri() if "://" not in uri else uri.rstrip("/")) + "/"

    def version(self) -> int:
        """The number of the version that is open."""
        version: int = self.opened.version()
        return version

    def get_add_file_sizes(self) -> dict[str, int]:
        """The bytes of each file, by its path below the table: polars asks for them when it scans a table."""
        selection = self.opened._select()
        sizes = pa.record_batch(selection.describe()).column("size_bytes")
        return dict(zip(selection.paths(), sizes.to_pylist(), strict=True))


class PeerAttributes:
    """What an open table has because programs ask deltalake's for it."""

    _config: DeltaTableConfig

    @property
    def _table(self) -> RawTable:
        return RawTable(self)

    @property
    def table_config(self) -> DeltaTableConfig:
        """How the table was opened."""
        return self._config
