"""`DeletionFile`: the manifest's entry of a deletion file. The file itself holds the deleted rows of the fragment.

docs/commit-protocol.md, "Deletion files".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from json import dumps, loads
from typing import Any

from .._native import table as native

_ENDINGS = {"array": "arrow", "bitmap": "bin"}


@dataclass(frozen=True)
class DeletionFile:
    """The file with the deleted rows of a fragment.

    Args:
        read_version: The base version of the delete that wrote it.
        id: Random: keeps the files of concurrent writers apart.
        file_type: "array", an Arrow file, for few rows; "bitmap", a roaring bitmap, from 5,000 rows on.
        num_deleted_rows: How many rows are deleted.
        base_id: The id of the base path that holds it; None is the table's own root.

    Example:
        >>> from esker.lance.deletion_file import DeletionFile
        >>> DeletionFile(3, 77, "bitmap", 9000).path(2)
        '_deletions/2-3-77.bin'
    """

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    @classmethod
    def of(cls, fragment: native.Fragment) -> DeletionFile | None:
        """The deletion file of a fragment of the Rust core, None if no row is deleted."""
        parts = fragment.deletion_parts
        return None if parts is None else cls(*parts)

    def put_on(self, fragment: native.Fragment) -> native.Fragment:
        """The fragment of the Rust core with this deletion file."""
        return fragment.with_deletion_file(
            self.read_version, self.id, self.file_type, self.num_deleted_rows, self.base_id
        )

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Its path, relative to the table's root, or below `base_uri` if that is given."""
        name = f"_deletions/{fragment_id}-{self.read_version}-{self.id}.{_ENDINGS.get(self.file_type, self.file_type)}"
        return f"{base_uri}/{name}" if base_uri else name

    def asdict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    def json(self) -> str:
        """The fields as JSON."""
        return dumps(self.asdict(), separators=(",", ":"))

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        """The deletion file of a text that `json` returned."""
        return DeletionFile(**loads(json))
