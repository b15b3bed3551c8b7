"""`DataFile`: the manifest's entry of a data file, with pylance's names."""

from __future__ import annotations

import warnings
from typing import Any

from .._native import table as native
from .file_in_table import file_in_table


class PathOfFile(str):
    """A path that may be called, as a method was in older releases of pylance."""

    __slots__ = ()

    def __call__(self) -> str:
        """The path; pylance's `DataFile.path()`."""
        warnings.warn("DataFile.path() is deprecated, use DataFile.path instead", DeprecationWarning, stacklevel=2)
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


class DataFile(native.DataFile):
    """One file of a fragment: some columns of all its rows.

    Args:
        path: Its path, relative to the table's data folder.
        fields: The field ids of its columns; -2 marks one that was dropped.
        column_indices: For each of `fields` the number of its column in the file.
        file_major_version: Major version of the file format.
        file_minor_version: Minor version of the file format.
        file_size_bytes: Its size in bytes, if known.
        base_id: The base path that it lies under; None is the table's own root.

    Example:
        >>> from esker.fragment import DataFile
        >>> DataFile("0a1b.lance", [0, 1]).path
        '0a1b.lance'
    """

    @classmethod
    def of(cls, file: native.DataFile) -> DataFile:
        """The file of a fragment of the Rust core."""
        return cls(*_parts(file))

    @classmethod
    def create(cls, dataset: Any, path: str, *, base_id: int | None = None) -> DataFile:
        """The entry of a file that is in the table's data folder already, for a `LanceOperation.DataReplacement`.

        Its columns are found in the table by name.

        Args:
            dataset: The table.
            path: The file's path, relative to the data folder.
            base_id: The id of the base path that it lies under.

        Raises:
            NotFoundError: There is no such file.
            SchemaMismatchError: The table does not have a column of the file, or has it with another type.

        Example:
            >>> import esker, pyarrow as pa
            >>> from esker.fragment import DataFile
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-data-file")
            >>> name = dataset.get_fragment(0).data_files()[0].path
            >>> DataFile.create(dataset, name).fields
            [0]
        """
        return cls.of(file_in_table(path, dataset._table, base_id)[0])

    @property
    def path(self) -> str:
        """Its path, relative to the table's data folder."""
        return PathOfFile(super().path)

    def field_ids(self) -> list[int]:
        """The field ids of its columns, under the name of older releases of pylance."""
        warnings.warn("DataFile.field_ids is deprecated, use DataFile.fields instead", DeprecationWarning, stacklevel=2)
        return self.fields

    def __reduce__(self) -> tuple[Any, ...]:
        return DataFile, _parts(self)

    def __repr__(self) -> str:
        return (
            f"DataFile(path={str(self.path)!r}, fields={self.fields}, column_indices={self.column_indices}, "
            f"file_major_version={self.file_major_version}, file_minor_version={self.file_minor_version}, "
            f"file_size_bytes={self.file_size_bytes})"
        )


def _parts(file: native.DataFile) -> tuple[Any, ...]:
    numbers = file.file_major_version, file.file_minor_version
    return str(file.path), file.fields, file.column_indices, *numbers, file.file_size_bytes, file.base_id
