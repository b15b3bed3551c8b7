"""Changes of a table's metadata, with deltalake's names: `DeltaTable.alter`.

Spec: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from .commit import DeltaCommit
from .conflict import ReadSet
from .constraints import CONSTRAINT, GENERATION, INVARIANTS, Constraints
from .features import TableFeatures
from .incoming import fit, reader_of
from .log_store import resolve_for_writing
from .post_commit import PostCommit
from .properties import CommitProperties, PostCommitHookProperties
from .schema import Field, Schema
from .table_metadata import MODE, TableState, merge_schema
from .write_protocol import WRITER_FEATURES, check_writable, protocol_with

if TYPE_CHECKING:
    from .table import DeltaTable

_ICT = "delta.enableInCommitTimestamps"


class TableAlterer:
    """What `DeltaTable.alter` is. Each change is one commit, and the table goes to the new version.

    Args:
        table: The table.

    Example:
        `DeltaTable("t").alter.add_constraint({"positive": "x > 0"})`
    """

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def add_columns(
        self,
        fields: Field | list[Field],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Adds columns, which are null in all rows that are there.

        Raises:
            InvalidArgumentError: A column of that name is there, or the new one may not be null.
        """
        new = [fields] if isinstance(fields, Field) else list(fields)
        state = self._state()
        names = {field.name.lower() for field in state.schema.fields}
        for field in new:
            if field.name.lower() in names:
                raise InvalidArgumentError(f"expected a new column, found {field.name!r} there", column=field.name)
            if not field.nullable and self.table._snapshot.num_files:
                raise InvalidArgumentError(
                    f"expected a nullable column, found {field.name!r} not null: rows are there without it",
                    column=field.name,
                )
            if INVARIANTS in field.metadata or GENERATION in field.metadata:
                raise UnsupportedError(
                    f"column {field.name!r}: invariants and generation expressions are given when a table is created",
                    column=field.name,
                )
        after = state.with_schema(merge_schema(state.schema, Schema(new)))
        columns = json.dumps([{"column": field._json()} for field in new], separators=(",", ":"))
        self._commit("ADD COLUMNS", {"columns": columns}, after, commit_properties, post_commithook_properties)

    def add_constraint(
        self,
        constraints: dict[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Adds a CHECK constraint. Rows that are there must satisfy it.

        Args:
            constraints: One constraint: its name, and SQL that must be true.

        Raises:
            InvalidArgumentError: Rows do not satisfy it, or there is one of that name.
            UnsupportedError: It is outside of the subset that this release evaluates.
        """
        if len(constraints) != 1:
            raise InvalidArgumentError(f"expected one constraint, found {len(constraints)}; add one at a time")
        ((name, sql),) = constraints.items()
        state = self._state()
        if any(key.lower() == (CONSTRAINT + name).lower() for key in state.configuration):
            raise InvalidArgumentError(f"expected a new constraint, found {name!r} there; drop it first")
        after = state.with_configuration({**state.configuration, CONSTRAINT + name: sql})
        check = Constraints(after.schema, {CONSTRAINT + name: sql}, after.protocol)
        for batch in self.table.scan():
            for whole in fit(reader_of([batch]), after.schema):
                check.enforce(whole)
        self._commit(
            "ADD CONSTRAINT",
            {"name": name, "expr": sql},
            after,
            commit_properties,
            post_commithook_properties,
            read=ReadSet(whole_table=True),
        )

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drops a CHECK constraint.

        Raises:
            NotFoundError: There is none of that name.
        """
        state = self._state()
        kept = {key: value for key, value in state.configuration.items() if key != CONSTRAINT + name}
        if len(kept) == len(state.configuration):
            if raise_if_not_exists:
                raise NotFoundError(f"no constraint {name!r}; the table has {sorted(state.configuration)}")
            return
        after = state.with_configuration(kept)
        self._commit("DROP CONSTRAINT", {"name": name}, after, commit_properties, post_commithook_properties)

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Lets a column have nulls.

        Raises:
            InvalidArgumentError: There is no such column.
        """
        made = Field(column_name, self._field(column_name).type, True, self._field(column_name).metadata)
        after = self._with_field(made)
        parameters = {"column": column_name}
        self._commit("CHANGE COLUMN", parameters, after, commit_properties, post_commithook_properties)

    def set_column_metadata(
        self,
        column: str,
        metadata: dict[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Adds to the metadata of a column, such as `comment`.

        Raises:
            UnsupportedError: A key of the protocol's own (`delta.*`): rows that are there may not be as it says.
        """
        for key in metadata:
            if key.startswith("delta."):
                raise UnsupportedError(f"column {column!r}: {key} is the protocol's own, and is not set here")
        field = self._field(column)
        after = self._with_field(Field(field.name, field.type, field.nullable, {**field.metadata, **metadata}))
        parameters = {"column": column, "metadata": json.dumps(metadata)}
        self._commit("CHANGE COLUMN", parameters, after, commit_properties, post_commithook_properties)

    def set_table_properties(
        self,
        properties: dict[str, str],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets properties; the protocol goes up where they need it.

        Args:
            properties: By their names.
            raise_if_not_exists: Whether names that the protocol does not know are refused.

        Raises:
            InvalidArgumentError: A name that starts with `delta.` and is none of the protocol's.
            UnsupportedError: A property that cannot be turned on for rows that are there.
        """
        state = self._state()
        check_properties(properties, strict=raise_if_not_exists)
        if properties.get(_ICT, "").lower() == "true" and state.configuration.get(_ICT, "").lower() != "true":
            raise UnsupportedError(f"{_ICT} is turned on when a table is created, not by this release later")
        if MODE in properties and properties[MODE].lower() != state.configuration.get(MODE, "none").lower():
            raise UnsupportedError(f"{MODE} is chosen when a table is created, not changed by this release later")
        if any(key.startswith(CONSTRAINT) for key in properties):
            raise InvalidArgumentError(
                "expected properties, found a constraint; use add_constraint, which looks at the rows"
            )
        after = state.with_configuration({**state.configuration, **properties})
        parameters = {"properties": json.dumps(properties, separators=(",", ":"))}
        self._commit("SET TBLPROPERTIES", parameters, after, commit_properties, post_commithook_properties)

    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets the table's name for people."""
        self._describe("name", name, commit_properties, post_commithook_properties)

    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets what the table is for."""
        self._describe("description", description, commit_properties, post_commithook_properties)

    def add_feature(
        self,
        feature: str | TableFeatures | list[str | TableFeatures] | list[str] | list[TableFeatures],
        allow_protocol_versions_increase: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Makes the protocol name features, such as `deletionVectors`.

        Args:
            feature: Of `TableFeatures`, or names as the protocol has them.
            allow_protocol_versions_increase: Whether its versions may go up for it.

        Raises:
            UnsupportedError: A feature that this release does not write.
            InvalidArgumentError: The versions would have to go up.
        """
        given = [feature] if isinstance(feature, str | TableFeatures) else feature
        names = {found.protocol_name if isinstance(found, TableFeatures) else found for found in given}
        unknown = sorted(names - WRITER_FEATURES)
        if unknown:
            raise UnsupportedError(f"expected features that this release writes, found {', '.join(unknown)}")
        if "inCommitTimestamp" in names:
            raise UnsupportedError("inCommitTimestamp is turned on when a table is created, not by this release later")
        state = self._state()
        versions = (state.protocol["minReaderVersion"], state.protocol["minWriterVersion"])
        protocol = protocol_with(state.protocol, names, reader=versions[0], writer=max(7, versions[1]))
        if (
            versions != (protocol["minReaderVersion"], protocol["minWriterVersion"])
            and not allow_protocol_versions_increase
        ):
            raise InvalidArgumentError(
                f"expected a table whose protocol names features, found reader {versions[0]} and writer {versions[1]}; "
                "give allow_protocol_versions_increase=True"
            )
        after = replace(state, protocol=protocol)
        parameters = {"name": json.dumps(sorted(names))}
        self._commit("ADD FEATURE", parameters, after, commit_properties, post_commithook_properties)

    def _describe(
        self,
        key: str,
        text: str,
        commit_properties: CommitProperties | None,
        post_commithook_properties: PostCommitHookProperties | None,
    ) -> None:
        state = self._state()
        after = replace(state, metadata={**state.metadata, key: text})
        self._commit("UPDATE TABLE METADATA", {key: text}, after, commit_properties, post_commithook_properties)

    def _state(self) -> TableState:
        resolve_for_writing(self.table.table_uri, self.table._storage_options)
        state = TableState.of(self.table._snapshot)
        check_writable(state.protocol, state.schema)
        return state

    def _field(self, name: str) -> Field:
        for field in self._state().schema.fields:
            if field.name == name:
                return field
        raise InvalidArgumentError(f"expected a column of the table, found {name!r}", column=name)

    def _with_field(self, made: Field) -> TableState:
        state = self._state()
        return state.with_schema(Schema([made if field.name == made.name else field for field in state.schema.fields]))

    def _commit(
        self,
        operation: str,
        parameters: dict[str, Any],
        after: TableState,
        properties: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
        *,
        read: ReadSet | None = None,
    ) -> None:
        table = self.table
        follow: Callable[[int], None] = PostCommit(table._store, after.configuration, hooks)
        DeltaCommit(
            table._store,
            table.table_uri,
            table._snapshot,
            operation,
            parameters,
            after.actions_after(self._state()),
            read=read,
            properties=properties,
            after=follow,
        ).run()
        table.update_incremental()


_KNOWN = frozenset(
    {
        "delta.appendOnly",
        "delta.autoOptimize.autoCompact",
        "delta.autoOptimize.optimizeWrite",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
        "delta.checkpointInterval",
        "delta.checkpointPolicy",
        "delta.columnMapping.maxColumnId",
        "delta.columnMapping.mode",
        "delta.compatibility.symlinkFormatManifest.enabled",
        "delta.dataSkippingNumIndexedCols",
        "delta.dataSkippingStatsColumns",
        "delta.deletedFileRetentionDuration",
        "delta.enableChangeDataFeed",
        "delta.enableDeletionVectors",
        "delta.enableExpiredLogCleanup",
        "delta.enableInCommitTimestamps",
        "delta.enableRowTracking",
        "delta.enableTypeWidening",
        "delta.isolationLevel",
        "delta.logRetentionDuration",
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.parquet.compression.codec",
        "delta.randomizeFilePrefixes",
        "delta.randomPrefixLength",
        "delta.sampleRetentionDuration",
        "delta.setTransactionRetentionDuration",
        "delta.targetFileSize",
        "delta.tuneFileSizesForRewrites",
    }
)


def check_properties(properties: dict[str, Any], *, strict: bool) -> None:
    """Raises for names of properties that would mean nothing to anybody.

    Example:
        >>> from esker.delta.alter import check_properties
        >>> check_properties({"delta.appendOnly": "true", "mine": "x"}, strict=True)
    """
    for key in properties if strict else ():
        if key.startswith("delta.") and key not in _KNOWN and not key.startswith((CONSTRAINT, "delta.feature.")):
            raise InvalidArgumentError(
                f"expected a property of the protocol, found {key!r}; look at its spelling, or give it without 'delta.'"
            )
