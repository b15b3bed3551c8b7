"""`WriteRequest`: which rows a write writes, to which table, and into which files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from inspect import Parameter, signature
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import pyarrow as pa

from ...arrow.incoming import ReaderLike
from ...commit.external import ExternalManifestStore
from ...commit.limits import DEFAULT_COMMIT_TIMEOUT
from ...commit.loop import DEFAULT_MAX_RETRIES, Backoff
from ...commit.protocol import CommitLock
from ...exceptions import InvalidArgumentError, InvalidTypeError
from ...missing import refuse_arguments
from ...progress import Progress, Watcher, as_progress
from ..base_path import DatasetBasePath
from ..cleanup.automatic import AutoCleanupConfig, config_of
from ..handle import table_or_uri
from ..session import Session
from .compression import Compression, checked_compression
from .target import LanceTarget, open_target

_Function = TypeVar("_Function", bound=Callable[..., Any])
WriteMode: TypeAlias = Literal["create", "append", "overwrite"]
WRITE_MODES: tuple[WriteMode, ...] = ("create", "append", "overwrite")

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_ROWS_PER_GROUP = 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
"""Below the 100 GB that an object store may limit an object to."""
DEFAULT_MEMORY_LIMIT = 128 * 1024**2
"""Bytes that a write may buffer for all columns together."""


class FileArguments(TypedDict, total=False):
    """The common arguments of functions that write data files: `write_dataset`, `write_fragments`,
    `LanceFragment.create`. `write_dataset` documents them."""

    max_rows_per_file: int
    max_rows_per_group: int | None
    max_bytes_per_file: int
    progress: Watcher | None
    storage_options: dict[str, str] | None
    data_storage_version: str | None
    compression: Compression | None
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
    session: Session | None


class WriteArguments(FileArguments, total=False):
    """The arguments of `write_dataset`: those for files, and those for the commit."""

    commit_lock: CommitLock | None
    enable_v2_manifest_paths: bool
    enable_stable_row_ids: bool
    commit_message: str | None
    transaction_properties: dict[str, str] | None
    application: tuple[str, int] | None
    max_retries: int
    commit_timeout: timedelta | None
    backoff: Backoff | None
    auto_cleanup_options: AutoCleanupConfig | None


DEFAULTS: WriteArguments = {
    "max_rows_per_file": DEFAULT_MAX_ROWS_PER_FILE,
    "max_rows_per_group": DEFAULT_MAX_ROWS_PER_GROUP,
    "max_bytes_per_file": DEFAULT_MAX_BYTES_PER_FILE,
    "progress": None,
    "storage_options": None,
    "data_storage_version": None,
    "compression": None,
    "durable": True,
    "memory_limit": DEFAULT_MEMORY_LIMIT,
    "external_blob_mode": "reference",
    "allow_external_blob_outside_bases": False,
    "allow_null_loss": False,
    "manifest_store": None,
    "initial_bases": None,
    "target_bases": None,
    "target_all_bases": None,
    "base_store_params": None,
    "session": None,
    "commit_lock": None,
    "enable_v2_manifest_paths": True,
    "enable_stable_row_ids": False,
    "commit_message": None,
    "transaction_properties": None,
    "application": None,
    "max_retries": DEFAULT_MAX_RETRIES,
    "commit_timeout": DEFAULT_COMMIT_TIMEOUT,
    "backoff": None,
    "auto_cleanup_options": None,
}
"""What the arguments are where they are not given."""


def spelled_out(arguments: type[FileArguments]) -> Callable[[_Function], _Function]:
    """A decorator that gives a function with `**options: Unpack[arguments]` a signature that names each of them.

    Example:
        >>> import inspect
        >>> from esker import write_dataset
        >>> inspect.signature(write_dataset).parameters["durable"].default
        True
    """

    def decorate(function: _Function) -> _Function:
        found = signature(function)
        *named, rest = found.parameters.values()
        kinds = arguments.__annotations__
        keywords = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=kinds[name].__forward_arg__)
            for name, value in DEFAULTS.items()
            if name in kinds
        ]
        spelled = found.replace(parameters=[*named, *keywords, rest.replace(annotation="Any")])
        vars(function)["__signature__"] = spelled
        return function

    return decorate


@dataclass(frozen=True, kw_only=True)
class WriteRequest:
    """What to write, where, and how.

    Attributes:
        target: The table.
        data: The rows; see `esker.arrow.incoming`.
        schema: Their column types, if the data do not have any.
        mode: "create", "append" or "overwrite".
        data_storage_version: The file version; None keeps the table's.
        compression: How small the files are to be; None for what the table has.
        max_rows_per_file: Rows after which a new file, and with it a new fragment, is started.
        max_bytes_per_file: Bytes after which a new file is started.
        max_rows_per_group: Rows per group in files of version 0.1; None for the default.
        memory_limit: Bytes of values to buffer at most. A page has at most an eighth of them, and at most 8 MiB.
        allow_null_loss: Whether files of version 0.1 may lose nulls.
        progress: Gets the number of rows taken so far, and the fragments.
        external_blobs: What to do with blobs that are given by their URI.
        initial_bases: The base paths of a new table.
        target_bases: Names or paths of base paths that the files are written to in turn.
        target_all_bases: Whether they are written to all base paths, and to the table's own root, in turn.
        auto_cleanup_options: When a new table cleans itself up.

    Raises:
        InvalidArgumentError: The mode is unknown, or a limit is not positive.
    """

    target: LanceTarget
    data: ReaderLike
    schema: pa.Schema | None = None
    mode: WriteMode = "append"
    data_storage_version: str | None = None
    compression: Compression | None = None
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
    auto_cleanup_options: AutoCleanupConfig | None = None

    def __post_init__(self) -> None:
        config_of(self.auto_cleanup_options)
        checked_compression(self.compression)
        if self.mode not in WRITE_MODES:
            raise InvalidArgumentError(f'invalid mode: expected "create", "append" or "overwrite", found {self.mode!r}')
        for name in ("max_rows_per_group", "max_rows_per_file", "max_bytes_per_file", "memory_limit"):
            value = getattr(self, name)
            if value is not None and not hasattr(value, "__index__"):
                raise InvalidTypeError(f"expected {name} as an integer, found {type(value).__name__}")
            if value is not None and not 0 < value < 1 << 64:
                raise InvalidArgumentError(f"expected {name} > 0{' and < 2^64' if value > 0 else ''}, found {value}")

    @classmethod
    def of(
        cls, target: LanceTarget, data: ReaderLike, schema: pa.Schema | None, mode: str, given: FileArguments
    ) -> WriteRequest:
        """The request for the arguments of `write_dataset`.

        Raises:
            InvalidArgumentError: See the class, or `external_blobs`.
        """
        # None stands for what is there without it, as in pylance.
        named: dict[str, Any] = {name: value for name, value in given.items() if name in _FIELDS and value is not None}
        named["progress"] = as_progress(given.get("progress"))
        blobs = external_blobs(
            given.get("external_blob_mode", DEFAULTS["external_blob_mode"]),
            given.get("allow_external_blob_outside_bases", DEFAULTS["allow_external_blob_outside_bases"]),
        )
        return cls(target=target, data=data, schema=schema, mode=mode, external_blobs=blobs, **named)  # type: ignore[arg-type]


def open_for(table: object, given: FileArguments) -> LanceTarget:
    """Opens the target of the arguments of `write_dataset`.

    Args:
        table: A path, a URI or a dataset.
        given: The arguments, which `refuse_unknown` has seen.
    """
    target = open_target(
        table_or_uri(table),  # type: ignore[arg-type]
        storage_options=given.get("storage_options"),
        durable=given.get("durable", DEFAULTS["durable"]),
        manifest_store=given.get("manifest_store"),
        base_store_params=given.get("base_store_params"),
    )
    session = given.get("session")
    if session is not None:
        session._watch(target.log.store)
    return target


_FIELDS = frozenset(field.name for field in fields(WriteRequest))


_OF_PYLANCE = frozenset(
    {
        "blob_pack_file_size_threshold",
        "data_cache_bytes",
        "enable_stable_row_ids",
        "max_page_bytes",
        "namespace_client",
        "table_id",
        "use_legacy_format",
    }
)
"""The arguments of pylance's functions that this release does not have."""


