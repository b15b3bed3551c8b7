"""Drops a table: deletes it, and whatever else lies in its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from ..exceptions import InvalidArgumentError, IOFailedError, NotFoundError
from ..store.staging import flush
from .log import VERSIONS, LanceLog
from .refs.places import branch_names, uri_of

_AT_ONCE = 1000


def drop(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None, *, ignore_not_found: bool) -> None:
    """Deletes a table; see `LanceDataset.drop`.

    The newest manifest goes last: after a crash the table can be dropped again. The entries of an external manifest
    store go before it: without the manifest that they name they would be a table that does not open, nor can be made.
    """
    log = LanceLog.at(uri, storage_options=storage_options)
    if not log.store.list_first("", 1)[0]:
        if log.has_entries():
            # Whoever deleted the files did not come to the entries, or knew nothing of them.
            log.forget_entries()
            return
        if ignore_not_found:
            return
        raise NotFoundError(f"Not found: nothing lies at {log.uri}; check the path", uri=log.uri)
    newest = _newest(log)
    names = branch_names(log.store)
    paths = log.store.list_paths("")
    versions = sorted((path for path in paths if path.startswith(VERSIONS)), key=lambda path: path == newest)
    others = [path for path in paths if not path.startswith(VERSIONS)]
    for name in names:
        # While their refs tell which there are.
        branch = LanceLog.at(uri_of(log.uri, None, name), storage_options=storage_options)
        branch.forget_entries()
    for start in range(0, len(others), _AT_ONCE):
        log.store.delete_all(others[start : start + _AT_ONCE])
    log.store.delete_all(versions[:-1])
    log.forget_entries()
    log.store.delete_all(versions[-1:])
    flush(log.store, "no table")
    folder = _local(log.uri)
    if folder is not None:
        for unfinished in log.store.list_unfinished(""):
            log.store.delete_unfinished(unfinished.path)
        # Only what is empty: somebody may be making another table there.
        for parent, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                os.rmdir(parent)


def _newest(log: LanceLog) -> str:
    """The path of the newest manifest, which can be read.

    Raises:
        InvalidArgumentError: There is none: this is no table.
        IOFailedError: The store failed.
    """
    try:
        manifest, listing = log.open()
    except IOFailedError:
        # It says nothing of what lies there.
        raise
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(
            f"Refusing to drop {log.uri}: expected a table, found no manifest in _versions that can be read ({error}); "
            "check that it is not the folder above a table, or delete it with the tools of its store",
            uri=log.uri,
        ) from error
    if manifest.branch is not None:
        raise InvalidArgumentError(
            f"Refusing to drop {log.uri}: expected a table, found its branch {manifest.branch}; delete it by "
            f"branches.delete({manifest.branch!r})",
            uri=log.uri,
        )
    return log.path_of(manifest.version, listing.scheme)


def _local(uri: str) -> str | None:
    if "://" not in uri:
        return uri
    return unquote(urlsplit(uri).path) if uri.lower().startswith("file://") else None
