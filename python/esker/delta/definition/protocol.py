"""Writer features of the protocol: which a table requires, and which this release has. Others are refused by name.

| feature | what a write does |
|---|---|
| appendOnly, invariants, checkConstraints, generatedColumns | enforced, see `constraints` |
| changeDataFeed | files of changes where a part of a file is replaced, see `change_data` |
| columnMapping | physical names and field ids |
| deletionVectors | a removal names the vector; bounds are tight |
| inCommitTimestamp | later than the version before |
| timestampNtz, v2Checkpoint, vacuumProtocolCheck, domainMetadata, typeWidening | nothing more than writing as always |
| variantType, geospatial, collations, identityColumns | nothing; a column of such a kind is refused by its name |
| allowColumnDefaults | nothing, unless rows lack a column with a default |
| icebergCompat*, icebergWriterCompat*, checkpointProtection | nothing, unless a property makes them active |
| materializePartitionColumns | nothing, unless there are partition columns |
| rowTracking, clustering, catalogManaged, and all others | refused |

Spec: "Requirements for Writers", "Table Features".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...exceptions import UnsupportedError
from ..schema import ArrayType, Field, MapType, PrimitiveType, Schema, StructType

LEGACY_WRITERS = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
"""The writer versions that features came with before they had names of their own."""
WRITER_FEATURES = frozenset(
    {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "inCommitTimestamp",
        "domainMetadata",
        "typeWidening",
        "typeWidening-preview",
    }
)
"""The features of tables that this release writes to."""
READER_WRITER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "typeWidening",
        "typeWidening-preview",
        "geospatial",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""The features that readers must know as well."""
TYPE_FEATURES = frozenset(
    {"geospatial", "variantShredding", "variantShredding-preview", "variantType", "variantType-preview"}
)
"""Features that say of what types columns may be: without such a column they ask for nothing."""
_BY_COLUMN = frozenset({"allowColumnDefaults", "collations", "identityColumns"})
_UNLESS_ACTIVE = {
    "checkpointProtection": "delta.requireCheckpointProtectionBeforeVersion",
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
    "icebergCompatV3": "delta.enableIcebergCompatV3",
    "icebergWriterCompatV1": "delta.enableIcebergWriterCompatV1",
    "icebergWriterCompatV3": "delta.enableIcebergWriterCompatV3",
}
"""Features that ask for something only where a property is set."""
DEFAULT = "CURRENT_DEFAULT"
"""The key of a column's metadata that holds its default, as SQL."""
_COLLATIONS = "__COLLATIONS"
_BY_PROPERTY = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
}
_IDENTITY = "delta.identity."


def features_of(protocol: Mapping[str, Any]) -> set[str]:
    """The features that writers of a table must have.

    Example:
        >>> from esker.delta.definition.protocol import features_of
        >>> sorted(features_of({"minReaderVersion": 1, "minWriterVersion": 2}))
        ['appendOnly', 'invariants']
    """
    version = protocol["minWriterVersion"]
    if version >= 7:
        return {*(protocol.get("writerFeatures") or []), *(protocol.get("readerFeatures") or [])}
    return {name for name, since in LEGACY_WRITERS.items() if version >= since}


