"""All actions that a version has, as they stand in the log: what a checkpoint holds.

The newest complete checkpoint is streamed, and the entries behind it are replayed over it; fields that this release
does not know are carried along.

Spec: "Action Reconciliation", "Checkpoints".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .._native.delta import Snapshot, canonical_path
from .._native.store import Store
from ..exceptions import CorruptFileError, NotFoundError
from .filesystem import StoreFile
from .history import LOG, read_actions

FileKey = tuple[str, str | None]
SIDECARS = f"{LOG}_sidecars/"
_ODD = re.compile("[%:]|^/")
"""What a path may have that is spelled in several ways."""
_BATCH_ROWS = 64 * 1024
_SINGLE = ("protocol", "metaData")
_KEYED = {"txn": "appId", "domainMetadata": "domain"}


class LogState:
    """The actions of one version.

    Args:
        store: The table's.
        snapshot: The version.

    Raises:
        CorruptFileError: An entry, or the checkpoint that the version was replayed from, cannot be read.

    Example:
        `LogState(store, snapshot).single["protocol"]`
    """

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self._store = store
        self._root = snapshot.root
        self.version = snapshot.version
        self.single: dict[str, dict[str, Any]] = {}
        self.keyed: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _KEYED}
        self.files: dict[FileKey, tuple[str, dict[str, Any]]] = {}
        base = snapshot.checkpoint_version
        self._parts = checkpoint_parts(store, base) if base is not None else []
        for name, value in self._base_others():
            self._put(name, value)
        for version in range(0 if base is None else base + 1, snapshot.version + 1):
            for name, value in read_actions(store, version):
                if isinstance(value, dict):
                    self._put(name, value)
        self._paths = pa.array({path for path, _ in self.files}, pa.string())

    def _put(self, name: str, value: dict[str, Any]) -> None:
        if name in _SINGLE:
            self.single[name] = value
        elif name in _KEYED:
            self.keyed[name][value[_KEYED[name]]] = value
        elif name in ("add", "remove"):
            path, vector = value["path"], value.get("deletionVector")
            if not path.isascii() or _ODD.search(path):
                path = canonical_path(self._root, path)
            self.files[path, None if vector is None else vector_id(vector)] = (name, value)

    def base_types(self, name: str) -> list[pa.DataType]:
        """The types that the checkpoint's files have of an action."""
        found = []
        for part in self._parts:
            if not part.endswith(".json"):
                schema = self._open(part).schema_arrow
                if name in schema.names:
                    found.append(schema.field(name).type)
        return found

    def base_files(self, name: str) -> Iterator[pa.StructArray]:
        """The checkpoint's `add` or `remove` actions that no later entry touched."""
        for part in self._parts:
            if part.endswith(".json"):
                rows = [found[name] for found in self._json(part) if isinstance(found.get(name), dict)]
                # A checkpoint in JSON keeps its files in sidecars as a rule; those few in it are replayed.
                for row in rows:
                    key = (canonical_path(self._root, row["path"]), vector_id(row.get("deletionVector")))
                    self.files.setdefault(key, (name, row))
                continue
            parquet = self._open(part)
            if name not in parquet.schema_arrow.names:
                continue
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[name]):
                column = batch.column(0)
                kept = self._untouched(column.filter(column.is_valid()))
                if len(kept):
                    yield kept

    def _untouched(self, actions: pa.StructArray) -> pa.StructArray:
        if not self.files or not len(actions):
            return actions
        paths = actions.field("path")
        odd = pc.match_substring_regex(paths, _ODD.pattern)
        if pc.any(odd).as_py():
            paths = pa.array(
                [
                    canonical_path(self._root, path) if strange else path
                    for path, strange in zip(paths.to_pylist(), odd.to_pylist(), strict=True)
                ],
                pa.string(),
            )
        touched = pc.is_in(paths, self._paths)
        if not pc.any(touched).as_py():
            return actions
        has_vectors = actions.type.get_field_index("deletionVector") >= 0
        keep = pc.invert(touched).to_pylist()
        for row in pc.indices_nonzero(touched).to_pylist():
            vector = actions.field("deletionVector")[row].as_py() if has_vectors else None
            keep[row] = (paths[row].as_py(), vector_id(vector)) not in self.files
        return actions.filter(pa.array(keep))

    def _base_others(self) -> Iterator[tuple[str, dict[str, Any]]]:
        names = [*_SINGLE, *_KEYED]
        for part in self._parts:
            if part.endswith(".json"):
                for row in self._json(part):
                    yield from ((name, value) for name, value in row.items() if name in names)
                continue
            parquet = self._open(part)
            for name in names:
                if name not in parquet.schema_arrow.names:
                    continue
                for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[name]):
                    column = batch.column(0)
                    for value in column.filter(column.is_valid()).to_pylist():
                        yield name, value

    def _open(self, path: str) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(pa.PythonFile(StoreFile(self._store, path), mode="r"))
        except pa.ArrowInvalid as error:
            raise CorruptFileError(f"corrupt {path}: expected Parquet, found: {error}", path=path) from error

    def _json(self, path: str) -> list[dict[str, Any]]:
        try:
            lines = self._store.get(path).decode().splitlines()
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise CorruptFileError(f"corrupt {path}: expected JSON, found: {error}", path=path) from error


def vector_id(vector: Any) -> str | None:
    """What tells a deletion vector from others, None for no vector.

    Example:
        >>> from esker.delta.log_state import vector_id
        >>> vector_id({"storageType": "u", "pathOrInlineDv": "ab", "offset": 1})
        'uab@1'
    """
    if not vector or vector.get("storageType") is None:
        return None
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def checkpoint_parts(store: Store, version: int) -> list[str]:
    """The files of a complete checkpoint of a version, sidecars among them.

    Raises:
        NotFoundError: There is none.
    """
    name = re.escape(f"{LOG}{version:020}.checkpoint.")
    paths = store.list_paths(LOG)
    single = f"{LOG}{version:020}.checkpoint.parquet"
    if single in paths:
        return [single, *_sidecars(store, single)]
    for path in paths:
        if re.match(rf"^{name}[0-9a-fA-F-]{{36}}\.(json|parquet)$", path):
            return [path, *_sidecars(store, path)]
    sets: dict[int, list[str]] = {}
    for path in paths:
        match = re.match(rf"^{name}(\d{{10}})\.(\d{{10}})\.parquet$", path)
        if match is not None:
            sets.setdefault(int(match.group(2)), []).append(path)
    for count, parts in sets.items():
        if len(parts) == count:
            return sorted(parts)
    raise NotFoundError(f"no complete checkpoint of version {version}", version=version)


def _sidecars(store: Store, path: str) -> list[str]:
    if path.endswith(".json"):
        rows = [json.loads(line) for line in store.get(path).decode().splitlines() if line.strip()]
        found = [row["sidecar"]["path"] for row in rows if row.get("sidecar")]
    else:
        parquet = pq.ParquetFile(pa.PythonFile(StoreFile(store, path), mode="r"))
        if "sidecar" not in parquet.schema_arrow.names:
            return []
        column = parquet.read(columns=["sidecar"]).column(0)
        found = [value["path"] for value in column.to_pylist() if value is not None]
    return [SIDECARS + name.rsplit("/", 1)[-1] for name in found]
