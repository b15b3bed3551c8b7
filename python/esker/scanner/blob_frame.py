"""Converts scans with blob columns to pandas data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from ..exceptions import InvalidArgumentError, UnsupportedError
from ..lance.blob.take import blob_files
from ..lance.scan.scan import Scan
from ..lance.system_columns import ROW_ADDRESS

if TYPE_CHECKING:
    import pandas as pd


BlobMode: TypeAlias = Literal["lazy", "bytes", "descriptions"]

_BLOB_KEY = b"lance-encoding:blob"


_SHOWN = {
    "blob_mode",
    "memory_pool",
    "categories",
    "strings_to_categorical",
    "zero_copy_only",
    "integer_object_nulls",
    "date_as_object",
    "timestamp_as_object",
    "use_threads",
    "deduplicate_objects",
    "ignore_metadata",
    "safe",
    "split_blocks",
    "self_destruct",
    "maps_as_pydicts",
    "types_mapper",
    "coerce_temporal_nanoseconds",
}
"""Options of `LanceScanner.to_pandas`: its own and those of `pyarrow.Table.to_pandas`."""


def parted(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a scan, and those of the frame that is made of it.

    Example:
        >>> from esker.scanner.blob_frame import parted
        >>> parted({"limit": 3, "blob_mode": "bytes"})
        ({'limit': 3}, {'blob_mode': 'bytes'})
    """
    shown = {name: value for name, value in options.items() if name in _SHOWN}
    return {name: value for name, value in options.items() if name not in shown}, shown


def frame_with_blobs(scan: Scan, blob_mode: BlobMode, kwargs: dict[str, Any]) -> pd.DataFrame:
    """The rows of a scan as a data frame.

    Args:
        scan: The scan.
        blob_mode: What blob columns are returned as: "lazy" (files), "bytes", or "descriptions" (dicts that say where
            the blobs are stored).
        kwargs: Arguments for `pyarrow.Table.to_pandas`.

    Raises:
        InvalidArgumentError: The mode is unknown.
        UnsupportedError: The scan includes deleted rows, whose blobs cannot be files.
    """
    if blob_mode not in ("lazy", "bytes", "descriptions"):
        raise InvalidArgumentError("blob_mode must be one of: 'lazy', 'bytes', 'descriptions'")
    schema = scan.schema
    paths = [path for field in schema for path in _blob_paths(field, ())]
    options = scan.options
    if not paths or blob_mode == "descriptions":
        return scan.to_table().to_pandas(**kwargs)
    if blob_mode == "bytes":
        return scan.but(blobs="bytes").to_table().to_pandas(**kwargs)
    if options.include_deleted_rows:
        raise UnsupportedError("blobs of deleted rows cannot be files, pass blob_mode='bytes' or 'descriptions'")
    table = scan.but(with_row_address=True, blobs="descriptions").to_table()
    addresses = table[ROW_ADDRESS]
    frame = table.select(schema.names).to_pandas(**kwargs)
    for path in paths:
        source = ".".join((scan.projection.source_of(path[0]), *path[1:]))
        files = blob_files(scan.table, source, addresses, "addresses")
        column = files if len(path) == 1 else _placed(frame[path[0]].tolist(), path[1:], files)
        frame[path[0]] = pd_series(column, frame)
    return frame


def pd_series(values: list[Any], frame: pd.DataFrame) -> Any:
    """Python objects as a column of a frame."""
    import pandas as pd

    return pd.Series(values, index=frame.index, dtype=object)


def _blob_paths(field: pa.Field, parent: tuple[str, ...]) -> list[tuple[str, ...]]:
    path = (*parent, field.name)
    if field.metadata is not None and _BLOB_KEY in field.metadata:
        return [path]
    if not pa.types.is_struct(field.type):
        return []
    return [found for i in range(field.type.num_fields) for found in _blob_paths(field.type.field(i), path)]


def _placed(parents: list[Any], path: tuple[str, ...], files: list[Any]) -> list[Any]:
    """Copies of the parents (dicts), with the files at `path` within them."""
    out = []
    for parent, file in zip(parents, files, strict=True):
        out.append(parent)
        if parent is None:
            continue
        place = out[-1] = dict(parent)
        for name in path[:-1]:
            place[name] = dict(place[name])
            place = place[name]
        place[path[-1]] = file
    return out
