"""`other_types`: values of a Delta table's older files that its columns of now cannot hold are no damage.

An overwrite may give a column a type of another kind. A stream reads the files from before it with the columns of now:
what a reader of one version would call a corrupt file is a table that has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pyarrow as pa

from esker.delta.log.snapshots import load_snapshot
from esker.delta.read.conform import MappingMode, physical_name, plain
from esker.delta.read.file_reader import TableFileReader
from esker.exceptions import CorruptFileError, EskerError, InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.spark.streaming.history import START_ANEW

__all__ = ["other_types"]


@contextmanager
def other_types(reader: TableFileReader, version: int) -> Iterator[None]:
    """Reads values of a version within; of those that its columns of now cannot hold it says that they had other types.

    Args:
        reader: Has the columns of now.
        version: The version that the values are from, or that removes them.

    Raises:
        SchemaMismatchError: A column had another type, as which the values were written.

    Example:
        `with other_types(reader, 3): rows = list(reader.read(file, ["id"]))`
    """
    try:
        yield
    except (CorruptFileError, InvalidArgumentError, UnsupportedError) as error:
        told = _told(error, reader, version)
        if told is None:
            raise
        raise told from error


def _told(error: EskerError, reader: TableFileReader, version: int) -> SchemaMismatchError | None:
    # A file that a version removes is of one before it.
    for number in range(version, max(version - 2, -1), -1):
        try:
            snapshot = load_snapshot(reader.store, version=number)
        except EskerError:
            continue
        mode = cast("MappingMode", snapshot.column_mapping)
        types = {physical_name(field, mode): plain(field.type) for field in pa.schema(snapshot)}
        for field in reader.annotated:
            now, then = plain(field.type), types.get(physical_name(field, reader.mode))
            if then is not None and then != now and _is_of(error, field.name):
                # Partition values are parsed whichever columns are read.
                leave = "" if isinstance(error, InvalidArgumentError) else "leave it out with the option columns, or "
                return SchemaMismatchError(
                    f"column {field.name!r} of {reader.store.uri} had the type {then} in version {number} and has "
                    f"{now} now, as which not all its values can be read ({error}); {leave}{START_ANEW}",
                    column=field.name,
                    expected=str(now),
                    found=str(then),
                )
    return None


def _is_of(error: EskerError, column: str) -> bool:
    if error.column is None:
        # An array, a map or a struct is no partition column, whatever it was.
        return f"column {column}:" in error.message or error.message == f"expected a partition column, found {column}"
    return bool(error.column == column or error.column.startswith(f"{column}."))
