"""`NamedVersion`: the version that a tag or a new branch is to name, which may be cleaned up at the same moment."""

from __future__ import annotations

from dataclasses import dataclass

from ..._native.table import Manifest
from ...exceptions import NotFoundError
from ..log import LanceLog, NamingScheme
from ..stray import is_in_history
from ..version import TableVersion
from .names import branch_path
from .places import Place, log_of, main_log

V2: NamingScheme = "V2"


@dataclass(frozen=True)
class NamedVersion:
    """A version that is to be named.

    Attributes:
        place: Its branch and its number.
        version: Its number.
        manifest_size: The bytes of its manifest.
        scheme: How that is named.
        log: The log of its branch.
        manifest: Its manifest, where it was read.
    """

    place: Place
    version: int
    manifest_size: int
    scheme: NamingScheme
    log: LanceLog
    _main: LanceLog
    manifest: Manifest | None = None

    @classmethod
    def find(cls, table: TableVersion, place: Place, *, read: bool = False) -> NamedVersion:
        """Looks a version up.

        Args:
            table: Any version of the table.
            place: Where the version is.
            read: Whether to read its manifest, by the request that looks it up.

        Raises:
            NotFoundError: There is no such version, or no such branch.
        """
        log, main = log_of(table, place.branch), main_log(table)
        # Most tables have V2 names: without a listing one request tells.
        found = None if place.version is None else _look(log, place.version, V2, read)
        version, scheme = place.version or 0, V2
        if found is None:
            listing = log.newest()
            version, scheme = listing.latest if place.version is None else place.version, listing.scheme
            found = _look(log, version, scheme, read)
        if found is None and place.version is None and version:
            # After the look others committed, and a clean-up removed what was the newest.
            version = log.newest().latest
            found = _look(log, version, scheme, read)
        if found is None:
            raise NotFoundError(
                f"Version not found error: version {place} does not exist in {log.uri}; versions() names those that do",
                uri=log.uri,
                version=place.version,
            )
        size, manifest = found
        return cls(Place(place.branch, version), version, size, scheme, log, main, manifest)

    def is_there(self) -> bool:
        """Whether the version is still there, and its branch: whoever removes one of them looks for names then."""
        try:
            if self.place.branch is not None:
                self._main.store.head(branch_path(self.place.branch))
        except NotFoundError:
            return False
        return is_in_history(self.log, self.version, self.scheme)

    def gone(self, doing: str) -> NotFoundError:
        """The error that says that it is not.

        Args:
            doing: What was being done with it.
        """
        return NotFoundError(
            f"version {self.place} of {self.log.uri} was cleaned up, or its branch deleted, while it was being "
            f"{doing}; take another one",
            uri=self.log.uri,
            version=self.version,
        )


def _look(log: LanceLog, version: int, scheme: NamingScheme, read: bool) -> tuple[int, Manifest | None] | None:
    """The bytes of the manifest of a version, and the manifest if it is to be read; None if there is none."""
    path = log.path_of(version, scheme)
    try:
        if not read:
            return log.store.head(path).size, None
        data = log.store.get(path)
    except NotFoundError:
        return None
    manifest = Manifest.decode(data, path)
    # That of another version is refused there.
    return len(data), manifest if manifest.version == version else log.manifest(version, scheme)
