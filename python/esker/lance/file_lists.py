"""The files of a table as rows: those that versions refer to, and those that lie there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from .._native.store import path_at_home
from .._native.table import Manifest
from ..exceptions import NotFoundError
from .log import TRANSACTIONS
from .version import TableVersion

_NAMES = pa.dictionary(pa.int32(), pa.string())
_KINDS = pa.dictionary(pa.int8(), pa.string())
TRACKED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _NAMES, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", _KINDS, nullable=False),
    ]
)
ALL = pa.schema(
    [
        pa.field("base_uri", _NAMES, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)


def tracked_files(
    table: TableVersion, min_version: int | None, progress: Callable[[int, int | None], object] | None
) -> pa.RecordBatchReader:
    """The files that versions refer to; see `LanceDataset.tracked_files`."""
    listing = table.log.listing()
    numbers = [number for number in listing.versions if min_version is None or number >= min_version]
    folders: dict[str, list[str]] = {}

    def batches() -> Iterator[pa.RecordBatch]:
        for done, number in enumerate(numbers, 1):
            try:
                manifest = table.log.manifest(number, listing.scheme)
            except NotFoundError:
                # Cleaned up meanwhile.
                manifest = None
            if manifest is not None:
                manifest_path = table.log.path_of(number, listing.scheme)
                yield _tracked(table.at(manifest), manifest_path, folders)
            if progress is not None:
                progress(done, len(numbers))

    return pa.RecordBatchReader.from_batches(TRACKED, batches())


def _tracked(table: TableVersion, manifest_path: str, folders: dict[str, list[str]]) -> pa.RecordBatch:
    found = list(_files_of(table, manifest_path, folders))
    roots = {id_: (place, is_dataset_root) for id_, _, is_dataset_root, place in table.manifest.base_paths}

    def located(path: str) -> tuple[str, str]:
        mount, _, rest = path.partition("/")
        if mount != "_bases":
            return table.log.uri, path
        place, is_dataset_root = roots[int(rest.partition("/")[0])]
        at_home = path_at_home(path)
        # Data files lie directly in a base path that is no table's root.
        return place, at_home if is_dataset_root else at_home.removeprefix("data/")

    places = [located(path) for path, _ in found]

    columns: list[Any] = [
        pa.array([table.number] * len(found), pa.int64()),
        pa.array([root for root, _ in places], pa.string()).cast(_NAMES),
        pa.array([path for _, path in places], pa.string()),
        pa.array([kind for _, kind in found], pa.string()).cast(_KINDS),
    ]
    return pa.record_batch(columns, schema=TRACKED)


def _files_of(table: TableVersion, manifest_path: str, folders: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    manifest: Manifest = table.manifest
    yield manifest_path, "manifest"
    if manifest.transaction_file:
        yield TRANSACTIONS + manifest.transaction_file, "transaction file"
    for fragment in table.fragments:
        for file in fragment.files:
            yield file.location, "data file"
        if fragment.deletion_file is not None:
            yield fragment.deletion_file, "deletion file"
    for index in manifest.indices:
        if index.folder not in folders:
            folders[index.folder] = table.store.list_paths(index.folder)
        for path in folders[index.folder]:
            yield path, "index file"


def all_files(table: TableVersion) -> pa.RecordBatchReader:
    """The files that lie there; see `LanceDataset.all_files`."""
    uri = table.log.uri

    def batches() -> Iterator[pa.RecordBatch]:
        listed = table.store.list_batches("")
        while (found := listed.next_batch()) is not None:
            rows = pa.record_batch(found)
            columns = [
                pa.array([uri] * rows.num_rows, pa.string()).cast(_NAMES),
                rows["path"].cast(pa.string()),
                rows["size_bytes"].cast(pa.int64()),
                rows["modified_us"].cast(pa.int64()).fill_null(0).cast(pa.timestamp("us", "UTC")),
            ]
            yield pa.record_batch(columns, schema=ALL)

    return pa.RecordBatchReader.from_batches(ALL, batches())
