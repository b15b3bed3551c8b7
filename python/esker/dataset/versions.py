"""The methods of `LanceDataset` that list versions and transactions, and move between versions."""

from __future__ import annotations

from typing import Self

from ..lance.change.run import commit_change
from ..lance.handle import DatasetHandle
from ..lance.history.versions import (
    Version,
    describe,
    find_transaction,
    read_transaction,
    versions,
)
from ..lance.operation import LanceOperation, Transaction
from ..lance.refs.places import Reference, place_of, table_at
from ..lance.scan.options import integer


class VersionsApi(DatasetHandle):
    """The methods of `LanceDataset` that list versions and transactions, and move between versions."""

    @property
    def version(self) -> int:
        """The version that this dataset shows."""
        return self._table.number

    @property
    def latest_version(self) -> int:
        """The newest version of the table."""
        return self._table.log.newest().latest

    def versions(self) -> list[Version]:
        """All versions, oldest first, each with its time (local, naive, as in pylance) and its counts."""
        return versions(self._table)

    def get_version(self) -> Version:
        """The version that this dataset shows, with its time and its counts. Reads nothing."""
        return describe(self._table.manifest)

    def version_refs(self) -> list[dict[str, int]]:
        """The numbers of all versions, oldest first, from one listing."""
        return [{"version": number} for number in self._table.log.listing().versions]

    def checkout_version(self, version: Reference) -> Self:
        """The table at another version.

        Args:
            version: The number of a version on the branch of this dataset, the name of a tag, or a tuple (branch,
                number), where no branch and "main" are the main line and no number is the newest version.

        Raises:
            NotFoundError: There is no such version, tag or branch.
            InvalidArgumentError: It is none of these.

        Example:
            `dataset.checkout_version(("experiment", None))`
        """
        return self._at(table_at(self._table, place_of(self._table, version)))

    def checkout_latest(self) -> None:
        """Moves this dataset to the newest version of its branch."""
        self._move_to(self._table.newest())

    def restore(self) -> None:
        """Commits the contents of the version that this dataset shows as the newest version, and moves to it.

        The config is restored with the contents, except for the numbers of applications' commits: a number that was
        committed stays committed (see `application` of `LanceDataset.commit`). A restore by pylance forgets them.

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
        """The transaction that made a version, None if there is none to be found.

        Raises:
            NotFoundError: There is no such version.
        """
        return read_transaction(self._table, version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """The transactions of the newest versions up to this one, newest first.

        Args:
            recent_transactions: How many.
        """
        count = integer("recent_transactions", recent_transactions, least=0)
        numbers = [number for number in self._table.log.listing().versions if number <= self.version]
        return [self.read_transaction(number) for number in numbers[::-1][:count]]

    def find_transaction(self, key: str, value: str, *, after: int = 0) -> int | None:
        """Finds the version whose transaction has a property, for example to learn whether a commit with a lost reply
        has landed.

        Args:
            key: The property's name; "uuid" is the transaction's id, which is in `CommitStateUnknownError`.
            value: The property's value.
            after: Searches only later versions than this, newest first.

        Returns:
            The newest such version, None if there is none.
        """
        return find_transaction(self._table, key, value, after)
