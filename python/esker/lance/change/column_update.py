"""New values by key in some columns of one fragment, in place: a new file holds these columns, rows do not move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import table as native
from ..._native.deletion import RowsToDelete
from ...arrow.blob_arrays import holds_blobs, to_blobs
from ...arrow.combining import combined, without_null_values
from ...arrow.conform import conform, require_same_json
from ...arrow.incoming import coerce_reader
from ...exceptions import InvalidArgumentError, SchemaMismatchError
from ..scan.options import ScanOptions
from ..scan.scan import Scan
from ..system_columns import ROW_ADDRESS, SYSTEM_COLUMNS
from ..version import TableVersion
from .column_writer import ColumnWriter
from .first_columns import columns_along, ids_of
from .join_keys import SYSTEM_KEYS, JoinKeys


@dataclass(frozen=True)
class UpdatedColumns:
    """A fragment with a new file of some columns, staged and not committed yet.

    Attributes:
        fragment: The fragment.
        fields: The ids of the fields with new values.
        matched: The offsets of the rows whose key is in the data, as a portable roaring bitmap.
    """

    fragment: native.Fragment
    fields: list[int]
    matched: bytes


def update_columns(
    table: TableVersion, fragment: native.Fragment, other: pa.Table, left_on: str, right_on: str
) -> UpdatedColumns:
    """Writes a file of the columns with new values; see `LanceFragment.update_columns`."""
    update = ColumnUpdate(other, left_on, right_on, table.schema)
    schema = table.manifest.schema
    update.along = columns_along(schema, fragment, update.columns)
    with ColumnWriter(table.store) as writer:
        file = writer.file_of(table, fragment, schema.select([*update.columns, *update.along]), update.values)
    matched = update.matched.encode_offsets(fragment.id)
    unchanged = set(ids_of(schema.select(update.along).fields))
    changed = [field for field in file.fields if field not in unchanged]
    return UpdatedColumns(fragment.with_replacing_file(file), changed, matched)


class ColumnUpdate:
    """New values of columns by key, which replace the old ones.

    Args:
        other: The key and the new values.
        left_on: The key's column in the table, or `_rowid` or `_rowaddr`.
        right_on: The key's column in `other`.
        table: The table's columns.
    """

    def __init__(self, other: pa.Table, left_on: str, right_on: str, table: pa.Schema) -> None:
        self._keys = JoinKeys.of(other, left_on, right_on)
        if left_on not in (*table.names, *SYSTEM_KEYS):
            raise InvalidArgumentError(f"expected a key of the table, found {left_on!r}", column=left_on)
        self.columns = [name for name in other.column_names if name != right_on]
        if not self.columns:
            raise InvalidArgumentError("expected columns to change beside the key, found none")
        self._schema = pa.schema([_like(other.schema.field(name), table) for name in self.columns])
        self._keys.check_in(table)
        self._new = combined(_with_blobs_of(other.select(self.columns), self._schema))
        self._left_on = left_on
        self.matched = RowsToDelete()
        """The rows whose key is in the data."""
        self.along: list[str] = []
        """Columns that are written as they are beside those with new values."""

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The values of some fragments' rows, old and new, with the rows' addresses."""
        read = list(dict.fromkeys([*self.columns, *self.along, self._left_on, ROW_ADDRESS]))
        options = ScanOptions(columns=read, blobs="bytes", fragment_ids=tuple(it.id for it in fragments))
        for batch in Scan(table, options).to_batches():
            rows = self._keys.rows(batch[self._left_on])
            hit = rows.is_valid()
            self.matched.add(batch[ROW_ADDRESS].filter(hit))
            columns = [_over(batch[field.name], self._new[field.name], rows, hit, field.type) for field in self._schema]
            columns += [batch[name] for name in (*self.along, ROW_ADDRESS)]
            yield pa.RecordBatch.from_arrays(columns, names=[*self.columns, *self.along, ROW_ADDRESS])


def _over(old: pa.Array, new: pa.ChunkedArray, rows: pa.Array, hit: pa.Array, type_: pa.DataType) -> pa.Array:
    """The new values for rows with a match, else the old ones: by `take` from both, which works for any type."""
    new_values = new.combine_chunks()
    if holds_blobs(type_):
        old = to_blobs(old, type_)
    elif new_values.type != old.type:
        new_values = new_values.cast(old.type)
    both = pa.concat_arrays([without_null_values(old), without_null_values(new_values)])
    own = pa.array(range(len(old)), pa.int64())
    return both.take(pc.if_else(hit, pc.add(rows.cast(pa.int64()), len(old)), own))


def _with_blobs_of(new: pa.Table, schema: pa.Schema) -> pa.Table:
    """The new values, with columns of blobs in the types of the table.

    Raises:
        SchemaMismatchError: They are not of the table's types.
    """
    blobs = pa.schema([field for field in schema if holds_blobs(field.type)])
    if not blobs.names:
        return new
    fitted = conform(coerce_reader(new.select(blobs.names)), blobs).reader().read_all()
    for name in blobs.names:
        new = new.set_column(new.schema.get_field_index(name), fitted.schema.field(name), fitted[name])
    return new


def _like(found: pa.Field, table: pa.Schema) -> pa.Field:
    if found.name in SYSTEM_COLUMNS and found.name not in table.names:
        raise InvalidArgumentError(
            f"column {found.name!r} is a metadata column, which cannot be updated: give values for columns of the "
            f"table ({', '.join(table.names)})",
            column=found.name,
        )
    if found.name not in table.names:
        raise InvalidArgumentError(
            f"column {found.name!r} does not exist: expected columns of the table ({', '.join(table.names)})",
            column=found.name,
        )
    expected = table.field(found.name)
    if expected.type != found.type and not holds_blobs(expected.type):
        raise SchemaMismatchError(
            f"column {found.name!r} of the new values has another type, expected {expected.type}, found {found.type}; "
            "cast it first",
            column=found.name,
            expected=str(expected.type),
            found=str(found.type),
        )
    require_same_json(expected, found, found.name)
    return expected
