"""Tables that were dropped, and branches that were deleted, while something was being committed to them."""

from __future__ import annotations

from .._native.table import Manifest
from ..exceptions import CommitConflictError, NotFoundError
from .log import TRANSACTIONS, LanceLog
from .refs.names import branch_path
from .refs.places import uri_of


def dropped_error(log: LanceLog, operation: str, version: int, branch: str | None, *, is_gone: bool) -> Exception:
    """The conflict of a change with what became of its table.

    Args:
        log: The table's log.
        operation: The change's operation.
        version: Its read version.
        branch: The branch that it goes to, None for the main line.
        is_gone: Whether no version at all is left.
    """
    found = "which is there no more, nor is a later one" if is_gone else "which has another manifest by now, or none"
    lost = "the table was dropped or replaced" if branch is None else f"the branch {branch} was deleted or replaced"
    return CommitConflictError(
        f"our {operation} was made of version {version} of {log.uri}, {found}: {lost}; nothing of ours is visible, "
        "open it again",
        uri=log.uri,
        operation=operation,
        version=version,
        retryable=False,
    )


def is_dropped(log: LanceLog, made: Manifest) -> bool:
    """Whether a version that was just put lacks what it needs, because the table was dropped before the put.

    A branch's ref goes before its versions, and may be there again; the files of a table go before its manifests. Not
    all files are looked up: a drop takes all that it has listed.

    Args:
        log: The log that has it.
        made: The version.

    Example:
        `versions == (made.version,) and is_dropped(log, made)`
    """
    own = [file for fragment in made.fragments() for file in fragment.files if file.base_id is None]
    paths = [TRANSACTIONS + (made.transaction_file or ""), *(file.location for file in (*own[:1], *own[-1:]))]
    try:
        if made.branch is not None:
            main = LanceLog.at(uri_of(log.uri, made.branch, None), storage_options=log.bases.storage_options)
            main.store.head(branch_path(made.branch))
        for path in paths:
            log.store.head(path)
    except NotFoundError:
        return True
    return False
