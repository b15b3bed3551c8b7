"""`LanceFragment`: one fragment of a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset

from .._native import table as native
from ..arrow.incoming import ReaderLike
from ..arrow.json_columns import shown_schema
from ..exceptions import NotFoundError, SchemaMismatchError, UnsupportedError, of_changes
from ..lance.data_file import DataFile
from ..lance.fragment_metadata import FragmentMetadata
from ..lance.fragment_of_file import fragment_of_file
from ..lance.scan.options import ColumnOrdering, Columns, blobs_as
from ..lance.scan.predicate import Filter
from ..lance.scan.take import take_rows
from ..lance.validation import validate_fragment
from ..missing import missing_property
from ..progress import Watcher
from ..scanner import LanceScanner, ScannerBuilder
from ..scanner.blob_frame import BlobMode, parted
from ..scanner.lance_scanner import ScannedDataset, pinned
from .changes import FragmentChangesApi
from .session import FragmentSession
from .writing import write_fragments

if TYPE_CHECKING:
    import pandas as pd

_PYARROW_HINTS = frozenset({"use_threads", "cache_metadata", "memory_pool", "fragment_scan_options"})


class LanceFragment(FragmentChangesApi):
    """One fragment of a dataset. It can be scanned, taken from, counted and changed by itself. A
    `pyarrow.dataset.Fragment` to `isinstance`.

    Args:
        dataset: The dataset, at the version that it shows.
        fragment_id: The fragment's id.

    Raises:
        NotFoundError: The version has no such fragment.

    Example:
        `[fragment.count_rows() for fragment in dataset.get_fragments()]`
    """

    def __init__(
        self, dataset: ScannedDataset, fragment_id: int | None, *, fragment: native.Fragment | None = None
    ) -> None:
        if fragment is None:
            found = [item for item in dataset._table.fragments if item.id == fragment_id]
            if not found:
                table = dataset._table
                raise NotFoundError(
                    f"version {table.number} of {table.uri} has no fragment {fragment_id}",
                    uri=table.uri,
                    version=table.number,
                )
            fragment = found[0]
        self._ds = dataset
        self._table = dataset._table
        self._fragment = fragment

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Not a real subclass: functions of pyarrow would use its C++ object, which it would lack, without a check.
        return pyarrow.dataset.Fragment  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (pinned(self._ds, self._table), self.fragment_id)

    def __repr__(self) -> str:
        paths = [file.path for file in self._fragment.files]
        return f"LanceFragment(id={self.fragment_id}, data_files={paths})"

    @staticmethod
    def create_from_file(filename: str, dataset: ScannedDataset, fragment_id: int) -> FragmentMetadata:
        """Makes a fragment of a data file that is in the table's folder `data` already, for a `LanceOperation.Append`
        or `Overwrite`.

        Args:
            filename: The file's name in the folder `data` of the table. Its columns are matched by name.
            dataset: The table.
            fragment_id: The fragment's id; an append assigns it another one.

        Raises:
            NotFoundError: There is no such file.
            SchemaMismatchError: The table does not have a column of the file, or has it with another type.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-from-file")
            >>> name = dataset.get_fragment(0).data_files()[0].path
            >>> esker.LanceFragment.create_from_file(name, dataset, 0).physical_rows
            2
        """
        return fragment_of_file(filename, dataset._table, fragment_id)

    def open_session(
        self, columns: list[str] | dict[str, str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """A session for repeated takes of the same columns.

        Args:
            columns: As in `LanceDataset.scanner`.
            with_row_address: Whether to add the column `_rowaddr`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-fragment-session")
            >>> dataset.get_fragment(0).open_session(["id"]).take([1]).to_pydict()
            {'id': [2]}
        """
        return FragmentSession(self._table, self.fragment_id, self.take, columns, with_row_address)

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: ReaderLike,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: Watcher | None = None,
        mode: str = "append",
        **options: Any,
    ) -> FragmentMetadata:
        """Writes all data as one fragment. See `write_fragments` for the arguments."""
        options = {"max_rows_per_file": 2**62, "max_rows_per_group": max_rows_per_group, **options}
        fragments: list[FragmentMetadata] = write_fragments(
            data, dataset_uri, schema, mode=mode, progress=progress, **options
        )
        if not fragments or not fragments[0].files[0].fields:
            raise SchemaMismatchError(
                "expected data with columns and rows for a fragment, found none; nothing was written"
            )
        if len(fragments) != 1:
            raise UnsupportedError(f"the data make {len(fragments)} fragments, expected 1; use write_fragments")
        return FragmentMetadata.from_native(fragments[0].to_native().with_id(fragment_id or 0))

    @property
    def metadata(self) -> FragmentMetadata:
        """The manifest's entry of the fragment."""
        return FragmentMetadata.from_native(self._fragment)

    @property
    def num_deletions(self) -> int:
        """The number of deleted rows."""
        return self._fragment.num_deletions

    @property
    def physical_rows(self) -> int:
        """Rows in the files, including deleted ones."""
        return self._fragment.physical_rows

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return shown_schema(self._table.schema)

    @property
    def physical_schema(self) -> pa.Schema:
        """The table's schema: a fragment has all columns of the table, also those that its files lack."""
        return shown_schema(self._table.schema)

    partition_expression = missing_property("LanceFragment", "partition_expression", "pass filter= to the scanner")

    def validate(self) -> None:
        """Checks that the files of this fragment agree with the manifest, as `LanceDataset.validate` does for all.

        Raises:
            CorruptFileError: Something does not agree; the message says what and where.
            NotFoundError: A file is missing.

        Example:
            `dataset.get_fragment(0).validate()`
        """
        validate_fragment(self._table, self._fragment)

    def data_files(self) -> list[DataFile]:
        """The data files, each with all rows of some columns."""
        return [DataFile.of(file) for file in self._fragment.files]

    def deletion_file(self) -> str | None:
        """Path of the deletion file relative to the table's root, None if no row is deleted."""
        return self._fragment.deletion_file

    @of_changes()
    def count_rows(self, filter: str | pa.compute.Expression | None = None) -> int:
        """The number of live rows for which `filter` is true; of all live rows without a filter."""
        known = self._fragment.num_rows if filter is None else None
        return known if known is not None else self.scanner(filter=filter).count_rows()

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> LanceScanner:
        """A scanner over this fragment.

        Args:
            schema: The columns to return, where `columns` does not say so; as pyarrow's fragments take it, so that
                engines that scan pyarrow datasets scan these.
            **options: Those of `LanceDataset.scanner`, and hints of pyarrow's scanners, of no effect here. The
                dataset's `default_scan_options` do not apply.

        Raises:
            SchemaMismatchError: The table does not have a column of the schema, or has it with another type.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2], "n": [3, 4]}), "memory://doc-fragment-scanner")
            >>> dataset.get_fragments()[0].scanner(pa.schema([("n", pa.int64())])).to_table().to_pydict()
            {'n': [3, 4]}
        """
        dataset = pinned(self._ds, self._table)
        options = {name: value for name, value in options.items() if name not in _PYARROW_HINTS}
        if schema is not None:
            _require_columns(schema, self._scanned_schema(options))
            if options.get("columns") is None:
                options["columns"] = schema.names
        return ScannerBuilder(dataset).apply_defaults({"fragments": [self], **options}).to_scanner()

    def _scanned_schema(self, options: dict[str, Any]) -> pa.Schema:
        named = ("with_row_id", "with_row_address", "blob_handling")
        return self.scanner(**{name: options[name] for name in named if name in options}).projected_schema

    def to_table(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: str | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        **options: Any,
    ) -> pa.Table:
        """The rows as a table. The arguments are those of `LanceDataset.scanner`."""
        return self.scanner(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling=blob_handling,
            order_by=order_by,
            use_scalar_index=use_scalar_index,
            io_buffer_size=io_buffer_size,
            late_materialization=late_materialization,
            include_deleted_rows=include_deleted_rows,
            batch_size_bytes=batch_size_bytes,
            strict_batch_size=strict_batch_size,
            **options,
        ).to_table()

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows as batches. `options` are those of `LanceDataset.scanner`."""
        return self.scanner(**options).to_batches()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: BlobMode = "lazy",
        order_by: Sequence[ColumnOrdering | str] | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """The rows as a pandas data frame. The arguments are those of `LanceDataset.scanner` and of its `to_pandas`."""
        options, shown = parted(options)
        scanner = self.scanner(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            order_by=order_by,
            **options,
        )
        return scanner.to_pandas(blob_mode=blob_mode, **shown)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first `num_rows` rows."""
        return self.scanner(limit=num_rows, **options).to_table()

    @of_changes()
    def take(
        self, indices: Any, columns: list[str] | dict[str, str] | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Takes rows by their number within the fragment, in the order of `indices`. See `LanceDataset.take`."""
        return take_rows(
            self._table.store,
            self._table.manifest,
            self._table.described_schema,
            indices,
            columns,
            in_structs=True,
            fragment_ids=[self.fragment_id],
            rows=self.count_rows(),
            blobs=blobs_as(blob_handling),
        )


def _require_columns(schema: pa.Schema, table: pa.Schema) -> None:
    """Checks that a table has the columns of a schema, with their types."""
    for field in schema:
        index = table.get_field_index(field.name)
        found = table.field(index).type if index >= 0 else None
        if found != field.type:
            raise SchemaMismatchError(
                f"expected columns of the table in the schema of a scan, found {field.name!r} of type {field.type}, "
                + (f"which the table has as {found}" if found is not None else f"but it has {table.names}"),
                column=field.name,
                expected=None if found is None else str(found),
                found=str(field.type),
            )
