"""Reads a dump of refs: the manifest that names its three metaranges, and their records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ..._native.graveler import Storage
from ..._native.store import Store
from ...exceptions import CorruptFileError
from ..objects.batches import rows, table
from .json_record import WRONG, decode_json
from .layout import LAKEFS_REFS


@dataclass(frozen=True)
class RefsDump:
    """The metaranges of a dump."""

    commits_meta_range_id: str
    tags_meta_range_id: str
    branches_meta_range_id: str


def read_manifest(store: Store) -> RefsDump:
    """The newest dump that lies here.

    Raises:
        NotFoundError: There is none.
    """
    data = store.get(LAKEFS_REFS)
    said = decode_json(data, LAKEFS_REFS, "a dump of refs")
    try:
        dump = RefsDump(**said)
        wrong = [id for id in asdict(dump).values() if not isinstance(id, str)]
    except WRONG as error:
        raise CorruptFileError(f"{LAKEFS_REFS}: expected a dump of refs, found {error}", path=LAKEFS_REFS) from error
    if wrong:
        raise CorruptFileError(f"{LAKEFS_REFS}: expected a dump of refs, found the id {wrong[0]!r}", path=LAKEFS_REFS)
    return dump


def records(storage: Storage, metarange: str) -> Iterator[tuple[bytes, bytes]]:
    """Keys and messages of one part of a dump."""
    for described in table(storage.ranges(metarange)).to_pylist():
        for row in rows(storage.records(described["id"])):
            yield row["key"], row["data"]
