"""Data files before a commit: written, complete, and seen by nobody yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from ..._native import table as native
from ..._native.write import write_fragments as write_native
from ...arrow.blob_arrays import with_blobs_v2
from ...arrow.incoming import BatchSource, ReaderLike, coerce_reader, conform
from ...arrow.struct_offsets import rebased
from ...commit.external import ExternalManifestStore
from ...commit.orphans import StagedFiles
from ...commit.protocol import CommitLock
from ...exceptions import AlreadyExistsError, InvalidArgumentError, UnsupportedError
from ...progress import Progress, is_fragment_progress
from ...storage_version import storage_version
from ..base_path import DatasetBasePath, numbered, target_ids
from ..log import LanceLog, is_detached

if TYPE_CHECKING:
    from ...dataset import LanceDataset

WriteMode: TypeAlias = Literal["create", "append", "overwrite"]
WRITE_MODES: tuple[WriteMode, ...] = ("create", "append", "overwrite")

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_ROWS_PER_GROUP = 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
"""Below the 100 GB that object stores allow for one object."""
DEFAULT_MEMORY_LIMIT = 128 * 1024**2
"""Bytes that a write may buffer for all columns together."""


@dataclass(frozen=True)
class Target:
    """Where a write goes: a table at one of its versions, or a place where none is yet."""

    log: LanceLog
    base: native.Manifest | None
    lock: CommitLock | None = None
    """What the dataset that is written to was opened with."""

    @property
    def read_version(self) -> int:
        """The version that the write starts from, 0 if there is none."""
        return self.base.version if self.base else 0


@dataclass(frozen=True)
class Staged:
    """Fragments that wait for their commit, with all that a commit must know of them."""

    target: Target
    mode: WriteMode
    fragments: list[native.Fragment]
    schema: native.Schema
    data_storage_version: str
    initial_bases: list[DatasetBasePath]

    def transaction(self, properties: dict[str, str] | None = None) -> native.Transaction:
        """The transaction that makes them visible: an append to a table that exists, else an overwrite."""
        if self.mode == "append" and self.target.base is not None:
            return native.Transaction.append(self.target.read_version, self.fragments, properties=properties)
        bases = [base.to_parts() for base in self.initial_bases]
        operation = native.Operation.overwrite(self.fragments, self.schema, initial_bases=bases)
        return native.Transaction(self.target.read_version, operation, properties=properties)

    def tell(self, files: StagedFiles) -> None:
        """Tells which files they are."""
        for fragment in self.fragments:
            for file in fragment.files:
                files.add(self.target.log.store, file.location)


def open_target(
    uri: str | os.PathLike[str] | LanceDataset,
    *,
    storage_options: dict[str, str] | None,
    durable: bool,
    manifest_store: ExternalManifestStore | str | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
) -> Target:
    """The table to write to. A dataset is written to from the version that it shows.

    Raises:
        InvalidArgumentError: The dataset shows a detached version.
        UnsupportedError: The table needs a newer writer.
    """
    from ...dataset import LanceDataset

    if isinstance(uri, LanceDataset):
        log = log_of(uri, storage_options=storage_options, durable=durable, manifest_store=manifest_store)
        check_changeable(uri)
        return Target(log, uri._manifest, uri._commit_lock)
    if not isinstance(uri, str | os.PathLike):
        raise TypeError(f"expected a str, a Path or a LanceDataset as uri, found {type(uri).__name__}")
    log = LanceLog.at(
        uri,
        storage_options=storage_options,
        manifest_store=manifest_store,
        durable=durable,
        base_store_params=base_store_params,
    )
    listing = log.newest()
    if not listing.versions:
        return Target(log, None)
    base = log.manifest(listing.latest, listing.scheme)
    base.check_readable()
    base.check_writable()
    log.mount(base)
    return Target(log, base)


def check_changeable(dataset: LanceDataset) -> None:
    """Refuses a dataset that nothing can be committed on top of.

    Raises:
        InvalidArgumentError: It shows a detached version.
        UnsupportedError: The table needs a newer writer.
    """
    version = dataset._manifest.version
    if is_detached(version):
        raise InvalidArgumentError(
            f"expected a version of the history to write to, found the detached version {version}; "
            "restore it, or check another one out",
            version=version,
        )
    dataset._manifest.check_writable()


def log_of(
    dataset: LanceDataset,
    *,
    storage_options: dict[str, str] | None = None,
    durable: bool,
    manifest_store: ExternalManifestStore | str | None = None,
) -> LanceLog:
    """A dataset's table, to write to: over the store that it reads from if that will do, for that knows its files.

    Args:
        dataset: The table.
        storage_options: Options of the store; those that it was opened with by default.
        durable: Whether a put returns only when its bytes are on stable storage.
        manifest_store: What orders its versions; that which it was opened with by default.
    """
    if storage_options is None and manifest_store is None and dataset._log.bases.durable == durable:
        return dataset._log
    options = storage_options if storage_options is not None else dataset._storage_options
    # By its absolute URI: the working folder may be another one since it was opened.
    given = manifest_store if manifest_store is not None else dataset._log.manifest_store
    log = LanceLog.at(
        dataset._log.uri,
        storage_options=options,
        manifest_store=given,
        durable=durable,
        base_store_params=dataset._log.bases.params,
    )
    log.mount(dataset._manifest)
    return log


def stage(
    target: Target,
    data: ReaderLike,
    *,
    schema: pa.Schema | None,
    mode: str,
    data_storage_version: str | None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    max_rows_per_group: int | None = None,
    allow_null_loss: bool = False,
    progress: Progress | None = None,
    external_blobs: Literal["refuse", "reference", "ingest"] = "refuse",
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
) -> Staged:
    """Writes data files for a table and returns their fragments; nothing is visible yet.

    Args:
        target: The table.
        data: The rows; see `esker.arrow.incoming`.
        schema: Their column types, where the data do not say.
        mode: "create", "append" or "overwrite".
        data_storage_version: The file version; None keeps the table's.
        max_rows_per_file: Rows after which a new file, and so a new fragment, is started.
        max_bytes_per_file: Bytes after which a new file is started.
        memory_limit: Bytes of values that may be buffered. A page takes an eighth of them at most, and at most 8 MiB.
        max_rows_per_group: Rows of a group of files of version 0.1.
        allow_null_loss: Whether files of version 0.1 may forget nulls.
        progress: Called with the rows taken so far, or a `FragmentWriteProgress`.
        external_blobs: What becomes of blobs that are given by their URI.
        initial_bases: The base paths of a new table.
        target_bases: Names or paths of base paths that the files go to in turn.
        target_all_bases: Whether they go to all of them, and to the table's own root, in turn.

    Raises:
        AlreadyExistsError: `mode` is "create" and there is a table.
        SchemaMismatchError: An append whose columns are not the table's.
        UnsupportedError: A file version, or a type in it, that cannot be written.
    """
    chosen = check_mode(mode)
    max_rows_per_group = DEFAULT_MAX_ROWS_PER_GROUP if max_rows_per_group is None else max_rows_per_group
    for name, value in (
        ("max_rows_per_group", max_rows_per_group),
        ("max_rows_per_file", max_rows_per_file),
        ("max_bytes_per_file", max_bytes_per_file),
        ("memory_limit", memory_limit),
    ):
        if value <= 0:
            raise InvalidArgumentError(f"expected {name} > 0, found {value}")
    if chosen == "create" and target.base is not None:
        raise AlreadyExistsError(
            f'a table at {target.log.uri} exists already; use mode="append" or mode="overwrite"', uri=target.log.uri
        )
    version = storage_version(data_storage_version, target.base, chosen)
    source = coerce_reader(data, schema)
    check_input_schema(source.schema)
    if chosen == "append" and target.base is not None:
        # A column that the data lack is not written at all: it reads as null.
        table = pa.schema(target.base.schema)
        fields = target.base.schema.select([name for name in table.names if name in source.schema.names])
        source = conform(source, table)
    else:
        if version == "2.2":
            source = with_blobs_v2(source)
        fields = native.Schema.from_arrow(source.schema)
        fields.check_column_names()
    if callable(progress):
        source = _counted(source, progress)
    elif progress is not None and not is_fragment_progress(progress):
        raise TypeError(
            "expected progress to be called with a number of rows, or to have begin and complete, "
            f"found {type(progress).__name__}"
        )
    bases = _bases(target, initial_bases, chosen)
    targets = target_ids(bases, target_bases, target_all_bases)
    target.log.bases.mount(target.log.store, [base.to_parts() for base in bases])
    try:
        fragments = write_native(
            target.log.store,
            rebased(source.reader()),
            schema=fields,
            data_storage_version=version,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            memory_limit=memory_limit,
            external_blobs=external_blobs,
            max_rows_per_group=max_rows_per_group,
            allow_null_loss=allow_null_loss,
            base=target.base if chosen == "append" else None,
            target_bases=targets,
        )
    except Exception:
        if source.failure is not None:
            raise source.failure from None
        raise
    return Staged(target, chosen, fragments, fields, version, bases if target.base is None else [])


def _bases(target: Target, initial: Sequence[DatasetBasePath] | None, mode: str) -> list[DatasetBasePath]:
    """The base paths that a table has, or will have."""
    if target.base is None:
        return numbered(initial)
    if initial:
        raise InvalidArgumentError(
            f"Cannot register new bases in {mode.capitalize()} mode: expected initial_bases for a new table only, "
            f"found a table at {target.log.uri}; add them by add_bases",
            uri=target.log.uri,
        )
    return [DatasetBasePath.from_parts(parts) for parts in target.base.base_paths]


def check_mode(mode: str) -> WriteMode:
    """The mode, if it is one.

    Raises:
        InvalidArgumentError: It is none.
    """
    for known in WRITE_MODES:
        if mode == known:
            return known
    raise InvalidArgumentError(f'invalid mode: expected "create", "append" or "overwrite", found {mode!r}')


def check_input_schema(schema: pa.Schema) -> None:
    """Refuses a schema that no file can hold as it is.

    Raises:
        InvalidArgumentError: Metadata that are no text, or a name with a NUL.
        UnsupportedError: An extension type of which Lance has a form of its own.
    """
    _check_metadata(schema)
    _check_extensions(schema)
    for field in schema:
        _check_name(field)


def _check_metadata(schema: pa.Schema) -> None:
    """Metadata are text in the format: bytes that are not UTF-8 would come back as something else."""
    for key, value in (schema.metadata or {}).items():
        try:
            key.decode()
            value.decode()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"schema metadata {key!r} is not valid utf8; encode it, for example as base64"
            ) from error


def _check_name(field: pa.Field) -> None:
    """Arrow's C interface ends a name at its first NUL: another one would come through."""
    if "\0" in field.name:
        raise InvalidArgumentError(f"expected names without NUL, found {field.name!r}; choose another name")
    for index in range(field.type.num_fields):
        _check_name(field.type.field(index))


def _check_extensions(schema: pa.Schema) -> None:
    """Lance keeps `arrow.json` in a binary form of its own: as text under that name the peers refuse the table."""
    for field in schema:
        name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
        if "arrow.json" in (name, getattr(field.type, "extension_name", "")):
            raise UnsupportedError(
                f"column {field.name!r}: extension arrow.json (json) cannot be written yet; cast it to a string",
                column=field.name,
                type=str(field.type),
            )


def _counted(source: BatchSource, progress: Callable[[int], object]) -> BatchSource:
    rows = 0

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal rows
        rows += batch.num_rows
        progress(rows)
        return batch

    return source.map(source.schema, count)


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


def refuse_options(**options: Any) -> None:
    """Refuses options of pylance that this release does not have, rather than ignore what they ask for.

    Raises:
        UnsupportedError: One of them is given.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"option {name} is not supported yet, leave it out", operation=name)
