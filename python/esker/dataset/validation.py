"""Whether a table is whole: what its manifest says beside what its files hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .._native import table as native
from .._native.file import FileReader
from .._native.store import Store, path_at_home
from ..exceptions import CorruptFileError

if TYPE_CHECKING:
    from . import LanceDataset


class ValidationApi:
    """What `LanceDataset` knows of its own health."""

    def validate(self) -> None:
        """Checks that this version is whole: every data file is there, opens and has the rows that the manifest says,
        deletion files fit their fragments, and each fragment has its own id and no column twice.

        Reads the metadata of all data files and all deletion files, no values.

        Raises:
            CorruptFileError: Something does not fit; the message says what and where.
            NotFoundError: A file is missing.

        Example:
            >>> import esker, pyarrow as pa
            >>> esker.write_dataset(pa.table({"id": [1]}), "memory://doc-validate").validate()
        """
        dataset = cast("LanceDataset", self)
        before = -1
        for fragment in dataset._fragments():
            if fragment.id <= before:
                raise _damage(dataset, f"expected fragments with rising ids, found {fragment.id} after {before}")
            before = fragment.id
            _check_columns(dataset, fragment)
            for file in fragment.files:
                _check_file(dataset, dataset._store, fragment, file)
        # Reads all deletion files, and checks them against their fragments.
        expected = dataset._num_rows()
        found = sum(batch.num_rows for batch in dataset._scan(columns=[], with_row_address=True).to_batches())
        if found != expected:
            raise _damage(dataset, f"expected {expected} rows, found {found}")


def _check_columns(dataset: LanceDataset, fragment: native.Fragment) -> None:
    seen: set[int] = set()
    for id_ in (id_ for file in fragment.files for id_ in file.fields if id_ >= 0):
        if id_ in seen:
            raise _damage(
                dataset, f"fragment {fragment.id}: expected each column in one file, found field {id_} in two"
            )
        seen.add(id_)


def _check_file(dataset: LanceDataset, store: Store, fragment: native.Fragment, file: native.DataFile) -> None:
    reader = FileReader(store, file.location)
    rows = fragment.physical_rows
    if rows and reader.num_rows != rows:
        message = f"expected {rows} rows as fragment {fragment.id} has, found {reader.num_rows}"
        raise _damage(dataset, f"{path_at_home(file.location)}: {message}")
    size = store.head(file.location).size
    if file.file_size_bytes not in (None, size):
        message = f"expected {file.file_size_bytes} bytes, found {size}"
        raise _damage(dataset, f"{path_at_home(file.location)}: {message}")


def _damage(dataset: LanceDataset, message: str) -> CorruptFileError:
    return CorruptFileError(
        f"version {dataset.version} of {dataset.uri} is damaged: {message}; restore an older version",
        uri=dataset.uri,
        version=dataset.version,
    )
