"""Properties of tables: which there are, what values they have, and which of them a table can go to.

Spec: "Table Properties", "Protocol Evolution", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exceptions import InvalidArgumentError, UnsupportedError
from .constraints import CONSTRAINT

PROPERTY = "delta."
"""How names of the protocol's properties start."""
_MODE = "delta.columnMapping.mode"
_VERSIONS = {"delta.minReaderVersion": 3, "delta.minWriterVersion": 7}
_SWITCHES = frozenset(
    {
        "delta.appendOnly",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
        "delta.enableChangeDataFeed",
        "delta.enableDeletionVectors",
        "delta.enableExpiredLogCleanup",
        "delta.enableInCommitTimestamps",
        "delta.enableRowTracking",
        "delta.enableTypeWidening",
    }
)
_KNOWN = frozenset(
    {
        "delta.appendOnly",
        "delta.autoOptimize.autoCompact",
        "delta.autoOptimize.optimizeWrite",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
        "delta.checkpointInterval",
        "delta.checkpointPolicy",
        "delta.columnMapping.maxColumnId",
        "delta.columnMapping.mode",
        "delta.compatibility.symlinkFormatManifest.enabled",
        "delta.dataSkippingNumIndexedCols",
        "delta.dataSkippingStatsColumns",
        "delta.deletedFileRetentionDuration",
        "delta.enableChangeDataFeed",
        "delta.enableDeletionVectors",
        "delta.enableExpiredLogCleanup",
        "delta.enableInCommitTimestamps",
        "delta.enableRowTracking",
        "delta.enableTypeWidening",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.isolationLevel",
        "delta.logRetentionDuration",
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.parquet.compression.codec",
        "delta.randomizeFilePrefixes",
        "delta.randomPrefixLength",
        "delta.sampleRetentionDuration",
        "delta.setTransactionRetentionDuration",
        "delta.targetFileSize",
        "delta.tuneFileSizesForRewrites",
    }
)


def property_name(name: str) -> str:
    """The protocol's spelling of a property that is given in any case.

    Raises:
        InvalidArgumentError: There is none of that name.

    Example:
        >>> from esker.delta.table_properties import property_name
        >>> property_name("delta.appendonly")
        'delta.appendOnly'
    """
    for known in _KNOWN:
        if known.lower() == name.lower():
            return known
    raise InvalidArgumentError(f"expected a property of the protocol, found {name!r}; look at its spelling")


def check_properties(properties: dict[str, Any], *, strict: bool) -> None:
    """Raises for names of properties that would mean nothing to anybody.

    Example:
        >>> from esker.delta.table_properties import check_properties
        >>> check_properties({"delta.appendOnly": "true", "mine": "x"}, strict=True)
    """
    for key, value in properties.items():
        if key in _SWITCHES and str(value).lower() not in ("true", "false"):
            raise InvalidArgumentError(f"expected {key} as true or false, found {value!r}")
        known = key in _KNOWN or key.startswith((CONSTRAINT, "delta.feature."))
        if strict and key.startswith("delta.") and not known:
            raise InvalidArgumentError(
                f"expected a property of the protocol, found {key!r}; look at its spelling, or give it without 'delta.'"
            )


def check_changes(before: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises for values that a table that is there cannot go to.

    Args:
        before: Its properties.
        given: Those that shall change.

    Example:
        >>> from esker.delta.table_properties import check_changes
        >>> check_changes({}, {"delta.columnMapping.mode": "name"})
    """
    for key, most in _VERSIONS.items():
        text = given.get(key)
        if text is not None and not (text.isdigit() and 1 <= int(text) <= most):
            raise InvalidArgumentError(f"expected {key} as a number from 1 to {most}, found {text!r}")
    old, new = before.get(_MODE, "none").lower(), given.get(_MODE, before.get(_MODE, "none")).lower()
    if new not in ("none", "name", "id"):
        raise InvalidArgumentError(f"expected {_MODE} as none, name or id, found {new!r}")
    if old != new and (old, new) != ("none", "name"):
        raise UnsupportedError(f"{_MODE} of a table that is there goes from none to name only, found {old} to {new}")
