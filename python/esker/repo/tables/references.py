"""The files that a version of a table refers to, by their paths in the table's folder."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..._native.delta import Snapshot, canonical_path
from ..._native.store import Store
from ..._native.table import Fragment, Manifest
from ...exceptions import CorruptFileError, UnsupportedError
from .table_log import TableFormat

_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_FROM_Z85 = bytes.maketrans(_Z85, _ALPHABET)
_UUID_LENGTH = 20
_ABSOLUTE = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:/")


@dataclass
class References:
    """What a version refers to.

    Attributes:
        files: Paths of files.
        folders: Folders of which every file counts, each with a `/` at its end: blobs of a data file, an index.
        elsewhere: What lies outside of the table's folder: base paths, absolute paths.
    """

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    elsewhere: list[str] = field(default_factory=list)

    def check_inside(self, uri: str) -> None:
        """Refuses a version that refers to what lies elsewhere: a branch could not keep it.

        Raises:
            UnsupportedError: It does.
        """
        if self.elsewhere:
            raise UnsupportedError(
                f"{uri}: expected a table all of whose files lie in its folder, found {self.elsewhere[0]}: a branch "
                "keeps what lies on it alone; copy the table there (a deep clone, or read it and write it)",
                uri=uri,
            )

    def add(self, other: References) -> None:
        """Adds what another version refers to."""
        self.files |= other.files
        self.folders |= other.folders
        self.elsewhere += other.elsewhere

    def add_file(self, path: str, vector: Mapping[str, Any] | None) -> None:
        """Adds what an action of a Delta log says of a file: the file, and its deletion vector.

        Args:
            path: The file's canonical path.
            vector: The action's `deletionVector`.
        """
        _add(self, path, "file")
        if vector is not None:
            _add_vector(self, vector["storageType"], vector["pathOrInlineDv"])

    def has(self, path: str) -> bool:
        """Whether a path is one of its files, or in one of its folders."""
        return path in self.files or any(path.startswith(folder) for folder in self.folders)


def references_of(store: Store, format: TableFormat, version: int, path: str) -> References:
    """What a version refers to.

    Args:
        store: The table's.
        format: Its format.
        version: The version.
        path: Of its entry, in the table's folder.
    """
    if format == "lance":
        return lance_references(Manifest.decode(store.get(path), path))
    return delta_references(store, Snapshot.load(store, version=version))


def lance_references(manifest: Manifest) -> References:
    """What a version of a Lance table refers to: data, blobs, deletion files and indices."""
    found = References()
    found.elsewhere += [f"the base path {path!r}" for _, _, _, path in manifest.base_paths]
    if manifest.branch is not None:
        found.elsewhere.append(f"the branch {manifest.branch!r} of the table itself")
    held = fragment_references(manifest.fragments())
    found.files, found.folders = held.files, held.folders
    found.folders.update(index.folder for index in manifest.indices)
    return found


def fragment_references(fragments: Iterable[Fragment]) -> References:
    """What fragments of a Lance table refer to: data, blobs and deletion files."""
    found = References()
    for fragment in fragments:
        if fragment.deletion_file is not None:
            found.files.add(fragment.deletion_file)
        for file in fragment.files:
            found.files.add(file.location)
            if (file.file_major_version, file.file_minor_version) >= (2, 2):
                found.folders.add(file.location.removesuffix(".lance") + "/")
    return found


def delta_references(store: Store, snapshot: Snapshot) -> References:
    """What a version of a Delta table refers to: data files and deletion vectors."""
    found = References()
    described = pa.record_batch(snapshot.select(store).describe())
    vectors = described.column("deletion_vector").to_pylist()
    for path, vector in zip(described.column("path").to_pylist(), vectors, strict=True):
        found.add_file(path, vector)
    return found


def added_references(actions: Iterable[tuple[str, Any]]) -> References:
    """What the actions of an entry of a Delta log bring: data files, deletion vectors and files of changes."""
    found = References()
    for name, action in actions:
        if name in ("add", "cdc"):
            found.add_file(unquote(action["path"]), action.get("deletionVector"))
    return found


def action_references(root: str, actions: Iterable[Mapping[str, Any]]) -> References:
    """What `add` actions of a Delta table refer to: data files and deletion vectors.

    Args:
        root: The table's, as `Snapshot.root` has it.
        actions: As the log has them.
    """
    found = References()
    for action in actions:
        found.add_file(canonical_path(root, action["path"]), action.get("deletionVector"))
    return found


def _add(found: References, path: str, what: str) -> None:
    if _ABSOLUTE.match(path):
        found.elsewhere.append(f"the {what} {path!r}")
    else:
        found.files.add(path)


def _add_vector(found: References, storage_type: str, text: str) -> None:
    if storage_type == "i":
        return
    if storage_type == "p":
        found.elsewhere.append(f"the deletion vector {text!r}")
        return
    encoded, folder = text[-_UUID_LENGTH:], text[:-_UUID_LENGTH]
    try:
        id = uuid.UUID(bytes=base64.b85decode(encoded.encode().translate(_FROM_Z85)))
    except ValueError as error:
        raise CorruptFileError(f"expected the id of a deletion vector's file, found {text!r}") from error
    found.files.add(f"{folder}/deletion_vector_{id}.bin" if folder else f"deletion_vector_{id}.bin")
