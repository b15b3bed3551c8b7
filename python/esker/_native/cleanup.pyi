"""The files in a table's folders, and which of them its versions refer to."""

from typing import final

from .store import Store
from .table import Manifest, Transaction

__all__ = ["FileListing", "FileReferences"]

@final
class FileReferences:
    """What versions and transactions refer to. 100,000 fragments cost their names once, however many versions have them."""

    def __new__(cls) -> FileReferences: ...
    def keep(self, manifest: Manifest) -> None:
        """Keeps the files that a version is made of."""

    def discard(self, manifest: Manifest) -> None:
        """Notes the files that a version is made of which goes. What is kept stays kept."""

    def keep_transaction(self, transaction: Transaction) -> None:
        """Keeps the files that a transaction names which may still be committed, and its own file."""

@final
class FileListing:
    """The files in the folders that a table's writers stage files in, at one moment."""

    @staticmethod
    def read(store: Store, only: str | None = None) -> FileListing:
        """Lists all of them, or only those in one of the folders, which ends in `/`."""

    def leftovers(self, references: FileReferences) -> list[tuple[str, str, int, int | None, bool]]:
        """The files that nothing kept refers to: kind ("data", "deletion", "transaction", "index", "unfinished"), path,
        size in bytes, last change in microseconds since the Unix epoch where the store says, and whether a version that
        goes refers to it. Manifests are not among them, nor files of a form that no writer gives to a table's files."""

    def __len__(self) -> int: ...