def refuse_unknown(call: str, given: FileArguments, known: type[FileArguments] = WriteArguments) -> None:
    """Refuses arguments of pylance that this release does not have, and those that a function does not have.

    Args:
        call: The name of the function.
        given: The arguments.
        known: Those that the function takes.

    Raises:
        InvalidTypeError: The function has no argument of a name.
        UnsupportedError: Only pylance has an argument.
    """
    refuse_arguments(call, given, known.__annotations__, _OF_PYLANCE)


class ExternalBlobError(InvalidArgumentError, OSError):
    """Options about blobs by URI that do not go together: pylance refuses them by an `OSError`."""


def external_blobs(mode: str, allow_outside: bool) -> Literal["refuse", "reference", "ingest"]:
    """What to do with blobs that are given by their URI, from pylance's two options.

    Raises:
        InvalidArgumentError: The mode is unknown, or does not go with `allow_outside`.
    """
    if mode not in ("reference", "ingest"):
        raise InvalidArgumentError(f"expected external_blob_mode 'reference' or 'ingest', found {mode!r}")
    if mode == "ingest":
        if allow_outside:
            raise ExternalBlobError(
                'allow_external_blob_outside_bases only applies when external_blob_mode="reference"; '
                "leave one of them out"
            )
        return "ingest"
    return "reference" if allow_outside else "refuse"
