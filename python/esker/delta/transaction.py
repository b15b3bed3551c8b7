"""The names of `deltalake.transaction`."""

from .properties import CommitProperties, PostCommitHookProperties, Transaction
from .write.add_files import AddAction

__all__ = ["AddAction", "CommitProperties", "PostCommitHookProperties", "Transaction"]
