"""The names of `deltalake.transaction`."""

from typing import TYPE_CHECKING

from .missing import names_of
from .properties import CommitProperties, PostCommitHookProperties, Transaction
from .write.add_files import AddAction

__all__ = ["AddAction", "CommitProperties", "PostCommitHookProperties", "Transaction"]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, ["RemoveAction", "create_table_with_add_actions"])
