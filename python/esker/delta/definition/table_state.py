"""The state of a table before and after a change: its `metaData` and `protocol` actions, and the schema in them.

Spec: "Change Metadata", "Protocol Evolution", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._native.delta import Snapshot
from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..schema import ArrayType, DataType, Field, MapType, Schema, StructType
from .column_identity import identified
from .constraints import GENERATION, Constraints
from .feed_columns import check_feed_columns
from .partition_text import check_partition_type
from .physical_names import FIELD_ID, PHYSICAL_NAME
from .protocol import check_writable, features_of, fields_of, needed_features, protocol_with
from .schema_merge import SchemaMerge

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
ENABLEMENT = "delta.inCommitTimestampEnablement"
"""How the names of the properties begin that tell since when entries have in-commit timestamps."""
_LEVELS = 127
"""How many levels of JSON serde_json parses, by which delta-rs and esker read a schema."""
_PROTOCOL_KEYS = ("delta.minReaderVersion", "delta.minWriterVersion")


@dataclass(frozen=True)
class TableState:
    """The state of a table before or after a change.

    `metadata` and `protocol` are actions of the log; `schema` is what `metadata` says of the columns.
    """

    metadata: dict[str, Any]
    protocol: dict[str, Any]
    schema: Schema

    @staticmethod
    def of(snapshot: Snapshot) -> TableState:
        """The state that a version has."""
        metadata = json.loads(snapshot.metadata_json)
        return TableState(metadata, json.loads(snapshot.protocol_json), Schema.from_json(metadata["schemaString"]))

    @staticmethod
    def new(
        schema: Schema,
        partition_by: list[str],
        *,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        replaced: TableState | None = None,
    ) -> TableState:
        """The state of a new table, or of one that takes another's place and keeps its id.

        Where both are mapped, columns of the same names are the same ones: feeds and streams read older files, too.

        Raises:
            InvalidArgumentError: Names that are one ignoring case, partition columns that are none.
            UnsupportedError: It would have a feature that this release does not write.
        """
        given = {key: value for key, value in (configuration or {}).items() if value is not None}
        versions = [_version(given, key) for key in _PROTOCOL_KEYS]
        kept = {
            key: value
            for key, value in given.items()
            if key not in _PROTOCOL_KEYS and not key.startswith("delta.feature.")
        }
        _check_columns(schema, partition_by)
        before = replaced if replaced is not None and replaced.mapped else None
        highest = [int(it[MAX_ID]) for it in (kept, before.configuration if before else {}) if MAX_ID in it]
        if before is not None and highest and kept.get(MODE, "none").lower() != "none":
            kept[MAX_ID] = str(max(highest))
        if replaced is not None and _has_times(kept) and _has_times(replaced.configuration):
            # Entries of before the table had in-commit timestamps have none after it was replaced, either.
            kept |= {key: value for key, value in replaced.configuration.items() if key.startswith(ENABLEMENT)}
        # Files of a table that was not mapped have the columns' own names.
        keeps = replaced is not None and not replaced.mapped
        known = before.schema if before else None
        schema, kept = with_physical_names(identified(schema, known), kept, keep_names=keeps)
        metadata = {
            "id": replaced.metadata["id"] if replaced is not None else str(uuid.uuid4()),
            "name": name,
            "description": description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _text(schema),
            "partitionColumns": partition_by,
            "configuration": kept,
            "createdTime": time.time_ns() // 1_000_000,
        }
        needed = needed_features(schema, given)
        protocol = protocol_with(
            replaced.protocol if replaced is not None else None,
            needed,
            reader=versions[0] or 1,
            writer=versions[1] or 2,
        )
        check_writable(protocol, schema, kept, partition_by)
        return TableState(metadata, protocol, schema)._checked()

    @property
    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.get("configuration") or {})

    @property
    def partition_by(self) -> list[str]:
        """The partition columns."""
        return list(self.metadata["partitionColumns"])

    def check_writable(self) -> None:
        """Raises if this release does not write to such a table rightly.

        Raises:
            UnsupportedError: It names the feature, or the column, that it does not write.
        """
        check_writable(self.protocol, self.schema, self.configuration, self.partition_by)

    @property
    def mapped(self) -> bool:
        """Whether columns have physical names."""
        return self.configuration.get(MODE, "none").lower() != "none"

    @property
    def is_append_only(self) -> bool:
        """Whether no row may be removed."""
        return self.configuration.get("delta.appendOnly", "").lower() == "true"

    @property
    def keeps_change_feed(self) -> bool:
        """Whether the table keeps a change data feed."""
        return self.configuration.get("delta.enableChangeDataFeed", "").lower() == "true"

    @property
    def widens(self) -> bool:
        """Whether columns may become wider types."""
        enabled = self.configuration.get("delta.enableTypeWidening", "").lower() == "true"
        return enabled and "typeWidening" in features_of(self.protocol)

    def merged_with(self, data: Schema) -> TableState:
        """The same table with the columns of rows as well, and with types that hold both.

        Raises:
            SchemaMismatchError: One name has a plain type here and a nested one there.
            InvalidArgumentError: A constraint reads a column that would become wider.
        """
        there = {path.lower() for path, _ in fields_of(self.schema.fields)}
        for path, field in fields_of(data.fields):
            if path.lower() not in there and GENERATION in field.metadata:
                raise SchemaMismatchError(
                    f"column {path!r}: generation expressions are given when a table is created, found one for a new "
                    "column; leave it out (Schema evolved fields cannot have generated expressions. Recreate the "
                    "table to achieve this.)",
                    column=path,
                )
        merge = SchemaMerge(widens=self.widens)
        found = self.with_schema(merge.schema(self.schema, data))
        if merge.widened:
            tops = {path.partition(".")[0] for path in merge.widened}
            read = Constraints(self.schema, self.configuration, self.protocol).columns & tops
            if read:
                raise InvalidArgumentError(
                    f"expected a column that no constraint and no generated column reads, found {min(read)!r}, which "
                    "would become a wider type; drop the constraint first",
                    column=min(read),
                )
        return found

    def with_schema(self, schema: Schema) -> TableState:
        """The same table with other columns, and with the features that these need."""
        _check_columns(schema, self.partition_by)
        schema, configuration = with_physical_names(identified(schema, self.schema), self.configuration)
        return self._with(schema, configuration)

    def with_configuration(self, configuration: dict[str, str], *, reader: int = 1, writer: int = 2) -> TableState:
        """The same table with other properties, and with the features that these need.

        Columns get ids if the properties turn column mapping on; those that are there keep their names in files.

        Args:
            configuration: All properties, `delta.feature.*` among them.
            reader: The reader version that it has at least.
            writer: The writer version that it has at least.
        """
        # What columns of a table that is not mapped say of ids and names comes from elsewhere.
        there = self.schema if self.mapped else identified(self.schema, None)
        schema, kept = with_physical_names(there, configuration, keep_names=not self.mapped)
        return self._with(schema, kept, reader=reader, writer=writer)

    def _with(self, schema: Schema, configuration: dict[str, str], *, reader: int = 1, writer: int = 2) -> TableState:
        kept = {key: value for key, value in configuration.items() if not key.startswith("delta.feature.")}
        metadata = {**self.metadata, "schemaString": _text(schema), "configuration": kept}
        protocol = protocol_with(
            self.protocol,
            needed_features(schema, configuration),
            reader=max(reader, self.protocol["minReaderVersion"]),
            writer=max(writer, self.protocol["minWriterVersion"]),
        )
        check_writable(protocol, schema, kept, self.partition_by)
        return replace(self, metadata=metadata, protocol=protocol, schema=schema)._checked()

    def _checked(self) -> TableState:
        if self.keeps_change_feed:
            check_feed_columns([field.name for field in self.schema.fields])
        return self

    def actions_after(self, before: TableState | None) -> list[tuple[str, dict[str, Any]]]:
        """The actions that make this state out of the one before: none for what is the same."""
        actions: list[tuple[str, dict[str, Any]]] = []
        if before is None or before.protocol != self.protocol:
            actions.append(("protocol", self.protocol))
        if before is None or before.metadata != self.metadata:
            actions.append(("metaData", self.metadata))
        return actions


def with_physical_names(
    schema: Schema, configuration: dict[str, str], *, keep_names: bool = False
) -> tuple[Schema, dict[str, str]]:
    """The columns with ids and physical names, where column mapping is on, and the properties that count them.

    Args:
        schema: The columns.
        configuration: The table's properties.
        keep_names: Whether columns without a physical name are called in files what they are called in the table.
    """
    mode = configuration.get(MODE, "none").lower()
    if mode == "none":
        return identified(schema, None), configuration
    if mode not in ("name", "id"):
        raise InvalidArgumentError(f"expected {MODE} as none, name or id, found {mode!r}")
    used = [int(field.metadata.get(FIELD_ID, 0)) for _, field in fields_of(schema.fields)]
    counter = [max([int(configuration.get(MAX_ID, 0)), *used])]
    made = Schema([_named(field, counter, keep_names) for field in schema.fields])
    return made, {**configuration, MAX_ID: str(counter[0])}


def _named(field: Field, counter: list[int], keep: bool) -> Field:
    metadata = dict(field.metadata)
    if FIELD_ID not in metadata:
        counter[0] += 1
        metadata[FIELD_ID] = counter[0]
    metadata.setdefault(PHYSICAL_NAME, field.name if keep else f"col-{uuid.uuid4()}")
    return Field(field.name, _named_type(field.type, counter, keep), field.nullable, metadata)


def _named_type(kind: DataType, counter: list[int], keep: bool) -> DataType:
    if isinstance(kind, StructType):
        return StructType([_named(inner, counter, keep) for inner in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_named_type(kind.element_type, counter, keep), kind.contains_null)
    if isinstance(kind, MapType):
        key, value = _named_type(kind.key_type, counter, keep), _named_type(kind.value_type, counter, keep)
        return MapType(key, value, kind.value_contains_null)
    return kind


def _check_columns(schema: Schema, partition_by: list[str]) -> None:
    if not schema.fields:
        raise InvalidArgumentError("expected at least one column, found none")
    seen: dict[str, str] = {}
    for path, _ in fields_of(schema.fields):
        other = seen.setdefault(path.lower(), path)
        if other is not path:
            raise InvalidArgumentError(
                f"expected names that differ not only by case, found columns {other!r} and {path!r}", column=path
            )
        if "\0" in path:
            # The C data interface of Arrow ends a name at a NUL.
            raise InvalidArgumentError(f"expected a name without the character NUL, found column {path!r}", column=path)
    names = {field.name: field for field in schema.fields}
    for number, name in enumerate(partition_by):
        if name not in names:
            raise InvalidArgumentError(
                f"expected some of the columns {', '.join(names)} to partition by, found {name!r}", column=name
            )
        if name in partition_by[:number]:
            raise InvalidArgumentError(f"expected each partition column once, found {name!r} twice", column=name)
        check_partition_type(name, names[name].type.to_arrow())
    if partition_by and len(partition_by) == len(names):
        raise InvalidArgumentError("expected a column beside those to partition by, found none; data files need one")


def _has_times(configuration: Mapping[str, str]) -> bool:
    return configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"


def _version(given: Mapping[str, str], key: str) -> int | None:
    text = given.get(key)
    if text is None:
        return None
    if not text.isdigit():
        raise InvalidArgumentError(f"expected {key} as a number, found {text!r}")
    return int(text)


def _text(schema: Schema) -> str:
    """The schema as the log has it.

    Raises:
        UnsupportedError: A column is nested so deeply that no reader would open the table any more.
    """
    told = schema.json()
    for field in told["fields"]:
        levels = _levels(field) + 2
        if levels > _LEVELS:
            raise UnsupportedError(
                f"column {field['name']!r}: expected at most {_LEVELS} levels of JSON, a struct being three, "
                f"found {levels}: parsers refuse more, and the table could not be opened again; write a flatter "
                "column, or text",
                column=field["name"],
            )
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def _levels(value: object) -> int:
    """How many objects and lists lie within each other."""
    deepest, found = 0, [(value, 1)]
    while found:
        each, level = found.pop()
        if isinstance(each, (dict, list)):
            deepest = max(deepest, level)
            found += [(within, level + 1) for within in (each.values() if isinstance(each, dict) else each)]
    return deepest
