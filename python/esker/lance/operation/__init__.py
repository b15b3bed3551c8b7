"""Operations and transactions as values: workers on many machines stage fragments, and one process commits them."""

from .index import Index
from .operations import LanceOperation
from .transaction import (
    LANCE_COMMIT_MESSAGE_KEY,
    Transaction,
    application_properties,
    merge_message,
    merged_append,
)

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "Index",
    "LanceOperation",
    "Transaction",
    "application_properties",
    "merge_message",
    "merged_append",
]
