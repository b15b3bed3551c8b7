"""`FragmentMetadata`: the manifest's entry of a fragment."""

from __future__ import annotations

import base64
import json
from typing import Any

from .._native import table as native
from .._native.table import DataFile
from ..missing import missing_method, missing_property, refuse_options
from ..missing_names import OVERLAYS, STABLE_IDS
from .deletion_file import DeletionFile

_OWNER = "FragmentMetadata"


class FragmentMetadata:
    """The manifest's entry of a fragment. Small, immutable and picklable: workers send it to the process that commits.

    Args:
        id: Unique within a table; 0 until a commit assigns it.
        files: The data files, each with all rows of some columns.
        physical_rows: Rows in the files, including deleted ones.
        deletion_file: The file with the deleted rows.

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

    created_at_version_meta = missing_property(_OWNER, "created_at_version_meta", STABLE_IDS)
    last_updated_at_version_meta = missing_property(_OWNER, "last_updated_at_version_meta", STABLE_IDS)
    row_id_meta = missing_property(_OWNER, "row_id_meta", STABLE_IDS)
    overlays = missing_property(_OWNER, "overlays", OVERLAYS)
    data_files = missing_method(_OWNER, "data_files", "read FragmentMetadata.files")

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
        files = ", ".join(
            f"DataFile(path={file.path!r}, fields={file.fields}, file_major_version={file.file_major_version}, "
            f"file_minor_version={file.file_minor_version})"
            for file in self.files
        )
        return f"FragmentMetadata(id={self.id}, physical_rows={self.physical_rows}, files=[{files}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return FragmentMetadata.from_native, (self._fragment,)
