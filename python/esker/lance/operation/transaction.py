"""`Transaction`: one change to a table: its base version, its operation, its id and its properties."""

from __future__ import annotations

import uuid as _uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

from ..._native import table as native
from ...exceptions import InvalidArgumentError, InvalidChangeError, UnsupportedChangeError
from ..commit import APPLICATION_ID, APPLICATION_VERSION
from ..fragment_metadata import FragmentMetadata
from .operations import LanceOperation, operation_from_native

LANCE_COMMIT_MESSAGE_KEY = "__lance_commit_message"
"""The transaction property that holds a commit message; pylance reads and writes the same one."""


@dataclass
class Transaction:
    """One change to a table.

    Args:
        read_version: The base version; 0 for a table that did not exist.
        operation: The operation.
        uuid: Its id, unique among all transactions of all writers.
        transaction_properties: Free text by key.

    Example:
        >>> import esker
        >>> esker.Transaction(3, esker.LanceOperation.Restore(2)).operation
        LanceOperation.Restore(version=2)
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(_uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)

    @staticmethod
    def from_native(transaction: native.Transaction) -> Transaction:
        """The transaction that the Rust core decoded."""
        operation = operation_from_native(transaction.decoded())
        return Transaction(transaction.read_version, operation, transaction.uuid, transaction.properties)


def merge_message(message: str | None, properties: dict[str, str] | None) -> dict[str, str] | None:
    """Transaction properties with the commit message added; the argument wins over the property.

    Raises:
        InvalidArgumentError: A text has a lone surrogate, which UTF-8 cannot encode. Checked before files are staged.
    """
    noted = dict(properties or {})
    if message is not None:
        noted[LANCE_COMMIT_MESSAGE_KEY] = message
    for text in (*noted.keys(), *noted.values()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"expected text in a commit's message and properties, found {error}") from error
    return noted or None


def application_properties(
    application: tuple[str, int] | None, properties: dict[str, str] | None
) -> dict[str, str] | None:
    """Transaction properties with an application's id and number added.

    Raises:
        InvalidArgumentError: They are not a text that is not empty, and a whole number of 63 bits.
    """
    if application is None:
        return properties
    if not _is_numbered(application):
        raise InvalidArgumentError(
            f"expected application as a non-empty id and a number from 0 to {2**63 - 1}, found {application!r}"
        )
    name, version = application
    return {**(properties or {}), APPLICATION_ID: name, APPLICATION_VERSION: str(version)}


def _is_numbered(given: object) -> bool:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        return False
    name, version = given
    if isinstance(version, bool) or not isinstance(version, Integral):
        return False
    return isinstance(name, str) and name != "" and 0 <= int(version) < 2**63


def merged_append(transactions: Sequence[Transaction]) -> Transaction:
    """Merges several appends into one, in their order.

    Raises:
        InvalidChangeError: The sequence is empty.
        UnsupportedChangeError: One of the transactions is not an append.

    Example:
        `merged_append([first, second]).operation.fragments`
    """
    if not transactions:
        raise InvalidChangeError("expected transactions to commit, found none")
    fragments: list[FragmentMetadata] = []
    properties: dict[str, str] = {}
    for transaction in transactions:
        if not isinstance(transaction.operation, LanceOperation.Append):
            raise UnsupportedChangeError(
                f"expected appends only, found {transaction.operation.name}; commit it by itself",
                operation=transaction.operation.name,
            )
        fragments.extend(transaction.operation.fragments)
        properties |= transaction.transaction_properties or {}
    read_version = min(transaction.read_version for transaction in transactions)
    return Transaction(read_version, LanceOperation.Append(fragments), transaction_properties=properties)
