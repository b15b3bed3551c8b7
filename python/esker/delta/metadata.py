"""Metadata and protocol versions of a table, under deltalake's names."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .._native.delta import Snapshot


class Metadata:
    """The metadata of one version of a table.

    Example:
        `DeltaTable("t").metadata().partition_columns`
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._fields: dict[str, Any] = json.loads(snapshot.metadata_json)

    @property
    def id(self) -> str:
        """The table's own id."""
        return str(self._fields["id"])

    @property
    def name(self) -> str | None:
        """A name for people."""
        found: str | None = self._fields["name"]
        return found

    @property
    def description(self) -> str | None:
        """What the table is for."""
        found: str | None = self._fields["description"]
        return found

    @property
    def partition_columns(self) -> list[str]:
        """Names of the partition columns."""
        return list(self._fields["partitionColumns"])

    @property
    def created_time(self) -> int | None:
        """Milliseconds since the epoch."""
        found: int | None = self._fields["createdTime"]
        return found

    @property
    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self._fields["configuration"])

    @property
    def _schema_string(self) -> str:
        return str(self._fields["schemaString"])

    def __repr__(self) -> str:
        return (
            f"Metadata(id: {self.id}, name: {self.name}, description: {self.description}, "
            f"partition_columns: {self.partition_columns}, created_time: {self.created_time}, "
            f"configuration: {self.configuration})"
        )


class ProtocolVersions(NamedTuple):
    """The protocol versions and features of a table."""

    min_reader_version: int
    """Version 3 and above name features."""
    min_writer_version: int
    """Version 7 and above name features."""
    writer_features: list[str] | None
    """The features that a writer must have."""
    reader_features: list[str] | None
    """The features that a reader must have."""


def protocol_of(snapshot: Snapshot) -> ProtocolVersions:
    """The protocol of a version.

    Example:
        `protocol_of(snapshot).min_reader_version`
    """
    fields = json.loads(snapshot.protocol_json)
    return ProtocolVersions(
        fields["minReaderVersion"],
        fields["minWriterVersion"],
        fields.get("writerFeatures"),
        fields.get("readerFeatures"),
    )
