"""The versions of a Lance table as a stream reads them: what each transaction adds, deletes or changes.

| operation                                                       | rows that it adds | in a change feed        |
|-----------------------------------------------------------------|-------------------|-------------------------|
| Append, and what makes the table                                | its fragments     | inserts                 |
| Delete, and an Update that only deletes (a merge)               | refused, skipped  | deletes                 |
| Update that only inserts (an upsert of new keys)                | its fragments     | inserts                 |
| Update (update, upsert) of rows that are there                  | refused, skipped  | by row ids and versions |
| Overwrite                                                       | refused, skipped  | deletes and inserts     |
| Rewrite, CreateIndex, ReserveFragments, Merge, Project, configs | none              | none                    |
| Restore, DataReplacement, unknown ones                          | refused, skipped  | refused                 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from esker._native.schema import Schema
from esker._native.store import Store
from esker._native.table import Fragment, Manifest
from esker.arrow.json_columns import shown_schema
from esker.cached import cached_property
from esker.exceptions import NotFoundError, SchemaMismatchError, UnsupportedError
from esker.lance import LanceLog
from esker.lance.log import entry_of
from esker.lance.scan.options import ScanOptions
from esker.lance.scan.scan import Scan
from esker.lance.system_columns import ROW_ADDRESS, SYSTEM_COLUMNS
from esker.lance.version import TableVersion
from esker.spark.options import TableAddress
from esker.spark.streaming.column_lineage import ColumnLineage
from esker.spark.streaming.history import (
    READ_AGAIN,
    START_ANEW,
    Piece,
    TableHistory,
    VersionPieces,
    change_refused,
    check_columns,
    cleaned_up,
)
from esker.spark.streaming.lance_partition import FEED_NAMES, ChangedRows, ChangeKind, FragmentRows, Reading
from esker.spark.streaming.options import StreamReadOptions
from esker.spark.streaming.version_columns import Followed, first_renamed
from esker.store.staging import pinned_uri

__all__ = ["LanceHistory"]

_REARRANGED = ("Rewrite", "CreateIndex", "ReserveFragments", "Merge", "Project", "UpdateConfig", "UpdateBases")
_TOUCHED = {
    "Delete": ("updated_fragments", "deleted_fragment_ids"),
    "Update": ("updated_fragments", "removed_fragment_ids", "fields_modified"),
}
"""Where a transaction names the fragments whose rows it deletes or changes, and the columns that it writes anew."""
_SEEN = 2
"""How many versions are kept as they were seen last, beside that up to which the stream has read."""
_BATCH_ROWS = 32 * 1024
_BATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class _FragmentPiece(Piece):
    """A fragment, whose units are its physical rows."""

    reading: Reading
    version: int
    fragment_id: int
    change: ChangeKind | None = None

    def rows_between(self, first: int, last: int) -> int:
        if first == 0 and last == self.length:
            return self.rows
        if self._live is None:
            return last - first
        low, high = np.searchsorted(self._live, (first, last))
        return int(high - low)

    def units_of(self, first: int, rows: int) -> int:
        if first == 0 and rows >= self.rows:
            return self.length
        if self._live is None:
            return min(rows, self.length - first)
        before = int(np.searchsorted(self._live, first))
        if before + rows >= len(self._live):
            return self.length - first
        return int(self._live[before + rows]) - first

    @cached_property
    def _live(self) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
        """The physical rows that are not deleted, ascending; None if none is."""
        if self.rows == self.length:
            return None
        table = self.reading.open(self.version)
        scan = Scan(table, ScanOptions(columns=[ROW_ADDRESS], fragment_ids=(self.fragment_id,)))
        found = [batch.column(ROW_ADDRESS).to_numpy() for batch in scan.to_batches()]
        addresses = np.concatenate(found) if found else np.empty(0, np.uint64)
        return addresses & np.uint64(0xFFFF_FFFF)

    def partitions(self, first: int, last: int) -> list[InputPartition]:
        read, rows = self.reading.options, last - first
        size = self.size * rows // max(self.length, 1)
        count = max(-(-rows // read.rows_per_partition), min(rows, -(-size // read.bytes_per_partition)), 1)
        batch_rows = max(64, min(_BATCH_ROWS, _BATCH_BYTES * self.length // max(self.size, 1)))
        return [
            FragmentRows(
                self.reading,
                self.version,
                self.change,
                self.fragment_id,
                first + rows * index // count,
                first + rows * (index + 1) // count,
                batch_rows,
            )
            for index in range(count)
        ]


@dataclass(frozen=True)
class _ChangedPiece(Piece):
    """Rows of a version that are found by their row ids."""

    reading: Reading
    version: int
    change: ChangeKind
    fragment_id: int | None = None

    def partitions(self, first: int, last: int) -> list[InputPartition]:
        # One task for as many rows as make a partition: each finds the row ids, and reads its share of the rows.
        step = self.reading.options.rows_per_partition
        if self.fragment_id is not None:
            return [ChangedRows(self.reading, self.version, self.change, self.fragment_id, 0, None)]
        return [
            ChangedRows(self.reading, self.version, self.change, None, start, min(start + step, last))
            for start in range(first, last, step)
        ]


@dataclass(frozen=True)
class _Effect:
    """What a version did to rows: `added` are fragments with nothing but new ones, None if it changed others."""

    version: int
    operation: str
    added: list[Fragment] | None
    kind: Literal["delete", "change"]


class LanceHistory(TableHistory):
    """The versions of a Lance table.

    Args:
        address: The table.
        schema: The Spark schema of the rows of the stream.
        options: What is read.
        driver_zone: The zone of the driver's machine.
    """

    kind = "lance"
    first_version = 1

    def __init__(
        self, address: TableAddress, schema: StructType, options: StreamReadOptions, driver_zone: str | None
    ) -> None:
        self.uri = address.uri
        self._options = options
        table = TableVersion.open(address.uri, storage_options=dict(address.storage_options))
        self._log: LanceLog = table.log
        fields = table.manifest.schema
        self._reading = Reading(address, schema, options.read, driver_zone, table.number, fields, options.feed)
        self._lineage = ColumnLineage(self._log, table.number, fields)
        self._checked: tuple[int, Schema | None] = (table.number, fields)
        self._entries: dict[tuple[int, int, int | None], str] = {}
        self._seen: dict[int, Manifest] = {}
        self._kept: int | None = None

    @property
    def store(self) -> Store:
        """The table's store."""
        return self._log.store

    def newest(self) -> int:
        """The newest version.

        Raises:
            NotFoundError: The table is gone.
        """
        found = self._log.newest().latest
        return found if found else self._log.open()[0].version

    def oldest(self) -> int:
        """The oldest version that is there."""
        return self._log.listing().versions[0]

    def entry(self, version: int) -> str:
        """The id of the transaction that made a version, and when.

        Raises:
            NotFoundError: There is no such version.
        """
        if version < 1:
            raise NotFoundError(f"the table at {self.uri} has no version {version}", uri=self.uri, version=version)
        scheme = self._log.newest().scheme
        meta = self._log.store.head(self._log.path_of(version, scheme))
        key = (version, meta.size, meta.last_modified_us)
        if key not in self._entries or meta.last_modified_us is None:
            manifest = self._log.manifest(version, scheme)
            self._entries[key] = entry_of(manifest)
            self._seen[version] = manifest
            for old in sorted(self._seen)[:-_SEEN]:
                if old != self._kept:
                    del self._seen[old]
        return self._entries[key]

    def begins(self, version: int) -> bool:
        """Whether a version made the table: a clone, and a branch, has the number of the version that it shows."""
        if super().begins(version):
            return True
        transaction = self._log.transaction(self._manifest(version))
        return transaction is not None and transaction.operation == "Clone"

    def continues(self, version: int, entry: str) -> bool:
        """Whether the next version only adds fragments to those that the version had when it was seen."""
        before = self._seen.get(version)
        if before is None or entry_of(before) != entry:
            return False
        try:
            after = self._log.open(version + 1)[0]
        except NotFoundError:
            return False
        fragments, known = after.fragments(), before.fragments()
        added = self._effect(after).added
        if added is None or not known or after.schema != before.schema:
            return False
        # Names of data files are drawn by chance: another table has not the same.
        return fragments[: len(fragments) - len(added)] == known

    def keep(self, version: int) -> None:
        """Keeps the manifest of the version up to which the stream has read."""
        self._kept = version

    def remember(self, before: TableHistory) -> None:
        """Takes over the versions that the history before this one has seen last."""
        if isinstance(before, LanceHistory):
            self._seen, self._kept = dict(before._seen), before._kept

    def times(self) -> Mapping[int, int]:
        """When the versions were committed, in milliseconds since the epoch."""
        listing = self._log.listing()
        manifests = {version: self._log.manifest(version, listing.scheme) for version in listing.versions}
        return {version: manifest.timestamp_ns // 1_000_000 for version, manifest in manifests.items()}

    def snapshot(self, version: int) -> VersionPieces:
        """All rows of a version."""
        manifest = self._manifest(version)
        change: ChangeKind | None = "insert" if self._options.feed else None
        return VersionPieces(version, self._whole(manifest, manifest.fragments(), change), True)

    def changes(self, first: int, last: int) -> Iterator[VersionPieces]:
        """What the versions `first` to `last` add, or change."""
        for version in range(first, last + 1):
            manifest = self._manifest(version)
            self._check(manifest)
            if self._options.feed:
                yield VersionPieces(version, self._fed(manifest), False)
            else:
                yield VersionPieces(version, self._added(manifest), True)

    def _added(self, manifest: Manifest) -> list[Piece]:
        effect = self._effect(manifest)
        if effect.added is not None:
            return self._whole(manifest, effect.added, None)
        if self._options.skips_changes or (effect.kind == "delete" and self._options.skips_deletes):
            return []
        raise change_refused(effect.version, self.uri, effect.operation, effect.kind)

    def _fed(self, manifest: Manifest) -> list[Piece]:
        effect = self._effect(manifest)
        version, operation = effect.version, effect.operation
        if effect.added is not None:
            return self._whole(manifest, effect.added, "insert")
        if operation == "Overwrite":
            before = self._before(version, operation)
            gone = self._whole(before, before.fragments(), "delete")
            return [*gone, *self._whole(manifest, manifest.fragments(), "insert")]
        if operation not in ("Delete", "Update"):
            raise UnsupportedError(
                f"version {version} of {self.uri} ({operation}) does not say which rows it changed, expected versions "
                "that append, delete, update or overwrite; start a new query after it, with startingVersion="
                f"{version + 1} and another checkpointLocation",
                uri=self.uri,
                version=version,
            )
        before = self._before(version, operation)
        for each in (before, manifest):
            if not each.reader_feature_flags & 2:
                raise UnsupportedError(
                    f"version {version} of {self.uri} ({operation}) deletes or updates rows, and a change feed finds "
                    "these by their stable row ids, which the table lacks; make it with enable_stable_row_ids=True, "
                    "or read without readChangeFeed, with skipChangeCommits=true",
                    uri=self.uri,
                    version=version,
                )
        return self._changed(before, manifest)

    def _changed(self, before: Manifest, manifest: Manifest) -> list[Piece]:
        version = manifest.version
        reading = self._reading_of(before, manifest)
        by_id = {fragment.id: fragment for fragment in manifest.fragments()}
        found: list[Piece] = []
        moved = 0
        for kind, created in (("insert", True), ("update_preimage", False), ("update_postimage", False)):
            for number in manifest.fragments_of_versions(version - 1, version, created=created):
                fragment = by_id[number]
                moved += fragment.physical_rows if kind == "update_preimage" else 0
                found.append(
                    _ChangedPiece(1, fragment.physical_rows, _size(fragment), reading, version, kind, number)  # type: ignore[arg-type]
                )
        lost = [(fragment, _gone(fragment, by_id.get(fragment.id))) for fragment in before.fragments()]
        gone = sum(rows for _, rows in lost)
        if gone:
            # At most so many: rows that an update moved are among them.
            deleted = max(gone - moved, 0)
            size = sum(_size(fragment) * rows // max(fragment.physical_rows, 1) for fragment, rows in lost)
            found.insert(0, _ChangedPiece(gone, deleted, size * deleted // gone, reading, version, "delete"))
        return found

    def _whole(self, manifest: Manifest, fragments: list[Fragment], change: ChangeKind | None) -> list[Piece]:
        version = manifest.version
        reading = self._reading_of(manifest)
        if change is not None:
            reading = reading.at(manifest.timestamp_ns)
        return [
            _FragmentPiece(
                fragment.physical_rows,
                fragment.physical_rows - fragment.num_deletions,
                _size(fragment),
                reading,
                version,
                fragment.id,
                change,
            )
            for fragment in fragments
            if fragment.physical_rows
        ]

    def _check(self, manifest: Manifest) -> None:
        """Checks that a version has the columns of the stream, if it was committed since the query was started.

        Raises:
            SchemaMismatchError: A column was dropped or renamed since, or has another type.
        """
        reading, version = self._reading, manifest.version
        if version <= reading.known:
            return
        wanted = StructType([reading.schema[name] for name in reading.names if name not in SYSTEM_COLUMNS])
        check_columns(version, self.uri, shown_schema(pa.schema(manifest.schema)), wanted)
        number, before = self._checked
        if number != version - 1:
            before = self._lineage.schema(version - 1)
        if before is None or before == manifest.schema:
            self._checked = (version, manifest.schema)
            return
        names = [
            name for name in (*reading.names, *reading.filter_columns) if name not in (*SYSTEM_COLUMNS, *FEED_NAMES)
        ]
        changed = first_renamed(names, before, self._lineage.between(version))
        if changed is not None:
            now = "is not there any more" if changed[1] is None else f"is called {changed[1]!r}"
            raise SchemaMismatchError(
                f"column {changed[0]!r} of {self.uri}, with which the stream was loaded, {now} in version {version}; "
                f"{READ_AGAIN}",
                column=changed[0],
            )
        self._checked = (version, manifest.schema)

    def _reading_of(self, *manifests: Manifest) -> Reading:
        """What tasks need that read these versions."""
        found = {manifest.version: self._origins(manifest) for manifest in manifests}
        origins = {version: names for version, names in found.items() if names is not None}
        # A branch may be reset before tasks open it: they read the commit at which the batch was planned.
        address = replace(self._reading.address, uri=pinned_uri(self.store, self._reading.address.uri))
        entries = {manifest.version: entry_of(manifest) for manifest in manifests}
        return replace(self._reading, address=address, origins=origins or self._reading.origins, entries=entries)

    def _origins(self, manifest: Manifest) -> tuple[Followed, ...] | None:
        """What a version calls the columns of the stream; None if it has them as they are."""
        reading, version = self._reading, manifest.version
        if version >= reading.known or manifest.schema == reading.fields:
            return None
        return self._lineage.origins(version)

    def _effect(self, manifest: Manifest) -> _Effect:
        version, fragments = manifest.version, manifest.fragments()
        transaction = self._log.transaction(manifest)
        if transaction is None:
            operation = "an operation that is not known any more"
            return _Effect(version, operation, fragments if version == 1 else None, "change")
        operation = transaction.operation
        if version == 1 or operation == "Clone":
            return _Effect(version, operation, fragments, "change")
        if operation in _REARRANGED:
            return _Effect(version, operation, [], "change")
        if operation == "Append":
            return _Effect(version, operation, fragments[len(fragments) - len(transaction.fragments) :], "change")
        if operation not in _TOUCHED:
            return _Effect(version, operation, None, "change")
        told = transaction.decoded().fields()
        # A row that is updated leaves its place, or gets a new file: whoever does neither only inserts.
        touches = any(told[name] for name in _TOUCHED[operation])
        new = len(told["new_fragments"]) if operation == "Update" else 0
        only_deletes = operation == "Delete" or not (new or told["fields_modified"])
        added = None if touches else fragments[len(fragments) - new :]
        return _Effect(version, operation, added, "delete" if only_deletes else "change")

    def _before(self, version: int, operation: str) -> Manifest:
        try:
            return self._log.open(version - 1)[0]
        except NotFoundError:
            raise NotFoundError(
                f"version {version - 1} of {self.uri} was cleaned up, without which nobody can tell the rows that "
                f"version {version} ({operation}) changed; {START_ANEW}",
                uri=self.uri,
                version=version - 1,
            ) from None

    def _manifest(self, version: int) -> Manifest:
        try:
            return self._log.open(version)[0]
        except NotFoundError:
            raise cleaned_up(version, self.uri) from None


def _gone(before: Fragment, after: Fragment | None) -> int:
    """How many rows a fragment has lost, at most."""
    if before.num_rows is None or (after is not None and after.num_rows is None):
        # An old writer did not note how many are deleted.
        return before.physical_rows
    if after is None:
        return before.physical_rows - before.num_deletions
    return max(after.num_deletions - before.num_deletions, 0)


def _size(fragment: Fragment) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)
