"""`FragmentMetadata`: the manifest's entry of a fragment."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Sequence
from typing import Any

from .._native import table as native
from ..exceptions import UnsupportedError
from ..missing_names import OVERLAYS
from .data_file import DataFile
from .deletion_file import DeletionFile
from .row_lineage import CREATED, ROW_IDS, UPDATED, RowDatasetVersionMeta, RowIdMeta


class FragmentMetadata:
    """The manifest's entry of a fragment. Small and picklable: workers send it to the process that commits.

    Args:
        id: Unique within a table; 0 until a commit assigns it.
        files: The data files, each with all rows of some columns.
        physical_rows: Rows in the files, including deleted ones.
        deletion_file: The file with the deleted rows.
        row_id_meta: The stable ids of the first rows, which keep them; the commit gives ids to the others.
        created_at_version_meta: The versions that created the rows; a commit computes those of new fragments.
        last_updated_at_version_meta: The versions that changed the rows last; likewise.
        overlays: Must be empty: data overlay files are not supported.

    Raises:
        UnsupportedError: There are overlays.

    Example:
        `LanceOperation.Append(write_fragments(table, uri))`
    """

    def __init__(
        self,
        id: int,
        files: Sequence[native.DataFile],
        physical_rows: int,
        deletion_file: DeletionFile | None = None,
        row_id_meta: RowIdMeta | None = None,
        created_at_version_meta: RowDatasetVersionMeta | None = None,
        last_updated_at_version_meta: RowDatasetVersionMeta | None = None,
        overlays: Sequence[Any] = (),
    ) -> None:
        if overlays:
            raise UnsupportedError(f"overlays are not supported; {OVERLAYS}", operation="overlays")
        fragment = native.Fragment(id, files=files, physical_rows=physical_rows)
        if deletion_file:
            fragment = deletion_file.put_on(fragment)
        if row_id_meta:
            fragment = row_id_meta.put_on(fragment, ROW_IDS)
        if created_at_version_meta:
            fragment = created_at_version_meta.put_on(fragment, CREATED)
        if last_updated_at_version_meta:
            fragment = last_updated_at_version_meta.put_on(fragment, UPDATED)
        self._fragment = fragment

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
        return [DataFile.of(file) for file in self._fragment.files]

    @property
    def physical_rows(self) -> int:
        """Rows in the files, including deleted ones."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """The number of deleted rows."""
        return self._fragment.num_deletions

    @property
    def num_rows(self) -> int:
        """The number of live rows; 0 if an old writer did not record what it takes to tell."""
        return self._fragment.num_rows or 0

    @property
    def deletion_file(self) -> DeletionFile | None:
        """The file with the deleted rows, None if no row is deleted."""
        return DeletionFile.of(self._fragment)

    @property
    def row_id_meta(self) -> RowIdMeta | None:
        """Where the stable ids of the rows are stored; None in a table without them."""
        return RowIdMeta.of(self._fragment, ROW_IDS)

    @row_id_meta.setter
    def row_id_meta(self, value: RowIdMeta) -> None:
        self._fragment = value.put_on(self._fragment, ROW_IDS)

    @property
    def created_at_version_meta(self) -> RowDatasetVersionMeta | None:
        """Where the versions that created the rows are stored; None in a table without stable row ids."""
        return RowDatasetVersionMeta.of(self._fragment, CREATED)

    @property
    def last_updated_at_version_meta(self) -> RowDatasetVersionMeta | None:
        """Where the versions that changed the rows last are stored; None in a table without stable row ids."""
        return RowDatasetVersionMeta.of(self._fragment, UPDATED)

    @property
    def overlays(self) -> list[Any]:
        """The data overlay files: none, as a table that has any is refused."""
        return []

    def data_files(self) -> list[DataFile]:
        """The data files, under the name of older releases of pylance."""
        warnings.warn(
            "FragmentMetadata.data_files is deprecated. Use .files instead.", DeprecationWarning, stacklevel=2
        )
        return self.files

    def to_json(self) -> dict[str, Any]:
        """The fragment as JSON values, with `encoded` holding all of it for `from_json`."""
        return {
            "id": self.id,
            "files": [
                {
                    "path": str(file.path),
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
            "row_id_meta": self.row_id_meta.asdict() if self.row_id_meta else None,
            "created_at_version_meta": _asdict(self.created_at_version_meta),
            "last_updated_at_version_meta": _asdict(self.last_updated_at_version_meta),
            "overlays": [],
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
        ids = values.get("row_id_meta")
        created, updated = values.get("created_at_version_meta"), values.get("last_updated_at_version_meta")
        return FragmentMetadata(
            values["id"],
            files,
            values["physical_rows"],
            DeletionFile(**deletion_file) if deletion_file else None,
            None if ids is None else RowIdMeta.from_dict(ids),
            None if created is None else RowDatasetVersionMeta.from_dict(created),
            None if updated is None else RowDatasetVersionMeta.from_dict(updated),
            values.get("overlays") or (),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FragmentMetadata) and self._fragment == other._fragment

    def __hash__(self) -> int:
        return hash(self._fragment)

    def __repr__(self) -> str:
        return (
            f"FragmentMetadata(id={self.id}, files={self.files}, physical_rows={self.physical_rows}, "
            f"deletion_file={self.deletion_file}, row_id_meta={self.row_id_meta}, "
            f"created_at_version_meta={self.created_at_version_meta}, "
            f"last_updated_at_version_meta={self.last_updated_at_version_meta}, overlays={self.overlays})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return FragmentMetadata.from_native, (self._fragment,)


def _asdict(versions: RowDatasetVersionMeta | None) -> Any:
    return versions.asdict() if versions else None
