"""Errors under deltalake's names: those of `esker.exceptions`, so that `except DeltaError` goes on to work.

| deltalake | here |
|---|---|
| `DeltaError` | `EskerError`, the root |
| `TableNotFoundError` | `NotFoundError` |
| `SchemaMismatchError` | `SchemaMismatchError` |
| `CommitFailedError` | `NotCommittedError`: lost races, `CommitConflictError`; append-only tables, `AppendOnlyError` |
| `DeltaProtocolError` | `InvalidArgumentError`: rows that a constraint refuses |
"""

from __future__ import annotations

from typing import Any

from ..exceptions import EskerError as DeltaError
from ..exceptions import InvalidArgumentError as DeltaProtocolError
from ..exceptions import NotCommittedError as CommitFailedError
from ..exceptions import NotFoundError as TableNotFoundError
from ..exceptions import SchemaMismatchError

__all__ = [
    "AppendOnlyError",
    "CommitFailedError",
    "DeltaError",
    "DeltaProtocolError",
    "SchemaMismatchError",
    "TableNotFoundError",
]


class AppendOnlyError(CommitFailedError, DeltaProtocolError):
    """Rows would be changed or removed in a table that says `delta.appendOnly`; nothing became visible.

    Args:
        uri: Where the table is.
        what: What would happen to which rows.
    """

    kind = "append_only"

    def __init__(self, uri: str = "", what: str = "", /, **facts: Any) -> None:
        told = (
            f"the table at {uri} is append-only (delta.appendOnly): {what}; nothing was written (The transaction "
            "includes Remove action with data change but Delta table is append-only)"
        )
        # A pickle carries the message.
        super().__init__(told if what else uri, **{**facts, **({"uri": uri} if what else {})})
