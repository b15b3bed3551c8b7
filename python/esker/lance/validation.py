"""Validation of a version: compares its manifest with its files."""

from __future__ import annotations

from typing import Any

from .._native import table as native
from .._native.file import FileReader
from .._native.store import Store, path_at_home
from ..exceptions import CorruptFileError
from .scan.options import ScanOptions
from .scan.scan import Scan
from .version import TableVersion


def validate(table: TableVersion) -> None:
    """Checks that the files of a version agree with its manifest; see `LanceDataset.validate`.

    Raises:
        CorruptFileError: Something does not agree; the message says what and where.
        NotFoundError: A file is missing.
    """
    before = -1
    for fragment in table.fragments:
        if fragment.id <= before:
            raise _damage(table, f"expected fragments with rising ids, found {fragment.id} after {before}")
        before = fragment.id
        _check_fragment(table, fragment)
    _check_rows(table, table.num_rows, None)


def validate_fragment(table: TableVersion, fragment: native.Fragment) -> None:
    """Checks that the files of one fragment agree with the manifest; see `LanceFragment.validate`.

    Raises:
        CorruptFileError: Something does not agree; the message says what and where.
        NotFoundError: A file is missing.
    """
    _check_fragment(table, fragment)
    if fragment.num_rows is not None:
        _check_rows(table, fragment.num_rows, (fragment.id,))


def _check_fragment(table: TableVersion, fragment: native.Fragment) -> None:
    _check_columns(table, fragment)
    for file in fragment.files:
        _check_file(table, table.store, fragment, file)


def _check_rows(table: TableVersion, expected: int, fragment_ids: tuple[int, ...] | None) -> None:
    """Reads the deletion files, and checks them against their fragments."""
    options = ScanOptions(columns=[], with_row_address=True, fragment_ids=fragment_ids)
    found = sum(batch.num_rows for batch in Scan(table, options).to_batches())
    if found != expected:
        raise _damage(table, f"expected {expected} rows, found {found}")


def _check_columns(table: TableVersion, fragment: native.Fragment) -> None:
    seen: set[int] = set()
    for id_ in (id_ for file in fragment.files for id_ in file.fields if id_ >= 0):
        if id_ in seen:
            raise _damage(table, f"fragment {fragment.id}: expected each column in one file, found field {id_} in two")
        seen.add(id_)


def _check_file(table: TableVersion, store: Store, fragment: native.Fragment, file: native.DataFile) -> None:
    reader = FileReader(store, file.location)
    rows = fragment.physical_rows
    if rows and reader.num_rows != rows:
        message = f"expected {rows} rows as fragment {fragment.id} has, found {reader.num_rows}"
        raise _damage(table, f"{path_at_home(file.location)}: {message}")
    size = store.head(file.location).size
    if file.file_size_bytes not in (None, size):
        message = f"expected {file.file_size_bytes} bytes, found {size}"
        raise _damage(table, f"{path_at_home(file.location)}: {message}")


def _damage(table: TableVersion, message: str) -> CorruptFileError:
    return CorruptFileError(
        f"version {table.number} of {table.uri} is damaged: {message}; restore an older version",
        uri=table.uri,
        version=table.number,
    )


def manifest_needs_migration(dataset: Any) -> bool:
    """Whether the next commit to a table completes what old writers left out of its manifest.

    They did not note how many rows a fragment has, and how many of them are deleted: commits count them.

    Args:
        dataset: The table, as `esker.dataset` opens it.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance import manifest_needs_migration
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-needs-migration")
        >>> manifest_needs_migration(dataset)
        False
    """
    fragments = dataset._table.manifest.fragments()
    return any(fragment.num_rows is None for fragment in fragments)
