"""`StorageOptionsAccessor`: the storage options that a dataset was opened with, under the name of pylance's class."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

REFRESH_OFFSET_SECONDS = 60


class StorageOptionsAccessor:
    """Storage options that stay as they are: nothing renews them.

    Args:
        options: The options. They are copied.

    Example:
        >>> from esker.lance.storage_options import StorageOptionsAccessor
        >>> accessor = StorageOptionsAccessor({"region": "eu-central-1"})
        >>> accessor.get_storage_options(), accessor.has_provider()
        ({'region': 'eu-central-1'}, False)
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @staticmethod
    def with_static_options(options: Mapping[str, str]) -> StorageOptionsAccessor:
        """One for these options."""
        return StorageOptionsAccessor(options)

    def get_storage_options(self) -> dict[str, str]:
        """The options that hold now."""
        return dict(self._options)

    def initial_storage_options(self) -> dict[str, str]:
        """The options at the start, which are the same."""
        return dict(self._options)

    def has_provider(self) -> bool:
        """Whether something renews the options: False."""
        return False

    def refresh_offset_secs(self) -> int:
        """Seconds before their end at which options that have one are renewed."""
        return REFRESH_OFFSET_SECONDS

    def accessor_id(self) -> str:
        """The same text for the same options, from which they cannot be read."""
        digest = sha256(repr(sorted(self._options.items())).encode()).hexdigest()
        return f"static_options_{digest[:16]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageOptionsAccessor) and self._options == other._options

    def __hash__(self) -> int:
        return hash(self.accessor_id())

    def __repr__(self) -> str:
        return f"StorageOptionsAccessor(id={self.accessor_id()}, has_provider=false)"
