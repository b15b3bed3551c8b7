"""Deletion vectors that a change writes: small ones into the log, the others into one file of the table's folder.

A file whose rows are deleted in part is removed with the vector that it had, and added again with one that has its rows
as well. Its statistics are what they were, with the number of its rows and bounds that are not tight; its tags stay.

Spec: "Deletion Vectors", "Per-file Statistics".
"""

from __future__ import annotations

import uuid
from typing import Any

from ..._native.delta import deletion_vector_file, encode_deletion_vector, z85_text
from ...commit.orphans import StagedFiles
from ..log.entries import vector_id
from ..log.full_adds import FileKey, tags_of
from ..write.file_statistics import decode, encode
from .changed_table import ChangedTable, MatchedFile

INLINE_AT_MOST = 256
"""Bytes of a vector that goes into the log."""


class VectorWriter:
    """Gives files deletion vectors.

    Args:
        table: The version that the files are of.
        staged: Takes in the file of vectors before it is put.

    Example:
        `vectors = VectorWriter(table, staged); vectors.delete(found); adds = vectors.close()`
    """

    def __init__(self, table: ChangedTable, staged: StagedFiles) -> None:
        self._table = table
        self._staged = staged
        self._adds: list[dict[str, Any]] = []
        self._keys: list[FileKey] = []
        self._stored: list[tuple[dict[str, Any], bytes]] = []

    def delete(self, found: MatchedFile) -> None:
        """Deletes the rows of a file that are meant, beside those that are deleted already."""
        rows = [found.rows()]
        before = self._table.scan.deleted(found.file)
        data, cardinality = encode_deletion_vector(rows if before is None else [*rows, before])
        vector: dict[str, Any] = {"storageType": "i", "pathOrInlineDv": z85_text(data)}
        vector |= {"sizeInBytes": len(data), "cardinality": cardinality}
        if len(data) > INLINE_AT_MOST:
            self._stored.append((vector, data))
        self._keys.append((found.file.path, vector_id(found.remove.get("deletionVector"))))
        self._adds.append(
            {
                "path": found.remove["path"],
                "partitionValues": found.remove["partitionValues"],
                "size": found.remove["size"],
                "modificationTime": found.modification_time,
                "dataChange": True,
                "stats": self._statistics(found),
                "deletionVector": vector,
            }
        )

    def close(self) -> list[dict[str, Any]]:
        """Puts the file of vectors, if there is one, and hands out the `add` actions."""
        tags = tags_of(self._table.target.store, self._table.snapshot, set(self._keys))
        for key, add in zip(self._keys, self._adds, strict=True):
            if key in tags:
                add["tags"] = tags[key]
        if not self._stored:
            return self._adds
        name = uuid.uuid4()
        data, offsets = deletion_vector_file([data for _, data in self._stored])
        path = f"deletion_vector_{name}.bin"
        self._staged.add(self._table.target.store, path)
        self._table.target.store.put(path, data)
        for (vector, _), offset in zip(self._stored, offsets, strict=True):
            vector |= {"storageType": "u", "pathOrInlineDv": z85_text(name.bytes), "offset": offset}
        return self._adds

    def _statistics(self, found: MatchedFile) -> str:
        """The file's statistics with the exact number of its rows, and bounds that are not tight."""
        rows = self._table.scan.count(found.file) if found.held is None else found.held
        return encode({**decode(found.statistics), "numRecords": rows, "tightBounds": False})
