"""Checkpoint files in a log (parts and sidecars), which log clean-up looks for.

Spec: "Checkpoints", "Sidecar Files".
"""

from __future__ import annotations

import re

import pyarrow as pa

from ..._native.store import Store
from ...exceptions import CorruptFileError, EskerError, NotFoundError
from .entries import LOG, json_lines
from .store_file import StoreFile

SIDECARS = f"{LOG}_sidecars/"


def checkpoint_parts(store: Store, version: int) -> list[str]:
    """The files of a complete checkpoint of a version, sidecars among them.

    Raises:
        NotFoundError: There is none.
        CorruptFileError: It cannot be read.
    """
    name = re.escape(f"{LOG}{version:020}.checkpoint.")
    paths = store.list_paths(LOG)
    single = f"{LOG}{version:020}.checkpoint.parquet"
    if single in paths:
        return [single, *sidecars_of(store, single)]
    for path in paths:
        if re.match(rf"^{name}[0-9a-fA-F-]{{36}}\.(json|parquet)$", path):
            return [path, *sidecars_of(store, path)]
    sets: dict[int, list[str]] = {}
    for path in paths:
        match = re.match(rf"^{name}(\d{{10}})\.(\d{{10}})\.parquet$", path)
        if match is not None:
            sets.setdefault(int(match.group(2)), []).append(path)
    for count, parts in sets.items():
        if len(parts) == count:
            return sorted(parts)
    raise NotFoundError(f"no complete checkpoint of version {version}", version=version)


def check_checkpoint(store: Store, version: int) -> None:
    """Raises unless a version has a checkpoint whose files are all there and have their ends.

    Raises:
        NotFoundError: There is none, or one of its files is missing.
        CorruptFileError: One of its files cannot be read.

    Example:
        `check_checkpoint(store, 10)`
    """
    import pyarrow.parquet as pq

    for path in checkpoint_parts(store, version):
        if path.endswith(".json"):
            continue
        file = StoreFile(store, path)
        try:
            pq.read_metadata(pa.PythonFile(file, mode="r"))
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, EskerError):
                raise
            raise CorruptFileError(
                f"corrupt {path}: expected a checkpoint with a footer, found: {error}", path=path
            ) from error


def sidecars_of(store: Store, path: str) -> list[str]:
    """The sidecars that one file of a checkpoint names.

    Raises:
        NotFoundError: The file is not there (any more).
        CorruptFileError: It cannot be read, so that its sidecars are unknown.

    Example:
        `sidecars_of(store, "_delta_log/00000000000000000010.checkpoint.parquet")`
    """
    import pyarrow.parquet as pq

    data = store.get(path) if path.endswith(".json") else StoreFile(store, path)
    try:
        if isinstance(data, bytes):
            found = [row["sidecar"]["path"] for _, row in json_lines(data) if row.get("sidecar")]
        else:
            parquet = pq.ParquetFile(pa.PythonFile(data, mode="r"))
            if "sidecar" not in parquet.schema_arrow.names:
                return []
            column = parquet.read(columns=["sidecar"]).column(0)
            found = [value["path"] for value in column.to_pylist() if value is not None]
        return [SIDECARS + name.rsplit("/", 1)[-1] for name in found]
    except NotFoundError:
        raise
    except (pa.ArrowException, ValueError, LookupError, AttributeError, TypeError) as error:
        raise CorruptFileError(
            f"corrupt {path}: expected a checkpoint that names its sidecars, found: {error}", path=path
        ) from error
