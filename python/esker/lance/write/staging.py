"""Stages a write: complete data files that are not visible before a commit refers to them.

```
incoming data ──coerce_reader──> batches ──checked──> ──conformed──> rows of the table ──_stored──> fragments
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..._native import table as native
from ..._native.schema import Schema
from ..._native.write import write_fragments
from ...arrow.blob_arrays import holds_blobs
from ...arrow.incoming import coerce_reader
from ...arrow.struct_offsets import rebased
from ...commit.orphans import StagedFiles
from ...exceptions import AlreadyExistsError, InvalidArgumentError, of_changes
from ...progress import Progress, Tally
from ..base_path import DatasetBasePath, numbered, target_ids
from ..cleanup.automatic import config_of
from ..fragment_metadata import FragmentMetadata
from .checking import check_new_columns, checked
from .compression import compression_config, compression_of
from .conforming import ConformedRows, conformed
from .request import DEFAULT_MAX_ROWS_PER_GROUP, WriteMode, WriteRequest
from .target import LanceTarget


@dataclass(frozen=True)
class StagedFragments:
    """Staged fragments, with all that their commit needs."""

    target: LanceTarget
    mode: WriteMode
    fragments: list[native.Fragment]
    schema: Schema
    data_storage_version: str
    initial_bases: list[DatasetBasePath]
    initial_config: dict[str, str]

    def transaction(self, properties: dict[str, str] | None = None) -> native.Transaction:
        """The transaction that commits them: an append to a table that exists, else an overwrite."""
        if self.mode == "append" and self.target.base is not None:
            return native.Transaction.append(self.target.read_version, self.fragments, properties=properties)
        bases = [base.to_parts() for base in self.initial_bases]
        operation = native.Operation.overwrite(
            self.fragments, self.schema, initial_bases=bases, config=self.initial_config or None
        )
        return native.Transaction(self.target.read_version, operation, properties=properties)

    def tell(self, files: StagedFiles) -> None:
        """Adds their data files to `files`."""
        has_blobs = any(holds_blobs(field.type) for field in pa.schema(self.schema))
        for fragment in self.fragments:
            for file in fragment.files:
                if has_blobs:
                    files.add(self.target.log.store, blob_folder(file.location))
                files.add(self.target.log.store, file.location)

    def report(self, progress: Progress | None) -> None:
        """Reports the fragments."""
        if progress is None:
            return
        tally = Tally(progress, "writing files", unit="files", total=sum(len(one.files) for one in self.fragments))
        for fragment in self.fragments:
            tally.add(
                rows=fragment.physical_rows,
                bytes=sum(file.file_size_bytes or 0 for file in fragment.files),
                files=len(fragment.files),
                fragments=[FragmentMetadata.from_native(fragment)],
            )


def blob_folder(location: str) -> str:
    """Where the blobs of a data file lie that are not in it: in a folder of its name."""
    return location.removesuffix(".lance") + "/"


@of_changes()
def stage(request: WriteRequest) -> StagedFragments:
    """Writes data files for a table and returns their fragments; nothing is visible yet.

    Raises:
        AlreadyExistsError: The mode is "create", and there is a table.
        SchemaMismatchError: The columns of an append are not those of the table.
        UnsupportedError: The file version, or a type in that version, cannot be written.
    """
    target = request.target
    if request.mode == "create" and target.base is not None:
        raise AlreadyExistsError(
            f'a table at {target.log.uri} exists already; use mode="append" or mode="overwrite"', uri=target.log.uri
        )
    incoming = coerce_reader(request.data, request.schema)
    if request.mode != "append" or target.base is None:
        check_new_columns(incoming.schema)
    return _stored(conformed(checked(incoming), request), request)


def _stored(rows: ConformedRows, request: WriteRequest) -> StagedFragments:
    target = request.target
    bases = _bases(target, request.initial_bases, request.mode)
    targets = target_ids(bases, request.target_bases, request.target_all_bases, root=target.log.uri)
    target.log.bases.mount(target.log.store, [base.to_parts() for base in bases])
    fragments = rows.source.feed(
        lambda reader: write_fragments(
            target.log.store,
            rebased(reader),
            schema=rows.fields,
            data_storage_version=rows.data_storage_version,
            compression=compression_of(request.compression, target.base),
            max_rows_per_file=request.max_rows_per_file,
            max_bytes_per_file=request.max_bytes_per_file,
            memory_limit=request.memory_limit,
            external_blobs=request.external_blobs,
            max_rows_per_group=request.max_rows_per_group or DEFAULT_MAX_ROWS_PER_GROUP,
            allow_null_loss=request.allow_null_loss,
            base=target.base if request.mode == "append" else None,
            target_bases=targets,
        )
    )
    initial = bases if target.base is None else []
    config = config_of(request.auto_cleanup_options) if target.base is None else {}
    if target.base is None or request.mode == "overwrite":
        config |= compression_config(request.compression)
    return StagedFragments(target, request.mode, fragments, rows.fields, rows.data_storage_version, initial, config)


def _bases(target: LanceTarget, initial: Sequence[DatasetBasePath] | None, mode: str) -> list[DatasetBasePath]:
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
