"""What a write is asked to do: which rows, where to, and in which files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypedDict

import pyarrow as pa

from ...arrow.incoming import ReaderLike
from ...commit.external import ExternalManifestStore
from ...commit.loop import Backoff
from ...commit.protocol import CommitLock
from ...exceptions import InvalidArgumentError
from ...missing import refuse_options
from ...progress import Progress, Watcher, as_progress
from ..base_path import DatasetBasePath
from ..handle import table_or_uri
from ..io_stats import Session
from .target import LanceTarget, open_target

WriteMode: TypeAlias = Literal["create", "append", "overwrite"]
WRITE_MODES: tuple[WriteMode, ...] = ("create", "append", "overwrite")

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_ROWS_PER_GROUP = 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
"""Below the 100 GB that object stores allow for one object."""
DEFAULT_MEMORY_LIMIT = 128 * 1024**2
"""Bytes that a write may buffer for all columns together."""


class FileArguments(TypedDict, total=False):
    """The arguments that whatever writes data files has in common: `write_dataset`, `write_fragments`,
    `LanceFragment.create`. See `write_dataset` for what each means."""

    max_rows_per_file: int
    max_rows_per_group: int | None
    max_bytes_per_file: int
    progress: Watcher | None
    storage_options: dict[str, str] | None
    data_storage_version: str | None
    durable: bool
    memory_limit: int
    external_blob_mode: Literal["reference", "ingest"]
    allow_external_blob_outside_bases: bool
    allow_null_loss: bool
    manifest_store: ExternalManifestStore | str | None
    initial_bases: Sequence[DatasetBasePath] | None
    target_bases: Sequence[str] | None
    target_all_bases: bool | None
    base_store_params: dict[str, dict[str, str]] | None


class WriteArguments(FileArguments, total=False):
    """The arguments of `write_dataset`: those of files, and those of the commit."""

    commit_lock: CommitLock | None
    enable_v2_manifest_paths: bool
    enable_stable_row_ids: bool
    commit_message: str | None
    transaction_properties: dict[str, str] | None
    application: tuple[str, int] | None
    max_retries: int
    commit_timeout: timedelta | None
    backoff: Backoff | None
    session: Session | None


@dataclass(frozen=True, kw_only=True)
class WriteRequest:
    """What to write, where, and how.

    Attributes:
        target: The table.
        data: The rows; see `esker.arrow.incoming`.
        schema: Their column types, where the data do not say.
        mode: "create", "append" or "overwrite".
        data_storage_version: The file version; None keeps the table's.
        max_rows_per_file: Rows after which a new file, and so a new fragment, is started.
        max_bytes_per_file: Bytes after which a new file is started.
        max_rows_per_group: Rows of a group of files of version 0.1; None for the default.
        memory_limit: Bytes of values that may be buffered. A page takes an eighth of them at most, and at most 8 MiB.
        allow_null_loss: Whether files of version 0.1 may forget nulls.
        progress: Told of the rows as they are taken, and of the fragments that they make.
        external_blobs: What becomes of blobs that are given by their URI.
        initial_bases: The base paths of a new table.
        target_bases: Names or paths of base paths that the files go to in turn.
        target_all_bases: Whether they go to all of them, and to the table's own root, in turn.

    Raises:
        InvalidArgumentError: An unknown mode, or a limit that is not positive.
    """

    target: LanceTarget
    data: ReaderLike
    schema: pa.Schema | None = None
    mode: WriteMode = "append"
    data_storage_version: str | None = None
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    max_rows_per_group: int | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    allow_null_loss: bool = False
    progress: Progress | None = None
    external_blobs: Literal["refuse", "reference", "ingest"] = "refuse"
    initial_bases: Sequence[DatasetBasePath] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None

    def __post_init__(self) -> None:
        if self.mode not in WRITE_MODES:
            raise InvalidArgumentError(f'invalid mode: expected "create", "append" or "overwrite", found {self.mode!r}')
        for name in ("max_rows_per_group", "max_rows_per_file", "max_bytes_per_file", "memory_limit"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidArgumentError(f"expected {name} > 0, found {value}")

    @classmethod
    def of(
        cls, target: LanceTarget, data: ReaderLike, schema: pa.Schema | None, mode: str, given: FileArguments
    ) -> WriteRequest:
        """The request that the arguments of `write_dataset` mean.

        Raises:
            InvalidArgumentError: See the class, or `external_blobs`.
            UnsupportedError: An argument that this release does not have.
        """
        refuse_unknown(given)
        named: dict[str, Any] = {name: value for name, value in given.items() if name in _FIELDS}
        named["progress"] = as_progress(given.get("progress"))
        blobs = external_blobs(
            given.get("external_blob_mode", "reference"), given.get("allow_external_blob_outside_bases", False)
        )
        return cls(target=target, data=data, schema=schema, mode=mode, external_blobs=blobs, **named)  # type: ignore[arg-type]


def open_for(table: object, given: FileArguments) -> LanceTarget:
    """The table that the arguments of `write_dataset` are about.

    Args:
        table: A path, a URI or a dataset.
        given: The arguments.

    Raises:
        UnsupportedError: An argument that this release does not have.
    """
    refuse_unknown(given)
    return open_target(
        table_or_uri(table),  # type: ignore[arg-type]
        storage_options=given.get("storage_options"),
        durable=given.get("durable", True),
        manifest_store=given.get("manifest_store"),
        base_store_params=given.get("base_store_params"),
    )


_FIELDS = frozenset(field.name for field in fields(WriteRequest))


def refuse_unknown(given: FileArguments) -> None:
    """Refuses arguments of pylance that this release does not have.

    Raises:
        UnsupportedError: One of them is given.
    """
    refuse_options(**{name: value for name, value in given.items() if name not in WriteArguments.__annotations__})


def external_blobs(mode: str, allow_outside: bool) -> Literal["refuse", "reference", "ingest"]:
    """What pylance's options say of blobs that are given by their URI.

    Raises:
        InvalidArgumentError: An unknown mode, or one that the permission does not go with.
    """
    if mode not in ("reference", "ingest"):
        raise InvalidArgumentError(f"expected external_blob_mode 'reference' or 'ingest', found {mode!r}")
    if mode == "ingest":
        if allow_outside:
            raise InvalidArgumentError(
                "allow_external_blob_outside_bases only applies when external_blob_mode='reference'"
            )
        return "ingest"
    return "reference" if allow_outside else "refuse"
