"""`LanceChange`: what the commit loop sees of a version that another writer committed."""

from __future__ import annotations

from dataclasses import dataclass

from .._native.table import Manifest, Transaction
from .log import transaction_uuid


@dataclass(frozen=True)
class LanceChange:
    """A committed version, with its transaction if that can be found."""

    version: int
    transaction: Transaction | None
    manifest: Manifest | None = None

    @property
    def write_id(self) -> str | None:
        """The transaction's uuid; taken from the name of its file if the file is gone."""
        if self.transaction is not None:
            return self.transaction.uuid
        name = self.manifest.transaction_file if self.manifest is not None else None
        return transaction_uuid(name) if name else None

    @property
    def operation(self) -> str:
        """The transaction's operation."""
        return self.transaction.operation if self.transaction else "unknown"
