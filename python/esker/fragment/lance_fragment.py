"""Fragments: the horizontal slices of a table, each with its own files."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
import pyarrow.dataset

from .._native import table as native
from .._native.table import DataFile
from ..arrow.incoming import ReaderLike
from ..commit.external import ExternalManifestStore
from ..exceptions import NotFoundError, UnsupportedError
from ..lance.base_path import DatasetBasePath
from ..lance.deletion_file import DeletionFile
from ..lance.write.staging import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MEMORY_LIMIT,
    external_blobs,
    open_target,
    refuse_options,
    stage,
)
from ..progress import Progress, report
from .changes import FragmentChangesApi
from .files import FragmentSession, fragment_of_file

if TYPE_CHECKING:
    import pandas as pd

    from ..dataset import LanceDataset
    from ..dataset.scanner import LanceScanner
    from ..lance.operation import Transaction

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment", "write_fragments"]


class FragmentMetadata:
    """What a manifest holds of a fragment. Small, immutable and picklable: what workers hand to the one that commits.

    Args:
        id: Unique within a table; 0 until a commit assigns it.
        files: The data files, each with all rows of some columns.
        physical_rows: Rows in the files, deleted ones among them.
        deletion_file: The file that says which are deleted.

    Example:
        `LanceOperation.Append(write_fragments(table, uri))`
    """

    def __init__(
        self,
        id: int,
        files: list[DataFile],
        physical_rows: int,
        deletion_file: DeletionFile | None = None,
        **pylance_only: Any,
    ) -> None:
        refuse_options(**pylance_only)
        fragment = native.Fragment(id, files=files, physical_rows=physical_rows)
        self._fragment = deletion_file.put_on(fragment) if deletion_file else fragment

    @classmethod
    def from_native(cls, fragment: native.Fragment) -> FragmentMetadata:
        """The metadata of a fragment of the Rust core."""
        self = cls.__new__(cls)
        self._fragment = fragment
        return self

    def to_native(self) -> native.Fragment:
        """The fragment of the Rust core."""
        return self._fragment

    @property
    def id(self) -> int:
        """Unique within a table; 0 until a commit assigns it."""
        return self._fragment.id

    @property
    def files(self) -> list[DataFile]:
        """The data files, each with all rows of some columns."""
        return self._fragment.files

    @property
    def physical_rows(self) -> int:
        """Rows in the files, deleted ones among them."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""
        return self._fragment.num_deletions

    @property
    def num_rows(self) -> int:
        """Live rows; 0 where an old writer did not note enough to know."""
        return self._fragment.num_rows or 0

    @property
    def deletion_file(self) -> DeletionFile | None:
        """What says which rows are deleted, None if no row is."""
        return DeletionFile.of(self._fragment)

    def to_json(self) -> dict[str, Any]:
        """The fragment as JSON values, with `encoded` holding all of it for `from_json`."""
        return {
            "id": self.id,
            "files": [
                {
                    "path": file.path,
                    "fields": file.fields,
                    "column_indices": file.column_indices,
                    "file_major_version": file.file_major_version,
                    "file_minor_version": file.file_minor_version,
                    "file_size_bytes": file.file_size_bytes,
                    "base_id": file.base_id,
                }
                for file in self.files
            ],
            "physical_rows": self.physical_rows,
            "deletion_file": self.deletion_file.asdict() if self.deletion_file else None,
            "encoded": base64.b64encode(self._fragment.encode()).decode(),
        }

    @staticmethod
    def from_json(json_data: str | dict[str, Any]) -> FragmentMetadata:
        """The fragment that `to_json` described, as text or as values."""
        values = json.loads(json_data) if isinstance(json_data, str) else json_data
        if "encoded" in values:
            return FragmentMetadata.from_native(native.Fragment.decode(base64.b64decode(values["encoded"])))
        files = [DataFile(file.pop("path"), **file) for file in (dict(item) for item in values["files"])]
        deletion_file = values.get("deletion_file")
        return FragmentMetadata(
            values["id"], files, values["physical_rows"], DeletionFile(**deletion_file) if deletion_file else None
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FragmentMetadata) and self._fragment == other._fragment

    def __hash__(self) -> int:
        return hash(self._fragment)

    def __repr__(self) -> str:
        paths = [file.path for file in self.files]
        return f"FragmentMetadata(id={self.id}, physical_rows={self.physical_rows}, files={paths})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FragmentMetadata.from_native, (self._fragment,)


