"""Errors under deltalake's names: those of `esker.exceptions`, so that `except DeltaError` goes on to work.

| deltalake | here |
|---|---|
| `DeltaError` | `EskerError`, the root |
| `TableNotFoundError` | `NotFoundError` |
| `SchemaMismatchError` | `SchemaMismatchError` |
| `CommitFailedError` | `CommitConflictError` |
| `DeltaProtocolError` | `InvalidArgumentError`: rows that a constraint refuses |
"""

from __future__ import annotations

from ..exceptions import CommitConflictError as CommitFailedError
from ..exceptions import EskerError as DeltaError
from ..exceptions import InvalidArgumentError as DeltaProtocolError
from ..exceptions import NotFoundError as TableNotFoundError
from ..exceptions import SchemaMismatchError

__all__ = ["CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"]
