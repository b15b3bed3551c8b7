"""Table features of the Delta protocol, under deltalake's names."""

from __future__ import annotations

from enum import Enum

_NAMES = {"TimestampWithoutTimezone": "timestampNtz", "VariantTypePreview": "variantType-preview"}


class TableFeatures(Enum):
    """What a table's protocol can name, for `alter.add_feature`.

    Example:
        >>> from esker.delta import TableFeatures
        >>> TableFeatures.TimestampWithoutTimezone.protocol_name
        'timestampNtz'
    """

    ColumnMapping = "ColumnMapping"
    DeletionVectors = "DeletionVectors"
    TimestampWithoutTimezone = "TimestampWithoutTimezone"
    TimestampNanos = "TimestampNanos"
    V2Checkpoint = "V2Checkpoint"
    AppendOnly = "AppendOnly"
    Invariants = "Invariants"
    CheckConstraints = "CheckConstraints"
    ChangeDataFeed = "ChangeDataFeed"
    GeneratedColumns = "GeneratedColumns"
    IdentityColumns = "IdentityColumns"
    RowTracking = "RowTracking"
    DomainMetadata = "DomainMetadata"
    IcebergCompatV1 = "IcebergCompatV1"
    VariantType = "VariantType"
    VariantTypePreview = "VariantTypePreview"

    @property
    def protocol_name(self) -> str:
        """The feature's name in the protocol."""
        return _NAMES.get(self.value, self.value[0].lower() + self.value[1:])
