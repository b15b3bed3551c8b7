"""The other versions of a table: which there are, when and how each was made, and moving between them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict, cast

from .._native.table import Manifest
from ..exceptions import InvalidArgumentError, NotFoundError
from ..lance.change.run import commit_change
from ..lance.log import LanceLog
from ..lance.operation import LanceOperation, Transaction
from ..lance.write.staging import refuse_options

if TYPE_CHECKING:
    from . import LanceDataset


class Version(TypedDict):
    """One version of a table, as `LanceDataset.versions` lists it."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionsApi:
    """What `LanceDataset` knows of versions."""

    _log: LanceLog
    _manifest: Manifest

    def _with_manifest(self, manifest: Manifest) -> LanceDataset:
        raise NotImplementedError

    def _move_to(self, manifest: Manifest) -> None:
        raise NotImplementedError

    @property
    def version(self) -> int:
        """The version that this dataset shows."""
        return self._manifest.version

    @property
    def latest_version(self) -> int:
        """The newest version there is."""
        return self._log.newest().latest

    def versions(self) -> list[Version]:
        """All versions, oldest first, with the time (local, naive, as in pylance) and the counts of each."""
        listing = self._log.listing()
        return [_describe(self._log.manifest(number, listing.scheme)) for number in listing.versions]

    def get_version(self) -> Version:
        """The version that this dataset shows, with its time and its counts. Reads nothing."""
        return _describe(self._manifest)

    def version_refs(self) -> list[dict[str, int]]:
        """The numbers of all versions, oldest first, from one listing."""
        return [{"version": number} for number in self._log.listing().versions]

    def checkout_version(self, version: int) -> LanceDataset:
        """The table at another version.

        Raises:
            NotFoundError: No such version.
            UnsupportedError: A tag or a branch.
        """
        return self._with_manifest(self._log.open(check_version(version))[0])

    def checkout_latest(self) -> None:
        """Moves this dataset to the newest version."""
        self._move_to(self._log.open()[0])

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
        commit_change(cast("LanceDataset", self), lambda _: operation, base=self._log.open()[0])

    def read_transaction(self, version: int) -> Transaction | None:
        """The transaction that made a version, None if its writer left none.

        Raises:
            NotFoundError: No such version.
        """
        found = self._log.transaction(self._log.open(version)[0])
        return Transaction.from_native(found) if found else None

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """The transactions of the newest versions up to this one, newest first."""
        numbers = [number for number in self._log.listing().versions if number <= self.version]
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
        listing = self._log.listing()
        for number in reversed(listing.versions):
            if number <= after:
                break
            found = self._log.transaction(self._log.manifest(number, listing.scheme))
            if found is not None and value == (found.uuid if key == "uuid" else found.properties.get(key)):
                return number
        return None


def check_version(version: object) -> int:
    """The number of a version.

    Raises:
        UnsupportedError: The name of a tag or a branch.
    """
    if not isinstance(version, int) or isinstance(version, bool):
        refuse_options(**{f"version={version!r} (tags and branches)": True})
        raise InvalidArgumentError(f"expected a version as int, found {version!r}")
    return version


def version_asof(dataset: LanceDataset, asof: datetime | str) -> int:
    """The latest version that was committed before a time.

    Args:
        dataset: The table.
        asof: A time, or its text in ISO 8601; local if it names no zone.

    Raises:
        InvalidArgumentError: The text is no time.
        NotFoundError: The table is younger.

    Example:
        `version_asof(dataset, "2026-01-31 12:00")`
    """
    try:
        moment = datetime.fromisoformat(asof) if isinstance(asof, str) else asof
    except ValueError as error:
        raise InvalidArgumentError(f"expected asof as a time in ISO 8601, found {asof!r}") from error
    if moment.tzinfo is not None:
        moment = moment.astimezone().replace(tzinfo=None)
    earlier = [version["version"] for version in dataset.versions() if version["timestamp"] < moment]
    if not earlier:
        raise NotFoundError(f"{moment} is earlier than the first version of {dataset.uri}", uri=dataset.uri)
    return max(earlier)


def _describe(manifest: Manifest) -> Version:
    seconds, nanos = divmod(manifest.timestamp_ns, 10**9)
    return {
        "version": manifest.version,
        "timestamp": datetime.fromtimestamp(seconds) + timedelta(microseconds=nanos // 1000),
        "metadata": {name: str(count) for name, count in manifest.summary().items()},
    }