def check_writable(
    protocol: Mapping[str, Any],
    schema: Schema | None = None,
    configuration: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> None:
    """Raises if this release does not write to such a table rightly.

    Args:
        protocol: The `protocol` action.
        schema: The table's columns, to tell whether one of them is of a kind that is not written.
        configuration: Its properties, to tell which features are active.
        partition_by: Its partition columns.

    Raises:
        UnsupportedError: It names the features that this release does not have.

    Example:
        >>> from esker.delta.definition.protocol import check_writable
        >>> check_writable({"minReaderVersion": 1, "minWriterVersion": 2})
    """
    version = protocol["minWriterVersion"]
    if version > 7:
        raise UnsupportedError(
            f"the table asks for writer version {version} of the Delta protocol, found support for versions up to 7; "
            "upgrade esker to write to it"
        )
    unknown = sorted(
        features_of(protocol) - WRITER_FEATURES - TYPE_FEATURES - _BY_COLUMN - _inactive(configuration, partition_by)
    )
    if unknown:
        raise UnsupportedError(
            f"the table asks for the writer features {', '.join(unknown)}, which this release does not have; "
            "upgrade esker, or write with another writer"
        )
    for name, field in fields_of(schema.fields if schema is not None else []):
        if any(key.startswith(_IDENTITY) for key in field.metadata):
            raise UnsupportedError(
                f"column {name!r} is an identity column (feature identityColumns), which this release does not write",
                column=name,
            )
        unread = unread_type(field.type)
        if unread is not None:
            raise UnsupportedError(
                f"column {name!r} is of type {unread}, which this release does not write; write with another writer",
                column=name,
            )
        if _COLLATIONS in field.metadata:
            raise UnsupportedError(
                f"column {name!r} has a collation (feature collations), which this release does not write; "
                "write with another writer",
                column=name,
            )


def _inactive(configuration: Mapping[str, str] | None, partition_by: Sequence[str]) -> set[str]:
    """The features that ask for nothing with these properties; without properties those that a commit rests on."""
    given = configuration or {}
    found = {
        name for name, key in _UNLESS_ACTIVE.items() if given.get(key, "false").lower() in ("false", "0", "-1", "")
    }
    return found if partition_by else found | {"materializePartitionColumns"}


def check_defaults(schema: Schema, missing: Collection[str]) -> None:
    """Raises if columns that rows lack have a default, which is not computed.

    Args:
        schema: The table's columns.
        missing: Those that the rows lack.

    Raises:
        UnsupportedError: It names the column.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.protocol import check_defaults
        >>> check_defaults(Schema([Field("id", "long")]), {"id"})
    """
    for column in schema.fields:
        if column.name in missing and DEFAULT in column.metadata:
            raise UnsupportedError(
                f"column {column.name!r} has the default {column.metadata[DEFAULT]}, which this release does not "
                "compute; give the column",
                column=column.name,
            )


def unread_type(kind: Any) -> str | None:
    """The first type within one whose values this release does not read; structs are for those who walk their fields.

    Example:
        >>> from esker.delta import ArrayType
        >>> from esker.delta.definition.protocol import unread_type
        >>> unread_type(ArrayType("variant"))
        'variant'
    """
    if isinstance(kind, PrimitiveType):
        return kind.type if kind.is_unread else None
    if isinstance(kind, ArrayType):
        return unread_type(kind.element_type)
    if isinstance(kind, MapType):
        return unread_type(kind.key_type) or unread_type(kind.value_type)
    return None


def check_has_fields(schema: Schema) -> None:
    """Raises if rows with these columns cannot be written: Parquet has no structs without fields.

    Args:
        schema: The table's columns.

    Raises:
        UnsupportedError: It names the column.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.protocol import check_has_fields
        >>> check_has_fields(Schema([Field("id", "long")]))
    """
    for column in schema.fields:
        if _is_empty(column.type):
            raise UnsupportedError(
                f"column {column.name!r}: expected structs with a field at least, found one without; leave the column "
                "out, or give it a field (Parquet does not support writing empty structs)",
                column=column.name,
            )


def _is_empty(found: Any) -> bool:
    """Whether a type is, or holds, a struct without fields."""
    if isinstance(found, ArrayType):
        return _is_empty(found.element_type)
    if isinstance(found, MapType):
        return _is_empty(found.key_type) or _is_empty(found.value_type)
    return isinstance(found, StructType) and (not found.fields or any(_is_empty(it.type) for it in found.fields))


def fields_of(fields: Iterable[Field], above: str = "") -> Iterable[tuple[str, Field]]:
    """All fields by their dotted paths, those of structs in lists and maps among them."""
    for field in fields:
        path = f"{above}{field.name}"
        yield path, field
        yield from _inside(field.type, f"{path}.")


def _inside(found: Any, above: str) -> Iterable[tuple[str, Field]]:
    if isinstance(found, StructType):
        yield from fields_of(found.fields, above)
    elif isinstance(found, ArrayType):
        yield from _inside(found.element_type, f"{above}element.")
    elif isinstance(found, MapType):
        yield from _inside(found.key_type, f"{above}key.")
        yield from _inside(found.value_type, f"{above}value.")


def needed_features(schema: Schema, configuration: Mapping[str, str]) -> set[str]:
    """The features without which a table with such columns and properties would not be right.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.protocol import needed_features
        >>> needed_features(Schema([Field("t", "timestamp_ntz")]), {})
        {'timestampNtz'}
    """
    found = {feature for key, feature in _BY_PROPERTY.items() if configuration.get(key, "").lower() == "true"}
    if any(key.startswith("delta.constraints.") for key in configuration):
        found.add("checkConstraints")
    if configuration.get("delta.columnMapping.mode", "none").lower() != "none":
        found.add("columnMapping")
    if configuration.get("delta.checkpointPolicy", "classic").lower() == "v2":
        found.add("v2Checkpoint")
    for key, value in configuration.items():
        if key.startswith("delta.feature.") and value.lower() in ("supported", "enabled"):
            found.add(key.removeprefix("delta.feature."))
    for _, field in fields_of(schema.fields):
        if "delta.invariants" in field.metadata:
            found.add("invariants")
        if "delta.generationExpression" in field.metadata:
            found.add("generatedColumns")
        if any(key.startswith(_IDENTITY) for key in field.metadata):
            found.add("identityColumns")
        if DEFAULT in field.metadata:
            found.add("allowColumnDefaults")
    if "timestamp_ntz" in schema.to_json():
        found.add("timestampNtz")
    return found


def protocol_with(
    protocol: Mapping[str, Any] | None, needed: set[str], *, reader: int = 1, writer: int = 2
) -> dict[str, Any]:
    """The lowest protocol that has what a table asks for already, and these features.

    Args:
        protocol: The table's; None for a new one.
        needed: Features that it must have.
        reader: The reader version that it must have at least.
        writer: The writer version.

    Example:
        >>> from esker.delta.definition.protocol import protocol_with
        >>> protocol_with(None, {"changeDataFeed"})
        {'minReaderVersion': 1, 'minWriterVersion': 4}
    """
    old = dict(protocol or {"minReaderVersion": 1, "minWriterVersion": 1})
    reader = max(reader, old["minReaderVersion"])
    writer = max(writer, old["minWriterVersion"])
    # Readers of version 3 look for names of features, which only writers of version 7 have.
    named = writer >= 7 or reader >= 3 or any(feature not in LEGACY_WRITERS for feature in needed)
    if not named:
        writer = max([writer, *(LEGACY_WRITERS[feature] for feature in needed)])
        reader = max(reader, 2 if "columnMapping" in needed else 1)
        return {**old, "minReaderVersion": reader, "minWriterVersion": writer}
    if protocol is not None and old["minWriterVersion"] >= 7:
        before = features_of(old)
    else:
        before = {name for name, since in LEGACY_WRITERS.items() if since <= min(writer, 6 if writer < 7 else 2)}
        before |= features_of(old) if protocol is not None else set()
    features = before | needed
    reading = sorted((features & READER_WRITER_FEATURES) | set(old.get("readerFeatures") or []))
    reader = 3 if reading or reader >= 3 else reader
    made = {**old, "minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": sorted(features)}
    if reader == 3:
        made["readerFeatures"] = reading
    return made
