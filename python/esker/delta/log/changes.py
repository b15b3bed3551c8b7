"""What a log entry changes, as conflicts are judged by it: of an entry in the log, and of one that is to be put.

Spec: "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._native.delta import canonical_path
from ..._native.store import Store
from ...exceptions import CommitConflictError, CorruptFileError, NotFoundError
from .conflict import CommitActions
from .entries import commit_path, read_actions, vector_id


def read_change(store: Store, root: str, version: int) -> CommitActions:
    """The actions of a commit; `known` is false if its entry does not exist any more.

    Raises:
        CorruptFileError: The entry is not what an entry must be.
    """
    info: dict[str, Any] = {}
    single: dict[str, Any] = {}
    transactions: dict[str, int] = {}
    domains = set()
    files: dict[str, dict[str, Any]] = {"add": {}, "remove": {}}
    try:
        for name, value in read_actions(store, version):
            if name == "commitInfo":
                info = value if isinstance(value, dict) else {}
            elif name in ("protocol", "metaData"):
                single[name] = value
            elif name == "txn":
                transactions[value["appId"]] = value["version"]
            elif name == "domainMetadata":
                domains.add(value["domain"])
            elif name in files:
                files[name][canonical_path(root, value["path"])] = value
    except NotFoundError:
        return CommitActions(version, known=False)
    except (KeyError, TypeError) as error:
        path = commit_path(version)
        raise CorruptFileError(
            f"corrupt {path}: version {version}: expected an action with its fields, found none of {error}",
            path=path,
            version=version,
        ) from error
    return CommitActions(
        version,
        info,
        single.get("protocol"),
        single.get("metaData"),
        transactions,
        frozenset(domains),
        files["add"],
        files["remove"],
    )


def change_of(root: str, actions: Iterable[tuple[str, Mapping[str, Any]]], uri: str) -> CommitActions:
    """The actions of an entry that is to be put.

    Args:
        root: The root of the table, by which paths are told from one another.
        actions: `(name, fields)`.
        uri: The table, for messages.

    Raises:
        CommitConflictError: Two of them reconcile with each other.

    Example:
        `change_of("", [("add", {"path": "part-0.parquet"})], "events").adds`
    """
    single: dict[str, Any] = {}
    files: dict[str, dict[str, Any]] = {"add": {}, "remove": {}}
    transactions: dict[str, int] = {}
    domains = set()
    seen = set()
    for name, fields in actions:
        key: tuple[str, ...] = (name, "")
        if name in files:
            path = canonical_path(root, fields["path"])
            files[name][path] = fields
            # A file under another deletion vector is another one.
            key = ("file", f"{path} {vector}" if (vector := vector_id(fields.get("deletionVector"))) else path)
        elif name == "txn":
            transactions[fields["appId"]] = fields["version"]
            key = (name, fields["appId"])
        elif name == "domainMetadata":
            domains.add(fields["domain"])
            key = (name, fields["domain"])
        else:
            single[name] = fields
        if key in seen and name != "cdc":
            twice = " ".join(key[:2])
            raise CommitConflictError(
                f"expected actions of which no two reconcile, found two of {twice}; nothing was committed", uri=uri
            )
        seen.add(key)
    return CommitActions(
        protocol=single.get("protocol"),
        metadata=single.get("metaData"),
        transactions=transactions,
        domains=frozenset(domains),
        adds=files["add"],
        removes=files["remove"],
    )
