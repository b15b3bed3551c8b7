"""Log entries: their paths, their actions, and the newest version by the names in the log.

Spec: "Delta Log Entries", "Commit Provenance Information".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..._native.store import Store
from ...exceptions import CorruptFileError

LOG = "_delta_log/"
NO_TABLE = -1
"""The version of a table that is not there yet: its first entry makes version 0."""
# To the end: a name that goes on, as that of a put at work does (`#1`), is that of no version.
_VERSION = re.compile(r"^_delta_log/(\d{20})\.(?:json|checkpoint\.(?:[^/]*\.)?(?:parquet|json))\Z")


def commit_path(version: int) -> str:
    """The path of the entry that made a version.

    Example:
        >>> from esker.delta.log.entries import commit_path
        >>> commit_path(3)
        '_delta_log/00000000000000000003.json'
    """
    return f"{LOG}{version:020}.json"


def json_lines(data: bytes) -> Iterator[tuple[int, Any]]:
    """The values of a file that has one a line, with the numbers of the lines. Blank lines are none.

    Lines end at line feeds and nowhere else: what other characters `str.splitlines` splits at may stand in a value.

    Raises:
        ValueError: A line is no JSON.

    Example:
        >>> from esker.delta.log.entries import json_lines
        >>> list(json_lines('"a\u2028b"\\n\\n"c"'.encode()))
        [(1, 'a\\u2028b'), (3, 'c')]
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line.decode())
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from error


def read_actions(store: Store, version: int) -> Iterator[tuple[str, Any]]:
    """The actions of one commit, by name.

    Raises:
        NotFoundError: The commit is not there (any more).
        CorruptFileError: A line is no JSON object.
    """
    path = commit_path(version)
    data = store.get(path)
    try:
        for number, action in json_lines(data):
            if not isinstance(action, dict):
                raise ValueError(f"line {number}: a {type(action).__name__}")
            # Some writers spell the actions that a line does not have as null.
            yield from ((name, value) for name, value in action.items() if value is not None)
    except ValueError as error:
        raise CorruptFileError(
            f"corrupt {path}: version {version}: expected an action in every line, found: {error}",
            path=path,
            version=version,
        ) from error


def commit_info(store: Store, version: int) -> dict[str, Any]:
    """The `commitInfo` of a version; empty if its writer wrote none.

    Example:
        `commit_info(store, 0)["operation"]`
    """
    for name, value in read_actions(store, version):
        if name == "commitInfo":
            return value if isinstance(value, dict) else {}
    return {}


def vector_id(vector: Mapping[str, Any] | None) -> str:
    """What tells a deletion vector from others of the same file: the protocol's `uniqueId`; empty for none.

    Example:
        >>> from esker.delta.log.entries import vector_id
        >>> vector_id({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4})
        'uab^-aqEH.-t@S}K{vb[*k^@4'
        >>> vector_id(None)
        ''
    """
    if vector is None:
        return ""
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def named_versions(store: Store) -> set[int]:
    """The versions of which the log has an entry or a checkpoint.

    Example:
        >>> from esker._native.store import Store
        >>> from esker.delta.log.entries import named_versions
        >>> named_versions(Store("memory://no-table-here"))
        set()
    """
    return {int(match.group(1)) for path in store.list_paths(LOG) if (match := _VERSION.match(path)) is not None}


def newest_version(store: Store) -> int:
    """The newest version of a table by its log's names, -1 if there is none.

    Example:
        >>> from esker._native.store import Store
        >>> from esker.delta.log.entries import newest_version
        >>> newest_version(Store("memory://no-table-here"))
        -1
    """
    return max(named_versions(store), default=NO_TABLE)
