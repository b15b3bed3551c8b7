"""The other versions of a dataset."""

from __future__ import annotations

from typing import Self

from ..lance.change.run import commit_change
from ..lance.handle import DatasetHandle
from ..lance.history.versions import (
    Version,
    check_version,
    describe,
    find_transaction,
    read_transaction,
    versions,
)
from ..lance.operation import LanceOperation, Transaction


class VersionsApi(DatasetHandle):
    """The methods of `LanceDataset` that tell of versions, and move between them."""

    @property
    def version(self) -> int:
        """The version that this dataset shows."""
        return self._table.number

    @property
    def latest_version(self) -> int:
        """The newest version there is."""
        return self._table.log.newest().latest

    def versions(self) -> list[Version]:
        """All versions, oldest first, with the time (local, naive, as in pylance) and the counts of each."""
        return versions(self._table)

    def get_version(self) -> Version:
        """The version that this dataset shows, with its time and its counts. Reads nothing."""
        return describe(self._table.manifest)

    def version_refs(self) -> list[dict[str, int]]:
        """The numbers of all versions, oldest first, from one listing."""
        return [{"version": number} for number in self._table.log.listing().versions]

    def checkout_version(self, version: int) -> Self:
        """The table at another version.

        Raises:
            NotFoundError: No such version.
            UnsupportedError: A tag or a branch.
        """
        return self._at(self._table.at(self._table.log.open(check_version(version))[0]))

    def checkout_latest(self) -> None:
        """Moves this dataset to the newest version."""
        self._move_to(self._table.newest())

    def restore(self) -> None:
        """Makes the contents of the version that this dataset shows the newest version, and moves to it.

        Settings come back with the contents. The numbers of applications' commits do not: what was committed once stays
        so (see `application` of `LanceDataset.commit`). A restore by pylance forgets them.

        Example:
            >>> import esker, pyarrow as pa
            >>> _ = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-restore")
            >>> dataset = esker.write_dataset(pa.table({"id": [2]}), "memory://doc-restore", mode="append")
            >>> old = dataset.checkout_version(1)
            >>> old.restore()
            >>> old.version, old.to_table()["id"].to_pylist()
            (3, [1])
        """
        operation = LanceOperation.Restore(self.version)
        self._move_to(commit_change(self._table.newest(), lambda _: operation))

    def read_transaction(self, version: int) -> Transaction | None:
        """The transaction that made a version, None if its writer left none.

        Raises:
            NotFoundError: No such version.
        """
        return read_transaction(self._table, version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """The transactions of the newest versions up to this one, newest first."""
        numbers = [number for number in self._table.log.listing().versions if number <= self.version]
        return [self.read_transaction(number) for number in numbers[::-1][:recent_transactions]]

    def find_transaction(self, key: str, value: str, *, after: int = 0) -> int | None:
        """The version whose transaction carries a property: whether a commit has landed whose reply was lost.

        Args:
            key: The property's name; "uuid" is the transaction's own id, which `CommitStateUnknownError` tells.
            value: Its value, which only the commit in question has.
            after: Looks at later versions only, newest first.

        Returns:
            The version, None if there is none.
        """
        return find_transaction(self._table, key, value, after)