class LanceFragment(FragmentChangesApi):
    """One fragment of a dataset, to be scanned, taken from and counted by itself. A `pyarrow.dataset.Fragment` to
    `isinstance`.

    Args:
        dataset: The dataset, at the version that it shows.
        fragment_id: The fragment's id.

    Raises:
        NotFoundError: The version has no such fragment.

    Example:
        `[fragment.count_rows() for fragment in dataset.get_fragments()]`
    """

    def __init__(
        self, dataset: LanceDataset, fragment_id: int | None, *, fragment: native.Fragment | None = None
    ) -> None:
        if fragment is None:
            found = [item for item in dataset._fragments() if item.id == fragment_id]
            if not found:
                raise NotFoundError(
                    f"version {dataset.version} of {dataset.uri} has no fragment {fragment_id}",
                    uri=dataset.uri,
                    version=dataset.version,
                )
            fragment = found[0]
        self._ds = dataset
        self._fragment = fragment

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # No subclass, which would lack the C++ object that functions of pyarrow go to without asking.
        return pyarrow.dataset.Fragment  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (self._ds, self.fragment_id)

    def __repr__(self) -> str:
        paths = [file.path for file in self._fragment.files]
        return f"LanceFragment(id={self.fragment_id}, data_files={paths})"

    @staticmethod
    def create_from_file(filename: str, dataset: LanceDataset, fragment_id: int) -> FragmentMetadata:
        """A fragment of a data file that is in place already, for a `LanceOperation.Append` or `Overwrite`.

        Args:
            filename: The file's name in the folder `data` of the table. Its columns are found by their names.
            dataset: The table.
            fragment_id: The fragment's id; an append gives it another one.

        Raises:
            NotFoundError: No such file.
            SchemaMismatchError: A column that the table does not have, or of another type.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-from-file")
            >>> name = dataset.get_fragment(0).data_files()[0].path
            >>> esker.LanceFragment.create_from_file(name, dataset, 0).physical_rows
            2
        """
        return fragment_of_file(filename, dataset, fragment_id)

    def open_session(
        self, columns: list[str] | dict[str, str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Takes from the same columns, again and again.

        Args:
            columns: As in `LanceDataset.scanner`.
            with_row_address: Adds the column `_rowaddr`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-fragment-session")
            >>> dataset.get_fragment(0).open_session(["id"]).take([1]).to_pydict()
            {'id': [2]}
        """
        return FragmentSession(self, columns, with_row_address)

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: ReaderLike,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: Progress | None = None,
        mode: str = "append",
        **options: Any,
    ) -> FragmentMetadata:
        """Writes all data as one fragment. See `write_fragments` for the arguments."""
        options = {"max_rows_per_file": 2**62, "max_rows_per_group": max_rows_per_group, **options}
        fragments = write_fragments(data, dataset_uri, schema, mode=mode, progress=progress, **options)
        if len(fragments) != 1:
            raise UnsupportedError(f"the data make {len(fragments)} fragments, expected 1; use write_fragments")
        return FragmentMetadata.from_native(fragments[0].to_native().with_id(fragment_id or 0))

    @property
    def fragment_id(self) -> int:
        """The fragment's id within its table."""
        return self._fragment.id

    @property
    def metadata(self) -> FragmentMetadata:
        """What the manifest holds of it."""
        return FragmentMetadata.from_native(self._fragment)

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""
        return self._fragment.num_deletions

    @property
    def physical_rows(self) -> int:
        """Rows in the files, deleted ones among them."""
        return self._fragment.physical_rows

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self._ds._table_schema

    @property
    def physical_schema(self) -> pa.Schema:
        """The table's schema: a fragment shows all its columns, also those that its files lack."""
        return self._ds._table_schema

    @property
    def partition_expression(self) -> Any:
        """Raises `UnsupportedError`: Lance tables are not partitioned by expressions."""
        raise UnsupportedError("a fragment has no partition expression")

    def data_files(self) -> list[DataFile]:
        """The data files, each with all rows of some columns."""
        return self._fragment.files

    def deletion_file(self) -> str | None:
        """Path of the deletion file relative to the table's root, None if no row is deleted."""
        return self._fragment.deletion_file

    def count_rows(self, filter: str | pa.compute.Expression | None = None) -> int:
        """How many live rows satisfy `filter`, all of them if there is none."""
        known = self._fragment.num_rows if filter is None else None
        return known if known is not None else self.scanner(filter=filter).count_rows()

    def scanner(self, **options: Any) -> LanceScanner:
        """A scanner over this fragment. `options` are those of `LanceDataset.scanner`; the dataset's defaults for them
        have no say."""
        return self._ds._scan(fragments=[self], **options)

    def to_table(self, **options: Any) -> pa.Table:
        """The rows as a table. `options` are those of `LanceDataset.scanner`."""
        return self.scanner(**options).to_table()

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows as batches. `options` are those of `LanceDataset.scanner`."""
        return self.scanner(**options).to_batches()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a pandas data frame. `options` are those of `LanceDataset.scanner`."""
        return self.scanner(**options).to_pandas()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first `num_rows` rows."""
        return self.scanner(limit=num_rows, **options).to_table()

    def take(self, indices: Any, columns: list[str] | dict[str, str] | None = None) -> pa.Table:
        """Rows by their number within the fragment, in the order asked for. See `LanceDataset.take`."""
        return self._ds._take(
            indices, columns, fragment_ids=[self.fragment_id], num_rows=self.count_rows(), blobs="bytes"
        )


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[True],
    **options: Any,
) -> Transaction: ...


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[False] = ...,
    **options: Any,
) -> list[FragmentMetadata]: ...


def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    progress: Progress | None = None,
    data_storage_version: str | None = None,
    storage_options: dict[str, str] | None = None,
    durable: bool = True,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    allow_null_loss: bool = False,
    manifest_store: ExternalManifestStore | str | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    **pylance_only: Any,
) -> list[FragmentMetadata] | Transaction:
    """Writes data files for a table without making them visible: a part of a write that many machines share.

    Args:
        data: The rows; whatever `write_dataset` takes.
        dataset_uri: The table, or where it will be.
        schema: Their column types, where the data do not say.
        return_transaction: Whether to return a transaction rather than the fragments.
        mode: "append" checks the columns against the table's and takes its field ids; "create" and "overwrite" bring
            their own.
        max_rows_per_file: Rows after which a new fragment is started.
        max_rows_per_group: Rows of a group of files of version 0.1; of no meaning for later ones.
        max_bytes_per_file: Bytes after which a new fragment is started.
        progress: Called with the rows taken so far, or a `FragmentWriteProgress`.
        data_storage_version: The file version; None keeps the table's.
        storage_options: Options of the store.
        durable: Whether the files are on stable storage on return.
        memory_limit: Bytes of values that may be buffered. A page takes an eighth of them at most, and at most 8 MiB.
        external_blob_mode: Whether blobs given by their URI stay where they are or are copied into the table.
        allow_external_blob_outside_bases: Must be True for blobs to stay outside the table.
        allow_null_loss: Whether files of version 0.1 may forget what they cannot keep: most nulls, and the difference
            between "" and null. Without it such values are refused.
        manifest_store: What orders the versions where the table's store has no put-if-absent, as in `write_dataset`.
        initial_bases: Places beside its own root where files of a new table may lie.
        target_bases: Names or paths of base paths that the files go to in turn.
        target_all_bases: Whether they go to all of them, and to the table's own root, in turn.
        base_store_params: By the place of a base path, its options in place of `storage_options`.
        **pylance_only: Refused unless None.

    Returns:
        Fragments whose ids a commit assigns, or their transaction.

    Raises:
        SchemaMismatchError: An append whose columns are not the table's.
        UnsupportedError: A file version, a type, or an option that this release does not have.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.fragment import write_fragments
        >>> table = pa.table({"id": [1, 2]})
        >>> fragments = write_fragments(table, "memory://fragments", mode="create")
        >>> operation = esker.LanceOperation.Overwrite(table.schema, fragments)
        >>> esker.LanceDataset.commit("memory://fragments", operation).count_rows()
        2
    """
    from ..lance.operation import Transaction

    refuse_options(**pylance_only)
    target = open_target(
        dataset_uri,
        storage_options=storage_options,
        durable=durable,
        manifest_store=manifest_store,
        base_store_params=base_store_params,
    )
    staged = stage(
        target,
        data,
        schema=schema,
        mode=mode,
        data_storage_version=data_storage_version,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        memory_limit=memory_limit,
        external_blobs=external_blobs(external_blob_mode, allow_external_blob_outside_bases),
        max_rows_per_group=max_rows_per_group,
        allow_null_loss=allow_null_loss,
        progress=progress,
        initial_bases=initial_bases,
        target_bases=target_bases,
        target_all_bases=target_all_bases,
    )
    fragments = [FragmentMetadata.from_native(fragment) for fragment in staged.fragments]
    report(progress, fragments)
    return Transaction.from_native(staged.transaction()) if return_transaction else fragments
