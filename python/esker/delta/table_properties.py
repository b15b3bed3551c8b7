"""Table properties: which exist, which values they take, and which changes of a value are supported.

Spec: "Table Properties", "Protocol Evolution", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError
from .definition.constraints import CONSTRAINT
from .definition.durations import milliseconds

PROPERTY = "delta."
"""How names of the protocol's properties start."""
_MODE = "delta.columnMapping.mode"


def _switch(value: str) -> bool:
    return value.lower() in ("true", "false")


def _duration(value: str) -> bool:
    try:
        return milliseconds(value) >= 0
    except InvalidArgumentError:
        return False


def _whole(least: int) -> Callable[[str], bool]:
    return lambda value: bool(re.fullmatch(r"-?\d+", value)) and int(value) >= least


def _one_of(*known: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in {name.lower() for name in known}


_ANY: tuple[str, Callable[[str], bool]] = ("a text", lambda value: True)
_SWITCH = ("true or false", _switch)
_DURATION = ("a duration such as 'interval 7 days'", _duration)
_KNOWN: dict[str, tuple[str, Callable[[str], bool]]] = {
    "delta.appendOnly": _SWITCH,
    "delta.autoOptimize": _SWITCH,
    "delta.autoOptimize.autoCompact": _ANY,
    "delta.autoOptimize.optimizeWrite": _SWITCH,
    "delta.castIcebergTimeType": _SWITCH,
    "delta.checkpoint.writeStatsAsJson": _SWITCH,
    "delta.checkpoint.writeStatsAsStruct": _SWITCH,
    "delta.checkpointInterval": ("a number from 1 on", _whole(1)),
    "delta.checkpointPolicy": ("classic or v2", _one_of("classic", "v2")),
    "delta.checkpointRetentionDuration": _DURATION,
    "delta.columnMapping.maxColumnId": ("a number from 0 on", _whole(0)),
    "delta.columnMapping.mode": ("none, name or id", _one_of("none", "name", "id")),
    "delta.compatibility.symlinkFormatManifest.enabled": _SWITCH,
    "delta.dataSkippingNumIndexedCols": ("a number from -1 on", _whole(-1)),
    "delta.dataSkippingStatsColumns": _ANY,
    "delta.deletedFileRetentionDuration": _DURATION,
    "delta.enableChangeDataFeed": _SWITCH,
    "delta.enableDeletionVectors": _SWITCH,
    "delta.enableExpiredLogCleanup": _SWITCH,
    "delta.enableFullRetentionRollback": _SWITCH,
    "delta.enableIcebergCompatV1": _SWITCH,
    "delta.enableIcebergCompatV2": _SWITCH,
    "delta.enableIcebergCompatV3": _SWITCH,
    "delta.enableInCommitTimestamps": _SWITCH,
    "delta.enableRowTracking": _SWITCH,
    "delta.enableTypeWidening": _SWITCH,
    "delta.ignoreProtocolDefaults": _SWITCH,
    "delta.inCommitTimestampEnablementTimestamp": ("a number from 0 on", _whole(0)),
    "delta.inCommitTimestampEnablementVersion": ("a number from 0 on", _whole(0)),
    "delta.isolationLevel": (
        "Serializable, WriteSerializable or SnapshotIsolation",
        _one_of("Serializable", "WriteSerializable", "SnapshotIsolation"),
    ),
    "delta.logRetentionDuration": _DURATION,
    "delta.minReaderVersion": ("a number from 1 to 3", lambda value: value in ("1", "2", "3")),
    "delta.minWriterVersion": ("a number from 1 to 7", lambda value: value in tuple("1234567")),
    "delta.parquet.compression.codec": _ANY,
    "delta.randomizeFilePrefixes": _SWITCH,
    "delta.randomPrefixLength": ("a number from 1 on", _whole(1)),
    "delta.requireCheckpointProtectionBeforeVersion": ("a number from 0 on", _whole(0)),
    "delta.rowTrackingSuspended": _SWITCH,
    "delta.sampleRetentionDuration": _DURATION,
    "delta.setTransactionRetentionDuration": _DURATION,
    "delta.targetFileSize": ("a number of bytes from 1 on", _whole(1)),
    "delta.tuneFileSizesForRewrites": _SWITCH,
    "delta.universalFormat.enabledFormats": _ANY,
}
"""The protocol's properties, those of Spark's Delta among them: what their values are, and whether a text is one."""


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
    raise InvalidArgumentError(f"no property of the protocol is called {name!r}, expected one; look at its spelling")


def check_properties(properties: Mapping[str, Any], *, strict: bool) -> None:
    """Raises for names of properties that would mean nothing to anybody, and for values that are none.

    Args:
        properties: By their names; None for those that are left out.
        strict: Whether names under `delta.` that the protocol does not know are refused.

    Raises:
        InvalidArgumentError: It names the property, and what its value may be.
        InvalidTypeError: A value is no text.

    Example:
        >>> from esker.delta.table_properties import check_properties
        >>> check_properties({"delta.appendOnly": "true", "mine": "x"}, strict=True)
    """
    for key, value in properties.items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise InvalidTypeError(f"expected {key} as a text, found {value!r}")
        if key in _KNOWN:
            wanted, fits = _KNOWN[key]
            if not fits(value):
                raise InvalidArgumentError(f"expected {key} as {wanted}, found {value!r}")
        elif strict and key.startswith(PROPERTY) and not key.startswith((CONSTRAINT, "delta.feature.")):
            near = difflib.get_close_matches(key.lower(), [known.lower() for known in _KNOWN], 1)
            meant = next((known for known in _KNOWN if near and known.lower() == near[0]), None)
            hint = f" (did you mean {meant}?)" if meant is not None else ""
            raise InvalidArgumentError(
                f"expected a property of the protocol, found {key!r}; look at its spelling{hint}, or give it without "
                "'delta.'"
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
    old, new = before.get(_MODE, "none").lower(), given.get(_MODE, before.get(_MODE, "none")).lower()
    if old != new and (old, new) != ("none", "name"):
        raise UnsupportedError(f"{_MODE} of a table that is there goes from none to name only, found {old} to {new}")
