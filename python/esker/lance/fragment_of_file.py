"""Makes a fragment of a data file that is in the table's folder `data` already."""

from __future__ import annotations

from .file_in_table import file_in_table
from .fragment_metadata import FragmentMetadata
from .version import TableVersion


def fragment_of_file(filename: str, table: TableVersion, fragment_id: int) -> FragmentMetadata:
    """A fragment of a data file in the table's folder `data`; its columns are matched by name.

    Raises:
        NotFoundError: There is no such file.
        SchemaMismatchError: The table does not have a column of the file, or has it with another type.
    """
    file, rows = file_in_table(filename, table)
    return FragmentMetadata(fragment_id, [file], rows)
