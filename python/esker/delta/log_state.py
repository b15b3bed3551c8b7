"""The files of checkpoints that a log has, for its clean-up.

Spec: "Checkpoints", "Sidecar Files".
"""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq

from .._native.store import Store
from ..exceptions import NotFoundError
from .filesystem import StoreFile
from .history import LOG

SIDECARS = f"{LOG}_sidecars/"


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
