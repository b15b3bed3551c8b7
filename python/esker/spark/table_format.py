"""Of which format a table is: what is for one of them is imported where a table has it, by each process of Spark."""

from __future__ import annotations

from esker._native.store import Store
from esker.commit import resolve
from esker.exceptions import AlreadyExistsError
from esker.spark.options import TableAddress, WriteOptions
from esker.store.branch_places import check_no_branch_belongs

__all__ = ["has_lance", "is_delta", "writes_delta"]


def is_delta(address: TableAddress) -> bool:
    """Whether a Delta table is there: something lies in its `_delta_log`."""
    return bool(resolve(address.uri, storage_options=address.storage_options).list_paths("_delta_log/"))


def has_lance(store: Store) -> bool:
    """Whether a Lance table is there: something lies in its `_versions`.

    Example:
        >>> from esker.commit import resolve
        >>> from esker.spark.table_format import has_lance
        >>> has_lance(resolve("memory://doc-no-lance"))
        False
    """
    return bool(store.list_paths("_versions/"))


def writes_delta(address: TableAddress, options: WriteOptions) -> bool:
    """Whether a write goes to a Delta table: one is there, or none of another kind and one is asked for.

    Raises:
        AlreadyExistsError: A Delta table is asked for where a table of another kind is.
        NotFoundError: One is asked for where a branch of a Lance table belongs.

    Example:
        `writes_delta(address, WriteOptions.parse({"tableFormat": "delta"}))`
    """
    if is_delta(address):
        if options.table_format == "lance":
            raise AlreadyExistsError(
                f"expected a place without a table for tableFormat=lance, found a Delta table at {address.uri}; "
                "give another path, or leave the option out",
                uri=address.uri,
            )
        return True
    if options.table_format != "delta":
        return False
    if has_lance(resolve(address.uri, storage_options=address.storage_options)):
        raise AlreadyExistsError(
            f"expected a place without a table for tableFormat=delta, found a Lance table at {address.uri}; "
            "give another path",
            uri=address.uri,
        )
    check_no_branch_belongs(address.uri, storage_options=address.storage_options)
    return True
