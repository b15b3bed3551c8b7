"""The files in a table's folders, and which of them its versions refer to."""

from typing import final

from .store import Store
from .table import Manifest, Transaction

__all__ = ["FileListing", "FileReferences"]

@final
class FileReferences:
    """The files that versions and transactions refer to. Each name is held once, however many versions refer to it."""

    def __new__(cls) -> FileReferences: ...
    def keep(self, manifest: Manifest) -> None:
        """Adds the files of a kept version."""

    def discard(self, manifest: Manifest) -> None:
        """Adds the files of a dropped version. Files of kept versions stay kept."""

    def keep_transaction(self, transaction: Transaction) -> None:
        """Keeps the files of a transaction that may still be committed, and the transaction's own file."""

@final
class FileListing:
    """The files in the folders that a table's writers stage files in, at one moment."""

    @staticmethod
    def read(store: Store, only: str | None = None) -> FileListing:
        """Lists all of them, or only those in one of the folders, which ends in `/`."""

    def leftovers(self, references: FileReferences) -> list[tuple[str, str, int, int | None, bool]]:
        """The orphans: kind ("data", "deletion", "transaction", "index", "unfinished"), path,
        size in bytes, last change in microseconds since the Unix epoch if the store says, and whether a dropped version
        refers to it. Manifests are not among them, nor files whose names no writer of tables makes."""

    def __len__(self) -> int: ...
