"""The method of `LanceDataset` that validates a version."""

from __future__ import annotations

from ..exceptions import of_files
from ..lance.handle import DatasetHandle
from ..lance.validation import validate


class ValidationApi(DatasetHandle):
    """The method of `LanceDataset` that validates a version."""

    @of_files()
    def validate(self) -> None:
        """Checks that the files of this version agree with its manifest: all data files exist, open and have as many
        rows and bytes as the manifest says, deletion files fit their fragments, fragment ids rise, and no fragment has
        a column twice.

        Reads the metadata of all data files, and all deletion files, but no values.

        Raises:
            CorruptFileError: Something does not agree; the message says what and where.
            NotFoundError: A file is missing.

        Example:
            >>> import esker, pyarrow as pa
            >>> esker.write_dataset(pa.table({"id": [1]}), "memory://doc-validate").validate()
        """
        validate(self._table)
