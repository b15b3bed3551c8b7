"""Tables that a Python worker keeps open: Spark uses a worker for many tasks, and each of them reads the same version.

A table is kept under what tells its version from any other, never by its path alone: a table that was dropped and made
anew at the same path is another one.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from esker.exceptions import CommitConflictError, NotFoundError
from esker.lance.log import entry_of, transaction_uuid
from esker.spark.options import TableAddress
from esker.spark.table import PinnedTable

if TYPE_CHECKING:
    from esker.dataset import LanceDataset

__all__ = ["check_entry", "pinned_table", "worker_dataset"]

_MOST = 4
_OPEN: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

Table = TypeVar("Table")


def check_entry(uri: str, version: int | None, expected: str, found: str) -> None:
    """Checks that a version is that of the table at which the driver has looked.

    Args:
        uri: The table.
        version: The version; None for all of them, of a change data feed.
        expected: What told it from another one with its number.
        found: What tells the one that is there.

    Raises:
        CommitConflictError: The table was replaced by another one since.

    Example:
        >>> from esker.spark.worker_tables import check_entry
        >>> check_entry("t.lance", 3, "a at 1", "a at 1")
    """
    if found != expected:
        what, other = ("", "one") if version is None else (f"version {version} of ", "one of that number")
        raise CommitConflictError(
            f"expected {what}{uri} as the driver has read it ({expected}), found another {other} ({found}): the table "
            "was replaced meanwhile; load the DataFrame again",
            uri=uri,
            version=version,
            retryable=False,
        )


def pinned_table(address: TableAddress, version: int, entry: str | None) -> PinnedTable:
    """A version of a table that this process has open, or opens now.

    Args:
        address: The table.
        version: The version.
        entry: What tells it from another one with its number, as the driver has found it.

    Raises:
        NotFoundError: There is no such version any more.
        CommitConflictError: The table was replaced by another one since the driver has looked at it.
    """

    def opened() -> PinnedTable:
        found = PinnedTable(address, version)
        if entry is not None:
            check_entry(address.uri, version, entry, found.entry)
        return found

    return _kept(
        ("pinned", *_key(address.uri, version, address.storage_options), entry), opened, keeps=entry is not None
    )


def worker_dataset(
    uri: str | os.PathLike[str],
    version: int,
    *,
    transaction: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LanceDataset:
    """A Lance table for functions that Spark runs, opened once for each Python worker.

    Opening a table costs requests, and what was read of it is kept for the next rows: a function that looks rows up
    (`take`, `scanner`) and opens the table for each batch does both again and again.

    Args:
        uri: The table.
        version: The version: `esker.dataset(uri).version` on the driver, so that all workers read the same one.
        transaction: What made it, `dataset.read_transaction(dataset.version).uuid` on the driver: tells it from the
            version of that number of a table that was made anew at the place since. None for whichever is there.
        storage_options: Options of the store.

    Returns:
        The table. It is shared by all that runs in the worker; read it, and check no other version out.

    Raises:
        NotFoundError: There is no table, or no such version.
        CommitConflictError: Another transaction has made the version: the table was replaced by another one.

    Example:
        `rows = esker.spark.worker_dataset("t.lance", version).take([3, 1])`, in a function for `mapInArrow`
    """
    made = _open_dataset(os.fspath(uri), version, dict(storage_options or {}))
    if transaction is not None:
        name = entry_of(made._table.manifest).partition("@")[0]
        check_entry(os.fspath(uri), version, transaction, transaction_uuid(name) or name)
    return made


def _open_dataset(uri: str, version: int, options: dict[str, str]) -> LanceDataset:
    import esker

    key = ("dataset", *_key(uri, version, options))
    kept: tuple[LanceDataset, str, tuple[int, int | None]] | None = _OPEN.get(key)
    if kept is not None and _seen(kept[0], kept[1]) == kept[2]:
        _OPEN.move_to_end(key)
        return kept[0]
    _OPEN.pop(key, None)

    def opened() -> tuple[LanceDataset, str, tuple[int, int | None]]:
        dataset = esker.dataset(uri, version=version, storage_options=options or None)
        log = dataset._table.log
        path = log.path_of(version, log.newest().scheme)
        return dataset, path, _seen(dataset, path)

    return _kept(key, opened, keeps=True)[0]


def _seen(dataset: LanceDataset, path: str) -> tuple[int, int | None]:
    """The size and the time of a version's entry: those of another table differ."""
    try:
        meta = dataset._table.log.store.head(path)
    except NotFoundError:
        return -1, None
    return meta.size, meta.last_modified_us


def _key(uri: str, version: int, options: Mapping[str, str]) -> tuple[Any, ...]:
    return uri, version, tuple(sorted(options.items()))


def _kept(key: tuple[Any, ...], opened: Callable[[], Table], *, keeps: bool) -> Table:
    if not keeps:
        return opened()
    if key in _OPEN:
        _OPEN.move_to_end(key)
        kept: Table = _OPEN[key]
        return kept
    made = opened()
    _OPEN[key] = made
    while len(_OPEN) > _MOST:
        _OPEN.popitem(last=False)
    return made
