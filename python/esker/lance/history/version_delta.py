"""`DatasetDelta`: what changed between two versions of a table, as transactions and as rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..._native import scan as native
from ..._native.table import Manifest
from ...arrow.batches import read
from ...exceptions import InvalidArgumentError, NotFoundError
from ..operation import Transaction
from ..scan.options import ScanOptions
from ..scan.scan import Scan
from ..system_columns import CREATED_AT_VERSION, LAST_UPDATED_AT_VERSION, ROW_ID
from ..version import TableVersion
from .versions import read_transaction


@dataclass(frozen=True)
class DatasetDelta:
    """What changed after version `begin_version`, up to `end_version`. Made by `LanceDataset.delta`.

    The rows are read from the dataset that it was made from, with `_rowid` and the versions that inserted and last
    updated them; a row that was inserted and deleted again is not among them. Only tables with stable row ids record
    these versions: in other tables all rows count as inserted by version 1.
    """

    table: TableVersion
    begin_version: int
    end_version: int

    @classmethod
    def between(
        cls, table: TableVersion, compared_against: int | None, begin_version: int | None, end_version: int | None
    ) -> DatasetDelta:
        """The delta that the arguments of `LanceDataset.delta` mean.

        Raises:
            InvalidArgumentError: Neither one version nor a range is given, or both.
        """
        if compared_against is not None:
            if begin_version is not None or end_version is not None:
                raise InvalidArgumentError(
                    "expected compared_against or begin_version and end_version, found both; leave one out"
                )
            first, last = sorted((compared_against, table.number))
            return cls(table, first, last)
        if begin_version is None or end_version is None:
            raise InvalidArgumentError(
                "expected compared_against, or both begin_version and end_version, "
                f"found begin_version={begin_version}, end_version={end_version}"
            )
        return cls(table, begin_version, end_version)

    def list_transactions(self) -> list[Transaction]:
        """The transactions of the versions, oldest first. Versions without a transaction are left out.

        Raises:
            NotFoundError: One of the versions was cleaned up, or does not exist yet.
        """
        found = []
        for version in range(self.begin_version + 1, self.end_version + 1):
            try:
                found.append(read_transaction(self.table, version))
            except NotFoundError as error:
                raise NotFoundError(
                    f"version {version} of {self.table.uri} is not there: it may have been cleaned up; "
                    "compare with a later version",
                    uri=self.table.uri,
                    version=version,
                ) from error
        return [transaction for transaction in found if transaction is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """The rows that were inserted, as they are now."""
        return self._rows(
            f"{CREATED_AT_VERSION} > {self.begin_version} AND {CREATED_AT_VERSION} <= {self.end_version}", created=True
        )

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """The rows that existed at the beginning and were updated since, as they are now."""
        return self._rows(
            f"{CREATED_AT_VERSION} <= {self.begin_version} AND {LAST_UPDATED_AT_VERSION} > {self.begin_version} "
            f"AND {LAST_UPDATED_AT_VERSION} <= {self.end_version}",
            created=False,
        )

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """The ids (`_rowid`) of the rows that existed at the beginning and no longer exist at the end.

        Raises:
            InvalidArgumentError: The table has no stable row ids, or the range ends before it begins.
            NotFoundError: One of the two versions was cleaned up.
        """
        if self.begin_version > self.end_version:
            raise InvalidArgumentError(
                f"expected begin_version <= end_version, found {self.begin_version} and {self.end_version}"
            )
        if self.begin_version == 0:
            empty = pa.schema([pa.field(ROW_ID, pa.uint64(), nullable=False)])
            return pa.RecordBatchReader.from_batches(empty, [])
        begin, end = (self._manifest(version) for version in (self.begin_version, self.end_version))
        stream = native.deleted_row_ids(self.table.store, begin, end)
        return pa.RecordBatchReader.from_batches(pa.schema(stream), read(stream))

    def _manifest(self, version: int) -> Manifest:
        return self.table.manifest if version == self.table.number else self.table.log.open(version)[0]

    def _rows(self, filter: str, *, created: bool) -> pa.RecordBatchReader:
        # The manifest tells which fragments have such rows: files of other fragments are not opened.
        first, last = max(self.begin_version, 0), max(self.end_version, 0)
        wanted = set(self.table.manifest.fragments_of_versions(first, last, created=created))
        columns = [*self.table.schema.names, ROW_ID, CREATED_AT_VERSION, LAST_UPDATED_AT_VERSION]
        options = ScanOptions(
            columns=list(dict.fromkeys(columns)),
            filter=filter,
            fragment_ids=tuple(fragment.id for fragment in self.table.fragments if fragment.id in wanted),
            json_text=True,
        )
        return Scan(self.table, options).to_reader()
