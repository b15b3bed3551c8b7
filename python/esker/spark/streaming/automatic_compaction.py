"""Compaction after some batches of a stream, so that small batches do not leave a table of small files."""

from __future__ import annotations

import warnings

import esker
from esker.exceptions import EskerError
from esker.spark.options import TableAddress

__all__ = ["compact"]


def compact(address: TableAddress) -> None:
    """Compacts a Lance table. What fails is told and leaves the table as it is: the batch itself is committed.

    Args:
        address: The table.

    Example:
        `compact(address)`
    """
    try:
        dataset = esker.dataset(address.uri, storage_options=dict(address.storage_options) or None)
        dataset.optimize.compact_files()
    except (EskerError, OSError) as error:
        warnings.warn(f"the table at {address.uri} was not compacted: {error}", stacklevel=2)
