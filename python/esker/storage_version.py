"""File versions: their names, the default of new tables, and which ones a table may mix (docs/format.md)."""

from __future__ import annotations

from ._native import table as native
from .exceptions import InvalidArgumentError, UnsupportedError

DEFAULT_STORAGE_VERSION = "2.2"
"""The file version of new tables."""
WRITABLE_VERSIONS = ("0.1", "2.0", "2.1", "2.2")

_NAMES = {"legacy": "0.1", "0.1": "0.1", "2.0": "2.0", "2.1": "2.1", "2.2": "2.2", "stable": "2.2"}
_UNSTABLE = ("2.3", "next")


def file_version(name: str | None) -> str:
    """The file version of a name: "legacy" is "0.1", and "stable" is "2.2".

    Args:
        name: The name; None for `DEFAULT_STORAGE_VERSION`.

    Raises:
        InvalidArgumentError: There is no such version.
        UnsupportedError: This release does not write the version.

    Example:
        >>> from esker.storage_version import file_version
        >>> file_version("stable")
        '2.2'
    """
    if name is None:
        return DEFAULT_STORAGE_VERSION
    if name in _UNSTABLE:
        raise UnsupportedError(
            f"data_storage_version {name!r} is not stable yet: later releases may not read its files; use '2.2'",
            file_version="2.3",
        )
    if name not in _NAMES:
        raise InvalidArgumentError(
            f"unknown data_storage_version: expected one of {sorted(WRITABLE_VERSIONS)}, found {name!r}"
        )
    return _writable(_NAMES[name], f"data_storage_version {name!r}")


def storage_version(requested: str | None, base: native.Manifest | None, mode: str) -> str:
    """The file version to write.

    A table may mix files of version 2.0 and later, but not files of 0.1 with others.

    Args:
        requested: The version that the caller asked for; None keeps the table's, or means `DEFAULT_STORAGE_VERSION`.
        base: The table's manifest, if there is a table.
        mode: The mode of the write: "create", "append" or "overwrite".

    Raises:
        InvalidArgumentError: There is no such version.
        UnsupportedError: This release does not write the version, or it cannot be mixed with the table's.

    Example:
        `storage_version(None, manifest, "append")`
    """
    if base is None or requested is not None:
        version = file_version(requested)
    else:
        held = base.storage_version_to_write
        version = _writable(held, f"the table's file version {held}")
    if base is not None and mode == "append" and not may_stand_together(version, base.storage_version_to_write):
        raise UnsupportedError(
            f"an append of file version {version} to a table of {base.data_storage_version}: files of 0.1 and later "
            "ones cannot stand in one table; leave data_storage_version out, or overwrite the table",
            file_version=version,
        )
    return version


def may_stand_together(left: str, right: str) -> bool:
    """Whether one table may hold files of both versions.

    Example:
        >>> from esker.storage_version import may_stand_together
        >>> may_stand_together("2.0", "2.2"), may_stand_together("0.1", "2.0")
        (True, False)
    """
    return (left == "0.1") == (right == "0.1")


def version_of_numbers(major: int, minor: int) -> str:
    """The file version for the two numbers in a manifest.

    Example:
        >>> from esker.storage_version import version_of_numbers
        >>> version_of_numbers(0, 3), version_of_numbers(0, 2), version_of_numbers(2, 1)
        ('2.0', '0.1', '2.1')
    """
    if major == 0:
        return "2.0" if minor == 3 else "0.1"
    return f"{major}.{minor}"


def numbers_of_version(version: str) -> tuple[int, int]:
    """The two numbers of a file version in a manifest.

    Example:
        >>> from esker.storage_version import numbers_of_version
        >>> numbers_of_version("0.1"), numbers_of_version("2.0")
        ((0, 2), (2, 0))
    """
    if version == "0.1":
        return 0, 2
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def _writable(version: str, what: str) -> str:
    if version not in WRITABLE_VERSIONS:
        raise UnsupportedError(
            f"{what} cannot be written by this release, expected one of {sorted(WRITABLE_VERSIONS)}",
            file_version=version,
        )
    return version
