"""Changes of a table's metadata, with deltalake's names: `DeltaTable.alter`.

Spec: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..exceptions import InvalidArgumentError, InvalidTypeError, NotFoundError, UnsupportedError
from .definition.constraints import CONSTRAINT, GENERATION, INVARIANTS, Constraints
from .definition.protocol import WRITER_FEATURES, protocol_with
from .definition.schema_merge import SchemaMerge
from .definition.table_state import TableState
from .features import TableFeatures
from .log.commit import CommitRequest, DeltaCommit, LogEntry
from .log.conflict import ReadSet
from .log.target import WriteTarget
from .positional import with_positional
from .properties import CommitProperties, PostCommitHookProperties
from .read.file_reader import check_read
from .read.filesystem import FileLocator
from .read.scan import TableScan
from .read.sql_names import columns_in_backticks, in_own_words
from .schema import Field, Schema, StructType
from .table_properties import check_changes, check_properties
from .write.conformed import conformed


class TableAlterer:
    """The value of `DeltaTable.alter`. Each change is one commit, and the table goes to the new version.

    Args:
        target: Tells where the table is, and which version of it is open.

    Example:
        `DeltaTable("t").alter.add_constraint({"positive": "x > 0"})`
    """

    def __init__(self, target: Callable[[], WriteTarget]) -> None:
        self._target = target

    @with_positional()
    def add_columns(
        self,
        fields: Field | list[Field],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Adds columns, which are null in all rows that are there.

        Args:
            fields: The columns. One that is there with the same type stays, and gets the metadata given for it. A
                struct of which the table has some fields adds the others to it.

        Raises:
            InvalidArgumentError: A column of that name and of another type is there or given twice, or the new one may
                not be null.
            InvalidTypeError: What is given is no `Field`.
        """
        new = [fields] if isinstance(fields, Field) else list(fields)
        for field in new:
            if not isinstance(field, Field):
                raise InvalidTypeError(f"expected a Field, or a list of them, found {field!r}")
        target, state = self._begin()
        there = {field.name.lower(): field for field in state.schema.fields}
        if len({field.name.lower() for field in new}) < len(new):
            raise InvalidArgumentError(f"expected each column once, found {', '.join(field.name for field in new)}")
        for field in new:
            known = there.get(field.name.lower())
            if known is not None:
                _check_new_fields(known, field)
                continue
            if not field.nullable and target.base.num_files:
                raise InvalidArgumentError(
                    f"expected a nullable column, found {field.name!r} not null: rows are there without it",
                    column=field.name,
                )
            if INVARIANTS in field.metadata or GENERATION in field.metadata:
                raise UnsupportedError(
                    f"column {field.name!r}: invariants and generation expressions are given when a table is created; "
                    "leave them out (New columns cannot be a generated column)",
                    column=field.name,
                )
        merged = SchemaMerge().schema(state.schema, Schema(new))
        given = {field.name: field for field in new if field.name.lower() in there}
        after = state.with_schema(Schema([_described(field, given.get(field.name)) for field in merged.fields]))
        columns = json.dumps([{"column": field._json()} for field in new], separators=(",", ":"))
        _commit(
            target,
            "ADD COLUMNS",
            {"columns": columns},
            after,
            CommitRequest(commit_properties, post_commithook_properties),
        )

    @with_positional("post_commithook_properties", "commit_properties")
    def add_constraint(
        self,
        constraints: dict[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Adds CHECK constraints. Rows that are there must satisfy them.

        Args:
            constraints: By their names: SQL that must be true. Double quotes name columns, as in deltalake.

        Raises:
            InvalidArgumentError: Rows do not satisfy one, or there is another one of that name.
            UnsupportedError: One is outside of the subset that this release evaluates.
        """
        if not constraints:
            raise InvalidArgumentError("expected a constraint, found none")
        target, state = self._begin()
        there = {key.lower(): sql for key, sql in state.configuration.items()}
        added = {}
        for name, sql in constraints.items():
            key, added_sql = CONSTRAINT + name, columns_in_backticks(sql)
            if there.get(key.lower(), added_sql) != added_sql or (
                key.lower() in there and key not in state.configuration
            ):
                raise InvalidArgumentError(
                    f"expected a new constraint, found {name!r} there: {there[key.lower()]}; drop it first"
                )
            added[key] = added_sql
        after = state.with_configuration({**state.configuration, **added})
        with ExitStack() as words:
            for name, sql in constraints.items():
                words.enter_context(in_own_words(sql, added[CONSTRAINT + name]))
            check = Constraints(after.schema, added, after.protocol, is_new=True)
        for batch in conformed(_rows(target), after.schema):
            check.enforce(batch)
        parameters = {key.removeprefix(CONSTRAINT): sql for key, sql in added.items()}
        if len(added) == 1:
            ((name, sql),) = parameters.items()
            parameters = {"name": name, "expr": sql}
        _commit(
            target,
            "ADD CONSTRAINT",
            parameters,
            after,
            CommitRequest(commit_properties, post_commithook_properties),
            read=ReadSet(whole_table=True),
        )

    @with_positional("post_commithook_properties", "commit_properties")
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
        target, state = self._begin()
        kept = {key: value for key, value in state.configuration.items() if key != CONSTRAINT + name}
        if len(kept) == len(state.configuration):
            if raise_if_not_exists:
                there = sorted(key.removeprefix(CONSTRAINT) for key in kept if key.startswith(CONSTRAINT))
                raise NotFoundError(f"no constraint {name!r}; the table has {', '.join(there) or 'none'}")
            return
        after = state.with_configuration(kept)
        _commit(
            target,
            "DROP CONSTRAINT",
            {"name": name},
            after,
            CommitRequest(commit_properties, post_commithook_properties),
        )

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Lets a column have nulls.

        Raises:
            InvalidArgumentError: There is no such column, or it may have nulls already.
        """
        target, state = self._begin()
        field = _field(state, column_name)
        if field.nullable:
            raise InvalidArgumentError(
                f"expected a column that may have no nulls, found {column_name!r}, which may", column=column_name
            )
        made = Field(column_name, field.type, True, field.metadata)
        after = _with_field(state, made)
        parameters = {"column": column_name}
        _commit(
            target, "CHANGE COLUMN", parameters, after, CommitRequest(commit_properties, post_commithook_properties)
        )

    @with_positional()
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
        target, state = self._begin()
        field = _field(state, column)
        after = _with_field(state, Field(field.name, field.type, field.nullable, {**field.metadata, **metadata}))
        parameters = {"column": column, "metadata": json.dumps(metadata)}
        _commit(
            target, "CHANGE COLUMN", parameters, after, CommitRequest(commit_properties, post_commithook_properties)
        )

    @with_positional()
    def set_table_properties(
        self,
        properties: dict[str, str],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets properties; the protocol goes up where they need it.

        `delta.minReaderVersion`, `delta.minWriterVersion` and `delta.feature.*` are of the protocol: it goes up, and no
        property is kept. `delta.columnMapping.mode` goes from `none` to `name`: columns keep their names in files.

        Args:
            properties: By their names.
            raise_if_not_exists: Whether names that the protocol does not know are refused.

        Raises:
            InvalidArgumentError: A name that starts with `delta.` and is none of the protocol's; a value that is none.
            InvalidTypeError: A value that is no text.
            UnsupportedError: A feature that this release does not write, or a mode of column mapping that a table
                cannot go to.
        """
        target, state = self._begin()
        check_properties(properties, strict=raise_if_not_exists)
        for key, value in properties.items():
            if value is None:
                raise InvalidTypeError(f"expected {key} as a text, found None")
        if any(key.startswith(CONSTRAINT) for key in properties):
            raise InvalidArgumentError(
                "expected properties, found a constraint; use add_constraint, which looks at the rows"
            )
        check_changes(state.configuration, properties)
        given = dict(properties)
        reader, writer = (given.pop(key, None) for key in ("delta.minReaderVersion", "delta.minWriterVersion"))
        after = state.with_configuration(
            {**state.configuration, **given}, reader=int(reader or 1), writer=int(writer or 2)
        )
        parameters = {"properties": json.dumps(properties, separators=(",", ":"))}
        _commit(
            target, "SET TBLPROPERTIES", parameters, after, CommitRequest(commit_properties, post_commithook_properties)
        )

    @with_positional()
    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets the table's name for people.

        Raises:
            InvalidArgumentError: It is empty, or longer than 255 characters.
        """
        if not 0 < len(name) <= 255:
            raise InvalidArgumentError(
                f"expected a name of 1 to 255 characters, found {len(name)}; give another one (Table metadata is "
                "invalid: name: Table name cannot be empty and cannot exceed 255 characters)"
            )
        self._describe("name", name, CommitRequest(commit_properties, post_commithook_properties))

    @with_positional()
    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Sets what the table is for.

        Raises:
            InvalidArgumentError: It is longer than 4000 characters.
        """
        if len(description) > 4000:
            raise InvalidArgumentError(
                f"expected a description of up to 4000 characters, found {len(description)}; shorten it (Table "
                "metadata is invalid: description: Table description cannot exceed 4000 characters)"
            )
        self._describe("description", description, CommitRequest(commit_properties, post_commithook_properties))

    @with_positional()
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
            InvalidArgumentError: The versions would have to go up, or there is no feature in the list.
        """
        given = [feature] if isinstance(feature, str | TableFeatures) else feature
        names = {found.protocol_name if isinstance(found, TableFeatures) else found for found in given}
        if not names:
            raise InvalidArgumentError("expected a feature, found none (No features provided)")
        unknown = sorted(names - WRITER_FEATURES)
        if unknown:
            raise UnsupportedError(f"expected features that this release writes, found {', '.join(unknown)}")
        target, state = self._begin()
        versions = (state.protocol["minReaderVersion"], state.protocol["minWriterVersion"])
        protocol = protocol_with(state.protocol, names, reader=versions[0], writer=max(7, versions[1]))
        if (
            versions != (protocol["minReaderVersion"], protocol["minWriterVersion"])
            and not allow_protocol_versions_increase
        ):
            enabled, needed = ("writer feature", "min_writer is not v7"), "version"
            if versions[0] != protocol["minReaderVersion"]:
                enabled = ("reader and writer feature", "reader is not v3, and writer not v7")
                needed = "versions"
            theirs = (
                f"Generic DeltaTable error: Table feature enables {enabled[0]}, but {enabled[1]}. Set "
                f"allow_protocol_versions_increase or increase {needed} explicitly through set_tbl_properties"
            )
            raise InvalidArgumentError(
                f"expected a table whose protocol names features, found reader {versions[0]} and writer {versions[1]}; "
                f"give allow_protocol_versions_increase=True ({theirs})"
            )
        after = replace(state, protocol=protocol)
        parameters = {"name": json.dumps(sorted(names))}
        _commit(target, "ADD FEATURE", parameters, after, CommitRequest(commit_properties, post_commithook_properties))

    def _describe(self, key: str, text: str, commit: CommitRequest) -> None:
        target, state = self._begin()
        after = replace(state, metadata={**state.metadata, key: text})
        _commit(target, "UPDATE TABLE METADATA", {key: text}, after, commit)

    def _begin(self) -> tuple[WriteTarget, TableState]:
        """The version that a change is made of, from its checks to its commit, and the state of the table there.

        Another thread may have the open table go to a later version meanwhile, with columns that the change lacks.
        """
        target = self._target()
        state = TableState.of(target.base)
        state.check_writable()
        return target, state


def _field(state: TableState, name: str) -> Field:
    for field in state.schema.fields:
        if field.name == name:
            return field
    raise InvalidArgumentError(f"expected a column of the table, found {name!r}", column=name)


def _with_field(state: TableState, made: Field) -> TableState:
    return state.with_schema(Schema([made if field.name == made.name else field for field in state.schema.fields]))


def _commit(
    target: WriteTarget,
    operation: str,
    parameters: dict[str, Any],
    after: TableState,
    commit: CommitRequest,
    *,
    read: ReadSet | None = None,
) -> None:
    entry = LogEntry(operation, parameters, after.actions_after(TableState.of(target.base)), read or ReadSet())
    target.committed(DeltaCommit(target, entry, commit).run())


def _rows(target: WriteTarget) -> Iterator[pa.RecordBatch]:
    """All rows of the version that is open."""
    snapshot = target.base
    check_read(pa.schema(snapshot))
    return TableScan(target.store, snapshot, FileLocator(target.store, snapshot.root, target.storage_options)).batches()


def _check_new_fields(known: Field, given: Field) -> None:
    """Raises unless a column that is there is given as it is: a struct may have other fields, which are added to it."""
    if known.name == given.name and isinstance(known.type, StructType) and isinstance(given.type, StructType):
        there = {field.name.lower(): field for field in known.type.fields}
        for field in given.type.fields:
            if field.name.lower() in there:
                _check_new_fields(there[field.name.lower()], field)
    elif known.name != given.name or known.type != given.type:
        raise InvalidArgumentError(
            f"expected a new column, found {given.name!r} there: {known!r}, and {given!r} is given", column=given.name
        )


def _described(known: Field, given: Field | None) -> Field:
    """A column with the metadata that it is given beside its own; the protocol's own is not given so."""
    added = {} if given is None else {k: v for k, v in given.metadata.items() if not k.startswith("delta.")}
    return Field(known.name, known.type, known.nullable, {**known.metadata, **added}) if added else known
