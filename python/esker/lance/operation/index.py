"""`Index`: the manifest's entry of an index: its name, its columns and the fragments that it covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime

from ..._native import table as native
from ...missing import missing_property
from ...missing_names import INDEX


@dataclass
class Index:
    """One segment of an index.

    Args:
        uuid: The name of its folder in `_indices/`.
        name: The index's name, which all of its segments share.
        fields: The ids of the fields that it covers.
        dataset_version: The version whose rows it was built from.
        fragment_ids: The fragments that it covers.
        index_version: Readers older than this must not use it.
        created_at: When it was made.
        base_id: The id of the base path that holds its folder; None is the table's own root.
        index_details: The type URL and the encoded message that a reader needs to open it.

    Example:
        >>> from esker.lance.operation import Index
        >>> Index("6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0", "id_idx", [0], 1, {0, 1}, 0).name
        'id_idx'
    """

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: Iterable[int]
    index_version: int
    created_at: datetime | None = None
    base_id: int | None = None
    _: KW_ONLY  # behind it stand the files, which this release does not have
    index_details: tuple[str, bytes] | None = None
    _native: native.Index | None = field(default=None, repr=False, compare=False)

    covering_fields = missing_property("Index", "covering_fields", INDEX)
    files = missing_property("Index", "files", INDEX)

    @staticmethod
    def from_native(index: native.Index) -> Index:
        """The index that the Rust core decoded. Parts that this release does not know are kept."""
        created = index.created_at_ms
        return Index(
            uuid=index.uuid,
            name=index.name,
            fields=index.fields,
            dataset_version=index.dataset_version,
            fragment_ids=set(index.fragment_ids or ()),
            index_version=index.index_version,
            created_at=None if created is None else datetime.fromtimestamp(created / 1000, UTC),
            base_id=index.base_id,
            index_details=index.details,
            _native=index,
        )

    def to_native(self) -> native.Index:
        """The index of the Rust core: the one it was made from, unless it was changed since."""
        if self._native is not None and Index.from_native(self._native) == self:
            return self._native
        return native.Index(
            self.uuid,
            self.name,
            self.fields,
            self.dataset_version,
            sorted(self.fragment_ids),
            self.index_version,
            created_at_ms=None if self.created_at is None else round(self.created_at.timestamp() * 1000),
            base_id=self.base_id,
            details=self.index_details,
        )
