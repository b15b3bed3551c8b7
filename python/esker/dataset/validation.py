"""Whether a table is whole."""

from __future__ import annotations

from ..lance.handle import DatasetHandle
from ..lance.validation import validate


class ValidationApi(DatasetHandle):
    """The method of `LanceDataset` that checks a version."""

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
        validate(self._table)
